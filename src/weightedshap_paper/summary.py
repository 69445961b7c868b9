"""The paper's table of datasets: their numbers of rows and columns."""

from __future__ import annotations

import numpy as np

from weightedshap_paper.datasets import load
from weightedshap_paper.experiment import Case, Claim, Experiment, Numbers, Runs, Settings

PAPER = {
    "abalone": (4177, 10),
    "boston": (506, 13),
    "airfoil": (1503, 5),
    "whitewine": (4898, 11),
    "fraud": (284_807, 31),
    "phoneme": (5404, 6),
    "wind": (6574, 15),
    "cpu": (8192, 22),
    "adult": (32_561, 11),
    "2dplanes": (40_768, 11),
    "click": (1_997_410, 12),
}
"""Sample size and input dimension of each dataset, as the paper gives them."""


def run_summary(case: Case, settings: Settings, rng: np.random.Generator) -> Numbers:
    """Count the rows and numeric columns of a dataset, and return the mean of its target."""
    raw = load(case.name)
    return {"rows": len(raw.X), "columns": raw.X.shape[1], "task": raw.task, "target": raw.y.mean()}


def claims_summary(runs: Runs) -> list[Claim]:
    """Return a claim for each dataset, on the numbers of rows and columns.

    The paper counts the target of a classification among the columns.
    """
    claims = []
    for case, (of,) in runs.items():
        rows, columns = PAPER[case.name]
        classes = of["task"] == "classification"
        same = [of["rows"] == rows, of["columns"] + classes == columns]
        share = f", {of['target']:.0%} of class 1" if classes else ""
        ours = f"{of['rows']:,} × {of['columns']}{share}"
        claims.append(Claim(f"{case}: rows × columns", f"{rows:,} × {columns}", ours, same))
    return claims


SUMMARY = Experiment(
    "the datasets: rows and columns before they are prepared",
    lambda settings: [
        Case(name) for name, (rows, _) in PAPER.items() if not settings.quick or rows < 6000
    ],
    run_summary,
    claims=claims_summary,
    depends=("quick",),
    notes=(
        (
            "The paper counts the target among the columns of a classification. Only columns of"
            " numbers are kept, so that abalone lacks its sex and adult its categories. Fraud is"
            " the file that the authors' program reads, with all 492 frauds; click is a subset with"
            " even classes. The experiments take 10,000 rows at most in any case."
        ),
    ),
)
