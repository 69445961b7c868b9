"""The judge: a game that is right when all features are known, whatever the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from weightedshap.games.protocols import Fitted
from weightedshap.games.tree_model import readable
from weightedshap.games.tree_surrogate import TreeSurrogate
from weightedshap.games.wrappers import wrapped
from weightedshap.inputs import Data


@dataclass(frozen=True)
class Anchored:
    """What the model predicts when only S is known, and f(x) itself when everything is: made to score rankings.

    Of a model whose trees can be read it is their path-dependent game with a learned correction,
    ``TreeSurrogate(base="tree_path")``.

    Parameters
    ----------
    fits : how many times the correction is learned; the game is the mean
    """

    fits: int = 2

    def fit(self, model: Any, background: Data, rng: np.random.Generator | int | None = None) -> Fitted:
        """Read the trees and learn the correction."""
        model, table, rng = wrapped(model, background, rng)
        path = readable(model, table)
        if path is None:
            raise TypeError(
                f"The trees of {type(model.original).__name__} cannot be read, and no other game is anchored yet. "
                "Judge by 'tree_surrogate' or 'neural_surrogate', which learn any function."
            )
        return TreeSurrogate(base=path, fits=self.fits).fit(model, table, rng)
