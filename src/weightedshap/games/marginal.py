"""Hidden features take the values of other rows, as if independent of the known ones: of all, of a
few, of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray, Seed, positive_integer
from weightedshap.coalitions import batches, distinct_pairs, prefixes
from weightedshap.games.base import Anchor, ExactFitted, Parts
from weightedshap.games.surrogates.data import Encoding, Masked
from weightedshap.games.user import FittedOnTable, RowGame, Rowwise, wrapped
from weightedshap.inputs import Data, Model, Table, part_of

BATCH_BYTES = 2**26  # mixed rows held at once


@dataclass(frozen=True)
class Marginal:
    """v(S) = Σ_b weight_b · f(x_S, b_{[d]∖S}) over background rows b.

    Coalitions × background rows are streamed through the model in batches of at most `batch_bytes`,
    on which the answer does not depend: the predictions of one coalition are summed in one go.
    v(∅), the mean prediction, is known, and v([d]) takes one call. v is the mean of one game v_b
    for each background row: the bound game offers these `parts`, by which
    `weightedshap.estimators.background_permutation` finds Δ without computing a mean.

    Parameters
    ----------
    rows : so many rows in the place of all, drawn by weight and evenly over the range of their
        predictions, and the same ever after; 1 takes the row of means, and modes of categories;
        None takes all
    """

    batch_bytes: int = BATCH_BYTES
    rows: int | None = None

    def fit(self, model: Any, background: Data, rng: Seed = None) -> FittedMarginal:
        """Hold on to model and background, and draw the rows that stand for it."""
        model, table, rng = wrapped(model, background, rng)
        every = FittedMarginal(model, table, table, batch_bytes=self.batch_bytes)
        if self.rows is None or positive_integer("rows", self.rows) >= len(table):
            return every
        return every.over([] if self.rows == 1 else every.draw(self.rows, rng).tolist())

    @classmethod
    def restored(
        cls, content: Mapping[str, Any], model: Model, background: Table
    ) -> FittedMarginal:
        """The game that `FittedMarginal.stored` wrote."""
        most = positive_integer("batch_bytes", content["batch_bytes"])
        return FittedMarginal(model, background, background, batch_bytes=most).over(
            content["drawn"]
        )


@dataclass(frozen=True)
class Baseline:
    """v(S) = f(x_S, b_{[d]∖S}) with one fixed row b: `values`, or the background's means and modes
    of categories."""

    values: Any = None

    def fit(self, model: Any, background: Data, rng: Seed = None) -> FittedBaseline:
        """Fix the row b."""
        model, table, _ = wrapped(model, background, rng)
        fixed = table.typical() if self.values is None else table.align(self.values, "values")
        if len(fixed) != 1:
            raise ValueError(f"`values` must be one row; got {len(fixed)}.")
        return FittedBaseline(model, table, replace(table, data=fixed, weights=np.ones(1)))


@dataclass(frozen=True, repr=False)
class Averaged(FittedOnTable):
    """Model, background, and the rows that are averaged over, with their weights."""

    averaged: Table
    batch_bytes: int = BATCH_BYTES

    @cached_property
    def predicted(self) -> FloatArray:
        """(B, k) f of the rows that are averaged over."""
        return self.model(self.averaged.data)

    @cached_property
    def empty(self) -> FloatArray:
        """(k,) v(∅), summed as all other means are: to the bit, an output does not depend on those
        beside it."""
        return np.asarray(
            (np.ascontiguousarray(self.predicted.T) * self.averaged.weights).sum(axis=-1)
        )

    @cached_property
    def by_prediction(self) -> IntArray:
        """(B,) the rows in the order of their predictions, along the first principal axis of
        several outputs."""
        centred = self.predicted - self.predicted.mean(axis=0)
        axis = np.linalg.eigh(centred.T @ centred)[1][:, -1]
        return np.argsort(centred @ axis, kind="stable")

    def draw(self, n: int, rng: np.random.Generator) -> IntArray:
        """(n,) rows to be averaged over, each by its weight, evenly spaced in the order of their
        predictions."""
        weights = self.averaged.weights[self.by_prediction].cumsum()
        spaced = (np.arange(n) + rng.random()) / n * weights[-1]
        return np.asarray(self.by_prediction[np.searchsorted(weights, spaced, side="right")])

    @cached_property
    def traits(self) -> FloatArray:
        """(B, d, 2) of each row and player the value in standard units and its modulus, both less
        their means.

        Categories count by their ranks, see `Encoding`; missing values as the mean; a group by the
        mean of its columns.
        """
        table = self.averaged
        weights = self.averaged.weights[:, None]
        X = Encoding.of(table, self.predicted).numbers(table.data)
        held = np.isfinite(X)
        share = weights * held / np.maximum((weights * held).sum(axis=0), 1e-300)
        X = np.where(held, X, 0.0)
        centred = np.where(held, X - (share * X).sum(axis=0), 0.0)
        scale = np.sqrt((share * centred**2).sum(axis=0))
        units = centred / np.where(scale > 0, scale, 1.0)
        # (B, c, 2).
        both = np.stack([units, np.abs(units) - (weights * np.abs(units)).sum(axis=0)], axis=-1)
        return np.stack([both[:, columns].mean(axis=1) for columns in table.players], axis=1)

    def block(self, rows: Data) -> MarginalBlock:
        return MarginalBlock(self.background.d, len(rows), self, rows)

    def values(self, rows: Data, masked: Masked, f_x: FloatArray | None = None) -> FloatArray:
        """(N, k) as `Anchor.pairs`, in one go; `f_x` (n, k) are predictions of `rows`, where they
        are known already."""
        values = np.empty((len(masked.row), len(self.model.chosen)))
        size = masked.coalition.sum(axis=1)
        nothing = size == 0
        all_known = size == self.background.d
        values[nothing] = self.empty
        if all_known.any():
            whole, which = np.unique(masked.row[all_known], return_inverse=True)
            alike = (self.model(part_of(rows, whole)) if f_x is None else f_x[whole])[
                which, :, None
            ]
            # So that differences are zero to the bit.
            values[all_known] = (alike * self.averaged.weights).sum(axis=-1)
        rest = ~(nothing | all_known)
        values[rest] = self._means(
            rows, masked.row[rest], self.background.known_columns(masked.coalition[rest])
        )
        return values

    def _means(self, rows: Data, which: IntArray, columns: BoolArray) -> FloatArray:
        """(N, k) weighted means over the hidden columns of ``rows[which]``, of which `columns` (N,
        c) are known."""
        table = self.averaged
        means = np.empty((len(columns), len(self.model.chosen)))
        some = [np.arange(len(table))[part] for part in batches(len(table), self.batch_rows)]
        for at in batches(len(columns), max(1, self.batch_rows // len(table))):
            mixed = (
                table.mix_each(rows, which[at, None], columns[at, None], table.data, part)
                for part in some
            )
            predicted = [
                self.model(part).reshape(len(means[at]), -1, means.shape[1]) for part in mixed
            ]
            # (m, k, B).
            by_row = np.ascontiguousarray(np.moveaxis(np.concatenate(predicted, axis=1), 1, -1))
            means[at] = (by_row * table.weights).sum(axis=-1)
        return means

    @property
    def batch_rows(self) -> int:
        """Mixed rows in one call of the model."""
        return max(1, self.batch_bytes // (8 * len(self.background.names)))


class FittedBaseline(Averaged):
    """The game over one fixed row."""

    # A call of the model costs time, however few rows it is asked about.
    at_once = ExactFitted.at_once


@dataclass(frozen=True, repr=False)
class FittedMarginal(Averaged, Anchor):
    """The game over the background, or over a few of its rows."""

    drawn: tuple[int, ...] | None = (
        None  # their positions in the background; None for all, () for the typical row
    )

    def over(self, drawn: list[int] | None) -> FittedMarginal:
        """The game over some rows of the background, each as often as it was drawn; over the
        typical row for none."""
        if drawn is None:
            return self
        table = self.background
        (rows, counts) = np.unique(drawn, return_counts=True)
        data, weights = (
            (table.take(rows), counts / counts.sum()) if drawn else (table.typical(), np.ones(1))
        )
        return replace(
            self, averaged=replace(table, data=data, weights=weights), drawn=tuple(drawn)
        )

    def stored(self) -> dict[str, Any]:
        drawn = None if self.drawn is None else list(self.drawn)
        return {"recipe": "Marginal", "drawn": drawn, "batch_bytes": self.batch_bytes}

    @cached_property
    def info(self) -> Mapping[str, Any]:
        return super().info if self.drawn is None else {**super().info, "rows": len(self.averaged)}

    @cached_property
    def mean_prediction(self) -> FloatArray:
        if self.drawn is not None:
            return super().mean_prediction
        return self.empty if self.model.has_axis else self.empty[0]

    @property
    def calls(self) -> int:
        return len(self.averaged)

    def pairs(self, rows: Data, masked: Masked) -> FloatArray:
        return self.model.in_parts(
            len(masked.row), lambda part: self.values(rows, masked.take(part))
        )


@dataclass(frozen=True)
class MarginalBlock(Rowwise):
    """Rows of a table whose hidden columns take the values of background rows."""

    fitted: Averaged
    rows: Data  # in the background's type

    @cached_property
    def f_x(self) -> FloatArray:
        """(n, k) predictions of the rows."""
        return self.fitted.model(self.rows)

    def row_values(self, r: int, coalitions: BoolArray) -> FloatArray:
        return self.fitted.values(
            self.rows, Masked(np.full(len(coalitions), r), coalitions), self.f_x
        )

    def along(self, orders: IntArray) -> FloatArray:
        """(n, m, d) orders → (n, m, d + 1, k), the distinct prefixes of all rows in one go."""
        n, m, d = orders.shape
        row = np.repeat(np.arange(n), m * (d + 1))
        sets = prefixes(orders.reshape(-1, d)).reshape(-1, d)
        where, back = distinct_pairs(row, sets)
        found = self.fitted.values(self.rows, Masked(row, sets).take(where), self.f_x)[back]
        return self._seen([*found.reshape(n, m, d + 1, -1)])

    def alone(self) -> MarginalGame:
        return MarginalGame(self)


@dataclass(frozen=True)
class MarginalGame(RowGame):
    """The marginal game of one row, which is the mean of the games of single background rows."""

    block: MarginalBlock

    @property
    def parts(self) -> Parts | None:
        """The games of single background rows; None where there is but one."""
        fitted = self.block.fitted
        rows = len(fitted.averaged)
        return Parts(rows, fitted.draw, self._along_parts, fitted.traits) if rows > 1 else None

    def _along_parts(self, orders: IntArray, which: IntArray) -> FloatArray:
        """(m, d) orders → (m, d + 1[, k]), each with the values of one background row ``which``
        (m,).

        Both ends are known, so the model is called d − 1 times for each order.
        """
        block = self.block
        fitted = self.block.fitted
        (m, d) = orders.shape
        values = np.empty((m, d + 1, len(fitted.model.chosen)))
        values[:, 0], values[:, d] = fitted.predicted[which], block.f_x[0]
        for part in batches(m if d > 1 else 0, max(1, fitted.batch_rows // max(1, d - 1))):
            known = fitted.background.known_columns(prefixes(orders[part])[:, 1:d].reshape(-1, d))
            mixed = fitted.averaged.mix_each(
                block.rows, 0, known, fitted.averaged.data, np.repeat(which[part], d - 1)
            )
            values[part, 1:d] = fitted.model(mixed).reshape(-1, d - 1, values.shape[-1])
        return self._public(block._seen([values]))
