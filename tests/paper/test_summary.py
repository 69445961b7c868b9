"""The paper's table of datasets."""

from __future__ import annotations

from weightedshap_paper import datasets, summary
from weightedshap_paper.experiment import Case, Settings
from weightedshap_paper.runner import generator


def test_rows_and_columns_are_counted(data):
    numbers = summary.run_summary(Case("wind"), Settings(), generator(0, Case("wind"), 0))
    assert (numbers["rows"], numbers["columns"], numbers["task"]) == (600, 4, "classification")
    assert 0 < numbers["target"] < 0.5


def test_a_classification_has_a_column_more_in_the_paper():
    runs = {
        Case("wind"): [{"rows": 6574, "columns": 14, "task": "classification", "target": 0.5}],
        Case("airfoil"): [{"rows": 1503, "columns": 5, "task": "regression", "target": 0.0}],
        Case("abalone"): [{"rows": 4177, "columns": 7, "task": "regression", "target": 0.0}],
        Case("cpu"): [{"rows": 9, "columns": 22, "task": "classification", "target": 0.5}],
    }
    claims = summary.claims_summary(runs)
    assert [claim.verdict for claim in claims] == [
        "holds",
        "holds",
        "holds in part",
        "does not hold",
    ]
    assert claims[0].paper == "6,574 × 15"
    assert claims[0].ours == "6,574 × 14, 50% of class 1"


def test_all_tables_of_the_paper_exist():
    assert set(summary.PAPER) == set(datasets.DATASETS) - {"gaussian"}
    assert [case.name for case in summary.SUMMARY.cases(Settings())] == [
        n for n in datasets.DATASETS if n != "gaussian"
    ]
    assert len(summary.SUMMARY.cases(Settings(quick=True))) < 11
