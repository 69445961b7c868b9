"""Ensembles of trees as flat arrays, and the games that are read off their leaves.

Three games share this: hidden features take the missing-value side (the tree surrogate), hidden
features take the values of background rows (interventional), and splits on hidden features are
averaged by cover (path-dependent).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from weightedshap.checks import BoolArray, FloatArray, IntArray

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
MOST_PATTERNS = 2**25


@dataclass(frozen=True)
class Tree:
    """One tree; node 0 is the root, a leaf has ``left = −1``.

    A number goes left if it is at most the threshold; ``categories[node]`` are the codes that go left
    (or right, where ``categories_left`` is False) at a categorical node.
    """

    left: npt.ArrayLike
    right: npt.ArrayLike
    column: npt.ArrayLike
    threshold: npt.ArrayLike
    nan_left: npt.ArrayLike
    value: npt.ArrayLike
    cover: npt.ArrayLike
    zero_missing: npt.ArrayLike | None = None
    categories: dict[int, Sequence[int]] | None = None
    categories_left: bool = True


@dataclass(frozen=True)
class Ensemble:
    """Σ of trees + offset, for one output: the inner nodes of all trees, then their leaves.

    Attributes
    ----------
    roots : (T,) root of each tree
    left, right, column, threshold, nan_left, zero_missing, cat_slot : (I,) of inner nodes
    cat_start, cat_words, member_left : sets of categories as bits, and which side their members go
    value : (L,) of leaves · cover : (I + L,) training weight of all nodes
    single : whether values are compared after rounding to float32
    """

    roots: Int32
    left: Int32
    right: Int32
    column: Int32
    threshold: FloatArray
    nan_left: BoolArray
    zero_missing: BoolArray
    cat_slot: Int32
    cat_start: Int64
    cat_words: npt.NDArray[np.uint32]
    member_left: BoolArray
    value: FloatArray
    cover: FloatArray
    offset: float = 0.0
    single: bool = False

    @property
    def n_leaves(self) -> int:
        """Leaves of all trees."""
        return len(self.value)

    @cached_property
    def depth(self) -> int:
        """Splits on the longest path."""
        from weightedshap.trees import leaf_kernels as kernels

        return int(kernels.longest_path(self.roots, self.left, self.right))

    def widest(self, player: Int32, d: int) -> int:
        """An upper bound on the distinct players that one path asks about."""
        used = np.unique(player).size
        return min(self.depth, used, d)

    def directions(self, X: FloatArray) -> BoolArray:
        """(n, nodes): whether each row goes left at each inner node."""
        from weightedshap.trees import leaf_kernels as kernels

        rows = np.ascontiguousarray(X.astype(np.float32).astype(np.float64) if self.single else X)
        if self.plain:
            return np.asarray(kernels.plain_directions(rows, self.column, self.threshold, self.nan_left))
        return np.asarray(kernels.any_directions(rows, *self._splits))

    def predict(self, X: FloatArray) -> FloatArray:
        """(n,) values of whole rows, by walking the trees."""
        from weightedshap.trees import leaf_kernels as kernels

        total = np.full(len(X), self.offset)
        for start in range(0, len(X), 1024):
            goes = self.directions(X[start : start + 1024])
            kernels.walk_trees(goes, self.roots, self.left, self.right, self.value, total[start : start + 1024])
        return total

    def scaled(self, factor: float) -> Ensemble:
        """The ensemble times a constant."""
        return replace(self, value=self.value * factor, offset=self.offset * factor)

    @cached_property
    def plain(self) -> bool:
        """Whether splits only compare numbers."""
        return not self.zero_missing.any() and bool((self.cat_slot < 0).all())

    @property
    def _splits(self) -> tuple[Any, ...]:
        return (
            self.column, self.threshold, self.nan_left, self.zero_missing, self.cat_slot, self.cat_start,
            self.cat_words, self.member_left,
        )  # fmt: skip


def pack(trees: Sequence[Tree], scale: float = 1.0, offset: float = 0.0, single: bool = False) -> Ensemble:
    """The nodes of `trees`, inner ones first, leaf values times `scale`."""
    sizes = [np.size(tree.left) for tree in trees]
    roots = np.cumsum([0, *sizes])[:-1]

    def joined(parts: Any, dtype: Any) -> Any:
        return np.concatenate([np.zeros(0, dtype), *(np.asarray(part, dtype=dtype) for part in parts)])

    def children(name: str) -> Any:
        return joined((np.asarray(getattr(tree, name)) + r for tree, r in zip(trees, roots, strict=True)), np.int64)

    is_leaf = joined((np.asarray(tree.left) < 0 for tree in trees), np.bool_)
    inner, leaf = np.flatnonzero(~is_leaf), np.flatnonzero(is_leaf)
    number = np.empty(len(is_leaf), dtype=np.int32)
    number[inner], number[leaf] = np.arange(len(inner)), len(inner) + np.arange(len(leaf))
    zero = (np.zeros(n) if t.zero_missing is None else t.zero_missing for t, n in zip(trees, sizes, strict=True))
    slots, cat_start, cat_words, member_left = _packed_categories(trees, roots, len(is_leaf))
    return Ensemble(
        number[roots.astype(np.intp)],
        number[children("left")[inner]],
        number[children("right")[inner]],
        joined((tree.column for tree in trees), np.int32)[inner],
        joined((tree.threshold for tree in trees), np.float64)[inner],
        joined((tree.nan_left for tree in trees), np.bool_)[inner],
        joined(zero, np.bool_)[inner],
        slots[inner],
        cat_start,
        cat_words,
        member_left,
        joined((tree.value for tree in trees), np.float64)[leaf] * scale,
        joined((tree.cover for tree in trees), np.float64)[np.concatenate([inner, leaf])],
        offset,
        single,
    )


def _packed_categories(trees: Sequence[Tree], roots: Any, n_nodes: int) -> tuple[Int32, Int64, Any, BoolArray]:
    """Sets of categories as bits: slot of each node, where each slot's words begin, the words, the side."""
    slots = np.full(n_nodes, -1, dtype=np.int32)
    starts, words = [0], [np.zeros(0, np.uint32)]
    sides: list[bool] = []
    for root, tree in zip(roots, trees, strict=True):
        for node, codes in (tree.categories or {}).items():
            slots[root + node] = len(sides)
            bits = np.zeros(max(codes, default=0) // 32 + 1, dtype=np.uint32)
            for code in codes:
                bits[code // 32] |= np.uint32(1 << (code % 32))
            words.append(bits)
            starts.append(starts[-1] + len(bits))
            sides.append(tree.categories_left)
    return slots, np.array(starts, np.int64), np.concatenate(words), np.array(sides, dtype=np.bool_)


def players_of(ensembles: Sequence[Ensemble], owner: IntArray) -> tuple[Int32, ...]:
    """For each output, the player that every inner node asks about, given the player of each column."""
    return tuple(owner.astype(np.int32)[e.column] for e in ensembles)


@dataclass(frozen=True)
class Paths:
    """The ways to all leaves of an ensemble, grouped by player; described in `_path_kernels.leaf_paths`."""

    value: FloatArray
    start: Int64
    member: Int32
    ratio: FloatArray
    edge_start: Int64
    edge: Int32

    @classmethod
    def of(cls, ensemble: Ensemble, player: Int32, d: int) -> Paths:
        from weightedshap.trees import path_kernels as kernels

        e = ensemble
        return cls(*kernels.leaf_paths(e.roots, e.left, e.right, player, e.value, e.cover, d, e.depth))

    @property
    def arrays(self) -> tuple[Any, ...]:
        return self.value, self.start, self.member, self.ratio, self.edge_start, self.edge

    @property
    def widest(self) -> int:
        """The most distinct players on one path."""
        return int(np.diff(self.start).max(initial=0))


@dataclass(frozen=True)
class Coefficients:
    """K(s, t)[j] = C(d−s, j−t) / C(d−1, j−1), the share of a leaf that size j sees.

    K(s, t) is row ``level[s] + t − 1`` of `table`.
    """

    table: FloatArray
    level: Int64

    @classmethod
    def of(cls, d: int, widest: int) -> Coefficients:
        from weightedshap.trees import leaf_kernels as kernels

        return cls(*kernels.coefficient_table(d, widest))
