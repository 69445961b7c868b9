"""Twelve weight vectors or thirteen: the paper speaks of 13 and prints 12.

The experiment measures how much the missing one changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

import weightedshap as ws
from weightedshap.curves import mean_interval
from weightedshap.weights import WeightFamily, paper
from weightedshap_paper.comparison import JUDGES
from weightedshap_paper.experiment import Case, Experiment, Numbers, Runs, Settings, across
from weightedshap_paper.tabular import MAIN, choose_test_rows, select_cases, set_up

MISSING = "Beta(32,1)"


def printed(d: int) -> WeightFamily:
    """Return the 12 weight vectors that the paper prints: `weights.paper` without Beta(32,1)."""
    family = paper(d)
    positions = [position for position, label in enumerate(family.labels) if label != MISSING]
    return WeightFamily(
        tuple(family.labels[position] for position in positions), family.vectors[positions]
    )


FAMILIES = {"12": printed, "13": paper}


def run_weights(case: Case, settings: Settings, rng: np.random.Generator) -> Numbers:
    """Compare WeightedSHAP with 12 and 13 weight vectors; return mean recovery errors by judge.

    The mean is over k = 1..d and the test rows; the judges are the game that is explained and an
    independent one.
    """
    data, _, setup = set_up(case, settings, rng)
    rows = data.X_test[choose_test_rows(data, settings.rows)]
    numbers = {}
    for size, family in FAMILIES.items():
        evaluation = ws.evaluate(
            setup.with_options(family=family),
            rows,
            judges="independent",
            methods=["WeightedSHAP"],
            metrics=[],
        )
        numbers[size] = {
            judge: evaluation.areas(judge).mean() / rows.shape[1] for judge in evaluation.judges
        }
    return numbers


def table_weights(runs: Runs) -> list[str]:
    """Return a Markdown table of the recovery errors with 12 and 13 weights, and the change in %.

    Changes have 95 % intervals over the runs.
    """
    lines = [
        "| | own game: 12 | 13 | change | independent game: 12 | 13 | change |",
        "|---|" + "---:|" * 6,
    ]
    for case, of in runs.items():
        cells = [cell for judge in JUDGES for cell in _cells(of, judge)]
        lines.append(f"| {case.words} | {' | '.join(cells)} |")
    return lines


def _cells(runs: Sequence[Numbers], judge: str) -> list[str]:
    """Format table cells for one judge: the errors with 12 and 13 weights, and the change in %."""
    twelve, thirteen = (across(runs, size, judge) for size in FAMILIES)
    mean, margin = mean_interval(100 * (thirteen / twelve - 1))
    return [f"{twelve.mean():.4g}", f"{thirteen.mean():.4g}", f"{mean:+.2f} % ± {margin:.2f}"]


WEIGHTS = Experiment(
    "the recovery error with the 12 weights that the paper prints, and with the 13 it speaks of",
    partial(select_cases, MAIN),
    run_weights,
    table=table_weights,
    depends=("seed", "rows", "quick", "authors_order", "authors_stop"),
    game="tree_surrogate",
    notes=("The thirteenth is Beta(32,1), by symmetry. All other experiments use 13.",),
)
