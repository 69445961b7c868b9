"""Speed and memory of the tree games, as ratios in one run.

usage: python benchmarks/trees.py [speed] [threads] [growth] [memory]      (all of them by default)

``speed`` and ``threads`` use the paper's fraud table (set WEIGHTEDSHAP_DATA): split first, only the
training part balanced, 30 columns and 60 spurious ones, LightGBM as in the appendix, surrogate by
default settings. Each process counts on one thread (OMP_NUM_THREADS=1) but for the two-thread row.
Times are the best of several repeats, taken in turns.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

ROWS = 500
REPEATS = 7


def best(functions, repeats=REPEATS):
    """Seconds of each function: the best of several repeats, taken in turns after one warm-up."""
    for function in functions.values():
        function()
    times = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return {name: min(values) for name, values in times.items()}


def table(header, rows):
    """Print an aligned Markdown table."""
    cells = [header, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[c]) for row in cells) for c in range(len(header))]
    lines = [
        "| " + " | ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    lines.insert(1, "|" + "|".join("-" * (w + 1) + ":" for w in widths) + "|")
    print("\n".join(lines) + "\n", flush=True)


def fraud():
    """The paper's fraud setting: data, prediction model, seconds of surrogate training,
    explainer."""
    import weightedshap as ws
    from weightedshap_paper.datasets import prepare
    from weightedshap_paper.models import boosting

    data = prepare("fraud", np.random.default_rng(0))
    model = boosting(data, seed=0)
    start = time.perf_counter()
    # Without the copies that balance the classes.
    explainer = ws.Explainer(model, np.unique(data.X_train, axis=0), game="tree_surrogate")
    return data, model, time.perf_counter() - start, explainer


def in_process(job, threads, *arguments):
    """Run one job of this file in a process of its own with so many threads."""
    names = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"
    environment = os.environ | {name: str(threads) for name in names}
    subprocess.run(
        [sys.executable, __file__, "--job", job, *map(str, arguments)], env=environment, check=True
    )


def speed():
    """Fit on two threads, then compare both tools on one thread with the same surrogate
    ensemble."""
    data, _, seconds, explainer = fraud()
    info = explainer.game.info
    print(
        f"fraud: {info['background_rows']:,} background rows, d = {data.X_test.shape[1]};"
        f" {info['trees']} trees"
    )
    print(
        f"and {info['leaves']:,} leaves trained in {seconds:.1f} s on two threads; held-out masked"
        " error"
    )
    print(f"{info['held_out_error']:.3g}, {info['relative_error']:.3f} of Var f.\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        explainer.game.boosters[0].save_model(f"{folder}/surrogate.txt")
        np.savez(
            f"{folder}/rows.npz", X=data.X_test[:ROWS], f=explainer.game.predict(data.X_test[:ROWS])
        )
        in_process("compare", 1, folder)


class Known:
    """A model whose predictions are known, so that only explaining is timed."""

    def __init__(self, predictions):
        self.predictions = predictions

    def __call__(self, rows):
        return self.predictions[: len(rows)]


def explainer_of(booster, X, predictions):
    """An Explainer on a surrogate that was trained before."""
    import weightedshap as ws
    from weightedshap.games.surrogates.data import Encoding
    from weightedshap.games.surrogates.tree_surrogate import TreeSurrogateGame
    from weightedshap.inputs import as_model, as_table

    background = as_table(X)
    model = as_model(Known(predictions), background)
    encoding = Encoding.fit(background, predictions[:, None])
    fitted = TreeSurrogateGame(model, background, encoding, (booster,), np.zeros(1))
    return lambda **choices: ws.Explainer(Known(predictions), X, game=fitted, **choices)


def compare(folder):
    import lightgbm
    import shap

    booster = lightgbm.Booster(model_file=f"{folder}/surrogate.txt")
    stored = np.load(f"{folder}/rows.npz")
    X = stored["X"]
    predictions = stored["f"]
    make = explainer_of(booster, X, predictions)
    full = make()
    without = make(keep_contributions=False)
    path = shap.TreeExplainer(booster, feature_perturbation="tree_path_dependent")
    hidden = np.full((1, X.shape[1]), np.nan)
    interventional = shap.TreeExplainer(booster, hidden, feature_perturbation="interventional")
    times = best(
        {
            "weightedshap, full (Δ, 13 weights, 13 curves, choice)": lambda: full(X),
            "weightedshap, Δ not kept": lambda: without(X),
            "shap, path-dependent, Shapley only": lambda: path.shap_values(
                X, check_additivity=False
            ),
            "shap, interventional, Shapley only": lambda: interventional.shap_values(
                X, check_additivity=False
            ),
        }
    )
    per_path, per_interventional = (
        times[f"shap, {kind}, Shapley only"] for kind in ("path-dependent", "interventional")
    )
    rows = [
        (name, f"{t / len(X) * 1e3:.3f}", f"{t / per_path:.3f}", f"{t / per_interventional:.2f}")
        for name, t in times.items()
    ]
    table(["one thread", "ms per row", "× path-dependent", "× interventional"], rows)
    gap = np.abs(full(X).shapley - interventional.shap_values(X, check_additivity=False)).max()
    print(f"largest difference of the Shapley values from shap's interventional: {gap:.2g}\n")


def threads():
    """One against two threads in one process."""
    data, _, _, explainer = fraud()
    X = np.concatenate([data.X_test] * 16)
    predictions = explainer.game.predict(X)
    make = explainer_of(explainer.game.boosters[0], X, predictions)
    one = make(keep_contributions=False, n_jobs=1)
    two = make(keep_contributions=False, n_jobs=2)
    times = best({"1 thread": lambda: one(X), "2 threads": lambda: two(X)})
    rows = [
        (n, f"{t / len(X) * 1e3:.3f}", f"{times['1 thread'] / t:.2f}") for n, t in times.items()
    ]
    table(["explaining", "ms per row", "× faster"], rows)


def synthetic(d, trees, leaves, n=4000, masks=4, seed=0):
    """Rows, and a booster trained on masked rows of a smooth function of ten features."""
    import lightgbm

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    used = X[:, : min(d, 40)]
    y = np.sin(used).sum(axis=1) + used[:, 0] * used[:, 1 % d]
    rows = np.repeat(np.arange(n), masks)
    hidden = rng.random((len(rows), d)) >= rng.random((len(rows), 1))
    parameters = {
        "num_leaves": leaves,
        "min_data_in_leaf": 5,
        "max_bin": 63,
        "verbose": -1,
        "num_threads": 1,
    }
    masked = np.where(hidden, np.float32(np.nan), X[rows])
    booster = lightgbm.train(parameters, lightgbm.Dataset(masked, y[rows]), trees)
    return X.astype(np.float64), booster


def surrogate_cost(d=90, trees=300, leaves=31, rows=64):
    X, booster = synthetic(d, trees, leaves)
    few = X[:rows]
    make = explainer_of(booster, few, np.zeros(rows))
    full = make(keep_contributions=True)
    without = make(keep_contributions=False)
    times = best({"full": lambda: full(few), "without": lambda: without(few)}, repeats=3)
    return [f"{times[name] / rows * 1e3:.3f}" for name in ("full", "without")]


def growth():
    in_process("grow", 1)


def grow():
    import lightgbm

    import weightedshap as ws

    header = ["ms per row", "Δ not kept"]
    table(
        ["d", *header],
        [
            (d, *surrogate_cost(d=d, rows=16 if d > 500 else 64))
            for d in (10, 30, 90, 300, 1000, 2000)
        ],
    )
    table(
        ["trees", *header],
        [(trees, *surrogate_cost(trees=trees)) for trees in (50, 150, 500, 2000)],
    )
    table(
        ["leaves", *header],
        [(leaves, *surrogate_cost(leaves=leaves)) for leaves in (7, 15, 31, 63, 127, 255)],
    )
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 20))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2:8]).sum(axis=1)
    model = lightgbm.LGBMRegressor(n_estimators=100, num_leaves=31, verbose=-1, n_jobs=1).fit(X, y)
    rows = []
    for n in (1, 10, 100, 1000, 10_000):
        start = time.perf_counter()
        explainer = ws.Explainer(model, X[:n], game="tree_interventional")
        explainer(X[:1])
        ready = time.perf_counter() - start
        rows.append(
            (
                f"{n:,}",
                f"{ready:.2f}",
                f"{best({'': lambda e=explainer: e(X[:32])}, 3)[''] / 32 * 1e3:.3f}",
            )
        )
    table(["background rows (interventional)", "s to the first row", "ms per row"], rows)


def memory():
    """Peak memory of processes that explain more and more rows without keeping Δ."""
    for n in (1_000, 10_000, 50_000):
        in_process("peak", 1, n)


def peak(n):
    n = int(n)
    X, booster = synthetic(90, 100, 31)
    rows = np.concatenate([X] * (n // len(X) + 1))[:n]
    explainer = explainer_of(booster, rows, np.zeros(n))(keep_contributions=False)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    explanation = explainer(rows)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    arrays = [v for v in vars(explanation).values() if isinstance(v, np.ndarray)]
    held = sum(a.nbytes for a in arrays) + sum(
        a.nbytes for a in explanation.reference_curves.values()
    )
    grown = (after - before) / 1024
    print(
        f"{n:>8,} rows: peak grew by {grown:6.0f} MiB, of which the result itself takes"
        f" {held / 2**20:6.0f} MiB"
    )


JOBS = {"speed": speed, "threads": threads, "growth": growth, "memory": memory}
PARTS = {"compare": compare, "grow": grow, "peak": peak}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("jobs", nargs="*", choices=[*JOBS, []], default=[])
    parser.add_argument("--job", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        PARTS[arguments.job[0]](*arguments.job[1:])
        return
    for job in arguments.jobs or JOBS:
        print(f"## {job}\n", flush=True)
        JOBS[job]()


if __name__ == "__main__":
    main()
