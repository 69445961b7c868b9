"""Hidden features take fixed values: by default the background's means, and modes of categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from weightedshap.checks import BoolArray, FloatArray
from weightedshap.coalitions import as_coalitions
from weightedshap.games.wrappers import BoundGame, FittedOnTable, wrapped

__all__ = ["Baseline"]


@dataclass(frozen=True)
class Baseline:
    """v(S) = f(x_S, b_{[d]∖S}) with one fixed row b.

    Parameters
    ----------
    values : the row b, in the columns of the background; None for means and modes
    """

    values: Any = None

    def fit(self, model: Any, background: Any, rng: np.random.Generator | int | None = None) -> FittedBaseline:
        """Fix the row b."""
        model, table, _ = wrapped(model, background, rng)
        fixed = table.typical() if self.values is None else table.align(self.values, "values")
        if len(fixed) != 1:
            raise ValueError(f"`values` must be one row; got {len(fixed)}.")
        return FittedBaseline(model, table, fixed)


@dataclass(frozen=True)
class FittedBaseline(FittedOnTable):
    """Model, background and the row b."""

    values: Any

    def at(self, row: Any) -> BaselineGame:
        """The game at one row."""
        return BaselineGame(self.model, self.background, self.background.align(row, "row"), self.values)


@dataclass(frozen=True)
class BaselineGame(BoundGame):
    """The baseline game at one row."""

    values: Any

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        known = self.background.known_columns(as_coalitions(coalitions, self.d))
        return self.model.public(self.model(self.background.mix(self.row, known, self.values)))
