"""Stopping rules: what each looks at, how they join, and the reasons they give."""

import numpy as np
import pytest

from weightedshap.contributions import Chains
from weightedshap.estimators.stopping import (
    Progress,
    as_rule,
    evaluations,
    gelman_rubin,
    rhat,
    seconds,
    standard_error,
    visited,
)
from weightedshap.weights import first, shapley

D = 5


def chains_of(draws):
    """Chains behind raw draws (c, n, d, d[, k])."""
    c, n, d = draws.shape[:3]
    mean = draws.mean(axis=1)
    return Chains(np.full((c, d, d), float(n)), mean, ((draws - mean[:, None]) ** 2).sum(axis=1))


def draws_of(c=4, n=50, out=(), seed=0):
    return np.random.default_rng(seed).normal(size=(c, n, D, D, *out))


def progress(draws=None, spent=100, time=1.0, ends=None):
    draws = draws_of() if draws is None else draws
    ends = np.zeros((2, D, *draws.shape[4:])) if ends is None else ends
    return Progress(chains_of(draws), ends, spent, time)


@pytest.mark.parametrize("out", [(), (2,)])
def test_rhat_is_its_definition_on_the_raw_draws(out):
    draws = draws_of(out=out)
    c, n = draws.shape[:2]
    within = np.mean([draws[chain].var(axis=0, ddof=1) for chain in range(c)], axis=0)
    between_over_n = draws.mean(axis=1).var(axis=0, ddof=1)
    expected = np.sqrt((n - 1) / n + between_over_n / within)
    np.testing.assert_allclose(rhat(chains_of(draws)), expected, rtol=1e-12)


def test_a_cell_constant_in_all_chains_has_rhat_one():
    draws = draws_of()
    draws[:, :, 2, 3] = 7.0
    assert rhat(chains_of(draws))[2, 3] == 1


def test_chains_stuck_at_different_constants_have_endless_rhat():
    draws = draws_of()
    draws[:, :, 2, 3] = np.arange(4.0)[:, None]
    assert np.isinf(rhat(chains_of(draws))[2, 3])


@pytest.mark.parametrize("count", [0.0, 1.0])
def test_fewer_than_two_draws_in_one_chain_are_not_converged(count):
    chains = chains_of(np.zeros((4, 50, D, D)))
    chains.counts[1, 2, 3] = count
    assert np.isinf(rhat(chains)[2, 3])
    assert gelman_rubin(1.5, chains=4)(Progress(chains, np.zeros((2, D)), 100, 1.0)) is None


def test_gelman_rubin_looks_at_the_worst_inner_cell():
    draws = draws_of()
    inner = rhat(chains_of(draws))[1:-1].max()
    assert gelman_rubin(inner * 0.9999, chains=4)(progress(draws)) is None
    assert gelman_rubin(inner * 1.0001, chains=4)(progress(draws)).startswith(
        f"largest R-hat {inner:.5f} <"
    )


def test_gelman_rubin_does_not_look_at_the_exact_ends():
    draws = draws_of()
    draws[:, :, [0, -1]] += 100 * np.arange(4.0)[:, None, None, None]
    assert "over 15 cells in 4 chains" in gelman_rubin(1.5, chains=4)(progress(draws))


def test_gelman_rubin_has_the_papers_defaults():
    rule = gelman_rubin()
    assert rule.chains == 10
    draws = draws_of(c=10, n=2_000)
    assert 1 < rhat(chains_of(draws)).max() < 1.005
    assert "1.005" in rule(progress(draws))


@pytest.mark.parametrize("threshold", [1.0, 0.9, np.nan])
def test_gelman_rubin_refuses_a_threshold_that_cannot_be_met(threshold):
    with pytest.raises(ValueError, match="must be a number above 1"):
        gelman_rubin(threshold)


@pytest.mark.parametrize("chains", [0, 1, 2.5])
def test_gelman_rubin_needs_two_chains(chains):
    with pytest.raises(ValueError, match=r"at least two|`chains` must be an integer"):
        gelman_rubin(chains=chains)


def range_of(state):
    """The largest error of φ over its range, computed by hand."""
    w = np.full(D, 1 / D)
    phi = w @ state.contributions.mean
    return float(state.contributions.standard_error_of(w).max() / (phi.max() - phi.min()))


def test_standard_error_compares_the_largest_error_of_phi_with_its_range():
    state = progress()
    ratio = range_of(state)
    assert standard_error(ratio * 0.999)(state) is None
    assert standard_error(ratio * 1.001)(state).startswith(
        f"largest standard error is {ratio:.4f} of the range of φ"
    )


def test_standard_error_looks_at_every_weight_of_a_family():
    state = progress(ends=np.tile(np.arange(5.0), (2, 1)))
    assert standard_error(1e-9, first(D))(state) is not None
    assert standard_error(1e-9, first(D) | shapley(D))(state) is None


def test_standard_error_looks_at_every_output():
    steady = np.zeros((4, 50, D, D))
    noisy = draws_of()
    ends = np.zeros((2, D, 2))
    assert (
        standard_error(0.01)(progress(np.stack([steady, steady], axis=-1), ends=ends)) is not None
    )
    assert standard_error(0.01)(progress(np.stack([steady, noisy], axis=-1), ends=ends)) is None


def test_a_constant_phi_without_error_counts_as_reached():
    assert standard_error()(progress(np.ones((4, 50, D, D)), ends=np.ones((2, D)))) is not None


def test_an_error_that_is_not_known_yet_is_not_reached():
    assert standard_error(1e9)(progress(draws_of(c=1))) is None
    nothing = Progress(Chains.empty(4, D), np.zeros((2, D)), 12, 0.0)
    assert standard_error(1e9)(nothing) is None


@pytest.mark.parametrize("tolerance", [0, -1, np.nan])
def test_standard_error_refuses_a_tolerance_that_cannot_be_met(tolerance):
    with pytest.raises(ValueError, match="`tolerance` must be a number above 0"):
        standard_error(tolerance)


def test_evaluations_stop_at_their_number():
    rule = evaluations(1_000)
    assert rule.budget == 1_000
    assert rule(progress(spent=999)) is None
    assert rule(progress(spent=1_000)) == "budget of 1,000 evaluations used"


@pytest.mark.parametrize("n", [0, -1, 2.5])
def test_evaluations_are_a_positive_integer(n):
    with pytest.raises(ValueError, match="`evaluations` must be an integer"):
        evaluations(n)


def test_seconds_stop_when_they_have_passed():
    rule = seconds(2.5)
    assert rule(progress(time=2.4)) is None
    assert rule(progress(time=2.5)) == "2.5 seconds passed"


@pytest.mark.parametrize("s", [0, -1, np.nan])
def test_seconds_are_positive(s):
    with pytest.raises(ValueError, match="`seconds` must be a number above 0"):
        seconds(s)


yes = lambda state: "yes"
no = lambda state: None


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (as_rule(yes) | no, "yes"),
        (as_rule(no) | yes, "yes"),
        (as_rule(no) | no, None),
        (as_rule(yes) & no, None),
        (as_rule(no) & yes, None),
        (as_rule(yes) & yes, "yes and yes"),
        (yes | as_rule(no), "yes"),
        (yes & as_rule(no), None),
        ((as_rule(yes) & yes) | no, "yes and yes"),
    ],
)
def test_rules_and_functions_join(rule, reason):
    assert rule(progress()) == reason


@pytest.mark.parametrize(
    ("rule", "budget"),
    [
        (evaluations(5) | evaluations(3), 3),
        (evaluations(5) & evaluations(3), 5),
        (evaluations(5) | yes, 5),
        (evaluations(5) & yes, None),
        ((evaluations(5) & yes) | evaluations(9), 9),
    ],
)
def test_a_budget_is_hard_only_where_reaching_it_is_enough(rule, budget):
    assert rule.budget == budget


def test_joined_rules_see_the_larger_number_of_chains():
    assert (gelman_rubin(chains=4) | gelman_rubin(chains=6)).chains == 6
    assert (gelman_rubin(chains=4) & seconds(1)).chains == 4
    assert (seconds(1) | evaluations(3)).chains is None


@pytest.mark.parametrize("rule", [3, None, "soon"])
def test_anything_else_is_no_rule(rule):
    with pytest.raises(TypeError, match="must be a stopping rule or a function"):
        as_rule(rule)
    with pytest.raises(TypeError, match="must be a stopping rule or a function"):
        seconds(1) | rule


def test_pooled_gelman_rubin_is_its_definition_on_each_features_draws_of_all_sizes():
    draws = draws_of()
    series = draws.reshape(4, -1, D)  # (chains, draws of all sizes, features)
    n = series.shape[1]
    within = series.var(axis=1, ddof=1).mean(axis=0)
    between = series.mean(axis=1).var(axis=0, ddof=1)
    expected = np.sqrt((n - 1) / n + between / within)
    np.testing.assert_allclose(rhat(chains_of(draws).pooled(axis=1))[0], expected, rtol=1e-12)
    largest = expected.max()
    assert gelman_rubin(largest * 0.9999, chains=4, pooled=True)(progress(draws)) is None
    assert "over 5 features in 4 chains" in gelman_rubin(largest * 1.0001, chains=4, pooled=True)(
        progress(draws)
    )


def test_gelman_rubin_looks_only_after_every_so_many_orders():
    draws = draws_of()  # 4 chains of 50 tables of 5 sizes: 1,000 orders
    assert gelman_rubin(2.0, chains=4, every=100)(progress(draws)) is not None
    assert gelman_rubin(2.0, chains=4, every=300)(progress(draws)) is None


def test_a_budget_is_the_same_on_either_side():
    for rule in (evaluations(500) | standard_error(), standard_error() | evaluations(500)):
        assert rule.budget == 500
    assert (evaluations(500) & evaluations(300)).budget == 500
    assert (evaluations(500) & standard_error()).budget is None


def test_all_cells_but_those_of_the_ends_have_to_be_visited():
    chains = chains_of(draws_of())
    chains.counts[:, [0, -1]] = 0
    assert visited()(Progress(chains, np.zeros((2, D)), 100, 1.0)) == "every cell visited"
    chains.counts[1:, 2, 3] = 0
    assert visited()(Progress(chains, np.zeros((2, D)), 100, 1.0)) == "every cell visited"
    chains.counts[:, 2, 3] = 0
    assert visited()(Progress(chains, np.zeros((2, D)), 100, 1.0)) is None
