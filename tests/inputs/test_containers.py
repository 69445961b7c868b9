"""Tests of containers: arrays, pandas and polars frames keep their dtypes and are matched by name.

They are mixed, joined, compared and converted into each other; what a container cannot hold is
refused with advice.
"""

import datetime
import re

import numpy as np
import pandas as pd
import pytest

from tests.inputs.tables import housing_frame, mixed_rows
from weightedshap.inputs import as_table, concat_rows, container_of, plain_column, take_rows

pl = pytest.importorskip("polars")


def polars_frame():
    return pl.DataFrame(
        {
            "size": [1.0, float("nan"), None, 4.0],
            "count": [1, 2, None, 5],
            "single": pl.Series([1.0, 2.0, 3.0, 4.0], dtype=pl.Float32),
            "open": [True, None, False, False],
            "city": ["Bonn", "Ulm", None, "Ulm"],
            "kind": pl.Series(["red", "blue", "blue", None], dtype=pl.Categorical),
            "rank": pl.Series(["low", "high", "low", "low"], dtype=pl.Enum(["low", "mid", "high"])),
        }
    )


# what the model sees ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", [np.float64, np.float32, np.float16, np.int64, np.int8, np.uint8, bool]
)
def test_an_array_keeps_its_dtype(dtype):
    table = as_table(np.array([[0, 1], [1, 1]], dtype=dtype))
    row = table.align(np.array([1, 0], dtype=dtype))
    assert table.data.dtype == row.dtype == dtype
    assert mixed_rows(table, row, np.array([[True, False]]), table.data).dtype == dtype


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, np.uint8, bool])
def test_floats_of_a_list_stay_floats_whatever_the_dtype_of_an_array(dtype):
    row = as_table(np.array([[0, 1], [1, 1]], dtype=dtype)).align([1.0, 0.1])
    assert row.dtype == np.float64
    assert row.tolist() == [[1.0, 0.1]]


def test_a_value_that_an_integer_array_cannot_hold_stays_what_it_is():
    table = as_table(np.array([[0, 1], [3, 1]]))
    np.testing.assert_array_equal(table.align([[0.5, np.nan]]), [[0.5, np.nan]])
    np.testing.assert_array_equal(table.typical_row(), [[1.5, 1.0]])


def test_a_value_too_large_for_half_precision_stays_what_it_is():
    assert as_table(np.ones((1, 1), dtype=np.float16)).align([[1e6]]).tolist() == [[1e6]]


@pytest.mark.parametrize(
    "X", [np.zeros((4, 6))[::2, ::3], np.asfortranarray(np.ones((3, 2))), np.ones((2, 2))[::-1]]
)
def test_arrays_of_any_layout_are_taken(X):
    np.testing.assert_array_equal(as_table(X).data, X)
    assert as_table(X).data.flags.c_contiguous


def test_read_only_arrays_are_taken():
    X = np.arange(6.0).reshape(3, 2)
    X.flags.writeable = False
    table = as_table(X)
    assert mixed_rows(table, table.align(X[:1]), np.array([[True, False]]), X).tolist() == [
        [0, 1],
        [0, 3],
        [0, 5],
    ]


def test_a_generated_frame_is_mixed_without_a_change_of_dtype():
    frame = housing_frame()
    table = as_table(frame)
    known = np.random.default_rng(0).random((5, 11)) < 0.5
    mixed = mixed_rows(table, table.align(frame.iloc[[7]]), known, frame)
    assert mixed.dtypes.tolist() == frame.dtypes.tolist()
    for c, name in enumerate(frame.columns):
        row = plain_column(frame, c)[7]
        hidden = plain_column(frame, c)
        expected = np.concatenate(
            [np.full(len(frame), row, hidden.dtype) if k else hidden for k in known[:, c]]
        )
        assert list(map(str, plain_column(mixed, c))) == list(map(str, expected)), name


def test_text_and_booleans_kept_as_objects_stay_objects():
    frame = pd.DataFrame({"a": ["x", "y", None], "b": [True, None, False]}, dtype=object)
    table = as_table(frame)
    mixed = mixed_rows(table, frame[:1], np.array([[True, False]]), frame[1:])
    for rows in (mixed, table.typical_row(), table.align({"a": "new", "b": True})):
        assert rows.dtypes.tolist() == [object, object]
    assert mixed["a"].tolist() == ["x", "x"]
    assert mixed["b"].tolist() == [None, False]


def test_a_polars_frame_is_mixed_without_a_change_of_dtype():
    frame = polars_frame()
    table = as_table(frame)
    known = np.array([[True, False] * 3 + [True], [False, True] * 3 + [False]])
    mixed = mixed_rows(table, frame[:1], known, frame[1:])
    assert mixed.schema == frame.schema
    assert mixed["count"].to_list() == [2, None, 5, 1, 1, 1]
    assert mixed["rank"].to_list() == ["low"] * 3 + ["high", "low", "low"]


def test_a_null_stays_a_null_and_a_nan_stays_a_nan():
    table = as_table(polars_frame())
    mixed = mixed_rows(table, polars_frame()[2:3], np.eye(7, dtype=bool)[:1], polars_frame()[1:2])
    assert mixed["size"].to_list() == [None]
    mixed = mixed_rows(table, polars_frame()[2:3], ~np.eye(7, dtype=bool)[:1], polars_frame()[1:2])
    assert np.isnan(mixed["size"][0])


def test_a_null_and_a_nan_are_both_missing_in_plain_columns():
    np.testing.assert_array_equal(plain_column(polars_frame(), 0), [1.0, np.nan, np.nan, 4.0])


@pytest.mark.parametrize(("missing", "expected"), [(None, None), (float("nan"), float("nan"))])
def test_a_missing_value_from_elsewhere_is_what_the_polars_column_has_in_its_place(
    missing, expected
):
    table = as_table(pl.DataFrame({"a": [1.0, missing]}))
    assert str(table.align(np.array([[np.nan]]))["a"][0]) == str(expected)


def test_the_typical_row_of_a_polars_frame_has_means_and_modes():
    typical = as_table(polars_frame()).typical_row()
    assert typical.row(0) == (2.5, pytest.approx(8 / 3), 2.5, False, "Ulm", "blue", "low")
    assert typical.schema["rank"] == polars_frame().schema["rank"]


# joined, compared and shown -----------------------------------------------------------------------


def every_container():
    return {
        "numpy": np.array([[1.0, 0.0], [np.nan, 2.0]]),
        "pandas": housing_frame(20),
        "polars": polars_frame(),
    }


@pytest.mark.parametrize("name", every_container())
def test_parts_of_a_table_are_joined_to_the_same_table(name):
    rows = every_container()[name]
    container = container_of(rows)
    joined = container.concat(
        [take_rows(rows, slice(0, 1)), take_rows(rows, np.arange(1, len(rows)))]
    )
    assert container.equal(joined, rows)
    assert not container.equal(joined, take_rows(rows, np.arange(len(rows))[::-1]))
    assert not container.equal(joined, container.select(rows, np.arange(rows.shape[1])[::-1]))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([np.ones((1, 2)), np.ones((1, 3))], "all arrays, or all frames, with the same columns"),
        (
            [np.ones((1, 1)), pd.DataFrame({"a": [1.0]})],
            "all arrays, or all frames, with the same columns",
        ),
        ([pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1.0]})], "different columns"),
    ],
)
def test_parts_with_different_columns_cannot_be_joined(parts, message):
    with pytest.raises(ValueError, match=message):
        concat_rows(parts)
    with pytest.raises(pl.exceptions.PolarsError):
        concat_rows([pl.DataFrame({"a": [1.0]}), pl.DataFrame({"b": [1.0]})])


def test_tables_are_compared_to_the_bit():
    for make in (np.array, pd.DataFrame):
        zero, minus_zero, nan = (make([[value]]) for value in (0.0, -0.0, np.nan))
        equal = container_of(zero).equal
        assert equal(nan, nan.copy())
        assert not equal(zero, minus_zero)
        assert not equal(zero, zero.astype(np.float32))
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    for other in (
        frame.set_axis([5, 6]),
        frame.rename(columns={"a": "b"}),
        frame.rename_axis("i"),
        frame[:1],
    ):
        assert not container_of(frame).equal(frame, other)
    assert not container_of(polars_frame()).equal(
        polars_frame(), polars_frame().cast({"single": pl.Float64})
    )


def test_columns_of_every_container_are_shown_as_series():
    assert container_of(np.eye(2)).series(np.eye(2), 1).tolist() == [0.0, 1.0]
    assert container_of(housing_frame()).series(housing_frame(), 7).dtype == "category"
    assert container_of(polars_frame()).series(polars_frame(), 6).tolist() == [
        "low",
        "high",
        "low",
        "low",
    ]
    assert container_of(polars_frame()).series(polars_frame(), 4).isna().tolist() == [
        False,
        False,
        True,
        False,
    ]


# by name, whatever the container ------------------------------------------------------------------


def backgrounds():
    X = np.arange(12.0).reshape(4, 3)
    frame = pd.DataFrame(X, columns=list("abc"))
    return {"pandas": frame, "polars": pl.from_pandas(frame), "numpy": X}


@pytest.mark.parametrize("background", ["pandas", "polars"])
@pytest.mark.parametrize("X", ["pandas", "polars"])
def test_named_columns_are_matched_between_containers(background, X):
    table = as_table(backgrounds()[background])
    aligned = table.align(backgrounds()[X][["c", "a", "b"]])
    assert type(aligned) is type(table.data)
    assert list(aligned.columns) == ["a", "b", "c"]
    np.testing.assert_array_equal(aligned.to_numpy(), backgrounds()["numpy"])


@pytest.mark.parametrize("background", ["pandas", "polars", "numpy"])
@pytest.mark.parametrize("X", ["pandas", "polars", "numpy"])
def test_columns_without_names_on_one_side_are_matched_by_position(background, X):
    aligned = as_table(backgrounds()[background]).align(backgrounds()[X])
    np.testing.assert_array_equal(np.asarray(aligned), backgrounds()["numpy"])


@pytest.mark.parametrize("background", ["pandas", "polars", "numpy"])
def test_another_number_of_unnamed_columns_is_refused(background):
    with pytest.raises(ValueError, match="`X` has 2 columns but the background has 3"):
        as_table(backgrounds()[background]).align(np.ones((1, 2)))


def test_mixed_rows_travel_between_pandas_and_polars():
    frame = polars_frame().to_pandas()
    frame["rank"] = frame["rank"].astype(object)
    there = as_table(polars_frame()).align(frame)
    assert there.schema == polars_frame().schema
    assert there.drop("size").equals(polars_frame().drop("size"))
    back = as_table(frame).align(polars_frame())
    assert back.dtypes.tolist() == frame.dtypes.tolist()
    pd.testing.assert_frame_equal(back, frame)


def test_a_row_as_a_dictionary_fits_a_polars_background():
    row = {
        "size": None,
        "count": 3,
        "single": 0.1,
        "open": True,
        "city": "Hof",
        "kind": "green",
        "rank": "mid",
    }
    aligned = as_table(polars_frame()).align(row)
    assert aligned.schema == {
        **polars_frame().schema,
        "single": pl.Float64,
    }  # numbers are not rounded
    assert aligned["single"].to_list() == [0.1]


def test_a_row_of_objects_fits_a_frame():
    table = as_table(housing_frame()[["size", "city", "new"]])
    aligned = table.align(np.array([[1.5, "Ulm", True]], dtype=object))
    assert aligned.dtypes.tolist() == table.data.dtypes.tolist()


@pytest.mark.parametrize("dtype", ["category", "string", object, "str"])
@pytest.mark.parametrize("other", ["category", "string", object, "str"])
def test_text_of_every_dtype_fits_text_of_every_other(dtype, other):
    background = pd.DataFrame({"city": pd.Series(["Bonn", "Ulm", None], dtype=dtype)})
    aligned = as_table(background).align(
        pd.DataFrame({"city": pd.Series(["Ulm", None], dtype=other)})
    )
    assert aligned["city"].dtype == background["city"].dtype
    assert plain_column(aligned, 0).tolist() == ["Ulm", None]


@pytest.mark.parametrize("dtype", ["Int64", "int8", "Float64", "boolean", "bool", object])
@pytest.mark.parametrize(
    "row", [[[1.0]], {"a": 1.0}, pd.Series({"a": 1.0})], ids=["list", "dict", "series"]
)
def test_numbers_without_a_dtype_of_their_column_take_the_backgrounds_where_it_holds_them(
    dtype, row
):
    background = pd.DataFrame({"a": pd.Series([True, False], dtype=dtype)})
    assert as_table(background).align(row)["a"].dtype == background["a"].dtype


@pytest.mark.parametrize(
    "background_dtype", ["Int64", "int8", "Float32", "float32", "float16", "boolean", "bool"]
)
def test_numbers_of_a_frame_are_in_the_wider_of_both_dtypes(background_dtype):
    background = pd.DataFrame({"a": pd.Series([True, False], dtype=background_dtype)})
    row = pd.DataFrame({"a": [1.0]})
    assert as_table(background).align(row)["a"].dtype == np.float64
    assert as_table(row).align(background)["a"].dtype == np.float64


@pytest.mark.parametrize("row_dtype", ["boolean", "Int64", "Float64", "Float32"])
def test_a_missing_value_of_a_nullable_column_stays_one_whatever_the_background(row_dtype):
    row = pd.DataFrame({"a": pd.array([None, 1], dtype=row_dtype)})
    for background_dtype in ("bool", "int8", "float32", "boolean", "Int8", "Float32"):
        table = as_table(pd.DataFrame({"a": pd.Series([1, 0], dtype=background_dtype)}))
        mixed = table.mix(
            table.align(row), np.arange(2), np.array([[True], [False]]), table.data, np.arange(2)
        )
        assert mixed["a"].isna().tolist() == [True, False], background_dtype
        assert table.align(row)["a"].isna().tolist() == [True, False]
        assert mixed["a"].dtype != object


def test_a_missing_value_among_integers_and_booleans_stays_missing():
    background = pd.DataFrame(
        {"a": [1, 2], "b": [True, False], "c": pd.array([1, 2], dtype="Int64")}
    )
    aligned = as_table(background).align(pd.DataFrame({"a": [None], "b": [None], "c": [None]}))
    assert aligned.isna().all(axis=None)
    assert aligned["c"].dtype == "Int64"


def test_a_category_of_numbers_is_found_by_its_number():
    background = pd.DataFrame({"grade": pd.Categorical([1, 2, 3])})
    assert as_table(background).align([[2.0]])["grade"].tolist() == [2]


# categories never seen ----------------------------------------------------------------------------


def test_text_never_seen_is_handed_on_and_noted():
    table = as_table(pd.DataFrame({"city": ["Bonn", "Ulm"]}))
    aligned = table.align({"city": "Hof"})
    assert aligned["city"].tolist() == ["Hof"]
    assert table.unseen_category_notes(aligned) == (
        "Column 'city' holds categories that the background never saw: 'Hof'.",
    )
    assert table.unseen_category_notes(table.data) == ()


def test_a_category_in_the_dtype_but_in_no_row_is_handed_on_and_noted():
    table = as_table(pd.DataFrame({"kind": pd.Categorical(["a"], categories=["a", "b"])}))
    assert table.unseen_category_notes(table.align({"kind": "b"})) == (
        "Column 'kind' holds categories that the background never saw: 'b'.",
    )


def test_a_polars_category_never_seen_is_handed_on_but_an_enum_cannot_hold_it():
    table = as_table(polars_frame())
    row = polars_frame()[:1].with_columns(pl.lit("green").alias("kind"))
    assert table.align(row)["kind"].to_list() == ["green"]
    with pytest.raises(
        ValueError,
        match=r"'rank' that the background never saw: 'top'. Known: 'low', 'mid', 'high'",
    ):
        table.align(polars_frame()[:1].with_columns(pl.lit("top").alias("rank")))


# refused ------------------------------------------------------------------------------------------


DAY = datetime.datetime(2024, 5, 1)


def apply_advice(error, frame):
    """Return the column turned into numbers, as the error advises."""
    formula = re.search(r"for example (?:[\w ]+: )?(.*)\.$", str(error.value))[1]
    return eval(formula, {"pandas": pd, "polars": pl, "frame": frame})


@pytest.mark.parametrize(
    ("column", "message", "number"),
    [
        (pd.to_datetime(["2024-05-01"]), "'when' of `background` holds dates", 8887),
        (pd.to_datetime(["2024-05-01"], utc=True).tz_convert("Asia/Tokyo"), "holds dates", 8887),
        ([DAY.date()], "holds dates", 8887),
        (pd.Series([DAY], dtype=object), "holds dates", 8887),
        (pd.period_range("2024", periods=1, freq="D"), "holds periods", 2024),
        (pd.to_timedelta(["3 days"]), "holds durations", 259200),
        ([datetime.time(1)], "holds durations or times of day", 3600),
    ],
)
def test_dates_and_durations_are_refused_with_advice_that_works(column, message, number):
    frame = pd.DataFrame({"when": column})
    with pytest.raises(TypeError, match=message) as error:
        as_table(frame)
    numbers = apply_advice(error, frame)
    assert numbers.tolist() == [number]
    as_table(frame.assign(when=numbers))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([[1, 2]], r"holds mixed types \(list\)"),
        ([{"a": 1}], r"holds mixed types \(dict\)"),
        (pd.Series([1], dtype=object), "integer values, neither numbers nor categories"),
        ([1 + 2j], "neither numbers nor categories"),
        ([b"x"], "bytes values, neither numbers nor categories"),
        (pd.interval_range(0, 1), "neither numbers nor categories"),
    ],
)
def test_columns_that_are_neither_numbers_nor_categories_are_refused(column, message):
    with pytest.raises(TypeError, match=message):
        as_table(pd.DataFrame({"when": column}))


def test_mixed_types_are_refused_with_their_names():
    with pytest.raises(
        TypeError, match=r"'a' of `background` holds mixed types \(int, str\).*pandas.to_numeric"
    ):
        as_table(pd.DataFrame({"a": [1, "x"]}, dtype=object))


@pytest.mark.parametrize(
    ("value", "number"),
    [(DAY, 19844), (DAY.date(), 19844), (datetime.timedelta(1), 86400), (datetime.time(1), 3600)],
)
def test_polars_dates_and_durations_are_refused_with_advice_that_works(value, number):
    frame = pl.DataFrame({"when": [value]})
    with pytest.raises(TypeError, match="dates or times") as error:
        as_table(frame)
    numbers = frame.select(apply_advice(error, frame))
    assert numbers.item() == number
    as_table(numbers)


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, b"x", object()])
def test_polars_columns_that_are_neither_numbers_nor_categories_are_refused(value):
    with pytest.raises(
        TypeError, match=r"'when' of `background` .* neither numbers nor categories"
    ):
        as_table(pl.DataFrame({"when": [value]}))


def test_a_lazy_frame_is_refused_with_advice():
    with pytest.raises(TypeError, match=r"Call `.collect\(\)`"):
        as_table(polars_frame().lazy())


def test_an_array_of_dates_is_refused_with_advice():
    with pytest.raises(TypeError, match=r"np\.timedelta64"):
        as_table(np.array([["2024-05-01"]], dtype="datetime64[D]"))


@pytest.mark.parametrize("big", [2**53 + 1, -(2**60)])
def test_whole_numbers_that_floats_cannot_tell_apart_are_refused(big):
    frame = pd.DataFrame({"id": [1, big], "n": pd.array([1, big], dtype="Int64")})
    for background in (
        frame[["id"]],
        frame[["n"]],
        pl.DataFrame({"id": [1, big]}),
        np.array([[1], [big]]),
    ):
        with pytest.raises(ValueError, match=r"whole numbers of 2\^53 and beyond.*coarser unit"):
            as_table(background)
    with pytest.raises(ValueError, match=r"2\^53"):
        as_table(pd.DataFrame({"id": [1, 2]})).align(frame[["id"]])


@pytest.mark.parametrize("background", [pd.DataFrame({"a": [1.0]}), pl.DataFrame({"a": [1.0]})])
def test_text_where_the_background_has_numbers_is_refused(background):
    with pytest.raises(
        TypeError, match="Column 'a' of `X` holds 'x' where the background holds numbers"
    ):
        as_table(background).align({"a": "x"})


@pytest.mark.parametrize(
    "background", [pd.DataFrame({"a": ["x"]}, dtype="string"), pl.DataFrame({"a": ["x"]})]
)
def test_numbers_where_the_background_has_text_are_refused(background):
    with pytest.raises(
        TypeError, match="Column 'a' of `X` holds numbers where the background holds text"
    ):
        as_table(background).align({"a": 1.0})


def test_a_column_name_used_twice_in_x_is_refused():
    X = pd.DataFrame([[1.0, 2.0, 3.0]], columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="'a' stands more than once"):
        as_table(X.iloc[:, :2]).align(X)


# groups -------------------------------------------------------------------------------------------


def test_columns_in_no_group_are_named_in_a_note():
    table = as_table(backgrounds()["pandas"], groups={"g": ["a", "b"]})
    assert table.notes == ("Columns in no group are players of their own: 'c'.",)
    assert as_table(backgrounds()["pandas"], groups=[["a", "b"], ["c"]]).notes == ()
    assert as_table(backgrounds()["pandas"]).notes == ()


def test_groups_of_positions_cut_an_array_into_patches():
    patches = np.arange(16).reshape(4, 4).reshape(2, 2, 2, 2).swapaxes(1, 2).reshape(4, 4)
    table = as_table(np.zeros((1, 16)), groups=patches.tolist())
    assert table.d == 4
    assert table.player_names[0] == "x0 + x1 + x4 + x5"
    assert np.eye(4, dtype=bool)[:, table.player_of_column][1].nonzero()[0].tolist() == [2, 3, 6, 7]


def test_a_large_group_has_a_short_name():
    assert as_table(np.zeros((1, 50)), groups=[range(50)]).player_names == (
        "x0 + x1 + x2 + 47 more",
    )


def test_a_group_must_be_a_list():
    with pytest.raises(TypeError, match=r"must be a list of columns; got 'ab'. Write \['ab'\]"):
        as_table(backgrounds()["pandas"], groups={"g": "ab"})


def test_two_groups_of_one_name_are_refused():
    with pytest.raises(ValueError, match="Two groups are named"):
        as_table(np.zeros((1, 12)), groups=[[0, 1, 2, 3, 4], [0, 1, 2, 5, 6]])


def test_a_background_is_put_into_the_order_of_training_with_groups_and_weights():
    table = as_table(backgrounds()["pandas"], groups={"g": [0, 2]}, order=["c", "b", "a"])
    assert (table.names, table.player_names) == (("c", "b", "a"), ("g", "b"))
    assert [columns.tolist() for columns in table.players] == [[0, 2], [1]]
    assert list(table.data.columns) == ["c", "b", "a"]
