"""Hidden features take fixed values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from weightedshap.checks import BoolArray, FloatArray
from weightedshap.games.wrappers import FilledIn, wrapped
from weightedshap.inputs import Data


@dataclass(frozen=True)
class Baseline:
    """v(S) = f(x_S, b_{[d]∖S}) with one fixed row b: `values`, or the background's means and modes of categories."""

    values: Any = None

    def fit(self, model: Any, background: Data, rng: np.random.Generator | int | None = None) -> FittedBaseline:
        """Fix the row b."""
        model, table, _ = wrapped(model, background, rng)
        fixed = table.typical() if self.values is None else table.align(self.values, "values")
        if len(fixed) != 1:
            raise ValueError(f"`values` must be one row; got {len(fixed)}.")
        return FittedBaseline(model, table, fixed)


@dataclass(frozen=True, repr=False)
class FittedBaseline(FilledIn):
    """Model, background and the row b."""

    values: Data

    def filled(self, row: Data, columns: BoolArray) -> FloatArray:
        return self.model(self.background.mix(row, columns, self.values))
