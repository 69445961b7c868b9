"""Compiled loops over trees: the leaves that a row can reach if features may be hidden.

Hidden features take the values of an absent (background) row. Where a split sends the explained row
x and the absent row to different sides, its player decides: a known player follows x, a hidden one
the absent row. So every leaf is an indicator ``1[A ⊆ S, B ∩ S = ∅]`` of players A that must be
known and B that must be hidden. The leaves that can be reached are listed once for each row; Δ and
values are sums over that list, see `LeafLists`.

Inner nodes are numbered before leaves: node n_inner + l is the leaf with ``leaf_value[l]``.
`weightedshap.trees.background` calls the loops; `paths`, `patterns` and the table of coefficients
take `level` from here, and `paths` takes `lift_to_widest`.
"""

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from weightedshap._checks import BoolArray, FloatArray
from weightedshap._compile import compiled, inlined

KNOWN = 1
HIDDEN = 2
# Orders that are evaluated together. A loop over fewer is unrolled, and then not done in words of
# the processor; more are computed for nothing where there are fewer orders. Timed with 10 to 100
# orders: at half 45 to 64 % slower, at double between 4 % slower and, with 100 orders, 13 % faster.
LANES = 32


class LeafLists(NamedTuple):
    """The leaves that each of n rows can reach, in the order in which a tree is traversed.

    Row r has leaves ``first[r, 0] … first[r + 1, 0] − 1``. A leaf counts at coalition S if the
    players A are in S and the players B are not; both are its members. The members of leaf l are
    the first ``shared[l]`` of the leaf before it, and ``own[l]`` more. The latter are concatenated
    in `member`, from ``first[r, 1]`` on: p if player p is in A, ~p if it is in B.
    """

    first: npt.NDArray[np.int64]  # (n + 1, 2)
    value: FloatArray  # (k, l) of each output, or (l,) of one output
    shared: npt.NDArray[Any]  # (l,)
    own: npt.NDArray[Any]  # (l,)
    member: npt.NDArray[Any]

    def of_output(self, output: int) -> Self:
        """Return the same lists with the leaf values of one output only."""
        return self._replace(value=self.value[output])


class WalkScratch(NamedTuple):
    """The working memory for traversing one tree."""

    side: npt.NDArray[np.int8]  # (players,) KNOWN, HIDDEN, or 0 if no split has decided
    path: npt.NDArray[np.int32]  # (depth,) the players that are decided, ~p if hidden
    hidden_child: npt.NDArray[np.int32]  # (depth,) the child to continue at if they are hidden


def list_leaves(
    x_left: BoolArray,
    children_by_side: npt.NDArray[np.int32],
    absent_weight: FloatArray,
    roots: npt.NDArray[np.int32],
    leaf_value: FloatArray,
    n_players: int,
    depth: int,
) -> tuple[FloatArray, LeafLists]:
    """Return predictions (k, n) of n rows, without offsets, and the leaves that rows can reach.

    `x_left` (n, I) says whether rows go left, `absent_weight` (B,) weighs the absent rows,
    `leaf_value` (k, L) are the values of the outputs. For the rest see `fill_leaves`.
    """
    n = len(x_left)
    k = len(leaf_value)
    member_type = np.int16 if n_players < 2**15 else np.int32
    scratch = WalkScratch(
        side=np.zeros(n_players, np.int8),
        path=np.empty(depth, np.int32),
        hidden_child=np.empty(depth, np.int32),
    )
    full = np.zeros((k, n))
    lists = LeafLists(
        first=np.zeros((n + 1, 2), np.int64),
        value=np.empty((k, 0)),
        shared=np.empty(0, member_type),
        own=np.empty(0, member_type),
        member=np.empty(0, member_type),
    )
    done = 0
    while done < n:
        # How much room all rows take, if they are like those that are done.
        leaves, members = (n * lists.first[done]) // max(done, 1)
        leaf_room = max(1024, lists.value.shape[-1], leaves)
        member_room = max(1024, len(lists.member), members, depth)
        lists = LeafLists(
            first=lists.first,
            value=grown(lists.value, leaf_room),
            shared=grown(lists.shared, leaf_room),
            own=grown(lists.own, leaf_room),
            member=grown(lists.member, member_room),
        )
        done = fill_leaves(
            x_left, children_by_side, absent_weight, roots, leaf_value, scratch, done, lists, full
        )
    leaves, members = lists.first[-1]
    return full, LeafLists(
        first=lists.first,
        value=lists.value[:, :leaves],
        shared=lists.shared[:leaves],
        own=lists.own[:leaves],
        member=lists.member[:members],
    )


def grown(array: Any, size: int) -> Any:
    """Return a copy of the array whose last axis has room for twice `size` entries."""
    bigger = np.empty((*array.shape[:-1], 2 * size), array.dtype)
    bigger[..., : array.shape[-1]] = array
    return bigger


@compiled
def fill_leaves(
    x_left, children_by_side, absent_weight, roots, leaf_value, scratch, start_row, lists, full
):
    """List the leaves of rows from `start_row` on; return the first row that did not fit, or n.

    Leaf (A, B) that x reaches against absent row b has its value times ``absent_weight[b]``.
    ``children_by_side[b, node]`` are the child that x goes to if it parts from absent row b, the
    child that b goes to, the player, and whether b goes left. ``full[output, row]`` is filled in
    with the sum of the leaves that x itself reaches.
    """
    side = scratch.side
    path = scratch.path
    hidden_child = scratch.hidden_child
    first = lists.first
    value = lists.value
    shared = lists.shared
    own = lists.own
    member = lists.member
    leaves = first[start_row, 0]
    members = first[start_row, 1]
    n_inner = children_by_side.shape[1]
    for row in range(start_row, x_left.shape[0]):
        for output in range(full.shape[0]):
            full[output, row] = 0.0
        for absent in range(children_by_side.shape[0]):
            for root in roots:
                # One tree. `side` is 0 for all players here, and again when it is done.
                node = root
                length = 0
                kept = 0
                # The first leaf is the one that x itself reaches: no player is hidden on its path.
                is_own_leaf = absent == 0
                while True:
                    # Go down to a leaf. `path[:length]` are the players decided so far, and `side`
                    # says how; those met here for the first time are known.
                    while node < n_inner:
                        player = children_by_side[absent, node, 2]
                        hidden_way = children_by_side[absent, node, 1]
                        if x_left[row, node] == children_by_side[absent, node, 3]:
                            node = hidden_way
                            continue
                        if side[player] == 0:
                            path[length] = player
                            hidden_child[length] = hidden_way
                            side[player] = KNOWN
                            length += 1
                        if side[player] == KNOWN:
                            node = children_by_side[absent, node, 0]
                        else:
                            node = hidden_way

                    # Without room for the leaf, the row is given up, and listed anew later.
                    if leaves >= value.shape[1] or members + length > member.shape[0]:
                        for k in range(length):
                            side[max(path[k], ~path[k])] = 0
                        return row

                    # List the leaf: of its members, the first `kept` are those of the leaf before.
                    for output in range(value.shape[0]):
                        value[output, leaves] = (
                            leaf_value[output, node - n_inner] * absent_weight[absent]
                        )
                        if is_own_leaf:
                            full[output, row] += leaf_value[output, node - n_inner]
                    is_own_leaf = False
                    shared[leaves] = kept
                    own[leaves] = length - kept
                    for k in range(kept, length):
                        member[members] = path[k]
                        members += 1
                    leaves += 1

                    # Go back up to the last player that is known, and hide it.
                    while length > 0 and path[length - 1] < 0:
                        length -= 1
                        side[~path[length]] = 0
                    if length == 0:
                        break
                    kept = length - 1
                    side[path[kept]] = HIDDEN
                    node = hidden_child[kept]
                    path[kept] = ~path[kept]
        first[row + 1, 0] = leaves
        first[row + 1, 1] = members
    return x_left.shape[0]


@compiled(fastmath={"contract"})
def semivalues(lists, table, out):
    """Write φ_w = Σ_j w_j Δ_j(x_i) of each row and weight vector w into ``out[row, w, i]``.

    `lists` are of one output. A leaf of value c with s members, a of them known, gives each known
    one +c · K(s, a) and each hidden one −c · K(s, a + 1), with K(s, t)[j] = C(d−s, j−t) / C(d−1,
    j−1); row ``level(s) + t − 1`` of `table` is K(s, t) times the weight vectors.
    """
    first = lists.first
    value = lists.value
    shared = lists.shared
    own = lists.own
    member = lists.member
    d = out.shape[2]
    # What players gain, by row of the table; players are numbered as they are met.
    gathered = np.zeros((table.shape[0], d + 7))
    slot = np.full(d, -1, np.int32)
    met = np.empty(d, np.int32)
    # The members of the leaf at hand as slots, ~slot if hidden, and how many before each are known.
    member_slot = np.empty(d, np.int32)
    n_known = np.zeros(d + 1, np.int32)
    for row in range(out.shape[0]):
        # Both are of one type all along, so that what is called is compiled once.
        widest = np.int64(0)
        n_met = 0
        begin = first[row, 1]
        for leaf in range(first[row, 0], first[row + 1, 0]):
            # Add the leaf's own members; the first `shared` stand in `member_slot` from the leaf
            # before.
            size = np.int64(shared[leaf])
            end = begin + own[leaf]
            for at in range(begin, end):
                is_known = member[at] >= 0
                player = member[at] if is_known else ~member[at]
                if slot[player] < 0:
                    slot[player] = n_met
                    met[n_met] = player
                    n_met += 1
                member_slot[size] = slot[player] if is_known else ~slot[player]
                n_known[size + 1] = n_known[size] + is_known
                size += 1
            begin = end
            widest = max(widest, size)

            # With s members, a of them known, `cell` is the row of K(s, a), and the next one that
            # of K(s, a + 1).
            cell = level(size) + n_known[size] - 1
            c = value[leaf]
            for k in range(size):
                if member_slot[k] >= 0:
                    gathered[cell, member_slot[k]] += c
                else:
                    gathered[cell + 1, ~member_slot[k]] -= c

        # All leaves are gathered; `gathered` and `slot` are as they began after this.
        lift_to_widest(gathered, widest, table, slot, met[:n_met], out[row])


@compiled
def level(s):
    """Return the row of `coefficient_table` at which the entries for leaves of s members begin."""
    return s * (s - 1) // 2


@inlined
def lift_to_widest(gathered, widest, table, slot, met, out):
    """Multiply sums by coefficients, to write φ_w of each player on the listed paths into `out`.

    That is ``out[w, met[i]] = Σ_{s,t} gathered[r, i] · table[r, w]`` with r = level(s) + t − 1. The
    i-th player met is p = ``met[i]``, with ``slot[p] = i``; others get 0. `gathered` and `slot` are
    left as they began, 0 and −1. All is first carried up to the widest leaf by Pascal's rule K(s,
    t) = K(s + 1, t) + K(s + 1, t + 1).
    """
    n_met = met.shape[0]
    # `gathered` has seven columns to spare: loops that end in a whole word of the processor are
    # faster.
    n = (met.shape[0] + 7) // 8 * 8
    # The last number stays zero, for players that were not met: their slot is −1.
    line = np.zeros(n + 1)

    # Carry up, size by size: after s, all that leaves of up to s members gave stands in the rows of
    # s + 1 members.
    for s in range(1, widest):
        here = level(s)
        below = level(s + 1)
        for i in range(n):
            gathered[below, i] += gathered[here, i]
        for t in range(1, s):
            for i in range(n):
                gathered[below + t, i] += gathered[here + t - 1, i] + gathered[here + t, i]
                gathered[here + t - 1, i] = 0.0
        for i in range(n):
            gathered[below + s, i] += gathered[below - 1, i]
            gathered[below - 1, i] = 0.0

    # Multiply the rows of the widest leaf by the table: four terms at a time, so that `line` is
    # loaded and stored a quarter as often, then the rest.
    top = level(widest)
    rest = level(widest + 1) - widest % 4
    for w in range(out.shape[0]):
        for i in range(n):
            line[i] = 0.0
        for t in range(top, rest, 4):
            s0 = table[t, w]
            s1 = table[t + 1, w]
            s2 = table[t + 2, w]
            s3 = table[t + 3, w]
            for i in range(n):
                two = s0 * gathered[t, i] + s1 * gathered[t + 1, i]
                line[i] += two + (s2 * gathered[t + 2, i] + s3 * gathered[t + 3, i])
        for t in range(rest, top + widest):
            share = table[t, w]
            for i in range(n):
                line[i] += share * gathered[t, i]
        for p in range(out.shape[1]):
            out[w, p] = line[slot[p]]

    # Clear what is left for the next row.
    for t in range(top, top + widest):
        for i in range(n):
            gathered[t, i] = 0.0
    for i in range(n_met):
        slot[met[i]] = -1


@compiled
def along(lists, orders, out):
    """Add the value at the first k players of order q of each row to ``out[row, q, k]``.

    `lists` are of one output. Leaf (A, B) is on for max rank(A) < k ≤ min rank(B), ranks counted
    from 0. Consecutive leaves share the first part of their members.
    """
    first = lists.first
    value = lists.value
    shared = lists.shared
    own = lists.own
    member = lists.member
    m = orders.shape[1]
    d = orders.shape[2]
    # Orders are looked at `LANES` at a time: ``ranks[p]`` has the ranks of player p as lanes and −d
    # for as many, and ``ranks[~p]`` has −1 and the negatives of its ranks. The largest of a leaf's
    # members, in `bounds`, tell when it goes on, and off.
    ranks = np.empty((2 * d, 2 * LANES), member.dtype)
    bounds = np.empty((d + 1, 2 * LANES), member.dtype)
    for lane in range(LANES):
        bounds[0, lane] = -1
        bounds[0, LANES + lane] = -d
        for p in range(d):
            ranks[p, lane] = -1
            ranks[p, LANES + lane] = -d
            ranks[~p, lane] = -1
            ranks[~p, LANES + lane] = -d
    # How the value of each lane changes from step to step.
    steps = np.empty((LANES, d + 2))
    for row in range(orders.shape[0]):
        for first_order in range(0, m, LANES):
            # Lay out the ranks of the next orders. Lanes beyond the last one keep what they had:
            # they are computed as well, but never read.
            lanes = min(LANES, m - first_order)
            for lane in range(lanes):
                for k in range(d):
                    p = orders[row, first_order + lane, k]
                    ranks[p, lane] = k
                    ranks[~p, LANES + lane] = -k
                for k in range(d + 2):
                    steps[lane, k] = 0.0

            # ``bounds[k]`` are the largest ranks of a leaf's first k members; the first `shared`
            # lines hold from the leaf before. A player in A has −d among the negatives, and one in
            # B −1 among the ranks, so that neither counts where it does not matter.
            begin = first[row, 1]
            always = 0.0
            for leaf in range(first[row, 0], first[row + 1, 0]):
                size = np.int64(shared[leaf])
                c = value[leaf]
                end = begin + own[leaf]
                for at in range(begin, end):
                    p = member[at]
                    for lane in range(2 * LANES):
                        bounds[size + 1, lane] = max(bounds[size, lane], ranks[p, lane])
                    size += 1
                begin = end

                # Which kind a leaf is, the first lane tells for all.
                if bounds[size, LANES] == -d:
                    # None of its members is hidden: once on, it stays.
                    for lane in range(lanes):
                        steps[lane, bounds[size, lane] + 1] += c
                elif bounds[size, 0] < 0:
                    # None is known: it is on from the start.
                    always += c
                    for lane in range(lanes):
                        steps[lane, 1 - bounds[size, LANES + lane]] -= c
                else:
                    # It is on in between, if it goes on before it would go off.
                    for lane in range(lanes):
                        if bounds[size, lane] + bounds[size, LANES + lane] < 0:
                            steps[lane, bounds[size, lane] + 1] += c
                            steps[lane, 1 - bounds[size, LANES + lane]] -= c

            # Values are the running sums of the steps.
            for lane in range(lanes):
                total = always
                for k in range(d + 1):
                    total += steps[lane, k]
                    out[row, first_order + lane, k] += total


@compiled
def values(lists, coalitions, out):
    """Add the value of each row at each coalition q to ``out[row, q]``, for one output.

    The value is the sum of the leaves (A, B) with A ⊆ S and B ∩ S = ∅.
    """
    first = lists.first
    value = lists.value
    shared = lists.shared
    own = lists.own
    member = lists.member
    for row in range(out.shape[0]):
        for q in range(coalitions.shape[0]):
            total = 0.0
            # The first `n_agreed` members of the leaf at hand agree with the coalition. What a leaf
            # shares with the one before, it agrees on as far.
            n_agreed = np.int64(0)
            begin = first[row, 1]
            for leaf in range(first[row, 0], first[row + 1, 0]):
                size = np.int64(shared[leaf])
                end = begin + own[leaf]
                n_agreed = min(n_agreed, size)
                for at in range(begin, end):
                    is_known = member[at] >= 0
                    player = member[at] if is_known else ~member[at]
                    if n_agreed == size and coalitions[q, player] == is_known:
                        n_agreed += 1
                    size += 1
                begin = end
                if n_agreed == size:
                    total += value[leaf]
            out[row, q] += total
