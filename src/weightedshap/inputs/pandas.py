"""Rows in pandas frames: every column keeps its dtype, nullable ones and categories included.

`PANDAS` is the `Container` of pandas frames; `containers` imports this module when such rows come.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, cast

import numpy as np
import pandas as pd
from pandas.api import types

from weightedshap._checks import BoolArray, FloatArray, IntArray, Positions, optional_attrs
from weightedshap.inputs.containers import (
    Column,
    Container,
    Dtype,
    as_numbers,
    as_text,
    check_exact,
    common_dtype,
    dtype_of_objects,
    is_binary,
    is_lossless,
    pool_indices,
    unseen_category_error,
)

# Only text columns of more bytes are searched for long texts, see `_take`.
MIN_BYTES = 2**16
# Texts of more characters are not copied.
MAX_COPIED_TEXT = 2**12

# pandas' name for a kind of time → its name in an error, a unit, and code for numbers in it.
TIMES = {
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


def _concat(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate the rows of all frames; raise an error if their columns differ."""
    if not all(part.columns.equals(parts[0].columns) for part in parts):
        raise ValueError("The rows of the parts have different columns.")
    return pd.concat(_widen(parts))


def _widen(parts: Sequence[pd.DataFrame]) -> Sequence[pd.DataFrame]:
    """Give each numeric column the same dtype in all frames, which can represent all its numbers.

    Otherwise `pandas.concat` would turn a column into objects if it is boolean in one frame and
    numeric in another.
    """
    dtypes = [list(part.dtypes) for part in parts]
    if all(own == dtypes[0] for own in dtypes):
        return parts
    common = {}
    for c, of_column in enumerate(zip(*dtypes, strict=True)):
        are_numbers = all(_numpy_dtype(dtype) is not None for dtype in of_column)
        if len(set(of_column)) > 1 and are_numbers:
            common[c] = reduce(_common_dtype, of_column)
    wide = [part.copy(deep=False) for part in parts]
    for part in wide:
        for c, dtype in common.items():
            column: Any = part.iloc[:, c].astype(dtype)
            part.isetitem(c, column)
    return wide


def _equal(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Return whether two frames are identical, bit for bit, including names and dtypes."""
    if (
        one.index.names != other.index.names
        or list(one.dtypes) != list(other.dtypes)
        or not one.equals(other)
    ):
        return False
    # To `DataFrame.equals`, 0.0 and −0.0 are the same.
    floats = [
        c
        for c, dtype in enumerate(one.dtypes)
        if isinstance(dtype, np.dtype) and dtype.kind in "fc"
    ]
    return all(
        one.iloc[:, c].to_numpy().tobytes() == other.iloc[:, c].to_numpy().tobytes() for c in floats
    )


def _match_dtypes(
    rows: pd.DataFrame, reference: pd.DataFrame, who: str, typed: bool
) -> pd.DataFrame:
    """Return rows with the reference's column names, in dtypes that fit the numbers of both frames.

    `typed` is False for rows whose columns had no dtypes, see `Container`.
    `reference` is the background, and `who` names the rows in an error.
    """
    aligned = rows.copy()
    pairs = zip(list(rows.dtypes), list(reference.dtypes), strict=True)
    for c, (own, dtype) in enumerate(pairs):
        # Objects may be anything, and integers may be too large for float64.
        needs_check = types.is_object_dtype(dtype) or types.is_integer_dtype(dtype)
        if own == dtype and not needs_check:
            continue
        plain = _to_plain(rows.iloc[:, c], who)
        if own == dtype:
            continue
        column = _in_wider_dtype(plain, reference.iloc[:, c], who, own, typed)
        if column.dtype != own:
            aligned.isetitem(c, column.set_axis(rows.index))
    aligned.columns = reference.columns
    return aligned


def _convert_columns(
    columns: Sequence[Column],
    dtypes: Sequence[Dtype | None],
    reference: pd.DataFrame,
    who: str,
) -> pd.DataFrame:
    """Convert columns from another container to a frame, without rounding.

    `dtypes` are the numpy dtypes of these columns, None for objects. The dtypes of the frame
    can also represent the numbers of `reference`.
    `reference` is the background, and `who` names the rows in an error.
    """
    converted = {
        c: _in_wider_dtype(column, reference.iloc[:, c], who, own, typed=False)
        for c, (column, own) in enumerate(zip(columns, dtypes, strict=True))
    }
    return pd.DataFrame(converted).set_axis(reference.columns, axis=1)


def _from_columns(columns: Sequence[Column], reference: pd.DataFrame, who: str) -> pd.DataFrame:
    """Build a frame from columns computed by a game, in the reference's dtypes where they fit.

    `reference` is the background, and `who` names the rows in an error.
    """
    rounded = {
        c: _in_reference_dtype(column, reference.iloc[:, c], who)
        for c, column in enumerate(columns)
    }
    return pd.DataFrame(rounded).set_axis(reference.columns, axis=1)


def _mix(
    rows: pd.DataFrame, which: Positions, known: BoolArray, hidden: pd.DataFrame, whose: Positions
) -> pd.DataFrame:
    """Return mixed rows (m, c): cells of ``rows[which]`` where `known`, else of ``hidden[whose]``.

    See `Table.mix`.
    """
    pool = pd.concat(_widen([rows, hidden]), ignore_index=True)
    columns = {
        c: _take(pool.iloc[:, c], indices)
        for c, indices in enumerate(pool_indices(len(rows), which, known, whose))
    }
    mixed = pd.DataFrame(columns, copy=False)
    mixed.columns = hidden.columns
    return mixed


def _take(column: pd.Series[Any], indices: IntArray) -> object:
    """Return the values of a column at `indices`, with its dtype."""
    # Arrow copies a text each time that it is selected, and many copies of a long text would fill
    # the memory. Python stores references.
    dtype: Any = column.dtype
    if isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow" and _has_long_text(column):
        column = column.astype(pd.StringDtype("python", na_value=dtype.na_value))
    values = column.array.take(indices)
    # Without a dtype, pandas would turn objects that are all text into a dtype of text.
    return pd.Series(values, dtype=object) if types.is_object_dtype(column.dtype) else values


def _has_long_text(column: pd.Series[Any]) -> bool:
    """Return whether a large text column contains a string longer than `MAX_COPIED_TEXT`."""
    return column.array.nbytes > MIN_BYTES and column.str.len().max() > MAX_COPIED_TEXT


def _to_plain(column: pd.Series[Any], who: str) -> Column:
    """Return a column as floats, or as objects if categorical; missing values are NaN or None.

    Raise an error for any other content; `who` names the rows in the error.
    """
    content = types.infer_dtype(column)  # "boolean", "integer", "string", "categorical", …
    if content in ("string", "categorical", "empty"):
        values = np.array(column.astype(object), dtype=object)
        values[np.asarray(column.isna(), dtype=bool)] = None
        return values
    if content != "boolean" and (content == "complex" or not types.is_numeric_dtype(column.dtype)):
        raise TypeError(_unsupported_column_message(column, content, who))
    # Objects that are True, False and None become numbers through the nullable dtype.
    numbers = column.astype("boolean") if types.is_object_dtype(column.dtype) else column
    floats = np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    if content == "integer":
        check_exact(floats, f"Column {str(column.name)!r} of `{who}`")
    return floats


def _unsupported_column_message(column: pd.Series[Any], content: str, who: str) -> str:
    """Return the error message for a column of neither numbers nor categories, with advice.

    `content` is what pandas infers from its values, such as "mixed-integer"; `who` names the rows.
    """
    name = str(column.name)
    own = column.dtype
    start = f"Column {name!r} of `{who}` holds"
    advice = "Turn it into numbers (pandas.to_numeric)"
    for family, (what, unit, formula) in TIMES.items():
        if content.startswith(family):
            example = f"{unit}: {formula.format(f'frame[{name!r}]')}"
            return f"{start} {what} ({own}). Turn them into numbers first, for example {example}."
    if content.startswith("mixed"):
        classes = sorted({type(value).__name__ for value in column[column.notna()]})
        return f"{start} mixed types ({', '.join(classes)}). {advice} or text (.map(str))."
    values = content if types.is_object_dtype(own) else str(own)
    return (
        f"{start} {values} values, neither numbers nor categories. {advice}, text (.map(str)) or a"
        " category (.astype('category'))."
    )


def _numpy_dtype(dtype: object) -> Dtype | None:
    """Return numpy's version of a numeric pandas dtype; None for any other dtype."""
    if isinstance(dtype, pd.SparseDtype):
        dtype = dtype.subtype
    if not isinstance(dtype, np.dtype):
        dtype = optional_attrs(dtype, "numpy_dtype").get("numpy_dtype")
    return dtype if isinstance(dtype, np.dtype) and dtype.kind in "biuf" else None


def _common_dtype(own: Any, other: Any) -> Any:
    """Return a pandas dtype that can represent the numbers and missing values of both dtypes."""
    if own == other:
        return other

    common = common_dtype(*(cast(Dtype, _numpy_dtype(dtype)) for dtype in (own, other)))
    one_is_nullable = not (isinstance(own, np.dtype) and isinstance(other, np.dtype))
    # Among floats a missing value is NaN; among integers and booleans it needs a nullable dtype.
    for dtype in (other, own):
        is_nullable = not isinstance(dtype, np.dtype)
        holds_missing = common.kind == "f" or not one_is_nullable or is_nullable
        if _numpy_dtype(dtype) == common and holds_missing:
            return dtype

    if common.kind in "iu" and one_is_nullable:
        # "int64" → "Int64", "uint8" → "UInt8"
        return types.pandas_dtype(common.name.replace("int", "Int").replace("u", "U"))
    return common


def _wider_dtype(numbers: FloatArray, own: object, reference: Any, typed: bool) -> Any:
    """Return a dtype for `numbers` that can also represent the numbers of the dtype `reference`.

    `own` is the dtype of the numbers in the user's rows, and `typed` is False if the columns of
    those rows had no dtypes. `reference` is the dtype of the background's column.
    """
    own_numpy = _numpy_dtype(own)
    reference_numpy = _numpy_dtype(reference)
    # The background has decimals.
    if reference_numpy is None:
        return np.dtype(np.float64)

    keeps_own = typed and own_numpy is not None
    if not keeps_own and reference_numpy.kind in "biu" and _fits(numbers, reference):
        return reference

    common = _common_dtype(dtype_of_objects(numbers) if own_numpy is None else own, reference)
    lacks_missing = isinstance(common, np.dtype) and common.kind != "f"
    if lacks_missing and bool(np.isnan(numbers).any()):
        return np.dtype(np.float64)
    return common


def _fits(numbers: FloatArray, dtype: Any) -> bool:
    """Return whether a dtype can represent all `numbers` exactly."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            cast_numbers = pd.Series(numbers).astype(dtype)
    except (TypeError, ValueError):
        return False
    floats = np.asarray(cast_numbers.to_numpy(dtype=np.float64, na_value=np.nan))
    return is_lossless(floats, numbers, may_round=False)


def _in_wider_dtype(
    values: Column, reference: pd.Series[Any], who: str, own: object, typed: bool
) -> Any:
    """Convert a user's column to a dtype that can also represent the values of `reference`.

    `own` is the dtype of the column in the user's rows, and `typed` is False if the columns of
    those rows had no dtypes. `reference` is the background's column. `who` names the rows in an
    error.
    """
    categories = _in_categories(values, reference, who)
    if categories is not None:
        return categories
    numbers = as_numbers(values, repr(str(reference.name)), who)
    return pd.Series(numbers).astype(_wider_dtype(numbers, own, reference.dtype, typed))


def _in_reference_dtype(values: Column, reference: pd.Series[Any], who: str) -> pd.Series[Any]:
    """Convert a game's column to the dtype of `reference`, or to floats if its values do not fit.

    `reference` is the background's column, and `who` names the rows in an error. Numbers are
    rounded to the floats of `reference`; see `cast_if_lossless`.
    """
    categories = _in_categories(values, reference, who)
    if categories is not None:
        return categories
    numbers = as_numbers(values, repr(str(reference.name)), who)
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = pd.Series(numbers).astype(reference.dtype)
    except (TypeError, ValueError):
        return pd.Series(numbers)
    floats = np.asarray(rounded.to_numpy(dtype=np.float64, na_value=np.nan))
    may_round = types.is_float_dtype(reference.dtype)
    return rounded if is_lossless(floats, numbers, may_round) else pd.Series(numbers)


def _in_categories(values: Column, reference: pd.Series[Any], who: str) -> pd.Series[Any] | None:
    """Convert a column to the categories, text or objects of `reference`; None for other dtypes.

    Raise an error for categories that `reference`, the background's column, does not have. `who`
    names the rows in the error.
    """
    dtype = reference.dtype
    name = repr(str(reference.name))
    if isinstance(dtype, pd.CategoricalDtype):
        codes = dtype.categories.get_indexer(pd.Index(values, dtype=object))
        unseen = values[(codes < 0) & ~np.asarray(pd.isna(values))]
        if len(unseen):
            advice = "Set it to missing, or add it to the categories"
            raise unseen_category_error(unseen[0], name, dtype.categories, who, advice)
        return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype))

    # Booleans with missing values.
    if types.is_object_dtype(dtype) and types.infer_dtype(reference) == "boolean":
        numbers = as_numbers(values, name, who)
        if not is_binary(numbers):
            return pd.Series(numbers)
        return pd.Series([None if np.isnan(v) else bool(v) for v in numbers], dtype=object)
    if types.is_object_dtype(dtype) or types.is_string_dtype(dtype):
        return pd.Series(as_text(values, name, who), dtype=dtype)
    return None


PANDAS = Container[pd.DataFrame](
    names=lambda rows: tuple(str(name) for name in rows.columns),
    select=lambda rows, columns: rows.iloc[:, list(columns)],
    concat=_concat,
    equal=_equal,
    column=lambda rows, c, who: _to_plain(rows.iloc[:, c], who),
    series=lambda rows, c: rows.iloc[:, c],
    to_array=lambda rows: rows.to_numpy(),
    to_pandas=lambda rows: rows,
    is_boolean=lambda rows, c: types.infer_dtype(rows.iloc[:, c]) == "boolean",
    dtype=lambda rows, c: _numpy_dtype(rows.dtypes.iloc[c]),
    match_dtypes=_match_dtypes,
    convert_columns=_convert_columns,
    from_columns=_from_columns,
    mix=_mix,
)
