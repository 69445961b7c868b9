"""Tree games at their limits: what is refused, and the smallest and strangest input that is not."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from sklearn import ensemble as forests
from sklearn import linear_model

import weightedshap as ws
from tests.games.tree_models import CB, LGBM, XGB, F, both_removals, model_and_rows, table
from tests.trees.random_ensembles import assert_matches_own_values
from weightedshap.games import TreeModel
from weightedshap.trees import readers


def test_a_model_without_trees_is_refused_and_other_games_are_named():
    X, y = table()
    with pytest.raises(
        TypeError, match=r"LinearRegression is not a tree ensemble.*'tree_surrogate'"
    ):
        ws.Explainer(linear_model.LinearRegression().fit(X, y), X, game="tree_path")


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (F(LGBM, n_estimators=3, linear_tree=True), "linear trees"),
        (F(XGB, n_estimators=3, booster="gblinear"), "gblinear"),
        (
            F(
                forests.GradientBoostingRegressor,
                n_estimators=3,
                init=linear_model.LinearRegression(),
            ),
            "initial estimator",
        ),
        (F(forests.HistGradientBoostingRegressor, loss="poisson", max_iter=3), "poisson"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_models_whose_splits_are_no_indicators_are_refused_by_name(model, named):
    X, y = table()
    with pytest.raises(ValueError, match=named):
        TreeModel().fit(model().fit(X, np.abs(y)), X[:10])


def test_catboosts_combinations_of_categories_are_refused_by_name():
    X, y = table()
    frame = pd.DataFrame(X).assign(word=np.where(X[:, 0] > 0, "up", "down"))
    frame.columns = frame.columns.astype(str)
    model = CB(iterations=5, cat_features=["word"], one_hot_max_size=1).fit(
        frame, (X[:, 0] > 0) * 5 + y
    )
    with pytest.raises((ValueError, TypeError), match="categor"):
        TreeModel().fit(model, frame[:10])


def test_a_predict_function_cannot_be_followed_by_a_tree_game():
    model, X = model_and_rows("lightgbm")
    with pytest.raises(ValueError, match="cannot follow `predict=`"):
        ws.Explainer(model, X, game="tree_path", predict=lambda rows: model.predict(rows) ** 2)


def test_an_ensemble_trained_on_other_columns_is_refused():
    model, X = model_and_rows("lightgbm")
    with pytest.raises(ValueError, match="5 columns but the model expects 6"):
        TreeModel().fit(model, X[:, :5])


@both_removals
def test_an_infinite_value_is_refused(removal):
    model, X = model_and_rows("lightgbm")
    row = X[:1].copy()
    row[0, 2] = np.inf
    with pytest.raises(ValueError, match="Column 'x2' holds an infinite value"):
        TreeModel(removal).fit(model, X[:5]).at(row)


@both_removals
def test_a_row_without_any_value_is_explained(removal):
    model, X = model_and_rows("lightgbm")
    assert_matches_own_values(TreeModel(removal).fit(model, X[:5]).at(np.full(6, np.nan)))


@both_removals
def test_a_constant_model_has_no_contributions(removal):
    X, _ = table()
    model = LGBM(n_estimators=3).fit(X, np.ones(len(X)))
    explanation = ws.Explainer(model, X[:5], game=f"tree_{removal}")(X[:2])
    assert (explanation.contributions == 0).all()
    np.testing.assert_allclose(explanation.base_values, 1.0)


@both_removals
def test_one_background_row_and_one_feature_are_enough(removal):
    X, y = table()
    model = LGBM(n_estimators=3, min_child_samples=5).fit(X[:, :1], y)
    explanation = ws.Explainer(model, X[:1, :1], game=f"tree_{removal}")(X[:3, :1])
    np.testing.assert_allclose(
        explanation.values[:, 0], explanation.predictions - explanation.base_values
    )


def test_trees_that_do_not_give_the_prediction_by_any_link_are_refused():
    class Reversed(LGBMRegressor):
        def predict(self, rows, **more):
            return -super().predict(rows, **more)

    Reversed.__module__ = "lightgbm.sklearn"
    X = np.random.default_rng(0).normal(size=(100, 3))
    model = Reversed(n_estimators=5, verbose=-1).fit(X, X[:, 0])
    with pytest.raises(readers.UnreadableModelError, match="do not give what the model predicts"):
        ws.Explainer(model, X[:20], game="tree_path", progress=False)
