"""Predictions along an order of features, and what is read off them.

Every function works on one row (orders (m, d)) and on a block of rows (orders (n, m, d)) alike: curves
carry the size k = 0..d on their last axis.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import stdtrit

from weightedshap.checks import FloatArray, IntArray
from weightedshap.coalitions import prefixes
from weightedshap.games.wrappers import checked

__all__ = ["along", "area", "exclusion_error", "mean_interval", "order_of", "recovery_error"]


def order_of(phi: FloatArray) -> IntArray:
    """Features from most to least influential, by |φ|: the ranking behind ℐ(k; φ, x) of Equation 4.

    Equal |φ| keep the lower index first. Works on the last axis.
    """
    return np.asarray(np.argsort(-np.abs(phi), axis=-1, kind="stable"))


def along(game: Any, orders: IntArray) -> FloatArray:
    """Predictions when the first k = 0..d features of each order are known.

    Parameters
    ----------
    orders : (m, d), or (n, m, d) for a block of rows

    Returns
    -------
    (m, d + 1[, k]), or (n, m, d + 1[, k]). A game with its own ``along`` is asked; for others each
    distinct coalition is evaluated once.
    """
    own = getattr(game, "along", None)
    if own is not None:
        return np.asarray(own(orders))
    game = checked(game)
    m, d = orders.shape
    coalitions = prefixes(orders).reshape(-1, d)
    packed = np.packbits(coalitions, axis=1)
    _, where, back = np.unique(packed.view(f"V{packed.shape[1]}").ravel(), return_index=True, return_inverse=True)
    values = game(coalitions[where])[back.ravel()]
    return np.asarray(values.reshape(m, d + 1, *values.shape[1:]))


def recovery_error(game: Any, orders: IntArray, f_x: FloatArray | float) -> FloatArray:
    """|f(x) − v(first k)| for k = 0..d: the summands of AUP (Equation 4). One output."""
    return np.abs(_against(f_x) - along(game, orders))


def exclusion_error(game: Any, orders: IntArray, f_x: FloatArray | float) -> FloatArray:
    """|f(x) − v(all but the first k)| for k = 0..d. One output."""
    return np.abs(_against(f_x) - along(game, orders[..., ::-1]))[..., ::-1]


def area(curve: FloatArray) -> FloatArray:
    """Σ_{k=1..d} of a curve over k = 0..d, not divided by d."""
    return np.asarray(curve[..., 1:].sum(axis=-1))


def _against(f_x: FloatArray | float) -> FloatArray:
    """f(x) ready to broadcast over orders and sizes."""
    return np.asarray(f_x, dtype=np.float64)[..., None, None]


def mean_interval(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean over the first axis (rows), and half the width of its 95 % interval (Student's t).

    The half-width is NaN for a single row, which says nothing about others.
    """
    n = len(values)
    mean = np.asarray(values.mean(axis=0))
    if n < 2:
        return mean, np.full_like(mean, np.nan)
    return mean, np.asarray(stdtrit(n - 1, 0.975) * values.std(axis=0, ddof=1) / np.sqrt(n))
