"""Games of trees whose hidden features take the values of background rows.

With few background rows, the leaves that each explained row can reach are listed, see
`kernels.leaf_lists`. Many background rows are summarised as patterns, see `kernels.patterns`: the
cost of an explained row then does not grow with the number of background rows.
"""

from __future__ import annotations

from collections.abc import Iterable
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
from weightedshap.trees.kernels.leaf_lists import LeafLists, grown, level
from weightedshap.trees.kernels.patterns import (
    ALL,
    ROWS,
    CoalitionWords,
    LeafGroups,
    LeafPaths,
    Memo,
    PatternScratch,
    PatternTable,
    PrefixScratch,
    Words,
    pack_bits,
)
from weightedshap.trees.removal import EncodedRows, SemivalueFiller

# Up to this many background rows are taken one by one; more are summarised as patterns. It trades
# φ_w and curves, faster by lists, for values of many coalitions, faster by patterns: for 64 rows of
# 100 LightGBM trees, patterns take 9, 4.5 and 2.6 times as long for the former at 2, 4 and 8
# background rows, and 0.55, 0.22 and 0.11 times as long for 300 values. At half that is
# lost, and won, with 3 and 4 background rows; at double it is the other way round with 5 to 8.
FEW_ROWS = 4
# It bounds the memory of patterns, 16 bytes each: all take at most half a gigabyte, at half a
# quarter, at double one. It makes no difference to games with fewer patterns. Those with more list
# leaves instead, which took as long with 50 background rows and six times as long with 200.
MOST_PATTERNS = 2**25
# A pattern is one word, so it can hold the players of one path up to here.
PATTERN_BITS = 64
# Results that a kernel remembers at once, a power of two. More are found again, fewer stay in the
# cache. Timed with 200 trees of depth 7 and 100 background rows, it hardly matters: at half 0 to 3
# % faster, at double 0 to 5 % slower.
MEMO_SLOTS = 2**16
# Numbers in the entries that a kernel remembers at once, as many as 64 entries of 64 players and 64
# columns take at the least. More are forgotten less often. Timed on the same games: at half between
# 1 % faster and 2 % slower, at double no difference.
MEMO_NUMBERS = 2**21
# Memory for the sets of first players of rows that are looked at together. More rows share the
# memo, fewer stay in the cache. Timed with up to 1,024 rows and 64 orders, it hardly matters: at
# half 0 to 4 % faster, at double within 2 %.
PREFIX_BYTES = 2**23


def choose_removal(
    ensembles: Iterable[Ensemble], Z: FloatArray, weights: FloatArray
) -> LeafListRemoval | PatternRemoval:
    """Return the faster way to hide features by background rows Z (B, c) with weights (B,).

    With many rows that is a `PatternRemoval`, unless there are too many patterns.
    """
    ensembles = tuple(ensembles)
    goes_left = ensembles[0].goes_left(Z)
    if len(weights) > FEW_ROWS:
        by_patterns = PatternRemoval.build(ensembles, goes_left, weights)
        if by_patterns is not None:
            return by_patterns
    return LeafListRemoval(ensembles, goes_left, weights).warm_up()


@dataclass(frozen=True)
class LeafListRemoval:
    """Hide features by few background rows: list the leaves that each explained row can reach.

    Hidden features take the values of the background rows.
    """

    ensembles: tuple[Ensemble, ...]  # one for each output, with the same nodes
    goes_left: BoolArray  # (B, I) whether each background row goes left at each inner node
    weights: FloatArray  # (B,)

    @property
    def bytes_per_row(self) -> int:
        """The approximate memory, in bytes, that the leaf list of a row takes."""
        leaves = min(len(self.weights), 64) * len(self.ensembles[0].value)
        return 6 * (1 + len(self.ensembles)) * leaves

    @cached_property
    def children_by_side(self) -> Int32:
        """Four numbers for each of B background rows and I inner nodes, (B, I, 4).

        They are the child that the background row does not go to, the child that it goes to, the
        player of the split, and whether the background row goes left. They are the input of
        `kernels.leaf_lists.fill_leaves`.
        """
        nodes = self.ensembles[0]
        away = np.where(self.goes_left, nodes.right, nodes.left)
        along = np.where(self.goes_left, nodes.left, nodes.right)
        player = np.broadcast_to(nodes.player, self.goes_left.shape)
        return np.stack([away, along, player, self.goes_left], axis=-1, dtype=np.int32)

    @cached_property
    def empty_values(self) -> FloatArray:
        """The value v(∅) of the empty coalition for each output, (k,), equal at all rows."""
        values = [self.weights @ one.sum_leaves(self.goes_left) for one in self.ensembles]
        return np.array(values)

    def warm_up(self) -> Self:
        """Compute and cache now what all rows share; return the object itself."""
        nodes = self.ensembles[0]
        nodes.warm_up()
        _ = nodes.n_players
        _ = nodes.depth
        _ = self.children_by_side
        _ = self.empty_values
        return self

    def encode_rows(self, X: FloatArray) -> EncodedRows:
        """Return the lists of leaves that rows X (n, c) can reach, with v(∅) and v([d])."""
        nodes = self.ensembles[0]
        full, leaves = leaf_kernels.list_leaves(
            nodes.goes_left(X),
            self.children_by_side,
            self.weights,
            nodes.roots,
            np.stack([one.value for one in self.ensembles]),
            nodes.n_players,
            nodes.depth,
        )
        endpoints = np.empty((len(self.ensembles), len(X), 2))
        for output, one in enumerate(self.ensembles):
            endpoints[output, :, 0] = self.empty_values[output]
            endpoints[output, :, 1] = one.offset + full[output]
        return EncodedRows(leaves, endpoints)

    def semivalue_filler(self, vectors: FloatArray) -> SemivalueFiller:
        """Return a function that writes semivalues φ_w into an array, for weight vectors (m, d)."""
        table = weighted_coefficients(self.ensembles[0].widest, vectors)
        return partial(self._fill_semivalues, table)

    def _fill_semivalues(
        self, table: FloatArray, lists: LeafLists, outputs: slice, out: FloatArray
    ) -> None:
        """Write semivalues φ_w into `out` (k, n, m, d).

        `table` is the result of `weighted_coefficients`.
        """
        for leaf_value, phi in zip(lists.value[outputs], out, strict=True):
            leaf_kernels.semivalues(lists._replace(value=leaf_value), table, phi)

    def values(self, lists: LeafLists, output: int, coalitions: BoolArray, out: FloatArray) -> None:
        """Write v(S) of each row, at m coalitions S (m, d), into `out` (n, m)."""
        out[:] = self.ensembles[output].offset
        leaf_kernels.values(lists.of_output(output), coalitions, out)

    def along(self, lists: LeafLists, output: int, orders: IntArray, out: FloatArray) -> None:
        """Write v(S) after 0, 1, …, d players of each order (n, m, d) into `out` (n, m, d + 1)."""
        out[:] = self.ensembles[output].offset
        leaf_kernels.along(lists.of_output(output), orders, out)


@dataclass(frozen=True)
class PatternRemoval:
    """Hide features by many background rows, which are summarised as patterns at each leaf.

    Hidden features take the values of the background rows. The pattern of a row at a leaf says
    which players' splits on the path to the leaf the row passes.
    """

    ensembles: tuple[Ensemble, ...]  # one for each output, with the same nodes
    value: FloatArray  # (k, L) of leaves in the order of `PathTable`
    paths: LeafPaths
    groups: LeafGroups
    patterns: PatternTable
    empty_values: FloatArray  # (k, G) what each group of leaves adds to v(∅)

    @classmethod
    def build(
        cls, ensembles: tuple[Ensemble, ...], goes_left: BoolArray, weights: FloatArray
    ) -> Self | None:
        """Prepare to hide features by B background rows; None if there would be too many patterns.

        `goes_left` (B, I) says whether each row goes left at each inner node, and `weights` (B,)
        are the weights of the rows.
        """
        paths = ensembles[0].paths
        if paths.widest > PATTERN_BITS:
            return None
        leaf_paths = LeafPaths(paths.start, paths.edge_start, paths.edge)
        patterns = _find_patterns(pack_bits(goes_left), weights, leaf_paths)
        if patterns is None:
            return None
        groups = _group_leaves(paths.start, paths.member, ensembles[0].n_players)
        value = np.stack([ensemble.value[paths.leaf] for ensemble in ensembles])

        # A leaf adds to v(∅) its value times the share of the background rows that reach it.
        sizes = np.diff(paths.start)
        leaf = np.repeat(np.arange(len(sizes)), np.diff(patterns.first))
        everything = ALL >> (64 - sizes).astype(np.uint64)
        passes_all = patterns.mask == everything[leaf]
        share = np.bincount(leaf, patterns.weight * passes_all, minlength=len(sizes))

        n_groups = len(groups.first_leaf) - 1
        group_of_leaf = np.repeat(np.arange(n_groups), np.diff(groups.first_leaf))
        empty_values = np.zeros((len(value), n_groups))
        np.add.at(empty_values.T, group_of_leaf, (value * share).T)
        return cls(ensembles, value, leaf_paths, groups, patterns, empty_values)

    @property
    def bytes_per_row(self) -> int:
        """The approximate memory, in bytes, that an encoded row takes."""
        return 2 * len(self.ensembles[0].left)

    def encode_rows(self, X: FloatArray) -> EncodedRows:
        """Return bits that say whether rows X (n, c) go left at nodes, with v(∅) and v([d])."""
        goes_left = self.ensembles[0].goes_left(X)
        endpoints = np.empty((len(self.ensembles), len(X), 2))
        for output, one in enumerate(self.ensembles):
            endpoints[output, :, 0] = one.offset + self.empty_values[output].sum()
            endpoints[output, :, 1] = one.sum_leaves(goes_left)
        return EncodedRows(pack_bits(goes_left), endpoints)

    def semivalue_filler(self, vectors: FloatArray) -> SemivalueFiller:
        """Return a function that writes semivalues φ_w into an array, for weight vectors (m, d)."""
        table = weighted_coefficients(self.ensembles[0].paths.widest, vectors)
        return partial(self._fill_semivalues, table)

    def _fill_semivalues(
        self, table: FloatArray, words: Words, outputs: slice, out: FloatArray
    ) -> None:
        """Write semivalues φ_w into `out` (k, n, m, d).

        `table` is the result of `weighted_coefficients`.
        """
        k, n, m, d = out.shape
        columns, weights = coefficient_basis(table, self.ensembles[0].paths.widest)
        value = np.ascontiguousarray(self.value[outputs].T)
        sums = np.zeros((k, len(words), d, columns.shape[1], min(n, ROWS)))
        scratch = PatternScratch(
            pattern=np.empty(ROWS, np.uint64),
            counted=np.empty((65, 65)),
            total=np.empty(k * ROWS * 64 * max(1, columns.shape[1])),
        )
        pattern_kernels.semivalues(
            words,
            n,
            value,
            value.any(axis=1),
            self.paths,
            self.groups,
            self.patterns,
            Memo.empty(MEMO_SLOTS, np.int64),
            columns,
            np.empty(MEMO_NUMBERS),
            scratch,
            sums,
        )
        phi = np.empty((min(n, ROWS), m, d))
        for output, block in np.ndindex(sums.shape[:2]):
            start = ROWS * block
            point_kernels.weigh(sums[output, block], weights, np.arange(d), phi)
            out[output, start : start + ROWS] = phi[: n - start]

    def values(self, words: Words, output: int, coalitions: BoolArray, out: FloatArray) -> None:
        """Write v(S) of each row, at m coalitions S (m, d), into `out` (n, m)."""
        out[:] = self.ensembles[output].offset
        pattern_kernels.values(
            words,
            self.value[output],
            self.paths,
            self.groups,
            self.patterns,
            Memo.empty(MEMO_SLOTS, np.float64),
            coalitions,
            CoalitionWords.build(len(coalitions)),
            out,
        )

    def along(self, words: Words, output: int, orders: IntArray, out: FloatArray) -> None:
        """Write v(S) after 0, 1, …, d players of each order (n, m, d) into `out` (n, m, d + 1)."""
        m, d = orders.shape[1:]
        most_sets = m * d + 1
        memo = Memo.empty(MEMO_SLOTS, np.float64)
        coalitions = CoalitionWords.build(most_sets)
        # A word holds 64 rows, so rows are evaluated in multiples of 64.
        size = max(1, PREFIX_BYTES // (16 * ROWS * most_sets)) * ROWS
        for start in range(0, len(orders), size):
            part = slice(start, start + size)
            parent, added, n_sets, set_of_prefix = number_prefixes(orders[part])
            values = np.full(parent.shape, self.ensembles[output].offset)
            pattern_kernels.along(
                words[start // ROWS :],
                self.value[output],
                self.paths,
                self.groups,
                self.patterns,
                memo,
                self.empty_values[output],
                parent,
                added,
                n_sets,
                coalitions,
                PrefixScratch.build(most_sets, d),
                values,
            )
            flat = set_of_prefix.reshape(len(set_of_prefix), -1)
            out[part] = np.take_along_axis(values, flat, axis=1).reshape(set_of_prefix.shape)


def number_prefixes(orders: IntArray) -> tuple[npt.NDArray[Any], ...]:
    """Number the distinct sets of first players (prefixes) of orders (n, m, d), for each row.

    Return, as `kernels.patterns.first_players` describes them, the parent of each set (n, s), the
    player that the set adds to its parent (n, s), the number of sets (n,), and the set of each
    prefix (n, m, d + 1).
    """
    n, m, d = orders.shape
    most_sets = m * d + 1
    parent = np.empty((n, most_sets), np.int32)
    added = np.empty((n, most_sets), np.int32)
    n_sets = np.empty(n, np.int64)
    set_of_prefix = np.empty((n, m, d + 1), np.int32)
    bits = np.empty(((d + 63) // 64, most_sets), np.uint64)
    pattern_kernels.first_players(
        orders.astype(np.int32), bits, parent, added, n_sets, set_of_prefix
    )
    return parent, added, n_sets, set_of_prefix


def _find_patterns(words: Words, weights: FloatArray, paths: LeafPaths) -> PatternTable | None:
    """Return the patterns of background rows at each leaf; None if there would be too many.

    The bits of `words` (⌈B / 64⌉, I) say whether each row goes left at each inner node; `weights`
    (B,) are the weights of the rows.
    """
    n_leaves = len(paths.start) - 1
    table = PatternTable(
        first=np.zeros(n_leaves + 1, np.int64), mask=np.empty(0, np.uint64), weight=np.empty(0)
    )
    # A hash table with room for twice as many patterns as rows.
    slot = np.empty(2 ** (2 * len(weights) - 1).bit_length(), np.int64)
    scratch = np.empty(ROWS, np.uint64)
    capacity = max(4096, len(weights))
    done = 0
    while done < n_leaves:
        if table.first[done] > MOST_PATTERNS:
            return None
        mask = grown(table.mask, capacity)
        weight = grown(table.weight, capacity)
        table = PatternTable(table.first, mask, weight)
        done = pattern_kernels.fill_patterns(words, weights, paths, slot, scratch, done, table)
        capacity = 2 * capacity
    n_patterns = table.first[-1]
    if n_patterns > MOST_PATTERNS:
        return None
    return PatternTable(
        first=table.first,
        mask=table.mask[:n_patterns].copy(),
        weight=table.weight[:n_patterns].copy(),
    )


def _group_leaves(start: IntArray, member: Int32, n_players: int) -> LeafGroups:
    """Divide the leaves, in their order, into groups with at most 64 players each.

    The members of leaf l, the players on its path, are ``member[start[l] : start[l + 1]]``.
    """
    groups = LeafGroups(
        first_leaf=np.zeros(len(start) + 1, np.int64),
        first_player=np.zeros(len(start) + 1, np.int64),
        player=np.empty(len(member), np.int32),
        local=np.empty(len(member), np.int32),
    )
    slot = np.full(n_players, -1, np.int32)
    n_groups = pattern_kernels.group_leaves(start, member, slot, groups)
    n_entries = groups.first_player[n_groups]
    return LeafGroups(
        first_leaf=groups.first_leaf[: n_groups + 1],
        first_player=groups.first_player[: n_groups + 1],
        player=groups.player[:n_entries],
        local=groups.local,
    )


def weighted_coefficients(widest: int, vectors: FloatArray) -> FloatArray:
    """Return the products (r, m) of `coefficient_table` (r, d) and m weight vectors (m, d).

    Leaves have up to `widest` members. Row by row, these are the coefficients K(s, t), times the
    weights.
    """
    return np.ascontiguousarray(coefficient_table(vectors.shape[1], widest) @ vectors.T)


def coefficient_basis(table: FloatArray, widest: int) -> tuple[FloatArray, FloatArray]:
    """Factor a table (r, m) of weighted coefficients into (r, c) and (c, m), with a small c.

    Leaves have up to `widest` members. By Pascal's rule K(s, t) = K(s + 1, t) + K(s + 1, t + 1),
    so all coefficients are sums of the last `widest` ones.
    """
    table = table[: level(widest + 1)]
    m = table.shape[1]
    if m <= widest:
        return table, np.eye(m)
    sums = np.zeros((len(table), widest))
    sums[level(widest) :] = np.eye(widest)
    for s in range(widest - 1, 0, -1):
        above = sums[level(s + 1) : level(s + 2)]
        sums[level(s) : level(s + 1)] = above[:-1] + above[1:]
    return sums, table[level(widest) :]
