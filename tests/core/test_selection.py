"""Algorithm 1: the argmax, ties, and weights that cannot be chosen."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.axioms.strategies import games
from tests.oracles import random_game
from weightedshap.estimators import exact
from weightedshap.estimators.estimate import standard_errors
from weightedshap.games.user import as_batch
from weightedshap.method import score_weights
from weightedshap.selection import best_weight, one_standard_error_weight, select, shared_weight
from weightedshap.utilities import as_utility, aup
from weightedshap.weights import WeightFamily, beta, first, paper, shapley, sizes

D = 5
RANDOM = random_game(D)
PAPER = paper(D)
UNIFORM = PAPER.labels.index("Beta(1,1)")


def scores(**of):
    """Scores of the paper's family: 0, except for the given positions."""
    values = np.zeros(len(PAPER))
    for position, score in of.items():
        values[int(position.removeprefix("at_"))] = score
    return values


def candidates_of(family, delta, replicates=None, game=RANDOM, utility=aup):
    """The candidates of one row of a game with one output, given its Δ (d, d)."""
    batch = as_batch(game)
    weights = family.with_references
    phi = weights.phi(delta)[None, ..., None]
    errors = None
    if replicates is not None:
        errors = standard_errors(replicates[None, ..., None], phi, weights)
    problem = SimpleNamespace(choices=family, utility=utility)
    return score_weights(problem, batch, game.values[-1:, None], batch, phi, errors)


def chosen_weight(family, delta, game=RANDOM, utility=aup):
    """What Algorithm 1 chooses, without the axes of rows and outputs."""
    found = vars(select(candidates_of(family, delta, None, game, utility), family))
    return SimpleNamespace(
        **{name: None if array is None else array[0, ..., 0] for name, array in found.items()}
    )


def test_the_highest_score_wins():
    assert best_weight(scores(at_3=1.0, at_7=2.0), PAPER) == 7


def test_negative_scores_are_compared_too():
    assert best_weight(scores(at_3=-1.0) - 5, PAPER) != 3


def test_if_all_are_tied_uniform_wins():
    assert best_weight(scores(), PAPER) == UNIFORM


def test_of_tied_weights_the_nearest_to_uniform_wins():
    assert PAPER.labels[best_weight(scores(at_1=1.0, at_9=1.0), PAPER)] == "Beta(1,8)"


@pytest.mark.parametrize("distance", range(1, 7))
def test_mirrored_weights_tie_exactly_and_the_lower_index_wins(distance):
    low = UNIFORM - distance
    high = UNIFORM + distance
    assert best_weight(scores(**{f"at_{high}": 1.0, f"at_{low}": 1.0}), PAPER) == low


@pytest.mark.parametrize("d", [2, 3, 10, 61, 200])
def test_mirrored_weights_tie_for_any_number_of_players(d):
    family = paper(d)
    values = np.zeros(13)
    values[[2, 10]] = 1.0
    assert best_weight(values, family) == 2


@pytest.mark.parametrize(("gap", "tied"), [(0.5e-12, True), (2e-12, False)])
@pytest.mark.parametrize("best", [1.0, -1.0, 1e6, -1e6])
def test_scores_within_a_hair_of_the_best_are_tied(gap, tied, best):
    values = np.full(13, best - abs(best))
    values[3], values[UNIFORM] = best, best - gap * abs(best)
    assert best_weight(values, PAPER) == (UNIFORM if tied else 3)


def test_every_row_is_decided_by_itself():
    assert best_weight(
        np.stack([scores(at_3=1.0), scores(), scores(at_12=1.0)]), PAPER
    ).tolist() == [3, UNIFORM, 12]


def test_a_weight_without_a_score_cannot_be_chosen():
    values = np.full(13, np.nan)
    values[[0, 12]] = -5.0, -4.0
    assert best_weight(values, PAPER) == 12


def test_no_score_at_all_is_an_error():
    with pytest.raises(ValueError, match="No weight of the family has a score"):
        best_weight(np.full((2, 13), np.nan), PAPER)


@given(game=games(2, 5))
def test_selection_is_the_argmax_of_the_utility(game):
    family = paper(game.d)
    f_x = game.values[-1]
    chosen = chosen_weight(family, exact(game).mean, game)
    phi = family.phi(exact(game).mean)
    by_hand = np.array([aup(game, f_x)(phi[m : m + 1])[0] for m in range(len(family))])
    assert chosen.scores[chosen.index] == pytest.approx(by_hand.max(), rel=1e-12)
    np.testing.assert_array_equal(chosen.weights, family.vectors[chosen.index])
    np.testing.assert_allclose(chosen.values, chosen.weights @ exact(game).mean, atol=1e-12)
    np.testing.assert_allclose(chosen.curves[1:].sum(), -by_hand.max(), rtol=1e-12)
    np.testing.assert_allclose(chosen.shapley, exact(game).mean.mean(axis=0), atol=1e-12)


@given(
    game=games(2, 5),
    extra=st.lists(st.tuples(st.floats(0.2, 9), st.floats(0.2, 9)), min_size=1, max_size=4),
)
def test_more_weights_never_choose_worse(game, extra):
    delta = exact(game).mean
    small = shapley(game.d)
    large = small
    for a, b in extra:
        large = large | beta(game.d, a, b)
    few, many = (chosen_weight(family, delta, game) for family in (small, large))
    assert many.scores[many.index] >= few.scores[few.index]


def test_references_are_joined_where_the_family_lacks_them():
    assert sizes(3).with_references.labels == ("size 1", "size 2", "size 3", "Shapley")
    assert paper(3).with_references.labels == paper(3).labels


def test_candidates_know_their_references():
    family = WeightFamily(("mine",), np.array([[0.0, 0.5, 0.5, 0.0, 0.0]]))
    delta = exact(random_game(D)).mean
    found = candidates_of(family, delta)
    assert found.scores.shape == (1, 1, 1)
    uniform, alone, left_out = (
        found.phi[0, position, :, 0] for position in family.reference_positions
    )
    np.testing.assert_allclose(uniform, delta.mean(axis=0))
    np.testing.assert_allclose(alone, delta[0])
    np.testing.assert_allclose(left_out, delta[-1])
    assert found.errors is None


def test_a_weight_on_an_unvisited_size_cannot_be_chosen():
    delta = exact(random_game(D)).mean.copy()
    delta[2, 1] = np.nan
    third = as_utility(lambda game, f_x: lambda phi: np.array([0.0, 0.0, 1.0, 0.0, 0.0]))
    chosen = chosen_weight(sizes(D), delta, utility=third)
    assert np.isnan(chosen.scores[2])
    assert sizes(D).labels[chosen.index] == "size 1"


def test_candidates_on_an_unvisited_size_have_no_score_and_no_curve():
    delta = exact(random_game(D)).mean.copy()
    delta[2, 1] = np.nan
    found = candidates_of(sizes(D), delta)
    assert np.isnan(found.scores[0, :, 0]).tolist() == [False, False, True, False, False]
    assert np.isnan(found.curves[0, :D, :, 0]).all(axis=1).tolist() == [
        False,
        False,
        True,
        False,
        False,
    ]


def test_errors_come_from_the_chains_that_visited_all_cells_a_weight_uses():
    rng = np.random.default_rng(0)
    replicates = rng.normal(size=(4, D, D))
    replicates[3, 2, 0] = np.nan
    delta = np.nanmean(replicates, axis=0)
    errors = candidates_of(shapley(D) | first(D), delta, replicates).errors[0, ..., 0]
    complete = replicates[:3].mean(axis=1)
    np.testing.assert_allclose(errors[0], complete.std(axis=0, ddof=1) / np.sqrt(3))
    np.testing.assert_allclose(errors[1], replicates[:, 0].std(axis=0, ddof=1) / np.sqrt(4))


def test_the_error_is_unknown_where_one_chain_is_all_there_is():
    replicates = np.full((3, D, D), np.nan)
    replicates[0] = 1.0
    errors = candidates_of(shapley(D), np.ones((D, D)), replicates).errors
    assert np.isnan(errors).all()


def noisy_scores(gain, spread, n=40):
    """Scores (n, m) alike for all weights but one, which gains over the others, more in some rows
    than in others."""
    rng = np.random.default_rng(0)
    table = np.repeat(rng.normal(size=(n, 1)), len(PAPER), axis=1)
    noise = rng.normal(size=n)
    table[:, 2] += gain + spread * (noise - noise.mean())
    return table


def test_a_careful_choice_keeps_shapley_within_noise():
    table = noisy_scores(gain=0.05, spread=1.0)
    assert shared_weight(table, PAPER) != UNIFORM
    assert one_standard_error_weight(table, PAPER) == UNIFORM


def test_a_careful_choice_takes_what_is_better_beyond_noise():
    assert one_standard_error_weight(noisy_scores(gain=1.0, spread=0.1), PAPER) == 2


def test_a_careful_choice_from_one_row_keeps_shapley():
    assert one_standard_error_weight(noisy_scores(gain=1.0, spread=0.1, n=1), PAPER) == UNIFORM


def test_a_careful_choice_never_takes_a_weight_without_scores():
    table = noisy_scores(gain=0.0, spread=1.0)
    table[:, UNIFORM] = np.nan
    assert one_standard_error_weight(table, PAPER) != UNIFORM


def test_one_row_without_a_score_is_refused_and_two_rows_have_a_standard_error():
    """Notices an error only where all rows lack a score, and a standard error from three rows
    on."""
    family = WeightFamily(("last", "Shapley"), np.array([[0.0, 1.0], [0.5, 0.5]]))
    with pytest.raises(ValueError, match="No weight of the family has a score"):
        best_weight(np.array([[np.nan, np.nan], [1.0, 2.0]]), family)
    assert one_standard_error_weight(np.array([[0.0, -1.0], [0.0, -1.0]]), family) == 0


@pytest.mark.parametrize(("behind", "chosen"), [(0.9, 1), (1.1, 0), (1.9, 0)])
def test_the_careful_choice_allows_exactly_one_standard_error(behind, chosen):
    """Notices two standard errors, or the deviation in their place."""
    rng = np.random.default_rng(0)
    gap = rng.normal(size=50)
    gap = (gap - gap.mean()) / gap.std(ddof=1)  # mean 0, deviation 1
    error = 1 / np.sqrt(50)
    scores = np.stack(
        [np.zeros(50), -behind * error - gap], axis=1
    )  # the second is so many errors behind
    family = WeightFamily(("last", "Shapley"), np.array([[0.0, 1.0], [0.5, 0.5]]))
    assert one_standard_error_weight(scores, family) == chosen
