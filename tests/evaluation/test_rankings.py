"""Greedy, the optimum and MCI on games small enough to try everything."""

from itertools import permutations

import numpy as np
import pytest

from tests.oracles import random_game
from weightedshap.coalitions import all_coalitions
from weightedshap.curves import area, recovery_error
from weightedshap.evaluation.mci import mci, sampled_values
from weightedshap.evaluation.rankings import greedy, optimum
from weightedshap.games import FunctionGame
from weightedshap.games.user import as_batch

ORDERS = np.array(list(permutations(range(5))))
WALKS = np.random.default_rng(0).permuted(np.tile(np.arange(12), (40, 1)), axis=1)


def areas(game, orders, f_x):
    return area(recovery_error(game, np.atleast_2d(orders), f_x))


@pytest.mark.parametrize("seed", range(8))
def test_no_order_beats_the_optimum(seed):
    game = random_game(5, seed)
    f_x = float(game.values[-1])
    assert areas(game, optimum(game, f_x), f_x)[0] == pytest.approx(
        areas(game, ORDERS, f_x).min(), abs=1e-12
    )


@pytest.mark.parametrize("seed", range(8))
def test_greedy_takes_the_nearest_value_at_every_step(seed):
    game = random_game(5, seed)
    f_x = float(game.values[-1])
    curve = recovery_error(game, ORDERS, f_x)
    left = np.arange(len(ORDERS))
    for k in range(1, 6):
        left = left[curve[left, k] == curve[left, k].min()]
    assert tuple(greedy(game, f_x)) in set(map(tuple, ORDERS[left]))


def test_greedy_can_be_worse_than_the_optimum():
    games = [random_game(5, seed) for seed in range(20)]
    found = [
        areas(g, np.stack([greedy(g, g.values[-1]), optimum(g, g.values[-1])]), g.values[-1])
        for g in games
    ]
    assert (np.array(found)[:, 0] > np.array(found)[:, 1] + 1e-9).any()


def test_the_optimum_of_one_player():
    assert optimum(random_game(1), 0.0).tolist() == [0]


def test_the_optimum_refuses_more_than_15_players():
    with pytest.raises(ValueError, match="at most 15 players; got 16"):
        optimum(FunctionGame(lambda coalitions: coalitions.sum(axis=1), 16), 0.0)


def test_mci_is_the_largest_gain_over_all_coalitions():
    game = random_game(4, 3)
    values = sampled_values(as_batch(game), np.zeros((1, 4), dtype=np.intp))[0]
    numbers = np.arange(16)
    expected = [
        max(game.values[s | 1 << i] - game.values[s] for s in numbers if not s >> i & 1)
        for i in range(4)
    ]
    np.testing.assert_allclose(mci(values, np.zeros((1, 4), dtype=np.intp)), expected)


def test_mci_along_walks_finds_no_more_than_all_coalitions_do():
    game = random_game(12, 1)
    sampled = mci(sampled_values(as_batch(game), WALKS)[0], WALKS)
    values = game(all_coalitions(12)).reshape((2,) * 12)  # bit 11 first
    for i in range(12):
        gains = np.diff(values, axis=11 - i)
        assert sampled[i] <= gains.max() + 1e-12
        assert sampled[i] > 0


def test_mci_of_an_additive_game_is_its_coefficients():
    beta = np.arange(12.0)
    game = FunctionGame(lambda coalitions: coalitions @ beta, 12)
    np.testing.assert_allclose(
        mci(sampled_values(as_batch(game), WALKS)[0], WALKS), beta, atol=1e-12
    )
