"""Tests of weight families: formulas in exact arithmetic, symmetries, joins, what is refused."""

from fractions import Fraction
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightedshap import weights
from weightedshap._checks import UnknownNameError
from weightedshap.weights import (
    WeightFamily,
    as_family,
    banzhaf,
    beta,
    beta_grid,
    first,
    last,
    paper,
    shapley,
    sizes,
)

parameters = st.integers(1, 40)


def rising_factorial(x, n):
    """Return x (x + 1) … (x + n − 1), so that Γ(x + n) = rising_factorial(x, n) · Γ(x)."""
    return prod((x + i for i in range(n)), start=Fraction(1))


def rational_beta(d, alpha, beta):
    """Return C(d−1, j−1)·B(j+β−1, d−j+α)/B(α, β) as fractions, for rational α and β."""
    alpha = Fraction(alpha)
    beta = Fraction(beta)
    total = rising_factorial(alpha + beta, d - 1)
    return [
        comb(d - 1, j - 1) * rising_factorial(beta, j - 1) * rising_factorial(alpha, d - j) / total
        for j in range(1, d + 1)
    ]


@given(d=st.integers(1, 60), alpha=parameters, beta_=parameters)
def test_beta_weights_agree_with_rational_arithmetic(d, alpha, beta_):
    exact = rational_beta(d, alpha, beta_)
    assert sum(exact) == 1
    np.testing.assert_allclose(
        beta(d, alpha, beta_).vectors[0], np.array(exact, dtype=float), rtol=1e-11
    )


@pytest.mark.parametrize(("alpha", "beta_"), [(0.5, 0.5), (0.25, 3.5), (7.5, 0.125)])
def test_beta_weights_of_fractional_parameters_agree_with_rational_arithmetic(alpha, beta_):
    exact = np.array(rational_beta(12, alpha, beta_), dtype=float)
    np.testing.assert_allclose(beta(12, alpha, beta_).vectors[0], exact, rtol=1e-12)


@pytest.mark.parametrize(("alpha", "beta_"), weights.PAPER_PAIRS)
def test_beta_weights_are_right_at_five_thousand_players(alpha, beta_):
    d = 5_000
    vector = beta(d, alpha, beta_).vectors[0]
    assert np.isfinite(vector).all()
    assert vector.sum() == pytest.approx(1, abs=1e-12)
    ratios = [float(r) for r in _rational_ends(d, alpha, beta_)]
    np.testing.assert_allclose(vector[[0, -1]], ratios, rtol=1e-9, atol=1e-300)


def _rational_ends(d, alpha, beta_):
    total = rising_factorial(Fraction(alpha + beta_), d - 1)
    return rising_factorial(Fraction(alpha), d - 1) / total, rising_factorial(
        Fraction(beta_), d - 1
    ) / total


@given(d=st.integers(1, 300), alpha=st.floats(0.1, 50), beta_=st.floats(0.1, 50))
def test_beta_reversed_is_beta_with_its_parameters_swapped(d, alpha, beta_):
    vector = beta(d, alpha, beta_).vectors[0]
    swapped = beta(d, beta_, alpha).vectors[0]
    np.testing.assert_allclose(vector[::-1], swapped, rtol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3, 17, 5_000])
def test_beta_one_one_is_uniform(d):
    np.testing.assert_allclose(beta(d, 1, 1).vectors, shapley(d).vectors, rtol=1e-10)


def test_beta_sixteen_one_favours_small_coalitions():
    vector = beta(10, 16, 1).vectors[0]
    assert (np.diff(vector) < 0).all()


@pytest.mark.parametrize(("alpha", "beta_"), [(0, 1), (1, 0), (-1, 2), (np.nan, 1), (1, np.inf)])
def test_beta_refuses_parameters_that_are_not_positive(alpha, beta_):
    with pytest.raises(ValueError, match=r"`(alpha|beta)` must be a number above 0"):
        beta(4, alpha, beta_)


@pytest.mark.parametrize("d", [1, 2, 7, 40])
def test_banzhaf_weights_count_the_coalitions_of_each_size(d):
    exact = [comb(d - 1, j - 1) / 2 ** (d - 1) for j in range(1, d + 1)]
    np.testing.assert_allclose(banzhaf(d).vectors[0], exact, rtol=1e-12)


def test_weighted_banzhaf_is_binomial():
    exact = [comb(4, j) * 0.3**j * 0.7 ** (4 - j) for j in range(5)]
    np.testing.assert_allclose(banzhaf(5, 0.3).vectors[0], exact, rtol=1e-12)


@pytest.mark.parametrize(("p", "end"), [(0, first), (1, last)])
def test_banzhaf_at_its_ends_is_first_and_last(p, end):
    np.testing.assert_array_equal(banzhaf(6, p).vectors, end(6).vectors)


@pytest.mark.parametrize("p", [-0.1, 1.1, np.nan])
def test_banzhaf_refuses_numbers_that_are_no_probability(p):
    with pytest.raises(ValueError, match="0 ≤ p ≤ 1"):
        banzhaf(4, p)


def test_banzhaf_is_stable_at_five_thousand_players():
    vector = banzhaf(5_000, 0.3).vectors[0]
    assert vector.sum() == pytest.approx(1, abs=1e-12)
    assert vector @ np.arange(5_000) == pytest.approx(4_999 * 0.3)


def test_the_papers_family_has_its_thirteen_weights_in_order():
    labels = paper(8).labels
    middle = [f"Beta({a},{b})" for a, b in weights.PAPER_PAIRS]
    assert labels == ("first", *middle, "last")
    assert len(labels) == 13


def test_the_papers_family_of_one_player_is_one_weight():
    assert paper(1).vectors.tolist() == [[1.0]]


def test_mirrored_weights_of_the_paper_are_each_others_reverse():
    vectors = paper(9).vectors
    np.testing.assert_allclose(vectors[:, ::-1], vectors[::-1], rtol=1e-12)


def test_sizes_first_and_last_pick_one_size():
    np.testing.assert_array_equal(sizes(3).vectors, np.eye(3))
    assert first(3).vectors.tolist() == [[1, 0, 0]]
    assert last(3).vectors.tolist() == [[0, 0, 1]]


def test_a_grid_holds_each_pair_once_from_small_coalitions_to_large():
    family = beta_grid(6, (1, 2, 4))
    assert len(family) == 9
    means = family.vectors @ np.arange(6)
    assert means[0] == means.min()
    assert means[-1] == means.max()


def test_a_join_keeps_the_order_and_the_first_label_of_equal_vectors():
    joined = shapley(4) | beta(4, 1, 1) | last(4) | sizes(4)
    assert joined.labels == ("Shapley", "last", "size 1", "size 2", "size 3")


def test_families_for_different_players_do_not_join():
    with pytest.raises(ValueError, match="d = 3 with weights for d = 4"):
        shapley(3) | shapley(4)


def test_a_family_does_not_join_with_something_else():
    with pytest.raises(TypeError):
        shapley(3) | np.ones(3)


@pytest.mark.parametrize("vector", [[0.5, -0.5, 1.0], [np.nan, 0.5, 0.5], [np.inf, 0, 0]])
def test_negative_or_infinite_weights_are_refused_by_label(vector):
    with pytest.raises(ValueError, match="finite and not negative; 'mine' is not"):
        WeightFamily(("uniform", "mine"), np.array([[1 / 3] * 3, vector]))


def test_weights_that_do_not_sum_to_one_are_refused_by_label():
    with pytest.raises(ValueError, match=r"sum to one; 'mine' sums to 1\.5"):
        WeightFamily(("uniform", "mine"), np.array([[0.5, 0.5], [0.75, 0.75]]))


@pytest.mark.parametrize(
    ("labels", "vectors"),
    [(("a", "b"), np.eye(3)), ((), np.empty((0, 3))), (("a",), np.empty((1, 0)))],
)
def test_a_family_has_one_label_for_each_vector(labels, vectors):
    with pytest.raises(ValueError, match="one label for each row"):
        WeightFamily(labels, vectors)


def test_a_family_cannot_be_changed_from_outside():
    mine = np.eye(2)
    family = WeightFamily(("a", "b"), mine)
    mine[0] = 7
    np.testing.assert_array_equal(family.vectors, np.eye(2))
    with pytest.raises(ValueError, match="read-only"):
        family.vectors[0] = 7


def test_phi_is_the_weighted_sum_over_sizes():
    delta = np.arange(9.0).reshape(3, 3)
    np.testing.assert_array_equal(sizes(3).phi(delta), delta)
    np.testing.assert_allclose(shapley(3).phi(delta), [[3, 4, 5]])
    np.testing.assert_allclose(
        shapley(3).phi(np.stack([delta, 2 * delta])), [[[3, 4, 5]], [[6, 8, 10]]]
    )


def test_phi_is_nan_only_where_a_weight_uses_an_unvisited_cell():
    delta = np.ones((3, 3))
    delta[1, 2] = np.nan
    phi = (first(3) | shapley(3)).phi(delta)
    np.testing.assert_array_equal(phi, [[1, 1, 1], [1, 1, np.nan]])


@pytest.mark.parametrize("family", ["paper", paper, paper(5)])
def test_a_family_is_taken_as_name_function_or_object(family):
    np.testing.assert_array_equal(as_family(family, 5).vectors, paper(5).vectors)


def test_the_error_for_an_unknown_family_suggests_the_most_similar():
    with pytest.raises(UnknownNameError, match="Did you mean 'paper'"):
        as_family("papre", 5)


def test_a_family_for_other_players_is_refused():
    with pytest.raises(ValueError, match="made for d = 4 players but the game has 5"):
        as_family(paper(4), 5)


@pytest.mark.parametrize("family", [3, np.eye(5), lambda d: np.eye(d)])
def test_anything_else_is_no_family(family):
    with pytest.raises(TypeError, match="a name, a WeightFamily, or a function"):
        as_family(family, 5)


@pytest.mark.parametrize(
    "make", [paper, sizes, first, last, shapley, banzhaf, lambda d: beta(d, 1, 2)]
)
@pytest.mark.parametrize("d", [0, -1, 2.0])
def test_the_number_of_players_is_a_positive_integer(make, d):
    with pytest.raises(ValueError, match="`d` must be an integer of at least 1"):
        make(d)
