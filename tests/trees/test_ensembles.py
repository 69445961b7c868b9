"""Ensembles as arrays: how much is held at once, what no players give, and sets of categories as
bits."""

from dataclasses import replace
from math import comb

import numpy as np
import pytest

from tests.trees.random_ensembles import (
    deep_chain,
    ensembles_of_the_same_nodes,
    random_ensemble,
    reference_value,
)
from weightedshap.trees import ensembles
from weightedshap.trees.ensembles import Tree, coefficient_table, pack_trees
from weightedshap.trees.kernels.leaf_lists import level


def perfect(depth):
    """A tree with all splits down to a depth; node n has the children 2n + 1 and 2n + 2."""
    inner = 2**depth - 1
    n = 2 ** (depth + 1) - 1
    left = [2 * node + 1 if node < inner else -1 for node in range(n)]
    right = [2 * node + 2 if node < inner else -1 for node in range(n)]
    return pack_trees([Tree(left, right, [0] * n, [0.5] * n, [False] * n, [1.0] * n, [1.0] * n)])


@pytest.mark.parametrize("depth", [0, 1, 2, 5])
def test_a_perfect_tree_holds_a_value_for_each_level_and_a_chain_one(depth):
    assert perfect(depth).stack_size == depth
    assert deep_chain(3, repeats=2).stack_size == 1


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_no_players_give_the_mean_by_cover_whatever_its_unit(scale):
    rng = np.random.default_rng(0)
    for _ in range(5):
        ensemble = random_ensemble(rng, 4, 5)
        scaled = replace(ensemble, cover=scale * ensemble.cover)
        expected = reference_value(ensemble, np.zeros(4), np.zeros(4, bool))
        assert scaled.mean_by_cover == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("left", [True, False])
def test_categories_of_a_set_go_to_its_side_and_all_others_to_the_other(left):
    codes = [0, 1, 31, 32, 63, 64, 100]
    stump = pack_trees(
        [Tree([1, -1, -1], [2, -1, -1], 0, 0.0, False, [0, 1, 2], 1.0, False, {0: codes}, left)]
    )
    asked = np.arange(-2.0, 200)
    inside = np.isin(asked, codes)
    np.testing.assert_array_equal(stump.predict(asked[:, None]), np.where(inside == left, 1, 2))


@pytest.mark.parametrize("n", [1, 511, 512, 513, 2000])
def test_the_value_of_a_masked_row_does_not_depend_on_the_others(n):
    rng = np.random.default_rng(n)
    d = 5
    ensemble = random_ensemble(rng, d, 6)
    X = rng.normal(size=(n, d)) * 2
    row = rng.permutation(n)
    coalition = rng.random((n, d)) < 0.5
    alone = [ensemble.masked_values(X, row[t : t + 1], coalition[t : t + 1])[0] for t in range(n)]
    np.testing.assert_array_equal(ensemble.masked_values(X, row, coalition), alone)


@pytest.mark.parametrize("d", [1, 2, 3, 7, 12])
def test_coefficients_are_ratios_of_binomials(d):
    table = coefficient_table(d, d)
    for s in range(1, d + 1):
        for t in range(1, s + 1):
            expected = [
                comb(d - s, j - t) / comb(d - 1, j - 1) if j >= t else 0.0 for j in range(1, d + 1)
            ]
            np.testing.assert_allclose(table[level(s) + t - 1], expected, rtol=1e-13)


def test_coefficients_neither_overflow_nor_lose_digits_at_three_thousand_players():
    d = 3000
    s = 60
    t = 30
    table = coefficient_table(d, 60)
    exact = [
        float(comb(d - s, j - t) * 10**40 // comb(d - 1, j - 1)) / 1e40 for j in (100, 1500, 2900)
    ]
    ours = table[level(s) + t - 1][[99, 1499, 2899]]
    np.testing.assert_allclose(ours, exact, rtol=1e-12, atol=1e-38)


def test_only_ensembles_with_the_same_nodes_are_put_together():
    rng = np.random.default_rng(0)
    first = random_ensemble(rng, 5, 6)
    second = random_ensemble(rng, 5, 6)
    same = ensembles_of_the_same_nodes(rng, first, 2)
    covers = replace(first, cover=first.cover + 1)
    single = replace(first, single=True)
    found = ensembles.group_by_nodes([first, *same, second, first, covers, single])
    assert [len(some) for some in found] == [3, 1, 1, 1, 1]
    assert ensembles.group_by_nodes([]) == []
