"""Frames of an explanation in the library that people work with: pandas, or polars."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn.compose

import weightedshap as ws
from tests.oracles import normal_rows, product_model, three_outputs
from weightedshap._checks import UnknownName

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


def explained(rows=X, model=product_model):
    """Of rows as they come, on a background of their kind."""
    found = ws.Explainer(
        lambda Z: model(np.asarray(Z)), normal_rows(9), game="marginal", progress=False
    )(X)
    names = found.feature_names if isinstance(rows, np.ndarray) else tuple(NAMES)
    return replace(found, data=rows, feature_names=names)


def of_polars(**choices):
    return explained(pl.DataFrame(X, schema=NAMES), **choices)


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
def test_a_wide_frame_of_polars_can_stand_beside_the_rows(data):
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
    wide = explained(MIXED).to_frame("wide", data=True).select(pl.col("^data__.*$"))
    assert wide.equals(MIXED.rename(lambda name: f"data__{name}"), null_equal=True)
    assert wide.dtypes == MIXED.dtypes


def test_a_tidy_frame_of_polars_shows_cells_in_one_type_that_holds_them():
    cells = explained(MIXED).to_frame(data=True)["data"].to_list()
    assert cells == ["1", "1.5", "u", "x", None, "NaN", None, "y", "3", None, "w", "x"]
    assert of_polars().to_frame(data=True)["data"].to_list() == X.ravel().tolist()


@pytest.mark.parametrize("rows", [X, pd.DataFrame(X, list("xyz"), NAMES)])
def test_pandas_stays_where_nothing_is_asked_for(rows):
    explanation = explained(rows)
    assert isinstance(explanation.to_frame("wide"), pd.DataFrame)
    given = explanation.to_frame("wide", data=True, to="polars")
    np.testing.assert_array_equal(given.to_numpy(), np.hstack([explanation.values, X]))


@pytest.mark.parametrize("configured", ["pandas", "polars"])
@pytest.mark.parametrize("rows", [X, pd.DataFrame(X, columns=NAMES), pl.DataFrame(X, schema=NAMES)])
def test_what_scikit_learn_is_set_to_is_respected(rows, configured):
    explanation = explained(rows)
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


def test_a_library_that_is_unknown_or_missing_is_told(monkeypatch):
    with pytest.raises(
        UnknownName, match=r"Unknown library of frames 'polar'\. Did you mean 'polars'\?"
    ):
        explained().to_frame(to="polar")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r'pip install "weightedshap\[polars\]"'):
        explained().to_frame(to="polars")


def test_names_that_would_be_there_twice_are_refused():
    explanation = replace(of_polars(model=three_outputs), feature_names=("row", "b", "c", "d"))
    with pytest.raises(pl.exceptions.DuplicateError, match="row"):
        explanation.to_frame("wide")


@pytest.mark.parametrize("data", [pd.DataFrame(X), X, "data", None, 1])
def test_whether_rows_are_to_stand_beside_is_yes_or_no(data):
    with pytest.raises(
        TypeError, match=f"`data` must be True or False.*got a {type(data).__name__}"
    ):
        explained().to_frame(data=data)
