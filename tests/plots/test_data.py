"""What figures read off an explanation: one output, games and weights in words, factors."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import weightedshap as ws
from tests.plots.examples import make_explanation, with_factor
from weightedshap.plots import data as reading


def test_labels_that_look_like_pairs_are_left_alone():
    family = ws.weights.WeightFamily(("a · x", "b · y", "c"), np.full((3, 2), 0.5))
    assert reading.games_and_weights(family) == ((), family)
    pairs = ws.weights.paper(5).pairs_with(("one", "two"))
    games, weights = reading.games_and_weights(pairs)
    assert games == ("one", "two")
    assert weights.equals(ws.weights.paper(5))


def test_running_totals_of_probabilities_stay_between_0_and_1(explanation):
    phi = np.array([[0.7, 0.6, -0.5, -0.4, 0.1]] * 6)  # adds up, but climbs to 1.7
    changes = {"values": phi, "base_values": np.full(6, 0.4), "predictions": np.full(6, 0.9)}
    info = {**explanation.game_info, "space": "probability"}
    high = dataclasses.replace(explanation, **changes, game_info=info)
    assert np.isnan(reading.display_factors(high)).all()
    assert set(
        reading.display_factors(dataclasses.replace(high, game_info=explanation.game_info))
    ) == {1.0}
    assert set(
        reading.display_factors(
            dataclasses.replace(
                high, values=phi[:, [0, 2, 1, 3, 4]] / 2.5, predictions=np.full(6, 0.6)
            )
        )
    ) == {1.0}


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ("Beta(1,1)", "all sizes equally, as Shapley does"),
        ("first", "each feature alone"),
        ("last", "with all others known"),
        ("Beta(32,1)", "mostly features alone"),
        ("Beta(1,32)", "mostly with all others known"),
        ("Beta(2,1)", "more with few others known"),
        ("Beta(1,2)", "more with many others known"),
    ],
)
@pytest.mark.parametrize("d", [10, 90])
def test_a_weight_is_described_in_words(weight, words, d):
    family = ws.weights.paper(d)
    assert reading.weight_in_words(family.vectors[family.labels.index(weight)]) == words


def test_selecting_an_output_copies_nothing():
    several = make_explanation(outputs=3, estimator="permutation")
    one, title = reading.select_output(several, 2)
    assert title == "output 2, one of 3 outputs"
    assert one.equals(several[..., 2])
    assert np.shares_memory(one.contributions, several.contributions)
    assert reading.select_output(one, 0) == (one, None)


def test_factors_make_attributions_add_up():
    found = with_factor(make_explanation(), 0.4)
    factor = reading.display_factors(found)
    assert factor == pytest.approx(0.4)
    assert found.base_values + (found.values * factor[:, None]).sum(axis=1) == pytest.approx(
        found.predictions
    )
    assert np.isnan(reading.display_factors(found[:, [0, 1]])).all()
