"""Compiled loops over trees: leaves that are alive at a row, and what is read off them.

A split sends the explained row x one way and the absent value (hidden, or a background row) the same or
the other way. Where the ways part, the player of the split decides: known → x's way, hidden → the other.
So every leaf is an indicator ``1[A ⊆ S, B ∩ S = ∅]``, where A holds the players that must be known for
the leaf to be reached and B those that must be hidden. The leaves that can be reached at all are listed
once for each row; Δ, values along orders, and values of coalitions are sums over that list.

Leaves of n rows are stored one after another: row r has leaves ``first[r] … first[r + 1] − 1``; leaf l has
value ``c[l]`` and members ``member[start[l] : start[l + 1]]``, the first ``n_known[l]`` of which are A.

Inner nodes of all trees are numbered first, then the leaves: a node is a leaf if it is not smaller than
``n_inner = left.shape[0]``, and its value is ``value[node − n_inner]``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

KNOWN, HIDDEN = 1, 2


@njit(nogil=True, cache=True)
def goes_left(node, v, threshold, nan_left, zero_missing, cat_slot, cat_start, cat_words, member_left):
    """Whether value `v` goes left at `node`."""
    if np.isnan(v):
        return nan_left[node]
    slot = cat_slot[node]
    if slot >= 0:
        return is_member(v, cat_words[cat_start[slot] : cat_start[slot + 1]]) == member_left[slot]
    if zero_missing[node] and abs(v) <= 1e-35:
        return nan_left[node]
    return v <= threshold[node]


@njit(nogil=True, cache=True)
def is_member(v, words):
    """Whether category `v` is in the set written as bits of `words`."""
    if v < 0 or v >= 32 * words.shape[0]:
        return False
    code = np.uint32(v)
    return (words[code >> np.uint32(5)] >> (code & np.uint32(31))) & np.uint32(1) == np.uint32(1)


@njit(nogil=True, cache=True)
def plain_directions(X, column, threshold, nan_left):
    """(n, nodes): whether each row goes left at each inner node, where splits only compare numbers."""
    out = np.empty((X.shape[0], column.shape[0]), np.bool_)
    for r in range(X.shape[0]):
        x, row = X[r], out[r]
        for node in range(column.shape[0]):
            v = x[column[node]]
            row[node] = (v <= threshold[node]) | (np.isnan(v) & nan_left[node])
    return out


@njit(nogil=True, cache=True)
def any_directions(X, column, threshold, nan_left, zero_missing, cat_slot, cat_start, cat_words, member_left):
    """(n, nodes): whether each row goes left at each inner node, for every kind of split."""
    out = np.empty((X.shape[0], column.shape[0]), np.bool_)
    for r in range(X.shape[0]):
        for node in range(column.shape[0]):
            out[r, node] = goes_left(
                node, X[r, column[node]], threshold, nan_left, zero_missing, cat_slot, cat_start, cat_words,
                member_left,
            )  # fmt: skip
    return out


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
def longest_path(roots, left, right):
    """Splits on the longest way from a root to a leaf."""
    n_inner = left.shape[0]
    waiting, level = np.empty(n_inner + 2, np.int32), np.empty(n_inner + 2, np.int32)
    longest = 0
    for root in roots:
        waiting[0], level[0], top = root, 0, 1
        while top > 0:
            top -= 1
            node, depth = waiting[top], level[top]
            longest = max(longest, depth)
            if node < n_inner:
                waiting[top], waiting[top + 1] = left[node], right[node]
                level[top], level[top + 1] = depth + 1, depth + 1
                top += 2
    return longest


@njit(nogil=True, cache=True)
def grown(array, size):
    """A copy of `array` with room for at least `size` entries, at least doubled."""
    bigger = np.empty(max(size, 2 * array.shape[0]), dtype=array.dtype)
    bigger[: array.shape[0]] = array
    return bigger


@njit(nogil=True, cache=True)
def list_leaves(x_left, z_left, z_weight, roots, left, right, player, value, n_players, depth):
    """The living leaves of every explained row against every absent row, values times `z_weight`.

    `x_left` (n, nodes) and `z_left` (B, nodes) tell which rows go left at each inner node.
    """
    n, n_inner = x_left.shape[0], left.shape[0]
    side = np.zeros(n_players, np.uint8)
    path, known = np.empty(depth + 1, np.int32), np.empty(depth + 1, np.int64)
    stack_node, stack_length = np.empty(depth + 1, np.int32), np.empty(depth + 1, np.int64)
    first = np.zeros(n + 1, np.int64)
    c, n_known, start = np.empty(1024), np.empty(1024, np.int32), np.zeros(1025, np.int64)
    member = np.empty(8192, np.int32)
    leaves, members = 0, 0
    for r in range(n):
        present = x_left[r]
        for b in range(z_left.shape[0]):
            absent = z_left[b]
            for root in roots:
                node, length, top = root, 0, 0
                while True:
                    while node < n_inner:
                        if present[node] == absent[node]:
                            node = left[node] if present[node] else right[node]
                            continue
                        x_way, z_way = (left[node], right[node]) if present[node] else (right[node], left[node])
                        p = player[node]
                        if side[p] == 0:
                            stack_node[top], stack_length[top] = z_way, length
                            top += 1
                            path[length], known[length], side[p] = p, 1, KNOWN
                            length += 1
                            node = x_way
                        else:
                            node = x_way if side[p] == KNOWN else z_way
                    if leaves == c.shape[0]:
                        c, n_known, start = grown(c, leaves + 1), grown(n_known, leaves + 1), grown(start, leaves + 2)
                    if members + length >= member.shape[0]:
                        member = grown(member, members + length + 1)
                    low, high = members, members + length
                    for q in range(length):
                        member[low if known[q] else high - 1] = path[q]
                        low += known[q]
                        high -= 1 - known[q]
                    c[leaves], n_known[leaves] = value[node - n_inner] * z_weight[b], low - members
                    members += length
                    leaves += 1
                    start[leaves] = members
                    if top == 0:
                        break
                    top -= 1
                    branch = stack_length[top]
                    while length > branch + 1:
                        length -= 1
                        side[path[length]] = 0
                    known[branch], side[path[branch]] = 0, HIDDEN
                    node = stack_node[top]
                while length > 0:
                    length -= 1
                    side[path[length]] = 0
        first[r + 1] = leaves
    return first, c[:leaves].copy(), n_known[:leaves].copy(), start[: leaves + 1].copy(), member[:members].copy()


@njit(nogil=True, cache=True)
def semivalues_of_leaves(first, c, n_known, start, member, table, level, out):
    """``out[r, q, i]`` = Σ_j w_qj Δ_j(x_i) for every row r and weight vector w_q.

    A leaf with a known and b hidden members, s = a + b, gives each known member +c · K(s, a) and each
    hidden member −c · K(s, a + 1), where K(s, t)[j] = C(d−s, j−t) / C(d−1, j−1) and row
    ``level[s] + t − 1`` of `table` is K(s, t) times the weight vectors.
    """
    gathered, slot, met = gathering(level, out.shape[2])
    for r in range(out.shape[0]):
        widest, n_met = 0, 0
        for leaf in range(first[r], first[r + 1]):
            size, a = start[leaf + 1] - start[leaf], n_known[leaf]
            if size == 0:
                continue
            widest = max(widest, size)
            cell = level[size] + a - 1
            for q in range(start[leaf], start[leaf + 1]):
                p = member[q]
                if slot[p] < 0:
                    slot[p], met[n_met] = n_met, p
                    n_met += 1
                if q < start[leaf] + a:
                    gathered[cell, slot[p]] += c[leaf]
                else:
                    gathered[cell + 1, slot[p]] -= c[leaf]
        spread(gathered, widest, table, level, slot, met[:n_met], out[r])


@njit(nogil=True, cache=True)
def gathering(level, d):
    """Room for leaf values by (s, t) and player, and the players met so far: slot of each, and who they are."""
    return np.zeros((level[-1] + 1, d)), np.full(d, -1, np.int32), np.empty(d, np.int32)


@njit(nogil=True, cache=True)
def spread(gathered, widest, table, level, slot, met, out):
    """``out[q, met[i]] = Σ_{s,t} gathered[level[s] + t − 1, i] · table[level[s] + t − 1, q]``, 0 for others.

    Leaves `gathered` and `slot` as `gathering` made them. By Pascal's rule
    K(s, t) = K(s + 1, t) + K(s + 1, t + 1), so all that was gathered is first carried up to the widest leaf,
    and only its rows of the table are needed.
    """
    n_met = met.shape[0]
    line = np.empty(n_met)
    for s in range(1, widest):
        for t in range(s):
            here, below, above = gathered[level[s] + t], gathered[level[s + 1] + t], gathered[level[s + 1] + t + 1]
            for i in range(n_met):
                g = here[i]
                below[i] += g
                above[i] += g
                here[i] = 0.0
    top = level[widest]
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
def along_leaves(first, c, n_known, start, member, orders, out):
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
        for q in range(m):
            total = 0.0
            for k in range(d + 1):
                total += steps[q, k]
                out[r, q, k] += total


@njit(nogil=True, cache=True)
def ends_of_leaves(first, c, n_known, start, out):
    """Add to ``out[r]`` the values of no players and of all players at row r."""
    for r in range(out.shape[0]):
        for leaf in range(first[r], first[r + 1]):
            if n_known[leaf] == 0:
                out[r, 0] += c[leaf]
            if n_known[leaf] == start[leaf + 1] - start[leaf]:
                out[r, 1] += c[leaf]


@njit(nogil=True, cache=True)
def values_of_leaves(first, c, n_known, start, member, coalitions, out):
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


@njit(nogil=True, cache=True)
def leaf_paths(roots, left, right, player, value, cover, n_players, depth):
    """The way to every leaf, grouped by player.

    Returns
    -------
    c : value of each leaf
    start : members of leaf l are ``start[l] … start[l + 1] − 1``
    member, ratio : the player, and the product of the shares of cover that its splits send this way
    edge_start, edge : the splits of member q are ``edge[edge_start[q] : edge_start[q + 1]]``, each written
        as 2·node + (1 if the way goes left)
    """
    n_inner = left.shape[0]
    slot = np.full(n_players, -1, np.int32)
    way, turn = np.empty(depth + 1, np.int32), np.empty(depth + 1, np.int32)
    c, start = np.empty(1024), np.zeros(1025, np.int64)
    member, ratio, edge_start = np.empty(8192, np.int32), np.empty(8192), np.zeros(8193, np.int64)
    edge = np.empty(8192, np.int32)
    leaves, members, edges = 0, 0, 0
    for root in roots:
        node, length = root, 0
        while True:
            while node < n_inner:
                way[length], turn[length] = node, 1
                length += 1
                node = left[node]
            if leaves == c.shape[0]:
                c, start = grown(c, leaves + 1), grown(start, leaves + 2)
            if members + length >= member.shape[0]:
                member, ratio = grown(member, members + length), grown(ratio, members + length)
                edge_start = grown(edge_start, member.shape[0] + 1)
            if edges + length >= edge.shape[0]:
                edge = grown(edge, edges + length)
            base = members
            for q in range(length):
                p = player[way[q]]
                if slot[p] < 0:
                    slot[p] = members
                    member[members], ratio[members] = p, 1.0
                    members += 1
            for q in range(base, members):
                for k in range(length):
                    if player[way[k]] == member[q]:
                        went = left[way[k]] if turn[k] == 1 else right[way[k]]
                        if cover[way[k]] > 0:
                            ratio[q] *= cover[went] / cover[way[k]]
                        else:
                            ratio[q] = 0.0
                        edge[edges] = 2 * way[k] + turn[k]
                        edges += 1
                edge_start[q + 1] = edges
                slot[member[q]] = -1
            c[leaves] = value[node - n_inner]
            leaves += 1
            start[leaves] = members
            while length > 0 and turn[length - 1] == 0:
                length -= 1
            if length == 0:
                break
            turn[length - 1] = 0
            node = right[way[length - 1]]
    return (
        c[:leaves].copy(), start[: leaves + 1].copy(), member[:members].copy(), ratio[:members].copy(),
        edge_start[: members + 1].copy(), edge[:edges].copy(),
    )  # fmt: skip


@njit(nogil=True, cache=True)
def passes(goes, edge, begin, end):
    """Whether a row with directions `goes` passes all the splits ``edge[begin:end]``."""
    for e in range(begin, end):  # noqa: SIM110
        if goes[edge[e] >> 1] != (edge[e] & 1 == 1):
            return False
    return True


@njit(nogil=True, cache=True)
def background_patterns(z_left, z_weight, start, edge_start, edge, most):
    """For every leaf, which of its members the background rows pass, as bit masks with their weights.

    Returns (first, mask, weight), patterns of leaf l being ``first[l] … first[l + 1] − 1``; an empty list
    with first = [-1] where more than `most` patterns would be needed.
    """
    n_leaves = start.shape[0] - 1
    first = np.zeros(n_leaves + 1, np.int64)
    mask, weight = np.empty(4096, np.uint64), np.empty(4096)
    seen = np.empty(z_left.shape[0], np.uint64)
    counted = np.zeros(4096)
    patterns = 0
    for leaf in range(n_leaves):
        base, size = start[leaf], start[leaf + 1] - start[leaf]
        for b in range(z_left.shape[0]):
            bits = np.uint64(0)
            for q in range(size):
                if passes(z_left[b], edge, edge_start[base + q], edge_start[base + q + 1]):
                    bits |= np.uint64(1) << np.uint64(q)
            seen[b] = bits
        room = min(z_left.shape[0], 1 << min(size, 30))
        if patterns + room > mask.shape[0]:
            mask, weight = grown(mask, patterns + room), grown(weight, patterns + room)
        if size <= 12:
            for b in range(z_left.shape[0]):
                counted[seen[b]] += z_weight[b]
            for bits in range(1 << size):
                if counted[bits] > 0:
                    mask[patterns], weight[patterns] = bits, counted[bits]
                    counted[bits] = 0.0
                    patterns += 1
        else:
            order = np.argsort(seen)
            for at in range(order.shape[0]):
                b = order[at]
                if at > 0 and seen[b] == mask[patterns - 1]:
                    weight[patterns - 1] += z_weight[b]
                else:
                    mask[patterns], weight[patterns] = seen[b], z_weight[b]
                    patterns += 1
        first[leaf + 1] = patterns
        if patterns > most:
            first[0] = -1
            break
    return first, mask[:patterns].copy(), weight[:patterns].copy()


@njit(nogil=True, cache=True)
def list_pattern_leaves(x_left, value, path_start, path_member, edge_start, edge, pattern_first, mask, weight):
    """The living leaves of every row against a background that is written as patterns."""
    n = x_left.shape[0]
    first = np.zeros(n + 1, np.int64)
    c, n_known, start = np.empty(1024), np.empty(1024, np.int32), np.zeros(1025, np.int64)
    member = np.empty(8192, np.int32)
    leaves, members = 0, 0
    for r in range(n):
        for leaf in range(value.shape[0]):
            if value[leaf] == 0.0:
                continue
            base, size = path_start[leaf], path_start[leaf + 1] - path_start[leaf]
            every = (np.uint64(1) << np.uint64(size)) - np.uint64(1) if size < 64 else ~np.uint64(0)
            bits = np.uint64(0)
            for q in range(size):
                if passes(x_left[r], edge, edge_start[base + q], edge_start[base + q + 1]):
                    bits |= np.uint64(1) << np.uint64(q)
            for at in range(pattern_first[leaf], pattern_first[leaf + 1]):
                if bits | mask[at] != every:
                    continue
                if leaves == c.shape[0]:
                    c, n_known, start = grown(c, leaves + 1), grown(n_known, leaves + 1), grown(start, leaves + 2)
                if members + size > member.shape[0]:
                    member = grown(member, members + size)
                known, hidden = bits & ~mask[at], mask[at] & ~bits
                begin = members
                for q in range(size):
                    if (known >> np.uint64(q)) & np.uint64(1):
                        member[members] = path_member[base + q]
                        members += 1
                c[leaves], n_known[leaves] = value[leaf] * weight[at], members - begin
                for q in range(size):
                    if (hidden >> np.uint64(q)) & np.uint64(1):
                        member[members] = path_member[base + q]
                        members += 1
                leaves += 1
                start[leaves] = members
        first[r + 1] = leaves
    return first, c[:leaves].copy(), n_known[:leaves].copy(), start[: leaves + 1].copy(), member[:members].copy()


@njit(nogil=True, cache=True)
def divide(product, degree, r, out):
    """Coefficients of ``product / (r + y)``, a polynomial of degree `degree` with roots in (−∞, 0].

    The coefficients are positive and log-concave, so from below the quotient can be read without
    cancellation while r·q_t ≥ q_{t−1}, and from above for all the rest.
    """
    last = -1
    if r > 0:
        before = 0.0
        for t in range(degree):
            q = (product[t] - before) / r
            if q * r < before:
                break
            out[t] = q
            before, last = q, t
    above = 0.0
    for t in range(degree - 1, last, -1):
        above = product[t + 1] - r * above
        out[t] = above


@njit(nogil=True, cache=True)
def semivalues_of_paths(x_left, value, start, member, ratio, edge_start, edge, table, level, out):
    """Path-dependent: ``out[r, q, i]`` = Σ_j w_qj Δ_j(x_i) for every row r and weight vector w_q.

    A leaf with p members multiplies, for each member k, a_k (1 if x passes its splits) when k is known and
    the cover ratio r_k when it is hidden. With q the coefficients of Π_{k≠i} (r_k + a_k y),
    Δ_j(i) gains c (a_i − r_i) Σ_t q_t K(p, t + 1)[j]. Only members with a_k = 1 carry y; of the others
    only the product of their r_k is needed, because a_i − r_i = −r_i completes it.
    """
    gathered, slot, met = gathering(level, out.shape[2])
    widest = 0
    for leaf in range(value.shape[0]):
        widest = max(widest, start[leaf + 1] - start[leaf])
    active = np.empty(widest, np.bool_)
    product, quotient = np.empty(widest + 1), np.empty(widest + 1)
    for r in range(out.shape[0]):
        n_met = 0
        for leaf in range(value.shape[0]):
            base, size = start[leaf], start[leaf + 1] - start[leaf]
            if size == 0 or value[leaf] == 0.0:
                continue
            scale, degree = value[leaf], 0
            product[0] = 1.0
            for q in range(size):
                active[q] = passes(x_left[r], edge, edge_start[base + q], edge_start[base + q + 1])
                if not active[q]:
                    scale *= ratio[base + q]
                    continue
                product[degree + 1] = product[degree]
                for t in range(degree, 0, -1):
                    product[t] = product[t - 1] + ratio[base + q] * product[t]
                product[0] *= ratio[base + q]
                degree += 1
            if scale == 0.0:
                continue
            cell = level[size]
            for q in range(size):
                p = member[base + q]
                if slot[p] < 0:
                    slot[p], met[n_met] = n_met, p
                    n_met += 1
                i = slot[p]
                if active[q]:
                    divide(product, degree, ratio[base + q], quotient)
                    gain = scale * (1.0 - ratio[base + q])
                    for t in range(degree):
                        gathered[cell + t, i] += gain * quotient[t]
                else:
                    for t in range(degree + 1):
                        gathered[cell + t, i] -= scale * product[t]
        spread(gathered, widest, table, level, slot, met[:n_met], out[r])


@njit(nogil=True, cache=True)
def along_paths(x_left, value, start, member, ratio, edge_start, edge, orders, out):
    """Path-dependent: add to ``out[r, q, k]`` the value when the first k players of order q are known."""
    m, d = orders.shape[1], orders.shape[2]
    rank = np.empty((m, d), np.int64)
    widest = 0
    for leaf in range(value.shape[0]):
        widest = max(widest, start[leaf + 1] - start[leaf])
    active, place = np.empty(widest, np.bool_), np.empty(widest, np.int64)
    rest = np.empty(widest + 1)
    steps = np.empty((m, d + 1))
    for r in range(orders.shape[0]):
        for q in range(m):
            for k in range(d):
                rank[q, orders[r, q, k]] = k
        steps[:] = 0.0
        for leaf in range(value.shape[0]):
            base, size = start[leaf], start[leaf + 1] - start[leaf]
            if value[leaf] == 0.0:
                continue
            for k in range(size):
                active[k] = passes(x_left[r], edge, edge_start[base + k], edge_start[base + k + 1])
            for q in range(m):
                for k in range(size):  # members of the leaf in the order of their ranks
                    at = k
                    while at > 0 and rank[q, member[base + place[at - 1]]] > rank[q, member[base + k]]:
                        place[at] = place[at - 1]
                        at -= 1
                    place[at] = k
                rest[size] = value[leaf]
                for k in range(size - 1, -1, -1):
                    rest[k] = rest[k + 1] * ratio[base + place[k]]
                steps[q, 0] += rest[0]
                for k in range(size):
                    at = rank[q, member[base + place[k]]] + 1
                    if not active[place[k]]:
                        steps[q, at] -= rest[k]
                        break
                    steps[q, at] += rest[k + 1] - rest[k]
        for q in range(m):
            total = 0.0
            for k in range(d + 1):
                total += steps[q, k]
                out[r, q, k] += total


@njit(nogil=True, cache=True)
def values_of_paths(x_left, value, start, member, ratio, edge_start, edge, coalitions, out):
    """Path-dependent: add to ``out[r, q]`` the value of coalition q at row r."""
    for r in range(out.shape[0]):
        for leaf in range(value.shape[0]):
            for q in range(coalitions.shape[0]):
                product = value[leaf]
                for at in range(start[leaf], start[leaf + 1]):
                    if not coalitions[q, member[at]]:
                        product *= ratio[at]
                    elif not passes(x_left[r], edge, edge_start[at], edge_start[at + 1]):
                        product = 0.0
                        break
                out[r, q] += product


def coefficient_table(d: int, widest: int) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """K(s, t)[j] = C(d−s, j−t) / C(d−1, j−1) for 1 ≤ t ≤ s ≤ `widest`, and where each s begins.

    Built as a product of ratios at most one, K(s, t) = K(s−1, t) · (d−j−s+t+1) / (d−s+1) and
    K(s, s) = K(s−1, s−1) · (j−s+1) / (d−s+1), so it neither overflows nor loses digits at any d.
    """
    first_row = np.array([s * (s - 1) // 2 for s in range(widest + 2)], dtype=np.int64)
    table = np.zeros((int(first_row[-1]), d))
    j = np.arange(1, d + 1, dtype=np.float64)
    if widest:
        table[0] = 1.0
    for s in range(2, widest + 1):
        before = table[first_row[s - 1] : first_row[s]]
        for t in range(1, s):
            table[first_row[s] + t - 1] = before[t - 1] * np.maximum(d - j - (s - t - 1), 0) / (d - s + 1)
        table[first_row[s + 1] - 1] = before[-1] * np.maximum(j - s + 1, 0) / (d - s + 1)
    return table, first_row
