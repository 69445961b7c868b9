"""Sparse models of a game: their Δ, sums of them, and what they find."""

import numpy as np
import pytest

from tests.oracles import delta_by_definition, random_game
from weightedshap.estimators.sparse_fourier import (
    FourierModel,
    FourierTerms,
    ParityPart,
    SparseFourier,
    mix_models,
)
from weightedshap.estimators.strata import SamplingPlan, StratifiedSample
from weightedshap.games import FunctionGame


def model(d, seed=0, n=6):
    """A model with random terms and coefficients."""
    rng = np.random.default_rng(seed)
    sets = np.array(
        [np.isin(np.arange(d), rng.choice(d, rng.integers(1, 5), replace=False)) for _ in range(n)]
    )
    return FourierModel(
        FourierTerms(sets, rng.integers(0, 3, n)), rng.normal(size=n), rng.normal(size=d + 1)
    )


def signs_of(coalitions):
    return np.where(coalitions, 1.0, -1.0)


@pytest.mark.parametrize("d", [4, 5, 6, 7])
def test_the_delta_of_a_model_is_its_definition(d):
    one = model(d)
    game = FunctionGame(lambda coalitions: one(signs_of(coalitions)), d)
    np.testing.assert_allclose(one.delta(), delta_by_definition(game), atol=1e-11)


def test_a_term_is_the_product_of_its_signs_and_a_power_of_their_mean():
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], size=(20, 6))
    terms = model(6).terms
    expected = [
        [np.prod(row[members]) * row.mean() ** t for members, t in zip(terms.sets, terms.powers)]
        for row in signs
    ]
    np.testing.assert_allclose(terms(signs), expected)


def test_a_mixture_adds_up_and_has_every_term_once():
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(20, 6))
    models = [model(6, 0), model(6, 1), model(6, 0)]
    weights = [0.5, 2.0, 0.25]
    both = mix_models(models, weights)
    np.testing.assert_allclose(both(signs), sum(w * one(signs) for w, one in zip(weights, models)))
    assert len(both.terms) <= 12


def drawn(d, has_complements, seed=0):
    """A sample of all coalitions of the sizes at both ends and of draws with or without their
    complements."""
    plan = SamplingPlan.build(d, 600)
    rng = np.random.default_rng(seed)
    calls = [plan.whole_size_coalitions(), *plan.coalitions(rng, 5)]
    fold = np.repeat(np.arange(-1, 5), [len(called) for called in calls])
    n = np.concatenate([[0], np.cumsum([len(called) for called in calls])])
    complement = np.concatenate(
        [start + np.roll(np.arange(len(c)), len(c) // 2) for start, c in zip(n, calls)]
    )
    return StratifiedSample(
        np.concatenate(calls), fold, plan.is_whole, complement if has_complements else None
    )


@pytest.mark.parametrize("has_complements", [True, False])
def test_a_game_of_few_terms_is_found_from_draws_with_and_without_complements(has_complements):
    truth = FourierModel(
        FourierTerms(np.eye(11, dtype=bool)[:3], np.zeros(3, int)), np.ones(3), np.zeros(12)
    )
    sample = drawn(11, has_complements)
    sets = np.zeros((2, 11), bool)
    sets[0, [1, 4]] = sets[1, [2, 5, 7]] = True
    truth = mix_models(
        [
            truth,
            FourierModel(FourierTerms(sets, np.zeros(2, int)), np.array([2.0, -1.0]), np.zeros(12)),
        ],
        [1.0, 1.0],
    )
    fit = SparseFourier()(sample, truth(signs_of(sample.coalitions)))
    np.testing.assert_allclose(fit.delta, np.stack([truth.delta()] * len(fit.delta)), atol=0.02)


def test_the_model_of_a_group_has_not_seen_it():
    sample = drawn(12, has_complements=True)
    y = random_game(12)(sample.coalitions)
    shaken = y + 0.1 * np.isin(np.arange(len(y)), sample.groups[1])
    one, other = (SparseFourier(rounds=0)(sample, values).predictions for values in (y, shaken))
    np.testing.assert_array_equal(one[0], other[0])
    assert (np.abs(one - other)[1:].max(axis=1) > 1e-3).all()


@pytest.mark.parametrize("d", [1, 2, 7, 11, 12])
def test_both_parts_together_hold_every_function_of_the_size(d):
    signs = np.ones((1, d))
    y = np.ones(1)
    even, odd, every = (ParityPart(odd, signs, y, y, [])._size_columns() for odd in (0, 1, None))
    np.testing.assert_array_equal(even, even[::-1])
    np.testing.assert_array_equal(odd, -odd[::-1])
    ranks = [
        np.linalg.matrix_rank(columns) for columns in (even, odd, np.hstack([even, odd]), every)
    ]
    assert ranks == [d // 2 + 1, (d + 1) // 2, d + 1, d + 1]
