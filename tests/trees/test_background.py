"""Games whose hidden features come from a background, by leaf lists and by patterns."""

import functools
from unittest import mock

import lightgbm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trees.random_ensembles import (
    assert_matches_own_values,
    block_results,
    deep_chain,
    ensembles_of_the_same_nodes,
    leaf_game,
    leaf_games,
    path_games,
    random_ensemble,
    reference_value,
    seeds,
    some_rows,
)
from weightedshap.coalitions import all_coalitions, prefixes
from weightedshap.trees import background
from weightedshap.trees.background import LeafListRemoval, PatternRemoval, choose_removal
from weightedshap.trees.readers import lightgbm_ensembles


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
        assert_matches_own_values(game, seed)


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
    (ensemble,) = lightgbm_ensembles(booster.dump_model())
    game = leaf_game(ensemble, np.ones(d), np.zeros((1, d)), np.ones(1), d)
    coalitions = all_coalitions(d)
    np.testing.assert_allclose(
        game(coalitions), booster.predict(coalitions.astype(float)), atol=1e-12
    )
    assert_matches_own_values(game)


def test_a_background_with_too_many_patterns_is_walked():
    rng = np.random.default_rng(0)
    d = 6
    ensemble = random_ensemble(rng, d, 6)
    with mock.patch.object(background, "MOST_PATTERNS", 3):
        assert isinstance(
            choose_removal((ensemble,), rng.normal(size=(50, d)), np.full(50, 0.02)),
            LeafListRemoval,
        )


@given(
    seed=seeds,
    d=st.integers(1, 90),
    depth=st.integers(0, 20),
    n=st.integers(1, 140),
    grouped=st.booleans(),
)
def test_patterns_give_what_walks_of_the_background_give(seed, d, depth, n, grouped):
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, rng.integers(1, d + 1), size=d) if grouped else np.arange(d)
    both = [random_ensemble(rng, d, depth, trees=3).with_players(owner) for _ in range(2)]
    X = some_rows(rng, n, d)
    Z = some_rows(rng, 9, d)
    weights = rng.dirichlet(np.ones(9))
    players = owner.max() + 1
    orders = rng.permuted(np.tile(np.arange(players), (n, 3, 1)), axis=2)
    coalitions = rng.random((70, players)) < rng.random((70, 1))
    blocks = (leaf_games(both, Z, weights, players, patterns)(X) for patterns in (False, True))
    for expected, found in zip(
        *(block_results(block, orders, coalitions) for block in blocks), strict=True
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
    first = games(X).readers[0].rows.first
    assert first[3, 0] < 3 * 61 < 1024 < first[-1, 0]
    whole = block_results(games(X), orders, coalitions)
    for r in (0, 2, 3, 50, 92):
        alone = block_results(games(X[[r]]), orders[[r]], coalitions)
        for expected, found in zip(alone, whole, strict=True):
            np.testing.assert_array_equal(found[[r]], expected)
    np.testing.assert_array_equal(whole[2][:, 1, 0], ensemble.predict(X))


def test_lists_hold_players_beyond_small_numbers():
    rng = np.random.default_rng(5)
    d = 6
    beyond = 2**15
    ensemble = random_ensemble(rng, d, 6)
    X = some_rows(rng, 4, d)
    of_few, of_many = (ensemble.with_players(np.arange(d) + shift) for shift in (0, beyond))
    Z = ensemble.goes_left(some_rows(rng, 1, d))
    removals = [LeafListRemoval((one,), Z, np.ones(1)) for one in (of_few, of_many)]
    (few, full), (many, full_too) = (removal.encode_rows(X) for removal in removals)
    *few, member = few
    *many, member_too = many
    for one, other in zip([full, *few], [full_too, *many], strict=True):
        np.testing.assert_array_equal(one, other)
    assert (member.dtype, member_too.dtype) == (np.int16, np.int32)
    np.testing.assert_array_equal(
        member + np.where(member < 0, -beyond, beyond), member_too
    )  # ~p = −p − 1


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
    outputs = ensembles_of_the_same_nodes(rng, random_ensemble(rng, d, depth), k)
    outputs += [
        random_ensemble(rng, d, depth),
        *ensembles_of_the_same_nodes(rng, random_ensemble(rng, d, depth), 2),
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
        together = block_results(block, *asked)
        alone = rng.integers(len(outputs))
        for one in (block.output(alone), games(outputs[alone : alone + 1])(X)):
            for found, every in zip(block_results(one, *asked), together, strict=True):
                np.testing.assert_array_equal(found[..., 0], every[..., alone])


def chain_and_rows(d):
    """A tree that asks all of d players on one path, and a background that fails few of them."""
    rng = np.random.default_rng(d)
    return (
        deep_chain(d, repeats=2),
        rng.random((5, d)).round(),
        (rng.random((40, d)) < 0.9).astype(float),
    )


@pytest.mark.parametrize(
    ("d", "patterns"), [(13, True), (40, True), (63, True), (64, True), (65, False)]
)
def test_leaves_of_many_players_are_read_out(d, patterns):
    ensemble, X, Z = chain_and_rows(d)
    absent = choose_removal((ensemble,), Z, np.full(40, 1 / 40))
    assert isinstance(absent, PatternRemoval if patterns else LeafListRemoval)
    rng = np.random.default_rng(0)
    orders = rng.permuted(np.tile(np.arange(d), (5, 3, 1)), axis=2)
    coalitions = rng.random((30, d)) < 0.9
    blocks = (
        leaf_games([ensemble], Z, np.full(40, 1 / 40), d, some)(X) for some in (False, patterns)
    )
    for expected, found in zip(
        *(block_results(block, orders, coalitions) for block in blocks), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def pattern_games(seed, d, n, m, **grown):
    """Games on background patterns, and what they are asked: n rows, m orders of each,
    coalitions."""
    rng = np.random.default_rng(seed)
    ensemble = random_ensemble(rng, d, **grown)
    Z = some_rows(rng, 50, d)
    games = leaf_games([ensemble], Z, np.full(50, 0.02), d, patterns=True)
    orders = rng.permuted(np.tile(np.arange(d), (n, m, 1)), axis=2)
    return games, some_rows(rng, n, d), orders, rng.random((9, d)) < 0.5


def test_a_row_has_the_same_bits_in_every_block_of_a_background():
    games, X, orders, coalitions = pattern_games(seed=1, d=70, n=150, m=4, depth=14, trees=20)
    whole = block_results(games(X), orders, coalitions)
    for start, stop in ((0, 1), (3, 10), (60, 135), (149, 150)):
        for part, every in zip(
            block_results(games(X[start:stop]), orders[start:stop], coalitions), whole, strict=True
        ):
            np.testing.assert_array_equal(part, every[start:stop])


@pytest.mark.parametrize(
    "small", [{"MEMO_SLOTS": 1}, {"MEMO_SLOTS": 16}, {"MEMO_NUMBERS": 2**16}, {"PREFIX_BYTES": 1}]
)
def test_the_size_of_the_memory_changes_no_bit(small):
    games, X, orders, coalitions = pattern_games(seed=2, d=12, n=200, m=13, depth=9, trees=9)
    expected = block_results(games(X), orders, coalitions)
    with mock.patch.multiple(background, **small):
        for part, every in zip(block_results(games(X), orders, coalitions), expected, strict=True):
            np.testing.assert_array_equal(part, every)
