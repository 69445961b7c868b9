"""Compiled loops that compute path-dependent values at many coalitions at once.

Trees are evaluated from the leaves up. If the player of a split is known, the node has the value of
the child that the row goes to; if it is hidden, the mean of both children by their shares of the
cover, the training weight. `steps` are records (`weightedshap.trees.ensembles.STEP`) of the inner
nodes, children before parents. That module calls
`masked_values`, and `weightedshap.trees.path_dependent` the rest; `patterns` takes `distinct_sets`.
"""

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from weightedshap._checks import IntArray
from weightedshap._compile import compiled, inlined
from weightedshap.trees.kernels.splits import goes_left

NONE = np.uint64(0)
# Players of a group of trees up to which all coalitions along orders are mixed at every node; with
# more, only ranges of them are. Ranges mix less, and take time to find. Timed with 40 orders: at
# half 14 % slower with 20 players and 2 % faster with 28, at double 22 % slower with 40 and 75 %
# slower with 60.
FEW = 32
# Ranges of coalitions begin and end with a multiple of this: smaller ones mix less, larger ones are
# done in whole words of the processor. Timed with 80 and 200 players, it hardly matters: at half
# between 3 % faster and 11 % slower, at double within 3 %.
GRAIN = 32
# Masked rows, or coalitions, at a time: a line of lanes takes 4 KiB, so that a stack of a few stays
# in the nearest cache, while fewer share the overhead of a step. Timed with 100 trees: masked rows
# are within 2 % at half and at double; values are 17 to 22 % slower at half, and 10 to 12 % faster
# at double.
LANES = 512


class TreeGroups(NamedTuple):
    """The inner nodes of an ensemble, divided into groups of whole trees.

    The players of each group are numbered from 0.
    """

    steps: npt.NDArray[np.void]  # (I,) whose players are positions among those of the group
    first_step: IntArray  # (G + 1,) of each group
    first_player: IntArray  # (G + 1,) in `player`
    player: IntArray  # the players of the groups, one group after the other


class CoalitionScratch(NamedTuple):
    """The working memory of `add_steps`, for m orders of d players."""

    place: npt.NDArray[np.int32]  # (d,) of a player in the group at hand, −1 for others
    order: npt.NDArray[np.int32]  # (m, ·) the orders of the group's players alone
    step_of: npt.NDArray[np.int32]  # (m, ·) where these stand in the orders of all players
    lane: npt.NDArray[np.int32]  # (m, ·) the number of each set of first players
    sets: npt.NDArray[np.uint64]  # (words, lanes) the sets as bits
    total: npt.NDArray[np.float64]  # (lanes,) their values
    stack: npt.NDArray[np.float64]  # (stack size, lanes) values on the way up
    first: npt.NDArray[np.uint64]  # the first set that has each player
    full: npt.NDArray[np.uint64]  # from which set on all have each player

    @classmethod
    def build(cls, m: int, d: int, widest: int, stack_size: int) -> Self:
        """Allocate the arrays, for groups with up to `widest` players and the given stack size."""
        # Lanes are rounded up to a multiple of eight.
        lanes = m * widest + 8
        return cls(
            place=np.full(d, -1, np.int32),
            order=np.empty((m, widest + 1), np.int32),
            step_of=np.empty((m, widest + 1), np.int32),
            lane=np.empty((m, widest + 1), np.int32),
            sets=np.empty((widest // 64 + 1, lanes), np.uint64),
            total=np.empty(lanes),
            stack=np.empty((stack_size, lanes)),
            first=np.empty(widest, np.uint64),
            full=np.empty(widest, np.uint64),
        )


@compiled
def masked_values(X, row, coalition, steps, stack_size, splits, out):
    """Add the path-dependent value of row ``X[row[t]]`` at ``coalition[t]`` to ``out[t]``.

    A node whose children have shares a and b of the cover and values u and v has the value
    a u + b v if its player is hidden, else that of the child where the row goes.
    """
    category_start = splits.category_start
    category_words = splits.category_words
    members_left = splits.members_left
    n_columns = X.shape[1]
    # Lanes of columns, and one more of the answers of special splits.
    x = np.empty((n_columns + 1, LANES))
    is_hidden = np.empty((coalition.shape[1], LANES), np.bool_)
    stack = np.empty((stack_size, LANES))
    for begin in range(0, row.shape[0], LANES):
        # Lay out `LANES` masked rows side by side.
        lanes = min(LANES, row.shape[0] - begin)
        for lane in range(lanes):
            for c in range(n_columns):
                x[c, lane] = X[row[begin + lane], c]
            for p in range(is_hidden.shape[0]):
                is_hidden[p, lane] = not coalition[begin + lane, p]

        # Step by step up the trees. ``stack[:top + 1]`` are the values of nodes whose parent is
        # still to come. A row goes to the first child if ``(sign · x[c] <= most) == yes``.
        top = -1
        for at in range(steps.shape[0]):
            step = steps[at]
            c = step.column
            p = step.player
            most = step.limit
            a = step.a
            b = step.b
            v = step.v
            sign = -1.0 if step.nan_left else 1.0
            yes = step.left_first != step.nan_left

            # Loops over lanes have no branches, so special splits are decided one by one. Their
            # answers stand in for a column: 0 for the side of missing values, 1 for the other.
            if step.special:
                for lane in range(lanes):
                    # Masked rows often come from one row, one after the other.
                    if lane > 0 and row[begin + lane] == row[begin + lane - 1]:
                        x[-1, lane] = x[-1, lane - 1]
                        continue
                    compared = (sign * x[c, lane] <= most) != step.nan_left
                    left = goes_left(
                        x[c, lane],
                        compared,
                        step.nan_left,
                        step.slot,
                        category_start,
                        category_words,
                        members_left,
                    )
                    x[-1, lane] = 0.0 if left != step.nan_left else 1.0
                c = n_columns
                sign = 1.0
                most = 0.0

            # Mix the children: both leaves, the second one a leaf, or both on the stack.
            top += 1 - step.inner
            if step.inner == 0:
                mean = a * step.u + b * v
                u = step.u if yes else v
                v = v if yes else step.u
                for lane in range(lanes):
                    known = u if sign * x[c, lane] <= most else v
                    stack[top, lane] = mean if is_hidden[p, lane] else known
            elif step.inner == 1:
                for lane in range(lanes):
                    u = stack[top, lane]
                    known = u if (sign * x[c, lane] <= most) == yes else v
                    stack[top, lane] = a * u + b * v if is_hidden[p, lane] else known
            else:
                for lane in range(lanes):
                    u = stack[top, lane]
                    v = stack[top + 1, lane]
                    known = u if (sign * x[c, lane] <= most) == yes else v
                    stack[top, lane] = a * u + b * v if is_hidden[p, lane] else known
            if step.is_root:
                for lane in range(lanes):
                    out[begin + lane] += stack[0, lane]
                top = -1


@inlined
def mix_children(step, known, x, top, begin, end, stack):
    """Compute a node's value from its children's, for the coalitions begin … end − 1.

    ``stack[top, s]`` becomes x u + (1 − x) v if the player is known, with x = 1 if the row goes to
    the first child and else 0, and a u + b v if it is hidden.
    """
    a = step.a
    b = step.b
    u = step.u
    v = step.v
    y = 1.0 - x
    word = known[step.player >> 6]
    bit = np.uint64(1) << np.uint64(step.player & 63)
    # The values of children that are leaves are those of the step; others stand on the stack, the
    # first one where the mix goes to.
    if step.inner == 0:
        hidden = a * u + b * v
        way = x * u + y * v
        for s in range(begin, end):
            stack[top, s] = way if word[s] & bit != NONE else hidden
    elif step.inner == 1:
        for s in range(begin, end):
            is_known = word[s] & bit != NONE
            stack[top, s] = (x if is_known else a) * stack[top, s] + (y if is_known else b) * v
    else:
        for s in range(begin, end):
            is_known = word[s] & bit != NONE
            stack[top, s] = (x if is_known else a) * stack[top, s] + (y if is_known else b) * stack[
                top + 1, s
            ]


@inlined
def add_coalitions(x_left, steps, begin, end, known, n, stack, total):
    """Add the values of n coalitions at one row, from some of the trees, to ``total``.

    The steps are `begin` … `end` − 1. Bit p % 64 of ``known[p // 64, s]`` tells whether coalition s
    has player p. Indices of
    coalitions have no sign: loops over them are faster.
    """
    # ``stack[:top + 1]`` are the values of nodes whose parent is still to come.
    top = -1
    for at in range(begin, end):
        step = steps[at]
        top += 1 - step.inner
        x = 1.0 if x_left[step.node] == step.left_first else 0.0
        mix_children(step, known, x, top, NONE, n, stack)
        if step.is_root:
            for s in range(n):
                total[s] += stack[0, s]
            top = -1


@inlined
def add_sorted(x_left, steps, begin, end, known, n, first, full, ranges, stack, total):
    """Add values as `add_coalitions` does, for coalitions that are sorted by their players.

    No coalition before ``first[p]`` has player p, and all from ``full[p]`` on have it.

    A node has its mean by cover before the first coalition that has a player below it, and is not
    asked about where its parent sends the row the other way: only in between is it mixed.
    """
    turn = ranges[0]
    start = ranges[1]
    middle = ranges[2]
    stop = ranges[3]
    while begin < end:
        # One tree, with the steps begin … root; what `find_ranges` fills in counts from `begin`.
        root = begin
        while not steps[root].is_root:
            root += 1
        find_ranges(x_left, steps[begin : root + 1], n, first, full, turn, start, middle, stop)

        # Of each node, ``stack[top]`` is right from where its parent is not a mean by cover up to
        # its stop; the rest is never read.
        top = -1
        for at in range(root - begin + 1):
            step = steps[begin + at]
            is_first = turn[at] == NONE
            mixed = start[at]
            same = middle[at]
            done = stop[at]
            mean = step.mean
            way = step.u if is_first else step.v
            top += 1 - step.inner
            # Before `mixed` the mean; then mixed; from `same` on, the child that the row goes to.
            for s in range(start[at + step.parent], min(mixed, done)):
                stack[top, s] = mean
            mix_children(step, known, 1.0 if is_first else 0.0, top, mixed, same, stack)
            # Inner children come first, so this one is a leaf if they are too few. Else it stands
            # on the stack: the first one in its place already.
            if step.inner < 2 - is_first:
                for s in range(same, done):
                    stack[top, s] = way
            elif not is_first:
                for s in range(same, done):
                    stack[top, s] = stack[top + 1, s]

        mean = steps[root].mean
        mixed = start[root - begin]
        for s in range(mixed):
            total[s] += mean
        for s in range(mixed, n):
            total[s] += stack[0, s]
        begin = root + 1


@inlined
def find_ranges(x_left, steps, n, first, full, turn, start, middle, stop):
    """Find which child a row goes to at each node of a tree, and the ranges of coalitions there.

    ``turn`` is 0 if the row goes to the first child, else 1. From coalition ``start`` on the value
    of a node is not its mean, from ``middle`` on its player is known, and from ``stop`` on
    its value is not needed.
    """
    # Upwards: a node is its mean as long as its player and all below are hidden.
    for at in range(steps.shape[0]):
        turn[at] = x_left[steps[at].node] != steps[at].left_first
        start[at] = first[steps[at].player]
    for at in range(steps.shape[0]):
        parent = at + steps[at].parent
        start[parent] = min(start[parent], start[at])

    # Downwards: a child that the row does not go to is asked about until the parent's player is
    # known, the other one as long as the parent. The root is taken to be its own parent.
    root = steps.shape[0] - 1
    stop[root] = n
    middle[root] = n
    for at in range(root, -1, -1):
        parent = at + steps[at].parent
        stop[at] = stop[parent] if turn[parent] == steps[at].turn else middle[parent]
        middle[at] = min(stop[at], full[steps[at].player])


@compiled
def values(x_left, steps, stack_size, coalitions, out):
    """Add the path-dependent value of each row at each coalition q to ``out[row, q]``."""
    m, d = coalitions.shape
    known = np.empty((d // 64 + 1, LANES), np.uint64)
    stack = np.empty((stack_size, LANES))
    for begin in range(0, m, LANES):
        # Write `LANES` coalitions as bits, see `add_coalitions`; they serve all rows.
        lanes = min(LANES, m - begin)
        for p in range(d):
            for lane in range(lanes):
                before = known[p >> 6, lane] if p & 63 else NONE
                bit = np.uint64(coalitions[begin + lane, p]) << np.uint64(p & 63)
                known[p >> 6, lane] = before | bit
        for row in range(out.shape[0]):
            total = out[row, begin : begin + lanes]
            add_coalitions(
                x_left[row],
                steps,
                np.int64(0),
                steps.shape[0],
                known,
                np.uint64(lanes),
                stack,
                total,
            )


@compiled
def add_steps(x_left, groups, orders, scratch, ranges, out):
    """Add the change of the value by the k-th player (k ≥ 1) of order q to ``out[row, q, k]``.

    ``out[row, q, 0]`` gets v(∅). A group of trees depends on its own players alone, so orders share
    few distinct sets of first players; each of these is a lane. Without `ranges` (4, I), all
    coalitions are computed at every node; with it, only those that differ. Each of the two branches
    is compiled at its first use.
    """
    steps = groups.steps
    first_step = groups.first_step
    first_player = groups.first_player
    player = groups.player
    place = scratch.place
    order = scratch.order
    step_of = scratch.step_of
    lane = scratch.lane
    sets = scratch.sets
    total = scratch.total
    stack = scratch.stack
    first = scratch.first
    full = scratch.full
    m = orders.shape[1]
    d = orders.shape[2]
    for g in range(first_step.shape[0] - 1):
        # ``place[p]`` is the position of player p in the group, −1 for players of others.
        players = player[first_player[g] : first_player[g + 1]]
        begin = first_step[g]
        end = first_step[g + 1]
        for i in range(players.shape[0]):
            place[players[i]] = i
        for row in range(orders.shape[0]):
            # The orders without players of other groups: what is no player of this one is written
            # over.
            for q in range(m):
                j = 0
                for k in range(d):
                    order[q, j] = place[orders[row, q, k]]
                    step_of[q, j] = k
                    j += order[q, j] >= 0

            # Lanes are rounded up to whole words of the processor; the last ones are never read.
            n = np.uint64((distinct_sets(order, players.shape[0], sets, lane) + 7) // 8 * 8)
            for s in range(n):
                total[s] = 0.0
            if ranges is None:
                add_coalitions(x_left[row], steps, begin, end, sets, n, stack, total)
            else:
                find_spans(order, lane, n, first[: players.shape[0]], full)
                add_sorted(
                    x_left[row], steps, begin, end, sets, n, first, full, ranges, stack, total
                )

            # A player's change is the value of the set with it less that of the set before.
            for q in range(m):
                out[row, q, 0] += total[0]
                for j in range(players.shape[0]):
                    out[row, q, step_of[q, j] + 1] += total[lane[q, j + 1]] - total[lane[q, j]]
        for i in range(players.shape[0]):
            place[players[i]] = -1


@inlined
def find_spans(order, lane, n, first, full):
    """Find, for each player i, the first and last set to which i is the latest addition.

    No set before ``first[i]`` has player i, and all from ``full[i]`` on have it. ``first`` is
    rounded down to a multiple of `GRAIN`, and ``full`` is rounded up.
    """
    for i in range(first.shape[0]):
        first[i] = n
        full[i] = 0
    for q in range(order.shape[0]):
        for j in range(first.shape[0]):
            i = order[q, j]
            s = lane[q, j + 1]
            first[i] = min(first[i], np.uint64(s // GRAIN * GRAIN))
            full[i] = max(full[i], np.uint64((s + GRAIN - 1) // GRAIN * GRAIN))


@inlined
def distinct_sets(order, size, sets, lane):
    """Number the distinct sets of the first 0, 1, …, `size` players of orders, small sets first.

    Return the number of sets. ``lane[q, j]`` is the number of the first j players of order q, and
    ``sets[:, lane[q, j]]`` are these players as bits. A set is only compared with that of the order
    before. Equal sets often come from neighbouring orders, so nearly all of them get one number.
    """
    # The empty set is that of all orders.
    n = 1
    n_words = (size + 63) // 64
    for w in range(n_words):
        sets[w, 0] = 0
    for q in range(order.shape[0]):
        lane[q, 0] = 0

    # Write each set behind the n that are numbered; it stays if it differs from the last of them.
    for j in range(size):
        for q in range(order.shape[0]):
            i = order[q, j]
            same = True
            for w in range(n_words):
                sets[w, n] = sets[w, lane[q, j]]
            sets[i >> 6, n] |= np.uint64(1) << np.uint64(i & 63)
            for w in range(n_words):
                same &= sets[w, n] == sets[w, n - 1]
            lane[q, j + 1] = n - same
            n += not same
    return n
