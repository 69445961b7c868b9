"""S ⊆ [d] as masks: coalitions (m, d) of known players, orders of the players, and how both are
made."""

import numpy as np
import numpy.typing as npt

from weightedshap._checks import BoolArray, IntArray, as_numbers_of

ORDERS = 4096
CHUNK = 2**16  # random orders that coalitions share; coalitions made at once
MIXED = np.uint64(0x9E3779B97F4A7C15)  # by which bits are mixed up


def as_coalitions(coalitions: npt.ArrayLike, d: int) -> BoolArray:
    """Coalitions as a boolean matrix (m, d), one row per coalition."""
    array = as_numbers_of("coalitions", coalitions, None)
    if array.ndim != 2 or array.shape[1] != d:
        raise ValueError(
            f"`coalitions` must have shape (m, {d}), one column for each player; got {array.shape}."
        )
    if array.dtype != np.bool_ and (
        array.dtype.kind not in "iuf" or not np.isin(array, (0, 1)).all()
    ):
        raise ValueError("`coalitions` must be boolean (True = known), or hold only 0 and 1.")
    return array.astype(np.bool_, copy=False)


def as_orders(orders: npt.ArrayLike, d: int) -> IntArray:
    """Orders of the players as an integer matrix (m, d); every row is a permutation of 0..d−1."""
    array = as_numbers_of("orders", orders, None)
    if array.ndim != 2 or array.shape[1] != d or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"`orders` must be integers of shape (m, {d}); got {array.dtype} {array.shape}."
        )
    if not np.array_equal(np.sort(array, axis=1), np.broadcast_to(np.arange(d), array.shape)):
        raise ValueError(f"Every row of `orders` must hold each of 0..{d - 1} once.")
    return array.astype(np.intp, copy=False)


def ends(d: int) -> BoolArray:
    """(2, d) ∅ and [d]."""
    return np.array([[False] * d, [True] * d])


def prefixes(orders: IntArray) -> BoolArray:
    """(m, d) orders → (m, d + 1, d) coalitions ∅ ⊂ … ⊂ [d] of the first 0, 1, …, d players."""
    m, d = orders.shape
    position = np.empty((m, d), dtype=np.intp)
    np.put_along_axis(position, orders, np.arange(d)[None, :], axis=1)
    return position[:, None, :] < np.arange(d + 1)[:, None]


def distinct(coalitions: BoolArray) -> tuple[IntArray, IntArray]:
    """Where each of the distinct rows of (m, d) comes first, and for each row (m,) which of them it
    is."""
    packed = np.packbits(coalitions, axis=1)
    _, where, back = np.unique(
        packed.view(f"V{packed.shape[1]}").ravel(), return_index=True, return_inverse=True
    )
    return where, back.ravel()


def all_coalitions(d: int, start: int = 0, stop: int | None = None) -> BoolArray:
    """(m, d) coalitions number `start` … `stop` − 1; player i is bit i of the number."""
    numbers = np.arange(start, 2**d if stop is None else stop, dtype="<u4")
    bits = np.unpackbits(numbers.view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
    return bits[:, :d].astype(np.bool_)


def batches(n: int, size: int) -> list[slice]:
    """n items, coalitions or others, cut into slices of at most `size`."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def random_coalitions(m: int, d: int, rng: np.random.Generator) -> BoolArray:
    """(m, d) coalitions, sizes uniform on 0..d: the first of random orders, which are shared, as
    drawing is slow."""
    order = rng.integers(min(m, ORDERS), size=m)
    rank = rng.permuted(
        np.tile(np.arange(d, dtype=np.min_scalar_type(d)), (min(m, ORDERS), 1)), axis=1
    )
    size = rng.integers(0, d + 1, size=(m, 1))
    coalitions = np.empty((m, d), dtype=np.bool_)
    for start in range(0, m, CHUNK):  # ranks of all coalitions at once would outweigh the table
        part = slice(start, start + CHUNK)
        coalitions[part] = rank[order[part]] < size[part]
    return coalitions


def distinct_pairs(row: IntArray, sets: BoolArray) -> tuple[IntArray, IntArray]:
    """Where each distinct pair of a row and a set (N, d) comes first, and for each pair which of
    these it is."""
    packed = np.packbits(np.pad(sets, ((0, 0), (0, -sets.shape[1] % 64))), axis=1).view(np.uint64)
    key = row.astype(np.uint64) * MIXED
    for word in packed.T:
        key = (key ^ word) * MIXED
        key ^= key >> 29
    _, where, back = np.unique(key, return_index=True, return_inverse=True)
    if np.array_equal(packed[where][back], packed) and np.array_equal(row[where][back], row):
        return where, back
    # Two have the same key: none is taken for another.
    return np.arange(len(row)), np.arange(len(row))
