"""Columns of text: what a cell stands for is the same in a background and in rows."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weightedshap.jobs.text_columns import (
    BOOLEANS,
    INTEGERS,
    NUMBERS,
    UnreadableCellError,
    infer_and_parse,
    parse_as,
)

CELLS = [
    "1",
    " 2 ",
    "-3.5",
    "1e3",
    "",
    "  ",
    None,
    "inf",
    "nan",
    "NA",
    "true",
    "FALSE",
    "0",
    "x",
    "0x1F",
    "007",
    "+4",
]
BOOLEAN = pa.bool_()
NUMBER = pa.float64()
INTEGER = pa.int64()


def text(*cells):
    return pa.array(cells, pa.string())


@pytest.mark.parametrize(
    ("cells", "values", "kind"),
    [
        (["1", "007", "-3"], [1, 7, -3], INTEGER),
        (["1", " 2 ", "", None], [1, 2, None, None], INTEGER),
        (["1", "2.5", "1e3", "+4"], [1, 2.5, 1000, 4], NUMBER),
        (["1", "inf"], [1, float("inf")], NUMBER),
        (["true", "False", "TRUE", ""], [True, False, True, None], BOOLEAN),
        (["true", "0"], [True, False], BOOLEAN),
        (["1", "0"], [1, 0], INTEGER),
        (["2026-01-01", "2026-01-02"], ["2026-01-01", "2026-01-02"], pa.string()),
        (["1", "x", "NA"], ["1", "x", "NA"], pa.string()),
        (["NA", "null", "", None], ["NA", "null", "", None], pa.string()),
        (["0x1F", "1"], ["0x1F", "1"], pa.string()),
    ],
)
def test_a_column_is_what_all_its_cells_are(cells, values, kind):
    found = infer_and_parse(text(*cells), "x")
    assert found.to_pylist() == values
    assert found.type == kind


@pytest.mark.parametrize(
    "word", ["NA", "N/A", "nan", "NaN", "-nan", "null", "NULL", "None", "?", "-", " na "]
)
@pytest.mark.parametrize("others", [["1.5", ""], ["true", "false"]])
def test_a_word_for_missing_among_numbers_is_refused_and_the_option_is_named(word, others):
    with pytest.raises(UnreadableCellError, match=r"'x' holds .* among .*--null-values") as raised:
        infer_and_parse(text(*others, word, "1"), "x")
    assert raised.value.position == 2
    assert repr(word) in str(raised.value)


@pytest.mark.parametrize(
    ("held", "cell"),
    [(NUMBERS, "nan"), (NUMBERS, "NA"), (INTEGERS, "much"), (BOOLEANS, "yes"), (BOOLEANS, "2")],
)
def test_a_cell_that_the_background_cannot_hold_is_named_with_its_position(held, cell):
    good = ["true", "0"] if held == BOOLEANS else ["1", "2"]
    with pytest.raises(
        UnreadableCellError, match=f"Column 'x' holds text where the background holds .*: '{cell}'"
    ) as raised:
        parse_as(text(*good * 50, cell, *good), held, "x")
    assert raised.value.position == 100


def test_of_a_long_cell_the_beginning_is_quoted():
    with pytest.raises(UnreadableCellError) as raised:
        parse_as(text("y" * 10**6), NUMBERS, "x")
    assert len(str(raised.value)) < 300


@given(
    cells=st.lists(st.sampled_from(CELLS), min_size=1, max_size=6),
    others=st.lists(st.sampled_from(CELLS)),
)
def test_a_background_and_its_own_rows_are_read_in_the_same_way(cells, others):
    try:
        found = infer_and_parse(text(*cells), "x")
    except UnreadableCellError:
        return
    held = {INTEGER: INTEGERS, NUMBER: NUMBERS, BOOLEAN: BOOLEANS}.get(found.type)
    if held is None:
        return
    assert parse_as(text(*cells), held, "x").equals(found)
    try:
        with_others = parse_as(text(*cells, *others), held, "x")
    except UnreadableCellError as error:
        unreadable = error.position
    else:
        assert with_others.slice(0, len(cells)).cast(found.type).equals(found)
        return
    assert others[unreadable - len(cells)] not in ("", "  ", None)


def test_integers_are_read_as_such_where_the_background_has_them_and_fractions_stay():
    assert parse_as(text("1", " 2", ""), INTEGERS, "x").to_pylist() == [1, 2, None]
    assert parse_as(text("1", "2"), INTEGERS, "x").type == INTEGER
    assert parse_as(text("1", "2.5"), INTEGERS, "x").to_pylist() == [1, 2.5]
    assert parse_as(text("1", "2"), NUMBERS, "x").type == NUMBER


@pytest.mark.parametrize(
    "cell", ["9007199254740993", "-12345678901234567890", " 9007199254740993 "]
)
def test_whole_numbers_that_floats_cannot_distinguish_are_refused_among_whatever_rows(cell):
    for others in ([], ["0.5"], ["1", ""]):
        with pytest.raises(ValueError, match=r"Column 'x' holds whole numbers of 2\^53 and beyond"):
            parse_as(text(*others, cell), NUMBERS, "x")
        with pytest.raises(ValueError, match=r"Column 'x' holds whole numbers of 2\^53 and beyond"):
            infer_and_parse(text(*others, cell), "x")
    assert parse_as(text("1e300", "9007199254740992.5"), NUMBERS, "x").to_pylist() == [
        1e300,
        2.0**53,
    ]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_every_kind_of_text_is_read(kind):
    column = pa.array(["1", " 2.5", "", None]).cast(kind)
    assert parse_as(column, NUMBERS, "x").to_pylist() == [1, 2.5, None, None]
