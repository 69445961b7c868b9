"""Speed of the interventional game, as ratios to the libraries that compute its Shapley values.

    OMP_NUM_THREADS=1 python benchmarks/interventional.py [rows …]

A LightGBM model of 100 trees with 31 leaves, d = 20, and 1,000 background rows. The unit is WOODELF's Shapley values
(`pip install woodelf-explainer`), from the model to the values. "Shapley" are ours, from the model to the values;
"φ and Δ" are the 13 weights of the paper and the contributions of every size; "whole" is
``Explainer(model, background, game="tree_interventional", judge="game")(X)``: φ, Δ, the curves of 13 orders and the
choice. "shap" is its TreeExplainer with all background rows, by its time for 100 rows. CPU time of one thread, the best
of a few runs taken in turns. The last table is the time of one worker over that of two, by the clock.
"""

from __future__ import annotations

import contextlib
import io
import sys
import time

import lightgbm
import numpy as np
import pandas as pd

import weightedshap as ws
from trees import table

D, TREES, LEAVES, BACKGROUND, SHAP_ROWS = 20, 100, 31, 1000, 100


def data(n, seed=0):
    """Rows, and a model of a target with interactions."""
    X = np.random.default_rng(seed).normal(size=(max(n, 10_000) + BACKGROUND, D))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2:8]).sum(axis=1)
    model = lightgbm.LGBMRegressor(n_estimators=TREES, num_leaves=LEAVES, verbose=-1, n_jobs=1)
    return X[:-BACKGROUND], X[-BACKGROUND:], model.fit(X[:10_000], y[:10_000])


def best(functions, repeats):
    """CPU seconds of each function, and what it gives: the best of several runs, taken in turns."""
    times, results = {name: [] for name in functions}, {}
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.process_time()
            results[name] = function()
            times[name].append(time.process_time() - start)
    return {name: min(values) for name, values in times.items()}, results


def woodelf(model, background, X):
    """WOODELF's values; its bar is not shown."""
    from woodelf import WoodelfExplainer

    names = model.feature_name_
    with contextlib.redirect_stderr(io.StringIO()):
        explainer = WoodelfExplainer(model, pd.DataFrame(background, columns=names))
        return explainer.shap_values(pd.DataFrame(X, columns=names))


def ours(model, background, X, vectors):
    """φ under weight vectors, (n, m, d)."""
    return ws.games.TreeModel("interventional").fit(model, background).block(X).semivalues(vectors)[..., 0]


def shap_ms():
    """Milliseconds of shap for one row."""
    import shap

    X, background, model = data(SHAP_ROWS)
    masker = shap.maskers.Independent(background, max_samples=len(background))
    explainer = shap.TreeExplainer(model, masker, feature_perturbation="interventional")
    start = time.process_time()
    explainer.shap_values(X[:SHAP_ROWS], check_additivity=False)
    return (time.process_time() - start) / SHAP_ROWS * 1e3


def compared(n, shap_per_row):
    """One line of the table: ratios for n rows."""
    X, background, model = data(n)
    X, family = np.ascontiguousarray(X[:n]), ws.weights.paper(D)
    explainer = ws.Explainer(model, background, game="tree_interventional", judge="game", progress=False)
    uniform = ws.weights.shapley(D).vectors
    runs = {
        "WOODELF": lambda: woodelf(model, background, X),
        "Shapley": lambda: ours(model, background, X, uniform),
        "φ and Δ": lambda: ours(model, background, X, family.with_sizes),
        "whole": lambda: explainer(X),
    }
    explainer(X[:10]), ours(model, background, X[:10], uniform), woodelf(model, background, X[:10])  # compiled
    times, results = best(runs, 3 if n <= 10_000 else 1)
    gap = np.abs(results["Shapley"][:, 0] - results["WOODELF"]).max()
    ratios = [f"{times[part] / times['WOODELF']:.2f}" for part in ("Shapley", "φ and Δ", "whole")]
    unit = times["WOODELF"] / n * 1e3
    return (f"{n:,}", f"{unit:.3f}", *ratios, f"{shap_per_row / unit:.1f}", f"{gap:.0e}")


def two_workers(n):
    """The time of one worker over that of two, by the clock."""
    X, background, model = data(n)
    times = {1: [], 2: []}
    for _ in range(5):
        for n_jobs, found in times.items():
            choices = {"game": "tree_interventional", "judge": "game", "progress": False, "n_jobs": n_jobs}
            explainer = ws.Explainer(model, background, **choices)
            explainer(X[:10])
            start = time.perf_counter()
            explainer(X[:n])
            found.append(time.perf_counter() - start)
    return f"{n:,}", f"{min(times[1]) / n * 1e3:.3f}", f"{min(times[1]) / min(times[2]):.2f}"


def main():
    rows = [int(n) for n in sys.argv[1:]] or [1_000, 10_000, 100_000]
    header = ["rows", "WOODELF, ms per row", "Shapley", "φ and Δ", "whole", "shap", "largest difference"]
    shap_per_row = shap_ms()
    table(header, [compared(n, shap_per_row) for n in rows])
    table(["rows", "one worker, ms per row", "times as fast with two"], [two_workers(n) for n in (500, 1000, 4000)])


if __name__ == "__main__":
    main()
