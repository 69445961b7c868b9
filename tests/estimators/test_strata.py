"""Plans, samples and remainders of draws by size: each piece of `stratified`
by itself."""

import numpy as np
import pytest

from tests.oracles import random_game
from weightedshap.coalitions import all_coalitions
from weightedshap.estimators.exact import exact
from weightedshap.estimators.sparse_fourier import SparseFourier
from weightedshap.estimators.strata import (
    CrossFit,
    SamplingPlan,
    StratifiedSample,
    delta_from_means,
    minimum_budget,
    size_errors,
    spread_by_size,
)


@pytest.mark.parametrize(
    ("d", "least"), [(1, 2), (3, 8), (4, 16), (6, 26), (7, 28), (15, 68), (90, 446)]
)
def test_the_least_budget_is_both_ends_and_three_pairs_of_every_other_size(d, least):
    assert minimum_budget(d) == least


def test_the_error_of_a_size_is_that_of_the_means_with_and_without_a_player():
    np.testing.assert_allclose(
        size_errors(6)[1:-1] ** 2,
        [1 + 1 / 5, 1 / 2 + 1 / 4, 1 / 3 + 1 / 3, 1 / 4 + 1 / 2, 1 / 5 + 1],
    )


@pytest.mark.parametrize(("d", "budget"), [(20, 2_000), (21, 4_000), (40, 3_000)])
def test_sizes_are_drawn_by_the_root_of_their_error(d, budget):
    plan = SamplingPlan.build(d, budget)
    drawn = np.flatnonzero(plan.draws)
    shares = size_errors(d)[drawn] / (1 + (2 * drawn == d))
    np.testing.assert_allclose(plan.draws[drawn], plan.draws.sum() * shares / shares.sum(), atol=2)
    assert 2 * plan.draws.sum() + len(plan.whole_size_coalitions()) > budget - 2 * d


@pytest.mark.parametrize(("budget", "whole"), [(700, 1), (1_200, 2), (3_000, 2), (4_000, 3)])
def test_sizes_are_taken_whole_where_the_draws_would_come_near_to_all(budget, whole):
    plan = SamplingPlan.build(16, budget)
    assert np.flatnonzero(plan.is_whole[:9]).tolist() == list(range(whole + 1))


def test_the_pilot_is_a_quarter_if_that_has_ten_of_every_size():
    plan = SamplingPlan.build(20, 3_000)
    np.testing.assert_array_equal(plan.pilot_plan().draws, plan.draws // 4)
    few = SamplingPlan.build(20, 600)
    assert few.pilot_plan() is few


@pytest.mark.parametrize("one_sided", [True, False])
def test_the_rest_uses_up_what_the_pilot_left(one_sided):
    plan = SamplingPlan.build(20, 3_000)
    pilot = plan.pilot_plan()
    s = np.arange(21)
    rest = plan.remaining(pilot, np.where((s < 8) & one_sided, 10.0, 0.1))
    assert rest.has_complements is not one_sided
    spent = 2 * pilot.draws.sum() + (1 + rest.has_complements) * rest.draws.sum()
    assert 2 * plan.draws.sum() - 40 < spent <= 2 * plan.draws.sum()
    if one_sided:
        assert rest.draws[:8].sum() > 10 * rest.draws[8:].sum()


def sample_of(d, budget, seed=0):
    """A sample by plan, with complements."""
    plan = SamplingPlan.build(d, budget)
    drawn = enumerate(plan.coalitions(np.random.default_rng(seed), plan.n_folds))
    calls = [(-1, plan.whole_size_coalitions()), *drawn]
    return StratifiedSample.from_calls(
        [(fold, asked, np.zeros(len(asked))) for fold, asked in calls],
        plan.is_whole,
        has_complements=True,
    )[0]


def test_the_groups_are_the_whole_sizes_and_then_the_folds():
    sample = sample_of(10, 300)
    assert len(sample.groups) == sample.n_folds + 1
    for g, rows in enumerate(sample.groups):
        np.testing.assert_array_equal(rows, np.flatnonzero(sample.fold == g - 1))


@pytest.mark.parametrize(("rows", "models"), [(2_500, 10), (2_501, 5)])
def test_many_rows_have_five_models(rows, models):
    fold = np.arange(rows) % 10
    sample = StratifiedSample(np.zeros((rows, 3), bool), fold, np.zeros(4, bool))
    assert len(np.unique(sample.group_of_fold(fold))) == models


def test_the_means_of_all_coalitions_are_delta():
    game = random_game(5, outputs=(2,))
    d = 5
    sample = StratifiedSample(all_coalitions(d), np.full(2**d, -1), np.ones(d + 1, bool))
    np.testing.assert_allclose(
        delta_from_means(sample, game(all_coalitions(d))), exact(game).mean, atol=1e-13
    )


def fit_of(sample, unseen, seen):
    """Models that miss what they have not seen by `unseen`, and all else by `seen`."""
    groups = np.arange(sample.n_folds)
    missed = np.where(groups[:, None] == sample.fold, unseen, seen)  # (groups, n)
    nothing = np.zeros((sample.n_folds, sample.d, sample.d))
    return CrossFit(sample, np.zeros(len(sample.fold)), nothing, missed * np.ones(len(sample.fold)))


@pytest.mark.parametrize(("seen", "square"), [(1.0, 1.0), (3.0, 1.0), (0.0, 1.5), (0.6, 1.32)])
def test_errors_are_stretched_by_what_models_owe_to_chance(seen, square):
    assert fit_of(sample_of(10, 300), 1.0, seen).inflation() ** 2 == pytest.approx(square)


def test_models_that_miss_nothing_are_not_stretched():
    assert fit_of(sample_of(10, 300), 0.0, 1.0).inflation() == 1.0


def test_errors_are_those_of_means_of_the_remainders():
    """Without a model, over many seeds: the mean square error of every cell is the square of the
    one that is told."""
    d = 7
    game = random_game(7)
    truth = exact(game).mean
    squares = []
    told = []
    for seed in range(200):
        sample = sample_of(d, 90, seed)
        y = game(sample.coalitions)
        nothing = CrossFit(
            sample, y, np.zeros((sample.n_folds, d, d)), np.zeros((sample.n_folds, len(y)))
        )
        squares.append((nothing.delta_by_fold().mean(axis=0) - truth) ** 2)
        told.append(nothing.standard_errors() ** 2)
    squares = np.mean(squares, axis=0)
    told = np.mean(told, axis=0)
    whole = sample.is_whole[1:] & sample.is_whole[:-1]
    np.testing.assert_allclose(squares[whole], 0, atol=1e-20)
    np.testing.assert_array_equal(told[whole], 0)
    ratio = told[~whole].sum(axis=1) / squares[~whole].sum(axis=1)
    assert ((ratio > 0.8) & (ratio < 1.3)).all()


def test_the_spread_is_larger_where_more_is_left_and_outputs_count_alike():
    sample = sample_of(20, 3_000)
    rng = np.random.default_rng(0)
    y = rng.normal(size=len(sample.fold)) * np.where(sample.sizes > 10, 3.0, 1.0)
    spread = spread_by_size(sample, y, SparseFourier(rounds=0))
    assert spread[13:17].min() > 2 * spread[4:8].max()
    both = spread_by_size(sample, np.stack([y, 1e6 * y], axis=1), SparseFourier(rounds=0))
    np.testing.assert_allclose(both, np.sqrt(2) * spread, rtol=1e-6)
