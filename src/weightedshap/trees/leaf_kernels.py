"""Compiled loops over trees: leaves that are alive at a row, and what is read off them.

Where a split parts the explained row x from the absent one, its player decides: known → x's way, hidden → the other.
So every leaf is an indicator ``1[A ⊆ S, B ∩ S = ∅]`` of players A that must be known and B that must be hidden. The
leaves that can be reached are listed once for each row; Δ and values are sums over that list.

Row r has leaves ``first[r] … first[r + 1] − 1``; leaf l has value ``c[l]`` and members
``member[start[l] : start[l + 1]]``, the first ``n_known[l]`` of which are A.

Inner nodes are numbered before leaves: from ``n_inner = left.shape[0]`` on a node has ``value[node − n_inner]``.
"""

import numpy as np
from numba import njit

KNOWN, HIDDEN = 1, 2


@njit(nogil=True, cache=True)
def directions(X, column, threshold, nan_left, special, cat_slot, cat_start, cat_words, member_left):
    """(n, nodes): whether each row goes left at each inner node.

    All compare numbers, without branches; then `special` ones are set right: categories, and zero (≤ 1e-35) as missing.
    """
    out = np.empty((X.shape[0], column.shape[0]), np.bool_)
    for r in range(X.shape[0]):
        x, row = X[r], out[r]
        for node in range(column.shape[0]):
            v = x[column[node]]
            row[node] = (v <= threshold[node]) | (np.isnan(v) & nan_left[node])
        for node in special:
            v, slot = x[column[node]], cat_slot[node]
            row[node] = goes_left(v, row[node], nan_left[node], slot, cat_start, cat_words, member_left)
    return out


@njit(nogil=True, cache=True)
def goes_left(v, compared, nan_left, slot, cat_start, cat_words, member_left):
    """Whether `v` goes left at a special split: by category, or with zero for missing, or as numbers `compared`."""
    if slot < 0:
        return nan_left if abs(v) <= 1e-35 else compared
    if np.isnan(v):
        return compared
    return is_member(v, cat_words[cat_start[slot] : cat_start[slot + 1]]) == member_left[slot]


@njit(nogil=True, cache=True)
def is_member(v, words):
    """Whether category `v` is in the set written as bits of `words`."""
    if v < 0 or v >= 32 * words.shape[0]:
        return False
    code = np.uint32(v)
    return (words[code >> np.uint32(5)] >> (code & np.uint32(31))) & np.uint32(1) == np.uint32(1)


@njit(nogil=True, cache=True)
def walk_trees(goes, roots, left, right, value, out):
    """Add to ``out[r]`` the leaf values that row r reaches."""
    for r in range(goes.shape[0]):
        total = 0.0
        for root in roots:
            node = root
            while node < left.shape[0]:
                node = left[node] if goes[r, node] else right[node]
            total += value[node - left.shape[0]]
        out[r] += total


@njit(nogil=True, cache=True)
def grown(array, size):
    """A copy of `array` with room for at least `size` entries, at least doubled."""
    bigger = np.empty(max(size, 2 * array.shape[0]), dtype=array.dtype)
    bigger[: array.shape[0]] = array
    return bigger


@njit(nogil=True, cache=True)
def list_leaves(x_left, z_left, z_weight, roots, left, right, player, value, n_players, depth):
    """The living leaves of explained rows, directions `x_left` (n, nodes), against absent ones, `z_left` (B, nodes)."""
    n, n_inner = x_left.shape[0], left.shape[0]
    side = np.zeros(n_players, np.uint8)
    path, known, other_way = np.empty(depth, np.int32), np.empty(depth, np.int64), np.empty(depth, np.int32)
    first = np.zeros(n + 1, np.int64)
    c, n_known, start = np.empty(1024), np.empty(1024, np.int32), np.zeros(1025, np.int64)
    member = np.empty(8192, np.int32)
    leaves, members = 0, 0
    for r in range(n):
        present = x_left[r]
        for b in range(z_left.shape[0]):
            absent = z_left[b]
            for root in roots:
                node, length = root, 0
                while True:
                    while node < n_inner:
                        if present[node] == absent[node]:
                            node = left[node] if present[node] else right[node]
                            continue
                        x_way, z_way = (left[node], right[node]) if present[node] else (right[node], left[node])
                        p = player[node]
                        if side[p] == 0:
                            path[length], known[length], other_way[length], side[p] = p, 1, z_way, KNOWN
                            length += 1
                        node = x_way if side[p] == KNOWN else z_way
                    if leaves == c.shape[0]:
                        c, n_known, start = grown(c, leaves + 1), grown(n_known, leaves + 1), grown(start, leaves + 2)
                    if members + length > member.shape[0]:
                        member = grown(member, members + length)
                    low, high = members, members + length
                    for q in range(length):
                        member[low if known[q] else high - 1] = path[q]
                        low += known[q]
                        high -= 1 - known[q]
                    c[leaves], n_known[leaves] = value[node - n_inner] * z_weight[b], low - members
                    members += length
                    leaves += 1
                    start[leaves] = members
                    while length > 0 and not known[length - 1]:
                        length -= 1
                        side[path[length]] = 0
                    if length == 0:
                        break
                    known[length - 1], side[path[length - 1]] = 0, HIDDEN
                    node = other_way[length - 1]
        first[r + 1] = leaves
    return first, c[:leaves].copy(), n_known[:leaves].copy(), start[: leaves + 1].copy(), member[:members].copy()


@njit(nogil=True, cache=True)
def semivalues(first, c, n_known, start, member, table, out):
    """``out[r, q, i]`` = Σ_j w_qj Δ_j(x_i) for every row r and weight vector w_q.

    A leaf with s members, a of them known, gives each known one +c · K(s, a) and each hidden one −c · K(s, a + 1), with
    K(s, t)[j] = C(d−s, j−t) / C(d−1, j−1); row ``level(s) + t − 1`` of `table` is K(s, t) times the weight vectors.
    """
    d = out.shape[2]
    gathered, slot, met = np.zeros((table.shape[0], d)), np.full(d, -1, np.int32), np.empty(d, np.int32)
    for r in range(out.shape[0]):
        widest, n_met = 0, 0
        for leaf in range(first[r], first[r + 1]):
            size, a = start[leaf + 1] - start[leaf], n_known[leaf]
            if size == 0:
                continue
            widest = max(widest, size)
            cell = level(size) + a - 1
            for q in range(start[leaf], start[leaf + 1]):
                p = member[q]
                if slot[p] < 0:
                    slot[p], met[n_met] = n_met, p
                    n_met += 1
                if q < start[leaf] + a:
                    gathered[cell, slot[p]] += c[leaf]
                else:
                    gathered[cell + 1, slot[p]] -= c[leaf]
        spread(gathered, widest, table, slot, met[:n_met], out[r])


@njit(nogil=True, cache=True)
def level(s):
    """Where the rows K(s, 1), …, K(s, s) of the table of coefficients begin."""
    return s * (s - 1) // 2


@njit(nogil=True, cache=True)
def spread(gathered, widest, table, slot, met, out):
    """``out[q, met[i]] = Σ_{s,t} gathered[level(s) + t − 1, i] · table[level(s) + t − 1, q]``, 0 for others.

    The i-th player met is p = ``met[i]``, with ``slot[p] = i``; `gathered` and `slot` are left as they began, 0 and −1.
    All is first carried up to the widest leaf by Pascal's rule K(s, t) = K(s + 1, t) + K(s + 1, t + 1).
    """
    n_met = met.shape[0]
    line = np.empty(n_met)
    for s in range(1, widest):
        for t in range(s):
            here, below, above = gathered[level(s) + t], gathered[level(s + 1) + t], gathered[level(s + 1) + t + 1]
            for i in range(n_met):
                g = here[i]
                below[i] += g
                above[i] += g
                here[i] = 0.0
    top = level(widest)
    for q in range(out.shape[0]):
        line[:] = 0.0
        for t in range(widest):
            share, here = table[top + t, q], gathered[top + t]
            if share != 0.0:
                for i in range(n_met):
                    line[i] += share * here[i]
        out[q, :] = 0.0
        for i in range(n_met):
            out[q, met[i]] = line[i]
    gathered[top : top + widest, :n_met] = 0.0
    for p in met:
        slot[p] = -1


@njit(nogil=True, cache=True)
def add_running_sums(steps, out):
    """Add to ``out[q, k]`` the sum of ``steps[q, :k + 1]``."""
    for q in range(out.shape[0]):
        total = 0.0
        for k in range(out.shape[1]):
            total += steps[q, k]
            out[q, k] += total


@njit(nogil=True, cache=True)
def along(first, c, n_known, start, member, orders, out):
    """Add to ``out[r, q, k]`` the value when the first k players of order q of row r are known.

    Leaf (A, B) is on for max rank(A) < k ≤ min rank(B), ranks counted from 0.
    """
    m, d = orders.shape[1], orders.shape[2]
    rank = np.empty((d, m), np.int32)
    after, until = np.empty(m, np.int32), np.empty(m, np.int32)
    steps = np.empty((m, d + 2))
    for r in range(orders.shape[0]):
        for q in range(m):
            for k in range(d):
                rank[orders[r, q, k], q] = k
        steps[:] = 0.0
        for leaf in range(first[r], first[r + 1]):
            after[:], until[:] = -1, d
            for at in range(start[leaf], start[leaf] + n_known[leaf]):
                ranks = rank[member[at]]
                for q in range(m):
                    after[q] = max(after[q], ranks[q])
            for at in range(start[leaf] + n_known[leaf], start[leaf + 1]):
                ranks = rank[member[at]]
                for q in range(m):
                    until[q] = min(until[q], ranks[q])
            value = c[leaf]
            for q in range(m):
                if after[q] < until[q]:
                    steps[q, after[q] + 1] += value
                    steps[q, until[q] + 1] -= value
        add_running_sums(steps, out[r])


@njit(nogil=True, cache=True)
def values(first, c, n_known, start, member, coalitions, out):
    """Add to ``out[r, q]`` the value of coalition q at row r."""
    for r in range(out.shape[0]):
        for q in range(coalitions.shape[0]):
            total = 0.0
            for leaf in range(first[r], first[r + 1]):
                middle, on = start[leaf] + n_known[leaf], True
                for at in range(start[leaf], start[leaf + 1]):
                    if coalitions[q, member[at]] != (at < middle):
                        on = False
                        break
                if on:
                    total += c[leaf]
            out[r, q] += total
