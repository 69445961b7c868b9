"""Sparse models of both parts of a game: their Δ, and what they find."""

import numpy as np
import pytest

from tests.oracles import delta_by_definition
from weightedshap.estimators.parities import Model, columns, parities
from weightedshap.games import FunctionGame


def model(odd, d, seed=0):
    """A model of one part with random terms and coefficients."""
    rng = np.random.default_rng(seed)
    terms = np.array([np.isin(np.arange(d), rng.choice(d, 3 - (1 - odd), replace=False)) for _ in range(4)])
    return Model(odd, terms, rng.normal(size=columns(np.ones((1, d)), odd, terms).shape[1]))


def game_of(part, d):
    """The game that a model of one part stands for: it is told of coalitions of at most half of the players."""

    def values(coalitions):
        large = 2 * coalitions.sum(axis=1) > d
        small = np.where(large[:, None], ~coalitions, coalitions)
        return part(2.0 * small - 1) * np.where(large & bool(part.odd), -1, 1)

    return FunctionGame(values, d)


@pytest.mark.parametrize("odd", [0, 1])
@pytest.mark.parametrize("d", [5, 6, 7])
def test_the_delta_of_a_model_is_its_definition(d, odd):
    part = model(odd, d)
    np.testing.assert_allclose(part.delta(), delta_by_definition(game_of(part, d)), atol=1e-11)


def test_a_parity_is_the_product_of_its_signs():
    rng = np.random.default_rng(0)
    signs, terms = rng.choice([-1.0, 1.0], size=(20, 6)), rng.random((5, 6)) < 0.5
    expected = [[np.prod(row[term]) for term in terms] for row in signs]
    np.testing.assert_array_equal(parities(signs, terms), expected)
