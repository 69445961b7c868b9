"""Games whose splits on hidden features are averaged by cover, on trees that no library would
grow."""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trees.random_ensembles import (
    assert_matches_own_values,
    deep_chain,
    leaf_game,
    path_game,
    path_games,
    random_ensemble,
    reference_value,
    seeds,
)
from weightedshap.coalitions import all_coalitions, prefixes
from weightedshap.trees import ensembles
from weightedshap.trees.kernels import coalitions as coalition_kernels
from weightedshap.trees.kernels.coalitions import CoalitionScratch


@given(seed=seeds, d=st.integers(1, 8), depth=st.integers(0, 12))
def test_path_dependent_values_and_contributions_equal_the_definition(seed, d, depth):
    rng = np.random.default_rng(seed)
    ensemble = random_ensemble(rng, d, depth)
    x = rng.integers(-1, 5, size=d).astype(float)
    game = path_game(ensemble, x, d)
    coalitions = all_coalitions(d)
    expected = [reference_value(ensemble, x, known) for known in coalitions]
    np.testing.assert_allclose(game(coalitions), expected, rtol=1e-12, atol=1e-12)
    assert_matches_own_values(game, seed)


@given(seed=seeds, d=st.integers(1, 80), depth=st.integers(0, 12), single=st.booleans())
def test_path_dependent_values_of_masked_rows_equal_the_definition(seed, d, depth, single):
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, rng.integers(1, d + 1), size=d)
    ensemble = replace(random_ensemble(rng, d, depth, trees=4).with_players(owner), single=single)
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


def scratch_of_nan(*sizes, build=CoalitionScratch.build):
    """Scratch in which numbers that nobody wrote are noticed."""
    scratch = build(*sizes)
    for array in scratch:
        if array.dtype == np.float64:
            array.fill(np.nan)
    return scratch


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
        mock.patch.object(ensembles, "PLAYERS_PER_GROUP", players),
        mock.patch.object(coalition_kernels, "FEW", few),
        mock.patch.object(CoalitionScratch, "build", scratch_of_nan),
    ):
        found = path_games([ensemble], d)(X).along(orders)[..., 0]
    for x, along, walked in zip(X, found, orders, strict=True):
        coalitions = prefixes(walked).reshape(-1, d)
        expected = ensemble.masked_values(x[None], np.zeros(len(coalitions), dtype=int), coalitions)
        np.testing.assert_allclose(along.ravel(), expected, rtol=1e-12, atol=1e-12)


@given(seed=seeds, d=st.integers(1, 10))
def test_uniform_weights_add_up_to_the_gap_between_the_ends(seed, d):
    rng = np.random.default_rng(seed)
    game = path_game(random_ensemble(rng, d, 8), rng.normal(size=d), d)
    full, empty = game(np.array([[True] * d, [False] * d]))
    assert game.contributions().mean.mean(axis=0).sum() == pytest.approx(full - empty, abs=1e-9)


def test_a_very_deep_chain_of_splits_keeps_its_digits():
    d = 14
    ensemble = deep_chain(d, repeats=5)
    x = np.ones(d)
    assert_matches_own_values(path_game(ensemble, x, d))
    assert_matches_own_values(leaf_game(ensemble, x, np.zeros((1, d)), np.ones(1), d))
