"""Ensembles as flat arrays: every read-out equals the definition, for trees no library would
grow."""

import functools
import gc
from dataclasses import replace
from math import comb
from unittest import mock

import lightgbm
import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.games.trees import assert_reads_out, deepest, random_ensemble, reference_value
from weightedshap import _compile as compiling
from weightedshap.coalitions import all_coalitions, prefixes
from weightedshap.estimators.exact import enumerate_game
from weightedshap.games.tree_batch import leaf_games as games_of_leaves
from weightedshap.games.tree_batch import mask_game, path_games
from weightedshap.games.user import ExactGame
from weightedshap.trees import background as backgrounds
from weightedshap.trees import ensembles
from weightedshap.trees import quadrature as points
from weightedshap.trees.background import Background, FewRows, absent_rows
from weightedshap.trees.ensembles import coefficient_table
from weightedshap.trees.kernels import coalitions as lane_kernels
from weightedshap.trees.kernels import paths as path_kernels
from weightedshap.trees.kernels.leaf_lists import level
from weightedshap.trees.readers import lightgbm_ensembles
from weightedshap.weights import FAMILIES

seeds = st.integers(0, 2**32 - 1)


def leaf_games(ensembles, Z, weights, d, patterns=False):
    """The games of hidden features taken from the rows of Z, by walking trees or by background
    patterns."""
    with mock.patch.object(backgrounds, "FEW_ROWS", 0 if patterns else len(Z)):
        games = games_of_leaves(ensembles, Z, weights, d)
    assert all(
        isinstance(absent, Background if patterns else FewRows) for absent, _ in games.readers
    )
    return games


def leaf_game(ensemble, x, Z, weights, d, patterns=False):
    return ExactGame(leaf_games([ensemble], Z, weights, d, patterns)(x[None]), axis=False)


def path_game(ensemble, x, d):
    return ExactGame(path_games([ensemble], d)(x[None]), axis=False)


@given(seed=seeds, d=st.integers(1, 8), depth=st.integers(0, 12))
def test_interventional_values_and_contributions_equal_the_definition(seed, d, depth):
    rng = np.random.default_rng(seed)
    ensemble = random_ensemble(rng, d, depth)
    x = rng.integers(-1, 5, size=d).astype(float)
    Z = rng.integers(-1, 5, size=(6, d)).astype(float)
    x[rng.random(d) < 0.2] = np.nan
    weights = rng.dirichlet(np.ones(6))
    coalitions = all_coalitions(d)
    expected = [
        weights @ [reference_value(ensemble, np.where(s, x, z)) for z in Z] for s in coalitions
    ]
    for patterns in (False, True):
        game = leaf_game(ensemble, x, Z, weights, d, patterns)
        np.testing.assert_allclose(game(coalitions), expected, rtol=1e-12, atol=1e-12)
        assert_reads_out(game, seed)
    phi = ensemble.shapley_values(x[None], Z, weights, d)[0]
    np.testing.assert_allclose(phi, enumerate_game(game).mean.mean(axis=0), atol=1e-11)


@given(seed=seeds, d=st.integers(1, 8), depth=st.integers(0, 12))
def test_path_dependent_values_and_contributions_equal_the_definition(seed, d, depth):
    rng = np.random.default_rng(seed)
    ensemble = random_ensemble(rng, d, depth)
    x = rng.integers(-1, 5, size=d).astype(float)
    game = path_game(ensemble, x, d)
    coalitions = all_coalitions(d)
    expected = [reference_value(ensemble, x, known) for known in coalitions]
    np.testing.assert_allclose(game(coalitions), expected, rtol=1e-12, atol=1e-12)
    assert_reads_out(game, seed)


@given(seed=seeds, d=st.integers(1, 80), depth=st.integers(0, 12), single=st.booleans())
def test_path_dependent_values_of_masked_rows_equal_the_definition(seed, d, depth, single):
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, rng.integers(1, d + 1), size=d)
    ensemble = replace(random_ensemble(rng, d, depth, trees=4).of_players(owner), single=single)
    X = rng.integers(-1, 5, size=(7, d)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    row = rng.integers(0, 7, size=20)
    coalition = rng.random((20, owner.max() + 1)) < rng.random((20, 1))
    expected = [
        reference_value(ensemble, X[r], known)
        for r, known in zip(row, coalition[:, owner], strict=True)
    ]
    np.testing.assert_allclose(
        ensemble.masked_values(X, row, coalition), expected, rtol=1e-12, atol=1e-12
    )


def room_of_nan(*sizes, room=lane_kernels.room):
    """Room in which numbers that nobody wrote are noticed."""
    made = room(*sizes)
    for array in made:
        if array.dtype == np.float64:
            array.fill(np.nan)
    return made


@given(
    seed=seeds,
    d=st.integers(1, 80),
    m=st.integers(1, 20),
    exchanges=st.sampled_from([4, 100]),
    players=st.sampled_from([1, 20, 512]),
    few=st.sampled_from([0, 32, 512]),
)
def test_path_dependent_values_along_orders_equal_those_of_their_first_players(
    seed, d, m, exchanges, players, few
):
    rng = np.random.default_rng(seed)
    ensemble = random_ensemble(rng, d, 7, trees=4)
    orders = np.tile(rng.permutation(d), (2, m, 1))
    for order in orders.reshape(-1, d):  # after few exchanges, many first players are the same
        for i in rng.integers(0, d, size=exchanges):
            order[[i - 1, i]] = order[[i, i - 1]]
    X = rng.integers(-1, 5, size=(2, d)).astype(float)
    with (
        mock.patch.object(ensembles, "PLAYERS", players),
        mock.patch.multiple(lane_kernels, FEW=few, room=room_of_nan),
    ):
        found = path_games([ensemble], d)(X).along(orders)[..., 0]
    for x, along, walked in zip(X, found, orders, strict=True):
        coalitions = prefixes(walked).reshape(-1, d)
        expected = ensemble.masked_values(x[None], np.zeros(len(coalitions), dtype=int), coalitions)
        np.testing.assert_allclose(along.ravel(), expected, rtol=1e-12, atol=1e-12)


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


@given(n=st.integers(1, 30), beyond=st.integers(0, 200), seed=seeds)
def test_weights_of_points_are_exact_for_polynomials(n, beyond, seed):
    d = n + beyond
    vectors = np.random.default_rng(seed).dirichlet(np.ones(d), size=3)
    found = points.point_weights(vectors, n)
    q = points.gauss(n)[0]
    for s in range(n):  # the Δ of q^s
        delta = [comb(j - 1, s) / comb(d - 1, s) for j in range(1, d + 1)]
        np.testing.assert_allclose(
            q**s @ found, vectors @ delta, atol=1e-15 * np.abs(found).sum(axis=0).max()
        )


@given(
    seed=seeds,
    d=st.integers(1, 80),
    depth=st.integers(0, 12),
    steady=st.sampled_from([0.0, 5.0, 1000.0]),
)
def test_semivalues_at_points_equal_those_by_leaves(seed, d, depth, steady):
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, rng.integers(1, d + 1), size=d)
    ensemble = random_ensemble(rng, d, depth, trees=5).of_players(owner)
    X = rng.integers(-1, 5, size=(5, d)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    asked = FAMILIES["wide"](owner.max() + 1).with_sizes
    blocks = path_games([ensemble], owner.max() + 1)(X), path_games([ensemble], owner.max() + 1)(X)
    found = []
    for block, most in zip(blocks, (steady, -1.0), strict=True):
        with mock.patch.object(points, "STEADY", most):
            found.append(block.semivalues(asked))
    np.testing.assert_allclose(found[0], found[1], atol=1e-12 * max(1.0, np.abs(found[1]).max()))


def test_a_row_has_the_same_bits_in_every_block():
    rng = np.random.default_rng(1)
    d = 12
    games = path_games([random_ensemble(rng, d, 9, trees=30)], d)
    X = rng.normal(size=(150, d)) * 2
    asked = FAMILIES["wide"](d).with_sizes
    whole = games(X).semivalues(asked)
    for start, stop in ((0, 1), (3, 10), (60, 135), (149, 150)):
        np.testing.assert_array_equal(games(X[start:stop]).semivalues(asked), whole[start:stop])


def test_players_that_are_asked_again_and_covers_of_zero_are_read_at_points():
    d = 14
    ensemble = deepest(d, repeats=5)
    game = path_games([ensemble], d)
    x = np.random.default_rng(0).integers(0, 2, size=(6, d)).astype(float)
    asked = FAMILIES["paper"](d).vectors
    found = game(x).semivalues(asked)
    with mock.patch.object(points, "STEADY", -1.0):
        expected = path_games([ensemble], d)(x).semivalues(asked)
    np.testing.assert_allclose(found, expected, atol=1e-13)


@given(seed=seeds, d=st.integers(1, 10))
def test_uniform_weights_add_up_to_the_gap_between_the_ends(seed, d):
    rng = np.random.default_rng(seed)
    game = path_game(random_ensemble(rng, d, 8), rng.normal(size=d), d)
    full, empty = game(np.array([[True] * d, [False] * d]))
    assert game.contributions().mean.mean(axis=0).sum() == pytest.approx(full - empty, abs=1e-9)


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


def test_a_very_deep_chain_of_splits_keeps_its_digits():
    d = 14
    ensemble = deepest(d, repeats=5)
    x = np.ones(d)
    assert_reads_out(path_game(ensemble, x, d))
    assert_reads_out(leaf_game(ensemble, x, np.zeros((1, d)), np.ones(1), d))


def test_division_of_polynomials_keeps_all_digits_near_one_and_near_zero():
    ratios = np.array([1 - 1e-9, 1 - 1e-6, 0.999, 0.5, 1e-7, 0.0, 1e-12] + [0.97] * 20)
    for left_out in range(len(ratios)):
        product, expected = (
            functools.reduce(lambda p, r: np.convolve(p, [r, 1.0]), r, np.ones(1))
            for r in (ratios, np.delete(ratios, left_out))
        )
        quotient = np.empty(len(ratios) + 1)
        path_kernels.divide(np.append(product, 0.0), len(ratios), ratios[left_out], quotient)
        np.testing.assert_allclose(quotient[: len(ratios)], expected, rtol=1e-9, atol=1e-300)


def test_loops_are_compiled_where_no_folder_can_be_written():
    def refusing(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return numba.njit(**options)

    with mock.patch.object(compiling, "njit", refusing):
        double = compiling.compiled(lambda x: 2 * x)
    assert double(21) == 42
    assert double.signatures


@pytest.mark.parametrize("collects", [True, False])
def test_compiling_leaves_the_collector_as_it_was(collects):
    seen = []
    was = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        told = {"side_effect": lambda loop: seen.append(gc.isenabled())}
        with mock.patch.object(compiling.Compiler, "compile_extra", **told):
            compiling.Uncollected.compile_extra(mock.Mock(spec=compiling.Uncollected), None)
        assert (seen, gc.isenabled()) == ([False], collects)
    finally:
        (gc.enable if was else gc.disable)()


def test_trees_on_masks_are_read_out_as_the_game_they_predict():
    rng = np.random.default_rng(3)
    d = 9
    masks = rng.random((600, d)) < rng.random((600, 1))
    values = masks[:, 0] * masks[:, 1] * 2.0 + masks[:, 2] - masks[:, 3] * masks[:, 4] * masks[:, 5]
    parameters = {
        "objective": "regression",
        "num_leaves": 12,
        "min_data_in_leaf": 3,
        "verbose": -1,
        "num_threads": 1,
    }
    booster = lightgbm.train(parameters, lightgbm.Dataset(masks.astype(float), values), 15)
    game = mask_game(lightgbm_ensembles(booster.dump_model()), d)
    coalitions = all_coalitions(d)
    np.testing.assert_allclose(
        game(coalitions), booster.predict(coalitions.astype(float)), atol=1e-12
    )
    assert_reads_out(game)


def test_a_background_with_too_many_patterns_is_walked():
    rng = np.random.default_rng(0)
    d = 6
    ensemble = random_ensemble(rng, d, 6)
    with mock.patch.object(backgrounds, "MOST_PATTERNS", 3):
        assert isinstance(
            absent_rows((ensemble,), rng.normal(size=(50, d)), np.full(50, 0.02)), FewRows
        )


def read_outs(block, orders, coalitions):
    """Everything that a block tells."""
    asked = FAMILIES["paper"](block.d).with_sizes
    return (
        block.semivalues(asked[:1]),
        block.semivalues(asked),
        block.ends(),
        block.along(orders),
        block.values(coalitions),
    )


def some_rows(rng, n, d):
    X = rng.integers(-1, 5, size=(n, d)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@given(
    seed=seeds,
    d=st.integers(1, 90),
    depth=st.integers(0, 20),
    n=st.integers(1, 140),
    grouped=st.booleans(),
)
def test_patterns_tell_what_walks_of_the_background_tell(seed, d, depth, n, grouped):
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, rng.integers(1, d + 1), size=d) if grouped else np.arange(d)
    both = [random_ensemble(rng, d, depth, trees=3).of_players(owner) for _ in range(2)]
    X = some_rows(rng, n, d)
    Z = some_rows(rng, 9, d)
    weights = rng.dirichlet(np.ones(9))
    players = owner.max() + 1
    orders = rng.permuted(np.tile(np.arange(players), (n, 3, 1)), axis=2)
    coalitions = rng.random((70, players)) < rng.random((70, 1))
    blocks = (leaf_games(both, Z, weights, players, patterns)(X) for patterns in (False, True))
    for expected, found in zip(
        *(read_outs(block, orders, coalitions) for block in blocks), strict=True
    ):
        np.testing.assert_allclose(
            found, expected, rtol=0, atol=1e-12 * max(1.0, np.abs(expected).max())
        )


def test_walks_along_many_orders_are_those_along_each():
    rng = np.random.default_rng(3)
    d = 9
    n = 5
    m = 40
    X = some_rows(rng, n, d)
    Z = some_rows(rng, 2, d)
    block = leaf_games([random_ensemble(rng, d, 8)], Z, np.array([0.3, 0.7]), d)(X)
    orders = rng.permuted(np.tile(np.arange(d), (n, m, 1)), axis=2)
    together = block.along(orders)
    known = prefixes(orders.reshape(-1, d)).reshape(n, m, d + 1, d)
    for q in range(m):
        np.testing.assert_array_equal(together[:, [q]], block.along(orders[:, [q]]))
    for r in range(n):
        by_sets = block.values(known[r].reshape(-1, d))[r].reshape(m, d + 1, 1)
        np.testing.assert_allclose(together[r], by_sets, atol=1e-12)


def test_rows_with_more_leaves_than_the_first_find_room():
    rng = np.random.default_rng(4)
    d = 30
    ensemble = random_ensemble(rng, d, 12, trees=60)
    Z = some_rows(rng, 1, d)
    X = np.concatenate(
        [np.tile(Z, (3, 1)), some_rows(rng, 90, d)]
    )  # the first part from the absent row nowhere
    games = leaf_games([ensemble], Z, np.ones(1), d)
    orders = rng.permuted(np.tile(np.arange(d), (len(X), 2, 1)), axis=2)
    coalitions = rng.random((7, d)) < 0.5
    first = games(X).outputs[0][2][1][0]
    assert first[3, 0] < 3 * 61 < 1024 < first[-1, 0]
    whole = read_outs(games(X), orders, coalitions)
    for r in (0, 2, 3, 50, 92):
        alone = read_outs(games(X[[r]]), orders[[r]], coalitions)
        for expected, found in zip(alone, whole, strict=True):
            np.testing.assert_array_equal(found[[r]], expected)
    np.testing.assert_array_equal(whole[2][:, 1, 0], ensemble.predict(X))


def test_lists_hold_players_beyond_small_numbers():
    rng = np.random.default_rng(5)
    d = 6
    beyond = 2**15
    ensemble = random_ensemble(rng, d, 6)
    X = some_rows(rng, 4, d)
    of_few, of_many = (ensemble.of_players(np.arange(d) + shift) for shift in (0, beyond))
    Z = ensemble.directions(some_rows(rng, 1, d))
    lists = [FewRows((one,), Z, np.ones(1)).at(X) for one in (of_few, of_many)]
    (full, (*few, member)), (full_too, (*many, member_too)) = lists
    for one, other in zip([full, *few], [full_too, *many], strict=True):
        np.testing.assert_array_equal(one, other)
    assert (member.dtype, member_too.dtype) == (np.int16, np.int32)
    np.testing.assert_array_equal(
        member + np.where(member < 0, -beyond, beyond), member_too
    )  # ~p = −p − 1


def of_the_same_nodes(rng, ensemble, k):
    """k ensembles that differ in values, of which some are 0 in some or in all of them, and in
    offsets."""
    L = len(ensemble.value)
    values = rng.normal(size=(k, L)) * (rng.random((k, L)) < 0.6) * (rng.random(L) < 0.8)
    return [replace(ensemble, value=value, offset=float(rng.normal())) for value in values]


@given(
    seed=seeds,
    d=st.integers(1, 90),
    depth=st.integers(0, 12),
    n=st.integers(1, 140),
    k=st.integers(2, 20),
)
def test_outputs_with_the_same_nodes_are_read_together_and_have_the_bits_of_each_alone(
    seed, d, depth, n, k
):
    rng = np.random.default_rng(seed)
    outputs = of_the_same_nodes(rng, random_ensemble(rng, d, depth), k)
    outputs += [
        random_ensemble(rng, d, depth),
        *of_the_same_nodes(rng, random_ensemble(rng, d, depth), 2),
    ]
    X = some_rows(rng, n, d)
    Z = some_rows(rng, 9, d)
    weights = rng.dirichlet(np.ones(9))
    asked = rng.permuted(np.tile(np.arange(d), (n, 3, 1)), axis=2), rng.random((9, d)) < 0.5
    ways = [
        functools.partial(leaf_games, Z=Z, weights=weights, d=d, patterns=some)
        for some in (False, True)
    ]
    for games in (*ways, functools.partial(path_games, d=d)):
        block = games(outputs)(X)
        together = read_outs(block, *asked)
        alone = rng.integers(len(outputs))
        for one in (block.output(alone), games(outputs[alone : alone + 1])(X)):
            for found, every in zip(read_outs(one, *asked), together, strict=True):
                np.testing.assert_array_equal(found[..., 0], every[..., alone])


def test_only_ensembles_with_the_same_nodes_are_put_together():
    rng = np.random.default_rng(0)
    first = random_ensemble(rng, 5, 6)
    second = random_ensemble(rng, 5, 6)
    same = of_the_same_nodes(rng, first, 2)
    covers = replace(first, cover=first.cover + 1)
    single = replace(first, single=True)
    found = ensembles.alike([first, *same, second, first, covers, single])
    assert [len(some) for some in found] == [3, 1, 1, 1, 1]
    assert ensembles.alike([]) == []


def chain_of(d):
    """A tree that asks all of d players on one path, and a background that fails few of them."""
    rng = np.random.default_rng(d)
    return (
        deepest(d, repeats=2),
        rng.random((5, d)).round(),
        (rng.random((40, d)) < 0.9).astype(float),
    )


@pytest.mark.parametrize(
    ("d", "patterns"), [(13, True), (40, True), (63, True), (64, True), (65, False)]
)
def test_leaves_of_many_players_are_read_out(d, patterns):
    ensemble, X, Z = chain_of(d)
    absent = absent_rows((ensemble,), Z, np.full(40, 1 / 40))
    assert isinstance(absent, Background if patterns else FewRows)
    rng = np.random.default_rng(0)
    orders = rng.permuted(np.tile(np.arange(d), (5, 3, 1)), axis=2)
    coalitions = rng.random((30, d)) < 0.9
    blocks = (
        leaf_games([ensemble], Z, np.full(40, 1 / 40), d, some)(X) for some in (False, patterns)
    )
    for expected, found in zip(
        *(read_outs(block, orders, coalitions) for block in blocks), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def by_patterns(seed, d, n, m, **grown):
    """Games on background patterns, and what they are asked: n rows, m orders of each,
    coalitions."""
    rng = np.random.default_rng(seed)
    ensemble = random_ensemble(rng, d, **grown)
    Z = some_rows(rng, 50, d)
    games = leaf_games([ensemble], Z, np.full(50, 0.02), d, patterns=True)
    orders = rng.permuted(np.tile(np.arange(d), (n, m, 1)), axis=2)
    return games, some_rows(rng, n, d), orders, rng.random((9, d)) < 0.5


def test_a_row_has_the_same_bits_in_every_block_of_a_background():
    games, X, orders, coalitions = by_patterns(seed=1, d=70, n=150, m=4, depth=14, trees=20)
    whole = read_outs(games(X), orders, coalitions)
    for start, stop in ((0, 1), (3, 10), (60, 135), (149, 150)):
        for part, every in zip(
            read_outs(games(X[start:stop]), orders[start:stop], coalitions), whole, strict=True
        ):
            np.testing.assert_array_equal(part, every[start:stop])


@pytest.mark.parametrize(
    "small", [{"PLACES": 1}, {"PLACES": 16}, {"ENTRIES": 2**16}, {"SET_BYTES": 1}]
)
def test_what_is_kept_changes_no_bit(small):
    games, X, orders, coalitions = by_patterns(seed=2, d=12, n=200, m=13, depth=9, trees=9)
    expected = read_outs(games(X), orders, coalitions)
    with mock.patch.multiple(backgrounds, **small):
        for part, every in zip(read_outs(games(X), orders, coalitions), expected, strict=True):
            np.testing.assert_array_equal(part, every)
