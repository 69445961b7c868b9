"""Tests of what every game must satisfy, for all in GAMES.

The model is a small boosted-tree regressor, so that games read from the model's own trees are
tested as well.
"""

import functools

import numpy as np
import pytest
from lightgbm import LGBMRegressor

from tests.oracles import normal_rows, product_model
from weightedshap import curves
from weightedshap.coalitions import all_coalitions
from weightedshap.estimators.exact import enumerate_game, exact
from weightedshap.games import GAMES, FittedGame

ROW = np.array([[0.5, -1.0, 2.0, 0.1]])

every_game = pytest.mark.parametrize("name", GAMES)

# These games may compute in single precision.
SINGLE_PRECISION = ("neural_surrogate",)


def tolerance(name, double):
    return 2e-6 if name in SINGLE_PRECISION else double


@functools.cache
def boosted_model():
    rows = normal_rows(120)
    model = LGBMRegressor(
        n_estimators=10, num_leaves=6, min_child_samples=5, verbose=-1, n_jobs=1, random_state=0
    )
    return model.fit(rows, product_model(rows))


@functools.cache
def fitted(name):
    return GAMES[name]().fit(boosted_model(), normal_rows(40, seed=1), np.random.default_rng(0))


@every_game
def test_a_fitted_game_has_at_and_predict(name):
    game = fitted(name)
    assert isinstance(game, FittedGame)
    assert game.predict(ROW).shape == (1,)
    assert np.isfinite(game.predict(ROW)).all()


@every_game
def test_a_game_gives_one_finite_value_for_each_coalition(name):
    values = fitted(name).at(ROW)(all_coalitions(4))
    assert values.shape == (16,)
    assert np.isfinite(values).all()


@every_game
def test_a_value_does_not_depend_on_the_other_coalitions_of_a_call(name):
    game = fitted(name).at(ROW)
    one_by_one = np.concatenate([game(coalition[None]) for coalition in all_coalitions(4)])
    np.testing.assert_allclose(
        game(all_coalitions(4)), one_by_one, rtol=1e-12, atol=tolerance(name, 1e-12)
    )


@every_game
def test_the_same_seed_fits_the_same_game(name):
    again = GAMES[name]().fit(boosted_model(), normal_rows(40, seed=1), np.random.default_rng(0))
    np.testing.assert_array_equal(
        again.at(ROW)(all_coalitions(4)), fitted(name).at(ROW)(all_coalitions(4))
    )


@every_game
def test_coalitions_of_another_width_are_refused(name):
    with pytest.raises(ValueError, match=r"\(m, 4\)"):
        fitted(name).at(ROW)(np.ones((2, 3), dtype=bool))


@every_game
def test_a_games_own_contributions_agree_with_enumeration(name):
    game = fitted(name).at(ROW)
    np.testing.assert_allclose(exact(game).mean, enumerate_game(game).mean, atol=1e-10)


@every_game
def test_a_games_own_walk_agrees_with_the_call_on_prefixes(name):
    game = fitted(name).at(ROW)
    orders = np.array([[0, 1, 2, 3], [3, 1, 0, 2]])
    prefixes = [[order[:k] for k in range(5)] for order in orders.tolist()]
    one_by_one = [
        [game(np.isin(np.arange(4), known)[None])[0] for known in row] for row in prefixes
    ]
    np.testing.assert_allclose(curves.along(game, orders), one_by_one, atol=tolerance(name, 1e-10))


@every_game
def test_uniform_weights_share_out_the_whole_gain(name):
    game = fitted(name).at(ROW)
    empty, full = game(np.array([[False] * 4, [True] * 4]))
    assert exact(game).mean.mean(axis=0).sum() == pytest.approx(
        full - empty, abs=tolerance(name, 1e-10)
    )


@every_game
def test_explaining_leaves_rows_and_background_as_they_were(name):
    row = ROW.copy()
    background = normal_rows(40, seed=1)
    game = GAMES[name]().fit(boosted_model(), background, np.random.default_rng(0)).at(row)
    exact(game)
    np.testing.assert_array_equal(row, ROW)
    np.testing.assert_array_equal(background, normal_rows(40, seed=1))


@every_game
def test_an_empty_background_is_refused(name):
    with pytest.raises(ValueError, match="background needs at least one row"):
        GAMES[name]().fit(boosted_model(), np.empty((0, 4)), np.random.default_rng(0))


@every_game
def test_a_row_of_another_width_is_refused(name):
    with pytest.raises(ValueError, match="3 columns but the background has 4"):
        fitted(name).at(np.ones((1, 3)))
