"""Does an explanation stay when it is made again, and do features that the model does not use get
nothing?

    WEIGHTEDSHAP_DATA=… python benchmarks/steadiness.py refits [wind whitewine cpu]
    python benchmarks/steadiness.py noise

`refits` explains 100 test rows with the default choices under five seeds, which learn other judges,
and compares every pair of seeds: the share of rows that keep their first feature, the correlation
of the values, the share that keep their weight; the paper's way (one learned game) stands beside
it. `noise` has functions of one or two of 4 or 500 independent columns: how large the values of the
unused columns are beside those of the used ones, and whether these come first.
"""

from __future__ import annotations

import argparse
import sys
from itertools import combinations
from typing import Any

import lightgbm as lgb
import numpy as np

import weightedshap as ws
from trees import table
from truths import KINDS, make_real
from weightedshap._checks import FloatArray

SEEDS = 5


def steadiness(model: Any, background: FloatArray, rows: FloatArray, **choices: Any) -> list[str]:
    """Cells: rows with the same first feature, correlation of values, rows with the same weight."""
    made = [
        ws.Explainer(model, background, random_state=s, progress=False, **choices)(rows)
        for s in range(SEEDS)
    ]
    pairs = list(combinations(made, 2))
    first = np.mean([(one.orders[:, 0] == two.orders[:, 0]).mean() for one, two in pairs])
    alike = np.mean(
        [np.corrcoef(one.values.ravel(), two.values.ravel())[0, 1] for one, two in pairs]
    )
    weight = np.mean([(one.weight_labels == two.weight_labels).mean() for one, two in pairs])
    return [f"{first:.1%}", f"{alike:.4f}", f"{weight:.0%}"]


def refits(names: list[str]) -> None:
    lines = []
    for name in names:
        for kind in KINDS:
            case = make_real(name, kind, 0)
            default = steadiness(case.model, case.background, case.rows)
            before = steadiness(case.model, case.background, case.rows, game="tree_surrogate")
            lines.append([f"{name}, {kind}", *default, *before])
            print(" ".join(lines[-1]), file=sys.stderr)
    cells = ["first feature", "correlation", "weight"]
    table(["table, model", *cells, *(f"paper's way: {cell}" for cell in cells)], lines)


def noise() -> None:
    """Functions themselves, boosted trees fitted to them, and trees that split on noise as well, as
    trees will."""
    rng = np.random.default_rng(0)
    lines = []
    for name, d, used, f in (
        ("a + b", 4, [0, 1], lambda X: X[:, 0] + X[:, 1]),
        ("a", 4, [0], lambda X: X[:, 0]),
        ("a · b", 4, [0, 1], lambda X: X[:, 0] * X[:, 1]),
        ("a + b + c of 500", 500, [0, 1, 2], lambda X: X[:, 0] + X[:, 1] + X[:, 2]),
    ):
        X = rng.normal(size=(700, d))
        # Trees that could not split on the other columns.
        seen = np.where(np.isin(np.arange(d), used), X, 0.0)
        blind, all_seeing = (
            lgb.LGBMRegressor(n_estimators=100, num_leaves=15, n_jobs=1, verbose=-1).fit(
                rows[:600], f(X[:600])
            )
            for rows in (seen, X)
        )
        for kind, model in (
            ("trees", blind),
            ("trees that saw all columns", all_seeing),
            ("function", f),
        ):
            rows = X[600:] if d < 100 else X[600:620]
            lines.append(
                [name, kind, *_noise(ws.Explainer(model, X[:600], progress=False)(rows), used)]
            )
            print(" ".join(lines[-1]), file=sys.stderr)
    table(["f", "model", "mean |φ| unused ÷ used", "Shapley's", "used ones first"], lines)


def _noise(explanation: ws.Explanation, used: list[int]) -> list[str]:
    shares = []
    for values in (explanation.values, explanation.shapley):
        size = np.abs(values).mean(axis=0)
        shares.append(f"{np.delete(size, used).mean() / size[used].mean():.2%}")
    first = (np.sort(explanation.orders[:, : len(used)], axis=1) == used).all(axis=1).mean()
    return [*shares, f"{first:.0%} of rows"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=["refits", "noise"])
    parser.add_argument("names", nargs="*", default=["wind", "whitewine", "cpu"])
    given = parser.parse_args()
    refits(given.names) if given.what == "refits" else noise()


if __name__ == "__main__":
    main()
