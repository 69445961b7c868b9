"""Semivalues read at points, and polynomials divided without loss of digits."""

import functools
from math import comb
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.trees.random_ensembles import (
    deep_chain,
    path_games,
    random_ensemble,
    seeds,
)
from weightedshap.trees import quadrature
from weightedshap.trees.kernels import paths as path_kernels
from weightedshap.weights import FAMILIES


@given(n=st.integers(1, 30), beyond=st.integers(0, 200), seed=seeds)
def test_weights_of_points_are_exact_for_polynomials(n, beyond, seed):
    d = n + beyond
    vectors = np.random.default_rng(seed).dirichlet(np.ones(d), size=3)
    found = quadrature.point_weights(vectors, n)
    q = quadrature.gauss(n)[0]
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
    ensemble = random_ensemble(rng, d, depth, trees=5).with_players(owner)
    X = rng.integers(-1, 5, size=(5, d)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    asked = FAMILIES["wide"](owner.max() + 1).with_unit_vectors
    blocks = path_games([ensemble], owner.max() + 1)(X), path_games([ensemble], owner.max() + 1)(X)
    found = []
    for block, most in zip(blocks, (steady, -1.0), strict=True):
        with mock.patch.object(quadrature, "STEADY", most):
            found.append(block.semivalues(asked))
    np.testing.assert_allclose(found[0], found[1], atol=1e-12 * max(1.0, np.abs(found[1]).max()))


def test_a_row_has_the_same_bits_in_every_block():
    rng = np.random.default_rng(1)
    d = 12
    games = path_games([random_ensemble(rng, d, 9, trees=30)], d)
    X = rng.normal(size=(150, d)) * 2
    asked = FAMILIES["wide"](d).with_unit_vectors
    whole = games(X).semivalues(asked)
    for start, stop in ((0, 1), (3, 10), (60, 135), (149, 150)):
        np.testing.assert_array_equal(games(X[start:stop]).semivalues(asked), whole[start:stop])


def test_players_repeated_on_a_path_and_covers_of_zero_are_read_at_points():
    d = 14
    ensemble = deep_chain(d, repeats=5)
    game = path_games([ensemble], d)
    x = np.random.default_rng(0).integers(0, 2, size=(6, d)).astype(float)
    asked = FAMILIES["paper"](d).vectors
    found = game(x).semivalues(asked)
    with mock.patch.object(quadrature, "STEADY", -1.0):
        expected = path_games([ensemble], d)(x).semivalues(asked)
    np.testing.assert_allclose(found, expected, atol=1e-13)


def test_division_of_polynomials_keeps_all_digits_near_one_and_near_zero():
    ratios = np.array([1 - 1e-9, 1 - 1e-6, 0.999, 0.5, 1e-7, 0.0, 1e-12] + [0.97] * 20)
    for left_out in range(len(ratios)):
        product, expected = (
            functools.reduce(lambda p, r: np.convolve(p, [r, 1.0]), r, np.ones(1))
            for r in (ratios, np.delete(ratios, left_out))
        )
        quotient = np.empty(len(ratios) + 1)
        path_kernels.divide_polynomial(
            np.append(product, 0.0), len(ratios), ratios[left_out], quotient
        )
        np.testing.assert_allclose(quotient[: len(ratios)], expected, rtol=1e-9, atol=1e-300)
