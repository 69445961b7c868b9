"""Utilities: their equations, their signs, and a user's own."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

import weightedshap as ws
from tests.oracles import additive, normal_rows, product_model, random_game, three_outputs, value
from weightedshap import utilities
from weightedshap._checks import UnknownNameError
from weightedshap.curves import order_of
from weightedshap.games import FunctionGame
from weightedshap.games.user import as_batch
from weightedshap.utilities import (
    UTILITIES,
    as_utility,
    aup,
    checked_scores,
    exclusion,
    masked_inclusion,
)

GAME = random_game(5)
F_X = 0.7
PHI = np.random.default_rng(0).normal(size=(4, 5))


def scores_of(score, phi):
    """(m,) the checked scores of attributions (m, d) by a user's function."""
    batch = as_batch(GAME, F_X)
    utility = as_utility(lambda game, f_x: score)
    return checked_scores(utility, batch, phi[None, ..., None])[0, :, 0]


def sum_of_errors(which):
    """Σ_{k=1..d} |f(x) − v(…)| of the coalitions that `which` makes of a ranking and k."""
    orders = [order_of(phi).tolist() for phi in PHI]
    return [sum(abs(F_X - value(GAME, which(order, k))) for k in range(1, 6)) for order in orders]


def test_aup_is_minus_the_area_under_the_recovery_error():
    expected = -np.array(sum_of_errors(lambda order, k: order[:k]))
    np.testing.assert_allclose(aup(GAME, F_X)(PHI), expected, rtol=1e-12)


def test_exclusion_is_plus_the_area_without_the_top_features():
    expected = sum_of_errors(lambda order, k: order[k:])
    np.testing.assert_allclose(exclusion(GAME, F_X)(PHI), expected, rtol=1e-12)


def test_masked_inclusion_is_aup_on_the_baseline_game():
    assert masked_inclusion.game == "baseline"
    np.testing.assert_array_equal(masked_inclusion(GAME, F_X)(PHI), aup(GAME, F_X)(PHI))


@pytest.mark.parametrize("utility", [aup, exclusion, masked_inclusion])
def test_only_the_ranking_by_size_is_seen(utility):
    score = utility(GAME, F_X)
    np.testing.assert_array_equal(score(-3 * PHI), score(PHI))


@pytest.mark.parametrize("utility", [aup, exclusion, masked_inclusion])
def test_the_right_ranking_scores_best(utility):
    oracle = additive([1.0, 5.0, 3.0])
    score = utility(oracle.game, 9.0)
    right, wrong = score(np.array([[1.0, 5.0, 3.0], [5.0, 1.0, 3.0]]))
    assert right > wrong


def test_masked_inclusion_judges_on_the_baseline_and_explains_the_games_own_curves():
    background = normal_rows(9)
    X = normal_rows(3, seed=1)
    choices = {"game": "marginal", "utility": "masked_inclusion"}
    explanation = ws.Explainer(product_model, background, **choices)(X)
    family = explanation.family
    mean = background.mean(axis=0)
    for row, x in enumerate(X):
        phi = family.phi(explanation.contributions[row])
        ranks = np.argsort(order_of(phi), axis=1)
        f_x = product_model(x[None])
        top = [product_model(np.where(ranks < k, x, mean)) for k in range(1, 5)]
        np.testing.assert_allclose(
            explanation.scores[row], -np.abs(f_x - top).sum(axis=0), atol=1e-12
        )
    marginal = ws.Explainer(product_model, background, game="marginal")(X)
    np.testing.assert_array_equal(
        explanation.reference_curves["shapley"], marginal.reference_curves["shapley"]
    )


@pytest.mark.parametrize("name", UTILITIES)
def test_a_utility_is_taken_by_name_or_as_a_function(name):
    assert as_utility(name) is as_utility(UTILITIES[name]) is UTILITIES[name]


def test_an_unknown_utility_is_refused_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="Did you mean 'exclusion'"):
        as_utility("exclusions")


def test_anything_else_is_no_utility():
    with pytest.raises(TypeError, match="`utility` must be a name or a function"):
        as_utility(3)
    with pytest.raises(TypeError, match="got <lambda>, which takes other arguments"):
        as_utility(lambda phi: phi)
    with pytest.raises(TypeError, match="which takes other arguments"):
        as_utility(FunctionGame(lambda coalitions: coalitions.sum(axis=1), d=3))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_utility_that_returns_no_finite_score_is_refused(bad):
    with pytest.raises(ValueError, match="returned NaN or an infinite score"):
        scores_of(lambda phi: np.where(np.arange(4) == 2, bad, 1.0), PHI)


@pytest.mark.parametrize("returned", [0.0, np.zeros(3), np.zeros((4, 5))])
def test_a_utility_that_returns_another_shape_is_refused(returned):
    with pytest.raises(ValueError, match=r"one score for each attribution, shape \(4,\)"):
        scores_of(lambda phi: returned, PHI)


def test_an_unknown_attribution_has_no_score_and_reaches_no_utility():
    phi = PHI.copy()
    phi[1, 3] = np.nan
    seen = []

    def score(attributions):
        seen.append(attributions)
        return np.arange(4.0)

    np.testing.assert_array_equal(scores_of(score, phi), [0, np.nan, 2, 3])
    assert not np.isnan(seen[0]).any()


@pytest.mark.parametrize("select", ["per_row", "shared"])
def test_a_users_own_utility_chooses_the_weight(select):
    def largest(game, f_x):
        return lambda phi: phi[:, 0]

    explainer = ws.Explainer(
        product_model, normal_rows(9), game="marginal", utility=largest, select=select
    )
    explanation = explainer(normal_rows(4, seed=1))
    phi = explanation.family.phi(explanation.contributions)[..., 0]
    best = phi.max(axis=1) if select == "per_row" else phi[:, phi.mean(axis=0).argmax()]
    np.testing.assert_allclose(explanation.values[:, 0], best)
    np.testing.assert_allclose(explanation.scores, phi)
    assert explanation.utility == "largest"


def test_a_users_utility_is_given_one_output_of_the_game_and_its_prediction():
    seen = []

    def watching(game, f_x):
        seen.append((game(np.ones((1, 3), dtype=bool)).tolist(), f_x))
        return lambda phi: np.zeros(len(phi))

    game = random_game(3, outputs=(2,))
    ws.explain(game, utility=watching)
    assert seen == [([v], v) for v in game.values[-1]]


def small_area(game, f_x):
    """`aup` as a person would write it."""

    def score(phi):
        found = [
            np.abs(f_x - game.along(order[None])[0, 1:]).sum()
            for order in np.argsort(-np.abs(phi), kind="stable")
        ]
        return -np.array(found)

    assert game(np.ones((2, game.d), dtype=bool)).shape == (2,)
    return score


def test_a_users_utility_sees_one_row_and_output_at_a_time():
    """Notices all rows of a block at once, or outputs whose axis is still there."""
    X = normal_rows(60, 4)
    model = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, product_model(X))
    chosen = {"game": "tree_path", "progress": False}
    own = ws.Explainer(model, X, utility=small_area, **chosen)(X[:3])
    np.testing.assert_allclose(
        own.scores, ws.Explainer(model, X, utility="aup", **chosen)(X[:3]).scores, atol=1e-9
    )


def test_a_utility_that_is_no_function_for_one_output_is_refused():
    """Notices a check of the first output only, and phi of another width."""
    asked = []

    def first_only(game, f_x):
        asked.append(f_x)
        return (lambda phi: np.zeros(len(phi))) if len(asked) == 1 else None

    X = normal_rows(9, 4)
    with pytest.raises(TypeError, match="must return a function of phi"):
        ws.Explainer(three_outputs, X, game="baseline", utility=first_only, progress=False)(X[:1])
    game = FunctionGame(lambda coalitions: coalitions.sum(axis=1), 4)
    for phi in (np.ones((2, 3)), np.ones(4)):
        with pytest.raises(ValueError, match=r"`phi` must have shape \(m, 4\)"):
            utilities.aup(game, 1.0)(phi)
