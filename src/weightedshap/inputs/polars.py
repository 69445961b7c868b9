"""polars frames: polars in, polars out. A null stays a null and a NaN stays a NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weightedshap.checks import BoolArray, IntArray, require
from weightedshap.inputs.columns import Column, as_numbers, as_text, holds, refuse_inexact
from weightedshap.inputs.groups import listed

__all__ = ["PolarsFrames"]

polars = require("polars", "polars")  # this module is imported when rows of polars are met


class PolarsFrames:
    """Rows as a `polars.DataFrame`."""

    def names(self, rows: Any) -> tuple[str, ...]:
        return tuple(rows.columns)

    def select(self, rows: Any, columns: Sequence[int]) -> Any:
        return rows.select([rows.columns[c] for c in columns])

    def part(self, rows: Any, which: slice | IntArray) -> Any:
        return rows[which]

    def copy(self, rows: Any) -> Any:
        return rows.clone()

    def column(self, rows: Any, c: int, who: str) -> Column:
        return _plain(rows.to_series(c), who)

    def is_boolean(self, rows: Any, c: int) -> bool:
        return str(rows.dtypes[c]) == "Boolean"

    def like(self, rows: Any, reference: Any, who: str) -> Any:
        columns = {}
        for own, column in zip(rows.get_columns(), reference.get_columns(), strict=True):
            plain = _plain(own, who)
            columns[column.name] = own if own.dtype == column.dtype else _like(plain, column, who)
        return polars.DataFrame(columns)

    def build(self, columns: Sequence[Column], reference: Any, who: str) -> Any:
        pairs = zip(columns, reference.get_columns(), strict=True)
        return polars.DataFrame({column.name: _like(values, column, who) for values, column in pairs})

    def mix(self, row: Any, known: BoolArray, hidden: Any) -> Any:
        source = np.arange(1, len(hidden) + 1)  # row 0 of the pool is the explained one
        pool = polars.concat([row, hidden], how="vertical_relaxed")
        picks = (np.where(known[:, [c]], 0, source).ravel() for c in range(known.shape[1]))
        return polars.DataFrame([pool.to_series(c).gather(pick) for c, pick in enumerate(picks)])


def _plain(column: Any, who: str) -> Column:
    dtype, kind = column.dtype, str(column.dtype).partition("(")[0]
    if dtype.is_numeric() or kind == "Boolean":
        floats = np.array(column.cast(polars.Float64).to_numpy(), dtype=np.float64)
        if dtype.is_integer():
            refuse_inexact(floats, f"Column {column.name!r} of `{who}`")
        return floats
    if kind in ("String", "Categorical", "Enum", "Null"):
        values = np.empty(len(column), dtype=object)
        values[:] = column.to_list()
        return values
    start = f"Column {column.name!r} of `{who}` holds {dtype} values"
    advice = {"Duration": "dt.total_seconds()", "Time": "cast(polars.Int64) / 1e9", "Date": "dt.epoch('d')"}
    if dtype.is_temporal():
        formula = f"polars.col({column.name!r}).{advice.get(kind, advice['Date'])}"
        raise TypeError(f"{start}, which are dates or times. Turn them into numbers first, for example {formula}.")
    raise TypeError(f"{start}, which are neither numbers nor categories. Cast the column to Float64, String or Enum.")


def _like(values: Column, reference: Any, who: str) -> Any:
    """A plain column in the dtype of `reference`, or in its own where that cannot hold it.

    Missing values become nulls, or NaN if that is what the reference column has in their place.
    """
    dtype, name = reference.dtype, repr(reference.name)
    if not (dtype.is_numeric() or str(dtype) == "Boolean"):
        text = polars.Series(as_text(values, name, who).tolist(), dtype=polars.String)
        cast = text.cast(dtype, strict=False)
        unseen = text.filter(cast.is_null() & text.is_not_null())
        if len(unseen):
            raise ValueError(
                f"`{who}` has a category in column {name} that the background never saw: {unseen[0]!r}. "
                f"Known: {listed(dtype.categories.to_list())}. Set it to null, or add it to the Enum of the "
                "background's column if the model knows it."
            )
        return cast
    numbers = as_numbers(values, name, who)
    series = polars.Series(numbers)
    if not (dtype.is_float() and reference.is_nan().any() and not reference.has_nulls()):
        series = series.fill_nan(None)
    cast = series.cast(dtype, strict=False)
    back = np.array(cast.cast(polars.Float64).to_numpy(), dtype=np.float64)
    return cast if holds(back, numbers, dtype.is_float()) else series
