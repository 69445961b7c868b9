"""polars frames: polars in, polars out. A null stays a null and a NaN stays a NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from weightedshap.checks import BoolArray, IntArray, require
from weightedshap.inputs.columns import Column, Rows, as_numbers, as_text, holds, picks, refuse_inexact
from weightedshap.inputs.groups import listed

polars = require("polars", "polars")  # this module is imported when rows of polars are met

ADVICE = {"Duration": "dt.total_seconds()", "Time": "cast(polars.Int64) / 1e9"}  # into numbers; dates by `epoch`


class PolarsFrames:
    """Rows as a `polars.DataFrame`."""

    def names(self, rows: Rows) -> tuple[str, ...]:
        return tuple(rows.columns)

    def select(self, rows: Rows, columns: Sequence[int] | IntArray) -> Rows:
        return rows.select([rows.columns[c] for c in columns])

    def part(self, rows: Rows, which: slice | IntArray) -> Rows:
        return rows[which]

    def copy(self, rows: Rows) -> Rows:
        return rows.clone()

    def join(self, parts: Sequence[Rows]) -> Rows:
        return polars.concat(parts)

    def equal(self, one: Rows, other: Rows) -> bool:
        return bool(one.schema == other.schema and one.equals(other))

    def column(self, rows: Rows, c: int, who: str) -> Column:
        return _plain(rows.to_series(c), who)

    def series(self, rows: Rows, c: int) -> pd.Series[Any]:
        return pd.Series(rows.to_series(c).to_list())

    def to_pandas(self, rows: Rows) -> pd.DataFrame:
        return pd.DataFrame(rows.to_pandas())

    def is_boolean(self, rows: Rows, c: int) -> bool:
        return str(rows.dtypes[c]) == "Boolean"

    def like(self, rows: Rows, reference: Rows, who: str) -> Rows:
        columns = {}
        for own, column in zip(rows.get_columns(), reference.get_columns(), strict=True):
            plain = _plain(own, who)
            columns[column.name] = own if own.dtype == column.dtype else _in_dtype(plain, column, who)
        return polars.DataFrame(columns)

    def build(self, columns: Sequence[Column], reference: Rows, who: str) -> Rows:
        pairs = zip(columns, reference.get_columns(), strict=True)
        return polars.DataFrame({column.name: _in_dtype(values, column, who) for values, column in pairs})

    def mix(self, row: Rows, known: BoolArray, hidden: Rows) -> Rows:
        pool = polars.concat([row, hidden], how="vertical_relaxed")
        return polars.DataFrame([pool.to_series(c).gather(pick) for c, pick in enumerate(picks(known, len(hidden)))])


POLARS = PolarsFrames()


def _plain(column: Any, who: str) -> Column:
    """A column in the plain form; an error if it is neither numbers nor categories."""
    dtype, family = column.dtype, str(column.dtype).partition("(")[0]
    if dtype.is_numeric() or family == "Boolean":
        floats = np.array(column.cast(polars.Float64).to_numpy(), dtype=np.float64)
        if dtype.is_integer():
            refuse_inexact(floats, f"Column {column.name!r} of `{who}`")
        return floats
    if family in ("String", "Categorical", "Enum", "Null"):
        values = np.empty(len(column), dtype=object)
        values[:] = column.to_list()
        return values
    start = f"Column {column.name!r} of `{who}` holds {dtype} values"
    if dtype.is_temporal():
        advice = ADVICE.get(family, "dt.epoch('d')")
        formula = f"polars.col({column.name!r}).{advice}"
        raise TypeError(f"{start}, which are dates or times. Turn them into numbers first, for example {formula}.")
    raise TypeError(f"{start}, which are neither numbers nor categories. Cast the column to Float64, String or Enum.")


def _in_dtype(values: Column, reference: Any, who: str) -> Any:
    """A plain column in the dtype of `reference`, or in its own where that cannot hold it.

    Missing values become nulls, or NaN if that is what the reference column has in their place.
    """
    dtype, name = reference.dtype, repr(reference.name)
    if not (dtype.is_numeric() or str(dtype) == "Boolean"):
        return _text_in_dtype(as_text(values, name, who), dtype, name, who)
    numbers = as_numbers(values, name, who)
    series = polars.Series(numbers)
    if not (dtype.is_float() and reference.is_nan().any() and not reference.has_nulls()):
        series = series.fill_nan(None)
    cast = series.cast(dtype, strict=False)
    back = np.array(cast.cast(polars.Float64).to_numpy(), dtype=np.float64)
    return cast if holds(back, numbers, dtype.is_float()) else series


def _text_in_dtype(values: Column, dtype: Any, name: str, who: str) -> Any:
    text = polars.Series(values.tolist(), dtype=polars.String)
    cast = text.cast(dtype, strict=False)
    unseen = text.filter(cast.is_null() & text.is_not_null())
    if len(unseen):
        raise ValueError(
            f"`{who}` has a category in column {name} that the background never saw: {unseen[0]!r}. "
            f"Known: {listed(dtype.categories.to_list())}. Set it to null, or add it to the Enum of the "
            "background's column if the model knows it."
        )
    return cast
