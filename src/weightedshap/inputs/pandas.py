"""pandas frames: every column keeps its dtype, nullable ones and categories included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from pandas.api import types

from weightedshap.checks import BoolArray, FloatArray, IntArray
from weightedshap.inputs.columns import Column, as_numbers, as_text, holds, refuse_inexact
from weightedshap.inputs.groups import listed

__all__ = ["PandasFrames"]


class PandasFrames:
    """Rows as a `pandas.DataFrame`."""

    def names(self, rows: Any) -> tuple[str, ...]:
        return tuple(str(name) for name in rows.columns)

    def select(self, rows: Any, columns: Sequence[int]) -> Any:
        return rows.iloc[:, list(columns)]

    def part(self, rows: Any, which: slice | IntArray) -> Any:
        return rows.iloc[which]

    def copy(self, rows: Any) -> Any:
        return rows.copy()

    def column(self, rows: Any, c: int, who: str) -> Column:
        return _plain(rows.iloc[:, c], who)

    def is_boolean(self, rows: Any, c: int) -> bool:
        return _is_boolean(rows.iloc[:, c])

    def like(self, rows: Any, reference: Any, who: str) -> Any:
        aligned = rows.copy(deep=False)
        for c, (own, dtype) in enumerate(zip(list(rows.dtypes), list(reference.dtypes), strict=True)):
            if own == dtype and not (types.is_object_dtype(dtype) or types.is_integer_dtype(dtype)):
                continue  # nothing in this column can be wrong
            plain = _plain(rows.iloc[:, c], who)
            if own != dtype:
                cast = _in_dtype(plain, dtype, repr(str(reference.columns[c])), who)
                aligned.isetitem(c, cast.set_axis(rows.index))
        aligned.columns = reference.columns
        return aligned

    def build(self, columns: Sequence[Column], reference: Any, who: str) -> Any:
        pairs = zip(columns, reference.dtypes, reference.columns, strict=True)
        cast = {c: _in_dtype(column, dtype, repr(str(name)), who) for c, (column, dtype, name) in enumerate(pairs)}
        return pd.DataFrame(cast).set_axis(reference.columns, axis=1)

    def mix(self, row: Any, known: BoolArray, hidden: Any) -> Any:
        source = np.arange(1, len(hidden) + 1)  # row 0 of the pool is the explained one
        pool = pd.concat([row, hidden], ignore_index=True)
        picks = (np.where(known[:, [c]], 0, source).ravel() for c in range(known.shape[1]))
        mixed = pd.DataFrame({c: _taken(pool.iloc[:, c], pick) for c, pick in enumerate(picks)}, copy=False)
        mixed.columns = hidden.columns
        return mixed


def _taken(column: pd.Series[Any], pick: IntArray) -> Any:
    """Some values in the column's own dtype; pandas would take objects that are text for a dtype of text."""
    taken = column.array.take(pick)
    return pd.Series(taken, dtype=object) if types.is_object_dtype(column.dtype) else taken


def _plain(column: pd.Series[Any], who: str) -> Column:
    name, dtype = str(column.name), column.dtype
    if _is_boolean(column) or (types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype)):
        floats = _floats(column)
        if types.is_integer_dtype(dtype):
            refuse_inexact(floats, f"Column {name!r} of `{who}`")
        return floats
    if isinstance(dtype, pd.CategoricalDtype) or _is_text(column):
        return _objects(column)
    raise TypeError(_refusal(column, name, who))


def _is_boolean(column: pd.Series[Any]) -> bool:
    if types.is_object_dtype(column.dtype):
        return types.infer_dtype(column, skipna=True) == "boolean"
    return types.is_bool_dtype(column.dtype) and not isinstance(column.dtype, pd.CategoricalDtype)


def _is_text(column: pd.Series[Any]) -> bool:
    if types.is_object_dtype(column.dtype):
        return types.infer_dtype(column, skipna=True) in ("string", "empty")
    return types.is_string_dtype(column.dtype)


def _floats(column: pd.Series[Any]) -> FloatArray:
    if types.is_object_dtype(column.dtype):
        column = column.astype("boolean")
    return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _objects(column: pd.Series[Any]) -> npt.NDArray[np.object_]:
    values = np.array(column.astype(object), dtype=object)
    values[np.asarray(column.isna(), dtype=bool)] = None
    return values


def _refusal(column: pd.Series[Any], name: str, who: str) -> str:
    """Why a column is refused, and what to do with it."""
    own, kind = column.dtype, getattr(column.dtype, "kind", "O")
    held = types.infer_dtype(column, skipna=True) if types.is_object_dtype(own) else str(own)
    start, cells = f"Column {name!r} of `{who}` holds", f"frame[{name!r}]"
    first = "Turn them into numbers first, for example"
    if held.startswith("period"):
        return f"{start} periods ({own}). {first} their year: {cells}.map(lambda period: period.year)."
    if kind == "M" or held.startswith("date"):
        since = "pandas.Timestamp('2000-01-01', tz='UTC')"
        return f"{start} dates ({own}). {first} days: (pandas.to_datetime({cells}, utc=True) - {since}).dt.days."
    if kind == "m" or held.startswith("time"):
        seconds = f"pandas.to_timedelta({cells}.astype(str)).dt.total_seconds()"
        return f"{start} durations or times of day ({own}). {first} seconds: {seconds}."
    if held.startswith("mixed"):
        seen = sorted({type(value).__name__ for value in column[column.notna()]})
        return f"{start} mixed types ({', '.join(seen)}). Turn it into numbers (pandas.to_numeric) or text (.map(str))."
    return (
        f"{start} {held} values, neither numbers nor categories. Turn it into numbers (pandas.to_numeric), "
        "text (.map(str)) or a category (.astype('category'))."
    )


def _in_dtype(values: Column, dtype: Any, name: str, who: str) -> Any:
    """A plain column as a Series in `dtype`, or in its own where that cannot hold it."""
    if isinstance(dtype, pd.CategoricalDtype):
        return pd.Series(_categories(values, dtype, name, who))
    if types.is_object_dtype(dtype) or types.is_string_dtype(dtype):
        return pd.Series(_text(values, dtype, name, who), dtype=dtype)
    numbers = as_numbers(values, name, who)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            cast = pd.Series(numbers).astype(dtype)
    except (TypeError, ValueError):
        return pd.Series(numbers)
    back = np.asarray(cast.to_numpy(dtype=np.float64, na_value=np.nan))
    return cast if holds(back, numbers, types.is_float_dtype(dtype)) else pd.Series(numbers)


def _text(values: Column, dtype: Any, name: str, who: str) -> Any:
    if types.is_object_dtype(dtype) and values.dtype != object:  # booleans with holes, kept as objects
        return np.array([None if np.isnan(v) else bool(v) for v in values], dtype=object)
    return as_text(values, name, who)


def _categories(values: Column, dtype: pd.CategoricalDtype, name: str, who: str) -> Any:
    codes = dtype.categories.get_indexer(pd.Index(values, dtype=object))
    unseen = (codes < 0) & ~np.asarray(pd.isna(values))
    if unseen.any():
        raise ValueError(
            f"`{who}` has a category in column {name} that the background never saw: {values[unseen][0]!r}. "
            f"Known: {listed([str(c) for c in dtype.categories])}. Set it to missing, or add it to the categories of "
            "the background's column if the model knows it."
        )
    return pd.Categorical.from_codes(codes, dtype=dtype)
