"""Games g(base) + h·c: right at [d] whatever the model, exact in Δ where g is the identity, sampled
elsewhere."""

import copy
import functools
import pickle

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from hypothesis import given
from hypothesis import strategies as st
from sklearn import ensemble, linear_model
from sklearn import tree as tree_models
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

import weightedshap as ws
from tests.games.batches import batch_at, masked_values
from tests.oracles import combined, random_game
from tests.trees.random_ensembles import assert_matches_own_values
from weightedshap.coalitions import all_coalitions
from weightedshap.curves import along
from weightedshap.estimators.exact import enumerate_game
from weightedshap.games import FunctionGame, TreeModel, TreeSurrogate
from weightedshap.games.surrogates.correction import fade_contributions, fading_weights
from weightedshap.games.tree_model import try_read_trees
from weightedshap.inputs import as_model, as_table
from weightedshap.inputs.rows import Rows

D = 5
small = functools.partial(TreeSurrogate, base="tree_path", trees=25, masks=8, n_jobs=1)
QUIET = {"verbose": -1, "n_jobs": 1, "random_state": 0, "min_child_samples": 5}
LGBM = functools.partial(lightgbm.LGBMRegressor, **QUIET)
LGBMC = functools.partial(lightgbm.LGBMClassifier, **QUIET)
FOREST = functools.partial(ensemble.RandomForestClassifier, 8, max_depth=5, random_state=0)


def rows(n=300, seed=0):
    """Correlated normal rows."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)) + 0.7 * rng.normal(size=(n, 1))


def truth(X):
    return X[:, 0] * X[:, 1] + 2 * X[:, 2] + np.sin(X[:, 3])


def two(X):
    return (truth(X) > 0).astype(int)


def three(X):
    return np.digitize(truth(X), [-1, 1])


@functools.cache
def model(kind):
    """A model of each kind, trained on its own rows."""
    X = rows(400, seed=9)
    makers = {"value": (LGBM, truth), "two": (LGBMC, two), "three": (LGBMC, three)}
    makers |= {"forest": (FOREST, three)}
    make, target = makers[kind]
    return (make(n_estimators=10) if make is not FOREST else make()).fit(X, target(X))


@functools.cache
def fit_game(kind, outputs=None, fits=1):
    background = as_table(rows())
    return small(fits=fits).fit(as_model(model(kind), background, outputs=outputs), background, 0)


def assert_curves(game):
    """Walks agree with values on coalitions."""
    orders = np.array([np.random.default_rng(seed).permutation(game.d) for seed in range(4)])
    np.testing.assert_allclose(
        game.along(orders), along(FunctionGame(game, game.d), orders), rtol=1e-12, atol=1e-12
    )


# Δ of h·c
# ----------------------------------------------------------------------------------------------


def faded_game(game, h):
    return FunctionGame(lambda coalitions: h[coalitions.sum(axis=1)] * game(coalitions), game.d)


@given(d=st.integers(1, 8), seed=st.integers(0, 1000))
def test_contributions_of_a_game_that_fades_with_size(d, seed):
    game = random_game(d, seed)
    h = np.random.default_rng(seed).normal(size=d + 1)
    delta = enumerate_game(game).mean[None, :, :, None]
    empty = game(np.zeros((1, d), dtype=bool))[:, None]
    np.testing.assert_allclose(
        fade_contributions(delta, empty, h)[0, ..., 0],
        enumerate_game(faded_game(game, h)).mean,
        atol=1e-12,
    )


@pytest.mark.parametrize("d", [101, 500])
def test_many_players_lose_no_digits(d):
    """c(S) = Σ_{i∈S} a_i: of a coalition of size j with i, the others' mean is (j − 1) times the
    mean of the rest."""
    a = np.random.default_rng(0).normal(size=d)
    h = fading_weights(d)
    j = np.arange(1, d + 1)[:, None]
    with_i = a + (j - 1) * (a.sum() - a) / (d - 1)
    without = (j - 1) * (a.sum() - a) / (d - 1)
    expected = h[1:, None] * with_i - h[:-1, None] * without
    delta = fade_contributions(np.tile(a, (1, d, 1))[..., None], np.zeros((1, 1)), h)[0, ..., 0]
    np.testing.assert_allclose(delta, expected, atol=1e-11 * np.abs(with_i).max())


def test_nothing_of_the_correction_is_left_when_everything_is_known():
    h = fading_weights(7)
    assert h[0] == 1
    assert h[-1] == 0
    assert (np.diff(h) < 0).all()


# the game
# ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "outputs", "link"),
    [
        ("value", None, "identity"),
        ("forest", None, "identity"),
        ("forest", (2, 0), "identity"),
        ("two", None, "sigmoid"),
        ("two", (0,), "sigmoid"),
        ("two", (0, 1), "sigmoid"),
        ("three", None, "softmax"),
        ("three", (2, 0), "softmax"),
        ("three", (1,), "softmax"),
    ],
)
def test_with_all_players_known_the_game_is_the_models_own_prediction(kind, outputs, link):
    game = fit_game(kind, outputs)
    X = rows(20, seed=1)
    predicted = model(kind).predict(X) if kind == "value" else model(kind).predict_proba(X)
    chosen = (
        predicted
        if kind == "value"
        else predicted[:, outputs or ([1] if kind == "two" else [0, 1, 2])]
    )
    assert game.info["link"] == link
    np.testing.assert_allclose(game.predictions(Rows(X)), chosen.reshape(20, -1), atol=1e-6)
    np.testing.assert_allclose(
        batch_at(game, X).endpoints()[:, 1], chosen.reshape(20, -1), atol=1e-6
    )
    assert game.info["full_gap"] == pytest.approx(0, abs=1e-6)
    batch = batch_at(game, X[:1])
    is_exact = link == "identity"
    assert game.is_exact == is_exact
    assert batch.is_exact == is_exact
    assert (batch.row_game().contributions is not None) == is_exact


@pytest.mark.parametrize("kind", ["value", "forest", "two", "three"])
@pytest.mark.parametrize("fits", [1, 2])
def test_a_value_is_the_linked_base_and_what_the_boosters_add(kind, fits):
    game = fit_game(kind, fits=fits)
    row = rows(1, seed=2)
    coalitions = all_coalitions(D)
    base = batch_at(game.base, row).values(coalitions)[0]
    masked = np.where(coalitions, row, np.nan)
    c = np.stack([booster.predict(masked) for booster in game.boosters], axis=1)
    c = c.reshape(len(coalitions), fits, -1).mean(axis=1) + game.correction.offset
    expected = game.link(base) + fading_weights(D)[coalitions.sum(axis=1), None] * c
    np.testing.assert_allclose(batch_at(game, row).values(coalitions)[0], expected, atol=1e-10)
    np.testing.assert_allclose(
        masked_values(game, np.repeat(row, 2**D, axis=0), coalitions), expected, atol=1e-10
    )


@pytest.mark.parametrize("kind", ["value", "forest"])
@pytest.mark.parametrize("fits", [1, 2])
def test_contributions_are_exact_where_the_link_is_the_identity(kind, fits):
    assert_matches_own_values(fit_game(kind, fits=fits).at(rows(1, seed=3)))


@pytest.mark.parametrize(
    ("kind", "outputs"), [("two", None), ("two", (0, 1)), ("three", None), ("three", (2, 0))]
)
def test_curves_are_the_games_own_where_it_is_not(kind, outputs):
    assert_curves(fit_game(kind, outputs).at(rows(1, seed=3)))


@pytest.mark.parametrize(
    ("kind", "outputs"), [("value", None), ("forest", (2, 0)), ("two", (0, 1)), ("three", None)]
)
def test_a_batch_of_many_rows_is_its_rows_and_its_outputs(kind, outputs):
    game = fit_game(kind, outputs)
    X = rows(6, seed=4)
    coalitions = all_coalitions(D)
    batch = batch_at(game, X)
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(D), (6, 3, 1)), axis=2)
    single = [batch_at(game, X[r : r + 1]) for r in range(6)]
    np.testing.assert_array_equal(
        batch.values(coalitions), np.concatenate([b.values(coalitions) for b in single])
    )
    walks = [b.along(orders[r : r + 1]) for r, b in enumerate(single)]
    np.testing.assert_array_equal(batch.along(orders), np.concatenate(walks))
    for output in range(batch.endpoints().shape[-1]):
        one = batch.output(output)
        np.testing.assert_allclose(
            one.along(orders), batch.along(orders)[..., [output]], atol=1e-14
        )
        np.testing.assert_allclose(
            one.values(coalitions), batch.values(coalitions)[..., [output]], atol=1e-14
        )
        np.testing.assert_allclose(one.endpoints(), batch.endpoints()[..., [output]], atol=1e-14)


def test_the_two_classes_mirror_each_other_before_the_correction():
    game = fit_game("two", (0, 1))
    base = game.link(batch_at(game.base, rows(3, seed=5)).values(all_coalitions(D)))
    np.testing.assert_allclose(base.sum(axis=-1), 1, atol=1e-12)


def test_some_classes_are_those_of_all_before_the_correction():
    every = fit_game("three")
    some = fit_game("three", (2, 0))
    X = rows(3, seed=5)
    one, other = (g.link(batch_at(g.base, X).values(all_coalitions(D))) for g in (every, some))
    np.testing.assert_allclose(one[..., [2, 0]], other, atol=1e-14)


def frame(n=300, seed=0):
    """Numbers with holes, words and a group of two columns."""
    X = rows(n, seed)
    table = pd.DataFrame(X[:, :4], columns=list("abcd"))
    table["colour"] = pd.Categorical(
        np.array(["red", "green", "blue"])[np.digitize(X[:, 4], [-0.7, 0.7])]
    )
    table.loc[::5, "b"] = np.nan
    return table


def test_categories_missing_values_groups_and_weights_are_explained():
    X = frame()
    y = X["a"] * np.nan_to_num(X["b"]) + X["colour"].map(
        {"red": 2.0, "green": 0.0, "blue": -1.0}
    ).astype(float)
    trained = LGBM(n_estimators=8).fit(X, y)
    table = as_table(X, np.linspace(1, 3, len(X)), {"ab": ["a", "b"]})
    game = small().fit(as_model(trained, table), table, 0)
    for row in (0, 1):  # with and without a hole
        assert_matches_own_values(game.at(frame(2, seed=6).iloc[row : row + 1]))
    everything = batch_at(game, frame(9, seed=6)).endpoints()[:, 1, 0]
    np.testing.assert_allclose(everything, trained.predict(frame(9, seed=6)), atol=1e-6)


def test_background_weights_move_the_empty_game():
    X = rows()
    weights = np.where(rows()[:, 2] > 0, 20.0, 1.0)
    empty = [
        batch_at(small(trees=60).fit(model("value"), as_table(X, w), 0), X[:1]).endpoints()[0, 0, 0]
        for w in (None, weights)
    ]
    expected = [np.average(model("value").predict(X), weights=w) for w in (None, weights)]
    np.testing.assert_allclose(empty, expected, atol=0.35)


def test_predictions_far_from_zero_cost_no_digits():
    """LightGBM's labels are in single precision, in which 1e7 + 1/3 is 1e7."""
    tree = tree_models.DecisionTreeRegressor(max_depth=4, random_state=0).fit(
        rows(400, seed=9), truth(rows(400, seed=9))
    )
    shifted = copy.deepcopy(tree)
    shifted.tree_.value[:] += 1e7
    games = [small().fit(one, rows() + 0.5, 0) for one in (tree, shifted)]
    near, far = (batch_at(game, rows(5, seed=1)).values(all_coalitions(D)) for game in games)
    np.testing.assert_allclose(far - 1e7, near, atol=1e-5)


def test_it_is_nearer_to_held_out_predictions_than_the_plain_surrogate():
    X = rows(1500)
    trained = LGBM(n_estimators=60).fit(rows(1500, seed=9), truth(rows(1500, seed=9)))
    plain = TreeSurrogate(n_jobs=1).fit(trained, X, 0).info
    anchored = TreeSurrogate(base="tree_path", n_jobs=1).fit(trained, X, 0).info
    assert anchored["held_out_error"] < 0.97 * plain["held_out_error"]
    assert (
        anchored["held_out_error_by_size"][D - 1 :] < plain["held_out_error_by_size"][D - 1 :]
    ).all()
    assert np.abs(anchored["empty_gap"]) < 0.2


# scales
# ------------------------------------------------------------------------------------------------


def test_the_game_says_what_it_is():
    info = fit_game("two").info
    expected = {
        "game": "anchored",
        "base": "tree_path",
        "space": "probability",
        "link": "sigmoid",
        "background_rows": 300,
    }
    assert {name: info[name] for name in expected} == expected
    assert info["held_out_error_by_size"].shape == (D + 1,)
    assert info["leaves"] > info["trees"] > 0


@pytest.mark.parametrize(
    "make",
    [
        functools.partial(LGBM, objective="poisson", n_estimators=10),
        functools.partial(
            xgboost.XGBRegressor, objective="count:poisson", n_estimators=10, n_jobs=1
        ),
        functools.partial(xgboost.XGBRegressor, objective="reg:gamma", n_estimators=10, n_jobs=1),
    ],
)
def test_a_log_link_is_found(make):
    X = rows(400, seed=9)
    trained = make().fit(X, np.exp(truth(X) / 4))
    game = small().fit(trained, rows(), 0)
    assert (game.info["space"], game.info["link"]) == ("value", "exp")
    np.testing.assert_allclose(game.predict(rows(9)), trained.predict(rows(9)), rtol=1e-5)
    np.testing.assert_allclose(
        batch_at(game, rows(9)).endpoints()[:, 1, 0], game.predict(rows(9)), rtol=1e-5
    )


@pytest.mark.parametrize("output", [0, 1])
def test_log_odds_are_the_scale_of_the_trees(output):
    table = as_table(rows())
    game = small().fit(as_model(model("two"), table, outputs=output, link="logit"), table, 0)
    assert (game.info["space"], game.info["link"]) == ("margin", "identity")
    margin = model("two").predict(rows(9), raw_score=True)
    np.testing.assert_allclose(game.predict(rows(9)), margin if output else -margin, atol=1e-9)
    assert_matches_own_values(game.at(rows(1, seed=3)))


@pytest.mark.parametrize("library", ["xgboost", "histogram", "gradient", "catboost"])
def test_classifiers_of_other_libraries_are_probabilities(library):
    from catboost import CatBoostClassifier

    makers = {
        "xgboost": functools.partial(xgboost.XGBClassifier, n_estimators=5, n_jobs=1),
        "histogram": functools.partial(
            ensemble.HistGradientBoostingClassifier, max_iter=5, random_state=0
        ),
        "gradient": functools.partial(
            ensemble.GradientBoostingClassifier, n_estimators=5, random_state=0
        ),
        "catboost": functools.partial(
            CatBoostClassifier, iterations=5, verbose=0, allow_writing_files=False
        ),
    }
    X = rows(400, seed=9)
    for target, link in ((two, "sigmoid"), (three, "softmax")):
        game = small(trees=3).fit(makers[library]().fit(X, target(X)), rows(), 0)
        assert (game.info["space"], game.info["link"]) == ("probability", link)


# what it stands on
# -------------------------------------------------------------------------------------


def test_a_base_by_name_as_a_recipe_and_fitted_is_the_same():
    X = rows()
    recipe = TreeModel("path")
    bases = "tree_path", recipe, recipe.fit(model("value"), X)
    games = [small(base=base).fit(model("value"), X, 0).at(X[0]) for base in bases]
    for game in games[1:]:
        np.testing.assert_array_equal(game(all_coalitions(D)), games[0](all_coalitions(D)))


def test_the_interventional_game_is_a_base_too():
    game = small(base="tree_interventional").fit(model("value"), rows(40), 0)
    assert game.info["base"] == "tree_interventional"
    assert_matches_own_values(game.at(rows(1, seed=3)))


@pytest.mark.parametrize("base", ["gaussian", TreeSurrogate(trees=3), 3])
def test_a_game_that_misses_the_prediction_is_no_base(base):
    with pytest.raises(
        TypeError,
        match="`base` must be a game that gives the prediction when all players are known",
    ):
        small(base=base).fit(model("value"), rows(), 0)


def test_a_base_of_another_model_is_refused():
    other = LGBM(n_estimators=3).fit(rows(seed=8), truth(rows(seed=8)))
    with pytest.raises(ValueError, match="another model"):
        small(base=TreeModel("path").fit(other, rows())).fit(model("value"), rows(), 0)


def test_fits_must_be_a_positive_integer():
    with pytest.raises(ValueError, match="`fits` must be an integer of at least 1"):
        small(fits=0).fit(model("value"), rows(), 0)


def test_the_mean_of_two_fits_is_nearer_to_the_truth_than_one_of_them():
    """Games of many more trees and rows stand for the truth."""
    best = batch_at(
        TreeSurrogate(base="tree_path", fits=6, n_jobs=1).fit(model("value"), rows(3000), 5),
        rows(60, seed=1),
    )
    values = [
        batch_at(fit_game("value", fits=fits), rows(60, seed=1)).values(all_coalitions(D))
        for fits in (1, 2)
    ]
    errors = [np.sqrt(((v - best.values(all_coalitions(D))) ** 2).mean()) for v in values]
    assert errors[1] < errors[0]


# files and judges
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "outputs"), [("value", None), ("two", [0, 1]), ("three", [2, 0])])
@pytest.mark.parametrize("fits", [1, 2])
def test_a_saved_game_is_the_same_to_the_bit(tmp_path, kind, outputs, fits):
    choices = {"outputs": outputs, "evaluations": 200, "progress": False}
    explainer = ws.Explainer(model(kind), rows(), game=small(fits=fits), **choices)
    explainer.save(tmp_path)
    loaded = ws.Explainer.load(tmp_path, model(kind))
    assert loaded(rows(2, seed=1)).equals(explainer(rows(2, seed=1)))
    assert loaded.game.info["link"] == explainer.game.info["link"]


@pytest.mark.parametrize("kind", ["value", "three"])
def test_a_pickled_game_is_the_same(kind):
    again = pickle.loads(pickle.dumps(fit_game(kind).warm_up()))
    np.testing.assert_array_equal(
        batch_at(again, rows(2)).endpoints(), batch_at(fit_game(kind), rows(2)).endpoints()
    )


def test_the_judge_of_a_tree_model_is_the_anchored_surrogate():
    judge = ws.games.JUDGES["anchored"]().fit(model("two"), rows(), 0)
    assert judge.info["base"] == "tree_path"
    np.testing.assert_allclose(
        judge.predict(rows(4)), model("two").predict_proba(rows(4))[:, 1], atol=1e-6
    )


def test_the_judge_is_no_game_to_explain_with():
    assert "anchored" not in ws.games.GAMES
    assert set(ws.games.GAMES) < set(ws.games.JUDGES)


def read(user_model, **choices):
    table = as_table(rows())
    return try_read_trees(as_model(user_model, table, **choices), table)[0]


def test_a_model_is_readable_unless_a_reader_refuses_it():
    assert read(model("value")).label == "tree_path"
    assert read(model("two"), link="logit").space == "margin"
    assert read(model("forest"), link="logit") is None
    assert read(model("value"), predict=model("value").predict) is None
    assert read(linear_model.LinearRegression().fit(rows(), truth(rows()))) is None
    assert read(make_pipeline(PCA(2), LGBM(n_estimators=2)).fit(rows(), truth(rows()))) is None
    assert read(LGBM(linear_tree=True, n_estimators=3).fit(rows(), truth(rows()))) is None


def test_a_genuine_error_in_reading_is_not_hidden(monkeypatch):
    def broken(*arguments):
        raise ValueError("a bug")

    monkeypatch.setattr("weightedshap.trees.readers.lightgbm_ensembles", broken)
    with pytest.raises(ValueError, match="a bug"):
        read(model("value"))


def test_the_base_and_the_correction_add_up():
    """The game minus its base fades as h does: c alone is a plain surrogate's game."""
    game = fit_game("value")
    row = rows(1, seed=3)
    c = FunctionGame(lambda s: game.correction.at(row)(s), D)
    minus = combined(1, game.at(row), -1, game.base.at(row))
    np.testing.assert_allclose(
        minus(all_coalitions(D)), faded_game(c, fading_weights(D))(all_coalitions(D)), atol=1e-12
    )
