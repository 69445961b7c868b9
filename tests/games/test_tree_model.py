"""The user's own ensembles: read exactly from every library, and equal to what peers compute."""

import dataclasses
import functools
import json

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from lightgbm import LGBMRegressor
from sklearn import ensemble as forests
from sklearn import linear_model, tree

import weightedshap as ws
from tests.games.trees import assert_reads_out
from weightedshap.games import TreeModel
from weightedshap.games.surrogates.data import Masked
from weightedshap.games.tree_batch import leaf_games, path_games
from weightedshap.trees import readers
from weightedshap.trees.ensembles import Ensemble

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

read = functools.cache(lambda name: MODELS[name]())
every_model = pytest.mark.parametrize("name", MODELS)
both_removals = pytest.mark.parametrize("removal", ["interventional", "path"])


@every_model
@both_removals
def test_contributions_and_walks_equal_the_games_own_values(name, removal):
    model, X = read(name)
    fitted = TreeModel(removal).fit(model, X[:20])
    for row in X[[30, 31]]:
        assert_reads_out(fitted.at(row))


@every_model
@both_removals
def test_all_features_known_gives_the_librarys_own_prediction(name, removal):
    model, X = read(name)
    fitted = TreeModel(removal).fit(model, X[:20])
    everything = np.ones((1, X.shape[1]), dtype=bool)
    ours = np.concatenate([fitted.at(row)(everything) for row in X[40:60]])
    own = fitted.predict(X[40:60])
    single = name.startswith("xgboost")
    np.testing.assert_allclose(
        ours, own, rtol=0, atol=1e-6 * np.abs(own).max() if single else 1e-10
    )


@every_model
def test_path_values_of_masked_rows_equal_those_of_each_game(name):
    model, X = read(name)
    fitted = TreeModel("path").fit(model, X[:20])
    rng = np.random.default_rng(0)
    masked = Masked(rng.integers(0, 8, size=30), rng.random((30, X.shape[1])) < 0.5)
    expected = [
        np.atleast_1d(fitted.at(X[40 + r])(known[None])[0])
        for r, known in zip(*masked, strict=True)
    ]
    np.testing.assert_allclose(fitted.pairs(X[40:48], masked), expected, rtol=1e-12, atol=1e-12)


@every_model
@pytest.mark.parametrize("n_background", [3, 25])
def test_the_interventional_game_averages_the_model_over_the_background(name, n_background):
    model, X = read(name)
    fitted = TreeModel("interventional").fit(model, X[:n_background])
    coalitions = np.random.default_rng(1).random((5, X.shape[1])) < 0.5
    expected = [
        fitted.predict(np.where(s, X[40], X[:n_background])).mean(axis=0) for s in coalitions
    ]
    np.testing.assert_allclose(fitted.at(X[40])(coalitions), expected, atol=1e-6)


@every_model
@both_removals
def test_uniform_weights_add_up_to_the_gap_between_the_ends(name, removal):
    model, X = read(name)
    explanation = ws.Explainer(model, X[:20], game=f"tree_{removal}", family="shapley")(X[40:50])
    np.testing.assert_allclose(
        explanation.efficiency_gap + explanation.endpoint_gaps["full"], 0, atol=1e-9
    )


@settings(max_examples=12)
@given(
    seed=st.integers(0, 1000),
    d=st.integers(1, 12),
    depth=st.integers(1, 12),
    library=st.sampled_from(["lightgbm", "xgboost", "catboost", "sklearn"]),
    removal=st.sampled_from(["interventional", "path"]),
)
def test_random_ensembles_of_every_library_and_depth_are_read_out(seed, d, depth, library, removal):
    makers = {
        "lightgbm": F(
            LGBM,
            n_estimators=3,
            max_depth=depth,
            num_leaves=2 ** min(depth, 6),
            min_child_samples=2,
        ),
        "xgboost": F(XGB, n_estimators=3, max_depth=depth),
        "catboost": F(CB, iterations=3, depth=min(depth, 8)),
        "sklearn": F(forests.RandomForestRegressor, 2, max_depth=depth, random_state=0),
    }
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, d)).round(1)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nansum(X, axis=1) * np.nan_to_num(X[:, 0]) + rng.normal(size=80)
    model = makers[library]().fit(X, y)
    assert_reads_out(TreeModel(removal).fit(model, X[:8]).at(X[9]), seed)


def shap_values(model, X, background=None):
    import shap

    how = {
        "feature_perturbation": "tree_path_dependent" if background is None else "interventional"
    }
    return np.asarray(
        shap.TreeExplainer(model, background, **how).shap_values(X, check_additivity=False)
    )


PEERS = [
    "lightgbm",
    "lightgbm of two classes",
    "xgboost",
    "xgboost of two classes",
    "forest",
    "single tree",
]


@pytest.mark.filterwarnings("ignore")  # of the peer and of what it imports
@pytest.mark.parametrize("name", [*PEERS, "gradient boosting", "extra trees", "catboost"])
def test_uniform_weights_equal_the_path_dependent_values_of_shap(name):
    model, X = read(name)
    ours = ws.Explainer(model, X[:5], game="tree_path", family="shapley")(X[50:60]).values
    np.testing.assert_allclose(ours, shap_values(model, X[50:60]), atol=2e-5 * np.abs(ours).max())


@pytest.mark.filterwarnings("ignore")  # of the peer and of what it imports
@pytest.mark.parametrize(
    "name", ["lightgbm", "lightgbm of two classes", "xgboost", "extra trees", "gradient boosting"]
)
def test_uniform_weights_equal_the_interventional_values_of_shap(name):
    model, X = read(name)
    whole = X[~np.isnan(X).any(axis=1)]  # shap's kernel sends missing background values another way
    ours = ws.Explainer(model, whole[:20], game="tree_interventional", family="shapley")(
        whole[40:50]
    ).values
    np.testing.assert_allclose(
        ours, shap_values(model, whole[40:50], whole[:20]), atol=2e-5 * np.abs(ours).max()
    )


@every_model
def test_shapley_values_pair_by_pair_are_those_by_patterns(name):
    model, X = read(name)
    fitted = TreeModel().fit(model, X[:5])
    uniform = np.full((1, X.shape[1]), 1 / X.shape[1])
    expected = fitted.block(X[40:50]).semivalues(uniform)[:, 0]
    np.testing.assert_allclose(
        fitted.shapley(X[40:50]), expected, atol=1e-11 * max(1.0, np.abs(expected).max())
    )


def test_pairs_are_looked_at_where_trees_have_more_leaves_than_there_are_background_rows(
    monkeypatch,
):
    (model, X) = read("forest")
    asked = []
    of_pairs = Ensemble.shapley_values
    monkeypatch.setattr(
        Ensemble, "shapley_values", lambda *given: asked.append(0) or of_pairs(*given)
    )
    leaves = TreeModel().fit(model, X).info["leaves"] // 5
    few, many = (
        TreeModel().fit(model, np.repeat(X[:1], n, axis=0)).shapley(X[:3])
        for n in (leaves, leaves + 1)
    )
    assert len(asked) == 1
    np.testing.assert_allclose(few, many, atol=1e-11)


@pytest.mark.filterwarnings("ignore")  # of the peer and of what it imports
@pytest.mark.parametrize("name", ["extra trees", "forest"])
def test_uniform_weights_equal_the_tree_values_of_shapiq(name):
    import shapiq

    model, X = read(name)
    row = X[~np.isnan(X).any(axis=1)][40]
    theirs = shapiq.TreeExplainer(model, max_order=1, index="SV").explain(row)
    expected = [theirs[(i,)] for i in range(X.shape[1])]
    ours = ws.Explainer(model, X[:5], game="tree_path", family="shapley")(row[None]).values[0]
    np.testing.assert_allclose(ours, expected, atol=1e-4 * np.abs(ours).max())


def test_the_space_that_is_explained_is_stated():
    spaces = {
        name: TreeModel().fit(*read(name)).space
        for name in ("lightgbm", "xgboost of two classes", "forest of two classes")
    }
    assert list(spaces.values()) == ["value", "margin", "probability"]
    model, X = read("lightgbm of two classes")
    explanation = ws.Explainer(model, X[:10], game="tree_path")(X[:3])
    assert explanation.game_info["space"] == "margin"
    np.testing.assert_allclose(explanation.predictions, model.predict(X[:3], raw_score=True))


def test_the_first_of_two_classes_has_the_margin_with_the_other_sign():
    model, X = read("lightgbm of two classes")
    one, both = (
        ws.Explainer(model, X[:10], game="tree_interventional", outputs=o)(X[:3])
        for o in (1, [0, 1])
    )
    np.testing.assert_allclose(both.shapley[..., 1], one.shapley)
    np.testing.assert_allclose(both.shapley[..., 0], -one.shapley)
    np.testing.assert_allclose(both.predictions[:, 0], -one.predictions)


def test_several_outputs_keep_their_axis_and_one_can_be_picked():
    model, X = read("lightgbm of three classes")
    every = ws.Explainer(model, X[:10], game="tree_interventional")(X[:4])
    one = ws.Explainer(model, X[:10], game="tree_interventional", outputs=2)(X[:4])
    assert every.values.shape == (4, 6, 3)
    np.testing.assert_allclose(every.contributions[..., 2], one.contributions)


@both_removals
def test_groups_of_columns_are_one_player(removal):
    model, X = read("lightgbm")
    groups = {"pair": ["x1", "x4"]}
    explainer = ws.Explainer(model, X[:15], game=f"tree_{removal}", groups=groups)
    game = explainer.game.at(X[30])
    assert game.d == 5
    assert_reads_out(game)
    alone = TreeModel(removal).fit(model, X[:15]).at(X[30])
    whole = explainer.background.known_columns(np.eye(5, dtype=bool))
    np.testing.assert_allclose(game(np.eye(5, dtype=bool)), alone(whole), atol=1e-12)


def test_background_weights_are_respected():
    model, X = read("lightgbm")
    weights = np.arange(1.0, 13.0)
    weighted = ws.Explainer(model, X[:12], game="tree_interventional", background_weights=weights)(
        X[20:22]
    )
    repeated = ws.Explainer(
        model, np.repeat(X[:12], np.arange(1, 13), axis=0), game="tree_interventional"
    )(X[20:22])
    np.testing.assert_allclose(weighted.contributions, repeated.contributions, atol=1e-12)


def test_a_frame_with_categories_is_read_as_the_model_coded_it():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=200), "colour": rng.choice(["red", "green", "blue"], size=200)}
    )
    frame["colour"] = frame["colour"].astype("category")
    y = frame["a"] + (frame["colour"] == "red") * frame["a"]
    model = LGBM(n_estimators=10, min_child_samples=5, min_data_per_group=1, cat_smooth=1).fit(
        frame, y
    )
    explanation = ws.Explainer(model, frame[:30], game="tree_interventional")(frame[50:55])
    np.testing.assert_allclose(explanation.endpoint_gaps["full"], 0, atol=1e-12)
    np.testing.assert_allclose(explanation.predictions, model.predict(frame[50:55]))


@both_removals
def test_categorical_splits_of_xgboost_are_read(removal):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=300), "b": rng.normal(size=300), "c": rng.choice(list("stuvw"), 300)}
    )
    frame["c"] = frame["c"].astype("category")
    frame.loc[::9, "a"] = np.nan
    y = frame["a"].fillna(0.0) * frame["c"].isin(["s", "w"]).to_numpy() + frame["b"]
    model = xgboost.XGBRegressor(
        n_estimators=8, max_depth=4, max_cat_to_onehot=2, enable_categorical=True, n_jobs=1
    )
    fitted = TreeModel(removal).fit(model.fit(frame, y), frame[:20])
    assert (fitted.read.ensembles[0].cat_slot >= 0).any()
    rows = frame[100:110]
    everything = np.ones((1, 3), dtype=bool)
    ours = np.concatenate([fitted.at(rows[r : r + 1])(everything) for r in range(10)])
    np.testing.assert_allclose(ours, model.predict(rows), atol=1e-6)
    assert_reads_out(fitted.at(rows[:1]))


def fitted_on_categories(library):
    """A model of text and whole numbers as categories, the frame, and its predictions."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=200), "c": rng.choice(["Hof", "Ulm", "Bonn"], 200)})
    frame["n"] = rng.choice([30, 7, 9], 200)
    y = frame["a"] + 2.0 * (frame["c"] == "Ulm") + (frame["n"] == 9)
    frame = frame.astype({"c": "category", "n": "category"})
    if library == "xgboost":
        model = xgboost.XGBRegressor(
            n_estimators=5, max_cat_to_onehot=1, enable_categorical=True, n_jobs=1
        )
    else:
        model = LGBM(n_estimators=5, min_child_samples=5, min_data_per_group=1, cat_smooth=1)
    return model.fit(frame, y), frame


@both_removals
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_categories_in_another_order_than_in_training_give_the_same_game(library, removal):
    model, frame = fitted_on_categories(library)
    turned = frame.assign(
        c=frame["c"].cat.set_categories(["Ulm", "Bonn", "Hof"]),
        n=frame["n"].cat.set_categories([30, 9, 7]),
    )
    same, other = (
        ws.Explainer(model, f[:30], game=f"tree_{removal}")(f[50:55]) for f in (frame, turned)
    )
    np.testing.assert_allclose(same.predictions, model.predict(frame[50:55]), rtol=1e-6)
    np.testing.assert_allclose(same.endpoint_gaps["full"], 0, atol=1e-6)
    np.testing.assert_array_equal(same.contributions, other.contributions)


@both_removals
@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
def test_categories_of_polars_are_read_as_those_of_pandas(library, removal):
    pl = pytest.importorskip("polars")
    model, frame = fitted_on_categories(library)
    model = model.fit(frame[["a", "c"]], model.predict(frame))
    frame = frame[["a", "c"]]
    expected = ws.Explainer(model, frame[:30], game=f"tree_{removal}")(frame[50:55])
    plain = pl.from_pandas(frame).with_columns(pl.col("c").cast(pl.String))
    for dtype in (pl.Categorical, pl.Enum(["Ulm", "Hof", "Bonn"])):
        rows = plain.with_columns(pl.col("c").cast(dtype))
        found = ws.Explainer(model, rows[:30], game=f"tree_{removal}")(rows[50:55])
        np.testing.assert_array_equal(found.contributions, expected.contributions)


@both_removals
def test_a_deep_forest_on_many_columns_adds_up(removal):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2000))
    model = forests.RandomForestRegressor(4, max_features=0.1, random_state=0).fit(
        X, X[:, :50].sum(axis=1)
    )
    assert max(tree.get_depth() for tree in model.estimators_) > 12
    explanation = ws.Explainer(model, X[:6], game=f"tree_{removal}")(X[10:12])
    assert explanation.values.shape == (2, 2000)
    game_full = explanation.predictions + explanation.endpoint_gaps["full"]
    np.testing.assert_allclose(
        explanation.shapley.sum(axis=1), game_full - explanation.base_values, atol=1e-9
    )


@pytest.mark.parametrize(
    ("name", "readers"),
    [
        ("forest of three classes", 1),
        ("forest of two targets", 1),
        ("single tree of three classes", 1),
        ("catboost of three classes", 1),
        ("catboost of two targets", 1),
        ("lightgbm of three classes", 3),
        ("xgboost of three classes", 3),
    ],
)
@both_removals
def test_outputs_of_the_same_trees_share_a_reader_and_each_is_as_if_alone(name, readers, removal):
    model, X = read(name)
    fitted = TreeModel(removal).fit(model, X[:20])
    assert len(fitted.games.readers) == readers
    block = fitted.block(X[30:50])
    rng = np.random.default_rng(0)
    d = X.shape[1]
    vectors = rng.dirichlet(np.ones(d), size=9)
    orders = rng.permuted(np.tile(np.arange(d), (20, 3, 1)), axis=2)
    for o in range(len(fitted.read.ensembles)):
        games = (
            path_games
            if removal == "path"
            else functools.partial(leaf_games, Z=X[:20], weights=np.full(20, 0.05))
        )
        for one in (block.output(o), games(fitted.read.ensembles[o : o + 1], d=d)(X[30:50])):
            np.testing.assert_array_equal(
                one.semivalues(vectors)[..., 0], block.semivalues(vectors)[..., o]
            )
            np.testing.assert_array_equal(one.along(orders)[..., 0], block.along(orders)[..., o])
            np.testing.assert_array_equal(one.ends()[..., 0], block.ends()[..., o])


def test_blocks_of_rows_give_what_single_rows_give():
    model, X = read("lightgbm")
    fitted = TreeModel().fit(model, X[:10])
    explanation = ws.Explainer(model, X[:10], game=fitted)(X[:40])
    rows = [ws.explain(fitted.at(row)) for row in X[:40]]
    np.testing.assert_array_equal(
        explanation.contributions, np.concatenate([row.contributions for row in rows])
    )
    assert explanation.weight_labels.tolist() == [row.weight_labels[0] for row in rows]


# bad input ----------------------------------------------------------------------------------------


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
    model, X = read("lightgbm")
    with pytest.raises(ValueError, match="cannot follow `predict=`"):
        ws.Explainer(model, X, game="tree_path", predict=lambda rows: model.predict(rows) ** 2)


def test_an_ensemble_trained_on_other_columns_is_refused():
    model, X = read("lightgbm")
    with pytest.raises(ValueError, match="5 columns but the model expects 6"):
        TreeModel().fit(model, X[:, :5])


@both_removals
def test_an_infinite_value_is_refused(removal):
    model, X = read("lightgbm")
    row = X[:1].copy()
    row[0, 2] = np.inf
    with pytest.raises(ValueError, match="Column 'x2' holds an infinite value"):
        TreeModel(removal).fit(model, X[:5]).at(row)


@both_removals
def test_a_row_without_any_value_is_explained(removal):
    model, X = read("lightgbm")
    assert_reads_out(TreeModel(removal).fit(model, X[:5]).at(np.full(6, np.nan)))


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


@pytest.mark.parametrize("missing", [-999.0, 0.0, np.nan])
@pytest.mark.parametrize("removal", ["path", "interventional"])
@pytest.mark.parametrize("frame", [False, True])
def test_the_value_that_xgboost_takes_for_missing(missing, removal, frame):
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


def test_dart_weights_where_xgboost_keeps_them_from_3_4_on(monkeypatch):
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
    model, X = read("xgboost")
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
    with pytest.raises(readers.UnreadableModel, match="do not add up to its prediction"):
        readers.read_model(model, one)


LOG = "logarithm of the prediction"


@pytest.mark.parametrize(
    ("make", "scale", "back"),
    [
        (functools.partial(LGBMRegressor, objective="poisson", verbose=-1), LOG, np.exp),
        (
            functools.partial(LGBMRegressor, reg_sqrt=True, verbose=-1),
            "square root of the prediction",
            np.square,
        ),
        (functools.partial(xgboost.XGBRegressor, objective="reg:gamma"), LOG, np.exp),
        (
            functools.partial(xgboost.XGBRegressor, objective="reg:squaredlogerror"),
            None,
            np.asarray,
        ),
    ],
)
def test_scales_are_named_by_what_the_estimator_predicts(make, scale, back):
    X = np.random.default_rng(0).normal(size=(200, 3))
    model = make(n_estimators=10).fit(X, np.exp(X[:, 0]))
    explanation = ws.Explainer(model, X[:30], game="tree_path", progress=False)(X[:9])
    assert (explanation.game_info["space"], explanation.game_info.get("scale")) == (
        "margin" if scale else "value",
        scale,
    )
    np.testing.assert_allclose(back(explanation.predictions), model.predict(X[:9]), rtol=1e-5)


@pytest.mark.parametrize("objective", ["poisson", "regression"])
def test_true_answers_are_held_against_predictions_not_margins(objective):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = rng.poisson(np.exp(X[:, 0])).astype(float)
    model = LGBMRegressor(objective=objective, n_estimators=20, verbose=-1).fit(X, y)
    explainer = ws.Explainer(
        model, X[:200], judge=ws.games.Anchored(masks=4, fits=1), progress=False
    )
    found = ws.evaluate(explainer, X[200:], y[200:], against="own", methods=["Shapley"], metrics=[])
    at_the_end = found.curves("own", "inclusion_mse")["Shapley"][:, -1].mean()
    np.testing.assert_allclose(
        at_the_end, ((model.predict(X[200:]) - y[200:]) ** 2).mean(), rtol=1e-4
    )


def test_trees_that_do_not_give_the_prediction_by_any_link_are_refused():
    class Reversed(LGBMRegressor):
        def predict(self, rows, **more):
            return -super().predict(rows, **more)

    Reversed.__module__ = "lightgbm.sklearn"
    X = np.random.default_rng(0).normal(size=(100, 3))
    model = Reversed(n_estimators=5, verbose=-1).fit(X, X[:, 0])
    with pytest.raises(readers.UnreadableModel, match="do not give what the model predicts"):
        ws.Explainer(model, X[:20], game="tree_path", progress=False)


@pytest.mark.parametrize("removal", ["path", "interventional"])
def test_what_shapley_weights_lead_to_is_made_once_for_all_calls(removal):
    model, X = fit(lambda: LGBMRegressor(n_estimators=10, **QUIET))
    fitted = TreeModel(removal).fit(model, X[:9])
    made = []
    for _, latest in fitted.games.readers:
        latest.make = lambda vectors, make=latest.make: made.append(vectors) or make(vectors)
    once = fitted.shapley(X[:3])
    again = fitted.shapley(X[3:6])
    assert len(made) == 1
    assert np.array_equal(np.concatenate([once, again]), fitted.shapley(X[:6]))
