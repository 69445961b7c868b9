"""Random ensembles, what they predict by the plainest walk one can write, and how games on them are
read out."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from unittest import mock

import numpy as np
from hypothesis import strategies as st

from weightedshap.curves import along
from weightedshap.estimators.exact import enumerate_game
from weightedshap.games import FunctionGame
from weightedshap.games.tree_batch import background_batches, path_dependent_batches
from weightedshap.inputs import as_table
from weightedshap.inputs.rows import Rows
from weightedshap.trees import background
from weightedshap.trees.background import LeafListRemoval, PatternRemoval
from weightedshap.trees.ensembles import Tree, pack_trees
from weightedshap.weights import FAMILIES


def batch_function(factory, d):
    """The function of rows X (n, c) that gives their batch, of a factory for d players."""
    game = SimpleNamespace(background=as_table(np.zeros((1, d))))
    return lambda X: factory(game, Rows(X), X)


def background_games(ensembles, Z, weights, d):
    """The games of rows X whose hidden features take the values of rows Z (B, c)."""
    return batch_function(background_batches(ensembles, Z, weights), d)


def path_games(ensembles, d):
    """The games of rows X whose splits on hidden features are averaged by cover."""
    return batch_function(path_dependent_batches(ensembles), d)


def assert_matches_own_values(game, seed=0):
    """Δ and walks of `game` agree with its own values on coalitions."""
    by_call = FunctionGame(game, game.d)
    delta = enumerate_game(by_call).mean
    scale = max(np.abs(delta).max(), 1e-300)
    np.testing.assert_allclose(game.contributions().mean / scale, delta / scale, atol=1e-10)
    rng = np.random.default_rng(seed)
    orders = np.array([rng.permutation(game.d) for _ in range(4)])
    np.testing.assert_allclose(game.along(orders), along(by_call, orders), rtol=1e-12, atol=1e-12)


def random_tree(rng, d, depth):
    """A tree that repeats columns, splits on categories, treats zero as missing, and has empty
    branches."""
    left = []
    right = []
    column = []
    threshold = []
    nan_left = []
    value = []
    cover = []
    categories = {}
    waiting = [(0, 100.0)]
    while len(left) < len(waiting):
        level, weight = waiting[len(left)]
        split = level < depth and rng.random() < 0.8 and len(waiting) < 120
        node = len(left)
        left.append(len(waiting) if split else -1)
        right.append(len(waiting) + 1 if split else -1)
        if split:
            share = rng.choice([0.0, 1.0, rng.random(), rng.random()])
            waiting += [(level + 1, weight * share), (level + 1, weight * (1 - share))]
            if rng.random() < 0.3:
                categories[node] = rng.choice(70, size=rng.integers(1, 5), replace=False).tolist()
                categories[node] += rng.integers(0, 5, size=1).tolist()
        column.append(int(rng.integers(d)))
        threshold.append(float(rng.integers(-1, 5)))
        nan_left.append(bool(rng.random() < 0.5))
        value.append(0.0 if split or rng.random() < 0.1 else float(rng.normal()))
        cover.append(weight)
    zero_missing = rng.random(len(left)) < 0.2
    side = bool(rng.random() < 0.5)
    return Tree(
        left, right, column, threshold, nan_left, value, cover, zero_missing, categories, side
    )


def random_ensemble(rng, d, depth, trees=3):
    ensemble = pack_trees([random_tree(rng, d, depth) for _ in range(trees)])
    return replace(ensemble, offset=float(rng.normal()))


def deep_chain(d, repeats):
    """One chain of splits that asks all players, over and over: right goes on, left is a leaf."""
    inner = d * repeats
    left = [v for node in range(inner) for v in (2 * node + 1, -1)] + [-1]
    right = [v for node in range(inner) for v in (2 * node + 2, -1)] + [-1]
    column = [v for node in range(inner) for v in (node % d, 0)] + [0]
    threshold = [v for node in range(inner) for v in (0.5, 0.0)] + [0.0]
    value = [v for node in range(inner) for v in (0.0, np.sin(node))] + [1.0]
    cover = [v for node in range(inner) for v in (0.95**node, 0.05 * 0.95**node)] + [0.95**inner]
    return pack_trees([Tree(left, right, column, threshold, [False] * len(left), value, cover)])


def reference_value(ensemble, x, known=None):
    """Σ of trees at x; if `known` is given, splits on other columns average both sides by cover."""

    def goes_left(node):
        v = x[ensemble.column[node]]
        slot = ensemble.cat_slot[node]
        if np.isnan(v):
            return ensemble.nan_left[node]
        if slot >= 0:
            words = ensemble.cat_words[ensemble.cat_start[slot] : ensemble.cat_start[slot + 1]]
            member = (
                v >= 0
                and v < 32 * len(words)
                and bool(int(words[int(v) // 32]) >> (int(v) % 32) & 1)
            )
            return member == ensemble.member_left[slot]
        if ensemble.zero_missing[node] and v == 0:
            return ensemble.nan_left[node]
        return v <= ensemble.threshold[node]

    def value(node):
        if node >= len(ensemble.left):
            return ensemble.value[node - len(ensemble.left)]
        children = ensemble.left[node], ensemble.right[node]
        if known is None or known[ensemble.column[node]]:
            return value(children[0] if goes_left(node) else children[1])
        if ensemble.cover[node] == 0:
            return 0.0
        return sum(ensemble.cover[c] / ensemble.cover[node] * value(c) for c in children)

    return ensemble.offset + sum(value(root) for root in ensemble.roots)


seeds = st.integers(0, 2**32 - 1)


def leaf_games(ensembles, Z, weights, d, patterns=False):
    """The games of hidden features taken from the rows of Z, by walking trees or by background
    patterns."""
    with mock.patch.object(background, "FEW_ROWS", 0 if patterns else len(Z)):
        factory = background_batches(ensembles, Z, weights)
    kind = PatternRemoval if patterns else LeafListRemoval
    assert all(isinstance(removal, kind) for removal, _ in factory.removals)
    return batch_function(factory, d)


def leaf_game(ensemble, x, Z, weights, d, patterns=False):
    return leaf_games([ensemble], Z, weights, d, patterns)(x[None]).row_game(axis=False)


def path_game(ensemble, x, d):
    return path_games([ensemble], d)(x[None]).row_game(axis=False)


def block_results(block, orders, coalitions):
    """Everything that a block tells."""
    asked = FAMILIES["paper"](block.d).with_unit_vectors
    return (
        block.semivalues(asked[:1]),
        block.semivalues(asked),
        block.endpoints(),
        block.along(orders),
        block.values(coalitions),
    )


def some_rows(rng, n, d):
    X = rng.integers(-1, 5, size=(n, d)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def ensembles_of_the_same_nodes(rng, ensemble, k):
    """k ensembles that differ in values, of which some are 0 in some or in all of them, and in
    offsets."""
    L = len(ensemble.value)
    values = rng.normal(size=(k, L)) * (rng.random((k, L)) < 0.6) * (rng.random(L) < 0.8)
    return [replace(ensemble, value=value, offset=float(rng.normal())) for value in values]
