"""Rows, outputs and features cut out of an explanation, and what the cut can still do."""

import numpy as np
import pandas as pd
import pytest

import weightedshap as ws
from tests.explanation.examples import (
    BACKGROUND,
    D,
    M,
    N,
    X,
    assert_equal_up_to_rounding,
    assert_same_explanation,
    explain,
)
from tests.oracles import (
    product_model,
    random_game,
    three_outputs,
)
from weightedshap.explanation import field_names
from weightedshap.explanation import slicing as axes
from weightedshap.games import FunctionGame

SLICES = {
    "a row": 1,
    "the last row": -1,
    "a range of rows": slice(0, 2),
    "a mask": np.array([True, False, True]),
    "rows in another order, one twice": [2, 0, 2],
    "a row by numpy's integer": np.int64(2),
}


def rows_of(key):
    return np.atleast_1d(np.arange(N)[key])


@pytest.mark.parametrize("key", SLICES.values(), ids=SLICES)
@pytest.mark.parametrize("model", [product_model, three_outputs])
def test_rows_are_cut_out_of_every_array_and_keep_their_axis(model, key):
    whole = explain(model)
    part = whole[key]
    rows = rows_of(key)
    assert len(part) == len(part.stopped) == len(rows)
    for name in axes.AXES:
        value = getattr(whole, name)
        expected = {k: v[rows] for k, v in value.items()} if isinstance(value, dict) else value
        expected = expected[rows] if isinstance(expected, np.ndarray) else expected
        np.testing.assert_equal(getattr(part, name), expected, err_msg=name)
    np.testing.assert_array_equal(part.data, X[rows])
    assert part.feature_names == whole.feature_names


def test_the_table_of_axes_names_every_array():
    explanation = ws.explain(random_game(8, outputs=(2,)), estimator="permutation", evaluations=600)
    shapes = {"row": 1, "feature": 8, "size": 8, "step": 9, "weight": M, "chain": 10, "output": 2}
    for name in field_names():
        value = getattr(explanation, name)
        arrays = value.values() if name in ("reference_curves", "endpoint_gaps") else [value]
        if all(isinstance(array, np.ndarray) for array in arrays):
            assert {array.shape for array in arrays} == {
                tuple(shapes[axis] for axis in axes.AXES[name] if axis in shapes)
            }, name


def test_iterating_gives_explanations_of_one_row():
    whole = explain()
    assert [part.values.shape for part in whole] == [(1, D)] * N
    assert ws.Explanation.concatenate(whole).equals(whole)


def test_a_row_is_explained_as_if_alone():
    assert_same_explanation(explain()[1], explain(rows=X[1:2]))


def test_an_output_is_explained_as_if_alone():
    whole = explain(three_outputs)
    for key in (1, "output 1", np.int64(-2)):
        assert_same_explanation(whole[..., key], explain(three_outputs, outputs=1))
    for key in ([2, 0], ["output 2", "output 0"]):
        assert_same_explanation(whole[:, :, key], explain(three_outputs, outputs=[2, 0]))
    assert whole[..., [1]].values.shape == (N, D, 1)
    assert whole[0, :, 1].values.shape == (1, D)


@pytest.mark.parametrize("model", [product_model, three_outputs])
@pytest.mark.parametrize("key", [[2, 0], ["x2", "x0"], ("x2", 0), np.array([2, 0])])
def test_features_are_selected_by_name_or_position(model, key):
    whole = explain(model)
    part = whole[:, key]
    np.testing.assert_array_equal(part.values, whole.values[:, [2, 0]])
    np.testing.assert_array_equal(part.contributions, whole.contributions[:, :, [2, 0]])
    np.testing.assert_array_equal(part.data, X[:, [2, 0]])
    assert part.feature_names == ("x2", "x0")
    for name in ("weights", "scores", "curves", "predictions", "base_values"):
        np.testing.assert_array_equal(getattr(part, name), getattr(whole, name))
    np.testing.assert_array_equal(
        part.orders, np.moveaxis(ws.curves.order_of(np.moveaxis(part.values, 1, -1)), -1, 1)
    )


def test_one_feature_keeps_its_axis():
    part = explain()[:, "x1"]
    assert part.values.shape == (N, 1)
    assert (part.orders == 0).all()
    assert explain()[..., "x1"].equals(part)
    assert explain()[1:, "x1"].values.shape == (N - 1, 1)


def test_columns_of_frames_are_selected_with_their_features():
    frame = pd.DataFrame(X, columns=list("abcd"), index=[7, 8, 9])
    explanation = ws.Explainer(
        product_model, pd.DataFrame(BACKGROUND, columns=list("abcd")), game="marginal"
    )(frame)
    pd.testing.assert_frame_equal(explanation[1:, ["d", "a"]].data, frame.loc[[8, 9], ["d", "a"]])


def test_groups_keep_all_their_columns():
    explanation = explain(groups={"pair": [0, 1]})
    np.testing.assert_array_equal(explanation[:2, "pair"].data, X[:2])


@pytest.mark.parametrize("select", ["per_row", "shared"])
def test_rows_and_outputs_that_were_cut_out_can_be_reweighted(select):
    part = explain(three_outputs)[[2, 0]][..., [2, 1]][..., 1].reweight("sizes", select=select)
    fresh = explain(three_outputs, rows=X[[2, 0]], outputs=1, family="sizes", select=select)
    assert_same_explanation(part, fresh)


def test_sampled_outputs_that_were_cut_out_can_be_reweighted():
    whole = ws.explain(random_game(8, outputs=(2,)), estimator="permutation", evaluations=600)
    part = whole[..., 1].reweight("wide")
    cut = whole.reweight("wide")[..., 1]
    for name in (
        "values",
        "shapley",
        "weights",
        "orders",
        "scores",
        "curves",
        "weight_labels",
        "standard_errors",
    ):
        assert_equal_up_to_rounding(getattr(part, name), getattr(cut, name))


def test_blocks_of_rows_that_were_cut_out_can_be_reweighted():
    whole = explain(three_outputs, game="tree_surrogate")
    part = whole[[2, 0], :, [2, 1]].reweight("sizes")
    assert part.equals(whole.reweight("sizes")[[2, 0], :, [2, 1]])


def test_a_slice_can_be_reweighted_by_a_utility_with_another_game():
    part = explain(three_outputs)[1:, :, 2].reweight("paper", "masked_inclusion")
    fresh = explain(three_outputs, rows=X[1:], outputs=2, utility="masked_inclusion")
    assert_same_explanation(part, fresh)


def test_selected_features_cannot_be_reweighted():
    with pytest.raises(ValueError, match="features were selected"):
        explain()[:, ["x3", "x2", "x1", "x0"]].reweight("wide")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("x1", r"explanation\[:, 'x1'\]"),
        (["x1"], "Rows are selected by position"),
        (3, "There is no row 3: there are 3"),
        ([0, -4], "There is no row -4"),
        ((0, 4), "There is no feature 4"),
        ((0, "x9"), "Did you mean"),
        ((0, ["x0", "x0"]), "selected once"),
        ((0, []), "at least one feature"),
        ([], "at least one row"),
        (np.zeros(N, dtype=bool), "at least one row"),
        (np.ones(N + 1, dtype=bool), "mask over 3 rows"),
        (1.5, "by position, slice, mask or list"),
        (None, "by position, slice, mask or list"),
        ((0, 0, 0), "got 3 parts"),
        ((..., ...), "sliced as"),
    ],
)
def test_slices_that_make_no_sense_are_refused(key, message):
    with pytest.raises((IndexError, KeyError), match=message):
        explain()[key]


def test_ragged_positions_are_no_selection_of_features():
    explanation = ws.explain(FunctionGame(lambda coalitions: coalitions.sum(axis=1), 4))
    with pytest.raises(TypeError, match="must be numbers"):
        explanation[:, [[1], [1, 2]]]
