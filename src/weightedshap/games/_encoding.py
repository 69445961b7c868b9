"""Columns of people's tables as numbers in which NaN is free to mean "hidden"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from weightedshap.checks import FloatArray
from weightedshap.tables import Table

__all__ = ["Encoding"]


@dataclass(frozen=True)
class Encoding:
    """How each column becomes a float column without NaN.

    Numbers stay as they are. Categories (strings, pandas categories, booleans) become ranks, ordered by
    the mean prediction among the background rows that have them, so that one threshold can part the
    high ones from the low ones. A missing value becomes a number below all others of its column.

    Attributes
    ----------
    missing : (c,) the number that stands for a missing value
    ranks : column position → category → rank
    names : the columns
    """

    missing: FloatArray
    ranks: Mapping[int, Mapping[Any, float]]
    names: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, f: FloatArray) -> Encoding:
        """Learn the encoding on the background with predictions f (n, k)."""
        columns = [_column(table.data, c) for c in range(len(table.names))]
        ranks = {c: _ranks(column, f.mean(axis=1)) for c, column in enumerate(columns) if _is_category(column)}
        partial = cls(np.full(len(columns), np.nan), ranks, table.names)
        numbers = [partial._numbers(column, c) for c, column in enumerate(columns)]
        return cls(np.array([_below(column) for column in numbers]), ranks, table.names)

    def __call__(self, rows: Any) -> FloatArray:
        """(n, c) float64 without NaN."""
        if isinstance(rows, np.ndarray) and not self.ranks:
            X = np.asarray(rows, dtype=np.float64)
        else:
            X = np.stack([self._numbers(_column(rows, c), c) for c in range(len(self.names))], axis=1)
        if np.isinf(X).any():
            name = self.names[int(np.nonzero(np.isinf(X))[1][0])]
            raise ValueError(
                f"Column {name!r} holds an infinite value. Replace it by a finite one, or by NaN if it is missing."
            )
        return np.ascontiguousarray(np.where(np.isnan(X), self.missing, X))

    def _numbers(self, column: Any, c: int) -> FloatArray:
        if c not in self.ranks:
            return _as_float(column, self.names[c])
        missing = pd.isna(column)
        coded = pd.Series(np.asarray(column, dtype=object)).map(dict(self.ranks[c])).to_numpy(dtype=np.float64)
        unseen = np.isnan(coded) & ~missing
        if unseen.any():
            raise ValueError(
                f"Column {self.names[c]!r} has a category that the background never saw: "
                f"{np.asarray(column, dtype=object)[unseen][0]!r}. Add a row with it to the background."
            )
        return coded


def _column(rows: Any, c: int) -> Any:
    return rows.iloc[:, c] if isinstance(rows, pd.DataFrame) else rows[:, c]


def _is_category(column: Any) -> bool:
    return isinstance(column, pd.Series) and not pd.api.types.is_numeric_dtype(column.dtype)


def _as_float(column: Any, name: str) -> FloatArray:
    if not isinstance(column, pd.Series):
        return np.asarray(column, dtype=np.float64)
    try:
        return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    except (TypeError, ValueError) as error:
        raise TypeError(f"Column {name!r} holds values that are neither numbers nor categories ({error}).") from error


def _ranks(column: pd.Series[Any], f: FloatArray) -> dict[Any, float]:
    """Categories from the lowest to the highest mean prediction; ties by their text."""
    means = pd.Series(f).groupby(np.asarray(column, dtype=object)).mean()
    ordered = sorted(means.index, key=lambda category: (means[category], str(category)))
    return {category: float(rank) for rank, category in enumerate(ordered)}


def _below(column: FloatArray) -> float:
    """A number below all of `column`, by at least its range."""
    present = column[~np.isnan(column)]
    if not len(present):
        return 0.0
    low, high = float(present.min()), float(present.max())
    return low - max(1.0, high - low)
