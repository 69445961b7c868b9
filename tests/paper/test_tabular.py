"""Rankings compared on the datasets: small ones here."""

from __future__ import annotations

import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from weightedshap import cli
from weightedshap.paper import datasets, tabular
from weightedshap.paper.experiments import EXPERIMENTS
from weightedshap.paper.runner import Settings, generator

QUICK = Settings(rows=12, quick=True)


@pytest.fixture
def few_methods(monkeypatch):
    monkeypatch.setattr(tabular, "METHODS", (*tabular.PAPER_METHODS, "TreeSHAP path"))


def run_one(case, kind="boosting", utility="aup", metrics=tabular.INCLUSION):
    run = partial(tabular.run_tabular, kind=kind, utility=utility, metrics=metrics)
    return run(case, QUICK, generator(0, case, 0))


def test_curves_of_a_classification_end_where_all_features_are_known(data, few_methods):
    numbers = run_one("wind/tree_surrogate")
    assert set(numbers["curves"]) == {"own", "independent"}
    own = numbers["curves"]["own"]
    assert set(own) == {"recovery", "inclusion_auc"}
    assert set(own["recovery"]) == {"MCI", "Shapley", "WeightedSHAP", "TreeSHAP path"}
    ends = [own["recovery"][method][[0, -1]] for method in own["recovery"]]
    np.testing.assert_allclose(ends, np.tile(ends[0], (4, 1)), atol=1e-9)
    assert own["recovery"]["WeightedSHAP"][1:].sum() <= own["recovery"]["Shapley"][1:].sum() + 1e-12
    assert numbers["trees"] >= 1


def test_a_linear_regression_has_squared_errors_and_no_trees(data, few_methods):
    numbers = run_one("airfoil/baseline", kind="linear")
    own = numbers["curves"]["own"]
    assert "TreeSHAP path" not in own["recovery"]
    assert numbers["trees"] is None
    assert own["inclusion_mse"]["Shapley"][-1] < 1e-5 < own["inclusion_mse"]["Shapley"][0]


def test_a_logistic_model_is_explained_by_its_class(data, few_methods):
    assert "inclusion_auc" in run_one("wind/tree_surrogate", kind="linear")["curves"]["own"]


@pytest.mark.parametrize(("utility", "sign"), [("exclusion", 1), ("masked_inclusion", -1)])
def test_the_own_utility_is_served(data, few_methods, utility, sign):
    own = run_one("wind/tree_surrogate", utility=utility, metrics=(utility,))["curves"]["own"]
    assert list(own) == [utility]
    areas = {method: sign * curve[1:].sum() for method, curve in own[utility].items()}
    assert areas["WeightedSHAP"] >= areas["Shapley"] - 1e-12


@pytest.mark.parametrize(("rows", "positives"), [(4, 2), (20, 2), (60, 6), (500, 10)])
def test_both_classes_are_among_the_rows(rows, positives):
    y = (np.arange(100) % 10 == 7).astype(float)
    data = SimpleNamespace(task="classification", y_test=y)
    chosen = tabular.rows_of_test(data, rows)
    assert len(chosen) == len(set(chosen)) == min(rows, 100)
    assert y[chosen].sum() == positives


def made_up(metric="recovery", d=15, **raised):
    """Two runs with straight curves, some of them raised; of the others the MCI is the highest."""
    heights = {"MCI": 0.1, "Shapley": 0.0, "WeightedSHAP": 0.0} | raised
    curve = {method: (np.linspace(1, 0, d + 1) + height).tolist() for method, height in heights.items()}
    return [{"curves": {judge: {metric: curve} for judge in ("own", "independent")}, "variance": 2.0, "trees": 3}] * 2


@pytest.mark.parametrize(
    ("raised", "verdict"),
    [
        ({"Shapley": 0.2}, "holds"),
        ({"WeightedSHAP": 0.05}, "holds in part"),
        ({"WeightedSHAP": 0.2}, "does not hold"),
    ],
)
def test_claims_count_both_baselines(raised, verdict):
    (claim,) = tabular.claims_tabular({"boston/x": made_up(**raised)}, metrics=["recovery"])
    assert claim.verdict == verdict
    assert "own game" in claim.ours
    assert "independent game" in claim.ours


def test_the_papers_two_numbers_are_looked_up_at_their_place():
    runs = {"airfoil/x": made_up(metric="inclusion_mse", Shapley=0.5)}
    airfoil = tabular.claims_tabular(runs, metrics=["inclusion_mse"])
    assert airfoil[-1].paper == "MSE 0.53"
    assert airfoil[-1].ours.startswith("MSE 0.33 (0.17 of the variance); Shapley's best 0.50")
    assert airfoil[-1].verdict == "holds"
    fraud = tabular.claims_tabular({"fraud/x": made_up(metric="inclusion_auc")}, metrics=["inclusion_auc"])
    assert fraud[-1].ours.startswith("AUC 0.067")
    assert fraud[-1].verdict == "does not hold"


def test_quick_takes_some_of_the_datasets():
    quick, all_of_them = (
        [case for e in EXPERIMENTS.values() for case in e.cases(e.resolved(Settings(quick=q)))] for q in (True, False)
    )
    assert {case.split("/")[0] for case in all_of_them} >= set(datasets.DATASETS)
    assert len(quick) < len(all_of_them)
    assert all("None" not in case for case in all_of_them)


@pytest.mark.slow
def test_all_experiments_run_from_end_to_end(data, few_methods, monkeypatch, tmp_path):
    """Smaller still than --quick: one run, few rows, and a shorter walk in the estimates."""
    monkeypatch.setattr("weightedshap.paper.closed_form.ORDERS", 100)
    arguments = ["reproduce", "all", "--quick", "--runs", "1", "--rows", "12", "--quiet", "--results", str(tmp_path)]
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == 0, result.output
    text = (tmp_path / "RESULTS.md").read_text()
    for name in EXPERIMENTS:
        assert f"## {name}\n" in text
    for name in (name for name, experiment in EXPERIMENTS.items() if experiment.draw):
        assert f"(figures/{name}.png)" in text
        assert (tmp_path / "figures" / f"{name}.png").stat().st_size < 300_000
    configuration = json.loads(next((tmp_path / "boosting").rglob("run-000.json")).read_text())["configuration"]
    assert configuration["authors_stop"] is False


def runs_with(gaps):
    """Runs whose WeightedSHAP curve lies below Shapley's by the given gaps."""
    shapley = np.linspace(1, 0, 5)
    curves = [{"MCI": shapley + 1, "Shapley": shapley, "WeightedSHAP": shapley - gap} for gap in gaps]
    return [
        {"trees": 1, "variance": 1.0, "curves": {j: {"recovery": of} for j in ("own", "independent")}} for of in curves
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
    (claim,) = tabular.claims_tabular({"wind/tree_surrogate": runs_with(gaps)}, metrics=("recovery",))
    assert claim.verdict == verdict


def test_the_table_gives_every_method_in_percent_of_shapley():
    lines = tabular.table_tabular({"wind/tree_surrogate": runs_with([0.1, 0.1])}, metric="recovery")
    assert "| | MCI | WeightedSHAP |" in lines
    assert "| wind | 366.7 | 73.3 |" in lines


def test_the_authors_way_is_forced_where_it_is_asked_for(monkeypatch):
    seen = []
    monkeypatch.setattr(tabular, "prepare", lambda name, rng, authors_order: seen.append(authors_order))
    with pytest.raises(AttributeError):
        EXPERIMENTS["fraud-authors"].run("fraud/tree_surrogate", Settings(), generator(0, "fraud", 0))
    assert seen == [True]
