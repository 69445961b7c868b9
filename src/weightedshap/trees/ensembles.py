"""Ensembles of trees as flat arrays, and the layouts in which kernels read them.

Three kinds of games are computed from them. Hidden features count as missing (tree surrogates),
take the values of background rows (interventional), or their splits are averaged by cover, the
training weight of a node (path-dependent).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap.trees.kernels import coalitions as coalition_kernels
from weightedshap.trees.kernels import paths as path_kernels
from weightedshap.trees.kernels import splits as split_kernels
from weightedshap.trees.kernels.coalitions import TreeGroups
from weightedshap.trees.kernels.leaf_lists import level
from weightedshap.trees.kernels.paths import PathTable
from weightedshap.trees.kernels.splits import Splits, TreeNodes

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Steps = npt.NDArray[np.void]  # of `STEP`

# Trees of a group share the coalitions along orders, so together they have at most this many
# players; a single tree may have more. Larger groups prepare their coalitions for more trees,
# smaller ones have fewer coalitions that differ. Timed along orders of 2,000 and 5,000 players: at
# half 16 % faster and 12 % slower, at double 50 % and 36 % slower.
PLAYERS_PER_GROUP = 512


@dataclass(frozen=True)
class Tree:
    """One tree as arrays with an entry for each node.

    Node 0 is the root, and a leaf has ``left = −1``. Numbers up to the threshold go left.
    ``categories[node]`` are the codes that go left, or right if ``categories_left`` is False.
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


# A step is the record of an inner node, with all that the loops read. Its first child is the one
# that is evaluated first.
STEP = np.dtype(
    [
        ("node", "i4"),
        ("column", "i4"),
        ("player", "i4"),
        # The index of its set of categories, or −1.
        ("slot", "i4"),
        # How many of the children are inner nodes; if one is, it is the first.
        ("inner", "i4"),
        # How many steps after this one the step of its parent comes.
        ("parent", "i4"),
        # For `level`, `above`, `width` and `ratio` see `kernels.quadrature.find_ancestors`.
        ("level", "i4"),
        # Whether it is the first (0) or the second child (1).
        ("turn", "i4"),
        ("above", "i4"),
        ("width", "i4"),
        # Whether the left child is the first.
        ("left_first", "?"),
        ("nan_left", "?"),
        # Whether it splits by category or takes zero for missing.
        ("special", "?"),
        ("is_root", "?"),
        # x goes left if it is at most the limit. Where missing goes left: right if −x is at most
        # the limit.
        ("limit", "f8"),
        # The shares of the cover that go to the children; they need not add up to one.
        ("a", "f8"),
        ("b", "f8"),
        # The values of the children that are leaves.
        ("u", "f8"),
        ("v", "f8"),
        # The mean of all leaves below, by cover.
        ("mean", "f8"),
        ("ratio", "f8"),
    ],
    align=True,
)


@dataclass(frozen=True)
class Ensemble:
    """The sum of several trees plus an offset, which predicts one output.

    Nodes are numbered: first the I inner nodes of all trees, then their L leaves.
    """

    roots: Int32  # (T,) root of each tree
    left: Int32  # (I,) of inner nodes, like all arrays up to `cat_slot`
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
    # Whether values are rounded to float32 before they are compared, as the library does.
    single: bool = False

    def with_players(self, owner: IntArray) -> Self:
        """Return the ensemble with splits assigned to players: column c belongs to ``owner[c]``."""
        return replace(self, player=owner.astype(np.int32)[self.column])

    @cached_property
    def n_players(self) -> int:
        """One plus the highest number of a player that any split uses."""
        return int(self.player.max(initial=-1)) + 1

    def levels(self) -> Iterator[Int32]:
        """Yield the inner nodes level by level: those with 0, 1, 2, … splits above them."""
        nodes = self.roots
        while len(inner := nodes[nodes < len(self.left)]):
            yield inner
            nodes = np.concatenate([self.left[inner], self.right[inner]])

    @cached_property
    def depth(self) -> int:
        """The number of splits on the longest path."""
        return sum(1 for _ in self.levels())

    @property
    def widest(self) -> int:
        """An upper bound on the number of distinct players on any path."""
        return min(self.depth, np.unique(self.player).size)

    @cached_property
    def paths(self) -> PathTable:
        """The paths from the roots to all leaves, their splits grouped by player."""
        n_inner = len(self.left)
        n_leaves = len(self.value)
        n_edges = 0
        for depth, node in enumerate(self.levels(), start=1):
            children = np.concatenate([self.left[node], self.right[node]])
            n_edges += depth * int((children >= n_inner).sum())

        table = PathTable(
            leaf=np.empty(n_leaves, np.int64),
            start=np.zeros(n_leaves + 1, np.int64),
            member=np.empty(n_edges, np.int32),
            ratio=np.empty(n_edges),
            edge_start=np.zeros(n_edges + 1, np.int64),
            edge=np.empty(n_edges, np.int32),
            widest=0,
        )
        path_kernels.fill_paths(
            self.nodes,
            self.player,
            self.cover,
            # Scratch: a slot for each player, and room for one path.
            np.full(self.n_players, -1, np.int32),
            np.empty(self.depth + 1, np.int32),
            np.empty(self.depth + 1, np.int32),
            table,
        )

        # There was room for as many members as splits, but a player may occur on a path repeatedly.
        n_members = table.start[-1]
        return table._replace(
            member=table.member[:n_members].copy(),
            ratio=table.ratio[:n_members].copy(),
            edge_start=table.edge_start[: n_members + 1],
            widest=int(np.diff(table.start).max(initial=0)),
        )

    @cached_property
    def steps(self) -> Steps:
        """The records (I,) of the inner nodes, each after its children.

        They are ordered so that few intermediate values are stored at a time.
        """
        n_inner = len(self.left)
        node = self.parents_first(self.left_first)[::-1]
        position = np.argsort(node)
        children = self.children(node)  # (2, I)
        threshold = self.threshold[node]

        steps = np.zeros(n_inner, STEP)
        steps["node"] = node
        steps["column"] = self.column[node]
        steps["player"] = self.player[node]
        steps["nan_left"] = self.nan_left[node]
        steps["slot"] = self.cat_slot[node]
        steps["inner"] = (children < n_inner).sum(axis=0)
        steps["left_first"] = self.left_first[node]
        steps["special"] = np.isin(node, self.splits.special)
        steps["is_root"] = np.isin(node, self.roots)
        steps["limit"] = np.where(self.nan_left[node], -np.nextafter(threshold, np.inf), threshold)
        steps["a"] = self.shares(children[0], node)
        steps["b"] = self.shares(children[1], node)
        for turn, child in enumerate(children):
            parent = np.flatnonzero(child < n_inner)
            inner_child = position[child[parent]]
            steps["turn"][inner_child] = turn
            steps["parent"][inner_child] = parent - inner_child
        return np.asarray(self.with_leaf_values(steps, (self,))[0])

    def children(self, node: Int32) -> Int32:
        """Return the two children (2, …) of inner nodes, in the order of their evaluation."""
        sides = self.left[node], self.right[node]
        return np.where(self.left_first[node], sides, sides[::-1])

    def with_leaf_values(self, steps: Steps, ensembles: Sequence[Self]) -> Steps:
        """Return copies (k, I) of the steps (I,), with the leaf values of each of k ensembles.

        The ensembles have the same nodes.
        """
        out = np.tile(steps, (len(ensembles), 1))
        children = self.children(steps["node"])
        for steps_of_one, ensemble in zip(out, ensembles, strict=True):
            values = np.concatenate([np.zeros(len(self.left)), ensemble.value])[children]
            steps_of_one["u"] = values[0]
            steps_of_one["v"] = values[1]
            steps_of_one["mean"] = ensemble.means[steps["node"]]
        return out

    @cached_property
    def groups(self) -> TreeGroups:
        """The trees, divided into groups that each use few players.

        Few coalitions then differ among the players of a group.
        """
        steps = self.steps.copy()
        d = self.n_players
        player = steps["player"]
        group = np.searchsorted(self._group_starts(), np.arange(len(steps)), side="right")
        n_groups = group.max(initial=0) + 1

        # Number the players of each group.
        pairs, position = np.unique(group * d + player, return_inverse=True)
        first_player = np.searchsorted(pairs, np.arange(n_groups + 1) * d)
        steps["player"] = position - first_player[group]
        return TreeGroups(
            steps=steps,
            first_step=np.searchsorted(group, np.arange(n_groups + 1)),
            first_player=first_player,
            player=pairs % max(d, 1),
        )

    def _group_starts(self) -> list[int]:
        """Return the positions in `steps` at which the second, third, … group of trees begins.

        Consecutive trees are in one group as long as they have few players together.
        """
        player = self.steps["player"]
        if np.unique(player).size <= PLAYERS_PER_GROUP:
            return []
        starts = []
        players = set[int]()
        first_step = np.append(0, np.flatnonzero(self.steps["is_root"]) + 1)
        for begin, end in pairwise(first_step.tolist()):
            players_of_tree = set(player[begin:end].tolist())
            players = players | players_of_tree
            if len(players) > PLAYERS_PER_GROUP:
                players = players_of_tree
                starts.append(begin)
        return starts

    @property
    def stack_size(self) -> int:
        """The largest number of values stored at once as a tree is evaluated from its leaves up."""
        return int(self.stack_need.max(initial=0))

    @cached_property
    def stack_need(self) -> Int32:
        """How many values must be stored at once to evaluate the subtree of each node, (I + L,).

        The child that needs more is evaluated first, because then the number is smallest.
        """
        need = np.zeros(len(self.cover), np.int32)
        for node in reversed([*self.levels()]):
            a = need[self.left[node]]
            b = need[self.right[node]]
            need[node] = np.maximum(np.maximum(a, b), np.minimum(a, b) + 1)
        return need

    @cached_property
    def left_first(self) -> BoolArray:
        """Whether the left child of each inner node is evaluated before the right one, (I,)."""
        return np.asarray(self.stack_need[self.left] >= self.stack_need[self.right])

    def parents_first(self, left_last: BoolArray) -> Int32:
        """Return the inner nodes (I,) with each before its children, and the last tree first.

        `left_last` (I,) says at which nodes the left child comes after the right one.
        """
        first, last = np.where(left_last, (self.right, self.left), (self.left, self.right))
        levels = [*self.levels()]

        # The number of inner nodes in the subtree of each node.
        below = np.zeros(len(self.cover), np.int32)
        for node in reversed(levels):
            below[node] = 1 + below[first[node]] + below[last[node]]

        position = np.zeros(len(self.cover), np.int32)
        tree_sizes = below[self.roots]
        position[self.roots] = tree_sizes.sum() - np.cumsum(tree_sizes)
        for node in levels:
            position[first[node]] = position[node] + 1
            position[last[node]] = position[node] + 1 + below[first[node]]
        return np.argsort(position[: len(self.left)]).astype(np.int32)

    @cached_property
    def nodes(self) -> TreeNodes:
        """The roots, and the children of all inner nodes, as a tuple for the kernels."""
        return TreeNodes(roots=self.roots, left=self.left, right=self.right)

    @cached_property
    def splits(self) -> Splits:
        """The split conditions of all inner nodes, as a tuple for the kernels."""
        return Splits(
            column=self.column,
            threshold=self.threshold,
            nan_left=self.nan_left,
            special=np.flatnonzero(self.zero_missing | (self.cat_slot >= 0)),
            category_slot=self.cat_slot,
            category_start=self.cat_start,
            category_words=self.cat_words,
            members_left=self.member_left,
        )

    def goes_left(self, X: FloatArray) -> BoolArray:
        """Return whether each row of X (n, c) goes left at each inner node, (n, I)."""
        out = np.empty((len(X), len(self.left)), np.bool_)
        split_kernels.find_directions(self._as_compared(X), self.splits, out)
        return out

    @cached_property
    def mean_by_cover(self) -> float:
        """The value v(∅) of the empty coalition in the path-dependent game, equal at all rows."""
        return self.offset + float(self.means[self.roots].sum())

    @cached_property
    def means(self) -> FloatArray:
        """The mean of the leaf values below each node, weighted by cover, (I + L,)."""
        means = np.concatenate([np.zeros(len(self.left)), self.value])
        for node in reversed([*self.levels()]):
            left = self.left[node]
            right = self.right[node]
            means[node] = (
                self.shares(left, node) * means[left] + self.shares(right, node) * means[right]
            )
        return means

    def shares(self, child: Int32, node: Int32) -> FloatArray:
        """Return the share of the cover of each `node` that its `child` has; 0 without cover."""
        cover = self.cover[node]
        return np.divide(self.cover[child], cover, out=np.zeros(len(node)), where=cover > 0)

    @cached_property
    def constant(self) -> float:
        """The part of predictions that depends on no split: the offset and trees of one leaf."""
        n_inner = len(self.left)
        single_leaves = self.roots[self.roots >= n_inner] - n_inner
        return self.offset + float(self.value[single_leaves].sum())

    def warm_up(self) -> Self:
        """Compute and cache now what `goes_left` and `masked_values` need; return the ensemble."""
        _ = self.steps
        _ = self.depth
        _ = self.stack_size
        _ = self.nodes
        _ = self.splits
        _ = self.constant
        return self

    def masked_values(self, X: FloatArray, row: IntArray, coalition: BoolArray) -> FloatArray:
        """Return N path-dependent values, the t-th of row ``X[row[t]]`` at ``coalition[t]``."""
        total = np.full(len(row), self.constant)
        coalition_kernels.masked_values(
            self._as_compared(X),
            row,
            np.ascontiguousarray(coalition),
            self.steps,
            self.stack_size,
            self.splits,
            total,
        )
        return total

    def predict(self, X: FloatArray) -> FloatArray:
        """Return the predictions (n,) of the ensemble for rows X (n, c)."""
        return self.sum_leaves(self.goes_left(X))

    def sum_leaves(self, goes_left: BoolArray) -> FloatArray:
        """Return the predictions (n,) of rows, given whether each goes left at each node (n, I)."""
        total = np.full(len(goes_left), self.offset)
        split_kernels.add_predictions(goes_left, self.nodes, self.value, total)
        return total

    def _as_compared(self, X: FloatArray) -> FloatArray:
        """Return rows X in the precision in which they are compared with thresholds."""
        if self.single:
            X = X.astype(np.float32).astype(np.float64)
        return np.ascontiguousarray(X)


def group_by_nodes(ensembles: Iterable[Ensemble]) -> list[tuple[Ensemble, ...]]:
    """Group consecutive ensembles that differ only in their leaf values and offsets."""
    names = {field.name for field in fields(Ensemble)} - {"value", "offset"}

    def nodes(ensemble: Ensemble) -> list[bytes]:
        """Return, as bytes, all arrays that must be equal for ensembles to be in the same group."""
        return [np.asarray(vars(ensemble)[name]).tobytes() for name in names]

    return [tuple(group) for _, group in groupby(ensembles, nodes)]


def pack_trees(trees: Sequence[Tree], scale: float = 1.0, single: bool = False) -> Ensemble:
    """Pack trees into one ensemble, with leaf values multiplied by `scale`.

    Inner nodes are numbered before leaves, so inner nodes have ``node < len(left)``. With `single`,
    values are rounded to float32 before they are compared.
    """
    sizes = np.array([np.size(tree.left) for tree in trees], dtype=np.intp)
    roots = np.cumsum(sizes) - sizes

    def concatenate(name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return the attribute `name` of all trees as one array with an entry for each node."""
        values = (np.asarray(vars(tree)[name], dtype=dtype) for tree in trees)
        return np.concatenate([np.zeros(0, dtype), *map(np.broadcast_to, values, sizes)])

    left = concatenate("left", np.intp)
    right = concatenate("right", np.intp)
    inner = np.flatnonzero(left >= 0)
    leaf = np.flatnonzero(left < 0)
    order = np.concatenate([inner, leaf])
    number = np.empty(len(order), dtype=np.int32)
    number[order] = np.arange(len(order))

    # In a tree, children are numbered from the root of that tree.
    root = np.repeat(roots, sizes)[inner]
    column = concatenate("column", np.int32)[inner]
    cat_slot, cat_start, cat_words, member_left = _pack_categories(trees, roots, len(order))
    return Ensemble(
        roots=number[roots],
        left=number[left[inner] + root],
        right=number[right[inner] + root],
        column=column,
        player=column,
        threshold=concatenate("threshold", np.float64)[inner],
        nan_left=concatenate("nan_left", np.bool_)[inner],
        zero_missing=concatenate("zero_missing", np.bool_)[inner],
        cat_slot=cat_slot[inner],
        cat_start=cat_start,
        cat_words=cat_words,
        member_left=member_left,
        value=concatenate("value", np.float64)[leaf] * scale,
        cover=concatenate("cover", np.float64)[order],
        single=single,
    )


def _pack_categories(trees: Sequence[Tree], roots: IntArray, n_nodes: int) -> tuple[Any, ...]:
    """Return the sets of categories of all splits as bits.

    The four arrays are: the set of each node, or −1; the start of each set among the words; the
    words of 32 bits; and whether the members of each set go left.
    """
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
    """Return the share of its value that a leaf contributes to each Δ_j, as a table (…, d).

    The share is K(s, t)[j] = C(d−s, j−t) / C(d−1, j−1), if the leaf has s members, the players on
    its path, and t of them are known, with 1 ≤ t ≤ s ≤ `widest`. K(s, t) is row
    ``level(s) + t − 1``. It is a product of ratios of at most one, so it is accurate at any d,
    without overflow: K(s, t) = K(s−1, t) · (d−j−s+t+1) / (d−s+1) and K(s, s) =
    K(s−1, s−1) · (j−s+1) / (d−s+1).
    """
    table = np.ones((level(widest + 1), d))
    j = np.arange(1, d + 1, dtype=np.float64)
    for s in range(2, widest + 1):
        here = level(s)
        before = table[level(s - 1) :]
        for t in range(1, s):
            table[here + t - 1] = before[t - 1] * np.maximum(d - j - (s - t - 1), 0) / (d - s + 1)
        table[here + s - 1] = before[s - 2] * np.maximum(j - s + 1, 0) / (d - s + 1)
    return table


def values_of_rows(ensembles: Sequence[Ensemble], X: FloatArray) -> FloatArray:
    """Return the predictions (N, k) of k ensembles for rows X (N, c), with no feature hidden."""
    row = np.arange(len(X))
    everything = np.ones((len(X), 1), dtype=np.bool_)
    values = [ensemble.masked_values(X, row, everything) for ensemble in ensembles]
    return np.stack(values, axis=1)
