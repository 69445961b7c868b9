"""Tests of the axioms of Δ, for every estimator in ESTIMATORS.

An estimator that gives an exact table on a small game must satisfy the axioms exactly. One that
samples when its budget is smaller than the number of coalitions must satisfy those that sampling
leaves exact; its other cells must be within four of its own standard errors. A table that uses a
model fitted to the draws (`Contributions.adjusted`) is not linear in the game, and the step of a
player with constant steps is exact only up to its errors.
"""

import numpy as np
import pytest
from hypothesis import given, settings

from tests.axioms.strategies import games, games_and_orders, pairs_of_games, scalars, seeds
from tests.oracles import (
    ORACLES,
    CountingGame,
    combined,
    delta_by_definition,
    random_game,
    with_null_player,
)
from weightedshap.estimators import ESTIMATORS, as_estimator

D = 7
# Fewer evaluations than there are coalitions, 2^7.
BUDGET = 120


def estimate(name, game, seed=0, evaluations=None):
    return as_estimator(name, evaluations)(game, rng=np.random.default_rng(seed))


EXACT = [name for name in ESTIMATORS if estimate(name, random_game(4)).exact]
SAMPLERS = [
    name for name in ESTIMATORS if not estimate(name, random_game(D), evaluations=BUDGET).exact
]

exactly = pytest.mark.parametrize("name", EXACT)
sampled = pytest.mark.parametrize("name", SAMPLERS)


def test_every_estimator_is_examined():
    assert set(EXACT) | set(SAMPLERS) == set(ESTIMATORS)


@exactly
@given(game=games())
def test_an_exact_table_is_equation_2(name, game):
    np.testing.assert_allclose(estimate(name, game).mean, delta_by_definition(game), atol=1e-12)


@exactly
@pytest.mark.parametrize("oracle", ORACLES)
def test_an_exact_table_is_the_oracles(name, oracle):
    np.testing.assert_allclose(
        estimate(name, ORACLES[oracle].game).mean, ORACLES[oracle].delta, atol=1e-12
    )


@exactly
@given(pair=pairs_of_games(), a=scalars, b=scalars)
def test_an_exact_table_is_linear_in_the_game(name, pair, a, b):
    one, other = (estimate(name, game).mean for game in pair)
    both = estimate(name, combined(a, pair[0], b, pair[1])).mean
    np.testing.assert_allclose(both, a * one + b * other, atol=1e-11)


@exactly
@given(game=games(1, 4), step=scalars, seed=seeds)
def test_a_player_of_constant_steps_has_that_step_at_every_size(name, game, step, seed):
    player = seed % (game.d + 1)
    delta = estimate(name, with_null_player(game, player, step)).mean
    np.testing.assert_allclose(delta[:, player], step, atol=1e-12)


@exactly
@given(game_and_order=games_and_orders())
def test_relabelling_the_players_relabels_an_exact_table(name, game_and_order):
    game, order = game_and_order
    relabelled = estimate(name, game.relabelled(np.array(order))).mean
    np.testing.assert_allclose(relabelled, estimate(name, game).mean[:, list(order)], atol=1e-12)


@exactly
@given(game=games())
def test_uniform_weights_share_out_the_whole_gain(name, game):
    shapley = estimate(name, game).mean.mean(axis=0)
    np.testing.assert_allclose(shapley.sum(), game.values[-1] - game.values[0], atol=1e-11)


@exactly
def test_several_outputs_are_explained_side_by_side(name):
    game = random_game(4, outputs=(3,))
    together = estimate(name, game).mean
    by_output = [estimate(name, type(game)(game.values[:, o])).mean for o in range(3)]
    np.testing.assert_allclose(together, np.stack(by_output, axis=-1), atol=1e-14)


@sampled
@settings(max_examples=10)
@given(game=games(D - 1, D - 1), step=scalars, seed=seeds)
def test_a_sampler_finds_a_constant_player_without_error(name, game, step, seed):
    player = seed % D
    table = estimate(name, with_null_player(game, player, step), seed, BUDGET)
    tolerance = 5 * table.standard_error[:, player] if table.adjusted else 0.0
    assert (np.abs(table.mean[:, player] - step) <= tolerance + 1e-12).all()


@sampled
@settings(max_examples=10)
@given(game=games(D, D), seed=seeds)
def test_a_sampler_knows_both_ends_exactly(name, game, seed):
    table = estimate(name, game, seed, BUDGET)
    exact = estimate("exact", game).mean
    np.testing.assert_allclose(table.mean[[0, -1]], exact[[0, -1]], atol=1e-12)
    assert np.isinf(table.counts[[0, -1]]).all()
    assert (table.standard_error[[0, -1]] == 0).all()


@sampled
@settings(max_examples=10)
@given(pair=pairs_of_games(D, D), a=scalars, b=scalars, seed=seeds)
def test_a_sampler_is_linear_under_a_common_seed_and_budget(name, pair, a, b, seed):
    one, other = (estimate(name, game, seed, BUDGET) for game in pair)
    both = estimate(name, combined(a, pair[0], b, pair[1]), seed, BUDGET)
    linear = (not both.adjusted) | np.isinf(both.counts)
    np.testing.assert_allclose(
        both.mean[linear], (a * one.mean + b * other.mean)[linear], atol=1e-11
    )


@sampled
@settings(max_examples=10)
@given(game=games(D, D), seed=seeds)
def test_uniform_weights_share_out_the_whole_gain_of_a_sampled_game(name, game, seed):
    shapley = estimate(name, game, seed, BUDGET).mean.mean(axis=0)
    np.testing.assert_allclose(shapley.sum(), game.values[-1] - game.values[0], atol=1e-11)


@sampled
@pytest.mark.parametrize("budget", [60, 99, 120, 127])
def test_a_budget_is_never_exceeded_and_reported_truly(name, budget):
    game = CountingGame(random_game(D))
    table = estimate(name, game, evaluations=budget)
    assert len(game.asked) <= budget
    assert table.evaluations == len(game.asked)


@sampled
@pytest.mark.parametrize("d", [1, 2, 3, 5, D])
def test_a_budget_too_small_is_refused_with_the_least_that_works(name, d):
    game = CountingGame(random_game(d))
    with pytest.raises(ValueError, match="needs at least"):
        estimate(name, game, evaluations=1)
    assert game.asked == []


@sampled
@settings(max_examples=3)
@given(game=games(D, D), seed=seeds)
def test_a_sampler_lies_within_four_of_its_standard_errors(name, game, seed):
    table = estimate(name, game, seed, 5_000)
    error = np.abs(table.mean - estimate("exact", game).mean)
    assert (error <= 4 * table.standard_error + 1e-12).all()


@sampled
def test_a_sampler_repeats_itself_under_the_same_seed_and_not_under_another(name):
    one, same, other = (estimate(name, random_game(D), seed, BUDGET).mean for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


@sampled
def test_a_sampler_explains_several_outputs_with_the_same_draws(name):
    game = random_game(D, outputs=(2,))
    together = estimate(name, game, 0, BUDGET)
    by_output = [estimate(name, type(game)(game.values[:, o]), 0, BUDGET) for o in range(2)]
    np.testing.assert_allclose(
        together.mean, np.stack([one.mean for one in by_output], axis=-1), atol=1e-14
    )
    errors = np.stack([one.standard_error for one in by_output], axis=-1)
    np.testing.assert_allclose(together.standard_error, errors, atol=1e-14)


@sampled
def test_independent_draws_merge_into_the_count_weighted_mean(name):
    one, other = (
        estimate(name, random_game(D), seed, budget) for seed, budget in ((0, 120), (1, 80))
    )
    both = one + other
    inner = np.isfinite(one.counts) & np.isfinite(other.counts)
    counts = one.counts[inner] + other.counts[inner]
    mean = (one.counts[inner] * one.mean[inner] + other.counts[inner] * other.mean[inner]) / counts
    np.testing.assert_allclose(both.mean[inner], mean, atol=1e-12)
    np.testing.assert_allclose(both.counts[inner], counts, rtol=1e-14)
    assert both.evaluations == one.evaluations + other.evaluations


@sampled
def test_the_same_draws_do_not_merge(name):
    one, longer = (estimate(name, random_game(D), 0, budget) for budget in (80, 120))
    with pytest.raises(ValueError, match="same random draws"):
        one + longer
