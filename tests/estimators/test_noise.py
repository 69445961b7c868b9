"""Games that do not repeat themselves: how large the noise is, and what it does to errors."""

import numpy as np
import pytest

from tests.oracles import random_game
from weightedshap.contributions import Chains, Contributions
from weightedshap.estimators.noise import add_noise_variance, noise_variance
from weightedshap.games import FunctionGame
from weightedshap.games.user import check_game


def again(values):
    """A game that gives these values, whatever the coalitions."""
    return check_game(FunctionGame(lambda coalitions: np.asarray(values), 3))


def test_the_variance_is_half_of_the_mean_square_of_what_changed():
    coalitions = np.eye(5, 3, dtype=bool)
    values = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    assert noise_variance(again([2.0, 3.0, 4.0]), coalitions, values) is None
    assert noise_variance(again([2.0, 3.0, 4.0 + 1e-5]), coalitions, values) is None
    assert noise_variance(again([1.0, 5.0, 4.0]), coalitions, values) == pytest.approx(
        (1 + 4 + 0) / 3 / 2
    )


@pytest.mark.parametrize("n", [2, 5, 10])
def test_chains_of_a_noisy_game_are_spread_around_what_was_found(n):
    rng = np.random.default_rng(n)
    chains = Chains(np.ones((n, 3, 3)), rng.normal(size=(n, 3, 3)), np.zeros((n, 3, 3)))
    ends = np.full((3, 3), np.nan)
    ends[0] = [1.0, 2.0, 3.0]
    table = Contributions.from_chains(chains, ends, 9, "told", frozenset("a"), np.full((3, 3), 0.1))
    with pytest.warns(UserWarning, match="about 0.3"):
        noisy = add_noise_variance(table, np.array(0.09))
    np.testing.assert_allclose(noisy.mean, table.mean, atol=1e-12)
    np.testing.assert_allclose(noisy.standard_error_of([1.0, 0, 0]), np.sqrt(2 * 0.09))
    np.testing.assert_allclose(noisy.standard_error[0], np.sqrt(2 * 0.09))
    np.testing.assert_allclose(noisy.standard_error[1:], 0.1)


def test_a_game_that_repeats_itself_has_no_noise():
    game = random_game(3)
    coalitions = np.eye(3, dtype=bool)
    assert noise_variance(check_game(game), coalitions, game(coalitions)) is None
