"""Rankings compared on the datasets: small ones here."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from weightedshap.games import GAMES
from weightedshap.jobs import cli
from weightedshap_paper import comparison, datasets, tabular
from weightedshap_paper.experiment import Case, Settings
from weightedshap_paper.experiments import EXPERIMENTS
from weightedshap_paper.runner import generator

QUICK = Settings(rows=12, quick=True)


@pytest.fixture
def few_methods(monkeypatch):
    monkeypatch.setattr(tabular, "METHODS", (*comparison.PAPER_METHODS, "TreeSHAP path"))


def run_one(case, kind="boosting", utility="aup"):
    return tabular.run_tabular(case, QUICK, generator(0, case, 0), kind=kind, utility=utility)


def test_curves_of_a_classification_end_where_all_features_are_known(data, few_methods):
    numbers = run_one(Case("wind", "tree_surrogate"))
    assert set(numbers["curves"]) == {"own", "independent"}
    own = numbers["curves"]["own"]
    assert set(own) == {"recovery", "inclusion_auc"}
    assert set(own["recovery"]) == {"MCI", "Shapley", "WeightedSHAP", "TreeSHAP path"}
    ends = [own["recovery"][method][[0, -1]] for method in own["recovery"]]
    np.testing.assert_allclose(ends, np.tile(ends[0], (4, 1)), atol=1e-9)
    assert own["recovery"]["WeightedSHAP"][1:].sum() <= own["recovery"]["Shapley"][1:].sum() + 1e-12
    assert numbers["trees"] >= 1


def test_a_linear_regression_has_squared_errors_and_no_trees(data, few_methods):
    numbers = run_one(Case("airfoil", "baseline"), kind="linear")
    own = numbers["curves"]["own"]
    assert "TreeSHAP path" not in own["recovery"]
    assert numbers["trees"] is None
    assert own["inclusion_mse"]["Shapley"][-1] < 1e-5 < own["inclusion_mse"]["Shapley"][0]


def test_a_logistic_model_is_explained_by_its_class(data, few_methods):
    assert (
        "inclusion_auc" in run_one(Case("wind", "tree_surrogate"), kind="linear")["curves"]["own"]
    )


@pytest.mark.parametrize(
    ("utility", "score", "sign"),
    [("exclusion", "exclusion_auc", 1), ("masked_inclusion", "masked_auc", -1)],
)
def test_weights_chosen_by_a_utility_are_no_worse_than_shapley_on_it(
    data, few_methods, utility, score, sign
):
    own = run_one(Case("wind", "tree_surrogate"), utility=utility)["curves"]["own"]
    assert set(own) == {utility, score}
    areas = {method: sign * curve[1:].sum() for method, curve in own[utility].items()}
    assert areas["WeightedSHAP"] >= areas["Shapley"] - 1e-12


@pytest.mark.parametrize(("rows", "positives"), [(4, 2), (20, 2), (60, 6), (500, 10)])
def test_both_classes_are_among_the_rows(rows, positives):
    y = (np.arange(100) % 10 == 7).astype(float)
    data = SimpleNamespace(task="classification", y_test=y)
    chosen = tabular.choose_test_rows(data, rows)
    assert len(chosen) == len(set(chosen)) == min(rows, 100)
    assert y[chosen].sum() == positives


def test_quick_takes_some_of_the_datasets():
    quick, all_of_them = (
        [case for e in EXPERIMENTS.values() for case in e.cases(e.resolve(Settings(quick=q)))]
        for q in (True, False)
    )
    assert {case.name for case in all_of_them} >= set(datasets.DATASETS)
    assert len(quick) < len(all_of_them)
    assert all(case.game in ("", *GAMES) for case in all_of_them)


@pytest.mark.slow
def test_all_experiments_run_from_end_to_end(data, few_methods, monkeypatch, tmp_path):
    pytest.importorskip("torch")
    """Smaller still than --quick: one run, few rows, and a shorter walk in the estimates."""
    monkeypatch.setattr("weightedshap_paper.closed_form.ORDERS", 100)
    arguments = [
        "reproduce",
        "all",
        "--quick",
        "--runs",
        "1",
        "--rows",
        "12",
        "--quiet",
        "--results",
        str(tmp_path),
    ]
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == 0, result.output
    text = (tmp_path / "RESULTS.md").read_text()
    for name in EXPERIMENTS:
        assert f"## {name}\n" in text
    for name in (name for name, experiment in EXPERIMENTS.items() if experiment.draw):
        assert f"(figures/{name}.png)" in text
        assert (tmp_path / "figures" / f"{name}.png").stat().st_size < 300_000
    configuration = json.loads((tmp_path / "boosting.json").read_text())["configuration"]
    assert configuration["authors_stop"] is False


def test_the_authors_way_is_forced_on_request(monkeypatch):
    seen = []
    case = Case("fraud", "tree_surrogate")
    monkeypatch.setattr(
        tabular, "prepare", lambda name, rng, authors_order: seen.append(authors_order)
    )
    with pytest.raises(AttributeError):
        EXPERIMENTS["fraud-authors"].run(case, Settings(), generator(0, case, 0))
    assert seen == [True]
