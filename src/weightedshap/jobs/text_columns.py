"""Convert text columns, as CSV files give them, to numbers or booleans by one set of rules.

The background (`weightedshap.jobs.inputs`) and the rows to explain (`weightedshap.jobs.stream`) are
converted by the same two functions, so that a cell means the same in both: blanks around a cell do
not count, a blank cell among numbers or booleans is missing, and words such as ``NA`` or ``nan``
are text until the user says that they stand for a missing value.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, TypeAlias

from weightedshap._checks import require
from weightedshap._format import quote
from weightedshap.inputs.containers import EXACT_LIMIT, check_exact

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
else:
    pa = require("pyarrow", "stream")
    pc = require("pyarrow.compute", "stream")

ArrowColumn: TypeAlias = "pa.Array | pa.ChunkedArray"

# The types of a column.
NUMBERS = "numbers"
INTEGERS = "integers"
BOOLEANS = "booleans"
TEXT = "text"
# The types to which text is converted, in the order in which they are tried.
TYPES = {NUMBERS: pa.float64(), BOOLEANS: pa.bool_()}

# Words that often stand for a missing value: a column of numbers and such words is refused, and not
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
MAX_ADVICE = 20  # longest cell, in characters, that advice repeats as the value of an option


class UnreadableCellError(TypeError):
    """Raised when a cell does not fit its column; `args` are its position and a message."""

    @property
    def position(self) -> int:
        """The position of the cell in its column."""
        return int(self.args[0])

    def __str__(self) -> str:
        return str(self.args[1])


def is_text(column_type: pa.DataType) -> bool:
    """Return whether an Arrow type is text."""
    types = pa.types
    return bool(
        types.is_string(column_type)
        or types.is_large_string(column_type)
        or types.is_string_view(column_type)
    )


def parse_as(column: ArrowColumn, content: str, name: str) -> ArrowColumn:
    """Convert a text column to the type `content`: numbers, integers or booleans.

    An `UnreadableCellError` reports the first cell that does not fit; `name` is the column's name.
    """
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    expected = BOOLEANS if content == BOOLEANS else NUMBERS
    parsed = _try_cast(column, expected)
    if parsed is None:
        position = _first_unreadable(column, expected)
        cell = column[position].as_py()
        raise UnreadableCellError(
            position,
            f"Column {name!r} holds text where the background holds {expected}: {quote(cell)}."
            f"{null_values_advice(cell)}",
        )
    if content == BOOLEANS:
        return parsed
    _check_exact(column, parsed, name)
    return _as_integers(column, parsed) if content == INTEGERS else parsed


def infer_and_parse(column: ArrowColumn, name: str) -> ArrowColumn:
    """Convert a text column to integers, numbers or booleans if all cells fit; else keep the text.

    An `UnreadableCellError` reports a word that often stands for a missing value, such as "NA",
    among numbers or booleans. `name` is the column's name.
    """
    for content in TYPES:
        parsed = _try_cast(column, content)
        if parsed is not None:
            if content == BOOLEANS:
                return parsed
            _check_exact(column, parsed, name)
            return _as_integers(column, parsed)

    cells = pc.utf8_lower(pc.utf8_trim_whitespace(column))
    is_placeholder = pc.is_in(cells, value_set=pa.array(PLACEHOLDERS, cells.type))
    is_placeholder = pc.fill_null(is_placeholder, False)
    others = column.filter(pc.invert(is_placeholder))

    # A column of placeholders and missing cells alone shows no number: it is text.
    for content in TYPES:
        parsed = _try_cast(others, content)
        if parsed is not None and parsed.null_count < len(parsed):
            position = pc.index(is_placeholder, True).as_py()
            cell = column[position].as_py()
            raise UnreadableCellError(
                position,
                f"Column {name!r} holds {quote(cell)} among {content}.{null_values_advice(cell)}"
                " In a Parquet file such a column can be text.",
            )
    return column


def null_values_advice(cell: str) -> str:
    """Return advice on declaring `cell` a missing value; empty text if the cell is long."""
    if len(cell) > MAX_ADVICE:
        return ""
    return (
        " If that stands for a missing value in a CSV file, pass --null-values"
        f" {shlex.quote(cell)}."
    )


def _try_cast(column: ArrowColumn, content: str) -> ArrowColumn | None:
    """Convert a text column to the type `content`; return None if one of its cells does not fit."""
    try:
        parsed = column.cast(TYPES[content])
    except pa.ArrowInvalid:
        # This slower way is for the few columns with blanks in their cells.
        cells = pc.utf8_trim_whitespace(column)
        cells = pc.if_else(pc.equal(cells, ""), pa.scalar(None, cells.type), cells)
        try:
            parsed = cells.cast(TYPES[content])
        except pa.ArrowInvalid:
            return None
    # Arrow reads the word "nan" as a number, which would make it a missing value that the user has
    # not declared.
    if content == NUMBERS and pc.any(pc.is_nan(parsed)).as_py():
        return None
    return parsed


def _as_integers(column: ArrowColumn, numbers: ArrowColumn) -> ArrowColumn:
    """Convert `numbers` to integers if every cell of the text `column` is written as an integer."""
    cells = pc.if_else(pc.is_valid(numbers), pc.utf8_trim_whitespace(column), None)
    try:
        return cells.cast(pa.int64())
    except pa.ArrowInvalid:
        return numbers


def _check_exact(column: ArrowColumn, numbers: ArrowColumn, name: str) -> None:
    """Raise an error for integers in a text column that are too large to be exact as floats.

    `numbers` is the column converted to floats, and `name` the name of the column.
    """
    is_large = pc.fill_null(pc.greater_equal(pc.abs(numbers), EXACT_LIMIT), False)
    if not pc.any(is_large).as_py():
        return
    cells = pc.utf8_trim_whitespace(column.filter(is_large))
    is_integer = pc.match_substring_regex(cells, "^[+-]?[0-9]+$")
    if pc.any(is_integer).as_py():
        check_exact(numbers.filter(is_large).filter(is_integer).to_numpy(), f"Column {name!r}")


def _first_unreadable(column: ArrowColumn, content: str) -> int:
    """Return the position of the first cell that does not fit `content`, found by bisection."""
    first = 0
    last = len(column)
    while last - first > 1:
        middle = (first + last) // 2
        if _try_cast(column.slice(first, middle - first), content) is None:
            last = middle
        else:
            first = middle
    return first
