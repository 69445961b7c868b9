"""Absent rows, whose values stand in for hidden features, as ensembles with the same nodes see
them.

Against few of them the living leaves of a row are listed, see `leaf_kernels`. Many are written as
patterns, see `pattern_kernels`: what a row costs then does not depend on how many there are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap.trees.ensembles import Ensemble, Int32, coefficient_table
from weightedshap.trees.kernels import leaf_lists as leaf_kernels
from weightedshap.trees.kernels import patterns as pattern_kernels
from weightedshap.trees.kernels import quadrature as point_kernels
from weightedshap.trees.kernels.leaf_lists import level, with_room
from weightedshap.trees.kernels.patterns import ALL, ROWS, SEEN, Words, in_words

Directions = tuple[BoolArray, Words]  # (n, I) of rows, and the same as words, see `pattern_kernels`
# Values of all players (k, n), and lists of leaves, see `leaf_kernels`.
Rows = tuple[FloatArray, tuple[Any, ...]]
FEW_ROWS = (
    4  # up to so many absent rows are walked one by one faster than they are written as patterns
)
MOST_PATTERNS = 2**25  # of 16 bytes each: half a gigabyte
PATTERN_BITS = 64  # a pattern is one word, so it tells apart as many players on one path
PLACES = 2**16  # of what is kept at once, a power of two
ENTRIES = (
    2**21
    # Numbers in entries that are kept at once: at least two times 64 entries of 64 players and 64
    # columns
)
SET_BYTES = 2**23  # of the sets that rows are asked about at once


@dataclass(frozen=True)
class FewRows:
    """B absent rows that are walked one by one; of explained rows the living leaves are listed."""

    ensembles: tuple[Ensemble, ...]  # one for each output
    goes: BoolArray  # (B, I) whether each row goes left at each inner node
    weights: FloatArray  # (B,)

    @property
    def row_bytes(self) -> int:
        """About what the lists of a row take."""
        return (
            6
            * (1 + len(self.ensembles))
            * min(len(self.weights), 64)
            * len(self.ensembles[0].value)
        )

    @cached_property
    def ways(self) -> Int32:
        """(B, I, 4) of each row and node, see `leaf_kernels.fill_leaves`."""
        e = self.ensembles[0]
        parted = np.where(self.goes, e.right, e.left), np.where(self.goes, e.left, e.right)
        return np.stack(
            [*parted, np.broadcast_to(e.player, self.goes.shape), self.goes],
            axis=-1,
            dtype=np.int32,
        )

    @cached_property
    def nothing(self) -> FloatArray:
        """(k,) the values of no players, the same at every row."""
        return np.array([self.weights @ e.walk(self.goes) for e in self.ensembles])

    def at(self, X: FloatArray) -> Rows:
        """What is known of rows X (n, c), their values and leaves, which the methods below ask
        for."""
        e, value = self.ensembles[0], np.stack([e.value for e in self.ensembles])
        return leaf_kernels.list_leaves(
            e.directions(X), self.ways, self.weights, e.roots, value, e.n_players, e.depth
        )

    def weigher(self, vectors: FloatArray) -> Callable[[Rows, slice, FloatArray], None]:
        return partial(self.semivalues, times(self.ensembles[0].widest, vectors))

    def semivalues(self, table: FloatArray, rows: Rows, outputs: slice, out: FloatArray) -> None:
        """φ_w (k, n, m, d) under m weight vectors, times which the coefficients K(s, t) are the
        `table` (K, m)."""
        first, c, *leaves = rows[1]
        for of_one, phi in zip(c[outputs], out, strict=True):
            leaf_kernels.semivalues(first, of_one, *leaves, table, phi)

    def ends(self, rows: Rows, output: int, out: FloatArray) -> None:
        """(n, 2) the values of no players and of all players."""
        out[:, 0], out[:, 1] = self.nothing[output], self.ensembles[output].offset + rows[0][output]

    def values(self, rows: Rows, output: int, coalitions: BoolArray, out: FloatArray) -> None:
        """(n, m) the values of coalitions (m, d)."""
        first, c, *leaves = rows[1]
        out[:] = self.ensembles[output].offset
        leaf_kernels.values(first, c[output], *leaves, coalitions, out)

    def along(self, rows: Rows, output: int, orders: IntArray, out: FloatArray) -> None:
        """(n, m, d + 1) the values when the first 0..d players of orders (n, m, d) are known."""
        first, c, *leaves = rows[1]
        out[:] = self.ensembles[output].offset
        leaf_kernels.along(first, c[output], *leaves, orders, out)


@dataclass(frozen=True)
class Background:
    """Absent rows that are written as patterns, with the methods of `FewRows`."""

    ensembles: tuple[Ensemble, ...]
    value: FloatArray  # (k, L) of leaves in the order of `Paths`
    # Leaves, their groups and patterns, as `pattern_kernels` asks for them.
    given: tuple[tuple[Any, ...], ...]
    nothing: FloatArray  # (k, G) what each group of leaves gives to no players

    @classmethod
    def of(
        cls, ensembles: tuple[Ensemble, ...], goes: BoolArray, weights: FloatArray
    ) -> Self | None:
        """Rows with directions `goes` (B, I) and weights (B,); None where they have too many
        patterns."""
        paths = ensembles[0].paths
        ways = paths.start, paths.edge_start, paths.edge
        if (
            paths.widest > PATTERN_BITS
            or (patterns := _patterns(in_words(goes), weights, *ways)) is None
        ):
            return None
        groups = _groups(paths.start, paths.member, ensembles[0].n_players)
        size = np.diff(paths.start)
        first, mask, weight = patterns
        leaf = np.repeat(np.arange(len(size)), np.diff(first))
        passes_all = ALL >> (64 - size).astype(np.uint64)
        share = np.bincount(leaf, weight * (mask == passes_all[leaf]), minlength=len(size))
        value = np.stack([ensemble.value[paths.leaf] for ensemble in ensembles])
        nothing = np.zeros((len(value), len(groups[0]) - 1))
        np.add.at(
            nothing.T, np.repeat(np.arange(nothing.shape[1]), np.diff(groups[0])), (value * share).T
        )
        return cls(ensembles, value, (ways, groups, patterns), nothing)

    @property
    def row_bytes(self) -> int:
        """About what is held of a row."""
        return 2 * len(self.ensembles[0].left)

    def at(self, X: FloatArray) -> Directions:
        goes = self.ensembles[0].directions(X)
        return goes, in_words(goes)

    def weigher(self, vectors: FloatArray) -> Callable[[Directions, slice, FloatArray], None]:
        return partial(self.semivalues, times(self.ensembles[0].paths.widest, vectors))

    def semivalues(
        self, table: FloatArray, rows: Directions, outputs: slice, out: FloatArray
    ) -> None:
        (k, n, m, d) = out.shape
        (columns, weights) = basis(table, self.ensembles[0].paths.widest)
        sums = np.zeros((k, len(rows[1]), d, columns.shape[1], min(n, ROWS)))
        memory = np.empty(ENTRIES)
        value = np.ascontiguousarray(self.value[outputs].T)
        room = np.empty((65, 65)), np.empty(k * ROWS * 64 * max(1, columns.shape[1]))
        asked = rows[1], n, value, value.any(axis=1), self.given, _places(np.int64), columns, memory
        pattern_kernels.semivalues(*asked, (np.empty(ROWS, np.uint64), *room), sums)
        phi = np.empty((min(n, ROWS), m, d))
        for o, b in np.ndindex(sums.shape[:2]):
            point_kernels.weigh(sums[o, b], weights, np.arange(d), phi)
            out[o, ROWS * b : ROWS * (b + 1)] = phi[: n - ROWS * b]

    def ends(self, rows: Directions, output: int, out: FloatArray) -> None:
        e = self.ensembles[output]
        out[:, 0], out[:, 1] = e.offset + self.nothing[output].sum(), e.walk(rows[0])

    def values(self, rows: Directions, output: int, coalitions: BoolArray, out: FloatArray) -> None:
        out[:] = self.ensembles[output].offset
        given = self.value[output], self.given, _places(np.float64)
        pattern_kernels.values(rows[1], *given, coalitions, _lanes(len(coalitions)), out)

    def along(self, rows: Directions, output: int, orders: IntArray, out: FloatArray) -> None:
        m, d = orders.shape[1:]
        most = m * d + 1
        size = max(1, SET_BYTES // (16 * ROWS * most)) * ROWS
        given = self.value[output], self.given, _places(np.float64), self.nothing[output]
        scratch = (
            np.empty(most, np.uint64),
            np.empty((ROWS, most), np.int32),
            np.empty((ROWS, most)),
        )
        for begin in range(0, len(orders), size):
            some = slice(begin, begin + size)
            words = rows[1][begin // ROWS :]
            parent, added, sets, lane = first_sets(orders[some])
            found = np.full(parent.shape, self.ensembles[output].offset)
            seen = np.zeros(d, np.uint64), (np.zeros(SEEN, np.uint64), np.full(SEEN, -1))
            pattern_kernels.along(
                words, *given, parent, added, sets, *seen, _lanes(most), scratch, found
            )
            out[some] = np.take_along_axis(found, lane.reshape(len(lane), -1), axis=1).reshape(
                lane.shape
            )


def first_sets(orders: IntArray) -> tuple[npt.NDArray[Any], ...]:
    """The distinct sets among the first players of orders (n, m, d), as
    `pattern_kernels.first_players` tells them."""
    n, m, d = orders.shape
    (parent, added) = np.empty((2, n, m * d + 1), np.int32)
    sets = np.empty(n, np.int64)
    lane = np.empty((n, m, d + 1), np.int32)
    bits = np.empty(((d + 63) // 64, m * d + 1), np.uint64)
    pattern_kernels.first_players(orders.astype(np.int32), bits, parent, added, sets, lane)
    return parent, added, sets, lane


def _patterns(
    words: Words, weights: FloatArray, *ways: Any
) -> tuple[IntArray, Words, FloatArray] | None:
    """Where the patterns of each leaf begin, the patterns and their weights; None where they would
    be too many."""
    n_leaves = len(ways[0]) - 1
    done = 0
    room = max(4096, len(weights))
    first = np.zeros(n_leaves + 1, np.int64)
    mask = np.empty(0, np.uint64)
    weight = np.empty(0)
    place = np.empty(2 ** (2 * len(weights) - 1).bit_length(), np.int64)
    seen = np.empty(ROWS, np.uint64)
    while done < n_leaves:
        if first[done] > MOST_PATTERNS:
            return None
        mask = with_room(mask, room)
        weight = with_room(weight, room)
        filled = pattern_kernels.fill_patterns(
            words, weights, *ways, place, seen, done, first, mask, weight
        )
        done = filled
        room = 2 * room
    return (
        None
        if first[-1] > MOST_PATTERNS
        else (first, mask[: first[-1]].copy(), weight[: first[-1]].copy())
    )


def _groups(
    start: IntArray, member: Int32, n_players: int
) -> tuple[IntArray, IntArray, Int32, Int32]:
    """Where the leaves and the players of each group begin, the players, and of each member its
    place among them."""
    first_leaf, first_player = np.zeros((2, len(start) + 1), np.int64)
    who, local, slot = *np.empty((2, len(member)), np.int32), np.full(n_players, -1, np.int32)
    G = pattern_kernels.group_leaves(start, member, slot, first_leaf, first_player, who, local)
    return first_leaf[: G + 1], first_player[: G + 1], who[: first_player[G]], local


def _places(kind: npt.DTypeLike) -> tuple[npt.NDArray[Any], ...]:
    """Where something is kept for words of leaves: the leaf, −1 where there is none, the word, and
    what is kept."""
    return np.full(PLACES, -1, np.int32), np.empty(PLACES, np.uint64), np.empty(PLACES, kind)


def _lanes(most: int) -> tuple[npt.NDArray[Any], ...]:
    """Room for up to `most` coalitions of 64 rows: as words, turned round, how many there are, and
    two lines."""
    words = np.empty((ROWS, most + 1), np.uint64), np.empty((most // 64 + 1, 64, ROWS), np.uint64)
    return *words, np.empty(ROWS, np.int64), np.empty(64, np.uint64), np.empty(ROWS, np.uint64)


def times(widest: int, vectors: FloatArray) -> FloatArray:
    """(K, m) the coefficients K(s, t) of leaves up to `widest` members, see `coefficient_table`,
    times m vectors."""
    return np.ascontiguousarray(coefficient_table(vectors.shape[1], widest) @ vectors.T)


def basis(table: FloatArray, widest: int) -> tuple[FloatArray, FloatArray]:
    """(K, c) and (c, m) whose product is the table (K, m) for leaves up to `widest` members; c is
    as small as can be.

    By Pascal's rule K(s, t) = K(s + 1, t) + K(s + 1, t + 1), so all coefficients are sums of the
    last `widest`.
    """
    table = table[: level(widest + 1)]
    if table.shape[1] <= widest:
        return table, np.eye(table.shape[1])
    sums = np.zeros((len(table), widest))
    sums[level(widest) :] = np.eye(widest)
    for s in range(widest - 1, 0, -1):
        above = sums[level(s + 1) : level(s + 2)]
        sums[level(s) : level(s + 1)] = above[:-1] + above[1:]
    return sums, table[level(widest) :]


def absent_rows(
    ensembles: tuple[Ensemble, ...], Z: FloatArray, weights: FloatArray
) -> FewRows | Background:
    """The rows Z (B, c) with weights (B,): as patterns if there are many, and these are not too
    many."""
    goes = ensembles[0].directions(Z)
    many = Background.of(ensembles, goes, weights) if len(weights) > FEW_ROWS else None
    return FewRows(ensembles, goes, weights) if many is None else many
