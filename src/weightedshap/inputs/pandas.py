"""pandas frames: every column keeps its dtype, nullable ones and categories included."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, cast

import numpy as np
import pandas as pd
from pandas.api import types

from weightedshap._checks import BoolArray, FloatArray, IntArray, Positions, offered
from weightedshap.inputs.containers import (
    Column,
    Dtype,
    Kind,
    as_numbers,
    as_text,
    check_exact,
    common_dtype,
    dtype_of_objects,
    holds,
    is_binary,
    picks,
    unseen,
)

MANY_BYTES = 2**16  # below them no text of a column is long
LONG_TEXT = 2**12  # characters that are better not copied

TIMES = {  # what pandas calls them → in our words, and how they are turned into numbers
    "period": ("periods", "their year", "{}.map(lambda period: period.year)"),
    "date": (
        "dates",
        "days",
        "(pandas.to_datetime({}, utc=True) - pandas.Timestamp('2000-01-01', tz='UTC')).dt.days",
    ),
    "time": (
        "durations or times of day",
        "seconds",
        "pandas.to_timedelta({}.astype(str)).dt.total_seconds()",
    ),
}


def _joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    if not all(part.columns.equals(parts[0].columns) for part in parts):
        raise ValueError("The rows of the parts have different columns.")
    return pd.concat(_widened(parts))


def _widened(parts: Sequence[pd.DataFrame]) -> Sequence[pd.DataFrame]:
    """Return frames whose columns of numbers are in one dtype for all, exactly.

    Left to itself, `pandas.concat` makes objects of booleans beside numbers.
    """
    dtypes = [list(part.dtypes) for part in parts]
    if all(own == dtypes[0] for own in dtypes):
        return parts
    common = {}
    for c, held in enumerate(zip(*dtypes, strict=True)):
        if len(set(held)) > 1 and all(_numpy_of(dtype) is not None for dtype in held):
            common[c] = reduce(_common, held)
    wide = [part.copy(deep=False) for part in parts]
    for part in wide:
        for c, dtype in common.items():
            column: Any = part.iloc[:, c].astype(dtype)
            part.isetitem(c, column)
    return wide


def _equal(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    if (
        one.index.names != other.index.names
        or list(one.dtypes) != list(other.dtypes)
        or not one.equals(other)
    ):
        return False
    floats = [
        c
        for c, dtype in enumerate(one.dtypes)
        if isinstance(dtype, np.dtype) and dtype.kind in "fc"
    ]
    return all(
        one.iloc[:, c].to_numpy().tobytes() == other.iloc[:, c].to_numpy().tobytes() for c in floats
    )


def _like(rows: pd.DataFrame, reference: pd.DataFrame, who: str, typed: bool) -> pd.DataFrame:
    aligned = rows.copy()
    for c, (own, dtype) in enumerate(zip(list(rows.dtypes), list(reference.dtypes), strict=True)):
        if own == dtype and not (types.is_object_dtype(dtype) or types.is_integer_dtype(dtype)):
            continue  # nothing in this column can be wrong
        plain = _plain(rows.iloc[:, c], who)
        if own == dtype:
            continue
        column = _in_dtype(plain, reference.iloc[:, c], who, own, typed)
        if column.dtype != own:
            aligned.isetitem(c, column.set_axis(rows.index))
    aligned.columns = reference.columns
    return aligned


def _converted(
    columns: Sequence[Column],
    dtypes: Sequence[Dtype | None],
    reference: pd.DataFrame,
    who: str,
) -> pd.DataFrame:
    made = {
        c: _in_dtype(column, reference.iloc[:, c], who, own, typed=False)
        for c, (column, own) in enumerate(zip(columns, dtypes, strict=True))
    }
    return pd.DataFrame(made).set_axis(reference.columns, axis=1)


def _built(columns: Sequence[Column], reference: pd.DataFrame, who: str) -> pd.DataFrame:
    made = {c: _rounded(column, reference.iloc[:, c], who) for c, column in enumerate(columns)}
    return pd.DataFrame(made).set_axis(reference.columns, axis=1)


def _mixed(
    rows: pd.DataFrame, which: Positions, known: BoolArray, hidden: pd.DataFrame, whose: Positions
) -> pd.DataFrame:
    pool = pd.concat(_widened([rows, hidden]), ignore_index=True)
    taken = {
        c: _taken(pool.iloc[:, c], pick)
        for c, pick in enumerate(picks(len(rows), which, known, whose))
    }
    mixed = pd.DataFrame(taken, copy=False)
    mixed.columns = hidden.columns
    return mixed


def _taken(column: pd.Series[Any], pick: IntArray) -> object:
    """Some values in the column's own dtype; pandas would take objects that are text for a dtype of
    text."""
    # Arrow copies a text each time it is taken, which a long one would fill the memory with. Python
    # refers to it.
    dtype: Any = column.dtype
    if isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow" and _is_long(column):
        column = column.astype(pd.StringDtype("python", na_value=dtype.na_value))
    taken = column.array.take(pick)
    return pd.Series(taken, dtype=object) if types.is_object_dtype(column.dtype) else taken


def _is_long(column: pd.Series[Any]) -> bool:
    """Return whether a column of text holds a long one."""
    return column.array.nbytes > MANY_BYTES and column.str.len().max() > LONG_TEXT


def _plain(column: pd.Series[Any], who: str) -> Column:
    """A column in the plain form; an error if it is neither numbers nor categories."""
    held = types.infer_dtype(column)  # "boolean", "integer", "string", "categorical", ...
    if held in ("string", "categorical", "empty"):
        values = np.array(column.astype(object), dtype=object)
        values[np.asarray(column.isna(), dtype=bool)] = None
        return values
    if held != "boolean" and (held == "complex" or not types.is_numeric_dtype(column.dtype)):
        raise TypeError(_refusal(column, held, who))
    numbers = column.astype("boolean") if types.is_object_dtype(column.dtype) else column
    floats = np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    if held == "integer":
        check_exact(floats, f"Column {str(column.name)!r} of `{who}`")
    return floats


def _refusal(column: pd.Series[Any], held: str, who: str) -> str:
    """Why a column is refused, and what to do with it."""
    name = str(column.name)
    own = column.dtype
    start = f"Column {name!r} of `{who}` holds"
    turn = "Turn it into numbers (pandas.to_numeric)"
    for family, (what, unit, formula) in TIMES.items():
        if held.startswith(family):
            example = f"{unit}: {formula.format(f'frame[{name!r}]')}"
            return f"{start} {what} ({own}). Turn them into numbers first, for example {example}."
    if held.startswith("mixed"):
        seen = sorted({type(value).__name__ for value in column[column.notna()]})
        return f"{start} mixed types ({', '.join(seen)}). {turn} or text (.map(str))."
    said = (
        f"{start} {held if types.is_object_dtype(own) else own} values, neither numbers nor"
        " categories."
    )
    return f"{said} {turn}, text (.map(str)) or a category (.astype('category'))."


def _numpy_of(dtype: object) -> Dtype | None:
    """Return numpy's dtype for the numbers of a column; None where it holds none, or objects."""
    if isinstance(dtype, pd.SparseDtype):
        dtype = dtype.subtype
    if not isinstance(dtype, np.dtype):
        dtype = offered(dtype, "numpy_dtype").get("numpy_dtype")
    return dtype if isinstance(dtype, np.dtype) and dtype.kind in "biuf" else None


def _common(own: Any, held: Any) -> Any:
    """Return a dtype of pandas that holds the numbers, and the holes, of both dtypes exactly."""
    if own == held:
        return held

    common = common_dtype(*(cast(Dtype, _numpy_of(dtype)) for dtype in (own, held)))
    nullable = not (isinstance(own, np.dtype) and isinstance(held, np.dtype))
    # floats have NaN for a hole, but integers and booleans have to be nullable
    for dtype in (held, own):
        holds_holes = common.kind == "f" or not nullable or not isinstance(dtype, np.dtype)
        if _numpy_of(dtype) == common and holds_holes:
            return dtype

    if common.kind in "iu" and nullable:
        return types.pandas_dtype(common.name.replace("int", "Int").replace("u", "U"))
    return common


def _beside(numbers: FloatArray, own: object, held: Any, typed: bool) -> Any:
    """Return the dtype for `numbers` of rows that came as `own`, beside a background of `held`."""
    of_row = _numpy_of(own)
    of_background = _numpy_of(held)
    if of_background is None:  # decimals
        return np.dtype(np.float64)

    chosen = typed and of_row is not None
    if not chosen and of_background.kind in "biu" and _fits(numbers, held):
        return held

    common = _common(dtype_of_objects(numbers) if of_row is None else own, held)
    no_place = isinstance(common, np.dtype) and common.kind != "f" and bool(np.isnan(numbers).any())
    return np.dtype(np.float64) if no_place else common


def _fits(numbers: FloatArray, dtype: Any) -> bool:
    """Whether a dtype holds all `numbers` exactly."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            made = pd.Series(numbers).astype(dtype)
    except (TypeError, ValueError):
        return False
    return holds(np.asarray(made.to_numpy(dtype=np.float64, na_value=np.nan)), numbers, False)


def _in_dtype(values: Column, reference: pd.Series[Any], who: str, own: object, typed: bool) -> Any:
    """Return a plain column of rows, which came as `own`, in a dtype that holds the reference's,
    too."""
    other = _in_categories(values, reference, who)
    if other is not None:
        return other
    numbers = as_numbers(values, repr(str(reference.name)), who)
    return pd.Series(numbers).astype(_beside(numbers, own, reference.dtype, typed))


def _rounded(values: Column, reference: pd.Series[Any], who: str) -> pd.Series[Any]:
    """Return a plain column that is made up in the reference's dtype, or as floats, see
    `in_dtype`."""
    other = _in_categories(values, reference, who)
    if other is not None:
        return other
    numbers = as_numbers(values, repr(str(reference.name)), who)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            made = pd.Series(numbers).astype(reference.dtype)
    except (TypeError, ValueError):
        return pd.Series(numbers)
    back = np.asarray(made.to_numpy(dtype=np.float64, na_value=np.nan))
    rounds = types.is_float_dtype(reference.dtype)
    return made if holds(back, numbers, rounds) else pd.Series(numbers)


def _in_categories(values: Column, reference: pd.Series[Any], who: str) -> pd.Series[Any] | None:
    """Return a plain column as the reference's categories, text or objects; None if it has
    numbers."""
    dtype = reference.dtype
    name = repr(str(reference.name))
    if isinstance(dtype, pd.CategoricalDtype):
        codes = dtype.categories.get_indexer(pd.Index(values, dtype=object))
        if len(lost := values[(codes < 0) & ~np.asarray(pd.isna(values))]):
            raise unseen(
                lost[0],
                name,
                dtype.categories,
                who,
                "Set it to missing, or add it to the categories",
            )
        return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype))
    # booleans with holes
    if types.is_object_dtype(dtype) and types.infer_dtype(reference) == "boolean":
        numbers = as_numbers(values, name, who)
        if not is_binary(numbers):
            return pd.Series(numbers)
        return pd.Series([None if np.isnan(v) else bool(v) for v in numbers], dtype=object)
    if types.is_object_dtype(dtype) or types.is_string_dtype(dtype):
        return pd.Series(as_text(values, name, who), dtype=dtype)
    return None


PANDAS = Kind[pd.DataFrame](
    names=lambda rows: tuple(str(name) for name in rows.columns),
    select=lambda rows, columns: rows.iloc[:, list(columns)],
    join=_joined,
    equal=_equal,
    column=lambda rows, c, who: _plain(rows.iloc[:, c], who),
    series=lambda rows, c: rows.iloc[:, c],
    to_array=lambda rows: rows.to_numpy(),
    to_pandas=lambda rows: rows,
    is_boolean=lambda rows, c: types.infer_dtype(rows.iloc[:, c]) == "boolean",
    dtype=lambda rows, c: _numpy_of(rows.dtypes.iloc[c]),
    like=_like,
    convert=_converted,
    build=_built,
    mix=_mixed,
)
