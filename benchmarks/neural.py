"""The network: speed of its walks, when Algorithm 2 stops on it, the default recipe against the
paper's, and trees.

usage: WEIGHTEDSHAP_DATA=… python benchmarks/neural.py [walks] [authors] [printed] [recipes] [trees]
[--quick]

walks    1,400 orders at d = 90 on the fraud network, against a loop that sends one coalition at a
time through torch authors  how many orders the authors' stopping rule asks for on the fraud
network, 24 rows printed  how many evaluations Algorithm 2 as printed asks for on the fraud network,
one row recipes  `NeuralSurrogate()` against `NeuralSurrogate.paper()` on fraud, airfoil, wind,
abalone and phoneme trees    `TreeSurrogate()` against `NeuralSurrogate.paper()` on the twelve
tabular datasets (slow)

Both are fitted to the distinct training rows of the paper's boosting model. Errors are means of
(f(x) − v(S))² on rows that neither model nor surrogate has seen (the estimation part), 32
coalitions each, sizes uniform on 0..d. Seconds are CPU time, so that other work on the machine does
not count, without the model's own predictions, which are the same for every recipe; ratios are of
one run. On a busy machine set OMP_NUM_THREADS=1: LightGBM's threads wait for each other.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import joblib
import numpy as np

from trees import table
from weightedshap import estimators
from weightedshap.coalitions import prefixes, random_coalitions
from weightedshap.estimators import permutation
from weightedshap.games import NeuralSurrogate, TreeSurrogate
from weightedshap.games.surrogates.data import MaskedRows
from weightedshap.inputs import as_model, as_table
from weightedshap_paper.datasets import DATASETS, prepare
from weightedshap_paper.models import boosting

ORDERS = 1400
D = 90


@dataclass(frozen=True)
class Problem:
    """Rows and model to learn from, and masked rows to judge by."""

    name: str
    model: Any
    X: Any
    X_new: Any
    f_new: Any
    coalitions: Any

    @classmethod
    def build(cls, name, masks=32):
        data = prepare(name, np.random.default_rng(0))
        model = boosting(data, seed=0)
        X_new = np.repeat(data.X_est, masks, axis=0)
        f_new = np.repeat(model.predict(data.X_est), masks)
        coalitions = random_coalitions(len(X_new), X_new.shape[1], np.random.default_rng(1))
        return cls(name, model, np.unique(data.X_train, axis=0), X_new, f_new, coalitions)

    def error(self, fitted):
        """Mean squared error on unseen rows."""
        masked = MaskedRows(np.arange(len(self.X_new)), self.coalitions)
        return float(np.mean((fitted.values_at(self.X_new, masked)[:, 0] - self.f_new) ** 2))

    @cached_property
    def remembered(self):
        """The model, with its predictions of the rows to learn from made in advance."""
        background = as_table(self.X)
        f = self.model.predict(self.X)
        return background, replace(as_model(self.model, background), predict=lambda rows: f)

    def fit(self, recipe, seed=0):
        """The fitted recipe and its CPU seconds."""
        background, model = self.remembered
        start = time.process_time()
        fitted = recipe.fit(model, background, seed)
        return fitted, time.process_time() - start


def torch_loop(fitted, row, coalitions):
    """One coalition at a time through a torch module, as the authors' program asks for them."""
    import torch

    p = {name: torch.tensor(array) for name, array in fitted.network.parameters.items()}
    layers = [torch.nn.Linear(*p["W" + layer].shape) for layer in "123"]
    for layer, name in zip(layers, "123", strict=True):
        layer.weight.data, layer.bias.data = p["W" + name].T.contiguous(), p["b" + name]
    elu = torch.nn.ELU()
    network = torch.nn.Sequential(layers[0], elu, layers[1], elu, layers[2], torch.nn.Sigmoid())
    z = torch.tensor(fitted.inputs(row))
    masks = torch.tensor(coalitions, dtype=torch.float32)
    values = np.empty(len(masks))
    with torch.no_grad():
        for r in range(len(masks)):
            mask = masks[r : r + 1]
            values[r] = network(torch.cat([z * mask, mask], dim=1)).item()
    return values


def timed(function, repeats):
    """Best wall and CPU seconds of several repeats."""
    wall = []
    cpu = []
    for _ in range(repeats):
        started = time.perf_counter(), time.process_time()
        function()
        wall.append(time.perf_counter() - started[0])
        cpu.append(time.process_time() - started[1])
    return min(wall), min(cpu)


def walks(quick):
    """1,400 orders at d = 90."""
    problem = Problem.build("fraud", masks=1)
    # The time of a walk does not depend on how well the network was trained.
    epochs = 2 if quick else 20
    rng = np.random.default_rng(0)
    orders = rng.permuted(np.tile(np.arange(D), (ORDERS, 1)), axis=1)
    coalitions = prefixes(orders).reshape(-1, D)
    rows = problem.X_new[:4, None]
    repeats = 2 if quick else 5
    looped = 3_000 if quick else 30_000
    lines = []
    budget = 2 * D + 2 + ORDERS * (D - 3)

    def sampled(game):
        return permutation(game, evaluations=budget, orders="independent", rng=0)

    for name, recipe in {
        "paper's, 128 units": NeuralSurrogate.paper(),
        "default": NeuralSurrogate(),
    }.items():
        fitted, _ = problem.fit(replace(recipe, epochs=epochs))
        games = [fitted.at(row) for row in rows]
        game = games[0]
        assert (
            np.abs(torch_loop(fitted, rows[0], coalitions[:200]) - game(coalitions[:200])).max()
            < 1e-5
        )
        assert sampled(game).chains.counts[:, :, 0].sum() == ORDERS
        loop = timed(lambda f=fitted: torch_loop(f, rows[0], coalitions[:looped]), 1)
        loop = [seconds * len(coalitions) / looped for seconds in loop]
        ways = {
            "one at a time through torch": loop,
            "game(prefixes of the orders)": timed(lambda g=game: g(coalitions), repeats),
            "game.along(orders)": timed(lambda g=game: g.along(orders), repeats),
            "permutation(game)": timed(lambda g=game: sampled(g), repeats),
        }
        workers = joblib.Parallel(2, prefer="threads")
        two = timed(
            lambda gs=games, both=workers: both(joblib.delayed(sampled)(g) for g in gs), repeats
        )
        ways["permutation, rows on two workers"] = [seconds / len(games) for seconds in two]
        lines += [
            [
                name,
                way,
                f"{wall:.3f}",
                f"{cpu:.3f}",
                f"{loop[0] / wall:.0f}",
                f"{loop[1] / cpu:.0f}",
            ]
            for way, (wall, cpu) in ways.items()
        ]
    print(f"{ORDERS:,} orders of {D} features, {len(coalitions):,} coalitions, seconds per row:\n")
    table(["network", "way", "wall s", "CPU s", "× wall", "× CPU"], lines)


def authors(quick):
    """How many orders the authors' rule asks for: R̂ of each feature's draws, looked at every 100
    orders."""
    games = paper_games(2 if quick else 24)
    orders = [
        int(estimators.authors(game, rng=r).chains.counts[:, :, 0].sum())
        for r, game in enumerate(games)
    ]
    print(
        f"\nThe authors' rule on {len(games)} rows of fraud stops after {np.mean(orders):,.0f}"
        " orders on average,"
    )
    print(f"between {min(orders):,} and {max(orders):,}.\n")


def printed(quick):
    """How many evaluations Algorithm 2 as printed asks for: R̂ < 1.005 of every Δ_j(x_i)."""
    for r, game in enumerate(paper_games(1)):
        start = time.process_time()
        found = estimators.algorithm_2(game, rng=r, evaluations=2_000_000 if quick else None)
        draws = int(found.counts[1, 0])
        spent = time.process_time() - start
        print(
            f"\nAlgorithm 2 as printed, row {r} of fraud: {found.evaluations:,} evaluations in"
            f" {spent:.0f} CPU seconds,"
        )
        print(f"{draws:,} draws of every Δ_j(i) in all; {found.stopped}.\n")


def paper_games(n):
    """The games of n test rows of fraud on the paper's network."""
    problem = Problem.build("fraud", masks=1)
    fitted, _ = problem.fit(NeuralSurrogate.paper())
    return [fitted.at(row[None]) for row in problem.X_new[:n]]


def recipes(quick):
    """The default recipe against the paper's, on other seeds than it was picked on (0–2 and 10–12,
    first three)."""
    lines = []
    for name in ("airfoil",) if quick else ("fraud", "airfoil", "wind", "abalone", "phoneme"):
        problem = Problem.build(name)
        problem.fit(replace(NeuralSurrogate(), epochs=1))  # compiled code is loaded once
        fits = {}
        for label, recipe in {
            "paper": NeuralSurrogate.paper(),
            "default": NeuralSurrogate(),
        }.items():
            fits[label] = [
                (problem.error(fitted) / problem.f_new.var(), spent)
                for fitted, spent in (
                    problem.fit(recipe, seed) for seed in ((20,) if quick else (20, 21, 22))
                )
            ]
        (errors, seconds), (own, spent) = (
            np.array(fits[label]).T for label in ("paper", "default")
        )
        each = " ".join(f"{ratio:.3f}" for ratio in own / errors)
        means = [
            f"{errors.mean():.4f}",
            f"{own.mean():.4f}",
            f"{own.mean() / errors.mean():.3f}",
            each,
        ]
        lines.append(
            [
                name,
                *means,
                f"{seconds.mean():.2f}",
                f"{spent.mean():.2f}",
                f"{spent.sum() / seconds.sum():.3f}",
            ]
        )
    header = [
        "dataset",
        "paper's error / Var f",
        "default's",
        "ratio",
        "by seed",
        "paper's CPU s",
        "default's",
        "ratio",
    ]
    table(header, lines)


def trees(quick):
    """The tree surrogate against the paper's network and the default one."""
    lines = []
    good = 0
    fast = 0
    for name in ("airfoil", "phoneme") if quick else DATASETS:
        problem = Problem.build(name)
        variance = problem.f_new.var()
        network, network_seconds = problem.fit(NeuralSurrogate.paper())
        default, default_seconds = problem.fit(NeuralSurrogate())
        tree, seconds = problem.fit(TreeSurrogate(n_jobs=1))
        errors = [problem.error(fitted) / variance for fitted in (tree, default, network)]
        good += errors[0] <= 1.05 * errors[2]
        fast += seconds <= 0.1 * network_seconds
        times = [spent / network_seconds for spent in (seconds, default_seconds)]
        ratios = [errors[0] / errors[2], errors[1] / errors[2], *times]
        lines.append(
            [name, problem.X.shape[1], *(f"{e:.4f}" for e in errors), *(f"{r:.3f}" for r in ratios)]
        )
    header = ["dataset", "d", "trees' error / Var f", "default network's", "paper's network's"]
    table(
        [
            *header,
            "trees / paper",
            "default / paper",
            "trees' time / paper's",
            "default's time / paper's",
        ],
        lines,
    )
    print(
        f"Of {len(lines)} datasets the trees' error is at most 1.05 of the paper's network's on"
        f" {good}, and their time"
    )
    print(f"at most a tenth of its time on {fast}.")


def main():
    """Print the tables."""
    jobs = {
        "walks": walks,
        "authors": authors,
        "printed": printed,
        "recipes": recipes,
        "trees": trees,
    }
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("jobs", nargs="*", choices=[[], *jobs], metavar="|".join(jobs))
    parser.add_argument("--quick", action="store_true", help="fewer datasets, repeats and epochs")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch in this process")
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(arguments.threads)
    for name in arguments.jobs or jobs:
        jobs[name](arguments.quick)


if __name__ == "__main__":
    main()
