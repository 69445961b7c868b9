"""The kinds of tables, and what all of them can do.

Between kinds, and into numbers, a column travels in a plain form: numbers and booleans as float64 with
NaN for missing values, categories as objects with None.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from weightedshap.checks import BoolArray, FloatArray, IntArray

Rows = Any
"""Rows of people's data: an array (n, c), a pandas or a polars DataFrame."""
Column = FloatArray | npt.NDArray[np.object_]
Array = npt.NDArray[Any]
R = TypeVar("R")

EXACT = 2.0**53  # from here on a float64 cannot tell neighbouring whole numbers apart
UNLIKE = "The rows of the parts must be all arrays, or all frames, with the same columns."


class Kind(Protocol[R]):
    """What is done to rows of one kind."""

    def names(self, rows: R) -> tuple[str, ...] | None:
        """Column names; None if columns have no names."""

    def select(self, rows: R, columns: Sequence[int] | IntArray) -> R:
        """Some columns, in the given order."""

    def part(self, rows: R, which: slice | IntArray) -> R:
        """Some rows."""

    def copy(self, rows: R) -> R:
        """Rows that may be written to without changing these."""

    def join(self, parts: Sequence[R]) -> R:
        """The rows of all parts, which must have the same columns."""

    def equal(self, one: R, other: R) -> bool:
        """Whether both are the same to the bit: types and names too, NaN equals NaN."""

    def column(self, rows: R, c: int, who: str) -> Column:
        """Column c in the plain form; an error if it is neither numbers nor categories."""

    def series(self, rows: R, c: int) -> pd.Series[Any]:
        """Column c to be shown, whatever it holds."""

    def to_pandas(self, rows: R) -> pd.DataFrame:
        """The rows as a pandas frame."""

    def is_boolean(self, rows: R, c: int) -> bool:
        """Whether column c holds only true and false."""

    def like(self, rows: R, reference: R, who: str) -> R:
        """`rows` of this kind in the dtypes of `reference`, as far as these can hold them."""

    def build(self, columns: Sequence[Column], reference: R, who: str) -> R:
        """Rows of this kind, in the dtypes of `reference`, out of plain columns."""

    def mix(self, row: R, known: BoolArray, hidden: R) -> R:
        """(m·B) rows: known columns (m, c) from `row`, the others from each of B `hidden` rows."""


class Arrays:
    """2-D arrays of numbers. Integers, booleans and single precision stay what they are."""

    def names(self, rows: Array) -> None:
        return None

    def select(self, rows: Array, columns: Sequence[int] | IntArray) -> Array:
        return rows[:, columns]

    def part(self, rows: Array, which: slice | IntArray) -> Array:
        return rows[which]

    def copy(self, rows: Array) -> Array:
        return np.array(rows)

    def join(self, parts: Sequence[Array]) -> Array:
        if len({part.shape[1:] for part in parts}) > 1:
            raise ValueError(UNLIKE)
        return np.concatenate(parts)

    def equal(self, one: Array, other: Array) -> bool:
        if one.dtype.kind == other.dtype.kind == "U":  # however long their longest text is
            return np.array_equal(one, other)
        same = one.shape == other.shape and one.dtype == other.dtype
        return same and np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()

    def column(self, rows: Array, c: int, who: str) -> FloatArray:
        return np.asarray(rows[:, c], dtype=np.float64)

    def series(self, rows: Array, c: int) -> pd.Series[Any]:
        return pd.Series(rows[:, c])

    def to_pandas(self, rows: Array) -> pd.DataFrame:
        return pd.DataFrame(rows)

    def is_boolean(self, rows: Array, c: int) -> bool:
        return rows.dtype == np.bool_

    def like(self, rows: Array, reference: Array, who: str) -> Array:
        rows = numeric(rows, who)
        return rows if rows.dtype == reference.dtype else in_dtype(rows, reference.dtype)

    def build(self, columns: Sequence[Column], reference: Array, who: str) -> Array:
        numbers = [as_numbers(column, f"at position {c}", who) for c, column in enumerate(columns)]
        return in_dtype(np.stack(numbers, axis=1), reference.dtype)

    def mix(self, row: Array, known: BoolArray, hidden: Array) -> Array:
        return np.where(known[:, None, :], row, hidden).reshape(-1, known.shape[1])


ARRAYS = Arrays()


def picks(known: BoolArray, n: int) -> Iterator[IntArray]:
    """For each column of mixed rows, where its cells stand in a pool: 0 is the explained row, 1..n the hidden ones."""
    for column in known.T:
        yield np.where(column[:, None], 0, np.arange(1, n + 1)).ravel()


def numeric(data: npt.ArrayLike, who: str) -> Array:
    """A C-contiguous array of numbers; an error for anything else."""
    array = np.asarray(data)
    if array.dtype.kind in "mM":
        raise TypeError(
            f"`{who}` holds dates or durations ({array.dtype}). Turn them into numbers first, for example days: "
            "(dates - np.datetime64('2000-01-01')) / np.timedelta64(1, 'D')."
        )
    why = str(array.dtype)
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            why = str(error)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"`{who}` holds values that are not numbers ({why}). Pass a pandas or polars DataFrame, so that each "
            "column keeps its own type."
        )
    if array.dtype.kind in "iu":
        refuse_inexact(np.asarray(array, dtype=np.float64), f"`{who}`")
    return np.ascontiguousarray(array)


def in_dtype(values: Array, dtype: np.dtype[Any]) -> Array:
    """`values` in `dtype`, or as they are if it cannot hold them (a hole or a fraction among integers)."""
    with np.errstate(over="ignore", invalid="ignore"):
        cast = values.astype(dtype)
    return cast if holds(np.asarray(cast, dtype=np.float64), values, dtype.kind == "f") else values


def holds(cast: FloatArray, values: FloatArray, rounds: bool) -> bool:
    """Whether `cast` holds `values`: exactly, or rounded to a shorter float."""
    if rounds:
        return np.array_equal(np.isfinite(cast), np.isfinite(values))
    return np.array_equal(cast, values, equal_nan=True)


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
    if values.dtype == object:
        return np.asarray(values, dtype=object)
    if not np.isnan(np.asarray(values, dtype=np.float64)).all():
        raise TypeError(f"Column {name} of `{who}` holds numbers where the background holds text.")
    return np.full(len(values), None, dtype=object)


def is_polars(data: object) -> bool:
    """Whether `data` is a polars DataFrame, found out without importing polars."""
    return type(data).__module__.partition(".")[0] == "polars" and type(data).__name__ == "DataFrame"


def is_frame(data: object) -> bool:
    """Whether `data` is a pandas or polars DataFrame."""
    return isinstance(data, pd.DataFrame) or is_polars(data)


def kind_of(rows: Rows) -> Kind[Any]:
    """The kind of a table."""
    if isinstance(rows, np.ndarray):
        return ARRAYS
    if isinstance(rows, pd.DataFrame):
        from weightedshap.inputs.pandas import PANDAS

        return PANDAS
    if is_polars(rows):
        from weightedshap.inputs.polars import POLARS

        return POLARS
    raise TypeError(f"A table must be an array, a pandas or a polars DataFrame; got {type(rows).__name__}.")


def column_of(rows: Rows, c: int) -> Column:
    """Column c in the plain form: floats with NaN, or objects with None."""
    return kind_of(rows).column(rows, c, "X")


def part_of(rows: Rows, which: slice | IntArray) -> Rows:
    """Some rows, in their own kind."""
    return kind_of(rows).part(rows, which)


def copy_of(rows: Rows) -> Rows:
    """Rows that may be written to without changing these."""
    return kind_of(rows).copy(rows)


def join_of(parts: Sequence[Rows]) -> Rows:
    """The rows of all parts, which must be of one kind with the same columns."""
    if len({type(part) for part in parts}) > 1:
        raise ValueError(UNLIKE)
    return kind_of(parts[0]).join(parts)
