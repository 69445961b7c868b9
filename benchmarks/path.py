"""Speed of the path-dependent game, as ratios to what the libraries of the models compute
themselves.

    OMP_NUM_THREADS=1 python benchmarks/path.py [rows]

LightGBM and XGBoost models of 1,000 trees with 15 leaves each. Their own Shapley values
(`pred_contrib`, `pred_contribs`) are the unit: "φ" is the 13 weights of the paper, "φ and Δ" adds
the contributions of every size, "whole" is ``Explainer(model, background, game="tree_path")(X)``:
φ, Δ, the curves of 13 orders and the choice. "masked" is the time for 100,000 masked rows, in
seconds. CPU time of one thread, the best of several runs taken in turns.
"""

from __future__ import annotations

import sys
import time

import lightgbm
import numpy as np
import xgboost

import weightedshap as ws
from common import data
from trees import table
from weightedshap.coalitions import random_coalitions
from weightedshap.games.surrogates.data import MaskedRows
from weightedshap.inputs.rows import Rows

TREES = 1000
LEAVES = 15
REPEATS = 5
MASKED = 100_000


def best(functions):
    """CPU seconds of each function: the best of several repeats, taken in turns after one
    warm-up."""
    times = {name: [] for name in functions}
    for repeat in range(REPEATS + 1):
        for name, function in functions.items():
            start = time.process_time()
            function()
            if repeat:
                times[name].append(time.process_time() - start)
    return {name: min(values) for name, values in times.items()}


def of_lightgbm(X, y):
    """A model, and its own values for rows."""
    chosen = {
        "objective": "regression",
        "learning_rate": 0.02,
        "num_leaves": LEAVES,
        "verbose": -1,
        "num_threads": 1,
    }
    model = lightgbm.train(chosen, lightgbm.Dataset(X, y), TREES)
    return model, lambda rows: lambda: model.predict(rows, pred_contrib=True, num_threads=1)


def of_xgboost(X, y):
    """A model, and its own values for rows."""
    chosen = {
        "grow_policy": "lossguide",
        "max_leaves": LEAVES,
        "max_depth": 0,
        "learning_rate": 0.02,
        "n_jobs": 1,
    }
    model = xgboost.XGBRegressor(n_estimators=TREES, **chosen).fit(X, y)
    booster = model.get_booster()

    def own(rows):
        matrix = xgboost.DMatrix(rows, nthread=1)
        return lambda: booster.predict(matrix, pred_contribs=True)

    return model, own


def compared(name, make, d, n):
    """One line of the table."""
    X, y = data(d)
    model, own = make(X, y)
    rows = np.ascontiguousarray(X[-n:])
    explainer = ws.Explainer(model, X[:100], game="tree_path", progress=False)
    family = explainer.family
    batch = explainer.game.batch(Rows(rows))
    row = np.repeat(np.arange(n), MASKED // n)
    masked = MaskedRows(row, random_coalitions(len(row), d, np.random.default_rng(0)))
    times = best(
        {
            "own": own(rows),
            "φ": lambda: batch.semivalues(family.vectors),
            "φ and Δ": lambda: batch.semivalues(family.with_unit_vectors),
            "whole": lambda: explainer(rows),
            "masked": lambda: explainer.game.values_at(rows, masked),
        }
    )
    ratios = [f"{times[part] / times['own']:.3f}" for part in ("φ", "φ and Δ", "whole")]
    return (name, d, f"{times['own'] / n * 1e3:.2f}", *ratios, f"{times['masked']:.2f}")


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    makers = {"LightGBM": of_lightgbm, "XGBoost": of_xgboost}
    lines = [
        compared(name, make, d, n) for name, make in makers.items() for d in (10, 20, 40, 100, 300)
    ]
    table(["model", "d", "own, ms per row", "φ", "φ and Δ", "whole", "masked, s"], lines)


if __name__ == "__main__":
    main()
