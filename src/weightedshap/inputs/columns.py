"""The kinds of tables, and what all of them can do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import pandas as pd

from weightedshap.checks import BoolArray, IntArray
from weightedshap.inputs.plain import Array, Column, as_numbers, in_dtype, numeric

Data = Any
"""Rows of people's data: an array (n, c), a pandas or a polars DataFrame."""
R = TypeVar("R")

UNLIKE = "The rows of the parts must be all arrays, or all frames, with the same columns."


@dataclass(frozen=True)
class Kind(Generic[R]):
    """What is done to rows of one kind. Columns are counted by c; `who` names the rows in an error."""

    names: Callable[[R], tuple[str, ...] | None]  # (rows) → column names; None if columns have no names
    select: Callable[[R, Sequence[int] | IntArray], R]  # (rows, columns) → some columns, in the given order
    join: Callable[[Sequence[R]], R]  # (parts) → the rows of all parts; an error if their columns differ
    equal: Callable[[R, R], bool]  # (one, other) → the same to the bit, names and types too; NaN equals NaN
    column: Callable[[R, int, str], Column]  # (rows, c, who) → plain; an error if neither numbers nor categories
    series: Callable[[R, int], pd.Series[Any]]  # (rows, c) → a column to be shown, whatever it holds
    to_pandas: Callable[[R], pd.DataFrame]  # (rows) → the rows as a pandas frame
    is_boolean: Callable[[R, int], bool]  # (rows, c) → whether a column holds only true and false
    like: Callable[[R, R, str], R]  # (rows, reference, who) → rows in the reference's dtypes, where these can hold them
    build: Callable[[Sequence[Column], R, str], R]  # (columns, reference, who) → the same out of plain columns
    mix: Callable[[R, BoolArray, R], R]  # (row, known (m, c), B hidden) → m·B rows; columns not known from each hidden


def _joined(parts: Sequence[Array]) -> Array:
    if len({part.shape[1:] for part in parts}) > 1:
        raise ValueError(UNLIKE)
    return np.concatenate(parts)


def equal_arrays(one: Array, other: Array) -> bool:
    """Whether two arrays are the same to the bit."""
    if one.dtype.kind == other.dtype.kind == "U":  # however long their longest text is
        return np.array_equal(one, other)
    alike = one.shape == other.shape and one.dtype == other.dtype
    return alike and np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()


def _like(rows: Array, reference: Array, who: str) -> Array:
    rows = numeric(rows, who)
    return rows if rows.dtype == reference.dtype else in_dtype(rows, reference.dtype)


def _built(columns: Sequence[Column], reference: Array, who: str) -> Array:
    numbers = [as_numbers(column, f"at position {c}", who) for c, column in enumerate(columns)]
    return in_dtype(np.stack(numbers, axis=1), reference.dtype)


ARRAYS = Kind[Array](
    names=lambda rows: None,
    select=lambda rows, columns: rows[:, columns],
    join=_joined,
    equal=equal_arrays,
    column=lambda rows, c, who: np.asarray(rows[:, c], dtype=np.float64),
    series=lambda rows, c: pd.Series(rows[:, c]),
    to_pandas=pd.DataFrame,
    is_boolean=lambda rows, c: rows.dtype == np.bool_,
    like=_like,
    build=_built,
    mix=lambda row, known, hidden: np.where(known[:, None, :], row, hidden).reshape(-1, known.shape[1]),
)


def picks(known: BoolArray, n: int) -> Iterator[IntArray]:
    """For each column of mixed rows, where its cells stand in a pool: 0 is the explained row, 1..n the hidden ones."""
    for column in known.T:
        yield np.where(column[:, None], 0, np.arange(1, n + 1)).ravel()


def is_polars(data: object) -> bool:
    """Whether `data` is a polars DataFrame, found out without importing polars."""
    return type(data).__module__.partition(".")[0] == "polars" and type(data).__name__ == "DataFrame"


def is_frame(data: object) -> bool:
    """Whether `data` is a pandas or polars DataFrame."""
    return isinstance(data, pd.DataFrame) or is_polars(data)


def kind_of(rows: Data) -> Kind[Any]:
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


def as_rows(data: Any) -> Data:
    """A 2-D array or a DataFrame."""
    if is_frame(data):
        return data
    if type(data).__name__ == "LazyFrame":
        raise TypeError("A polars LazyFrame holds no rows yet. Call `.collect()` on it first.")
    if isinstance(data, pd.Series):
        return data.to_frame().T.infer_objects()
    if isinstance(data, Mapping):
        return pd.DataFrame([dict(data)])
    array = np.asarray(data)
    array = array[None, :] if array.ndim == 1 else array
    if array.ndim != 2:
        raise ValueError(f"A table must have two axes, rows and columns; got shape {array.shape}.")
    return array


def column_of(rows: Data, c: int) -> Column:
    """Column c in the plain form: floats with NaN, or objects with None."""
    return kind_of(rows).column(rows, c, "X")


def part_of(rows: Data, which: slice | IntArray) -> Data:
    """Some rows, in their own kind."""
    return rows.iloc[which] if isinstance(rows, pd.DataFrame) else rows[which]


def join_of(parts: Sequence[Data]) -> Data:
    """The rows of all parts, which must be of one kind with the same columns."""
    if len({type(part) for part in parts}) > 1:
        raise ValueError(UNLIKE)
    return kind_of(parts[0]).join(parts)
