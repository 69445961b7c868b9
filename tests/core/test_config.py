"""What `game=` and `judge=` stand for: who explains, who judges, and which pairs are refused."""

import numpy as np
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

import weightedshap as ws
from weightedshap._checks import UnknownNameError
from weightedshap.config import OTHER_MODELS, Config, Setup
from weightedshap.games import DistilledTrees, NeuralSurrogate, TreeSurrogate, tree_model

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = X[:, 0] * X[:, 1] + X[:, 2]
TREES = LGBMRegressor(n_estimators=10, n_jobs=1, verbose=-1).fit(X, Y)
CLASSES = LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1).fit(X, Y > 0)
LINEAR = LinearRegression().fit(X, Y)


def resolve_names(model=TREES, **choices):
    """Return the names of the games and the judge that options resolve to."""
    games, judge, _ = Setup.build(model, X, Config(**choices)).resolve()
    if not isinstance(judge, str):
        assert judge.base is games[0]  # trees are read once
        judge = "anchored"
    return tuple(game if isinstance(game, str) else game.info["game"] for game in games), judge


def test_readable_trees_explain_themselves_and_the_anchored_game_judges():
    assert resolve_names(TREES) == (("tree_path",), "anchored")
    assert resolve_names(CLASSES) == (("tree_path",), "anchored")
    assert resolve_names(make_pipeline(StandardScaler().fit(X), TREES)) == (
        ("tree_path",),
        "anchored",
    )


def test_the_trees_of_a_pipeline_are_read_once(monkeypatch):
    read = tree_model._read_explained_outputs
    times = []
    monkeypatch.setattr(
        tree_model, "_read_explained_outputs", lambda *given: times.append(1) or read(*given)
    )
    ws.Explainer(make_pipeline(StandardScaler().fit(X), TREES), X, progress=False)
    assert len(times) == 1


@pytest.mark.parametrize(
    "model", [LINEAR, LINEAR.predict, make_pipeline(Normalizer().fit(X), TREES)]
)
def test_other_models_are_explained_by_two_games_in_competition(model):
    assert resolve_names(model) == (OTHER_MODELS, "anchored")


def test_a_function_in_the_place_of_predict_is_never_taken_for_trees():
    assert resolve_names(TREES, predict=lambda rows: TREES.predict(rows) ** 2) == (
        OTHER_MODELS,
        "anchored",
    )


def test_log_odds_of_a_forest_are_not_read():
    assert resolve_names(CLASSES, link="logit") == (("tree_path",), "anchored")


def test_a_game_that_is_named_judges_too():
    assert resolve_names(game="marginal") == (("marginal",), "game")
    assert resolve_names(game="marginal", judge="tree_surrogate") == (
        ("marginal",),
        "tree_surrogate",
    )


def test_a_list_is_judged_by_the_anchored_game():
    assert resolve_names(game=["tree_path", "tree_interventional"]) == (
        ("tree_path", "tree_interventional"),
        "anchored",
    )


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"game": "tree_pth"}, "Did you mean 'tree_path'"),
        ({"game": ["tree_path", "auto"]}, "Unknown game 'auto'"),
        ({"game": ["tree_path", "anchored"]}, "Unknown game 'anchored'"),
        ({"game": "anchored"}, "Unknown game 'anchored'"),
        ({"judge": "ancored"}, "Did you mean 'anchored'"),
        ({"game": []}, "empty list"),
        ({"game": ["tree_path", "marginal"], "judge": "game"}, "several compete"),
    ],
)
def test_names_and_pairs_that_mean_nothing_are_refused_at_once(choices, message):
    with pytest.raises(ValueError, match=message):
        ws.Explainer(TREES, X, **choices)


def test_competing_games_without_a_judge_of_their_own_are_refused():
    with pytest.raises(ValueError, match="none of them can judge the others"):
        ws.Explainer(LINEAR, X, judge="game")


def test_games_of_different_scales_cannot_compete():
    with pytest.raises(
        ValueError, match=r"'tree_path' \(scale: margin\) and 'marginal' \(scale: probability\)"
    ):
        ws.Explainer(CLASSES, X, game=["tree_path", "marginal"], judge="tree_surrogate")


def test_a_judge_of_the_same_recipe_is_another_game():
    recipe = ws.games.TreeSurrogate(masks=4, trees=10)
    explainer = ws.Explainer(TREES, X, game=recipe, judge=recipe, progress=False)
    assert explainer.judge is not explainer.game
    full = np.ones((1, 4), dtype=bool)
    assert explainer.judge.at(X[:1])(full) != explainer.game.at(X[:1])(full)


def test_a_fitted_game_and_a_function_can_judge():
    fitted = ws.games.Marginal().fit(TREES, X[:20])
    by_fitted = ws.Explainer(TREES, X, game="tree_path", judge=fitted, progress=False)(X[:3])
    by_function = ws.Explainer(
        TREES, X, game="tree_path", judge=lambda row: fitted.at(row), progress=False
    )(X[:3])
    np.testing.assert_allclose(by_fitted.scores, by_function.scores)
    with pytest.raises(ValueError, match="The judge was given as a fitted one"):
        ws.evaluate(ws.Explainer(TREES, X, game="tree_path", judge=fitted, progress=False), X[:3])


def test_a_judge_with_other_outputs_is_refused():
    judge = ws.games.Marginal().fit(lambda rows: np.stack([rows[:, 0], rows[:, 1]], axis=1), X[:20])
    with pytest.raises(ValueError, match="The judge has 2 outputs, but 1 are explained"):
        ws.Explainer(TREES, X, game="tree_path", judge=judge, progress=False)(X[:2])


def test_what_a_fit_depends_on_cannot_be_changed_afterwards():
    explainer = ws.Explainer(TREES, X, game="tree_path", progress=False)
    with pytest.raises(ValueError, match="depend on `judge`"):
        explainer.but(judge="tree_surrogate")
    with pytest.raises(UnknownNameError):
        explainer.but(jugde="tree_surrogate")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_jobs": 0}, "n_jobs"),
        ({"n_jobs": "two"}, "n_jobs"),
        ({"n_jobs": 1.5}, "n_jobs"),
        ({"n_jobs": True}, "n_jobs"),
        ({"random_state": None}, "random_state"),
        ({"random_state": 1.7}, "random_state"),
        ({"random_state": -1}, "random_state"),
        ({"progress": "yes"}, "progress"),
        ({"progress": 2}, "progress"),
        ({"progress": None}, "progress"),
        ({"keep_contributions": 1}, "keep_contributions"),
        ({"select": ["shared"]}, "Unknown selection"),
    ],
)
def test_choices_that_mean_nothing_are_refused_when_they_are_given(wrong, message):
    with pytest.raises(ValueError, match=message):
        Config(**wrong)


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (TreeSurrogate, {"trees": 0}),
        (TreeSurrogate, {"masks": 2.0}),
        (TreeSurrogate, {"rate": "fast"}),
        (TreeSurrogate, {"n_jobs": -1}),
        (DistilledTrees, {"rows": True}),
        (DistilledTrees, {"held_out": float("nan")}),
        (NeuralSurrogate, {"units": None}),
    ],
)
def test_settings_of_recipes_are_checked_when_they_are_given(make, wrong):
    with pytest.raises((ValueError, TypeError), match=f"`{next(iter(wrong))}` must be"):
        make(**wrong)
