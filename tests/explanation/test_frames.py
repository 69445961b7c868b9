"""Frames of an explanation in the library that people work with: pandas, or polars."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn.compose

import weightedshap as ws
from tests.inputs.lightgbm_example import FRAME, MODEL, explain_rows
from tests.oracles import normal_rows, product_model, three_outputs
from weightedshap._checks import UnknownNameError

pl = pytest.importorskip("polars")

N = 3
NAMES = list("abcd")
X = normal_rows(N, seed=1)
MIXED = pl.DataFrame(
    {
        "a": [1, None, 3],
        "b": [1.5, float("nan"), None],
        "c": ["u", None, "w"],
        "d": pl.Series(["x", "y", "x"], dtype=pl.Enum(["y", "x"])),
    }
)


def explain(rows=X, model=product_model):
    """Of rows as they come, on a background of their kind."""
    found = ws.Explainer(
        lambda Z: model(np.asarray(Z)), normal_rows(9), game="marginal", progress=False
    )(X)
    names = found.feature_names if isinstance(rows, np.ndarray) else tuple(NAMES)
    return replace(found, data=rows, feature_names=names)


def of_polars(**choices):
    return explain(pl.DataFrame(X, schema=NAMES), **choices)


def test_rows_of_polars_give_frames_of_polars():
    background = pl.DataFrame(normal_rows(9), schema=NAMES)
    found = ws.Explainer(lambda Z: product_model(Z.to_numpy()), background, game="marginal")(
        background[:N]
    )
    assert isinstance(found.to_frame(), pl.DataFrame)
    assert found.to_frame("wide").columns == NAMES


@pytest.mark.parametrize("model", [product_model, three_outputs])
def test_both_libraries_hold_the_same(model):
    tidy = of_polars(model=model).to_frame()
    other = of_polars(model=model).to_frame(to="pandas")
    assert isinstance(other, pd.DataFrame)
    assert tidy.columns == list(other.columns)
    assert all(tidy[name].to_list() == other[name].tolist() for name in tidy.columns)


@pytest.mark.parametrize("data", [False, True])
def test_a_wide_frame_of_polars_can_include_the_rows(data):
    explanation = of_polars()
    wide = explanation.to_frame("wide", data=data)
    assert wide.columns == ([f"attribution__{name}" for name in NAMES] if data else NAMES) + [
        f"data__{name}" for name in NAMES if data
    ]
    np.testing.assert_array_equal(wide.to_numpy()[:, :4], explanation.values)
    np.testing.assert_array_equal(wide.to_numpy()[:, 4:], X if data else np.empty((N, 0)))


def test_a_wide_frame_of_polars_has_a_line_for_each_row_and_output():
    explanation = of_polars(model=three_outputs)
    wide = explanation.to_frame("wide", data=True)
    assert wide["row"].to_list() == np.repeat(range(N), 3).tolist()
    assert wide["output"].to_list() == list(explanation.output_names) * N
    np.testing.assert_array_equal(wide["attribution__c"], explanation.values[:, 2].ravel())
    np.testing.assert_array_equal(wide["data__c"], np.repeat(X[:, 2], 3))


def test_columns_keep_their_types_and_holes():
    wide = explain(MIXED).to_frame("wide", data=True).select(pl.col("^data__.*$"))
    assert wide.equals(MIXED.rename(lambda name: f"data__{name}"), null_equal=True)
    assert wide.dtypes == MIXED.dtypes


def test_a_tidy_frame_of_polars_shows_cells_in_one_type_that_holds_them():
    cells = explain(MIXED).to_frame(data=True)["data"].to_list()
    assert cells == ["1", "1.5", "u", "x", None, "NaN", None, "y", "3", None, "w", "x"]
    assert of_polars().to_frame(data=True)["data"].to_list() == X.ravel().tolist()


@pytest.mark.parametrize("rows", [X, pd.DataFrame(X, list("xyz"), NAMES)])
def test_the_frame_is_of_pandas_unless_polars_is_requested(rows):
    explanation = explain(rows)
    assert isinstance(explanation.to_frame("wide"), pd.DataFrame)
    given = explanation.to_frame("wide", data=True, to="polars")
    np.testing.assert_array_equal(given.to_numpy(), np.hstack([explanation.values, X]))


@pytest.mark.parametrize("configured", ["pandas", "polars"])
@pytest.mark.parametrize("rows", [X, pd.DataFrame(X, columns=NAMES), pl.DataFrame(X, schema=NAMES)])
def test_what_scikit_learn_is_set_to_is_respected(rows, configured):
    explanation = explain(rows)
    own = type(explanation.to_frame())
    with sklearn.config_context(transform_output=configured):
        assert type(explanation.to_frame()).__module__.startswith(configured)
        assert isinstance(explanation.to_frame(to="pandas"), pd.DataFrame)
        assert isinstance(explanation.to_frame(to="polars"), pl.DataFrame)
        assert type(explanation.to_frame(to="default")) is own
    with sklearn.config_context(transform_output="default"):
        assert type(explanation.to_frame()) is own


def test_the_names_are_those_of_scikit_learn():
    union = sklearn.compose.ColumnTransformer([("data", "passthrough", NAMES)])
    with sklearn.config_context(transform_output="polars"):
        names = union.fit(pl.DataFrame(X, schema=NAMES)).get_feature_names_out()
    assert of_polars().to_frame("wide", data=True).columns[4:] == names.tolist()


def test_a_library_that_is_unknown_or_missing_is_refused(monkeypatch):
    with pytest.raises(
        UnknownNameError, match=r"Unknown library of frames 'polar'\. Did you mean 'polars'\?"
    ):
        explain().to_frame(to="polar")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r'pip install "weightedshap\[polars\]"'):
        explain().to_frame(to="polars")


def test_names_that_would_appear_twice_are_refused():
    explanation = replace(of_polars(model=three_outputs), feature_names=("row", "b", "c", "d"))
    with pytest.raises(pl.exceptions.DuplicateError, match="row"):
        explanation.to_frame("wide")


@pytest.mark.parametrize("data", [pd.DataFrame(X), X, "data", None, 1])
def test_including_the_rows_is_true_or_false(data):
    with pytest.raises(
        TypeError, match=f"`data` must be True or False.*got a {type(data).__name__}"
    ):
        explain().to_frame(data=data)


def test_frames_keep_the_index_and_carry_values():
    explanation = explain_rows(MODEL, FRAME, FRAME[5:8])
    wide = explanation.to_frame("wide")
    assert list(wide.index) == ["row 5", "row 6", "row 7"]
    tidy = explanation.to_frame(data=True)
    assert list(tidy.index[:5]) == ["row 5"] * 4 + ["row 6"]
    assert tidy["row"].tolist() == np.repeat([0, 1, 2], 4).tolist()
    np.testing.assert_array_equal(tidy["data"].to_numpy(float), FRAME[5:8].to_numpy().ravel())
    both = explanation.to_frame("wide", data=True)
    np.testing.assert_array_equal(both["attribution"], wide)
    pd.testing.assert_frame_equal(both["data"], FRAME[5:8], check_names=False)
    with pytest.raises(ValueError, match="Features are no columns of the rows explained"):
        explain_rows(MODEL, FRAME, groups=[["a", "b"]]).to_frame(data=True)


def test_frames_of_several_outputs_keep_the_index_too():
    explanation = explain_rows(lambda X: X.to_numpy()[:, :2], FRAME, FRAME[5:8])
    wide = explanation.to_frame("wide", data=True)
    assert list(wide.index) == [(f"row {r}", f"output {o}") for r in (5, 6, 7) for o in (0, 1)]
    np.testing.assert_array_equal(wide["attribution"].to_numpy()[1::2], explanation.values[..., 1])
    np.testing.assert_array_equal(wide["data"].to_numpy()[::2], FRAME[5:8].to_numpy())
