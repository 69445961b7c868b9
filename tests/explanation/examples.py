"""Rows that the tests of explanations explain, and when two explanations are the same."""

import numpy as np

import weightedshap as ws
from tests.oracles import (
    normal_rows,
    product_model,
    random_game,
)
from weightedshap.explanation import field_names

N = 3
D = 4
M = 13
BACKGROUND = normal_rows(9)
X = normal_rows(N, seed=1)


def explain(model=product_model, rows=X, **choices):
    return ws.Explainer(model, BACKGROUND, **{"game": "marginal", **choices})(rows)


def explain_by_sampling(evaluations=600, d=8, **choices):
    return ws.explain(random_game(d), estimator="permutation", evaluations=evaluations, **choices)


def assert_equal_up_to_rounding(one, other):
    """Equal, and numbers up to what a matrix product may round differently for a block of
    outputs."""
    if one.dtype.kind == "f":
        np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15)
    else:
        np.testing.assert_array_equal(one, other)


def assert_same_explanation(one, other):
    for name in field_names():
        if name in ("family", "data"):
            continue
        np.testing.assert_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.family.labels == other.family.labels
