"""The two halves of a background: one fits what is explained, the other judges."""

import numpy as np
import pandas as pd
import pytest

import weightedshap as ws
from tests.evaluation.test_evaluate import BACKGROUND, ROWS, model
from weightedshap.evaluation import halves
from weightedshap.inputs import as_table


def test_halves_are_drawn_at_random():
    """Notices the first half of the sorted rows, or the same for every seed."""
    table = as_table(np.arange(200.0)[:, None])
    firsts = [
        np.sort(halves(table, np.random.default_rng(seed))[0].data[:, 0]) for seed in range(5)
    ]
    assert all(len(first) == 100 for first in firsts)
    assert all(
        60 < first.mean() < 140 and first.max() > 150 and first.min() < 50 for first in firsts
    )
    assert len({first.tobytes() for first in firsts}) == 5


def test_halves_share_no_row_and_keep_copies_together():
    table = as_table(
        np.repeat(np.arange(30.0).reshape(10, 3), [1, 5, 1, 2, 1, 1, 9, 1, 1, 3], axis=0)
    )
    one, other = halves(table, np.random.default_rng(0))
    rows = [set(map(tuple, np.asarray(half.data))) for half in (one, other)]
    assert len(rows[0]) == len(rows[1]) == 5
    assert not rows[0] & rows[1]
    assert len(one) + len(other) == len(table)
    assert one.weights.sum() == pytest.approx(1)


def test_halves_of_a_frame_with_words_and_holes():
    frame = pd.DataFrame(
        {"a": ["x", "y", None, "x"] * 5, "b": [1.0, np.nan, 3.0, 1.0] * 5, "c": range(20)}
    )
    one, other = halves(as_table(frame), np.random.default_rng(0))
    assert sorted([*one.data["c"], *other.data["c"]]) == list(range(20))


def test_few_distinct_rows_cannot_be_cut():
    explainer = ws.Explainer(
        model, np.repeat(BACKGROUND[:3], 20, axis=0), game="baseline", progress=False
    )
    with pytest.raises(ValueError, match="3 distinct rows, too few"):
        ws.evaluate(explainer, ROWS)


def test_four_distinct_rows_can_be_cut():
    two = halves(as_table(np.repeat(BACKGROUND[:4], 3, axis=0)), np.random.default_rng(0))
    assert [len(half) for half in two] == [6, 6]
