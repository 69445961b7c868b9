"""What made-up runs say: claims, the two numbers of the text, tables, panels."""

from __future__ import annotations

import numpy as np
import pytest

from weightedshap_paper import comparison
from weightedshap_paper.experiment import Case

WIND = Case("wind", "tree_surrogate")


def runs_with(gaps, metric="recovery", independent=None, d=15):
    """Runs whose WeightedSHAP curve lies below Shapley's by the given gaps, and the MCI's far
    above."""
    shapley = np.linspace(1, 0, d + 1)

    def of(gap):
        return {
            "MCI": (shapley + 1).tolist(),
            "Shapley": shapley.tolist(),
            "WeightedSHAP": (shapley - gap).tolist(),
        }

    other = gaps if independent is None else independent
    return [
        {"trees": 1, "curves": {"own": {metric: of(one)}, "independent": {metric: of(two)}}}
        for one, two in zip(gaps, other, strict=True)
    ]


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        ([0.1, 0.11, 0.12], "holds"),
        ([0.1, -0.2, 0.15], "holds in part"),
        ([0.1], "holds"),
        ([-2.0, -2.1], "does not hold"),
    ],
)
def test_a_claim_holds_if_the_difference_is_beyond_the_noise_between_runs(gaps, verdict):
    (claim,) = comparison.claims({WIND: runs_with(gaps)}, metrics=("recovery", "inclusion_mse"))
    assert claim.verdict == verdict
    assert claim.text.startswith("wind, recovery error: ")


def test_both_games_count():
    runs = runs_with([0.1, 0.11], independent=[-2.0, -2.1])
    (claim,) = comparison.claims({Case("wind", "neural_surrogate"): runs}, metrics=("recovery",))
    assert claim.verdict == "holds in part"
    assert claim.text.startswith("wind (neural surrogate), ")
    own, independent = claim.ours.split("; ")
    assert own.startswith("own game 1.467, 0.4667, 0.3617 (-22.5 % ± ")
    assert independent.startswith("independent game 1.467, 0.4667, 2.517 (+439.3 % ± ")


def test_one_judge_is_reported_once():
    (claim,) = comparison.claims({WIND: runs_with([0.1, 0.1])}, metrics=("recovery",))
    assert claim.ours == "1.467, 0.4667, 0.3667 (-21.4 % ± 0.0 to Shapley)"
    lines = comparison.table({WIND: runs_with([0.1, 0.1])}, metric="recovery")
    assert sum(line.startswith("| wind") for line in lines) == 1


def test_where_more_is_better_a_lower_curve_is_worse():
    (claim,) = comparison.claims(
        {Case("wind", "x"): runs_with([0.1, 0.1], "inclusion_auc")}, metrics=("inclusion_auc",)
    )
    assert claim.verdict == "does not hold"


@pytest.mark.parametrize(
    ("name", "metric", "gap", "verdict", "shown"),
    [
        (
            "airfoil",
            "inclusion_mse",
            0.5,
            "holds",
            "own game MSE -0.167, Shapley's best 0.000 with 15 features",
        ),
        (
            "airfoil",
            "inclusion_mse",
            0.2,
            "does not hold",
            "own game MSE 0.133, Shapley's best 0.000",
        ),
        (
            "fraud",
            "inclusion_auc",
            -1.0,
            "holds",
            "own game AUC 1.067, Shapley's best 1.000 with 0 features",
        ),
        (
            "fraud",
            "inclusion_auc",
            -0.5,
            "does not hold",
            "own game AUC 0.567, Shapley's best 1.000",
        ),
    ],
)
def test_the_papers_two_numbers_are_looked_up_at_their_place(name, metric, gap, verdict, shown):
    (claim,) = comparison.single_numbers(
        {Case(name, "tree_surrogate"): runs_with([gap, gap], metric)}
    )
    assert claim.verdict == verdict
    assert claim.ours.startswith(shown)
    assert claim.paper == {"airfoil": "MSE 0.53", "fraud": "AUC 0.995"}[name]


def test_short_curves_and_other_datasets_have_no_such_number():
    assert (
        comparison.single_numbers(
            {Case("airfoil", "x"): runs_with([0.1, 0.1], "inclusion_mse", d=9)}
        )
        == []
    )
    assert (
        comparison.single_numbers({Case("boston", "x"): runs_with([0.1, 0.1], "inclusion_mse")})
        == []
    )


def test_the_table_gives_every_method_in_percent_of_shapley():
    runs = {WIND: runs_with([0.1, 0.1], independent=[0.2, 0.2], d=4)}
    lines = comparison.table(runs, metric="recovery")
    assert lines[0].startswith(
        "Recovery error on the independent game, mean over the curve in % of Shapley's (smaller"
    )
    assert lines.count("| | MCI | WeightedSHAP |") == 2
    assert "| wind | 366.7 | 46.7 |" in lines
    assert "| wind | 366.7 | 73.3 |" in lines


def test_a_method_that_a_dataset_lacks_is_a_dash():
    more = runs_with([0.1, 0.1])
    for run in more:
        for of in run["curves"].values():
            of["recovery"]["greedy"] = of["recovery"]["Shapley"]
    lines = comparison.table(
        {Case("wind", "x"): runs_with([0.1, 0.1]), Case("cpu", "x"): more}, metric="recovery"
    )
    assert any(line.startswith("| wind (x) |") and line.endswith("| – |") for line in lines)
    assert any(line.startswith("| cpu (x) |") and line.endswith("| 100.0 |") for line in lines)


def test_a_panel_for_every_dataset_and_metric():
    runs = {WIND: runs_with([0.1, 0.2]), Case("cpu", "tree_surrogate"): runs_with([0.1, 0.2])}
    figure = comparison.draw(runs, metrics=("recovery",))
    assert [ax.get_title() for ax in figure.axes] == ["wind\nrecovery error", "cpu\nrecovery error"]


def test_the_error_with_all_features_known_is_reported():
    lines = comparison.table({WIND: runs_with([0.1, 0.1])}, metric="recovery")
    assert (
        lines[-1]
        == "With all features known the game that explains still misses the prediction by: wind 0."
    )
    assert (
        "With all"
        not in comparison.table(
            {Case("wind", "x"): runs_with([0.1], "exclusion")}, metric="exclusion"
        )[-1]
    )


def test_the_headline_goes_from_the_least_change_to_the_most():
    runs = {
        Case("wind", "x"): runs_with([0.1, 0.1], independent=[0.0, 0.0]),
        Case("cpu", "x"): runs_with([0.2, 0.2]),
    }
    expected = (
        "recovery error against Shapley's: -21.4 to -42.9 % on the own game, +0.0 to -42.9 % on the"
        " independent game"
    )
    assert comparison.headline(runs, metric="recovery") == expected
    one = comparison.headline({Case("wind", "x"): runs_with([0.1, 0.1])}, metric="recovery")
    assert one == "recovery error against Shapley's: -21.4 %"
