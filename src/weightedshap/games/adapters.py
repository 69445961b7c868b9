"""Games of other libraries as ours: a shap masker with a model, and a shapiq game."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from weightedshap.checks import BoolArray, FloatArray, as_outputs, require
from weightedshap.coalitions import as_coalitions

__all__ = ["ShapGame", "ShapiqGame", "from_shap", "from_shapiq"]

BATCH_ROWS = 2**14


@dataclass(frozen=True)
class ShapGame:
    """What a model predicts when shap's masker hides the other features, averaged over the masker's background."""

    masked: Any  # shap.utils.MaskedModel
    player_names: tuple[str, ...] | None = None

    @property
    def d(self) -> int:
        return len(self.masked)

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        coalitions = as_coalitions(coalitions, self.d)
        if len(coalitions) == 0:
            return np.empty((0, *self._one.shape[1:]))
        parts = np.array_split(coalitions, -(-len(coalitions) // self._batch))
        return as_outputs(np.concatenate([self.masked(part) for part in parts]), len(coalitions), "The model")

    @cached_property
    def _one(self) -> FloatArray:
        return np.asarray(self.masked(np.ones((1, self.d), dtype=np.bool_)))

    @property
    def _batch(self) -> int:
        """Coalitions per call, so that the masked copies of the background stay small."""
        shape = getattr(self.masked.masker, "shape", None)
        rows = shape[0] if isinstance(shape, tuple) else None
        return max(1, BATCH_ROWS // int(rows or 256))


def from_shap(model: Any, masker: Any, x: Any) -> ShapGame:
    """The game of a model under one of shap's maskers, at the row `x`.

    Parameters
    ----------
    model : a function of what the masker makes (rows, texts, images)
    masker : a shap masker, or background rows, which shap's `Independent` then takes (at most 100 of them)
    x : what is explained, as the masker takes it: one row as a 1-D array or Series, a text, an image

    Examples
    --------
    One game for each row, for an Explainer: ``game=lambda row: from_shap(model, masker, row)``.
    """
    shap = require("shap", "shap")
    if not callable(model):
        raise TypeError(f"`model` must be a function, such as model.predict; got {type(model).__name__}.")
    if not callable(masker):
        masker = shap.maskers.Independent(masker)
    if hasattr(x, "iloc") or isinstance(x, (list, tuple)):
        x = np.asarray(x)
    if isinstance(x, np.ndarray) and x.ndim == 2 and x.shape[0] == 1 and hasattr(masker, "data"):
        x = x[0]
    masked = shap.utils.MaskedModel(model, masker, shap.links.identity, True, x)
    return ShapGame(masked, _names(masker, x, len(masked)))


def _names(masker: Any, x: Any, d: int) -> tuple[str, ...] | None:
    """What the masker calls its features: a list, or a function of `x` that gives one list for each input."""
    names: Any = getattr(masker, "feature_names", None)
    if callable(names):
        names = names(x)[0]
    return tuple(map(str, names)) if names is not None and len(names) == d else None


@dataclass(frozen=True)
class ShapiqGame:
    """A shapiq game on its own scale: what it subtracts (`normalization_value`) is added again."""

    game: Any

    @property
    def d(self) -> int:
        return int(self.game.n_players)

    @property
    def player_names(self) -> tuple[str, ...] | None:
        lookup = getattr(self.game, "player_name_lookup", None) or {}
        names = sorted(lookup, key=lookup.__getitem__)
        return tuple(map(str, names)) if len(names) == self.d else None

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        coalitions = as_coalitions(coalitions, self.d)
        if len(coalitions) == 0:  # shapiq refuses it
            return np.empty(0)
        values = np.asarray(self.game(coalitions)) + float(getattr(self.game, "normalization_value", 0.0))
        return as_outputs(values, len(coalitions), "The game")


def from_shapiq(game: Any) -> ShapiqGame:
    """A `shapiq.Game` or imputer (anything with `n_players` that maps coalitions to values) as our game.

    `weightedshap.explain` takes such a game as it is.
    """
    if not callable(game) or not hasattr(game, "n_players"):
        raise TypeError(f"A shapiq game is callable and has `n_players`; got {type(game).__name__}.")
    return ShapiqGame(game)
