"""Columns of text, as CSV files hold them, read as numbers or booleans by one set of rules.

A background and the rows to explain go through the same two functions, so that a cell means the
same in both: blanks around a cell do not count, a blank cell among numbers or booleans is missing,
and words such as ``NA`` or ``nan`` are text until someone says that they stand for a missing value.
"""

import shlex
from typing import Any

from weightedshap._checks import require
from weightedshap._format import quoted
from weightedshap.inputs.containers import EXACT, check_exact

pa = require("pyarrow", "stream")
pc = require("pyarrow.compute", "stream")

Column = Any  # an Array or a ChunkedArray of Arrow

NUMBERS = "numbers"
INTEGERS = "integers"
BOOLEANS = "booleans"
TEXT = "text"
TYPES = {NUMBERS: pa.float64(), BOOLEANS: pa.bool_()}

# Words that often stand for a missing value: a column of numbers and such words is refused, not
# taken for text.
PLACEHOLDERS = (
    "na",
    "n/a",
    "#n/a",
    "#na",
    "<na>",
    "nan",
    "-nan",
    "null",
    "none",
    "nil",
    "missing",
    "?",
    "-",
    ".",
)
LONGEST_ADVICE = 20  # characters of a cell that is repeated as a value of the option


class UnreadableCell(TypeError):
    """A cell that is not what its column holds; its position in the column and a sentence are
    `args`."""

    @property
    def position(self) -> int:
        return int(self.args[0])

    def __str__(self) -> str:
        return str(self.args[1])


def is_text(kind: Any) -> bool:
    """Return whether a type of Arrow is text."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def read_as(column: Column, held: str, name: str) -> Column:
    """Return a column of text as what the background holds; an `UnreadableCell` names the first
    cell that is not it."""
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    words = BOOLEANS if held == BOOLEANS else NUMBERS
    found = _cast(column, words)
    if found is None:
        position = _first_unreadable(column, words)
        cell = column[position].as_py()
        said = f"Column {name!r} holds text where the background holds {words}: {quoted(cell)}."
        raise UnreadableCell(position, f"{said}{advice(cell)}")
    if held == BOOLEANS:
        return found
    _check_exact(column, found, name)
    return _whole(column, found) if held == INTEGERS else found


def typed(column: Column, name: str) -> Column:
    """Return a column of text as what all its cells are: whole numbers, numbers, booleans, or else
    text.

    A column of numbers and words that often stand for a missing value is an `UnreadableCell`.
    """
    for held in TYPES:
        found = _cast(column, held)
        if found is not None:
            if held == BOOLEANS:
                return found
            _check_exact(column, found, name)
            return _whole(column, found)

    cells = pc.utf8_lower(pc.utf8_trim_whitespace(column))
    placeholders = pc.fill_null(
        pc.is_in(cells, value_set=pa.array(PLACEHOLDERS, cells.type)), False
    )
    others = column.filter(pc.invert(placeholders))

    # Nothing but placeholders and holes says nothing of numbers: such a column is text as it
    # stands.
    for held in TYPES:
        found = _cast(others, held)
        if found is not None and found.null_count < len(found):
            position = pc.index(placeholders, True).as_py()
            cell = column[position].as_py()
            said = f"Column {name!r} holds {quoted(cell)} among {held}."
            raise UnreadableCell(
                position, f"{said}{advice(cell)} In a Parquet file such a column can be text."
            )
    return column


def advice(cell: str) -> str:
    """Return what to do where a cell stands for a missing value."""
    if len(cell) > LONGEST_ADVICE:
        return ""
    return (
        " If that stands for a missing value in a CSV file, pass --null-values"
        f" {shlex.quote(cell)}."
    )


def _cast(column: Column, held: str) -> Column | None:
    """Return the column in its new type; None where a cell cannot be read."""
    try:
        found = column.cast(TYPES[held])
    except pa.ArrowInvalid:
        # The slow way, for the few columns that have blanks in them.
        cells = pc.utf8_trim_whitespace(column)
        cells = pc.if_else(pc.equal(cells, ""), pa.scalar(None, cells.type), cells)
        try:
            found = cells.cast(TYPES[held])
        except pa.ArrowInvalid:
            return None
    # Arrow reads the word "nan" as a number, which would make it missing without anyone having said
    # so.
    if held == NUMBERS and pc.any(pc.is_nan(found)).as_py():
        return None
    return found


def _whole(column: Column, numbers: Column) -> Column:
    """Return numbers as integers where every cell is written as one."""
    try:
        return pc.if_else(pc.is_valid(numbers), pc.utf8_trim_whitespace(column), None).cast(
            pa.int64()
        )
    except pa.ArrowInvalid:
        return numbers


def _check_exact(column: Column, numbers: Column, name: str) -> None:
    """Refuse cells that are written as whole numbers and are too large for numbers to tell them
    apart."""
    large = pc.fill_null(pc.greater_equal(pc.abs(numbers), EXACT), False)
    if not pc.any(large).as_py():
        return
    cells = pc.utf8_trim_whitespace(column.filter(large))
    written = pc.match_substring_regex(cells, "^[+-]?[0-9]+$")
    if pc.any(written).as_py():
        check_exact(numbers.filter(large).filter(written).to_numpy(), f"Column {name!r}")


def _first_unreadable(column: Column, held: str) -> int:
    """Return the position of the first cell that cannot be read, by halving."""
    first = 0
    last = len(column)
    while last - first > 1:
        middle = (first + last) // 2
        if _cast(column.slice(first, middle - first), held) is None:
            last = middle
        else:
            first = middle
    return first
