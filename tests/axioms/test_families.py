"""Tests of what every weight family must satisfy, for all in FAMILIES."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weightedshap as ws
from tests.axioms.strategies import games, scalars
from tests.oracles import ORACLES, additive, with_null_player
from weightedshap.weights import FAMILIES, shapley

every_family = pytest.mark.parametrize("name", FAMILIES)


@every_family
@pytest.mark.parametrize("d", [1, 2, 3, 4, 10, 61, 300])
def test_vectors_are_finite_not_negative_and_sum_to_one(name, d):
    vectors = FAMILIES[name](d).vectors
    assert vectors.shape == (len(FAMILIES[name](d).labels), d)
    assert (vectors >= 0).all()
    np.testing.assert_allclose(vectors.sum(axis=1), 1, atol=1e-12)


@every_family
@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_labels_differ_and_so_do_vectors(name, d):
    family = FAMILIES[name](d)
    assert len(set(family.labels)) == len(family)
    assert [family.index(vector) for vector in family.vectors] == list(range(len(family)))


@every_family
@given(step=scalars, game=games(1, 4))
def test_a_player_of_constant_steps_gets_that_step_under_every_weight(name, step, game):
    explanation = ws.explain(with_null_player(game, 0, step), family=name)
    np.testing.assert_allclose(explanation.values[0, 0], step, atol=1e-12)
    np.testing.assert_allclose(
        explanation.family.phi(explanation.contributions[0])[:, 0], step, atol=1e-12
    )


@every_family
def test_an_additive_game_has_one_attribution_whatever_the_weight(name):
    oracle = ORACLES["additive"]
    phi = FAMILIES[name](oracle.game.d).phi(oracle.delta)
    np.testing.assert_allclose(phi, np.tile(oracle.delta[0], (len(phi), 1)), atol=1e-12)


@every_family
@given(game=games(2, 5))
def test_the_chosen_weight_is_never_worse_than_shapley_where_uniform_weights_compete(name, game):
    family = FAMILIES[name](game.d) | shapley(game.d)
    explanation = ws.explain(game, family=family)
    chosen = family.labels.index(explanation.weight_labels[0])
    uniform = family.index(shapley(game.d).vectors[0])
    assert explanation.scores[0, chosen] >= explanation.scores[0, uniform]
    assert explanation.curves[0, 1:].sum() <= explanation.reference_curves["shapley"][0, 1:].sum()


@settings(max_examples=20)
@given(
    game=games(2, 5),
    names=st.tuples(st.sampled_from(sorted(FAMILIES)), st.sampled_from(sorted(FAMILIES))),
)
def test_a_larger_family_never_does_worse(game, names):
    one, other = (FAMILIES[name](game.d) for name in names)
    best_of_one, best_of_both = (
        np.nanmax(ws.explain(game, family=family).scores) for family in (one, one | other)
    )
    assert best_of_both >= best_of_one


@every_family
@pytest.mark.parametrize("worth", [[1.0], [2.0, -1.0], [0.0, 0.0, 3.0]])
def test_games_of_one_two_and_three_players_are_explained(name, worth):
    explanation = ws.explain(additive(worth).game, family=name)
    np.testing.assert_allclose(explanation.values, [worth], atol=1e-12)
