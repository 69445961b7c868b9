"""Ensembles of trees as flat arrays, and what the games need of them.

Hidden features take the missing-value side (tree surrogate) or the values of background rows
(interventional), or splits on them are averaged by cover (path-dependent).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap.trees.kernels import coalitions as lane_kernels
from weightedshap.trees.kernels import leaf_lists as leaf_kernels
from weightedshap.trees.kernels import paths as path_kernels
from weightedshap.trees.kernels import patterns as pattern_kernels

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Steps = npt.NDArray[np.void]  # of `STEP`
# Of a group of trees, which share the coalitions along orders; a tree by itself may have more
PLAYERS = 512


@dataclass(frozen=True)
class Tree:
    """One tree; node 0 is the root, a leaf has ``left = −1``. Numbers up to the threshold go left.

    ``categories[node]`` are the codes that go left, or right where ``categories_left`` is False.
    """

    left: npt.ArrayLike
    right: npt.ArrayLike
    column: npt.ArrayLike
    threshold: npt.ArrayLike
    nan_left: npt.ArrayLike
    value: npt.ArrayLike
    cover: npt.ArrayLike
    zero_missing: npt.ArrayLike = False
    categories: Mapping[int, Sequence[int]] = field(default_factory=dict)
    categories_left: bool = True


class Paths(NamedTuple):
    """The ways to all leaves of an ensemble, grouped by player: a player on the way to a leaf is a
    member of it."""

    leaf: Int64  # the leaves in the order of the ways
    start: Int64  # members of leaf l are start[l] … start[l + 1] − 1
    member: Int32  # the player
    ratio: FloatArray  # product of the shares of cover that the member's splits send this way
    edge_start: Int64  # splits of member q are edge[edge_start[q] : edge_start[q + 1]]
    edge: Int32  # 2·node + (1 if the way goes left)
    widest: int  # the most members of a leaf


INTS = ("node", "column", "player", "slot", "inner", "parent", "level", "turn", "above", "width")
FLAGS = ("left_first", "nan_left", "special", "is_root")
NUMBERS = ("limit", "a", "b", "u", "v", "mean", "ratio")
STEP = np.dtype(
    [
        (name, kind)
        for kind, names in (("i4", INTS), ("?", FLAGS), ("f8", NUMBERS))
        for name in names
    ],
    align=True,
)
"""An inner node with all that loops ask about it; its children are in the order of work.

``slot``: of its categories, or −1; ``inner``: how many of the children are inner nodes, if one is,
it is the first; ``left_first``: whether the left child is the first; ``special``: whether it does
more than compare numbers; ``limit``: x goes left if it is at most that, where missing goes left:
right if −x is at most that; ``a``, ``b``: the shares of the cover that go to the children, which
need not add up to one; ``u``, ``v``: the values of children that are leaves, and ``mean``: that of
all leaves below, by cover; ``parent``: how many steps later its parent comes, ``turn``: whether it
is the first or second child (0, 1). For ``level``, ``above``, ``width`` and ``ratio`` see
`point_kernels.find_ancestors`.
"""


class Groups(NamedTuple):
    """The steps of an ensemble, cut into G groups of whole trees with players of their own."""

    steps: Steps  # (I,) which ask about a group's players by their place in it
    first_step: Int64  # (G + 1,) of each group
    first_player: Int64  # (G + 1,) in `who`
    who: Int64  # the players of the groups, one group after the other


@dataclass(frozen=True)
class Ensemble:
    """Σ of trees + offset, for one output: the I inner nodes of all trees, then their L leaves."""

    roots: Int32  # (T,) root of each tree
    left: Int32  # (I,) of inner nodes, as all up to `cat_slot`
    right: Int32
    column: Int32
    player: Int32
    threshold: FloatArray
    nan_left: BoolArray
    zero_missing: BoolArray
    cat_slot: Int32
    cat_start: Int64  # where the words of each set of categories begin
    cat_words: npt.NDArray[np.uint32]  # the sets as bits
    member_left: BoolArray  # which side the members of each set go
    value: FloatArray  # (L,) of leaves
    cover: FloatArray  # (I + L,) training weight of all nodes
    offset: float = 0.0
    single: bool = (
        False  # whether values are rounded to float32 before they are compared, as the library does
    )

    def of_players(self, owner: IntArray) -> Self:
        """The ensemble whose splits ask about the player of each column."""
        return replace(self, player=owner.astype(np.int32)[self.column])

    @cached_property
    def n_players(self) -> int:
        """Players up to the last one that a split asks about."""
        return int(self.player.max(initial=-1)) + 1

    def levels(self) -> Iterator[Int32]:
        """Inner nodes by the splits above them."""
        level = self.roots
        while len(inner := level[level < len(self.left)]):
            yield inner
            level = np.concatenate([self.left[inner], self.right[inner]])

    @cached_property
    def depth(self) -> int:
        """Splits on the longest path."""
        return sum(1 for _ in self.levels())

    @property
    def widest(self) -> int:
        """An upper bound on the distinct players that one path asks about."""
        return min(self.depth, np.unique(self.player).size)

    @cached_property
    def paths(self) -> Paths:
        n_inner = len(self.left)
        L = len(self.value)
        children = (np.concatenate([self.left[node], self.right[node]]) for node in self.levels())
        n_edges = sum(
            at * int((level >= n_inner).sum()) for at, level in enumerate(children, start=1)
        )
        start = np.zeros(L + 1, np.int64)
        edge_start = np.zeros(n_edges + 1, np.int64)
        leaf = np.empty(L, np.int64)
        member, edge, ratio = *np.empty((2, n_edges), np.int32), np.empty(n_edges)
        scratch = np.full(self.n_players, -1, np.int32), *np.empty((2, self.depth + 1), np.int32)
        trees = self.roots, self.left, self.right, self.player, self.cover
        path_kernels.fill_paths(*trees, *scratch, leaf, start, member, ratio, edge_start, edge)
        n = start[-1]
        widest = int(np.diff(start).max(initial=0))
        return Paths(
            leaf, start, member[:n].copy(), ratio[:n].copy(), edge_start[: n + 1], edge, widest
        )

    @cached_property
    def steps(self) -> Steps:
        """(I,) the inner nodes from the leaves up, in an order that holds few values at once."""
        node = self.parents_first(self.left_first)[::-1]
        n_inner = len(self.left)
        children = self.children(node)
        left_first = self.left_first[node]
        threshold = self.threshold[node]
        a, b = (self.shares(child, node) for child in children)
        fields = {name: vars(self)[name][node] for name in ("column", "player", "nan_left")}
        fields |= {
            "node": node,
            "slot": self.cat_slot[node],
            "inner": (children < n_inner).sum(axis=0),
        }
        fields |= {"left_first": left_first, "special": np.isin(node, self.special)}
        fields |= {"is_root": np.isin(node, self.roots), "a": a, "b": b}
        fields["limit"] = np.where(self.nan_left[node], -np.nextafter(threshold, np.inf), threshold)
        steps = np.zeros(n_inner, STEP)
        place = np.argsort(node)
        for name, values in fields.items():
            steps[name] = values
        for turn, child in enumerate(children):
            of = np.flatnonzero(child < n_inner)
            steps["turn"][place[child[of]]], steps["parent"][place[child[of]]] = (
                turn,
                of - place[child[of]],
            )
        return np.asarray(self.valued(steps, (self,))[0])

    def children(self, node: Int32) -> Int32:
        """(2, …) the children of inner nodes in the order of work."""
        sides = self.left[node], self.right[node]
        return np.where(self.left_first[node], sides, sides[::-1])

    def valued(self, steps: Steps, ensembles: Sequence[Self]) -> Steps:
        """(k, I) the steps (I,) with the values of the leaves of each of k ensembles with these
        nodes."""
        out = np.tile(steps, (len(ensembles), 1))
        children = self.children(steps["node"])
        for of_one, ensemble in zip(out, ensembles, strict=True):
            of_one["u"], of_one["v"] = np.concatenate([np.zeros(len(self.left)), ensemble.value])[
                children
            ]
            of_one["mean"] = ensemble.means[steps["node"]]
        return out

    @cached_property
    def groups(self) -> Groups:
        """Trees one after the other as long as they have few players together, so that few
        coalitions differ."""
        steps = self.steps.copy()
        d = self.n_players
        cuts = []
        together = set[int]()
        player = steps["player"]
        first = np.append(0, np.flatnonzero(steps["is_root"]) + 1)
        for begin, end in pairwise(first.tolist() if np.unique(player).size > PLAYERS else []):
            own = set(player[begin:end].tolist())
            together = together | own
            if len(together) > PLAYERS:
                together = own
                cuts.append(begin)
        group = np.searchsorted(cuts, np.arange(len(steps)), side="right")
        pairs, position = np.unique(group * d + player, return_inverse=True)
        every = np.arange(len(cuts) + 2)
        first_step = np.searchsorted(group, every)
        first_player = np.searchsorted(pairs, every * d)
        steps["player"] = position - first_player[group]
        return Groups(steps, first_step, first_player, pairs % max(d, 1))

    @property
    def lines(self) -> int:
        """The most values that are held at once."""
        return int(self.need.max(initial=0))

    @cached_property
    def need(self) -> Int32:
        """(I + L,) how many values are held at once below each node, if the child that needs more
        comes first."""
        need = np.zeros(len(self.cover), np.int32)
        for node in reversed([*self.levels()]):
            a = need[self.left[node]]
            b = need[self.right[node]]
            need[node] = np.maximum(np.maximum(a, b), np.minimum(a, b) + 1)
        return need

    @cached_property
    def left_first(self) -> BoolArray:
        """(I,) whether the left child of a node comes before the right one."""
        return np.asarray(self.need[self.left] >= self.need[self.right])

    def parents_first(self, left_last: BoolArray) -> Int32:
        """(I,) inner nodes from the last tree on, each before its children; left ones last where
        told (I,)."""
        first, last = np.where(left_last, (self.right, self.left), (self.left, self.right))
        levels = [*self.levels()]
        below = np.zeros(len(self.cover), np.int32)  # inner nodes from each node on
        for node in reversed(levels):
            below[node] = 1 + below[first[node]] + below[last[node]]
        place = np.zeros(len(self.cover), np.int32)
        of_trees = below[self.roots]
        place[self.roots] = of_trees.sum() - np.cumsum(of_trees)
        for node in levels:
            place[first[node]] = place[node] + 1
            place[last[node]] = place[node] + 1 + below[first[node]]
        return np.argsort(place[: len(self.left)]).astype(np.int32)

    @cached_property
    def special(self) -> IntArray:
        """The inner nodes that do more than compare numbers."""
        return np.flatnonzero(self.zero_missing | (self.cat_slot >= 0))

    def directions(self, X: FloatArray) -> BoolArray:
        """(n, nodes): whether each row goes left at each inner node."""
        splits = self.column, self.threshold, self.nan_left, self.special, self.cat_slot
        out = np.empty((len(X), len(self.left)), np.bool_)
        leaf_kernels.directions(self._compared(X), *splits, self._categories, out)
        return out

    @cached_property
    def mean_by_cover(self) -> float:
        """The path-dependent game of no players, the same at every row."""
        return self.offset + float(self.means[self.roots].sum())

    @cached_property
    def means(self) -> FloatArray:
        """(I + L,) of each node the mean by cover of the leaves below it."""
        means = np.concatenate([np.zeros(len(self.left)), self.value])
        for node in reversed([*self.levels()]):
            means[node] = sum(
                self.shares(child, node) * means[child]
                for child in (self.left[node], self.right[node])
            )
        return means

    def shares(self, child: Int32, node: Int32) -> FloatArray:
        """Of the cover of each node the part that goes to its child; 0 where there is none."""
        return np.divide(
            self.cover[child], self.cover[node], out=np.zeros(len(node)), where=self.cover[node] > 0
        )

    @cached_property
    def constant(self) -> float:
        """What a prediction has without any split."""
        n_inner = len(self.left)
        return self.offset + float(self.value[self.roots[self.roots >= n_inner] - n_inner].sum())

    def masked_values(self, X: FloatArray, row: IntArray, coalition: BoolArray) -> FloatArray:
        """(N,) the path-dependent game of row ``X[row[t]]`` at coalition t (N, d)."""
        total = np.full(len(row), self.constant)
        masked = self._compared(X), row, np.ascontiguousarray(coalition)
        lane_kernels.masked_values(*masked, self.steps, self.lines, self._categories, total)
        return total

    def shapley_values(
        self, X: FloatArray, Z: FloatArray, weights: FloatArray, d: int
    ) -> FloatArray:
        """(n, d) of the interventional game of rows X (n, c) and absent rows Z (B, c) with weights
        (B,)."""
        paths = self.paths
        goes = [pattern_kernels.in_words(self.directions(rows)) for rows in (X, Z)]
        ways = self.value[paths.leaf], paths.start, paths.member, paths.edge_start, paths.edge
        table = coefficient_table(d, paths.widest).mean(axis=1)
        out = np.zeros((len(X), d))
        path_kernels.interventional(*goes, weights, *ways, np.append(table, 0.0), out)
        return out

    def _compared(self, X: FloatArray) -> FloatArray:
        """The rows X as numbers that thresholds are compared with."""
        return np.ascontiguousarray(X.astype(np.float32).astype(np.float64) if self.single else X)

    @property
    def _categories(self) -> tuple[Any, ...]:
        """Sets of categories as kernels read them."""
        return self.cat_start, self.cat_words, self.member_left

    def predict(self, X: FloatArray) -> FloatArray:
        """(n,) values of whole rows."""
        return self.walk(self.directions(X))

    def walk(self, goes: BoolArray) -> FloatArray:
        """(n,) values of whole rows with directions `goes` (n, I), by walking the trees."""
        total = np.full(len(goes), self.offset)
        leaf_kernels.walk_trees(goes, self.roots, self.left, self.right, self.value, total)
        return total


def alike(ensembles: Iterable[Ensemble]) -> list[tuple[Ensemble, ...]]:
    """The ensembles; those together that follow each other and differ in nothing but `value` and
    `offset`."""
    names = {field.name for field in fields(Ensemble)} - {"value", "offset"}
    return [
        tuple(some)
        for _, some in groupby(
            ensembles, lambda e: [np.asarray(vars(e)[name]).tobytes() for name in names]
        )
    ]


def pack(trees: Sequence[Tree], scale: float = 1.0, single: bool = False) -> Ensemble:
    """The nodes of `trees`, leaf values times `scale`; inner ones come first, so ``node <
    len(left)`` parts them."""
    sizes = np.array([np.size(tree.left) for tree in trees], dtype=np.intp)
    roots = np.cumsum(sizes) - sizes

    def joined(name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """One value for each node of each tree, in the order of `trees`."""
        values = (np.asarray(vars(tree)[name], dtype=dtype) for tree in trees)
        return np.concatenate([np.zeros(0, dtype), *map(np.broadcast_to, values, sizes)])

    left = joined("left", np.intp)
    right = joined("right", np.intp)
    inner = np.flatnonzero(left >= 0)
    leaf = np.flatnonzero(left < 0)
    order = np.concatenate([inner, leaf])
    number = np.empty(len(order), dtype=np.int32)
    number[order] = np.arange(len(order))
    first = np.repeat(roots, sizes)[inner]  # children are counted from the root of their own tree
    splits = {
        "column": np.int32,
        "threshold": np.float64,
        "nan_left": np.bool_,
        "zero_missing": np.bool_,
    }
    of_inner: dict[str, Any] = {name: joined(name, dtype)[inner] for name, dtype in splits.items()}
    cat_slot, cat_start, cat_words, member_left = _packed_categories(trees, roots, len(order))
    return Ensemble(
        roots=number[roots],
        left=number[left[inner] + first],
        right=number[right[inner] + first],
        **of_inner,
        player=of_inner["column"],
        cat_slot=cat_slot[inner],
        cat_start=cat_start,
        cat_words=cat_words,
        member_left=member_left,
        value=joined("value", np.float64)[leaf] * scale,
        cover=joined("cover", np.float64)[order],
        single=single,
    )


def _packed_categories(trees: Sequence[Tree], roots: IntArray, n_nodes: int) -> tuple[Any, ...]:
    """Sets of categories as bits: slot of each node, where each slot's words begin, the words, the
    side."""
    slots = np.full(n_nodes, -1, dtype=np.int32)
    starts = [0]
    words = [np.zeros(0, np.uint32)]
    sides: list[bool] = []
    for root, tree in zip(roots, trees, strict=True):
        for node, codes in tree.categories.items():
            slots[root + node] = len(sides)
            bits = np.zeros(max(codes, default=0) // 32 + 1, dtype=np.uint32)
            for code in codes:
                bits[code // 32] |= np.uint32(1 << (code % 32))
            words.append(bits)
            starts.append(starts[-1] + len(bits))
            sides.append(tree.categories_left)
    return slots, np.array(starts, np.int64), np.concatenate(words), np.array(sides, dtype=np.bool_)


def coefficient_table(d: int, widest: int) -> FloatArray:
    """K(s, t)[j] = C(d−s, j−t) / C(d−1, j−1), the share of a leaf that size j sees, for 1 ≤ t ≤ s ≤
    `widest`.

    K(s, t), row ``level(s) + t − 1``, is a product of ratios at most one, exact at any d without
    overflow: K(s, t) = K(s−1, t) · (d−j−s+t+1) / (d−s+1) and K(s, s) = K(s−1, s−1) · (j−s+1) /
    (d−s+1).
    """
    table = np.ones((leaf_kernels.level(widest + 1), d))
    j = np.arange(1, d + 1, dtype=np.float64)
    for s in range(2, widest + 1):
        here = leaf_kernels.level(s)
        before = table[leaf_kernels.level(s - 1) :]
        for t in range(1, s):
            table[here + t - 1] = before[t - 1] * np.maximum(d - j - (s - t - 1), 0) / (d - s + 1)
        table[here + s - 1] = before[s - 2] * np.maximum(j - s + 1, 0) / (d - s + 1)
    return table
