"""Ensembles as arrays: how much is held at once, what no players give, and sets of categories as
bits."""

from dataclasses import replace

import numpy as np
import pytest

from tests.games.trees import deepest, random_ensemble, reference_value
from weightedshap.trees.ensembles import Tree, pack


def perfect(depth):
    """A tree with all splits down to a depth; node n has the children 2n + 1 and 2n + 2."""
    inner = 2**depth - 1
    n = 2 ** (depth + 1) - 1
    left = [2 * node + 1 if node < inner else -1 for node in range(n)]
    right = [2 * node + 2 if node < inner else -1 for node in range(n)]
    return pack([Tree(left, right, [0] * n, [0.5] * n, [False] * n, [1.0] * n, [1.0] * n)])


@pytest.mark.parametrize("depth", [0, 1, 2, 5])
def test_a_perfect_tree_holds_a_value_for_each_level_and_a_chain_one(depth):
    assert perfect(depth).lines == depth
    assert deepest(3, repeats=2).lines == 1


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_no_players_give_the_mean_by_cover_whatever_its_unit(scale):
    rng = np.random.default_rng(0)
    for _ in range(5):
        ensemble = random_ensemble(rng, 4, 5)
        scaled = replace(ensemble, cover=scale * ensemble.cover)
        expected = reference_value(ensemble, np.zeros(4), np.zeros(4, bool))
        assert scaled.mean_by_cover == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("left", [True, False])
def test_codes_of_a_set_go_its_way_and_all_others_the_other(left):
    codes = [0, 1, 31, 32, 63, 64, 100]
    stump = pack(
        [Tree([1, -1, -1], [2, -1, -1], 0, 0.0, False, [0, 1, 2], 1.0, False, {0: codes}, left)]
    )
    asked = np.arange(-2.0, 200)
    inside = np.isin(asked, codes)
    np.testing.assert_array_equal(stump.predict(asked[:, None]), np.where(inside == left, 1, 2))
