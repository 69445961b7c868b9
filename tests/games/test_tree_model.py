"""The user's own ensembles: read exactly from every library, and equal to what peers compute."""

import functools
from functools import partial

import numpy as np
import pandas as pd
import pytest
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn import ensemble as forests

import weightedshap as ws
from tests.games.batches import batch_at
from tests.games.tree_models import (
    CB,
    LGBM,
    QUIET,
    XGB,
    F,
    both_removals,
    every_model,
    fit,
    model_and_rows,
)
from tests.inputs.examples import explain
from tests.oracles import normal_rows
from tests.trees.random_ensembles import (
    assert_matches_own_values,
    background_games,
    path_games,
)
from weightedshap.games import TreeModel
from weightedshap.games.surrogates.data import MaskedRows


@every_model
@both_removals
def test_contributions_and_walks_equal_the_games_own_values(name, removal):
    model, X = model_and_rows(name)
    fitted = TreeModel(removal).fit(model, X[:20])
    for row in X[[30, 31]]:
        assert_matches_own_values(fitted.at(row))


@every_model
@both_removals
def test_all_features_known_gives_the_librarys_own_prediction(name, removal):
    model, X = model_and_rows(name)
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
    model, X = model_and_rows(name)
    fitted = TreeModel("path").fit(model, X[:20])
    rng = np.random.default_rng(0)
    masked = MaskedRows(rng.integers(0, 8, size=30), rng.random((30, X.shape[1])) < 0.5)
    expected = [
        np.atleast_1d(fitted.at(X[40 + r])(known[None])[0])
        for r, known in zip(*masked, strict=True)
    ]
    np.testing.assert_allclose(fitted.values_at(X[40:48], masked), expected, rtol=1e-12, atol=1e-12)


@every_model
@pytest.mark.parametrize("n_background", [3, 25])
def test_the_interventional_game_averages_the_model_over_the_background(name, n_background):
    model, X = model_and_rows(name)
    fitted = TreeModel("interventional").fit(model, X[:n_background])
    coalitions = np.random.default_rng(1).random((5, X.shape[1])) < 0.5
    expected = [
        fitted.predict(np.where(s, X[40], X[:n_background])).mean(axis=0) for s in coalitions
    ]
    np.testing.assert_allclose(fitted.at(X[40])(coalitions), expected, atol=1e-6)


@every_model
@both_removals
def test_uniform_weights_add_up_to_the_gap_between_the_ends(name, removal):
    model, X = model_and_rows(name)
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
    assert_matches_own_values(TreeModel(removal).fit(model, X[:8]).at(X[9]), seed)


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
    model, X = model_and_rows(name)
    ours = ws.Explainer(model, X[:5], game="tree_path", family="shapley")(X[50:60]).values
    np.testing.assert_allclose(ours, shap_values(model, X[50:60]), atol=2e-5 * np.abs(ours).max())


@pytest.mark.filterwarnings("ignore")  # of the peer and of what it imports
@pytest.mark.parametrize(
    "name", ["lightgbm", "lightgbm of two classes", "xgboost", "extra trees", "gradient boosting"]
)
def test_uniform_weights_equal_the_interventional_values_of_shap(name):
    model, X = model_and_rows(name)
    whole = X[~np.isnan(X).any(axis=1)]  # shap's kernel sends missing background values another way
    ours = ws.Explainer(model, whole[:20], game="tree_interventional", family="shapley")(
        whole[40:50]
    ).values
    np.testing.assert_allclose(
        ours, shap_values(model, whole[40:50], whole[:20]), atol=2e-5 * np.abs(ours).max()
    )


@pytest.mark.filterwarnings("ignore")  # of the peer and of what it imports
@pytest.mark.parametrize("name", ["extra trees", "forest"])
def test_uniform_weights_equal_the_tree_values_of_shapiq(name):
    import shapiq

    model, X = model_and_rows(name)
    row = X[~np.isnan(X).any(axis=1)][40]
    theirs = shapiq.TreeExplainer(model, max_order=1, index="SV").explain(row)
    expected = [theirs[(i,)] for i in range(X.shape[1])]
    ours = ws.Explainer(model, X[:5], game="tree_path", family="shapley")(row[None]).values[0]
    np.testing.assert_allclose(ours, expected, atol=1e-4 * np.abs(ours).max())


def test_the_space_that_is_explained_is_stated():
    spaces = {
        name: TreeModel().fit(*model_and_rows(name)).space
        for name in ("lightgbm", "xgboost of two classes", "forest of two classes")
    }
    assert list(spaces.values()) == ["value", "margin", "probability"]
    model, X = model_and_rows("lightgbm of two classes")
    explanation = ws.Explainer(model, X[:10], game="tree_path")(X[:3])
    assert explanation.game_info["space"] == "margin"
    np.testing.assert_allclose(explanation.predictions, model.predict(X[:3], raw_score=True))


def test_the_first_of_two_classes_has_the_margin_with_the_other_sign():
    model, X = model_and_rows("lightgbm of two classes")
    one, both = (
        ws.Explainer(model, X[:10], game="tree_interventional", outputs=o)(X[:3])
        for o in (1, [0, 1])
    )
    np.testing.assert_allclose(both.shapley[..., 1], one.shapley)
    np.testing.assert_allclose(both.shapley[..., 0], -one.shapley)
    np.testing.assert_allclose(both.predictions[:, 0], -one.predictions)


def test_several_outputs_keep_their_axis_and_one_can_be_picked():
    model, X = model_and_rows("lightgbm of three classes")
    every = ws.Explainer(model, X[:10], game="tree_interventional")(X[:4])
    one = ws.Explainer(model, X[:10], game="tree_interventional", outputs=2)(X[:4])
    assert every.values.shape == (4, 6, 3)
    np.testing.assert_allclose(every.contributions[..., 2], one.contributions)


@both_removals
def test_groups_of_columns_are_one_player(removal):
    model, X = model_and_rows("lightgbm")
    groups = {"pair": ["x1", "x4"]}
    explainer = ws.Explainer(model, X[:15], game=f"tree_{removal}", groups=groups)
    game = explainer.game.at(X[30])
    assert game.d == 5
    assert_matches_own_values(game)
    alone = TreeModel(removal).fit(model, X[:15]).at(X[30])
    whole = np.eye(5, dtype=bool)[:, explainer.background.player_of_column]
    np.testing.assert_allclose(game(np.eye(5, dtype=bool)), alone(whole), atol=1e-12)


def test_background_weights_are_respected():
    model, X = model_and_rows("lightgbm")
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
    assert (fitted.reading.ensembles[0].cat_slot >= 0).any()
    rows = frame[100:110]
    everything = np.ones((1, 3), dtype=bool)
    ours = np.concatenate([fitted.at(rows[r : r + 1])(everything) for r in range(10)])
    np.testing.assert_allclose(ours, model.predict(rows), atol=1e-6)
    assert_matches_own_values(fitted.at(rows[:1]))


def fit_on_categories(library):
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
    model, frame = fit_on_categories(library)
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
    model, frame = fit_on_categories(library)
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
    model, X = model_and_rows(name)
    fitted = TreeModel(removal).fit(model, X[:20])
    assert len(fitted.factory.removals) == readers
    block = batch_at(fitted, X[30:50])
    rng = np.random.default_rng(0)
    d = X.shape[1]
    vectors = rng.dirichlet(np.ones(d), size=9)
    orders = rng.permuted(np.tile(np.arange(d), (20, 3, 1)), axis=2)
    for o in range(len(fitted.reading.ensembles)):
        games = (
            path_games
            if removal == "path"
            else functools.partial(background_games, Z=X[:20], weights=np.full(20, 0.05))
        )
        for one in (block.output(o), games(fitted.reading.ensembles[o : o + 1], d=d)(X[30:50])):
            np.testing.assert_array_equal(
                one.semivalues(vectors)[..., 0], block.semivalues(vectors)[..., o]
            )
            np.testing.assert_array_equal(one.along(orders)[..., 0], block.along(orders)[..., o])
            np.testing.assert_array_equal(one.endpoints()[..., 0], block.endpoints()[..., o])


def test_blocks_of_rows_give_what_single_rows_give():
    model, X = model_and_rows("lightgbm")
    fitted = TreeModel().fit(model, X[:10])
    explanation = ws.Explainer(model, X[:10], game=fitted)(X[:40])
    rows = [ws.explain(fitted.at(row)) for row in X[:40]]
    np.testing.assert_array_equal(
        explanation.contributions, np.concatenate([row.contributions for row in rows])
    )
    assert explanation.weight_labels.tolist() == [row.weight_labels[0] for row in rows]


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
def test_true_answers_are_compared_with_predictions_not_margins(objective):
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


@pytest.mark.parametrize("removal", ["path", "interventional"])
def test_what_depends_on_weights_alone_is_computed_once_for_all_batches(removal):
    model, X = fit(lambda: LGBMRegressor(n_estimators=10, **QUIET))
    fitted = TreeModel(removal).fit(model, X[:9])
    calls = []
    for _, cache in fitted.factory.removals:
        compute = cache.compute
        cache.compute = lambda vectors, compute=compute: calls.append(vectors) or compute(vectors)
    uniform = np.full((1, X.shape[1]), 1 / X.shape[1])
    once, again, both = (
        batch_at(fitted, X[part]).semivalues(uniform) for part in (slice(3), slice(3, 6), slice(6))
    )
    assert len(calls) == 1
    assert np.array_equal(np.concatenate([once, again]), both)


def test_the_offset_changes_its_sign_with_the_class():
    """Notices trees of the first class of two without the sign of what is added to them."""
    X = normal_rows(200, 4)
    lopsided = X[:, 0] + X[:, 1] > 1.2
    for model in (
        xgboost.XGBClassifier(n_estimators=5, base_score=0.2),
        LGBMClassifier(n_estimators=5, verbose=-1),
    ):
        model.fit(X, lopsided)
        explainer = ws.Explainer(
            model, X[:20], game="tree_interventional", outputs=0, progress=False
        )
        explanation = explainer(X[:5])
        np.testing.assert_allclose(explanation.endpoint_gaps["full"], 0, atol=1e-5)
        p = model.predict_proba(X[:5])[:, 0]
        np.testing.assert_allclose(explanation.predictions, np.log(p / (1 - p)), atol=1e-5)


@pytest.mark.parametrize("game", ["tree_interventional", "tree_path"])
def test_tree_games_know_log_odds_of_two_classes_and_refuse_others(game):
    lightgbm = pytest.importorskip("lightgbm")
    X = normal_rows(80)
    fit = partial(lightgbm.LGBMClassifier(n_estimators=4, verbose=-1, n_jobs=1).fit, X)
    binary = fit((X[:, 0] > 0).astype(int))
    odds, margin = (
        explain(binary, X, X[:2], game=game, link=link) for link in ("logit", "identity")
    )
    np.testing.assert_array_equal(odds.values, margin.values)
    with pytest.raises(ValueError, match="not add up to log-odds of one class against the rest"):
        explain(fit(np.digitize(X[:, 0], [-0.5, 0.5])), X, X[:2], game=game, link="logit")
