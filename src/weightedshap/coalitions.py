"""Coalitions S ⊆ [d] as boolean arrays (m, d), and orders of the players as integer arrays (m, d).

Games are called on coalitions, and samplers add players in orders. Here both are checked, counted,
drawn and compared; games, estimators, surrogates and curves use it.
"""

import numpy as np
import numpy.typing as npt

from weightedshap._checks import BoolArray, IntArray, as_array

# The number of random orders that coalitions are taken from, as drawing orders is slow.
SHARED_ORDERS = 4096
# The number of random coalitions computed at once, which limits the memory.
CHUNK = 2**16
# An odd number close to 2^64 over the golden ratio: multiplying by it spreads bits over the word.
HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def as_coalitions(coalitions: npt.ArrayLike, d: int) -> BoolArray:
    """Check coalitions, and return them as a boolean array (m, d)."""
    array = as_array("coalitions", coalitions, None)
    if array.ndim != 2 or array.shape[1] != d:
        raise ValueError(
            f"`coalitions` must have shape (m, {d}), one column for each player; got {array.shape}."
        )
    if array.dtype != np.bool_ and (
        array.dtype.kind not in "iuf" or not np.isin(array, (0, 1)).all()
    ):
        raise ValueError(
            "`coalitions` must be boolean (True = known), or hold only 0 and 1; got other values"
            f" of {array.dtype}."
        )
    return array.astype(np.bool_, copy=False)


def as_orders(orders: npt.ArrayLike, d: int) -> IntArray:
    """Return orders as an integer array (m, d); every row must be a permutation of 0..d−1."""
    array = as_array("orders", orders, None)
    if array.ndim != 2 or array.shape[1] != d or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"`orders` must be integers of shape (m, {d}); got {array.dtype} {array.shape}."
        )
    if not np.array_equal(np.sort(array, axis=1), np.broadcast_to(np.arange(d), array.shape)):
        raise ValueError(f"Every row of `orders` must hold each of 0..{d - 1} once.")
    return array.astype(np.intp, copy=False)


def empty_and_full(d: int) -> BoolArray:
    """Return the empty coalition ∅ and the full coalition [d], as a boolean array (2, d)."""
    return np.array([[False] * d, [True] * d])


def prefixes(orders: IntArray) -> BoolArray:
    """Return the coalitions (m, d + 1, d) of the first 0, 1, …, d players in each order (m, d)."""
    m, d = orders.shape
    position = np.empty((m, d), dtype=np.intp)
    np.put_along_axis(position, orders, np.arange(d)[None, :], axis=1)
    return position[:, None, :] < np.arange(d + 1)[:, None]


def unique_coalitions(coalitions: BoolArray) -> tuple[IntArray, IntArray]:
    """Find the distinct coalitions; return `index` and `inverse` as `numpy.unique` does.

    `index` has the position where each distinct coalition first occurs, and `inverse` (m,) the
    number of each coalition among the distinct ones.
    """
    packed = np.packbits(coalitions, axis=1)
    _, index, inverse = np.unique(
        packed.view(f"V{packed.shape[1]}").ravel(), return_index=True, return_inverse=True
    )
    return index, inverse.ravel()


def unique_pairs(row: IntArray, coalitions: BoolArray) -> tuple[IntArray, IntArray]:
    """Find the distinct pairs (row, coalition); return `index` and `inverse` like `numpy.unique`.

    There are N pairs, of `row` (N,) and `coalitions` (N, d). `index` has the position where each
    distinct pair first occurs, and `inverse` (N,) the number of each pair among the distinct ones.
    """
    n_padding = -coalitions.shape[1] % 64
    padded = np.pad(coalitions, ((0, 0), (0, n_padding)))
    packed = np.packbits(padded, axis=1).view(np.uint64)

    # Pairs are compared by a hash of 64 bits, as sorting whole coalitions is slow.
    key = row.astype(np.uint64) * HASH_FACTOR
    for word in packed.T:
        key = (key ^ word) * HASH_FACTOR
        key ^= key >> 29
    _, index, inverse = np.unique(key, return_index=True, return_inverse=True)

    same_coalitions = np.array_equal(packed[index][inverse], packed)
    if same_coalitions and np.array_equal(row[index][inverse], row):
        return index, inverse
    # Two pairs have the same hash: then every pair counts as distinct, which is right but slower.
    return np.arange(len(row)), np.arange(len(row))


def all_coalitions(d: int, start: int = 0, stop: int | None = None) -> BoolArray:
    """Return the coalitions numbered `start`, …, `stop` − 1, whose bits are the players.

    The array is (m, d), and bit i of a number is player i. By default these are all 2^d coalitions.
    """
    numbers = np.arange(start, 2**d if stop is None else stop, dtype="<u4")
    bits = np.unpackbits(numbers.view(np.uint8).reshape(-1, 4), axis=1, bitorder="little")
    return bits[:, :d].astype(np.bool_)


def slices_of(n: int, size: int) -> list[slice]:
    """Return slices of at most `size` items that together cover a sequence of n items."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def random_coalitions(m: int, d: int, rng: np.random.Generator) -> BoolArray:
    """Return random coalitions (m, d) whose sizes are uniform on 0..d.

    Each contains the first players of a random order. At most 4096 orders are drawn for all, as
    drawing is slow.
    """
    n_orders = min(m, SHARED_ORDERS)
    order = rng.integers(n_orders, size=m)
    identity = np.arange(d, dtype=np.min_scalar_type(d))
    rank = rng.permuted(np.tile(identity, (n_orders, 1)), axis=1)  # (n_orders, d)
    size = rng.integers(0, d + 1, size=(m, 1))

    # The ranks of all coalitions at once would take more memory than the coalitions.
    coalitions = np.empty((m, d), dtype=np.bool_)
    for chunk in slices_of(m, CHUNK):
        coalitions[chunk] = rank[order[chunk]] < size[chunk]
    return coalitions
