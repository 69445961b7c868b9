"""An explainer that was saved and loaded explains as before."""

import functools
import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

import weightedshap as ws
from tests.time_limit import time_limit

RNG = np.random.default_rng(0)
X = RNG.normal(size=(160, 4))
Y = X[:, 0] * X[:, 1] + X[:, 2]
LINEAR = LinearRegression().fit(X, Y)
SMALL_TREES = ws.games.TreeSurrogate(masks=2, trees=10)
SMALL_NETWORK = ws.games.NeuralSurrogate(epochs=1)


def save_and_load(explainer, folder, model, **choices):
    explainer.save(folder)
    return ws.Explainer.load(folder, model, **choices)


@pytest.mark.parametrize(
    "game",
    ["baseline", "marginal", "gaussian", "copula", SMALL_TREES, SMALL_NETWORK],
    ids=lambda g: getattr(g, "trees", g),
)
def test_explanations_are_the_same_to_the_bit(tmp_path, game):
    explainer = ws.Explainer(
        LINEAR, X[:100], game=game, evaluations=300, random_state=3, progress=False
    )
    loaded = save_and_load(explainer, tmp_path / "kept", LINEAR)
    assert loaded(X[100:104]).equals(explainer(X[100:104]))


def test_a_frame_with_categories_groups_and_missing_values_is_saved(tmp_path):
    frame = pd.DataFrame(X.copy(), columns=list("abcd"))
    frame["e"] = pd.Categorical(np.where(Y > 1, "high", np.where(Y > 0, "middle", "low")))
    frame.loc[::7, "b"] = np.nan
    model = LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(frame, Y > 0)
    groups = {"ab": ["a", "b"]}
    weights = np.linspace(1, 2, 100)
    explainer = ws.Explainer(
        model,
        frame[:100],
        game=SMALL_TREES,
        groups=groups,
        background_weights=weights,
        family="wide",
        outputs=["True", "False"],
        utility="exclusion",
        select="shared",
        progress=False,
    )
    loaded = save_and_load(explainer, tmp_path, model)
    assert loaded(frame[100:]).equals(explainer(frame[100:]))
    assert loaded(frame[100:]).feature_names == ("ab", "c", "d", "e")


def test_the_users_own_trees_are_saved(tmp_path):
    model = LGBMClassifier(n_estimators=5, n_jobs=1, verbose=-1).fit(X, Y > 0)
    explainer = ws.Explainer(model, X[:100], game="tree_interventional", progress=False)
    assert save_and_load(explainer, tmp_path, model)(X[100:110]).equals(explainer(X[100:110]))


def test_a_loaded_explainer_can_be_fitted_on_other_rows(tmp_path):
    explainer = ws.Explainer(LINEAR, X[:100], game=SMALL_TREES, progress=False)
    asked = {"methods": ["Shapley"], "judges": "independent"}
    found = ws.evaluate(save_and_load(explainer, tmp_path, LINEAR), X[100:104], **asked)
    expected = ws.evaluate(explainer, X[100:104], **asked)
    np.testing.assert_array_equal(found.areas("independent"), expected.areas("independent"))


def test_choices_can_be_replaced(tmp_path):
    explainer = ws.Explainer(LINEAR, X[:100], game="baseline", progress=False)
    assert save_and_load(explainer, tmp_path, LINEAR, select="shared").config.select == "shared"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("estimator", functools.partial(ws.estimators.permutation, evaluations=400)),
        ("utility", ws.utilities.exclusion),
        ("predict", lambda rows: rows.sum(axis=1)),
        ("game", lambda row: ws.games.Baseline().fit(LINEAR, X[:100]).at(row)),
    ],
)
def test_functions_have_to_be_passed_again(tmp_path, name, value):
    explainer = ws.Explainer(
        LINEAR, X[:100], **{"game": "baseline", "progress": False, name: value}
    )
    explainer.save(tmp_path)
    with pytest.raises(ValueError, match=f"made with {name} of your own"):
        ws.Explainer.load(tmp_path, LINEAR)
    loaded = ws.Explainer.load(tmp_path, LINEAR, **{name: value})
    assert loaded(X[100:103]).equals(explainer(X[100:103]))


def test_another_model_is_refused(tmp_path):
    explainer = ws.Explainer(
        LogisticRegression().fit(X, Y > 0), X[:100], game=SMALL_TREES, progress=False
    )
    explainer.save(tmp_path)
    three = LogisticRegression().fit(X, np.digitize(Y, [-0.5, 0.5]))
    with pytest.raises(ValueError, match="gives another number of outputs than 1"):
        ws.Explainer.load(tmp_path, three)
    assert ws.Explainer.load(tmp_path, three, refit=True)(X[100:103]).values.shape == (3, 4, 3)


@pytest.mark.parametrize(
    "choices", [{"link": "logit"}, {"outputs": 0}, {"predict": lambda rows: rows[:, 0]}]
)
@pytest.mark.parametrize("game", [SMALL_TREES, "marginal"])
def test_a_saved_game_is_never_shown_as_something_it_did_not_learn(tmp_path, game, choices):
    model = LogisticRegression().fit(X, Y > 0)
    ws.Explainer(model, X[:100], game=game, progress=False).save(tmp_path)
    with pytest.raises(ValueError, match=r"gives numbers that differ by up to .*refit=True"):
        ws.Explainer.load(tmp_path, model, **choices)
    again = ws.Explainer.load(tmp_path, model, refit=True, **choices)
    expected = ws.Explainer(model, X[:100], game=game, progress=False, **choices)
    assert again(X[100:103]).equals(expected(X[100:103]))


def test_another_model_of_the_same_shape_is_refused(tmp_path):
    ws.Explainer(LINEAR, X[:100], game=SMALL_TREES, progress=False).save(tmp_path)
    with pytest.raises(ValueError, match="gives numbers that differ by up to"):
        ws.Explainer.load(tmp_path, LinearRegression().fit(X, Y + 0.01 * X[:, 0]))


def test_learned_games_belong_to_their_seed(tmp_path):
    ws.Explainer(LINEAR, X[:100], game=SMALL_TREES, progress=False).save(tmp_path)
    with pytest.raises(ValueError, match="learned under another `random_state`"):
        ws.Explainer.load(tmp_path, LINEAR, random_state=7)
    ws.Explainer(LINEAR, X[:100], game="baseline", progress=False).save(
        tmp_path
    )  # which learns nothing
    assert ws.Explainer.load(tmp_path, LINEAR, random_state=7).config.random_state == 7


def test_a_judge_that_no_file_can_name_is_kept(tmp_path):
    judge = ws.games.Anchored(masks=2, network=SMALL_NETWORK)
    explainer = ws.Explainer(LINEAR, X[:100], game="baseline", judge=judge, progress=False)
    assert save_and_load(explainer, tmp_path, LINEAR)(X[100:103]).equals(explainer(X[100:103]))


def test_the_background_cannot_be_changed(tmp_path):
    ws.Explainer(LINEAR, X[:100], game="baseline", progress=False).save(tmp_path)
    with pytest.raises(ValueError, match="`groups` is part of what was saved"):
        ws.Explainer.load(tmp_path, LINEAR, groups=[["x0", "x1"]])


def test_a_file_of_another_kind_is_refused(tmp_path):
    explainer = ws.Explainer(LINEAR, X[:100], game="baseline", progress=False)
    explainer(X[:2]).save(tmp_path / "explainer.npz")
    with pytest.raises(ValueError, match="not 'weightedshap explainer'"):
        ws.Explainer.load(tmp_path, LINEAR)


def test_an_empty_folder_has_nothing_to_load(tmp_path):
    with pytest.raises(FileNotFoundError):
        ws.Explainer.load(tmp_path, LINEAR)


@pytest.mark.skipif(
    not hasattr(os, "mkfifo"), reason="on pipes in folders; to run: take Linux or macOS"
)
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(tmp_path):
    ws.Explainer(LINEAR, X[:100], game="baseline", progress=False).save(tmp_path)
    (tmp_path / "explainer.npz").unlink()
    os.mkfifo(tmp_path / "explainer.npz")
    with time_limit(10), pytest.raises(ValueError, match="no file but a pipe"):
        ws.Explainer.load(tmp_path, LINEAR)


@pytest.mark.skipif(
    not Path("/dev/zero").is_char_device(),
    reason="on devices in folders; to run: take Linux or macOS",
)
def test_a_device_in_place_of_a_file_is_refused(tmp_path):
    (tmp_path / "explainer.npz").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match="no file but a pipe or a device"):
        ws.Explainer.load(tmp_path, LINEAR)


@pytest.mark.parametrize(
    "choices", [{"select": "shared"}, {"family": "wide"}, {"utility": "exclusion", "n_jobs": 2}]
)
def test_what_was_chosen_last_is_what_is_saved(tmp_path, choices):
    explainer = ws.Explainer(LINEAR, X[:100], game="baseline", progress=False).but(**choices)
    loaded = save_and_load(explainer, tmp_path, LINEAR)
    assert loaded.config == explainer.config
    assert loaded(X[100:104]).equals(explainer(X[100:104]))


def test_a_frame_with_its_columns_in_another_order_is_read_by_name_after_loading(tmp_path):
    frame = pd.DataFrame(X.copy(), columns=list("abcd"))
    model = LinearRegression().fit(frame, Y)
    explainer = ws.Explainer(
        model, X[:100], game="baseline", progress=False
    )  # an array: the model knows the names
    loaded = save_and_load(explainer, tmp_path, model)
    turned = loaded(frame[100:104][list("dbca")])
    np.testing.assert_array_equal(turned.values, explainer(X[100:104]).values)
    np.testing.assert_allclose(turned.predictions, model.predict(frame[100:104]))


@pytest.mark.parametrize(
    "game", ["marginal", "gaussian", SMALL_TREES, SMALL_NETWORK, "tree_path", "tree_interventional"]
)
def test_an_explainer_can_be_pickled(game):
    model = LGBMRegressor(n_estimators=5, n_jobs=1, verbose=-1).fit(X, Y)
    explainer = ws.Explainer(model, X[:100], game=game, progress=False)
    explanation = explainer(X[100:104])
    assert pickle.loads(pickle.dumps(explainer))(X[100:104]).equals(explanation)
    assert pickle.loads(pickle.dumps(explanation)).equals(explanation)


@pytest.mark.parametrize("given", ["fitted", "recipe that no file can hold"])
def test_a_loaded_game_without_a_recipe_is_never_fitted_again_in_silence(tmp_path, given):
    game = SMALL_TREES.fit(LINEAR, X[:100], 0)
    if given != "fitted":
        game = ws.games.Anchored(masks=2, network=SMALL_NETWORK)
    explainer = ws.Explainer(LINEAR, X[:100], game=game, progress=False)
    loaded = save_and_load(
        save_and_load(explainer, tmp_path / "one", LINEAR), tmp_path / "two", LINEAR
    )
    assert loaded(X[100:104]).equals(explainer(X[100:104]))
    with pytest.raises(ValueError, match="it cannot be fitted on other rows"):
        ws.evaluate(loaded, X[100:104], methods=["Shapley"])
