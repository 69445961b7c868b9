"""polars frames: polars in, polars out. A null stays a null and a NaN stays a NaN."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from weightedshap._checks import BoolArray, FloatArray, Positions, offered, require
from weightedshap.inputs.containers import (
    Column,
    Data,
    Dtype,
    Kind,
    as_numbers,
    as_text,
    check_exact,
    common_dtype,
    dtype_of_objects,
    holds,
    picks,
    unseen,
)

polars = require("polars", "polars")  # this module is imported when rows of polars are met

Series = Any  # a column of polars
INTEGERS = ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
FLOATS = ("Float16", "Float32", "Float64")  # not all versions have the first
OWN = {np.dtype(n.lower()): d for n, d in offered(polars, *INTEGERS, *FLOATS).items()}
OWN[np.dtype(np.bool_)] = polars.Boolean
NUMPY = {own: plain for plain, own in OWN.items()}  # decimals and 128 bits have none
# Into numbers; dates by `epoch`.
ADVICE = {
    "Duration": "dt.total_seconds()",
    "Time": "cast(polars.Int64) / 1e9",
}


def _like(rows: Data, reference: Data, who: str, typed: bool) -> Data:
    columns = {}
    for own, column in zip(rows, reference, strict=True):
        plain = _plain(own, who)
        if own.dtype == column.dtype:
            columns[column.name] = own
        elif own.dtype in NUMPY and column.dtype in NUMPY:
            # not by way of the plain column, so that a null stays a null and a NaN a NaN
            columns[column.name] = own.cast(_common(NUMPY[own.dtype], NUMPY[column.dtype]))
        else:
            columns[column.name] = _in_dtype(plain, column, who, NUMPY.get(own.dtype))
    return polars.DataFrame(columns)


def _converted(
    columns: Sequence[Column],
    dtypes: Sequence[Dtype | None],
    reference: Data,
    who: str,
) -> Data:
    triples = zip(columns, dtypes, reference.get_columns(), strict=True)
    made = {column.name: _in_dtype(values, column, who, own) for values, own, column in triples}
    return polars.DataFrame(made)


def _built(columns: Sequence[Column], reference: Data, who: str) -> Data:
    pairs = zip(columns, reference.get_columns(), strict=True)
    made = {column.name: _rounded(values, column, who) for values, column in pairs}
    return polars.DataFrame(made)


def _common(*dtypes: Dtype) -> Any:
    """Return polars' dtype that holds the numbers of all `dtypes` of numpy exactly."""
    return OWN.get(common_dtype(*dtypes), polars.Float64)


def _joined(parts: Sequence[Data]) -> Data:
    """Return the rows of all parts, each column in a dtype that holds the numbers of all."""
    schemas = [part.schema for part in parts]
    if all(schema == schemas[0] for schema in schemas):
        return polars.concat(parts)
    common = {}
    for name in set(schemas[0]).intersection(*schemas):
        held = {schema[name] for schema in schemas}
        if len(held) > 1 and held <= NUMPY.keys():
            common[name] = _common(*(NUMPY[dtype] for dtype in held))
    return polars.concat([part.cast(common) for part in parts], how="vertical_relaxed")


def _mixed(rows: Data, which: Positions, known: BoolArray, hidden: Data, whose: Positions) -> Data:
    pool = _joined([rows, hidden])
    taken = enumerate(picks(len(rows), which, known, whose))
    return polars.DataFrame([pool.to_series(c).gather(pick) for c, pick in taken])


def _plain(column: Series, who: str) -> Column:
    """A column in the plain form; an error if it is neither numbers nor categories."""
    dtype = column.dtype
    family = str(column.dtype).partition("(")[0]
    if _is_numbers(dtype):
        floats = _floats(column)
        if dtype.is_integer():
            check_exact(floats, f"Column {column.name!r} of `{who}`")
        return floats
    if family in ("String", "Categorical", "Enum", "Null"):
        return np.array(column.to_list(), dtype=object)
    start = f"Column {column.name!r} of `{who}` holds {dtype} values"
    if dtype.is_temporal():
        advice = ADVICE.get(family, "dt.epoch('d')")
        formula = f"polars.col({column.name!r}).{advice}"
        raise TypeError(
            f"{start}, which are dates or times. Turn them into numbers first, for example"
            f" {formula}."
        )
    raise TypeError(
        f"{start}, which are neither numbers nor categories. Cast the column to Float64, String or"
        " Enum."
    )


def _in_dtype(values: Column, reference: Series, who: str, own: Dtype | None) -> Series:
    """Return a plain column of rows, which came as `own`, in a dtype that holds the reference's,
    too."""
    dtype = reference.dtype
    if not _is_numbers(dtype):
        return _in_categories(values, reference, who)
    numbers = as_numbers(values, repr(reference.name), who)
    series = _with_holes(numbers, reference)
    if dtype not in NUMPY:  # decimals and 128 bits
        return series
    if not dtype.is_float():
        whole = series.cast(dtype, strict=False)
        if holds(_floats(whole), numbers, False):
            return whole
    return series.cast(_common(own or dtype_of_objects(numbers), NUMPY[dtype]))


def _rounded(values: Column, reference: Series, who: str) -> Series:
    """Return a plain column that is made up in the reference's dtype, or as floats, see
    `in_dtype`."""
    dtype = reference.dtype
    if not _is_numbers(dtype):
        return _in_categories(values, reference, who)
    numbers = as_numbers(values, repr(reference.name), who)
    series = _with_holes(numbers, reference)
    cast = series.cast(dtype, strict=False)
    return cast if holds(_floats(cast), numbers, dtype.is_float()) else series


def _is_numbers(dtype: Any) -> bool:
    return bool(dtype.is_numeric()) or str(dtype) == "Boolean"


def _floats(column: Series) -> FloatArray:
    return np.array(column.cast(polars.Float64).to_numpy(), dtype=np.float64)


def _with_holes(numbers: FloatArray, reference: Series) -> Series:
    """Return numbers whose holes are nulls, or NaN if the reference has that in their place."""
    series = polars.Series(numbers)
    if reference.dtype.is_float() and reference.is_nan().any() and not reference.has_nulls():
        return series
    return series.fill_nan(None)


def _in_categories(values: Column, reference: Series, who: str) -> Series:
    """Return a plain column as the reference's text or categories."""
    dtype = reference.dtype
    name = repr(reference.name)
    text = polars.Series(as_text(values, name, who).tolist(), dtype=polars.String)
    cast = text.cast(dtype, strict=False)
    if len(lost := text.filter(cast.is_null() & text.is_not_null())):
        raise unseen(lost[0], name, dtype.categories, who, "Set it to null, or add it to the Enum")
    return cast


POLARS = Kind[Data](
    names=lambda rows: tuple(rows.columns),
    select=lambda rows, columns: rows.select([rows.columns[c] for c in columns]),
    join=_joined,
    equal=lambda one, other: bool(one.schema == other.schema and one.equals(other)),
    column=lambda rows, c, who: _plain(rows.to_series(c), who),
    series=lambda rows, c: pd.Series(rows.to_series(c).to_list()),
    to_array=lambda rows: np.stack([_plain(column, "X") for column in rows], axis=1),
    to_pandas=lambda rows: rows.to_pandas(),
    is_boolean=lambda rows, c: str(rows.dtypes[c]) == "Boolean",
    dtype=lambda rows, c: NUMPY.get(rows.dtypes[c]),
    like=_like,
    convert=_converted,
    build=_built,
    mix=_mixed,
)
