"""Rows in polars frames; a null stays a null and a NaN stays a NaN.

`POLARS` is the `Container` of polars frames; `containers` imports this module when such rows come,
so that polars is an optional dependency.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from weightedshap._checks import BoolArray, FloatArray, Positions, optional_attrs, require
from weightedshap.inputs.containers import (
    Column,
    Container,
    Data,
    Dtype,
    as_numbers,
    as_text,
    check_exact,
    common_dtype,
    dtype_of_objects,
    is_lossless,
    pool_indices,
    unseen_category_error,
)

polars = require("polars", "polars")

Series = Any
"""A column of polars."""
INTEGERS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
# Some versions of polars lack the first.
FLOATS = ("Float16", "Float32", "Float64")
# numpy's dtypes → polars' dtypes, and the other way round. Decimals and integers of 128 bits have
# no dtype of numpy.
POLARS_DTYPES = {
    np.dtype(name.lower()): dtype
    for name, dtype in optional_attrs(polars, *INTEGERS, *FLOATS).items()
}
POLARS_DTYPES[np.dtype(np.bool_)] = polars.Boolean
NUMPY_DTYPES = {own: plain for plain, own in POLARS_DTYPES.items()}
# Code that turns times into numbers; dates use `dt.epoch`.
TIME_FORMULAS = {
    "Duration": "dt.total_seconds()",
    "Time": "cast(polars.Int64) / 1e9",
}


def _match_dtypes(rows: Data, reference: Data, who: str, typed: bool) -> Data:
    """Return rows with the reference's column names, in dtypes that fit the numbers of both frames.

    `reference` is the background, and `who` names the rows in an error. `typed` matters
    only for pandas.
    """
    columns = {}
    for own, column in zip(rows, reference, strict=True):
        # This checks the column, even if its values are not needed.
        plain = _to_plain(own, who)
        if own.dtype == column.dtype:
            columns[column.name] = own
        elif own.dtype in NUMPY_DTYPES and column.dtype in NUMPY_DTYPES:
            # Not through the plain array, so that a null stays a null and a NaN a NaN.
            common = _common_dtype(NUMPY_DTYPES[own.dtype], NUMPY_DTYPES[column.dtype])
            columns[column.name] = own.cast(common)
        else:
            own_numpy = NUMPY_DTYPES.get(own.dtype)
            columns[column.name] = _in_wider_dtype(plain, column, who, own_numpy)
    return polars.DataFrame(columns)


def _convert_columns(
    columns: Sequence[Column],
    dtypes: Sequence[Dtype | None],
    reference: Data,
    who: str,
) -> Data:
    """Convert columns from another container to a frame, without rounding.

    `dtypes` are the numpy dtypes of these columns, None for objects. The dtypes of the frame
    can also represent the numbers of `reference`.
    `reference` is the background, and `who` names the rows in an error.
    """
    triples = zip(columns, dtypes, reference.get_columns(), strict=True)
    converted = {
        column.name: _in_wider_dtype(values, column, who, own) for values, own, column in triples
    }
    return polars.DataFrame(converted)


def _from_columns(columns: Sequence[Column], reference: Data, who: str) -> Data:
    """Build a frame from columns computed by a game, in the reference's dtypes where they fit.

    `reference` is the background, and `who` names the rows in an error.
    """
    pairs = zip(columns, reference.get_columns(), strict=True)
    rounded = {column.name: _in_reference_dtype(values, column, who) for values, column in pairs}
    return polars.DataFrame(rounded)


def _common_dtype(*dtypes: Dtype) -> Any:
    """Return the polars dtype that represents the numbers of all given numpy dtypes exactly."""
    return POLARS_DTYPES.get(common_dtype(*dtypes), polars.Float64)


def _concat(parts: Sequence[Data]) -> Data:
    """Concatenate the rows of all frames; a column gets a dtype that represents all its numbers."""
    schemas = [part.schema for part in parts]
    if all(schema == schemas[0] for schema in schemas):
        return polars.concat(parts)
    common = {}
    for name in set(schemas[0]).intersection(*schemas):
        dtypes = {schema[name] for schema in schemas}
        if len(dtypes) > 1 and dtypes <= NUMPY_DTYPES.keys():
            common[name] = _common_dtype(*(NUMPY_DTYPES[dtype] for dtype in dtypes))
    return polars.concat([part.cast(common) for part in parts], how="vertical_relaxed")


def _mix(rows: Data, which: Positions, known: BoolArray, hidden: Data, whose: Positions) -> Data:
    """Return mixed rows (m, c): cells of ``rows[which]`` where `known`, else of ``hidden[whose]``.

    See `Table.mix`.
    """
    pool = _concat([rows, hidden])
    by_column = enumerate(pool_indices(len(rows), which, known, whose))
    return polars.DataFrame([pool.to_series(c).gather(indices) for c, indices in by_column])


def _to_plain(column: Series, who: str) -> Column:
    """Return a column as floats, or as objects if categorical; missing values are NaN or None.

    Raise an error for any other content; `who` names the rows in the error.
    """
    dtype = column.dtype
    family = str(column.dtype).partition("(")[0]
    if _is_numbers(dtype):
        floats = _to_floats(column)
        if dtype.is_integer():
            check_exact(floats, f"Column {column.name!r} of `{who}`")
        return floats
    if family in ("String", "Categorical", "Enum", "Null"):
        return np.array(column.to_list(), dtype=object)
    if dtype.is_temporal():
        method = TIME_FORMULAS.get(family, "dt.epoch('d')")
        formula = f"polars.col({column.name!r}).{method}"
        raise TypeError(
            f"Column {column.name!r} of `{who}` holds {dtype} values, which are dates or times."
            f" Turn them into numbers first, for example {formula}."
        )
    raise TypeError(
        f"Column {column.name!r} of `{who}` holds {dtype} values, which are neither numbers nor"
        " categories. Cast the column to Float64, String or Enum."
    )


def _in_wider_dtype(values: Column, reference: Series, who: str, own: Dtype | None) -> Series:
    """Convert a user's column to a dtype that can also represent the values of `reference`.

    `own` is the column's numpy dtype in the user's rows, None if it has none; `reference` is the
    background's column. `who` names the rows in an error.
    """
    dtype = reference.dtype
    if not _is_numbers(dtype):
        return _in_categories(values, reference, who)
    numbers = as_numbers(values, repr(reference.name), who)
    series = _with_missing(numbers, reference)
    # The background has decimals, or integers of 128 bits.
    if dtype not in NUMPY_DTYPES:
        return series
    if not dtype.is_float():
        integers = series.cast(dtype, strict=False)
        if is_lossless(_to_floats(integers), numbers, may_round=False):
            return integers
    return series.cast(_common_dtype(own or dtype_of_objects(numbers), NUMPY_DTYPES[dtype]))


def _in_reference_dtype(values: Column, reference: Series, who: str) -> Series:
    """Convert a game's column to the dtype of `reference`, or to floats if its values do not fit.

    `reference` is the background's column, and `who` names the rows in an error. Numbers are
    rounded to the floats of `reference`; see `cast_if_lossless`.
    """
    dtype = reference.dtype
    if not _is_numbers(dtype):
        return _in_categories(values, reference, who)
    numbers = as_numbers(values, repr(reference.name), who)
    series = _with_missing(numbers, reference)
    rounded = series.cast(dtype, strict=False)
    return rounded if is_lossless(_to_floats(rounded), numbers, dtype.is_float()) else series


def _is_numbers(dtype: Any) -> bool:
    """Return whether a polars dtype is numeric or boolean."""
    return bool(dtype.is_numeric()) or str(dtype) == "Boolean"


def _to_floats(column: Series) -> FloatArray:
    """Return a polars column of numbers or booleans as floats, with NaN for missing values."""
    return np.array(column.cast(polars.Float64).to_numpy(), dtype=np.float64)


def _with_missing(numbers: FloatArray, reference: Series) -> Series:
    """Return floats as a polars column, with missing values as nulls.

    They stay NaN if `reference` has NaN and no nulls.
    """
    series = polars.Series(numbers)
    if reference.dtype.is_float() and reference.is_nan().any() and not reference.has_nulls():
        return series
    return series.fill_nan(None)


def _in_categories(values: Column, reference: Series, who: str) -> Series:
    """Convert a column to the text or categories of `reference`; refuse unknown categories.

    `reference` is the background's column, and `who` names the rows in the error.
    """
    dtype = reference.dtype
    name = repr(reference.name)
    text = polars.Series(as_text(values, name, who).tolist(), dtype=polars.String)
    cast = text.cast(dtype, strict=False)
    unseen = text.filter(cast.is_null() & text.is_not_null())
    if len(unseen):
        advice = "Set it to null, or add it to the Enum"
        raise unseen_category_error(unseen[0], name, dtype.categories, who, advice)
    return cast


POLARS = Container[Data](
    names=lambda rows: tuple(rows.columns),
    select=lambda rows, columns: rows.select([rows.columns[c] for c in columns]),
    concat=_concat,
    equal=lambda one, other: bool(one.schema == other.schema and one.equals(other)),
    column=lambda rows, c, who: _to_plain(rows.to_series(c), who),
    series=lambda rows, c: pd.Series(rows.to_series(c).to_list()),
    to_array=lambda rows: np.stack([_to_plain(column, "X") for column in rows], axis=1),
    to_pandas=lambda rows: rows.to_pandas(),
    is_boolean=lambda rows, c: str(rows.dtypes[c]) == "Boolean",
    dtype=lambda rows, c: NUMPY_DTYPES.get(rows.dtypes[c]),
    match_dtypes=_match_dtypes,
    convert_columns=_convert_columns,
    from_columns=_from_columns,
    mix=_mix,
)
