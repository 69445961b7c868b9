"""Training data for surrogates: encoding, train/test split, masked rows, and measures of fit.

Learned games see a table as numbers in which NaN is free to mean "hidden" (`Encoding`), and learn
from rows with random coalitions of known players (`MaskedRows`). The recipes of this folder use
both; summaries use the text on how well a game fits.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from weightedshap._checks import LARGEST, BoolArray, FloatArray, IntArray, check_array
from weightedshap._format import percent
from weightedshap._lazy import pd
from weightedshap.coalitions import random_coalitions
from weightedshap.inputs import Column, Data, Table, container_of

# A category with fewer distinct rows is rare.
RARE = 10
# Folds in which rare categories get their ranks from the other folds.
PARTS = 5


@dataclass(frozen=True)
class Encoding:
    """A map from the columns of a table to float columns without NaN.

    Categories become ranks, ordered by the mean prediction of their background rows, so that one
    threshold separates high ones from low ones. A category that is not in the background gets a
    rank in the middle: neither high nor low, and equal to no other. A missing value becomes a
    number below all others of its column.
    """

    missing: FloatArray  # (c,) the number that stands for a missing value
    ranks: Mapping[int, Mapping[Any, float]]  # column position → category → rank
    names: tuple[str, ...]  # names of the columns

    @classmethod
    def fit(cls, table: Table, f: FloatArray) -> Self:
        """Learn the encoding from the background `table` and its predictions f (n, k)."""
        columns = [table.column(c) for c in range(len(table.names))]
        target = f.mean(axis=1)
        ranks = {
            c: _ranks(column, target, table.weights)
            for c, column in enumerate(columns)
            if column.dtype == object
        }
        encoding = cls(np.full(len(columns), np.nan), ranks, table.names)

        # The number for a missing value lies below the others by at least their range.
        missing = np.zeros(len(columns))
        for c, column in enumerate(columns):
            if c in ranks:
                numbers = encoding._to_ranks(column, c)
            else:
                numbers = np.asarray(column, dtype=np.float64)
            present = numbers[~np.isnan(numbers)]
            if len(present):
                missing[c] = present.min() - max(1.0, np.ptp(present))
        return replace(encoding, missing=missing)

    def state(self) -> dict[str, Any]:
        """Return the encoding as a dict to save; categories must be text, numbers or booleans."""
        plain = (str, int, float, np.bool_, np.integer, np.floating)
        for column, ranks in self.ranks.items():
            for category in ranks:
                if not isinstance(category, plain):
                    raise TypeError(
                        f"Column {self.names[column]!r} has the category {category!r}, a"
                        f" {type(category).__name__}, which cannot be saved. Turn the column into"
                        " strings before fitting."
                    )
        return {
            "missing": self.missing,
            "ranks": {column: dict(ranks) for column, ranks in self.ranks.items()},
        }

    @classmethod
    def from_state(cls, content: Mapping[str, Any], names: tuple[str, ...]) -> Self:
        """Rebuild the encoding from the dict that `state` returned; `names` are the columns."""
        missing = check_array("missing", content["missing"], (len(names),))
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
        """Encode rows as float64 (n, c) without NaN."""
        X = self.to_numbers(rows)
        if (np.abs(X) > LARGEST).any():
            raise too_large_error(X, self.names)
        return np.ascontiguousarray(np.where(np.isnan(X), self.missing, X))

    def to_numbers(self, rows: Data) -> FloatArray:
        """Return rows as floats (n, c): categories by their ranks, missing values as NaN."""
        if isinstance(rows, np.ndarray):
            return np.asarray(rows, dtype=np.float64)
        container = container_of(rows)
        columns = []
        for c in range(len(self.names)):
            column = container.column(rows, c, "X")
            if c in self.ranks:
                columns.append(self._to_ranks(column, c))
            else:
                columns.append(np.asarray(column, dtype=np.float64))
        return np.stack(columns, axis=1)

    def cross_fit(
        self, X: FloatArray, f: FloatArray, weights: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Encode the background X (n, c) such that a rare category's rank comes from *other* rows.

        The rank of a category with few rows contains the predictions of exactly these rows, and
        trees would overfit to it. So the rows are split into folds, with copies of a row in one
        fold. A category of fewer than `RARE` distinct rows gets the rank that its mean prediction
        in the other folds has among all categories; if the other folds do not contain it, its rank
        is that of a category that is not in the background.
        """
        if not self.ranks:
            return X
        copy_of = duplicate_groups(X)
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
            # The means of the categories, in ascending order like their ranks.
            everywhere = np.nan_to_num(_means(code, total, weights, n))
            for p in np.unique(part[rare]):
                others = part != p
                mine = rare & (part == p)
                mean = _means(code[others], total[others], weights[others], n)[code[mine]]
                place = np.interp(mean, everywhere, np.arange(n))
                fitted[mine, c] = np.where(np.isnan(mean), _unseen_rank(n), place)
        return fitted

    def _to_ranks(self, column: Column, c: int) -> FloatArray:
        """Return the category ranks (n,) in column number c; NaN where a value is missing."""
        ranks = self.ranks[c]
        unseen = _unseen_rank(len(self.ranks[c]))
        return np.array(
            [np.nan if value is None else ranks.get(value, unseen) for value in column],
            dtype=np.float64,
        )


def too_large_error(X: FloatArray, names: tuple[str, ...]) -> ValueError:
    """Return a ValueError that names the first column of X (n, c) with a value beyond `LARGEST`."""
    too_large = (np.abs(X) > LARGEST).any(axis=0)
    return ValueError(
        f"Column {names[int(too_large.argmax())]!r} holds an infinite value, or one beyond"
        f" {LARGEST:.0e}. Replace it by a finite one, or by NaN if it is missing."
    )


def _unseen_rank(n: int) -> float:
    """Return the rank for a category that the background lacks: the middle of its n ranks."""
    return max(n - 1, 0) // 2 + 0.5


def _means(code: IntArray, target: FloatArray, weights: FloatArray, n: int) -> FloatArray:
    """Return the weighted mean of the target in each of n categories; NaN where weights are zero.

    `code` are the numbers of the categories. `target` is already multiplied by the weights.
    """
    total, share = (np.bincount(code, values, minlength=n + 1)[:n] for values in (target, weights))
    return np.asarray(np.divide(total, share, out=np.full(n, np.nan), where=share > 0))


def _ranks(column: Column, f: FloatArray, weights: FloatArray) -> dict[Any, float]:
    """Rank the categories of a column by their mean prediction, lowest first; ties by text."""
    code, categories = pd.factorize(column)  # −1 for a missing value
    present = code >= 0
    sums = (weights * f)[present]
    means = np.nan_to_num(_means(code[present], sums, weights[present], len(categories)))
    order = sorted(range(len(categories)), key=lambda c: (means[c], str(categories[c])))
    return {categories[c]: float(rank) for rank, c in enumerate(order)}


def duplicate_groups(X: FloatArray | IntArray) -> IntArray:
    """Number the distinct rows of X in ascending order; return the number of each row (n,)."""
    return np.unique(X, axis=0, return_inverse=True)[1].reshape(-1)


def split_rows(X: FloatArray, share: float, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Split rows into training and test positions at random; copies of a row stay together.

    At most `share` of the rows are test rows (or 50 rows, or a third of fewer than 150 rows, if
    that is more), so a row with very many copies is a training row. With fewer than three distinct
    rows nothing can be held out, and all rows are used for both.
    """
    if not share < 1:
        raise ValueError(f"`held_out` must be a share of the rows, below 1; got {share!r}.")
    copy_of = duplicate_groups(X)
    copies = np.bincount(copy_of)
    if len(copies) < 3:
        return np.arange(len(X)), np.arange(len(X))
    order = rng.permutation(len(copies))
    most = max(int(share * len(X)), min(50, len(X) // 3))
    order = order[copies[order] <= most]
    chosen = order[np.cumsum(copies[order]) <= most] if len(order) else copies.argmin()
    is_test = np.isin(copy_of, chosen)
    return np.flatnonzero(~is_test), np.flatnonzero(is_test)


@dataclass(frozen=True)
class TrainTestSplit:
    """The encoded background, split into rows to train surrogates on and rows to test them on."""

    f: FloatArray  # (n, k) predictions
    encoding: Encoding
    X: FloatArray  # (n, c) encoded columns
    train: IntArray  # positions of the training rows
    test: IntArray  # positions of the test rows

    @classmethod
    def build(cls, f: FloatArray, table: Table, share: float, rng: np.random.Generator) -> Self:
        """Encode the table with predictions f (n, k), and hold out a share of its rows."""
        encoding = Encoding.fit(table, f)
        X = encoding(table.data)
        return cls(f, encoding, X, *split_rows(X, share, rng))


class MaskedRows(NamedTuple):
    """N rows, each with the coalition of its known players."""

    row: IntArray  # (N,) positions of rows
    coalition: BoolArray  # (N, d)

    @classmethod
    def draw(cls, rows: IntArray, d: int, masks: int, most: int, rng: np.random.Generator) -> Self:
        """Draw `masks` coalitions for each row, or fewer so that there are at most `most` in total.

        Each row gets at least one. The sizes of the coalitions are uniform on 0..d.
        """
        row = np.repeat(rows, max(1, min(masks, most // len(rows))))
        return cls(row, random_coalitions(len(row), d, rng))

    def take(self, part: slice | IntArray) -> Self:
        """Return the masked rows at the positions in `part`."""
        return type(self)(self.row[part], self.coalition[part])


def held_out_coalitions(rows: IntArray, d: int, rng: np.random.Generator) -> MaskedRows:
    """Draw masked test rows, used to stop training and to measure the error of a game."""
    return MaskedRows.draw(rows, d, 16, 20_000, rng)


def fit_quality(
    game: FloatArray, f_x: FloatArray, coalitions: BoolArray, f: FloatArray, weights: FloatArray
) -> dict[str, Any]:
    """Measure how well a learned game predicts f(x) for held-out rows with hidden features.

    `game` (N, k) are the values of the game, and `f_x` (N, k) those of f, at N masked rows.
    `coalitions` (N, d) are the known players; `f` (n, k) and `weights` (n,) are the predictions and
    weights of the whole background.

    Returns
    -------
    held_out_error : mean squared error over coalitions whose size is uniform on 0..d
    held_out_error_by_size : (d + 1,) the same by size; NaN for a size that was not drawn
    relative_error : held_out_error divided by `variance`, Var f. It is positive even for an exact
        game, since f(x) varies among rows with equal x_S
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
    empty_values = game[size == 0]
    return {
        "held_out_error": float(error.mean()),
        "held_out_error_by_size": by_size,
        "relative_error": float(error.mean()) / variance if variance > 0 else 0.0,
        "variance": variance,
        "empty_gap": float((empty_values[0] - mean).mean()) if len(empty_values) else np.nan,
        "full_gap": float(np.sqrt(by_size[d])),
    }


def relative_errors(info: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return two held-out errors in units of the sd of f: with some and with all features known.

    The result is None if `info` of the game contains no such errors.
    """
    if not {"relative_error", "full_gap"} <= info.keys() or not info.get("variance"):
        return None
    some = float(np.sqrt(info["relative_error"]))
    full = float(info["full_gap"] / np.sqrt(info["variance"]))
    return some, full


def relative_errors_text(info: Mapping[str, Any]) -> str:
    """Return a phrase with the errors of `relative_errors`, or "" if there are none."""
    errors = relative_errors(info)
    if errors is None:
        return ""
    some, full = (percent(round(share, 6)) for share in errors)
    return f", misses {some} of the sd of predictions with some features known, {full} with all"
