"""polars frames: polars in, polars out. A null stays a null and a NaN stays a NaN."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from weightedshap.checks import BoolArray, Positions, require
from weightedshap.inputs.columns import Column, Data, Kind, as_numbers, as_text, check_exact, holds, picks, unseen

polars = require("polars", "polars")  # this module is imported when rows of polars are met

Series = Any  # a column of polars
ADVICE = {"Duration": "dt.total_seconds()", "Time": "cast(polars.Int64) / 1e9"}  # into numbers; dates by `epoch`


def _like(rows: Data, reference: Data, who: str) -> Data:
    pairs = [(own, _plain(own, who), column) for own, column in zip(rows, reference, strict=True)]
    cast = [own if own.dtype == column.dtype else _in_dtype(plain, column, who) for own, plain, column in pairs]
    return polars.DataFrame(dict(zip(reference.columns, cast)))


def _built(columns: Sequence[Column], reference: Data, who: str) -> Data:
    pairs = zip(columns, reference.get_columns(), strict=True)
    return polars.DataFrame({column.name: _in_dtype(values, column, who) for values, column in pairs})


def _mixed(rows: Data, which: Positions, known: BoolArray, hidden: Data, whose: Positions) -> Data:
    pool = polars.concat([rows, hidden], how="vertical_relaxed")
    taken = enumerate(picks(len(rows), which, known, whose))
    return polars.DataFrame([pool.to_series(c).gather(pick) for c, pick in taken])


def _plain(column: Series, who: str) -> Column:
    """A column in the plain form; an error if it is neither numbers nor categories."""
    dtype, family = column.dtype, str(column.dtype).partition("(")[0]
    if dtype.is_numeric() or family == "Boolean":
        floats = np.array(column.cast(polars.Float64).to_numpy(), dtype=np.float64)
        if dtype.is_integer():
            check_exact(floats, f"Column {column.name!r} of `{who}`")
        return floats
    if family in ("String", "Categorical", "Enum", "Null"):
        return np.array(column.to_list(), dtype=object)
    start = f"Column {column.name!r} of `{who}` holds {dtype} values"
    if dtype.is_temporal():
        advice = ADVICE.get(family, "dt.epoch('d')")
        formula = f"polars.col({column.name!r}).{advice}"
        raise TypeError(f"{start}, which are dates or times. Turn them into numbers first, for example {formula}.")
    raise TypeError(f"{start}, which are neither numbers nor categories. Cast the column to Float64, String or Enum.")


def _in_dtype(values: Column, reference: Series, who: str) -> Series:
    """A plain column in the dtype of `reference`, or in its own where that cannot hold it."""
    dtype, name = reference.dtype, repr(reference.name)
    if not (dtype.is_numeric() or str(dtype) == "Boolean"):
        text = polars.Series(as_text(values, name, who).tolist(), dtype=polars.String)
        cast = text.cast(dtype, strict=False)
        if len(lost := text.filter(cast.is_null() & text.is_not_null())):
            raise unseen(lost[0], name, dtype.categories, who, "Set it to null, or add it to the Enum")
        return cast
    numbers = as_numbers(values, name, who)
    series = polars.Series(numbers)  # missing values are nulls, or NaN if the reference has that in their place
    if not (dtype.is_float() and reference.is_nan().any() and not reference.has_nulls()):
        series = series.fill_nan(None)
    cast = series.cast(dtype, strict=False)
    back = np.array(cast.cast(polars.Float64).to_numpy(), dtype=np.float64)
    return cast if holds(back, numbers, dtype.is_float()) else series


POLARS = Kind[Data](
    names=lambda rows: tuple(rows.columns),
    select=lambda rows, columns: rows.select([rows.columns[c] for c in columns]),
    join=polars.concat,
    equal=lambda one, other: bool(one.schema == other.schema and one.equals(other)),
    column=lambda rows, c, who: _plain(rows.to_series(c), who),
    series=lambda rows, c: pd.Series(rows.to_series(c).to_list()),
    to_array=lambda rows: np.stack([_plain(column, "X") for column in rows], axis=1),
    to_pandas=lambda rows: rows.to_pandas(),
    is_boolean=lambda rows, c: str(rows.dtypes[c]) == "Boolean",
    like=_like,
    build=_built,
    mix=_mixed,
)
