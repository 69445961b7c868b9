"""Coalitions drawn per size: the plan, the control variate, the errors, budgets, noise."""

from math import comb

import numpy as np
import pytest
import scipy.stats

from tests.oracles import CountingGame, additive, moebius, random_game
from weightedshap.estimators import exact, permutation, stratified
from weightedshap.estimators.strata import SamplingPlan, minimum_budget
from weightedshap.games import FunctionGame

D = 9


def cover(estimate, game, repetitions, w):
    """The share of 95 % intervals that hold the truth, on average over cells with at least 30
    draws, and for φ_w."""
    truth = exact(game).mean
    hits = []
    phi_hits = []
    for seed in range(repetitions):
        table = estimate(game, rng=seed)
        cells = np.isfinite(table.counts) & (table.counts >= 30)
        t = scipy.stats.t.ppf(0.975, np.where(cells, table.counts, 30) - 1)
        hits.append((np.abs(table.mean - truth) <= t * table.standard_error)[cells].mean())
        error = table.standard_error_of(w)
        t = scipy.stats.t.ppf(0.975, len(table.chains.mean) - 1)
        phi_hits.append((np.abs(w @ table.mean - w @ truth) <= t * error).mean())
    return np.mean(hits), np.mean(phi_hits)


@pytest.mark.parametrize("d", [4, 7, 12, 40, 90])
@pytest.mark.parametrize("times", [1, 3, 20])
def test_a_plan_keeps_within_its_budget_and_takes_the_ends_whole(d, times):
    budget = times * minimum_budget(d)
    plan = SamplingPlan.build(d, budget)
    assert 2 * plan.draws.sum() + len(plan.whole_size_coalitions()) <= budget
    assert plan.is_whole[[0, 1, -2, -1]].all()
    assert len(plan.whole_size_coalitions()) == sum(
        comb(d, s) for s in range(d + 1) if plan.is_whole[s]
    )
    assert (plan.draws[: d // 2 + 1][~plan.is_whole[: d // 2 + 1]] >= 3).all()


@pytest.mark.parametrize("d", [8, 9])
def test_the_whole_of_a_size_and_the_draws_have_that_size_and_come_with_complements(d):
    plan = SamplingPlan.build(d, 120)
    known, *drawn = (
        plan.whole_size_coalitions(),
        *plan.coalitions(np.random.default_rng(0), plan.n_folds),
    )
    for called in (known, *drawn):
        first, second = np.split(called, 2)
        np.testing.assert_array_equal(first, ~second)
        assert first.sum(axis=1).max() <= d / 2
    counts = np.bincount(np.concatenate(drawn).sum(axis=1), minlength=d + 1)
    np.testing.assert_array_equal(counts, plan.draws + plan.draws[::-1])
    assert len(np.unique(known, axis=0)) == len(known)


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7])
def test_a_budget_for_all_coalitions_gives_the_exact_table(d):
    game = CountingGame(random_game(d))
    table = stratified(game, evaluations=2**d)
    assert table.exact
    assert len(game.asked) == 2**d
    np.testing.assert_allclose(table.mean, exact(random_game(d)).mean, atol=1e-12)


@pytest.mark.parametrize("d", [4, 6, 15])
def test_the_least_budget_named_is_the_least_that_works(d):
    least = minimum_budget(d)
    game = additive(np.arange(float(d))).game
    with pytest.raises(ValueError, match=f"needs at least {least:,}"):
        stratified(game, evaluations=least - 1)
    table = stratified(game, evaluations=least)
    assert table.visited
    assert table.evaluations <= least


def test_the_default_budget_is_as_documented():
    game = CountingGame(additive(np.arange(30.0)).game)
    stratified(game)
    assert 2_900 < len(game.asked) <= 3_000


@pytest.mark.parametrize("more", [{}, {(1, 6, 7): 1.0, (2, 8, 9): -1.5}], ids=["two", "three"])
def test_games_of_low_order_are_found_with_hardly_an_error(more):
    oracle = moebius(15, {(0,): 1.0, (1, 2): -2.0, (3, 4): 1.5, (5,): 3.0} | more)
    table = stratified(oracle.game, evaluations=2_000, rng=0)
    np.testing.assert_allclose(table.mean, oracle.delta, atol=1e-4)


def test_order_one_is_worse_there_and_another_order_is_refused():
    oracle = moebius(15, {(0,): 1.0, (1, 2): -2.0, (3, 4): 1.5, (5,): 3.0})
    first = stratified(oracle.game, evaluations=2_000, rng=0, order=1)
    assert np.abs(first.mean - oracle.delta).max() > 1e-3
    with pytest.raises(ValueError, match="`order` must be 1 or 2"):
        stratified(oracle.game, order=3)


def test_it_needs_a_third_of_the_evaluations_of_walks():
    rng = np.random.default_rng(0)
    terms = {
        tuple(rng.choice(14, order, replace=False)): rng.normal()
        for order in (1, 2, 2, 3)
        for _ in range(10)
    }
    oracle = moebius(14, terms)
    error = lambda table: np.sqrt(np.mean((table.mean - oracle.delta) ** 2))
    walks = np.mean(
        [error(permutation(oracle.game, evaluations=6_000, rng=seed)) for seed in range(3)]
    )
    strata = np.mean(
        [error(stratified(oracle.game, evaluations=2_000, rng=seed)) for seed in range(3)]
    )
    assert strata <= walks


@pytest.mark.parametrize(
    ("d", "budget"),
    [(7, 80), pytest.param(9, 300, marks=pytest.mark.slow)],
    ids=["single players", "interactions"],
)
def test_there_is_no_bias(d, budget):
    game = random_game(d)
    tables = [stratified(game, evaluations=budget, rng=seed).mean for seed in range(100)]
    error = np.mean(tables, axis=0) - exact(game).mean
    spread = np.std(tables, axis=0, ddof=1) / np.sqrt(100)
    assert (np.abs(error) <= 4 * spread + 1e-12).all()


def skewed(d, seed=0):
    """A game with strong interactions of every order."""
    slopes = np.random.default_rng(seed).normal(size=d)
    return FunctionGame(
        lambda coalitions: np.exp(coalitions @ slopes / 2) + coalitions[:, :3].all(axis=1), d
    )


def test_intervals_cover_the_truth():
    w = np.full(D, 1 / D)
    cells, phi = cover(
        lambda game, rng: stratified(game, evaluations=400, rng=rng), skewed(D), 50, w=w
    )
    assert 0.90 < cells < 0.99
    assert 0.90 < phi < 0.99


@pytest.mark.parametrize("seed", [0, 1])
def test_errors_are_honest_where_nearly_all_coalitions_are_drawn(seed):
    game = random_game(7, seed)
    truth = exact(game).mean
    beyond = []
    for draw in range(40):
        table = stratified(game, evaluations=120, rng=draw)
        sampled = np.isfinite(table.counts)
        beyond.append((np.abs(table.mean - truth) > 2 * table.standard_error)[sampled].mean())
    assert 0.01 < np.mean(beyond) < 0.08


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimate", "d", "budget", "repetitions"),
    [
        (permutation, 9, 2_500, 2_000),
        (stratified, 9, 480, 150),
        (stratified, 12, 1_200, 100),
        (stratified, 14, 1_600, 100),
    ],
    ids=[
        "permutation",
        "stratified, nearly all",
        "stratified, d = 12",
        "stratified, d = 14",
    ],
)
def test_intervals_cover_the_truth_in_many_repetitions(estimate, d, budget, repetitions):
    w = np.full(d, 1 / d)
    cells, phi = cover(
        lambda game, rng: estimate(game, evaluations=budget, rng=rng), skewed(d), repetitions, w=w
    )
    assert 0.92 < cells < 0.98
    assert 0.92 < phi < 0.98


def uneven(where, d=20):
    """A game whose interactions live among some sizes alone."""
    slopes = np.random.default_rng(1).normal(size=d)
    some = np.isin(np.arange(d + 1), where)
    return FunctionGame(
        lambda coalitions: some[coalitions.sum(axis=1)] * np.sin(3 * (coalitions @ slopes)), d
    )


@pytest.mark.parametrize("where", [range(10), range(7, 14)], ids=["small", "middle"])
def test_more_is_drawn_of_the_sizes_where_more_is_left_to_explain(where):
    game = CountingGame(uneven(list(where)))
    stratified(game, evaluations=3_000, rng=0, order=1)
    sizes = np.bincount(np.sum(game.asked, axis=1), minlength=21)
    others = np.setdiff1d(np.arange(3, 18), where)
    assert np.mean(sizes[[s for s in where if 3 <= s < 18]]) > 1.5 * np.mean(sizes[others])


@pytest.mark.parametrize("budget", [120, 800])
def test_coalitions_are_drawn_with_complements(budget):
    game = CountingGame(random_game(10))
    stratified(game, evaluations=budget, rng=0)
    complements = set(map(tuple, (~np.array(game.asked)).tolist()))
    assert all(tuple(coalition) in complements for coalition in game.asked)


def failing(calls, d=14):
    """A game that raises at one of its calls."""
    calm = random_game(d)
    asked = []

    def values(coalitions):
        asked.append(len(coalitions))
        if len(asked) == calls:
            raise RuntimeError("out of memory")
        return calm(coalitions)

    return FunctionGame(values, d)


@pytest.mark.parametrize("calls", [6, 14])
def test_what_was_sampled_before_a_game_raised_is_kept(calls):
    with pytest.raises(RuntimeError, match="out of memory") as caught:
        stratified(failing(calls), evaluations=3_000, rng=0)
    table = caught.value.contributions
    assert table.visited
    assert "RuntimeError: out of memory" in table.stopped
    assert 0 < table.evaluations < 3_000
    truth = exact(random_game(14)).mean
    assert (np.abs(table.mean - truth) <= 6 * table.standard_error + 1e-9).all()


def test_a_game_that_raises_at_once_has_nothing_to_keep():
    with pytest.raises(RuntimeError) as caught:
        stratified(failing(1), evaluations=3_000, rng=0)
    assert not hasattr(caught.value, "contributions")


def test_nan_from_the_game_is_refused():
    calm = random_game(14)
    game = FunctionGame(
        lambda coalitions: np.where(coalitions.sum(axis=1) == 7, np.nan, calm(coalitions)), 14
    )
    with pytest.raises(ValueError, match="NaN or infinite"):
        stratified(game, evaluations=1_000, rng=0)


def test_a_feature_in_none_of_the_draws_is_not_certain():
    table = stratified(random_game(8), evaluations=100, rng=0)
    assert (table.standard_error[np.isfinite(table.counts)] > 0).all()


@pytest.mark.parametrize("budget", [100, 300])
def test_a_noisy_game_is_noticed_and_its_errors_are_wider(budget):
    noise = np.random.default_rng(0)
    calm = random_game(8)
    game = FunctionGame(
        lambda coalitions: calm(coalitions) + noise.normal(scale=0.3, size=len(coalitions)), 8
    )
    with pytest.warns(UserWarning, match="different values for the same coalition"):
        table = stratified(game, evaluations=budget, rng=0)
    assert "noisy" in table.stopped
    assert (table.standard_error > 0.05).all()
    assert (table.standard_error_of(np.eye(8)[0]) > 0.05).all()
    assert not table.exact


def test_the_search_for_noise_is_within_the_budget_and_counted():
    game = CountingGame(random_game(8))
    assert stratified(game, evaluations=200).evaluations == len(game.asked) <= 200


@pytest.mark.parametrize("partner", [stratified, permutation])
def test_tables_of_different_draws_pool(partner):
    game = skewed(D)
    one = stratified(game, evaluations=300, rng=0)
    other = partner(game, evaluations=300, rng=1)
    both = one + other
    assert (
        both.standard_error <= np.maximum(one.standard_error, other.standard_error) + 1e-12
    ).all()
    assert both.adjusted
    assert np.isfinite(both.standard_error_of(np.full(D, 1 / D))).all()


def test_a_thousand_players_and_more_can_be_planned():
    plan = SamplingPlan.build(1_100, 10_000)
    assert 2 * plan.draws.sum() + len(plan.whole_size_coalitions()) <= 10_000


def test_the_last_digits_of_single_precision_are_not_noise():
    shake = np.random.default_rng(0)
    calm = random_game(8)
    game = FunctionGame(
        lambda coalitions: calm(coalitions) * (1 + 1e-7 * shake.normal(size=len(coalitions))), 8
    )
    assert "noisy" not in stratified(game, evaluations=200, rng=0).stopped
