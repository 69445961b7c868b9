"""Tests of the background table: columns in order, categories, groups, weights and mixed rows."""

from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

from tests.inputs.tables import mixed_rows
from weightedshap.inputs import Table, as_table

KINDS = ["red", "blue"]


def mixed_frame():
    """Return a frame of floats, integers, booleans, text and categories; one number is missing."""
    return pd.DataFrame(
        {
            "size": [1.0, np.nan, 3.0],
            "count": [1, 2, 6],
            "open": [True, True, False],
            "city": ["Bonn", "Ulm", "Ulm"],
            "kind": pd.Categorical(["red", "blue", "blue"], categories=KINDS),
        }
    )


def numbers(columns="abcd", n=3):
    return pd.DataFrame(np.arange(float(n * len(columns))).reshape(n, -1), columns=list(columns))


def test_columns_of_an_array_are_named_by_position():
    table = as_table(np.zeros((2, 3)))
    assert table.names == table.player_names == ("x0", "x1", "x2")
    assert (table.d, len(table)) == (3, 2)


def test_a_table_is_kept_as_it_is():
    table = as_table(np.zeros((2, 3)))
    assert as_table(table) is table


@pytest.mark.parametrize("X", [np.zeros((0, 3)), np.zeros((3, 0)), [], pd.DataFrame({"a": []})])
def test_an_empty_background_is_refused(X):
    with pytest.raises(ValueError, match="background needs at least one row and one column"):
        as_table(X)


def test_a_table_of_three_axes_is_refused():
    with pytest.raises(ValueError, match="two axes, rows and columns"):
        as_table(np.zeros((2, 2, 2)))


def test_text_in_an_array_is_refused_with_advice():
    with pytest.raises(TypeError, match=r"not numbers .* Pass a pandas or polars DataFrame"):
        as_table(np.array([["a", "b"]]))


def test_a_column_name_used_twice_is_refused():
    with pytest.raises(ValueError, match="'a' stands more than once"):
        as_table(pd.DataFrame(np.zeros((1, 3)), columns=["a", "b", "a"]))


def test_named_columns_are_put_in_order():
    aligned = as_table(numbers("abcd")).align(numbers("abcd")[["d", "b", "a", "c"]])
    pd.testing.assert_frame_equal(aligned, numbers("abcd"))


@pytest.mark.parametrize(
    "background", [numbers("abcd"), numbers("abcd").to_numpy()], ids=["frame", "array"]
)
def test_a_table_rebuilt_from_its_fields_puts_named_columns_in_order(background):
    table = as_table(background, weights=[1, 2, 3], groups=[[0, 2]], order=list("abcd"))
    content = {field.name: getattr(table, field.name) for field in fields(table)}
    rebuilt = Table(**content)
    assert vars(rebuilt) == content
    assert (rebuilt.d, rebuilt.container, len(rebuilt)) == (table.d, table.container, 3)
    aligned = rebuilt.align(numbers("abcd")[["d", "b", "a", "c"]])
    np.testing.assert_array_equal(np.asarray(aligned), numbers("abcd"))


def test_unnamed_columns_are_taken_by_position():
    aligned = as_table(numbers("ab")).align(np.array([[7.0, 8.0]]))
    assert aligned.to_dict("list") == {"a": [7.0], "b": [8.0]}


def test_missing_columns_are_named():
    with pytest.raises(ValueError, match="`X` lacks 2 of the background's columns: 'b', 'd'"):
        as_table(numbers("abcd")).align(numbers("ac"))


def test_extra_columns_are_named():
    with pytest.raises(ValueError, match="`X` has 1 columns the background does not have: 'z'"):
        as_table(numbers("abcd")).align(numbers("abcdz"))


@pytest.mark.parametrize("background", [np.zeros((3, 4)), numbers("abcd")])
@pytest.mark.parametrize("width", [3, 5])
def test_unnamed_columns_of_another_count_are_refused(background, width):
    with pytest.raises(ValueError, match=f"`X` has {width} columns but the background has 4"):
        as_table(background).align(np.zeros((2, width)))


@pytest.mark.parametrize("X", [np.zeros((0, 4)), numbers("abcd").iloc[:0]])
def test_no_rows_are_refused(X):
    with pytest.raises(ValueError, match="`X` has no rows"):
        as_table(numbers("abcd")).align(X)


@pytest.mark.parametrize(
    "row", [np.array([1.0, 2.0]), [1.0, 2.0], pd.Series({"b": 2.0, "a": 1.0}), {"b": 2.0, "a": 1.0}]
)
def test_a_single_row_becomes_a_table_of_one_row(row):
    aligned = as_table(numbers("ab")).align(row)
    assert aligned.to_numpy().tolist() == [[1.0, 2.0]]


def test_columns_named_by_numbers_are_put_in_order():
    background = pd.DataFrame({10: [1.0], 2: [2.0]})
    aligned = as_table(background).align(background[[2, 10]])
    pd.testing.assert_frame_equal(aligned, background)


def test_aligning_leaves_the_frame_as_it_was():
    background = mixed_frame()
    X = mixed_frame().astype({"kind": "object"})
    before = X.copy()
    as_table(background).align(X)
    pd.testing.assert_frame_equal(X, before)


@pytest.mark.parametrize("name", ["kind", 0])
def test_text_takes_the_categories_of_the_background(name):
    background = pd.DataFrame(
        {name: pd.Categorical(["red", "blue"], categories=KINDS), "n": [1.0, 2.0]}
    )
    aligned = as_table(background).align(pd.DataFrame({"n": [3.0], name: ["blue"]}))
    assert list(aligned.columns) == [name, "n"]
    assert aligned[name].dtype == background[name].dtype
    assert aligned[name].tolist() == ["blue"]


def test_a_category_never_seen_is_refused_by_name():
    sentence = (
        r"column 'kind' that the background never saw: 'green'. Known: 'red', 'blue'\. Set it to"
    )
    with pytest.raises(ValueError, match=sentence):
        as_table(mixed_frame()).align(mixed_frame().assign(kind="green"))


def test_categories_in_another_order_take_the_order_of_the_background():
    other = pd.Categorical(["red", "red", "blue"], categories=["blue", "green", "red"])
    aligned = as_table(mixed_frame()).align(mixed_frame().assign(kind=other))
    assert aligned["kind"].cat.categories.tolist() == KINDS
    assert aligned["kind"].tolist() == ["red", "red", "blue"]


def test_a_missing_category_is_no_unseen_one():
    aligned = as_table(mixed_frame()).align(
        mixed_frame().assign(kind=pd.Series([None, "red", "blue"], dtype=object))
    )
    assert aligned["kind"].isna().tolist() == [True, False, False]


def test_mixing_takes_known_columns_from_the_row_and_others_from_each_hidden_row():
    table = as_table(np.zeros((1, 2)))
    known = np.array([[True, False], [False, True]])
    mixed = mixed_rows(table, np.array([[1.0, 2.0]]), known, np.array([[10.0, 20.0], [30.0, 40.0]]))
    assert mixed.tolist() == [[1, 20], [1, 40], [10, 2], [30, 2]]


def test_mixing_a_frame_keeps_every_type_and_agrees_with_the_array():
    frame = mixed_frame()
    table = as_table(frame)
    known = np.array([[True, False, True, False, True], [False, True, False, True, False]])
    mixed = mixed_rows(table, frame.iloc[:1], known, frame.iloc[1:])
    assert mixed.dtypes.tolist() == frame.dtypes.tolist()
    assert mixed["city"].tolist() == ["Ulm", "Ulm", "Bonn", "Bonn"]
    assert mixed["kind"].tolist() == ["red", "red", "blue", "blue"]
    assert mixed["count"].tolist() == [2, 6, 1, 1]
    np.testing.assert_array_equal(mixed["size"], [1.0, 1.0, np.nan, 3.0])


@pytest.mark.parametrize("library", ["numpy", "pandas", "polars"])
def test_mixing_pairs_of_rows_takes_each_known_column_from_its_own_row(library):
    form = np.asarray if library == "numpy" else pytest.importorskip(library).DataFrame
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    hidden = np.array([[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]])
    known = np.array([[True, False], [False, True], [True, True], [False, False]])
    mixed = as_table(form(rows)).mix(
        form(rows), np.array([0, 1, 1, 0]), known, form(hidden), np.array([2, 1, 0, 0])
    )
    assert np.asarray(mixed).tolist() == [[1, 60], [30, 4], [3, 4], [10, 20]]


def test_mixing_broadcasts_rows_coalitions_and_hidden_rows():
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    hidden = np.array([[10.0, 20.0], [30.0, 40.0]])
    known = np.array([[True, False], [False, True]])
    for form in (np.asarray, pd.DataFrame):
        mixed = as_table(form(rows)).mix(
            form(rows), np.arange(2)[:, None], known[:, None], form(hidden), np.arange(2)
        )
        assert np.asarray(mixed).tolist() == [[1, 20], [1, 40], [10, 4], [30, 4]]


def test_the_typical_row_has_means_of_numbers_and_modes_of_all_else():
    typical = as_table(mixed_frame()).typical_row()
    assert typical.iloc[0].tolist() == [2.0, 3.0, True, "Ulm", "blue"]
    assert typical["kind"].dtype == mixed_frame()["kind"].dtype


def test_the_typical_row_follows_the_weights():
    typical = as_table(mixed_frame(), weights=[3, 1, 0]).typical_row()
    assert typical.iloc[0].tolist() == [1.0, 1.25, True, "Bonn", "red"]


def test_the_typical_row_of_an_array_leaves_missing_values_out():
    assert as_table(np.array([[1.0, np.nan], [3.0, 5.0]])).typical_row().tolist() == [[2.0, 5.0]]


def test_row_weights_are_scaled_to_sum_to_one():
    np.testing.assert_allclose(
        as_table(np.zeros((3, 1)), weights=[1, 2, 5]).weights, [0.125, 0.25, 0.625]
    )
    np.testing.assert_allclose(as_table(np.zeros((4, 1))).weights, 0.25)


@pytest.mark.parametrize("weights", [[1, -1, 1], [0, 0, 0], [1, np.nan, 1], [1, np.inf, 1]])
def test_row_weights_that_are_no_weights_are_refused(weights):
    with pytest.raises(ValueError, match="finite, not negative, and not all zero"):
        as_table(np.zeros((3, 1)), weights=weights)


def test_row_weights_of_another_length_are_refused():
    with pytest.raises(ValueError, match="one weight for each of 3 rows"):
        as_table(np.zeros((3, 1)), weights=[1, 2])


@pytest.mark.parametrize("groups", [{"place": ["b", "d"]}, {"place": [1, 3]}])
def test_a_group_of_columns_is_one_player_where_its_first_column_stands(groups):
    table = as_table(numbers("abcd"), groups=groups)
    assert table.player_names == ("a", "place", "c")
    assert [columns.tolist() for columns in table.players] == [[0], [1, 3], [2]]
    assert table.player_of_column.tolist() == [0, 1, 2, 1]
    assert np.array([[False, True, False]])[:, table.player_of_column].tolist() == [
        [False, True, False, True]
    ]


def test_groups_given_as_lists_are_named_after_their_members():
    assert as_table(numbers("abcd"), groups=[["a", "b"], ["c"]]).player_names == ("a + b", "c", "d")


def test_a_group_may_be_named_after_one_of_its_members():
    assert as_table(numbers("abc"), groups={"a": ["a", "c"]}).player_names == ("a", "b")


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ({"g": ["a", "z"]}, "Unknown column in `groups` 'z'"),
        ({"g": ["a", 4]}, "Unknown column in `groups` 4"),
        ({"g": ["a", "b"], "h": ["b"]}, "'b' is in two groups, 'g' and 'h'"),
        ({"b": ["a", "c"]}, "'b' is named like a column outside it"),
        ({"g": []}, "'g' has no columns"),
    ],
)
def test_groups_that_make_no_sense_are_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        as_table(numbers("abcd"), groups=groups)


@pytest.mark.parametrize("groups", ["a", 5])
def test_groups_that_are_no_groups_are_refused(groups):
    with pytest.raises(TypeError, match=r"`groups` must be .name: columns. or a list of lists"):
        as_table(numbers("abcd"), groups=groups)


@pytest.mark.parametrize(
    "nothing", [{}, [{}], pd.DataFrame(index=[0, 1])], ids=["dict", "list", "frame"]
)
def test_rows_without_columns_are_refused(nothing):
    with pytest.raises(ValueError, match="`X` has 0 columns but the background has 3"):
        as_table(np.zeros((4, 3))).align(nothing)
