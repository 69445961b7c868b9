"""Fitted ensembles of every library, each with rows, for the tests of tree games."""

import functools

import catboost
import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn import ensemble as forests
from sklearn import tree

QUIET = {"verbose": -1, "n_jobs": 1, "random_state": 0}
CAT = {"verbose": 0, "allow_writing_files": False, "thread_count": 1, "random_seed": 0}


def table(d=6, n=150, seed=0, holes=0.0):
    """Rows whose last column holds whole numbers 0..5, and a target with interactions."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[:, -1] = rng.integers(0, 6, size=n)
    y = (
        X[:, 0] * X[:, -2]
        + np.sin(2 * X[:, 1 % d])
        + (X[:, -1] % 3)
        + rng.normal(scale=0.1, size=n)
    )
    X[:, :-1] = np.where(rng.random((n, d - 1)) < holes, np.nan, X[:, :-1])
    return X, y


def fit(make, target="value", holes=0.1, d=6, seed=0):
    """A fitted model and its rows."""
    X, y = table(d=d, holes=holes, seed=seed)
    y = {"value": y, "two": y > np.median(y), "three": np.digitize(y, np.quantile(y, [0.3, 0.7]))}[
        target
    ]
    return make().fit(X, y.astype(int) if target != "value" else y), X


def fit_lightgbm_with_categories():
    X, y = table(holes=0.1)
    parameters = {
        "num_leaves": 12,
        "min_data_in_leaf": 3,
        "min_data_per_group": 1,
        "cat_smooth": 1,
        "verbose": -1,
    }
    data = lightgbm.Dataset(X, y, categorical_feature=[X.shape[1] - 1])
    booster = lightgbm.train(parameters | {"max_cat_to_onehot": 1, "num_threads": 1}, data, 10)
    assert "==" in str(booster.dump_model())
    return booster, X


def fit_multi_output_forest():
    X, y = table()
    return forests.RandomForestRegressor(5, random_state=0).fit(X, np.c_[y, y**2]), X


def fit_multi_output_catboost():
    X, y = table(holes=0.1)
    return catboost.CatBoostRegressor(iterations=5, depth=4, loss_function="MultiRMSE", **CAT).fit(
        X, np.c_[y, y**2]
    ), X


F = functools.partial
LGBM = F(lightgbm.LGBMRegressor, **QUIET)
LGBMC = F(lightgbm.LGBMClassifier, **QUIET)
XGB = F(xgboost.XGBRegressor, n_jobs=1)
XGBC = F(xgboost.XGBClassifier, n_jobs=1)
CB = F(catboost.CatBoostRegressor, **CAT)
CBC = F(catboost.CatBoostClassifier, **CAT)
SEED = {"random_state": 0}
MODELS = {
    "lightgbm": F(fit, F(LGBM, n_estimators=10, num_leaves=15, min_child_samples=3)),
    "lightgbm of two classes": F(fit, F(LGBMC, n_estimators=10, min_child_samples=3), "two"),
    "lightgbm of three classes": F(fit, F(LGBMC, n_estimators=5, min_child_samples=3), "three"),
    "lightgbm forest": F(
        fit, F(LGBM, boosting_type="rf", subsample=0.6, subsample_freq=1, n_estimators=5)
    ),
    "lightgbm with zero as missing": F(
        fit, F(LGBM, n_estimators=5, zero_as_missing=True, min_child_samples=3)
    ),
    "lightgbm with categories": fit_lightgbm_with_categories,
    "xgboost": F(fit, F(XGB, n_estimators=10, max_depth=5)),
    "xgboost of two classes": F(fit, F(XGBC, n_estimators=8, max_depth=12), "two"),
    "xgboost of three classes": F(fit, F(XGBC, n_estimators=5, max_depth=3), "three"),
    "xgboost dart": F(fit, F(XGB, n_estimators=8, booster="dart", rate_drop=0.5, verbosity=0)),
    "xgboost grown by loss": F(
        fit, F(XGB, n_estimators=5, grow_policy="lossguide", max_leaves=15, max_depth=0)
    ),
    "catboost": F(fit, F(CB, iterations=10, depth=6)),
    "catboost of two classes": F(fit, F(CBC, iterations=8, depth=4), "two"),
    "catboost of three classes": F(fit, F(CBC, iterations=5, depth=3), "three"),
    "catboost of two targets": fit_multi_output_catboost,
    "catboost grown by loss": F(fit, F(CB, iterations=5, grow_policy="Lossguide")),
    "single tree": F(fit, F(tree.DecisionTreeRegressor, **SEED), holes=0.1),
    "single tree of three classes": F(fit, F(tree.DecisionTreeClassifier, **SEED), "three"),
    "forest": F(fit, F(forests.RandomForestRegressor, 5, **SEED)),
    "forest of two classes": F(fit, F(forests.RandomForestClassifier, 5, **SEED), "two"),
    "forest of three classes": F(fit, F(forests.RandomForestClassifier, 5, **SEED), "three"),
    "forest of two targets": fit_multi_output_forest,
    "extra trees": F(fit, F(forests.ExtraTreesRegressor, 5, **SEED), holes=0),
    "gradient boosting": F(
        fit, F(forests.GradientBoostingRegressor, n_estimators=10, **SEED), holes=0
    ),
    "gradient boosting of two": F(
        fit, F(forests.GradientBoostingClassifier, n_estimators=5, **SEED), "two", 0
    ),
    "gradient boosting of three": F(
        fit, F(forests.GradientBoostingClassifier, n_estimators=5, **SEED), "three", 0
    ),
    "histogram boosting": F(
        fit, F(forests.HistGradientBoostingRegressor, max_iter=10, min_samples_leaf=5, **SEED)
    ),
    "histogram boosting of three": F(
        fit,
        F(forests.HistGradientBoostingClassifier, max_iter=5, min_samples_leaf=5, **SEED),
        "three",
    ),
}
model_and_rows = functools.cache(lambda name: MODELS[name]())
every_model = pytest.mark.parametrize("name", MODELS)
both_removals = pytest.mark.parametrize("removal", ["interventional", "path"])
