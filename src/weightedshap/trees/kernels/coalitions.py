"""Compiled loops over many coalitions at once, the lanes: path-dependent values from the leaves up.

At a split a known player goes the row's way, and a hidden one both ways by their shares of the
cover: the value of a node is a mix of those of its children, found in one flat loop. `steps` are
those of `weightedshap.trees.ensembles`.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from weightedshap._compile import compiled, inlined
from weightedshap.trees.kernels.leaf_lists import goes_left

NONE = np.uint64(0)
# Players of trees up to which all coalitions along orders are mixed, and not in ranges alone
FEW = 32
GRAIN = 32  # coalitions: ranges begin and end with one
# Masked rows at a time: a line of lanes takes 4 KiB, so that a stack of a few stays in the nearest
# cache
LANES = 512


@compiled
def masked_values(X, row, coalition, steps, lines, categories, out):
    """Path-dependent: add to ``out[t]`` the value of coalition t (N, d) at row ``X[row[t]]``.

    Loops over lanes have no branches; answers of special splits are found one by one, and stand in
    for values.
    """
    x = np.empty((X.shape[1] + 1, LANES))
    hidden = np.empty((coalition.shape[1], LANES), np.bool_)
    stack = np.empty((lines, LANES))
    for begin in range(0, row.shape[0], LANES):
        n = min(LANES, row.shape[0] - begin)
        top = -1
        for s in range(n):
            for c in range(X.shape[1]):
                x[c, s] = X[row[begin + s], c]
            for p in range(hidden.shape[0]):
                hidden[p, s] = not coalition[begin + s, p]
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
            if step.special:
                for s in range(n):
                    if s > 0 and row[begin + s] == row[begin + s - 1]:
                        x[-1, s] = x[-1, s - 1]
                        continue
                    compared = (sign * x[c, s] <= most) != step.nan_left
                    left = goes_left(x[c, s], compared, step.nan_left, step.slot, categories)
                    x[-1, s] = 0.0 if left != step.nan_left else 1.0
                c = X.shape[1]
                sign = 1.0
                most = 0.0
            top += 1 - step.inner
            if step.inner == 0:
                mean = a * step.u + b * v
                u = step.u if yes else v
                v = v if yes else step.u
                for s in range(n):
                    stack[top, s] = mean if hidden[p, s] else (u if sign * x[c, s] <= most else v)
            elif step.inner == 1:
                for s in range(n):
                    u = stack[top, s]
                    stack[top, s] = (
                        a * u + b * v
                        if hidden[p, s]
                        else (u if (sign * x[c, s] <= most) == yes else v)
                    )
            else:
                for s in range(n):
                    u = stack[top, s]
                    v = stack[top + 1, s]
                    stack[top, s] = (
                        a * u + b * v
                        if hidden[p, s]
                        else (u if (sign * x[c, s] <= most) == yes else v)
                    )
            if step.is_root:
                for s in range(n):
                    out[begin + s] += stack[0, s]
                top = -1


@inlined
def mix(step, known, x, top, begin, end, stack):
    """Mix ``stack[top, s]`` of the values of the children of a node; x is 1 if the row goes to the
    first, or 0."""
    a = step.a
    b = step.b
    u = step.u
    v = step.v
    y = 1.0 - x
    word = known[step.player >> 6]
    bit = np.uint64(1) << np.uint64(step.player & 63)
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
    """Add to ``total[s]`` the value of coalition s of n at one row, by the trees of the steps
    `begin` … `end` − 1.

    Bit p % 64 of ``known[p // 64, s]`` tells whether coalition s has player p. Indices of
    coalitions have no sign: loops over them are faster.
    """
    top = -1
    for at in range(begin, end):
        step = steps[at]
        top += 1 - step.inner
        mix(step, known, 1.0 if x_left[step.node] == step.left_first else 0.0, top, NONE, n, stack)
        if step.is_root:
            for s in range(n):
                total[s] += stack[0, s]
            top = -1


@inlined
def add_sorted(x_left, steps, begin, end, known, n, first, full, ranges, stack, total):
    """As `add_coalitions`, where none before ``first[p]`` has player p, and all from ``full[p]``
    on.

    A node has its mean by cover before the first coalition that has a player below it, and is not
    asked about where its parent sends the row the other way: only in between is it mixed.
    """
    turn = ranges[0]
    start = ranges[1]
    middle = ranges[2]
    stop = ranges[3]
    while begin < end:
        last = begin
        while not steps[last].is_root:
            last += 1
        find_ranges(x_left, steps[begin : last + 1], n, first, full, turn, start, middle, stop)
        top = -1
        for at in range(last - begin + 1):
            step = steps[begin + at]
            is_first = turn[at] == NONE
            mixed = start[at]
            same = middle[at]
            done = stop[at]
            mean = step.mean
            way = step.u if is_first else step.v
            top += 1 - step.inner
            for s in range(start[at + step.parent], min(mixed, done)):
                stack[top, s] = mean
            mix(step, known, 1.0 if is_first else 0.0, top, mixed, same, stack)
            if step.inner < 2 - is_first:  # the row goes to a leaf
                for s in range(same, done):
                    stack[top, s] = way
            elif not is_first:
                for s in range(same, done):
                    stack[top, s] = stack[top + 1, s]
        mean = steps[last].mean
        mixed = start[last - begin]
        for s in range(mixed):
            total[s] += mean
        for s in range(mixed, n):
            total[s] += stack[0, s]
        begin = last + 1


@inlined
def find_ranges(x_left, steps, n, first, full, turn, start, middle, stop):
    """The turn of the row at each node; from where on it is not its mean, its player is known,
    nobody asks about it."""
    for at in range(steps.shape[0]):
        turn[at] = x_left[steps[at].node] != steps[at].left_first
        start[at] = first[steps[at].player]
    for at in range(steps.shape[0]):
        parent = at + steps[at].parent
        start[parent] = min(start[parent], start[at])
    root = steps.shape[0] - 1
    stop[root] = middle[root] = n  # its parent is taken to be itself
    for at in range(root, -1, -1):
        parent = at + steps[at].parent
        stop[at] = stop[parent] if turn[parent] == steps[at].turn else middle[parent]
        middle[at] = min(stop[at], full[steps[at].player])


@compiled
def values(x_left, steps, lines, coalitions, out):
    """Path-dependent: add to ``out[r, q]`` the value of coalition q at row r."""
    m, d = coalitions.shape
    known = np.empty((d // 64 + 1, LANES), np.uint64)
    stack = np.empty((lines, LANES))
    for begin in range(0, m, LANES):
        n = min(LANES, m - begin)
        for p in range(d):
            for s in range(n):
                before = known[p >> 6, s] if p & 63 else NONE
                known[p >> 6, s] = before | np.uint64(coalitions[begin + s, p]) << np.uint64(p & 63)
        for r in range(out.shape[0]):
            total = out[r, begin : begin + n]
            add_coalitions(
                x_left[r], steps, np.int64(0), steps.shape[0], known, np.uint64(n), stack, total
            )


def room(m: int, d: int, widest: int, lines: int) -> tuple[npt.NDArray[Any], ...]:
    """For `add_steps`: m orders of d players, of a group at most `widest`, and `lines` of
    values."""
    sets = m * widest + 8
    walks = np.empty((3, m, widest + 1), np.int32)
    values = np.empty((widest // 64 + 1, sets), np.uint64), np.empty(sets), np.empty((lines, sets))
    return np.full(d, -1, np.int32), *walks, *values, *np.empty((2, widest), np.uint64)


@compiled
def add_steps(x_left, steps, first_step, first_player, who, orders, scratch, ranges, out):
    """Add to ``out[r, q, k]`` by how much the value changes with the k-th player; the value of none
    for k = 0.

    For a group of trees only its players count: their first ones are the same few sets again and
    again, each a lane. Of `scratch`, which is `room`, ``place[p]`` is −1. Without `ranges` (4, I)
    all coalitions are mixed at every node; each of the two ways is compiled when it is first taken.
    """
    m = orders.shape[1]
    d = orders.shape[2]
    place, order, when, lane, sets, total, stack, first, full = scratch
    for g in range(first_step.shape[0] - 1):
        players = who[first_player[g] : first_player[g + 1]]
        begin = first_step[g]
        end = first_step[g + 1]
        for i in range(players.shape[0]):
            place[players[i]] = i
        for r in range(orders.shape[0]):
            for q in range(m):
                j = 0
                for k in range(d):
                    order[q, j] = place[orders[r, q, k]]
                    when[q, j] = k
                    j += order[q, j] >= 0
            n = np.uint64((distinct_sets(order, players.shape[0], sets, lane) + 7) // 8 * 8)
            for s in range(n):
                total[s] = 0.0
            if ranges is None:
                add_coalitions(x_left[r], steps, begin, end, sets, n, stack, total)
            else:
                find_spans(order, lane, n, first[: players.shape[0]], full)
                add_sorted(x_left[r], steps, begin, end, sets, n, first, full, ranges, stack, total)
            for q in range(m):
                out[r, q, 0] += total[0]
                for j in range(players.shape[0]):
                    out[r, q, when[q, j] + 1] += total[lane[q, j + 1]] - total[lane[q, j]]
        for i in range(players.shape[0]):
            place[players[i]] = -1


@inlined
def find_spans(order, lane, n, first, full):
    """Of each player, before which set none has it, and from which set on all have it, in
    grains."""
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
    """Number the sets of the first 0..size players of all orders, smaller ones first; how many
    there are.

    ``lane[q, j]`` numbers the first j players of order q, bits of ``sets[:, lane[q, j]]``. They are
    looked for among those of the order before it, often of a weight like its own: so nearly all
    that are the same are found.
    """
    n = 1
    n_words = (size + 63) // 64
    for w in range(n_words):
        sets[w, 0] = 0
    for q in range(order.shape[0]):
        lane[q, 0] = 0
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
