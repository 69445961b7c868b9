"""Columns of people's tables as numbers in which NaN is free to mean "hidden"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from weightedshap.checks import FloatArray
from weightedshap.tables import Column, Table, column_of

__all__ = ["Encoding"]


@dataclass(frozen=True)
class Encoding:
    """How each column becomes a float column without NaN.

    Numbers and booleans stay as they are. Categories (strings, categories of pandas and polars) become
    ranks, ordered by the mean prediction among the background rows that have them, so that one threshold
    can part the high ones from the low ones. A category that the background never saw stands between
    the two middle ranks: neither high nor low, and equal to none. A missing value becomes a number below
    all others of its column.

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
        columns = [table.column(c) for c in range(len(table.names))]
        target = f.mean(axis=1)
        ranks = {c: _ranks(column, target, table.weights) for c, column in enumerate(columns) if column.dtype == object}
        partial = cls(np.full(len(columns), np.nan), ranks, table.names)
        numbers = [partial._numbers(column, c) for c, column in enumerate(columns)]
        return cls(np.array([_below(column) for column in numbers]), ranks, table.names)

    def __call__(self, rows: Any) -> FloatArray:
        """(n, c) float64 without NaN."""
        if isinstance(rows, np.ndarray):
            X = np.asarray(rows, dtype=np.float64)
        else:
            X = np.stack([self._numbers(column_of(rows, c), c) for c in range(len(self.names))], axis=1)
        if np.isinf(X).any():
            name = self.names[int(np.nonzero(np.isinf(X))[1][0])]
            raise ValueError(
                f"Column {name!r} holds an infinite value. Replace it by a finite one, or by NaN if it is missing."
            )
        return np.ascontiguousarray(np.where(np.isnan(X), self.missing, X))

    def _numbers(self, column: Column, c: int) -> FloatArray:
        if c not in self.ranks:
            return np.asarray(column, dtype=np.float64)
        ranks = self.ranks[c]
        unseen = max(len(ranks) - 1, 0) // 2 + 0.5
        return np.array([np.nan if value is None else ranks.get(value, unseen) for value in column], dtype=np.float64)


def _ranks(column: Column, f: FloatArray, weights: FloatArray) -> dict[Any, float]:
    """Categories from the lowest to the highest mean prediction; ties by their text."""
    totals: dict[Any, list[float]] = {}
    for category, share, value in zip(column.tolist(), weights.tolist(), (weights * f).tolist(), strict=True):
        if category is not None:
            total = totals.setdefault(category, [0.0, 0.0])
            total[0], total[1] = total[0] + share, total[1] + value
    means = {category: total / share if share > 0 else 0.0 for category, (share, total) in totals.items()}
    ordered = sorted(means, key=lambda category: (means[category], str(category)))
    return {category: float(rank) for rank, category in enumerate(ordered)}


def _below(column: FloatArray) -> float:
    """A number below all of `column`, by at least its range."""
    present = column[~np.isnan(column)]
    if not len(present):
        return 0.0
    low, high = float(present.min()), float(present.max())
    return low - max(1.0, high - low)
