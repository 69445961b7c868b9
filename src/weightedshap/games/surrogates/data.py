"""Columns of people's tables as numbers in which NaN is free to mean "hidden"."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from weightedshap._checks import LARGEST, BoolArray, FloatArray, IntArray, stored_array
from weightedshap._format import percent
from weightedshap._lazy import pd
from weightedshap.coalitions import random_coalitions
from weightedshap.inputs import Column, Data, Table, column_of

RARE = 10
PARTS = 5  # rows below which a category is rare; parts whose means are learned apart


@dataclass(frozen=True)
class Encoding:
    """How each column becomes a float column without NaN.

    Categories become ranks, ordered by the mean prediction among the background rows that have
    them, so that one threshold can part the high ones from the low ones. One that the background
    never saw stands between the two middle ranks: neither high nor low, and equal to none. A
    missing value becomes a number below all others of its column.
    """

    missing: FloatArray  # (c,) the number that stands for a missing value
    ranks: Mapping[int, Mapping[Any, float]]  # column position → category → rank
    names: tuple[str, ...]  # of the columns

    @classmethod
    def of(cls, table: Table, f: FloatArray) -> Self:
        """Learn the encoding on the background with predictions f (n, k)."""
        columns = [table.column(c) for c in range(len(table.names))]
        target = f.mean(axis=1)
        ranks = {
            c: _ranks(column, target, table.weights)
            for c, column in enumerate(columns)
            if column.dtype == object
        }
        unfinished = cls(np.full(len(columns), np.nan), ranks, table.names)
        numbers = (unfinished._numbers(column, c) for c, column in enumerate(columns))
        present = (column[~np.isnan(column)] for column in numbers)
        # By at least the range.
        below = [float(x.min() - max(1.0, np.ptp(x))) if len(x) else 0.0 for x in present]
        return replace(unfinished, missing=np.array(below))

    def stored(self) -> dict[str, Any]:
        """What a file holds of it; categories must be plain values."""
        plain = (str, int, float, np.bool_, np.integer, np.floating)
        for column, ranks in self.ranks.items():
            if strange := [category for category in ranks if not isinstance(category, plain)]:
                said = (
                    f"Column {self.names[column]!r} has the category {strange[0]!r}, a"
                    f" {type(strange[0]).__name__}"
                )
                raise TypeError(
                    f"{said}, which cannot be saved. Turn the column into strings before fitting."
                )
        return {
            "missing": self.missing,
            "ranks": {column: dict(ranks) for column, ranks in self.ranks.items()},
        }

    @classmethod
    def restored(cls, content: Mapping[str, Any], names: tuple[str, ...]) -> Self:
        """The encoding that `stored` wrote."""
        missing = stored_array("missing", content["missing"], (len(names),))
        ranks = content["ranks"]
        places = [rank for of_column in ranks.values() for rank in of_column.values()]
        if (
            not all(c in range(len(names)) for c in ranks)
            or not np.isfinite(np.array(places, dtype=np.float64)).all()
        ):
            raise ValueError(
                "`ranks` of categories are no numbers, or of columns that are not there."
            )
        return cls(missing, ranks, names)

    def __call__(self, rows: Data) -> FloatArray:
        """(n, c) float64 without NaN."""
        X = self.numbers(rows)
        refuse_infinite(X, self.names)
        return np.ascontiguousarray(np.where(np.isnan(X), self.missing, X))

    def numbers(self, rows: Data) -> FloatArray:
        """(n, c) categories by their ranks, missing values as NaN."""
        if isinstance(rows, np.ndarray):
            return np.asarray(rows, dtype=np.float64)
        return np.stack(
            [self._numbers(column_of(rows, c), c) for c in range(len(self.names))], axis=1
        )

    def cross_fitted(
        self, X: FloatArray, f: FloatArray, weights: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """(n, c) the encoded background to learn from: rare categories stand where *other* rows put
        them.

        The mean prediction of a category with few rows repeats their own predictions, and trees
        would take such ranks for knowledge. So the rows are cut into parts, copies together, and a
        category of fewer than `RARE` distinct rows gets the place that the mean of the other parts
        has among all; one that no other has counts as unseen.
        """
        if not self.ranks:
            return X
        copy_of = copies_of(X)
        fitted = X
        total = weights * f.mean(axis=1)
        part = None
        first = np.unique(copy_of, return_index=True)[1]
        for c, n in ((c, len(ranks)) for c, ranks in self.ranks.items()):
            code = np.where(X[:, c] == self.missing[c], n, X[:, c]).astype(np.intp)
            rare = (code < n) & (np.bincount(code[first], minlength=n + 1)[code] < RARE)
            if not rare.any():
                continue
            if part is None:
                fitted = X.copy()
                part = rng.integers(PARTS, size=len(first))[copy_of]
            everywhere = np.nan_to_num(_means(code, total, weights, n))  # ascending, as ranks are
            for p in np.unique(part[rare]):
                others = part != p
                mine = rare & (part == p)
                mean = _means(code[others], total[others], weights[others], n)[code[mine]]
                place = np.interp(mean, everywhere, np.arange(n))
                fitted[mine, c] = np.where(np.isnan(mean), _unseen(n), place)
        return fitted

    def _numbers(self, column: Column, c: int) -> FloatArray:
        if c not in self.ranks:
            return np.asarray(column, dtype=np.float64)
        ranks = self.ranks[c]
        unseen = _unseen(len(self.ranks[c]))
        return np.array(
            [np.nan if value is None else ranks.get(value, unseen) for value in column],
            dtype=np.float64,
        )


def refuse_infinite(X: FloatArray, names: tuple[str, ...]) -> None:
    """An error that names the first of the columns (n, c) that holds an infinite value, or one near
    to that."""
    if (infinite := (np.abs(X) > LARGEST).any(axis=0)).any():
        said = (
            f"Column {names[int(infinite.argmax())]!r} holds an infinite value, or one beyond"
            f" {LARGEST:.0e}."
        )
        raise ValueError(f"{said} Replace it by a finite one, or by NaN if it is missing.")


def _unseen(n: int) -> float:
    """Where a category that is none of the n ranked ones stands: between the two in the middle."""
    return max(n - 1, 0) // 2 + 0.5


def _means(code: IntArray, target: FloatArray, weights: FloatArray, n: int) -> FloatArray:
    """(n,) the weighted mean of each category; NaN of one without weight."""
    total, share = (np.bincount(code, values, minlength=n + 1)[:n] for values in (target, weights))
    return np.asarray(np.divide(total, share, out=np.full(n, np.nan), where=share > 0))


def _ranks(column: Column, f: FloatArray, weights: FloatArray) -> dict[Any, float]:
    """Categories from the lowest to the highest mean prediction; ties by their text."""
    code, categories = pd.factorize(column)  # −1 for a missing value
    seen = code >= 0
    means = np.nan_to_num(_means(code[seen], (weights * f)[seen], weights[seen], len(categories)))
    order = sorted(range(len(categories)), key=lambda c: (means[c], str(categories[c])))
    return {categories[c]: float(rank) for rank, c in enumerate(order)}


def copies_of(X: FloatArray | IntArray) -> IntArray:
    """(n,) for each row (n, c) which of the distinct rows, in ascending order, it is a copy of."""
    return np.unique(X, axis=0, return_inverse=True)[1].reshape(-1)


def split_rows(X: FloatArray, share: float, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Rows to learn from and rows held out; copies of one row never stand on both sides.

    At most a share of the rows is held out (at least 50 rows where there are 150), so a row with
    very many copies is learned from. With fewer than three distinct rows nothing can be held out,
    and all serve for both.
    """
    if not share < 1:
        raise ValueError(f"`held_out` must be a share of the rows, below 1; got {share!r}.")
    copy_of = copies_of(X)
    copies = np.bincount(copy_of)
    if len(copies) < 3:
        return np.arange(len(X)), np.arange(len(X))
    order = rng.permutation(len(copies))
    most = max(int(share * len(X)), min(50, len(X) // 3))
    order = order[copies[order] <= most]
    chosen = order[np.cumsum(copies[order]) <= most] if len(order) else copies.argmin()
    held = np.isin(copy_of, chosen)
    return np.flatnonzero(~held), np.flatnonzero(held)


@dataclass(frozen=True)
class Split:
    """The background as surrogates learn it: f (n, k), encoded columns X (n, c), rows to learn
    from, rows held out."""

    f: FloatArray
    encoding: Encoding
    X: FloatArray
    train: IntArray
    test: IntArray

    @classmethod
    def of(cls, f: FloatArray, table: Table, share: float, rng: np.random.Generator) -> Self:
        """Encode the table with predictions f (n, k), and hold out a share of the rows."""
        encoding = Encoding.of(table, f)
        X = encoding(table.data)
        return cls(f, encoding, X, *split_rows(X, share, rng))


class Masked(NamedTuple):
    """Rows with coalitions: the row of each (N,), and what is known of it (N, d)."""

    row: IntArray
    coalition: BoolArray

    @classmethod
    def of(cls, rows: IntArray, d: int, masks: int, most: int, rng: np.random.Generator) -> Self:
        """Each row `masks` times, or less often where that would be more than `most`; sizes are
        uniform on 0..d."""
        row = np.repeat(rows, max(1, min(masks, most // len(rows))))
        return cls(row, random_coalitions(len(row), d, rng))

    def take(self, part: slice | IntArray) -> Self:
        """Some of them."""
        return type(self)(self.row[part], self.coalition[part])


def held_out_masks(rows: IntArray, d: int, rng: np.random.Generator) -> Masked:
    """What networks are stopped by and both surrogates are compared on."""
    return Masked.of(rows, d, 16, 20_000, rng)


def fit_quality(
    game: FloatArray, f_x: FloatArray, coalitions: BoolArray, f: FloatArray, weights: FloatArray
) -> dict[str, Any]:
    """How well a learned game (N, k) predicts f(x) (N, k) of held-out rows from coalitions (N, d)
    of their features.

    `f` (n, k) and `weights` (n,) are those of the whole background.

    Returns
    -------
    held_out_error : mean squared error over coalitions whose size is uniform on 0..d
    held_out_error_by_size : (d + 1,) the same by size; NaN for a size that was not drawn
    relative_error : over `variance`, Var f. Part of it is not the game's fault: f(x) varies among
        rows that share x_S
    empty_gap : game(∅) − E f · full_gap : root mean square of game([d]) − f(x); means over outputs
    """
    error = ((game - f_x) ** 2).mean(axis=1)
    size = coalitions.sum(axis=1)
    d = coalitions.shape[1]
    mean = np.average(f, axis=0, weights=weights)
    variance = float(np.average((f - mean) ** 2, axis=0, weights=weights).mean())
    with np.errstate(invalid="ignore", divide="ignore"):
        by_size = np.bincount(size, weights=error, minlength=d + 1) / np.bincount(
            size, minlength=d + 1
        )
    nothing = game[size == 0]
    return {
        "held_out_error": float(error.mean()),
        "held_out_error_by_size": by_size,
        "relative_error": float(error.mean()) / variance if variance > 0 else 0.0,
        "variance": variance,
        "empty_gap": float((nothing[0] - mean).mean()) if len(nothing) else np.nan,
        "full_gap": float(np.sqrt(by_size[d])),
    }


def misses(info: Mapping[str, Any]) -> tuple[float, float] | None:
    """What a learned game misses on held-out rows, over sd f: with some features known, of any
    size, and with all."""
    if not {"relative_error", "full_gap"} <= info.keys() or not info.get("variance"):
        return None
    return float(np.sqrt(info["relative_error"])), float(
        info["full_gap"] / np.sqrt(info["variance"])
    )


def missed(info: Mapping[str, Any]) -> str:
    """The same in words."""
    if (known := misses(info)) is None:
        return ""
    some, full = (percent(round(share, 6)) for share in known)
    return f", misses {some} of the sd of predictions with some features known, {full} with all"
