"""How readings are held against the model: on values beside the thresholds, on which a wrong side
would show."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import weightedshap as ws
from tests.games.tree_models import model_and_rows
from tests.oracles import normal_rows
from weightedshap.trees import readers
from weightedshap.trees.readers import make_probes, read_sklearn

X = normal_rows(60, 2)


def test_probes_lie_on_both_sides_of_every_threshold():
    found = read_sklearn(DecisionTreeRegressor(max_depth=2).fit(X, X[:, 0] > 0.3), X)
    rows = make_probes(found, X)
    (ensemble,) = found.ensembles
    for column, t in zip(ensemble.column, np.float32(ensemble.threshold), strict=True):
        values = np.float32(rows[:, column])
        assert {np.nextafter(t, np.float32(end)) for end in (-np.inf, np.inf)} <= set(
            values.tolist()
        )
    np.testing.assert_array_equal(rows[:60], X)


@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 9, 60)])
def test_the_trees_of_a_classifier_are_shares(weights):
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(
        X, X[:, 0] > 0, sample_weight=weights
    )
    found = read_sklearn(model, X)
    shares = np.stack([ensemble.predict(X) for ensemble in found.ensembles], axis=1)
    np.testing.assert_allclose(shares, model.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("missing", [-999.0, 0.0, np.nan])
@pytest.mark.parametrize("removal", ["path", "interventional"])
@pytest.mark.parametrize("frame", [False, True])
def test_the_value_that_xgboost_takes_for_missing_is_read_as_missing(missing, removal, frame):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    X[rng.random(X.shape) < 0.3] = missing
    rows = pd.DataFrame(X, columns=list("abc")) if frame else X
    model = xgboost.XGBRegressor(n_estimators=10, missing=missing).fit(
        rows, np.nan_to_num(X).sum(axis=1)
    )
    explanation = ws.Explainer(model, rows[:60], game=f"tree_{removal}", progress=False)(
        rows[60:90]
    )
    np.testing.assert_allclose(explanation.predictions, model.predict(rows[60:90]), rtol=1e-5)
    np.testing.assert_allclose(explanation.endpoint_gaps["full"], 0, atol=1e-3)


def test_dart_weights_are_read_where_xgboost_keeps_them_from_3_4_on(monkeypatch):
    X = np.random.default_rng(0).normal(size=(150, 3))
    model = xgboost.XGBRegressor(n_estimators=8, booster="dart", rate_drop=0.5, verbosity=0).fit(
        X, X[:, 0] * X[:, 1]
    )
    whole = json.loads

    def moved(text):
        content = whole(text)
        booster = content.get("learner", {}).get("gradient_booster", {"name": None})
        if booster["name"] == "dart":
            inner = booster["gbtree"]["model"] | {"weight_drop": booster["weight_drop"]}
            content["learner"]["gradient_booster"] = {"name": "gbtree", "model": inner}
        return content

    monkeypatch.setattr("weightedshap.trees.readers.json.loads", moved)
    explanation = ws.Explainer(model, X[:20], game="tree_path", progress=False)(X[:9])
    np.testing.assert_allclose(explanation.endpoint_gaps["full"], 0, atol=1e-5)


@pytest.mark.parametrize("copies", [1, 7])
@pytest.mark.parametrize("wrong", ["threshold", "value", "nan_left"])
def test_a_wrong_reading_is_noticed_with_one_background_row_or_copies_of_one(
    monkeypatch, wrong, copies
):
    model, X = model_and_rows("xgboost")
    whole = readers._xgboost_tree

    def misread(*given):
        tree = whole(*given)
        changed = {
            "threshold": np.asarray(tree.threshold) + 0.1,
            "value": np.asarray(tree.value) * 1.01,
        }
        changed["nan_left"] = 1 - np.asarray(tree.nan_left)
        return dataclasses.replace(tree, **{wrong: changed[wrong]})

    one = np.repeat(X[:1], copies, axis=0)
    assert readers.read_model(model, one).ensembles
    monkeypatch.setattr(readers, "_xgboost_tree", misread)
    with pytest.raises(readers.UnreadableModelError, match="do not add up to its prediction"):
        readers.read_model(model, one)


@pytest.mark.parametrize("make", [xgboost.XGBRegressor, DecisionTreeRegressor])
def test_values_are_rounded_to_single_precision_where_the_library_does(make):
    """Notices a comparison in double precision: a value just above a threshold that rounds to it
    goes the other way."""
    x = np.float32([[0.1], [0.2], [0.3], [0.7]])
    model = make(max_depth=2).fit(x, [0.0, 1.0, 5.0, 9.0])
    found = readers.read_model(model, x.astype(np.float64))
    (ensemble,) = found.ensembles
    for t in np.unique(ensemble.threshold):
        near = np.array(
            [
                [t + side * gap]
                for gap in (0, 1e-12, 1e-10, 1e-9, 3e-9, 1e-8, 3e-8, 1e-6)
                for side in (-1, 1)
            ]
        )
        np.testing.assert_allclose(
            ensemble.predict(found.encode(near)), found.predict(near)[:, 0], atol=1e-5
        )
        rounded = near.astype(np.float32).astype(np.float64)
        np.testing.assert_array_equal(ensemble.predict(near), ensemble.predict(rounded))
        assert len(np.unique(ensemble.predict(near))) == 2
