"""The kinds of tables, and what all of them can do.

Between kinds, and into numbers, a column travels in a plain form: numbers and booleans as float64 with
NaN for missing values, categories as objects with None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from weightedshap.checks import BoolArray, FloatArray, IntArray

__all__ = ["Column", "Kind", "Arrays", "kind_of", "column_of", "part_of", "copy_of"]

Column = FloatArray | npt.NDArray[np.object_]

EXACT = 2.0**53  # from here on a float64 cannot tell neighbouring whole numbers apart


class Kind(Protocol):
    """What is done to rows of one kind."""

    def names(self, rows: Any) -> tuple[str, ...] | None:
        """Column names; None if columns have no names."""

    def select(self, rows: Any, columns: Sequence[int]) -> Any:
        """Some columns, in the given order."""

    def part(self, rows: Any, which: slice | IntArray) -> Any:
        """Some rows."""

    def copy(self, rows: Any) -> Any:
        """Rows that may be written to without changing these."""

    def column(self, rows: Any, c: int, who: str) -> Column:
        """Column c in the plain form; an error if it is neither numbers nor categories."""

    def is_boolean(self, rows: Any, c: int) -> bool:
        """Whether column c holds only true and false."""

    def like(self, rows: Any, reference: Any, who: str) -> Any:
        """`rows` of this kind in the dtypes of `reference`, as far as these can hold them."""

    def build(self, columns: Sequence[Column], reference: Any, who: str) -> Any:
        """Rows of this kind, in the dtypes of `reference`, out of plain columns."""

    def mix(self, row: Any, known: BoolArray, hidden: Any) -> Any:
        """(m·B) rows: known columns (m, c) from `row`, the others from each of B `hidden` rows."""


class Arrays:
    """2-D arrays of numbers. Integers, booleans and single precision stay what they are."""

    def names(self, rows: Any) -> None:
        return None

    def select(self, rows: Any, columns: Sequence[int]) -> Any:
        return rows[:, columns]

    def part(self, rows: Any, which: slice | IntArray) -> Any:
        return rows[which]

    def copy(self, rows: Any) -> Any:
        return np.array(rows)

    def column(self, rows: Any, c: int, who: str) -> Column:
        return np.asarray(rows[:, c], dtype=np.float64)

    def is_boolean(self, rows: Any, c: int) -> bool:
        return bool(rows.dtype == np.bool_)

    def like(self, rows: Any, reference: Any, who: str) -> Any:
        rows = numeric(rows, who)
        return rows if rows.dtype == reference.dtype else in_dtype(rows, reference.dtype)

    def build(self, columns: Sequence[Column], reference: Any, who: str) -> Any:
        numbers = [as_numbers(column, f"at position {c}", who) for c, column in enumerate(columns)]
        return in_dtype(np.stack(numbers, axis=1), reference.dtype)

    def mix(self, row: Any, known: BoolArray, hidden: Any) -> Any:
        return np.where(known[:, None, :], row, hidden).reshape(-1, known.shape[1])


def numeric(data: Any, who: str) -> Any:
    """A C-contiguous array of numbers; an error for anything else."""
    array = np.asarray(data)
    if array.dtype.kind in "mM":
        raise TypeError(
            f"`{who}` holds dates or durations ({array.dtype}). Turn them into numbers first, for example days: "
            "(dates - np.datetime64('2000-01-01')) / np.timedelta64(1, 'D')."
        )
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(_not_numbers(who, str(error))) from error
    if array.dtype.kind not in "biuf":
        raise TypeError(_not_numbers(who, str(array.dtype)))
    if array.dtype.kind in "iu":
        refuse_inexact(np.asarray(array, dtype=np.float64), f"`{who}`")
    return np.ascontiguousarray(array)


def _not_numbers(who: str, why: str) -> str:
    return (
        f"`{who}` holds values that are not numbers ({why}). Pass a pandas or polars DataFrame, so that each column "
        "keeps its own type."
    )


def in_dtype(values: Any, dtype: np.dtype[Any]) -> Any:
    """`values` in `dtype`, or as they are if it cannot hold them (a hole or a fraction among integers)."""
    with np.errstate(over="ignore", invalid="ignore"):
        cast = values.astype(dtype)
    return cast if holds(np.asarray(cast, dtype=np.float64), values, dtype.kind == "f") else values


def holds(cast: FloatArray, values: FloatArray, rounds: bool) -> bool:
    """Whether `cast` holds `values`: exactly, or rounded to a shorter float."""
    if rounds:
        return bool(np.array_equal(np.isfinite(cast), np.isfinite(values)))
    return bool(np.array_equal(cast, values, equal_nan=True))


def refuse_inexact(values: FloatArray, where: str) -> None:
    """An error for whole numbers that float64 cannot tell apart."""
    if (np.abs(values) >= EXACT).any():
        raise ValueError(
            f"{where} holds whole numbers of 2^53 and beyond, which floating point cannot tell apart. Leave out an "
            "identifier, turn it into text, or use a coarser unit (seconds instead of nanoseconds)."
        )


def as_numbers(values: Column, name: str, who: str) -> FloatArray:
    """A plain column as floats; an error if it holds text."""
    if values.dtype != object:
        return np.asarray(values, dtype=np.float64)
    text = [value for value in values if value is not None and not isinstance(value, (bool, int, float, np.number))]
    if text:
        raise TypeError(f"Column {name} of `{who}` holds {text[0]!r} where the background holds numbers.")
    return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)


def as_text(values: Column, name: str, who: str) -> npt.NDArray[np.object_]:
    """A plain column as text with None; an error if it holds numbers."""
    if values.dtype != object:
        if not np.isnan(np.asarray(values, dtype=np.float64)).all():
            raise TypeError(f"Column {name} of `{who}` holds numbers where the background holds text.")
        return np.full(len(values), None, dtype=object)
    return np.asarray(values, dtype=object)


def is_polars(frame: Any) -> bool:
    """Whether `frame` is a polars DataFrame, found out without importing polars."""
    return type(frame).__module__.partition(".")[0] == "polars" and type(frame).__name__ == "DataFrame"


def is_table(rows: Any) -> bool:
    """Whether `rows` is an array, or a pandas or polars frame."""
    return isinstance(rows, (np.ndarray, pd.DataFrame)) or is_polars(rows)


def kind_of(rows: Any) -> Kind:
    """The kind of a table."""
    if isinstance(rows, np.ndarray):
        return Arrays()
    if isinstance(rows, pd.DataFrame):
        from weightedshap.inputs.pandas import PandasFrames

        return PandasFrames()
    if is_polars(rows):
        from weightedshap.inputs.polars import PolarsFrames

        return PolarsFrames()
    raise TypeError(f"A table must be an array, a pandas or a polars DataFrame; got {type(rows).__name__}.")


def column_of(rows: Any, c: int) -> Column:
    """Column c in the plain form: floats with NaN, or objects with None."""
    return kind_of(rows).column(rows, c, "X")


def part_of(rows: Any, which: slice | IntArray) -> Any:
    """Some rows, in their own kind."""
    return kind_of(rows).part(rows, which)


def copy_of(rows: Any) -> Any:
    """Rows that may be written to without changing these."""
    return kind_of(rows).copy(rows)
