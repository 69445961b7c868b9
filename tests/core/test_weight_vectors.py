"""Vectors of weights: the grid of Beta weights, many players, pairs with games, equality."""

import numpy as np
import pytest

from weightedshap import weights
from weightedshap.weights import WeightFamily, shapley


def test_the_grid_of_beta_weights_is_of_powers_of_two():
    """Notices another default, and an empty or negative value that is let through."""
    powers = (1, 2, 4, 8, 16, 32)
    expected = {f"Beta({a},{b})" for a in powers for b in powers}
    assert set(weights.beta_grid(40).labels) == expected
    for values in ([], [1, -1], [0]):
        with pytest.raises(ValueError, match="`values` must be positive numbers"):
            weights.beta_grid(3, values)


def test_weights_of_many_players_do_not_overflow():
    """Notices exp without the largest subtracted."""
    steep = weights.beta(10_000, 1, 200).vectors[0]
    assert np.isfinite(steep).all()
    assert steep.argmax() == 9_999


def test_a_family_can_be_paired_with_games_and_compared():
    """Notices pairs in another order, a family that equals all, and a vector that is in no family
    but has an index."""
    family = weights.paper(3)
    pairs = family.pairs_with(["a", "b"])
    assert pairs.vectors.shape == (2 * len(family), 3)
    np.testing.assert_array_equal(pairs.vectors[len(family) :], family.vectors)
    assert not family.equals("paper")
    assert not family.equals(weights.sizes(3))
    assert family.equals(weights.paper(3))
    assert family.index(np.zeros(3)) is None


@pytest.mark.parametrize(("distance", "kept"), [(1e-3, 2), (1e-9, 2), (1e-14, 1)])
def test_vectors_are_equal_only_up_to_rounding(distance, kept):
    """Notices a tolerance of a hundredth."""
    near = WeightFamily(("near",), np.array([[0.5 + distance, 0.5 - distance]]))
    assert len(shapley(2) | near) == kept
