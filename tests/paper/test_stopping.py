"""The authors' stopping rule and order, side by side with ours."""

from __future__ import annotations

from weightedshap_paper import stopping
from weightedshap_paper.experiment import Case, Settings
from weightedshap_paper.runner import generator

QUICK = Settings(quick=True)


def test_both_rules_and_both_orders_are_shown(data):
    numbers = stopping.run_stopping(Case("fraud"), QUICK, generator(0, Case("fraud"), 0))
    assert set(numbers) == {"ours", "authors"}
    assert numbers["ours"]["copies"] == 0
    assert numbers["authors"]["copies"] > 0.5
    for rules in numbers.values():
        assert rules["loss or error"]["trees"] <= rules["loss"]["trees"]
        assert 0.5 < rules["loss"]["score"] <= 1
    *_, ours, authors = stopping.table_stopping({Case("fraud"): [numbers]})
    assert ours.startswith("| fraud | ")
    assert ours.endswith(" | 0% |")
    assert authors.startswith("| fraud, balanced before the split | ")


def test_a_regression_is_scored_by_its_variance(data):
    numbers = stopping.run_stopping(Case("airfoil"), QUICK, generator(0, Case("airfoil"), 0))[
        "ours"
    ]
    assert numbers["loss"] == numbers["loss or error"]
    assert 0.5 < numbers["loss"]["score"] < 1
