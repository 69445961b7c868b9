"""Does WeightedSHAP still beat Shapley on a game that did not choose its weights?

    WEIGHTEDSHAP_DATA=… python benchmarks/evaluation.py airfoil fraud whitewine --rows 100 --seeds 3

The paper's settings: its prepared datasets and its boosted trees. The training part is the background, test rows are
explained. Each seed draws rows, split, spurious columns and all that follows anew; the rows of all seeds stand in one
table, with 95 % intervals over the rows.
"""

from __future__ import annotations

import argparse

import numpy as np

import weightedshap as ws
from weightedshap_paper.datasets import prepare
from weightedshap_paper.models import boosting


def evaluated(name: str, rows: int, seed: int, game: str) -> ws.Evaluation:
    """One dataset, one seed."""
    data = prepare(name, np.random.default_rng(seed))
    model = boosting(data, seed=seed)
    explainer = ws.Explainer(model, data.X_train, game=game, random_state=seed)
    return ws.evaluate(explainer, data.X_test[:rows], data.y_test[:rows])


def pooled(parts: list[ws.Evaluation]) -> ws.Evaluation:
    """The rows of all parts."""
    first = parts[0]
    points = {
        judge: {metric: np.concatenate([part.points[judge][metric] for part in parts]) for metric in first.metrics}
        for judge in first.judges
    }
    return ws.Evaluation(first.methods, first.metrics, first.judges, points, first.notes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=["airfoil", "fraud", "whitewine"])
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--game", default="tree_surrogate")
    chosen = parser.parse_args()
    for name in chosen.datasets:
        table = pooled([evaluated(name, chosen.rows, seed, chosen.game) for seed in range(chosen.seeds)])
        print(f"\n{name}, {chosen.game}, {chosen.seeds} seeds\n{table}", flush=True)
        for judge in table.judges:
            mean, margin = table.difference(judge=judge)
            base = table.areas(judge)[:, table.methods.index("Shapley")].mean()
            share, half = 100 * mean / base, 100 * margin / base
            print(f"WeightedSHAP against Shapley, {judge}: {share:+.1f} % ± {half:.1f} of its area")


if __name__ == "__main__":
    main()
