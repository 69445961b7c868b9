"""Trees on more players than the bits of a word: leaves and patterns of up to 90 players."""

import numpy as np
import pytest

from tests.trees.random_ensembles import deep_chain, random_ensemble
from weightedshap.games.tree_batch import background_batches, path_dependent_batches
from weightedshap.inputs.rows import Rows
from weightedshap.trees.ensembles import Tree, pack_trees


def batch_of(factory, X):
    """The games of rows X (n, d), of no fitted game."""
    return factory(None, Rows(X), X)


@pytest.mark.parametrize("d", [11, 13, 30, 63, 64, 65, 90])
def test_leaves_of_many_players_give_the_mean_over_the_background(d):
    """Patterns of more than 12 players, which are sorted, and of more than 64, which fit into no
    word."""
    rng = np.random.default_rng(d)
    ensemble = random_ensemble(rng, d, depth=5, trees=2)
    chain = deep_chain(d, repeats=1)
    background = rng.integers(-1, 5, size=(40, d)).astype(float)
    x = rng.integers(-1, 5, size=(1, d)).astype(float)
    coalitions = rng.random((25, d)) < rng.random((25, 1))
    for one in (ensemble, chain):
        mixed = np.where(coalitions[:, None, :], x, background[None])  # (m, B, d)
        expected = one.predict(mixed.reshape(-1, d)).reshape(25, 40).mean(axis=1)
        block = batch_of(background_batches((one,), background, np.full(40, 1 / 40)), x)
        np.testing.assert_allclose(block.values(coalitions)[0, :, 0], expected, atol=1e-9)
        order = rng.permutation(d)[None, None]
        walked = block.along(order)[0, 0, :, 0]
        prefix = np.array([np.isin(np.arange(d), order[0, 0, :j]) for j in range(d + 1)])
        np.testing.assert_allclose(walked, block.values(prefix)[0, :, 0], atol=1e-9)
        path = batch_of(path_dependent_batches((one,)), x)
        np.testing.assert_allclose(
            path.along(order)[0, 0, :, 0], path.values(prefix)[0, :, 0], atol=1e-9
        )


def test_groups_of_leaves_with_more_than_64_players_give_the_mean_over_the_background():
    """Leaves of 14 and of 60 other players in one group, whose words have 64 bits."""
    d = 74
    rng = np.random.default_rng(0)
    ensemble = pack_trees([leaning_chain(np.arange(14)), leaning_chain(np.arange(14, d))])
    background = rng.random((40, d))
    x = rng.random((1, d))
    x[:, rng.random(d) < 0.9] = 0.2  # rows that go far along the chains
    background[:, rng.random(d) < 0.9] = 0.3
    coalitions = rng.random((25, d)) < 0.5
    mixed = np.where(coalitions[:, None, :], x, background[None])
    expected = ensemble.predict(mixed.reshape(-1, d)).reshape(25, 40).mean(axis=1)
    block = batch_of(background_batches((ensemble,), background, np.full(40, 1 / 40)), x)
    np.testing.assert_allclose(block.values(coalitions)[0, :, 0], expected, atol=1e-9)


def leaning_chain(columns):
    """A chain that asks each column once, its deepest leaf first."""
    n = len(columns)
    left = [*range(1, n + 1)] + [-1] * (n + 1)
    right = [2 * n - i for i in range(n)] + [-1] * (n + 1)
    column = [*columns] + [0] * (n + 1)
    threshold = [0.97] * n + [0.0] * (n + 1)
    value = [0.0] * n + [5.0, *np.cos(np.arange(n))]
    cover = [1.0 - i / (2 * n) for i in range(n)] + [0.5] + [1 / (2 * n)] * n
    return Tree(left, right, column, threshold, [False] * len(left), value, cover)
