"""Twelve weights against thirteen."""

from __future__ import annotations

import numpy as np

from weightedshap.weights import paper
from weightedshap_paper import family
from weightedshap_paper.experiment import Case, Settings
from weightedshap_paper.runner import generator


def test_the_printed_weights_are_the_papers_without_one():
    twelve = family.printed(9)
    thirteen = paper(9)
    assert len(twelve) == 12
    assert set(thirteen.labels) - set(twelve.labels) == {"Beta(32,1)"}
    kept = [thirteen.labels.index(label) for label in twelve.labels]
    np.testing.assert_array_equal(twelve.vectors, thirteen.vectors[kept])


def test_an_additional_weight_cannot_hurt_on_the_game_that_chooses(data):
    case = Case("wind", "tree_surrogate")
    numbers = family.run_weights(case, Settings(rows=12, quick=True), generator(0, case, 0))
    assert set(numbers) == {"12", "13"}
    assert 0 < numbers["13"]["own"] <= numbers["12"]["own"]
    assert numbers["13"]["independent"] > 0


def test_the_table_gives_the_change_in_percent():
    runs = [{"12": {"own": 2.0, "independent": 4.0}, "13": {"own": 1.0, "independent": 5.0}}] * 2
    *_, line = family.table_weights({Case("wind", "tree_surrogate"): runs})
    assert line == "| wind | 2 | 1 | -50.00 % ± 0.00 | 4 | 5 | +25.00 % ± 0.00 |"
