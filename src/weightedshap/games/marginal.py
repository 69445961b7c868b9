"""Hidden features are averaged over the background rows, as if independent of the known ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from weightedshap.checks import BoolArray, FloatArray
from weightedshap.games.wrappers import FilledIn, wrapped
from weightedshap.inputs import Data

BATCH_BYTES = 2**26  # mixed rows held at once


@dataclass(frozen=True)
class Marginal:
    """v(S) = Σ_b weight_b · f(x_S, b_{[d]∖S}) over all background rows b.

    Coalitions × background rows are streamed through the model in batches of at most `batch_bytes`;
    no background row is ever dropped. The answer does not depend on the batches: the predictions of one
    coalition are summed in one go.
    """

    batch_bytes: int = BATCH_BYTES

    def fit(self, model: Any, background: Data, rng: np.random.Generator | int | None = None) -> FittedMarginal:
        """Hold on to model and background."""
        model, table, _ = wrapped(model, background, rng)
        return FittedMarginal(model, table, self.batch_bytes)


@dataclass(frozen=True)
class FittedMarginal(FilledIn):
    """Model, background and batch size."""

    batch_bytes: int = BATCH_BYTES

    def filled(self, row: Data, columns: BoolArray) -> FloatArray:
        rows = max(1, self.batch_bytes // (8 * len(self.background.names)))  # of one batch
        step = max(1, rows // len(self.background))
        batches = [self._average(row, columns[s : s + step], rows) for s in range(0, len(columns), step)]
        return np.concatenate([np.empty((0, len(self.model.chosen))), *batches])

    def _average(self, row: Data, columns: BoolArray, step: int) -> FloatArray:
        """(m, k) weighted mean over the background, `step` rows at a time, for each set of known columns (m, c)."""
        m, table = len(columns), self.background
        some = [table.take(slice(start, start + step)) for start in range(0, len(table), step)]
        predicted = [self.model(table.mix(row, columns, rows)).reshape(m, len(rows), -1) for rows in some]
        by_row = np.ascontiguousarray(np.moveaxis(np.concatenate(predicted, axis=1), 1, -1))  # (m, k, B)
        return np.asarray((by_row * table.weights).sum(axis=-1))
