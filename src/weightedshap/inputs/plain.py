"""Columns in a plain form, in which they travel between kinds of tables and into numbers.

Numbers and booleans are float64 with NaN for missing values, categories are objects with None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from weightedshap.checks import FloatArray
from weightedshap.inputs.groups import listed

Array = npt.NDArray[Any]
Column = FloatArray | npt.NDArray[np.object_]

EXACT = 2.0**53  # from here on a float64 cannot tell neighbouring whole numbers apart


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


def refuse_unseen(value: object, name: str, categories: Sequence[str], who: str, advice: str) -> NoReturn:
    """The error for a category that the background's column cannot hold."""
    raise ValueError(
        f"`{who}` has a category in column {name} that the background never saw: {value!r}. "
        f"Known: {listed(categories)}. {advice} of the background's column if the model knows it."
    )


def as_text(values: Column, name: str, who: str) -> npt.NDArray[np.object_]:
    """A plain column as text with None; an error if it holds numbers."""
    if values.dtype == object:
        return np.asarray(values, dtype=object)
    if not np.isnan(np.asarray(values, dtype=np.float64)).all():
        raise TypeError(f"Column {name} of `{who}` holds numbers where the background holds text.")
    return np.full(len(values), None, dtype=object)
