"""Compiled loops over trees: leaves that are alive at a row, and what is read off them.

Where a split parts the explained row x from the absent one, its player decides: known → x's way,
hidden → the other. So every leaf is an indicator ``1[A ⊆ S, B ∩ S = ∅]`` of players A that must be
known and B that must be hidden. The leaves that can be reached are listed once for each row; Δ and
values are sums over that list.

Row r has leaves ``first[r, 0] … first[r + 1, 0] − 1``; leaf l has value ``c[l]``, one for each
output. Its members are the first ``shared[l]`` of the leaf before it and ``own[l]`` more, which
stand in `member`, from ``first[r, 1]`` on, one leaf after the other: p if player p is in A, ~p if
in B.

Inner nodes are numbered before leaves: from ``n_inner = left.shape[0]`` on a node has ``value[node
− n_inner]``.
"""

from typing import Any

import numpy as np

from weightedshap._checks import BoolArray, FloatArray
from weightedshap._compile import compiled, inlined

KNOWN = 1
HIDDEN = 2
# Orders looked at together: a loop over fewer is unrolled, and then not done in a processor's words
LANES = 32


@compiled
def directions(X, column, threshold, nan_left, special, slot, categories, out):
    """``out[r, node]``: whether row r goes left at an inner node.

    All compare numbers, without branches; then `special` ones are set right: categories, and zero
    (≤ 1e-35) as missing.
    """
    for r in range(X.shape[0]):
        x = X[r]
        row = out[r]
        for node in range(column.shape[0]):
            row[node] = x[column[node]] <= threshold[node]
        if np.isnan(x.sum()):
            for node in range(column.shape[0]):
                row[node] |= np.isnan(x[column[node]]) & nan_left[node]
        for node in special:
            row[node] = goes_left(
                x[column[node]], row[node], nan_left[node], slot[node], categories
            )


@inlined
def goes_left(v, compared, nan_left, slot, categories):
    """Whether `v` goes left at a special split: by category, or with zero for missing, or as
    numbers `compared`."""
    cat_start, cat_words, member_left = categories
    if slot < 0:
        return nan_left if abs(v) <= 1e-35 else compared
    if np.isnan(v):
        return compared
    begin = cat_start[slot]
    n_words = cat_start[slot + 1] - cat_start[slot]
    if v < 0 or v >= 32 * n_words:
        return not member_left[slot]
    code = np.uint32(v)
    bit = (cat_words[begin + (code >> np.uint32(5))] >> (code & np.uint32(31))) & np.uint32(1)
    return (bit == np.uint32(1)) == member_left[slot]


@compiled
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


def list_leaves(
    x_left: BoolArray,
    ways: Any,
    z_weight: FloatArray,
    roots: Any,
    value: FloatArray,
    n_players: int,
    depth: int,
) -> tuple[FloatArray, tuple[Any, ...]]:
    """(k, n) the values of explained rows, with directions `x_left` (n, nodes), and lists of their
    living leaves."""
    n = len(x_left)
    scratch = (np.zeros(n_players, np.int8), *np.empty((2, depth), np.int32))
    first = np.zeros((n + 1, 2), np.int64)
    c = np.empty((len(value), 0))
    full = np.zeros((len(value), n))
    (shared, own, member) = np.empty((3, 0), np.int16 if n_players < 2**15 else np.int32)
    done = 0
    while done < n:
        # In all, if all rows are like those that are done.
        leaves, members = (n * first[done]) // max(done, 1)
        c, shared, own = (
            with_room(array, max(1024, array.shape[-1], leaves)) for array in (c, shared, own)
        )
        member = with_room(member, max(1024, len(member), members, depth))
        done = fill_leaves(
            x_left,
            ways,
            z_weight,
            roots,
            value,
            *scratch,
            done,
            first,
            c,
            shared,
            own,
            member,
            full,
        )
    leaves, members = first[-1]
    return full, (first, c[:, :leaves], shared[:leaves], own[:leaves], member[:members])


def with_room(array: Any, room: int) -> Any:
    """The same in twice the room."""
    bigger = np.empty((*array.shape[:-1], 2 * room), array.dtype)
    bigger[..., : array.shape[-1]] = array
    return bigger


@compiled
def fill_leaves(
    x_left,
    ways,
    z_weight,
    roots,
    value,
    side,
    path,
    z_way,
    done,
    first,
    c,
    shared,
    own,
    member,
    full,
):
    """Fill in the lists from row `done` on; the row that there was no room for, or n.

    ``ways[b, node]`` tells where x goes if it parts from absent row b, where b goes, the player,
    and whether b goes left. `side` (players), `path` and `z_way` (depth) are of use within one
    tree. The first leaf of a tree is the one that x itself reaches: ``full[o, r]`` is the sum of
    these.
    """
    leaves = first[done, 0]
    members = first[done, 1]
    n_inner = ways.shape[1]
    for r in range(done, x_left.shape[0]):
        for o in range(full.shape[0]):
            full[o, r] = 0.0
        for b in range(ways.shape[0]):
            for root in roots:
                node = root
                length = 0
                kept = 0
                own_way = b == 0
                while True:
                    while node < n_inner:
                        p = ways[b, node, 2]
                        hidden_way = ways[b, node, 1]
                        if x_left[r, node] == ways[b, node, 3]:
                            node = hidden_way
                            continue
                        if side[p] == 0:
                            path[length] = p
                            z_way[length] = hidden_way
                            side[p] = KNOWN
                            length += 1
                        node = ways[b, node, 0] if side[p] == KNOWN else hidden_way
                    if leaves >= c.shape[1] or members + length > member.shape[0]:
                        for q in range(length):
                            side[max(path[q], ~path[q])] = 0
                        return r
                    for o in range(c.shape[0]):
                        c[o, leaves] = value[o, node - n_inner] * z_weight[b]
                        if own_way:
                            full[o, r] += value[o, node - n_inner]
                    own_way = False
                    shared[leaves] = kept
                    own[leaves] = length - kept
                    for q in range(kept, length):
                        member[members] = path[q]
                        members += 1
                    leaves += 1
                    while length > 0 and path[length - 1] < 0:
                        length -= 1
                        side[~path[length]] = 0
                    if length == 0:
                        break
                    kept = length - 1
                    side[path[kept]] = HIDDEN
                    node = z_way[kept]
                    path[kept] = ~path[kept]
        first[r + 1, 0], first[r + 1, 1] = leaves, members
    return x_left.shape[0]


@compiled(fastmath={"contract"})
def semivalues(first, c, shared, own, member, table, out):
    """``out[r, q, i]`` = Σ_j w_qj Δ_j(x_i) for every row r and weight vector w_q.

    A leaf with s members, a of them known, gives each known one +c · K(s, a) and each hidden one −c
    · K(s, a + 1), with K(s, t)[j] = C(d−s, j−t) / C(d−1, j−1); row ``level(s) + t − 1`` of `table`
    is K(s, t) times the weight vectors.
    """
    d = out.shape[2]
    gathered = np.zeros((table.shape[0], d + 7))
    slot = np.full(d, -1, np.int32)
    met = np.empty(d, np.int32)
    place = np.empty(d, np.int32)
    n_known = np.zeros(d + 1, np.int32)
    for r in range(out.shape[0]):
        widest = np.int64(0)
        n_met = 0  # of one type, so that what is called is compiled once
        begin = first[r, 1]
        for leaf in range(first[r, 0], first[r + 1, 0]):
            size = np.int64(shared[leaf])
            end = begin + own[leaf]
            for at in range(begin, end):
                known = member[at] >= 0
                p = member[at] if known else ~member[at]
                if slot[p] < 0:
                    slot[p] = n_met
                    met[n_met] = p
                    n_met += 1
                place[size] = slot[p] if known else ~slot[p]
                n_known[size + 1] = n_known[size] + known
                size += 1
            begin = end
            widest = max(widest, size)
            cell = level(size) + n_known[size] - 1
            value = c[leaf]
            for q in range(size):
                if place[q] >= 0:
                    gathered[cell, place[q]] += value
                else:
                    gathered[cell + 1, ~place[q]] -= value
        spread(gathered, widest, table, slot, met[:n_met], out[r])


@compiled
def level(s):
    """Where the rows K(s, 1), …, K(s, s) of the table of coefficients begin."""
    return s * (s - 1) // 2


@inlined
def spread(gathered, widest, table, slot, met, out):
    """``out[q, met[i]] = Σ_{s,t} gathered[level(s) + t − 1, i] · table[level(s) + t − 1, q]``, 0
    for others.

    The i-th player met is p = ``met[i]``, with ``slot[p] = i``; `gathered` and `slot` are left as
    they began, 0 and −1. All is first carried up to the widest leaf by Pascal's rule K(s, t) = K(s
    + 1, t) + K(s + 1, t + 1). `gathered` has seven columns to spare: loops that end in a whole word
    of the processor are faster.
    """
    n_met = met.shape[0]
    n = (met.shape[0] + 7) // 8 * 8
    line = np.zeros(n + 1)  # the last stays zero, for players that were not met: their slot is −1
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
    top = level(widest)
    rest = level(widest + 1) - widest % 4  # four terms at a time, then the rest
    for q in range(out.shape[0]):
        for i in range(n):
            line[i] = 0.0
        for t in range(top, rest, 4):
            s0 = table[t, q]
            s1 = table[t + 1, q]
            s2 = table[t + 2, q]
            s3 = table[t + 3, q]
            for i in range(n):
                two = s0 * gathered[t, i] + s1 * gathered[t + 1, i]
                line[i] += two + (s2 * gathered[t + 2, i] + s3 * gathered[t + 3, i])
        for t in range(rest, top + widest):
            share = table[t, q]
            for i in range(n):
                line[i] += share * gathered[t, i]
        for p in range(out.shape[1]):
            out[q, p] = line[slot[p]]
    for t in range(top, top + widest):
        for i in range(n):
            gathered[t, i] = 0.0
    for i in range(n_met):
        slot[met[i]] = -1


@compiled
def along(first, c, shared, own, member, orders, out):
    """Add to ``out[r, q, k]`` the value when the first k players of order q of row r are known.

    Leaf (A, B) is on for max rank(A) < k ≤ min rank(B), ranks counted from 0; leaves share what
    they share of the way. Orders are looked at `LANES` at a time: ``ranks[p]`` has the ranks of
    player p as lanes and −d for as many, and ``ranks[~p]`` has −1 and the negatives of its ranks.
    The largest of a leaf's members tell when it goes on, and off.
    """
    m = orders.shape[1]
    d = orders.shape[2]
    ranks = np.empty((2 * d, 2 * LANES), member.dtype)
    bounds = np.empty((d + 1, 2 * LANES), member.dtype)
    for q in range(LANES):
        bounds[0, q], bounds[0, LANES + q] = -1, -d
        for p in range(d):
            ranks[p, q], ranks[p, LANES + q], ranks[~p, q], ranks[~p, LANES + q] = -1, -d, -1, -d
    steps = np.empty((LANES, d + 2))
    for r in range(orders.shape[0]):
        for lane in range(0, m, LANES):
            lanes = min(LANES, m - lane)
            for q in range(lanes):
                for k in range(d):
                    p = orders[r, lane + q, k]
                    ranks[p, q], ranks[~p, LANES + q] = k, -k
                for k in range(d + 2):
                    steps[q, k] = 0.0
            begin = first[r, 1]
            always = 0.0
            for leaf in range(first[r, 0], first[r + 1, 0]):
                size = np.int64(shared[leaf])
                value = c[leaf]
                end = begin + own[leaf]
                for at in range(begin, end):
                    p = member[at]
                    for q in range(2 * LANES):
                        bounds[size + 1, q] = max(bounds[size, q], ranks[p, q])
                    size += 1
                begin = end
                if bounds[size, LANES] == -d:  # none of its members is hidden: once on, it stays
                    for q in range(lanes):
                        steps[q, bounds[size, q] + 1] += value
                elif bounds[size, 0] < 0:  # none is known: it is on from the start
                    always += value
                    for q in range(lanes):
                        steps[q, 1 - bounds[size, LANES + q]] -= value
                else:
                    for q in range(lanes):
                        if bounds[size, q] + bounds[size, LANES + q] < 0:
                            steps[q, bounds[size, q] + 1] += value
                            steps[q, 1 - bounds[size, LANES + q]] -= value
            for q in range(lanes):
                total = always
                for k in range(d + 1):
                    total += steps[q, k]
                    out[r, lane + q, k] += total


@compiled
def values(first, c, shared, own, member, coalitions, out):
    """Add to ``out[r, q]`` the value of coalition q at row r; the first `agreed` members of a leaf
    agree."""
    for r in range(out.shape[0]):
        for q in range(coalitions.shape[0]):
            total = 0.0
            agreed = np.int64(0)
            begin = first[r, 1]
            for leaf in range(first[r, 0], first[r + 1, 0]):
                size = np.int64(shared[leaf])
                end = begin + own[leaf]
                agreed = min(agreed, size)
                for at in range(begin, end):
                    known = member[at] >= 0
                    if (
                        agreed == size
                        and coalitions[q, member[at] if known else ~member[at]] == known
                    ):
                        agreed += 1
                    size += 1
                begin = end
                if agreed == size:
                    total += c[leaf]
            out[r, q] += total
