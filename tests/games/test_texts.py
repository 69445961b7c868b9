"""LightGBM's text of trees: what is well formed comes back as it was, and what is damaged is told before it is read."""

import lightgbm
import numpy as np
import pytest

from tests.oracles import normal_rows
from weightedshap.trees.texts import DEEPEST, MISSING, examined

X = normal_rows(200)


def booster(**more):
    X_holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    parameters = {"objective": "regression", "verbose": -1, "num_leaves": 7, "num_threads": 1, **more}
    return lightgbm.train(parameters, lightgbm.Dataset(X_holes, X[:, 0] * X[:, 1] + X[:, 2]), 3)


@pytest.mark.parametrize("more", [{}, {"use_missing": False}, {"zero_as_missing": True}, {"num_leaves": 2}])
def test_trees_come_back_as_they_were(more):
    """With holes that go to either side, without, and with zeros as holes."""
    one = booster(**more)
    again = lightgbm.Booster(model_str=examined(one.model_to_string(), 4))
    rows = np.vstack([X, np.where(X > 0, X, np.nan), np.where(X > 0, X, 0.0)])
    np.testing.assert_array_equal(again.predict(rows), one.predict(rows))


def test_missing_values_go_left_or_right_and_are_none_zero_or_nan():
    assert {0, 2, 4, 6, 8, 10} == MISSING


def chain(n, **changed):
    """The text of a tree whose right children go on; n leaves."""
    inner = range(n - 1)
    fields = {
        "num_leaves": [n],
        "split_feature": [0] * (n - 1),
        "threshold": [0.5] * (n - 1),
        "decision_type": [2] * (n - 1),
        "left_child": [~k for k in inner],
        "right_child": [*range(1, n - 1), ~(n - 1)],
        "leaf_value": [1.0] * n,
    } | changed
    lines = "\n".join(f"{name}={' '.join(map(str, numbers))}" for name, numbers in fields.items())
    return f"tree\n\nTree=0\n{lines}\n\nend of trees\n"


def test_the_deepest_leaf_has_a_thousand_splits_above_it():
    assert "num_leaves=1001" in examined(chain(DEEPEST + 1), 1)
    with pytest.raises(ValueError, match="too deep"):
        examined(chain(DEEPEST + 2), 1)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"left_child": [1, -2, -3], "right_child": [-1, 2, -4]}, None),
        ({"left_child": [-1, 1, -3], "right_child": [-2, 2, -4]}, "circle"),  # the second is its own child
        ({"left_child": [-1, -2, 1], "right_child": [2, -3, -4]}, "circle"),  # and here the third's
        ({"left_child": [-1, -1, -3], "right_child": [1, 2, -4]}, "hang nowhere, or twice"),
        ({"decision_type": [2, 1, 2]}, "not splits on numbers"),
        ({"split_feature": [0, 1, 0]}, "none of 1"),
        ({"threshold": [0.5, "x", 1]}, "no number"),
        ({"threshold": [0.5, "-inf", 1]}, None),
        ({"leaf_value": [1, 2, "inf", 4]}, "no number"),
        ({"leaf_value": [1, 2, 3]}, "holds 3 numbers where 4 are needed"),
    ],
)
def test_damage_is_told(changed, sentence):
    text = chain(4, **changed)
    if sentence is None:
        assert "num_leaves=4" in examined(text, 1)
        return
    with pytest.raises(ValueError, match=sentence):
        examined(text, 1)
