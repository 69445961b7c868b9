"""Rankings of features, and prediction curves along them, from which AUP (Equation 4) is computed.

The last axis of a curve is the size j = 0..d; in batches of rows the axis of outputs k follows it.
The utilities, the method, the evaluation and the figures use these functions.
"""

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray, as_array, check_above
from weightedshap._lazy import special
from weightedshap.coalitions import as_orders
from weightedshap.games.base import Game, GameBatch, along_by_coalitions
from weightedshap.games.user import check_game

__all__ = ["along", "area", "exclusion_error", "mean_interval", "order_of", "recovery_error"]

INFINITY_BITS = int(np.array(np.inf).view(np.int64))
INDEX_BITS = 0xFFFFFFFF  # as many bits as any feature's index needs


def rank_features(phi: FloatArray, axis: int = -1) -> IntArray:
    """Rank features by |φ|, largest first; ties go to the lower index (ℐ of Equation 4)."""
    phi = _move_to_end("phi", phi, axis)  # (…, d)
    orders, ambiguous = _rank_by_bits(phi)
    if ambiguous.any():
        orders[ambiguous] = np.argsort(-np.abs(phi[ambiguous]), axis=-1, kind="stable")
    return np.moveaxis(orders, -1, axis)


order_of = rank_features
"""The public name of `rank_features`."""


def _rank_by_bits(phi: FloatArray) -> tuple[IntArray, BoolArray]:
    """Rank features (…, d) by |φ| with one integer sort, much faster than a stable argsort.

    Returns the orders (…, d), and a mask (…,) of orders that may be wrong: those of values that are
    nearly equal, or NaN.
    """
    d = phi.shape[-1]
    index_bits = (1 << (d - 1).bit_length()) - 1

    # Non-negative floats have the same order as their bit patterns. The last bits are replaced by
    # the feature's index; subtracting puts large numbers first and, for ties, the lower index.
    # All steps are in place: new arrays of this size would cost more than the arithmetic.
    keys = np.abs(phi, order="C").view(np.int64)
    keys |= index_bits
    np.subtract(np.arange(d) - 1, keys, out=keys)
    keys.sort(axis=-1)

    # Neighbours that differ in the replaced bits only were ordered by index, not by size. Denormal
    # numbers (below 1e-310) may be: they count as equal. NaN is larger than infinity, so it is
    # first.
    same_high_bits = (keys[..., 1:] ^ keys[..., :-1]) <= index_bits
    is_normal = keys[..., :-1] < ~index_bits
    has_nan = keys[..., 0] < ~(INFINITY_BITS | INDEX_BITS)
    ambiguous = (same_high_bits & is_normal).any(axis=-1) | has_nan
    keys &= index_bits
    return keys, ambiguous


def along(game: Game, orders: IntArray) -> FloatArray:
    """Return the predictions along each order, with its first 0, 1, …, d features known.

    The predictions are (m, d + 1) or (m, d + 1, k). The orders are (m, d). Each distinct coalition
    is evaluated once.
    """
    bound = check_game(game)
    orders = as_orders(orders, bound.d)
    if bound.along is None:
        return along_by_coalitions(bound, orders)
    return np.asarray(bound.along(orders))


def recovery_error(game: Game, orders: IntArray, f_x: float) -> FloatArray:
    """Return |f(x) − v(the first j features of each order)| for j = 0, …, d (Equation 4).

    The errors (m, d + 1) are the summands of AUP. The game has one output; orders are (m, d).
    """
    return np.abs(check_above("f_x", f_x, -np.inf) - along(game, orders))


def exclusion_error(game: Game, orders: IntArray, f_x: float) -> FloatArray:
    """Return |f(x) − v(all but the first j features of each order)| for j = 0, …, d.

    The errors are (m, d + 1). The game has one output; orders are (m, d).
    """
    backwards = as_orders(orders, check_game(game).d)[:, ::-1]
    return recovery_error(game, backwards, f_x)[:, ::-1]


def along_each_output(batch: GameBatch, orders: IntArray) -> FloatArray:
    """Return v (n, m, d + 1, k) along orders (n, m, d, k), which differ between outputs."""
    k = orders.shape[-1]
    if k == 1:
        return batch.along(np.ascontiguousarray(orders[..., 0]))
    walks = []
    for o in range(k):
        own = np.ascontiguousarray(orders[..., o])
        walks.append(batch.output(o).along(own)[..., 0])
    # Outputs are used one by one, so each stays contiguous in memory: stack first, then move.
    return np.moveaxis(np.stack(walks), 0, -1)


def recovery_curves(batch: GameBatch, orders: IntArray, f_x: FloatArray) -> FloatArray:
    """Return `recovery_error` for all rows and outputs of a batch, (n, m, d + 1, k).

    `f_x` (n, k) are the predictions on the scale of the batch.
    """
    error = f_x[:, None, None, :] - along_each_output(batch, orders)
    return np.abs(error, out=error)


def exclusion_curves(batch: GameBatch, orders: IntArray, f_x: FloatArray) -> FloatArray:
    """Return `exclusion_error` for all rows and outputs of a batch, (n, m, d + 1, k).

    Orders are (n, m, d, k), `f_x` (n, k) the predictions on the scale of the batch.
    """
    return recovery_curves(batch, orders[:, :, ::-1], f_x)[:, :, ::-1]


def area(curve: FloatArray, axis: int = -1) -> FloatArray:
    """Return the sum of a curve over j = 1, …, d, without its value at j = 0."""
    return np.asarray(_move_to_end("curve", curve, axis)[..., 1:].sum(axis=-1))


def _move_to_end(name: str, values: FloatArray, axis: int) -> FloatArray:
    """Return `values` with `axis` as the last axis; raise an error if that axis is empty."""
    # The library's own arrays are floats already: only the user's are converted.
    is_float_array = type(values) is np.ndarray and values.dtype == np.float64
    array = values if is_float_array else as_array(name, values)
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


def judge_error_share(curves: FloatArray) -> float:
    """Return the share of the area under curves (n, d + 1) that the judge's error causes.

    That error is |f(x) − v([d])|, which remains when all features are known, counted d times.
    """
    mean = curves[:, 1:].mean()
    return float(curves[:, -1].mean() / mean) if mean > 0 else 0.0


def mean_interval(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean over the first axis, and half the width of its 95 % interval.

    The interval is that of Student's t; its width is NaN for a single row.
    """
    n = len(values)
    mean = np.asarray(values.mean(axis=0))
    if n < 2:
        return mean, np.full_like(mean, np.nan)
    return mean, np.asarray(special.stdtrit(n - 1, 0.975) * values.std(axis=0, ddof=1) / np.sqrt(n))
