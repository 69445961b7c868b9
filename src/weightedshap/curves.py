"""Predictions along an order of features; sizes j = 0..d stand on the last axis, or before k in
blocks of rows."""

import numpy as np

from weightedshap._checks import FloatArray, IntArray, as_numbers_of, number_above
from weightedshap._lazy import special
from weightedshap.coalitions import as_orders
from weightedshap.games.base import Game
from weightedshap.games.rows import View
from weightedshap.games.user import along_distinct, checked

__all__ = ["along", "area", "exclusion_error", "mean_interval", "order_of", "recovery_error"]


INFINITE = int(np.array(np.inf).view(np.int64)) | 0xFFFFFFFF  # and any index in its last bits


def order_of(phi: FloatArray, axis: int = -1) -> IntArray:
    """Features by |φ|, the lower index first of equals: the ranking behind ℐ(k; φ, x) of Equation
    4."""
    given = _at_the_end("phi", phi, axis)  # (…, d)
    low = (1 << (given.shape[-1] - 1).bit_length()) - 1  # the bits that an index takes
    # Non-negative floats are ordered as their bits are.
    keys = np.abs(given, order="C").view(np.int64)
    keys |= low
    # All bits but an index turned round: the largest first.
    np.subtract(np.arange(given.shape[-1]) - 1, keys, out=keys)
    keys.sort(axis=-1)  # much faster than a stable argsort
    # Alike, and not below 1e-310.
    unsure = ((keys[..., 1:] ^ keys[..., :-1]) <= low) & (keys[..., :-1] < ~low)
    again = unsure.any(axis=-1) | (keys[..., 0] < ~INFINITE)  # NaN is larger than all
    order = np.bitwise_and(keys, low, out=keys)
    if again.any():
        order[again] = np.argsort(-np.abs(given[again]), axis=-1, kind="stable")
    return np.moveaxis(order, -1, axis)


def along(game: Game, orders: IntArray) -> FloatArray:
    """(m, d) orders → (m, d + 1[, k]) predictions when the first 0..d features are known; each
    coalition once."""
    known = checked(game)
    orders = as_orders(orders, known.d)
    return np.asarray(along_distinct(known, orders) if known.along is None else known.along(orders))


def recovery_error(game: Game, orders: IntArray, f_x: float) -> FloatArray:
    """(m, d + 1) |f(x) − v(first j)| for j = 0..d: the summands of AUP (Equation 4), at one row and
    output."""
    return np.abs(number_above("f_x", f_x, -np.inf) - along(game, orders))


def exclusion_error(game: Game, orders: IntArray, f_x: float) -> FloatArray:
    """(m, d + 1) |f(x) − v(all but the first j)| for j = 0..d, at one row and output."""
    return recovery_error(game, as_orders(orders, checked(game).d)[:, ::-1], f_x)[:, ::-1]


def recovery(view: View, orders: IntArray) -> FloatArray:
    """(n, m, d, k) orders → (n, m, d + 1, k): `recovery_error` of a block of rows."""
    apart = view.f_x[:, None, None, :] - view.along(orders)
    return np.abs(apart, out=apart)


def exclusion(view: View, orders: IntArray) -> FloatArray:
    """(n, m, d, k) orders → (n, m, d + 1, k): `exclusion_error` of a block of rows."""
    return recovery(view, orders[:, :, ::-1])[:, :, ::-1]


def area(curve: FloatArray, axis: int = -1) -> FloatArray:
    """Σ_{j=1..d} of a curve over j = 0..d, not divided by d."""
    return np.asarray(_at_the_end("curve", curve, axis)[..., 1:].sum(axis=-1))


def _at_the_end(name: str, values: FloatArray, axis: int) -> FloatArray:
    """`values` with this axis, which must not be empty, as the last."""
    plain = type(values) is np.ndarray and values.dtype == np.float64  # as all of ours are
    array = values if plain else as_numbers_of(name, values)
    if (
        not isinstance(axis, (int, np.integer))
        or not -array.ndim <= axis < array.ndim
        or not array.shape[axis]
    ):
        raise ValueError(
            f"`axis` must be an axis of `{name}`, and not empty; got {axis!r} of shape"
            f" {array.shape}."
        )
    return np.moveaxis(array, axis, -1)


def misfit(curves: FloatArray) -> float:
    """The share of the area under curves (n, d + 1) that is the judge's own error: what it misses
    at [d], d times."""
    mean = curves[:, 1:].mean()
    return float(curves[:, -1].mean() / mean) if mean > 0 else 0.0


def mean_interval(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean over the first axis, and half the width of its 95 % interval (Student's t), NaN for a
    single row."""
    n = len(values)
    mean = np.asarray(values.mean(axis=0))
    if n < 2:
        return mean, np.full_like(mean, np.nan)
    return mean, np.asarray(special.stdtrit(n - 1, 0.975) * values.std(axis=0, ddof=1) / np.sqrt(n))
