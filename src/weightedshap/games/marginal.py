"""Hidden features are averaged over the background rows, as if independent of the known ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from weightedshap.checks import BoolArray, FloatArray
from weightedshap.coalitions import as_coalitions
from weightedshap.games.wrappers import BoundGame, FittedOnTable, wrapped

__all__ = ["Marginal"]

BATCH_BYTES = 2**26


@dataclass(frozen=True)
class Marginal:
    """v(S) = Σ_b weight_b · f(x_S, b_{[d]∖S}) over all background rows b.

    Coalitions × background rows are streamed through the model in batches of at most `batch_bytes`;
    no background row is ever dropped. The answer does not depend on the batches: the predictions of one
    coalition are summed in one go.
    """

    batch_bytes: int = BATCH_BYTES

    def fit(self, model: Any, background: Any, rng: np.random.Generator | int | None = None) -> FittedMarginal:
        """Hold on to model and background."""
        model, table, _ = wrapped(model, background, rng)
        return FittedMarginal(model, table, self.batch_bytes)


@dataclass(frozen=True)
class FittedMarginal(FittedOnTable):
    """Model, background and batch size."""

    batch_bytes: int = BATCH_BYTES

    def at(self, row: Any) -> MarginalGame:
        """The game at one row."""
        return MarginalGame(self.model, self.background, self.background.align(row, "row"), self.batch_bytes)


@dataclass(frozen=True)
class MarginalGame(BoundGame):
    """The marginal game at one row."""

    batch_bytes: int = BATCH_BYTES

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        known = self.background.known_columns(as_coalitions(coalitions, self.d))
        per_batch = max(1, self._rows_per_batch // len(self.background))
        batches = [self._average(known[start : start + per_batch]) for start in range(0, len(known), per_batch)]
        return np.concatenate(batches)

    @property
    def _rows_per_batch(self) -> int:
        return max(1, self.batch_bytes // (8 * len(self.background.names)))

    def _average(self, known: BoolArray) -> FloatArray:
        """Weighted mean over the background of the predictions for each coalition (m, c)."""
        predictions = [self._predict(known, part) for part in self._parts()]
        values = np.concatenate(predictions, axis=1)  # (m, B[, k])
        by_row = np.ascontiguousarray(np.moveaxis(values, 1, -1))  # (m[, k], B)
        return np.asarray((by_row * self.background.weights).sum(axis=-1))

    def _parts(self) -> Iterator[Any]:
        """The background in parts that fit into one batch."""
        for start in range(0, len(self.background), self._rows_per_batch):
            yield self.background.take(slice(start, start + self._rows_per_batch))

    def _predict(self, known: BoolArray, part: Any) -> FloatArray:
        flat = self.model.public(self.model(self.background.mix(self.row, known, part)))
        return flat.reshape(len(known), len(part), *flat.shape[1:])
