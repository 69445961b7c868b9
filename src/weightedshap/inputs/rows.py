"""Rows that are explained together, with a cache of predictions and games.

A block of rows goes through several games and models. `Rows` makes sure that each model is called
once for them, and that each game is bound to them once. `weightedshap.method` creates the rows, and
games read them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from weightedshap._checks import FloatArray, IntArray
from weightedshap.inputs.containers import Data, concat_rows, take_rows


class Predictor(Protocol):
    """Typing protocol for models and fitted games: a method that returns predictions for rows."""

    def predictions(self, rows: Rows) -> FloatArray: ...  # (n, k)


class Binder(Protocol):
    """Typing protocol for fitted games: a method `batch` that returns the games at given rows."""

    def batch(self, rows: Rows) -> Any: ...  # the games at these rows


@dataclass(frozen=True, eq=False)
class Rows:
    """n rows to explain, with a cache of predictions and games at these rows.

    For a tree model, the explained game and its judge need the same predictions and the same
    directions at the splits. They share these through the cache, without a reference to each
    other.
    """

    # Aligned with the background, in its container.
    data: Data
    # Pairs of a predictor or game and its result. Predictors and games are compared by identity and
    # not by `id`, which another object may have in another process.
    _predictions: list[tuple[object, FloatArray]] = field(default_factory=list, repr=False)
    _batches: list[tuple[object, Any]] = field(default_factory=list, repr=False)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, which: slice | IntArray) -> Rows:
        """Return the selected rows with their cached predictions, but without cached games."""
        predictions = [(owner, f_x[which]) for owner, f_x in self._predictions]
        return Rows(take_rows(self.data, which), predictions)

    def ask(self, predictor: Predictor) -> FloatArray:
        """Return ``predictor.predictions(self)`` (n, k), computed once and cached."""
        return self.remember(predictor, lambda: predictor.predictions(self))

    def remember(self, owner: object, compute: Callable[[], FloatArray]) -> FloatArray:
        """Return ``compute()`` (n, …) for these rows, computed once for each `owner` and cached."""
        for known_owner, array in self._predictions:
            if known_owner is owner:
                return array
        array = compute()
        self._predictions.append((owner, array))
        return array

    def bind(self, game: Binder) -> Any:
        """Return ``game.batch(self)``, the games at these rows, created once and cached."""
        for known_game, batch in self._batches:
            if known_game is game:
                return batch
        batch = game.batch(self)
        self._batches.append((game, batch))
        return batch

    @classmethod
    def concatenate(cls, parts: Sequence[Rows]) -> Rows:
        """Join the rows of all parts; keep only the predictions that are cached in every part."""
        data = concat_rows([part.data for part in parts])
        predictions = []
        for owner, _ in parts[0]._predictions:
            arrays = [f_x for part in parts for one, f_x in part._predictions if one is owner]
            if len(arrays) == len(parts):
                predictions.append((owner, np.concatenate(arrays)))
        return cls(data, predictions)
