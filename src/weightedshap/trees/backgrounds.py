"""Absent rows, whose values stand in for hidden features, as one ensemble sees them.

Against few of them the living leaves of a row are listed, see `leaf_kernels`. Many are written as patterns, see
`pattern_kernels`: what a row costs then does not depend on how many there are.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from weightedshap.checks import BoolArray, FloatArray, IntArray
from weightedshap.trees import leaf_kernels, pattern_kernels, point_kernels
from weightedshap.trees.ensembles import Ensemble, Int32, Int64
from weightedshap.trees.leaf_kernels import level
from weightedshap.trees.pattern_kernels import ROWS

FEW_ROWS = 4  # up to so many absent rows are walked one by one faster than they are written as patterns
MOST_PATTERNS = 2**25  # of 16 bytes each: half a gigabyte
PATTERN_BITS = 64  # a pattern is one word, so it tells apart as many players on one path
KEPT_BITS = 12  # what depends on a pattern is kept at leaves with at most so many members, and found anew at others
ENTRY_BYTES = 2**24  # of what is kept at once
SET_BYTES = 2**23  # of the sets that rows are asked about at once
Words = npt.NDArray[np.uint64]


class Weighed(NamedTuple):
    """The coefficients K(s, t) under m weight vectors, see `coefficient_table`."""

    table: FloatArray  # (K, m)

    @classmethod
    def of(cls, coefficients: FloatArray, vectors: FloatArray) -> Self:
        """The coefficients (K, d) under weight vectors (m, d)."""
        return cls(np.ascontiguousarray(coefficients @ vectors.T))

    def columns(self, widest: int) -> tuple[FloatArray, FloatArray]:
        """(K, c) and (c, m), whose product is the table for leaves up to `widest` members, with c as small as can be.

        By Pascal's rule K(s, t) = K(s + 1, t) + K(s + 1, t + 1), so all coefficients are sums of the last `widest`.
        """
        table = self.table[: level(widest + 1)]
        if table.shape[1] <= widest:
            return table, np.eye(table.shape[1])
        sums = np.zeros((len(table), widest))
        sums[level(widest) :] = np.eye(widest)
        for s in range(widest - 1, 0, -1):
            above = sums[level(s + 1) : level(s + 2)]
            sums[level(s) : level(s + 1)] = above[:-1] + above[1:]
        return sums, table[level(widest) :]


@dataclass(frozen=True)
class Listed:
    """n rows whose living leaves are listed; all methods fill in arrays (n, …)."""

    offset: float
    lists: tuple[Any, ...]

    def semivalues(self, weighed: Weighed, out: FloatArray) -> None:
        """φ_w (n, m, d)."""
        leaf_kernels.semivalues(*self.lists, weighed.table, out)

    def ends(self, out: FloatArray) -> None:
        """(n, 2) the values of no players and of all players."""
        out[:] = self.offset
        leaf_kernels.ends(*self.lists, out)

    def values(self, coalitions: BoolArray, out: FloatArray) -> None:
        """(n, m) the values of coalitions (m, d)."""
        out[:] = self.offset
        leaf_kernels.values(*self.lists, np.ascontiguousarray(coalitions), out)

    def along(self, orders: IntArray, out: FloatArray) -> None:
        """(n, m, d + 1) the values when the first 0..d players of orders (n, m, d) are known."""
        out[:] = self.offset
        leaf_kernels.along(*self.lists, np.ascontiguousarray(orders), out)


@dataclass(frozen=True)
class FewRows:
    """B absent rows that are walked one by one."""

    ensemble: Ensemble
    goes: BoolArray  # (B, I) whether each row goes left at each inner node
    weights: FloatArray  # (B,)

    @property
    def widest(self) -> int:
        """An upper bound on the members of a leaf."""
        return self.ensemble.widest

    @property
    def row_bytes(self) -> int:
        """About what the lists of a row take."""
        return 16 * min(len(self.weights), 64) * len(self.ensemble.value)

    def at(self, X: FloatArray) -> Listed:
        """What is known of rows X (n, c)."""
        e = self.ensemble
        trees = e.roots, e.left, e.right, e.player, e.value, e.n_players, e.depth
        return Listed(e.offset, leaf_kernels.list_leaves(e.directions(X), self.goes, self.weights, *trees))


@dataclass(frozen=True)
class Background:
    """Absent rows that are written as patterns."""

    ensemble: Ensemble
    patterns: tuple[Int64, Words, FloatArray]  # of each leaf, see `pattern_kernels.background_patterns`
    groups: tuple[Int64, Int64, Int32, Int32]  # see `pattern_kernels.group_leaves`

    @classmethod
    def of(cls, ensemble: Ensemble, goes: BoolArray, weights: FloatArray) -> Self | None:
        """Rows with directions `goes` (B, I) and weights (B,); None where they have too many patterns."""
        paths, has_splits = ensemble.paths, ensemble.roots < len(ensemble.left)
        if paths.widest > PATTERN_BITS:
            return None
        words, ways = pattern_kernels.in_words(goes), (paths.start, paths.edge_start, paths.edge)
        patterns = pattern_kernels.background_patterns(words, weights, *ways, MOST_PATTERNS)
        if patterns[0][0] < 0:
            return None
        leaves = np.ones(len(ensemble.roots), np.intp)  # of each tree: one more than it has splits
        leaves[has_splits] += np.diff(np.append(ensemble.roots[has_splits], len(ensemble.left)))
        begins_tree = np.zeros(len(paths.value), dtype=np.bool_)
        begins_tree[np.cumsum(leaves) - leaves] = True
        groups = pattern_kernels.group_leaves(begins_tree, paths.start, paths.member, ensemble.n_players)
        return cls(ensemble, patterns, groups)

    @property
    def widest(self) -> int:
        """The most members of a leaf."""
        return self.ensemble.paths.widest

    @property
    def row_bytes(self) -> int:
        """About what is held of a row."""
        return 2 * len(self.ensemble.left)

    @property
    def given(self) -> tuple[Any, ...]:
        """What the kernels ask about leaves, groups and patterns."""
        paths = self.ensemble.paths
        return (paths.value, paths.start, paths.edge_start, paths.edge), self.groups, self.patterns

    @cached_property
    def empty(self) -> float:
        """The game of no players: leaves times the share of the background that passes all their members."""
        (first, mask, weight), paths = self.patterns, self.ensemble.paths
        size = np.diff(paths.start).astype(np.uint64)
        every = np.where(size < 64, (np.uint64(1) << (size % 64)) - np.uint64(1), ~np.uint64(0))
        leaf = np.repeat(np.arange(len(size)), np.diff(first))
        return self.ensemble.offset + float((paths.value[leaf] * weight)[mask == every[leaf]].sum())

    def kept(self, bits: int = KEPT_BITS) -> tuple[Int64, int]:
        """Where patterns of each leaf begin in a table of its group, −1 for those not kept; and the largest table."""
        first, size = self.groups[0], np.diff(self.ensemble.paths.start)
        small = size <= min(KEPT_BITS, bits)
        total = np.append(0, np.cumsum(np.where(small, 1 << np.where(small, size, 0), 0)))
        begin = total[:-1] - np.repeat(total[first[:-1]], np.diff(first))
        return np.where(small, begin, -1), int(np.diff(total[first]).max(initial=0))

    def at(self, X: FloatArray) -> "Patterned":
        """What is known of rows X (n, c)."""
        return Patterned(self, self.ensemble.directions(X))


@dataclass(frozen=True)
class Patterned:
    """n rows whose hidden features take the values of a background; all methods fill in arrays as of `Listed`."""

    background: Background
    goes: BoolArray  # (n, I)

    def semivalues(self, weighed: Weighed, out: FloatArray) -> None:
        """φ_w (n, m, d)."""
        background, (n, m, d) = self.background, out.shape
        (table, last), words = weighed.columns(background.widest), pattern_kernels.in_words(self.goes)
        kept, room = background.kept(n.bit_length() + 3)  # few rows meet few patterns
        sums, memory = np.zeros((len(words), d, table.shape[1], ROWS)), _entries(table.shape[1])
        many, place = np.empty((background.widest + 1, background.widest + 1)), np.empty(room, np.int32)
        pattern_kernels.semivalues(words, n, *background.given, kept, table, many, place, memory, sums)
        phi, players = np.empty((ROWS, m, d)), np.arange(d)
        for b, some in enumerate(sums):
            point_kernels.weigh(some, last, players, phi)
            out[ROWS * b : ROWS * (b + 1)] = phi[: n - ROWS * b]

    def ends(self, out: FloatArray) -> None:
        """(n, 2) the values of no players and of all players."""
        out[:, 0], out[:, 1] = self.background.empty, self.background.ensemble.walk(self.goes)

    def values(self, coalitions: BoolArray, out: FloatArray) -> None:
        """(n, m) the values of coalitions (m, d)."""
        parent, added, number = growing_sets(coalitions)
        none = np.zeros(len(out), np.int64)
        for part in self._parts(len(parent)):
            sets = parent, added, none[part], none[part] + len(parent)
            out[part] = self._of_sets(part, sets, coalitions.shape[1])[:, number]

    def along(self, orders: IntArray, out: FloatArray) -> None:
        """(n, m, d + 1) the values when the first 0..d players of orders (n, m, d) are known."""
        m, d = orders.shape[1:]
        for part in self._parts(m * d + 1):
            some = orders[part].astype(np.int32)
            first, lane = np.zeros(len(some) + 1, np.int64), np.empty((len(some), m, d + 1), np.int32)
            parent, added = np.empty((2, len(some) * (m * d + 1)), np.int32)
            pattern_kernels.first_players(some, parent, added, first, lane)
            found = self._of_sets(part, (parent, added, first[:-1], first[1:]), d)
            out[part] = found[np.arange(len(some))[:, None, None], lane]

    def _parts(self, sets: int) -> list[slice]:
        """The rows in parts that are asked about so many sets at once."""
        size = max(1, SET_BYTES // (16 * ROWS * sets)) * ROWS
        return [slice(begin, begin + size) for begin in range(0, len(self.goes), size)]

    def _of_sets(self, rows: slice, sets: tuple[Int32, Int32, Int64, Int64], d: int) -> FloatArray:
        """(rows, most) the values of the sets of each row, see `pattern_kernels.values`."""
        background, goes, (_, _, first, end) = self.background, self.goes[rows], sets
        out = np.full((len(goes), int((end - first).max())), background.ensemble.offset)
        kept, room = background.kept()
        bit, tables, shares = np.zeros(d, np.uint64), np.empty((64, 8, 256), np.uint16), np.empty(room)
        words = pattern_kernels.in_words(goes)
        pattern_kernels.values(words, *background.given, kept, sets, bit, tables, shares, out)
        return out


def _entries(columns: int) -> FloatArray:
    """Memory for entries of up to 64 players: at least those of two times 64 rows, beside their sums."""
    return np.empty(max(ENTRY_BYTES // 8, 4 * ROWS * 64 * columns))


def growing_sets(coalitions: BoolArray) -> tuple[Int32, Int32, IntArray]:
    """Coalitions (m, d) as sets that grow player by player: parents, the player added, and each one's number (m,)."""
    number, parents, players = np.zeros(len(coalitions), np.intp), [np.zeros(1, np.intp)], [np.zeros(1, np.intp)]
    n = 1
    for player, known in enumerate(coalitions.T):
        before, which = np.unique(number[known], return_inverse=True)
        number[known] = n + which
        parents.append(before)
        players.append(np.full(len(before), player))
        n += len(before)
    return np.concatenate(parents).astype(np.int32), np.concatenate(players).astype(np.int32), number


def absent_rows(ensemble: Ensemble, Z: FloatArray, weights: FloatArray) -> FewRows | Background:
    """The rows Z (B, c) with weights (B,): as patterns if there are many, and these are not too many."""
    goes = ensemble.directions(Z)
    many = Background.of(ensemble, goes, weights) if len(weights) > FEW_ROWS else None
    return FewRows(ensemble, goes, weights) if many is None else many
