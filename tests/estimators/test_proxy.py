"""Boosted trees in the place of the game: what they find, and that they repeat themselves."""

import numpy as np

from tests.oracles import moebius
from weightedshap.estimators import proxy, stratified


def sparse_game(d=20, seed=0):
    """A few strong interactions of order three and four among many features."""
    rng = np.random.default_rng(seed)
    return moebius(
        d,
        {
            tuple(rng.choice(d, order, replace=False)): 1.0 + rng.random()
            for order in (1, 3, 3, 4, 4)
        },
    )


def error(table, oracle):
    return np.sqrt(np.mean((table.mean - oracle.delta) ** 2))


def test_trees_find_strong_interactions_of_higher_order():
    oracle = sparse_game()
    alone = stratified(oracle.game, evaluations=3_000, order=1)
    assert error(proxy(oracle.game, evaluations=3_000), oracle) < 0.5 * error(alone, oracle)


def test_the_choices_of_lightgbm_are_passed_on():
    oracle = sparse_game()
    few = proxy(oracle.game, evaluations=2_000, trees=2, leaves=3, rate=0.05)
    assert error(few, oracle) > error(proxy(oracle.game, evaluations=2_000), oracle)


def test_a_constant_game_has_no_contributions():
    table = proxy(moebius(8, {(0,): 0.0}).game, evaluations=100)
    np.testing.assert_allclose(table.mean, 0.0, atol=1e-14)
    np.testing.assert_allclose(table.standard_error, 0.0, atol=1e-14)


def test_the_result_says_which_estimator_it_was():
    assert (
        proxy(sparse_game().game, evaluations=500).stopped
        == "proxy: budget of 500 evaluations used"
    )
