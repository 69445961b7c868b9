"""The loops over trees as plain Python, on the smallest ensembles: no compiler, and out of bounds
is an error."""

from contextlib import ExitStack
from dataclasses import replace
from functools import wraps
from unittest import mock

import numpy as np
import pytest

from tests.trees.random_ensembles import (
    background_games,
    path_games,
    random_ensemble,
    reference_value,
)
from weightedshap.coalitions import all_coalitions, prefixes
from weightedshap.estimators.exact import enumerate_game
from weightedshap.games import FunctionGame
from weightedshap.trees import background, quadrature
from weightedshap.trees.kernels import coalitions as coalition_kernels
from weightedshap.trees.kernels import leaf_lists as leaf_kernels
from weightedshap.trees.kernels import paths as path_kernels
from weightedshap.trees.kernels import patterns as pattern_kernels
from weightedshap.trees.kernels import quadrature as point_kernels
from weightedshap.trees.kernels import splits as split_kernels

SIZES = [
    (1, 2, 2),
    (3, 4, 3),
    (4, 5, 2),
    (5, 7, 2),
    (6, 6, 1),
    (2, 3, 67),
]  # players, splits on a path, rows
MODULES = (
    background,
    coalition_kernels,
    leaf_kernels,
    path_kernels,
    pattern_kernels,
    point_kernels,
    split_kernels,
)


def with_field_names(argument):
    """An argument of a loop whose steps are read by the names of their fields, in structs too."""
    if isinstance(argument, tuple) and hasattr(argument, "_fields"):
        return type(argument)(*map(with_field_names, argument))
    if isinstance(argument, np.ndarray) and argument.dtype.names:
        return argument.view(np.recarray)
    return argument


def interpreted(loop):
    """A compiled loop as the function that it was."""

    @wraps(loop.py_func)
    def run(*given):
        return loop.py_func(*map(with_field_names, given))

    return run


@pytest.fixture(autouse=True)
def uncompiled():
    with ExitStack() as stack:
        for module in MODULES:
            loops = {
                name: interpreted(loop)
                for name, loop in vars(module).items()
                if hasattr(loop, "py_func")
            }
            stack.enter_context(mock.patch.multiple(module, **loops))
        stack.enter_context(np.errstate(over="ignore"))  # words are multiplied without regard to it
        yield


def some_rows(rng, n, d):
    X = rng.integers(-1, 5, size=(n, d)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def assert_follows_from_values(block, expected, seed=0):
    """All that a block tells follows from the values (n, 2^d) of all coalitions."""
    d = block.d
    coalitions = all_coalitions(block.d)
    close = {"rtol": 0, "atol": 1e-11 * max(1.0, np.abs(expected).max())}
    np.testing.assert_allclose(block.values(coalitions)[..., 0], expected, **close)
    np.testing.assert_allclose(block.endpoints()[..., 0], expected[:, [0, -1]], **close)
    numbers = 2 ** np.arange(d)
    delta = [
        enumerate_game(FunctionGame(lambda asked, v=v: v[asked @ numbers], d)).mean
        for v in expected
    ]
    vectors = np.vstack([np.eye(d), np.random.default_rng(seed).dirichlet(np.ones(d), size=2)])
    for asked in (vectors[-1:], vectors):
        np.testing.assert_allclose(
            block.semivalues(asked)[..., 0], np.einsum("mj,nji->nmi", asked, delta), **close
        )
    orders = np.random.default_rng(seed).permuted(
        np.tile(np.arange(d), (len(expected), 3, 1)), axis=2
    )
    walked = np.stack([v[prefixes(o) @ numbers] for v, o in zip(expected, orders)])  # (n, 3, d + 1)
    np.testing.assert_allclose(block.along(orders)[..., 0], walked, **close)


def games_of(patterns, ensembles, Z, weights, d):
    with mock.patch.object(background, "FEW_ROWS", 0 if patterns else len(Z)):
        return background_games(ensembles, Z, weights, d)


@pytest.mark.parametrize("patterns", [False, True])
@pytest.mark.parametrize(("d", "depth", "n"), SIZES)
def test_games_of_a_background_match_the_definition_without_compiler(patterns, d, depth, n):
    rng = np.random.default_rng(d)
    ensemble = random_ensemble(rng, d, depth, trees=2)
    X = some_rows(rng, n, d)
    Z = some_rows(rng, 5, d)
    weights = rng.dirichlet(np.ones(5))
    mixed = np.where(all_coalitions(d)[:, None, None], X[:, None], Z)  # (2^d, n, 5, d)
    each = np.array([reference_value(ensemble, row) for row in mixed.reshape(-1, d)]).reshape(
        mixed.shape[:-1]
    )
    halved = replace(ensemble, value=ensemble.value / 2, offset=ensemble.offset / 2)
    block = games_of(patterns, [ensemble, halved], Z, weights, d)(X)
    assert_follows_from_values(block.output(0), (each @ weights).T)
    asked = np.random.default_rng(d).dirichlet(np.ones(d), size=2)
    np.testing.assert_array_equal(
        block.semivalues(asked)[..., 1], block.semivalues(asked)[..., 0] / 2
    )


@pytest.mark.parametrize(("d", "depth", "n"), SIZES)
@pytest.mark.parametrize("steady", [1000.0, -1.0], ids=["at points", "by leaves"])
def test_path_dependent_games_match_the_definition_without_compiler(d, depth, n, steady):
    rng = np.random.default_rng(d)
    ensemble = random_ensemble(rng, d, depth, trees=2)
    X = some_rows(rng, n, d)
    expected = np.array(
        [[reference_value(ensemble, x, known) for known in all_coalitions(d)] for x in X]
    )
    with mock.patch.object(quadrature, "STEADY", steady):
        block = path_games([replace(ensemble, value=ensemble.value / 2), ensemble], d)(X)
        assert_follows_from_values(block.output(1), expected)
        asked = np.random.default_rng(d).dirichlet(np.ones(d), size=2)
        np.testing.assert_array_equal(
            block.semivalues(asked)[..., 1], block.semivalues(asked)[..., 0] * 2
        )
    row = rng.integers(0, n, size=9)
    coalition = all_coalitions(d)[rng.integers(0, 2**d, size=9)]
    found = ensemble.masked_values(X, row, coalition)
    np.testing.assert_allclose(found, expected[row, coalition @ 2 ** np.arange(d)], atol=1e-11)


def test_categories_are_looked_up_within_their_own_words():
    sets = [{0, 3, 31}, {1, 32, 70}, {5}]
    members_left = np.array([True, True, False])
    words = [np.zeros(max(one) // 32 + 1, np.uint32) for one in sets]
    for one, bits in zip(sets, words, strict=True):
        for code in one:
            bits[code // 32] |= np.uint32(1 << (code % 32))
    start = np.append(0, np.cumsum([len(bits) for bits in words]))
    categories = start, np.concatenate(words), members_left
    for slot, one in enumerate(sets):
        for v in (-3.0, -0.5, 0.0, 1.0, 3.0, 5.0, 31.0, 32.0, 33.0, 63.0, 64.0, 70.0, 96.0, 1000.0):
            found = split_kernels.goes_left(v, False, True, slot, *categories)
            assert found == ((v in one) == members_left[slot]), (slot, v)
        for compared in (False, True):
            assert split_kernels.goes_left(np.nan, compared, True, slot, *categories) is compared


@pytest.mark.parametrize("size", [1, 5, 64, 70])
def test_sets_along_orders_are_numbered_by_size(size):
    rng = np.random.default_rng(size)
    m = 6
    base = rng.permutation(size)
    orders = np.array(
        [base, base, base[::-1], *(rng.permuted(base) for _ in range(m - 3))], np.int32
    )
    sets = np.zeros(((size + 63) // 64, m * size + 1), np.uint64)
    lane = np.empty((m, size + 1), np.int32)
    n = coalition_kernels.distinct_sets(orders, size, sets, lane)
    assert set(lane.ravel().tolist()) == set(range(n))
    np.testing.assert_array_equal(lane[0], lane[1])
    assert n <= (m - 1) * size + 1  # those of the second order are those of the first
    held = [[p for p in range(size) if int(sets[p // 64, s]) >> (p % 64) & 1] for s in range(n)]
    assert [len(players) for players in held] == sorted(len(players) for players in held)
    for order, of_order in zip(orders, lane, strict=True):
        for j, s in enumerate(of_order):
            assert held[s] == sorted(order[:j].tolist())


def test_before_a_span_no_set_has_the_player_and_after_it_all_do():
    rng = np.random.default_rng(0)
    m = 9
    size = 60
    base = rng.permutation(size)
    orders = np.array(
        [base[np.argsort(np.arange(size) + rng.uniform(0, 8, size))] for _ in range(m)], np.int32
    )
    sets = np.zeros((1, m * size + 1), np.uint64)
    lane = np.empty((m, size + 1), np.int32)
    n = coalition_kernels.distinct_sets(orders, size, sets, lane)
    first, full = np.empty((2, size), np.uint64)
    coalition_kernels.find_spans(orders, lane, n, first, full)
    has = np.array([[int(sets[0, s]) >> p & 1 for s in range(n)] for p in range(size)], bool)
    for p in range(size):
        tight = np.argmax(has[p]), n - np.argmin(has[p][::-1])
        assert tight[0] - coalition_kernels.GRAIN < first[p] <= tight[0]
        assert tight[1] <= full[p] < tight[1] + coalition_kernels.GRAIN + m
