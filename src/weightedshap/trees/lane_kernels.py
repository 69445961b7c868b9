"""Compiled loops over many coalitions at once, the lanes: path-dependent values from the leaves up.

At a split a known player goes the row's way, and a hidden one both ways by their shares of the cover: the value of a
node is a mix of those of its children, found in one flat loop. `steps` are those of `weightedshap.trees.ensembles`.
"""

import numpy as np

from weightedshap.compiling import compiled, inlined
from weightedshap.trees.leaf_kernels import goes_left

LANES = 512  # masked rows at a time: a line of lanes takes 4 KiB, so that a stack of a few stays in the nearest cache


@compiled
def masked_values(X, row, coalition, steps, lines, categories, out):
    """Path-dependent: add to ``out[t]`` the value of coalition t (N, d) at row ``X[row[t]]``.

    Loops over lanes have no branches; answers of special splits are found one by one, and stand in for values.
    """
    x, hidden = np.empty((X.shape[1] + 1, LANES)), np.empty((coalition.shape[1], LANES), np.bool_)
    stack = np.empty((lines, LANES))
    for begin in range(0, row.shape[0], LANES):
        n, top = min(LANES, row.shape[0] - begin), -1
        for s in range(n):
            for c in range(X.shape[1]):
                x[c, s] = X[row[begin + s], c]
            for p in range(hidden.shape[0]):
                hidden[p, s] = not coalition[begin + s, p]
        for at in range(steps.shape[0]):
            step = steps[at]
            c, p, most = step.column, step.player, step.limit
            a, b, v = step.a, step.b, step.v
            sign, yes = -1.0 if step.nan_left else 1.0, step.left_first != step.nan_left
            if step.special:
                for s in range(n):
                    if s > 0 and row[begin + s] == row[begin + s - 1]:
                        x[-1, s] = x[-1, s - 1]
                        continue
                    compared = (sign * x[c, s] <= most) != step.nan_left
                    left = goes_left(x[c, s], compared, step.nan_left, step.slot, categories)
                    x[-1, s] = 0.0 if left != step.nan_left else 1.0
                c, sign, most = X.shape[1], 1.0, 0.0
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
                    stack[top, s] = a * u + b * v if hidden[p, s] else (u if (sign * x[c, s] <= most) == yes else v)
            else:
                for s in range(n):
                    u = stack[top, s]
                    v = stack[top + 1, s]
                    stack[top, s] = a * u + b * v if hidden[p, s] else (u if (sign * x[c, s] <= most) == yes else v)
            if step.is_root:
                for s in range(n):
                    out[begin + s] += stack[0, s]
                top = -1


@compiled
def add_coalitions(x_left, steps, begin, end, hidden, n, stack, total):
    """Add to ``total[s]`` the value of coalition s at one row, by the trees of the steps `begin` … `end` − 1.

    h = ``hidden[p, s]`` is 1 where player p is hidden and 0 where it is known. With shares a and b of the children of a
    node, and x = 1 if the row goes to the first of them, its value is (x + (a − x) h) u + (1 − x + (b − 1 + x) h) v.
    """
    top = -1
    for at in range(begin, end):
        step = steps[at]
        p, u, v = step.player, step.u, step.v
        x = 1.0 if x_left[step.node] == step.left_first else 0.0
        y = 1.0 - x
        a, b = step.a - x, step.b - y
        top += 1 - step.inner
        if step.inner == 0:
            known, change = x * u + y * v, a * u + b * v
            for s in range(n):
                stack[top, s] = known + change * hidden[p, s]
        elif step.inner == 1:
            for s in range(n):
                stack[top, s] = (x + a * hidden[p, s]) * stack[top, s] + (y + b * hidden[p, s]) * v
        else:
            for s in range(n):
                h = hidden[p, s]
                stack[top, s] = (x + a * h) * stack[top, s] + (y + b * h) * stack[top + 1, s]
        if step.is_root:
            for s in range(n):
                total[s] += stack[0, s]
            top = -1


@compiled
def values(x_left, steps, lines, coalitions, out):
    """Path-dependent: add to ``out[r, q]`` the value of coalition q at row r."""
    hidden, stack = np.empty((coalitions.shape[1], LANES)), np.empty((lines, LANES))
    for begin in range(0, coalitions.shape[0], LANES):
        n = min(LANES, coalitions.shape[0] - begin)
        for p in range(hidden.shape[0]):
            for s in range(n):
                hidden[p, s] = 0.0 if coalitions[begin + s, p] else 1.0
        for r in range(out.shape[0]):
            total = out[r, begin : begin + n]
            add_coalitions(x_left[r], steps, np.int64(0), steps.shape[0], hidden, n, stack, total)


@compiled
def add_steps(x_left, steps, lines, first_step, first_player, who, widest, orders, out):
    """Add to ``out[r, q, k]`` by how much the value changes with the k-th player; the value of none for k = 0.

    For a group of trees only its players count: their first ones are the same few sets again and again, each a lane.
    Set s is written as bits, ``sets[w, s]``.
    """
    m, d = orders.shape[1], orders.shape[2]
    most, n_words, room = m * widest + 1, (widest + 63) // 64, 1
    while room < 2 * most:
        room *= 2
    rank, order, keys = np.empty((m, d), np.int32), np.empty((m, widest), np.int32), np.empty(widest, np.int64)
    lane, table = np.empty((m, widest + 1), np.int32), np.empty(room, np.int32)
    sets, total = np.empty((n_words, most + 1), np.uint64), np.empty(most)
    hidden, stack = np.empty((widest, LANES)), np.empty((lines, LANES))
    for r in range(orders.shape[0]):
        for q in range(m):
            for k in range(d):
                rank[q, orders[r, q, k]] = k
        for g in range(first_step.shape[0] - 1):
            players = who[first_player[g] : first_player[g + 1]]
            size = players.shape[0]
            sort_by_rank(players, rank, keys, order)
            n_sets = distinct_sets(order, size, table, sets, lane)
            for begin in range(0, n_sets, LANES):
                n = min(LANES, n_sets - begin)
                for s in range(n):
                    total[begin + s] = 0.0
                for p in range(size):
                    word, bit = p >> 6, np.uint64(p & 63)
                    for s in range(n):
                        hidden[p, s] = 0.0 if (sets[word, begin + s] >> bit) & np.uint64(1) else 1.0
                part = total[begin : begin + n]
                add_coalitions(x_left[r], steps, first_step[g], first_step[g + 1], hidden, n, stack, part)
            for q in range(m):
                out[r, q, 0] += total[0]
                for j in range(size):
                    change = total[lane[q, j + 1]] - total[lane[q, j]]
                    out[r, q, rank[q, players[order[q, j]]] + 1] += change


@inlined
def sort_by_rank(players, rank, keys, order):
    """Sort positions in `players`, by order q from the one before on, into ``order[q, j]``."""
    size = players.shape[0]
    for q in range(rank.shape[0]):
        for j in range(size):
            i = order[q - 1, j] if q > 0 else j
            key, at = np.int64(rank[q, players[i]]) << 32 | i, j
            while at > 0 and keys[at - 1] > key:
                keys[at] = keys[at - 1]
                at -= 1
            keys[at] = key
        for j in range(size):
            order[q, j] = keys[j] & 0xFFFFFFFF


@inlined
def distinct_sets(order, size, table, sets, lane):
    """Number the distinct sets among the first 0..size players of all orders, the empty one first; how many there are.

    ``lane[q, j]`` numbers the first j players of order q. They are looked up in `table` by their bits, mixed up.
    """
    mask, n_sets, n_words = np.uint64(table.shape[0] - 1), 0, sets.shape[0]
    now = sets[:, -1]
    for slot in range(table.shape[0]):
        table[slot] = -1
    for q in range(order.shape[0]):
        mixed = np.uint64(0)
        for w in range(n_words):
            now[w] = 0
        for j in range(size + 1):
            if j > 0:
                i = np.uint64(order[q, j - 1])
                now[i >> np.uint64(6)] |= np.uint64(1) << (i & np.uint64(63))
                word = (i + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
                mixed ^= (word ^ (word >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
            slot = (mixed >> np.uint64(32)) & mask
            while table[slot] >= 0:
                s, w = table[slot], 0
                while w < n_words and sets[w, s] == now[w]:
                    w += 1
                if w == n_words:
                    break
                slot = (slot + np.uint64(1)) & mask
            if table[slot] < 0:
                for w in range(n_words):
                    sets[w, n_sets] = now[w]
                table[slot] = n_sets
                n_sets += 1
            lane[q, j] = table[slot]
    return n_sets
