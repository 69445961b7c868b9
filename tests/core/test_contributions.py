"""The table Δ: its counts, its errors, and when two of them add up."""

import numpy as np
import pytest

from tests.oracles import random_game
from weightedshap.contributions import Chains, Contributions
from weightedshap.estimators import exact, permutation

D = 6


def draws_of(c=3, n=4, d=D, out=(), seed=0):
    """(c, n, d, d[, k]) raw draws."""
    return np.random.default_rng(seed).normal(size=(c, n, d, d, *out))


def chains_of(draws):
    """The chains after drawing one table after the other."""
    c, n, d = draws.shape[:3]
    ones = np.ones((c, d, d))
    state = Chains.empty(c, d, draws.shape[4:])
    for step in range(n):
        state = state + Chains(ones, draws[:, step], np.zeros_like(draws[:, step]))
    return state


def table_of(chains, ends=0.0):
    exact = np.full(chains.mean.shape[1:], np.nan)
    exact[[0, -1]] = ends
    return Contributions.from_chains(
        chains, exact, 10, "enough", frozenset([str(chains.mean.sum())])
    )


def sample(seed=0, evaluations=200, game=None, **choices):
    return permutation(
        random_game(D) if game is None else game, evaluations=evaluations, rng=seed, **choices
    )


@pytest.mark.parametrize("out", [(), (2,)])
def test_running_means_agree_with_the_draws_behind_them(out):
    draws = draws_of(out=out)
    chains = chains_of(draws)
    np.testing.assert_allclose(chains.mean, draws.mean(axis=1), atol=1e-14)
    np.testing.assert_allclose(chains.squares, draws.var(axis=1) * 4, atol=1e-13)
    assert (chains.counts == 4).all()


@pytest.mark.parametrize("out", [(), (2,)])
def test_pooled_chains_are_all_draws_in_one(out):
    draws = draws_of(out=out)
    pool = chains_of(draws).pooled()
    flat = draws.reshape(12, D, D, *out)
    np.testing.assert_allclose(pool.mean[0], flat.mean(axis=0), atol=1e-14)
    np.testing.assert_allclose(pool.squares[0], flat.var(axis=0) * 12, atol=1e-13)


def test_a_table_that_is_given_cost_nothing():
    table = Contributions(np.ones((3, 3)), np.full((3, 3), np.inf))
    assert (table.evaluations, table.stopped, table.exact) == (0, "exact", True)
    assert table.evaluations == Contributions.from_exact(table.mean).evaluations


def test_rounding_of_large_ends_does_not_keep_tables_from_being_pooled():
    """A Δ of 1e6 is known to ten digits, and so is the zero beside it."""
    one, other = (chains_of(draws_of(seed=seed)) for seed in (0, 1))
    ends = np.array([1e6, 0, 0, 0, 0, 1e6])
    pooled = table_of(one, ends) + table_of(other, ends + 1e-4)
    assert (pooled.counts[1:-1] == 24).all()
    with pytest.raises(ValueError, match="the games differ"):
        table_of(one, ends) + table_of(other, ends + 1e-1)


def test_adding_nothing_changes_nothing():
    chains = chains_of(draws_of())
    same = chains + Chains.empty(3, D)
    for one, other in zip(
        (chains.counts, chains.mean, chains.squares), (same.counts, same.mean, same.squares)
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("out", [(), (2,)])
def test_the_error_of_a_cell_is_that_of_a_mean_of_its_draws(out):
    draws = draws_of(out=out)
    flat = draws.reshape(12, D, D, *out)
    error = table_of(chains_of(draws)).standard_error
    np.testing.assert_allclose(
        error[1:-1], (flat.std(axis=0, ddof=1) / np.sqrt(12))[1:-1], atol=1e-14
    )
    assert (error[[0, -1]] == 0).all()


@pytest.mark.parametrize("out", [(), (2,)])
def test_the_error_of_phi_is_the_spread_over_the_chains(out):
    draws = draws_of(c=5, out=out)
    w = np.arange(1.0, D + 1) / 21
    phi = np.einsum("j,cji...->ci...", w[1:-1], draws.mean(axis=1)[:, 1:-1])
    expected = phi.std(axis=0, ddof=1) / np.sqrt(5)
    np.testing.assert_allclose(
        table_of(chains_of(draws)).standard_error_of(w), expected, atol=1e-14
    )


@pytest.mark.parametrize("out", [(), (2,)])
def test_a_chain_that_missed_a_cell_has_no_say_in_the_error_of_phi(out):
    whole = chains_of(draws_of(c=3, out=out))
    w = np.full(D, 1 / D)
    whole.counts[0, 2, 3], whole.mean[0, 2, 3] = 0, 0
    two = Chains(whole.counts[1:], whole.mean[1:], whole.squares[1:])
    np.testing.assert_allclose(
        table_of(whole).standard_error_of(w), table_of(two).standard_error_of(w)
    )
    two.counts[0, 2, 3] = 0
    nothing = table_of(two).standard_error_of(w)
    assert nothing.shape == (D, *out)
    assert np.isnan(nothing).all()
    assert (table_of(two).standard_error_of(np.eye(D)[1]) > 0).all()  # which does not use that cell


def test_weights_on_the_exact_ends_alone_have_no_error():
    w = np.zeros(D)
    w[[0, -1]] = 0.5
    assert (table_of(chains_of(draws_of())).standard_error_of(w) == 0).all()


def test_the_error_of_phi_is_unknown_with_one_chain():
    assert np.isnan(table_of(chains_of(draws_of(c=1))).standard_error_of(np.full(D, 1 / D))).all()


def test_the_error_of_a_cell_is_unknown_with_one_draw():
    assert np.isnan(table_of(chains_of(draws_of(c=1, n=1))).standard_error[1:-1]).all()


def test_an_exact_table_has_endless_counts_and_no_error():
    table = exact(random_game(4))
    assert table.exact
    assert table.visited
    assert np.isinf(table.counts).all()
    assert (table.standard_error == 0).all()
    assert (table.standard_error_of(np.full(4, 0.25)) == 0).all()
    assert table.replicates is None


def test_a_cell_never_visited_is_nan_and_not_zero():
    chains = chains_of(draws_of())
    chains.counts[:, 2, 1] = 0
    table = table_of(chains)
    assert np.isnan(table.mean[2, 1])
    assert np.isfinite(np.delete(table.mean.ravel(), 2 * D + 1)).all()
    assert table.counts[2, 1] == 0
    assert not table.visited
    assert np.isnan(table.replicates[:, 2, 1]).all()


def test_replicates_average_to_the_table():
    table = sample(evaluations=14 + 18 * 10)
    np.testing.assert_allclose(table.replicates.mean(axis=0), table.mean, atol=1e-12)


def test_two_tables_pool_into_the_count_weighted_mean():
    one = sample(0, 200)
    other = sample(1, 100)
    both = one + other
    weight = one.counts[1:-1] / (one.counts + other.counts)[1:-1]
    np.testing.assert_allclose(
        both.mean[1:-1], (weight * one.mean[1:-1] + (1 - weight) * other.mean[1:-1]), atol=1e-12
    )
    np.testing.assert_array_equal(both.mean[[0, -1]], one.mean[[0, -1]])
    assert both.evaluations == one.evaluations + other.evaluations


def test_two_tables_pool_as_if_drawn_together():
    draws = draws_of(seed=0)
    more = draws_of(seed=1)
    both = table_of(chains_of(draws)) + table_of(chains_of(more))
    together = table_of(chains_of(np.concatenate([draws, more])))
    np.testing.assert_allclose(both.mean, together.mean, atol=1e-14)
    np.testing.assert_allclose(both.standard_error, together.standard_error, atol=1e-14)
    w = np.full(D, 1 / D)
    np.testing.assert_allclose(both.standard_error_of(w), together.standard_error_of(w), atol=1e-14)


def test_pooling_does_not_depend_on_the_order():
    one = sample(0)
    other = sample(1)
    np.testing.assert_allclose((one + other).mean, (other + one).mean, atol=1e-14)


def test_pooling_says_both_reasons_for_stopping():
    stopped = (sample(0, 200) + sample(1, 100)).stopped
    assert "200" in stopped
    assert "100" in stopped


def test_the_same_draws_are_not_counted_twice():
    one = sample(0)
    other = sample(1)
    for twice in (one, other):
        with pytest.raises(ValueError, match="same random draws"):
            (one + other) + twice


def test_one_generator_used_twice_gives_draws_that_pool():
    rng = np.random.default_rng(0)
    both = sample(rng) + sample(rng)
    assert len(both.draws) == 2


@pytest.mark.parametrize("sampled_first", [True, False])
def test_an_exact_table_does_not_pool(sampled_first):
    pair = sample(), exact(random_game(D))
    one, other = pair if sampled_first else pair[::-1]
    with pytest.raises(ValueError, match="Cannot pool an exact table"):
        one + other


def test_tables_of_another_shape_do_not_pool():
    with pytest.raises(ValueError, match=r"shape \(6, 6\) with \(7, 7\)"):
        sample() + sample(1, game=random_game(7))


def test_tables_of_another_game_do_not_pool():
    with pytest.raises(ValueError, match="the games differ"):
        sample() + sample(1, game=random_game(D, seed=5))


def test_a_table_does_not_pool_with_something_else():
    with pytest.raises(TypeError):
        sample() + 1


@pytest.mark.parametrize("out", [(), (2,)])
def test_chains_of_draws_are_their_counts_means_and_squares(out):
    rng = np.random.default_rng(0)
    cells = rng.integers(2 * 9, size=40)
    draws = rng.normal(3.0, 1.0, size=(40, *out))
    chains = Chains.from_draws(cells, draws, 2, 3)
    for cell in range(2 * 9):
        chain = cell // 9
        j = cell // 3 % 3
        i = cell % 3
        own = draws[cells == cell]
        assert chains.counts[chain, j, i] == len(own)
        mean = own.mean(axis=0) if len(own) else np.zeros(out)
        np.testing.assert_allclose(chains.mean[chain, j, i], mean)
        np.testing.assert_allclose(
            chains.squares[chain, j, i], ((own - mean) ** 2).sum(axis=0), atol=1e-12
        )


def table_with_error(draws, error, seed):
    """A table of so many draws in every cell, whose standard error is given."""
    cells = np.full((2, 3, 3), draws / 2)
    mean = np.random.default_rng(seed).normal(size=(2, 3, 3))
    nothing = np.full((3, 3), np.nan)
    return Contributions.from_chains(
        Chains(cells, mean, mean**2),
        nothing,
        9,
        "a reason",
        frozenset([str(seed)]),
        np.full((3, 3), error),
    )


def test_pooled_errors_weigh_each_table_by_its_own_draws():
    """Notices n and m swapped."""
    pooled = table_with_error(10, 1.0, 0) + table_with_error(30, 2.0, 1)
    np.testing.assert_allclose(pooled.standard_error, np.hypot(10 * 1.0, 30 * 2.0) / 40)
    expected = (
        10 * table_with_error(10, 1.0, 0).mean + 30 * table_with_error(30, 2.0, 1).mean
    ) / 40
    np.testing.assert_allclose(pooled.mean, expected)
