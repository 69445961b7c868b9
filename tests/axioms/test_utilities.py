"""Tests of what every utility must satisfy, for all in UTILITIES."""

import numpy as np
import pytest
from hypothesis import given

import weightedshap as ws
from tests.axioms.strategies import games, seeds
from tests.oracles import normal_rows, product_model
from weightedshap.utilities import UTILITIES
from weightedshap.weights import paper, wide

every_utility = pytest.mark.parametrize("name", UTILITIES)


def score_of(name, game, phi):
    return UTILITIES[name](game, float(game.values[-1]))(phi)


def attributions(d, m, seed):
    return np.random.default_rng(seed).normal(size=(m, d))


@every_utility
@given(game=games(), seed=seeds)
def test_one_finite_score_for_each_attribution(name, game, seed):
    scores = score_of(name, game, attributions(game.d, 6, seed))
    assert scores.shape == (6,)
    assert np.isfinite(scores).all()


@every_utility
@given(game=games(), seed=seeds)
def test_a_score_does_not_depend_on_the_attributions_scored_with_it(name, game, seed):
    phi = attributions(game.d, 6, seed)
    one_by_one = np.concatenate([score_of(name, game, phi[m : m + 1]) for m in range(6)])
    np.testing.assert_array_equal(score_of(name, game, phi), one_by_one)


def explained(utility, family="paper", **choices):
    background = normal_rows(8)
    explainer = ws.Explainer(
        product_model, background, game="marginal", family=family, utility=utility, **choices
    )
    return explainer(normal_rows(5, seed=1))


@every_utility
def test_the_chosen_weight_scores_best_in_every_row(name):
    explanation = explained(name)
    chosen = [explanation.family.labels.index(label) for label in explanation.weight_labels]
    best = explanation.scores[np.arange(5), chosen]
    np.testing.assert_allclose(best, explanation.scores.max(axis=1), rtol=1e-12)
    uniform = explanation.family.labels.index("Beta(1,1)")
    assert (best >= explanation.scores[:, uniform]).all()


@every_utility
def test_a_larger_family_never_scores_worse_in_any_row(name):
    assert (
        explained(name, wide).scores.max(axis=1) >= explained(name, paper).scores.max(axis=1)
    ).all()


@every_utility
def test_reweighting_is_the_same_as_explaining_anew(name):
    again = explained("aup").reweight("wide", name)
    fresh = explained(name, "wide")
    np.testing.assert_array_equal(again.values, fresh.values)
    np.testing.assert_array_equal(again.scores, fresh.scores)
    np.testing.assert_array_equal(again.curves, fresh.curves)
    assert again.weight_labels.tolist() == fresh.weight_labels.tolist()
    assert (again.utility, again.family.labels) == (fresh.utility, fresh.family.labels)


@every_utility
def test_a_shared_weight_has_one_label_and_the_best_mean_score(name):
    explanation = explained(name, select="shared")
    (label,) = set(explanation.weight_labels)
    means = explanation.scores.mean(axis=0)
    assert means[explanation.family.labels.index(label)] == pytest.approx(means.max(), rel=1e-12)
