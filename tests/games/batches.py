"""What the tests of several games do with a fitted game and rows of a table."""

from __future__ import annotations

import numpy as np

from weightedshap.games.surrogates.data import MaskedRows
from weightedshap.inputs.rows import Rows


def batch_at(game, X):
    """Return the batch of a fitted game at rows X."""
    return game.batch(Rows(X))


def masked_values(game, X, coalitions):
    """Return the values (n, k) of a fitted game at rows X (n, c), each at its own coalition of
    `coalitions` (n, d)."""
    return game.values_at(X, MaskedRows(np.arange(len(X)), coalitions))
