"""Compiled loops over leaves and patterns: games whose hidden features take the values of background rows.

The pattern of a row at a leaf tells which of the leaf's members the row passes, bit k for member k. With G(U) the share
of the background that passes all members in U, a leaf of value c gives c · G(members outside S) to a coalition S whose
members the row passes, and nothing to others. So a row matters by its patterns alone, and what depends on one is found
when it is first met.

Rows are taken 64 at a time: what they do at a split is a word, bit r for row r. Leaves are taken in groups with at most
64 players, so that a coalition is a word there.
"""

import numpy as np
from numba import njit

from weightedshap.trees.lane_kernels import distinct_sets, mixed
from weightedshap.trees.leaf_kernels import grown, level

ROWS = 64
ONE, ALL = np.uint64(1), np.uint64(2**64 - 1)
SEEN = 4096  # coalitions that are remembered while those of a row are numbered


@njit(inline="always")
def ones(word):
    """How many bits of a word are set."""
    n = 0
    while word != 0:
        word &= word - ONE
        n += 1
    return n


@njit(inline="always")
def lowest(word):
    """The position of the lowest bit that is set."""
    return ones((word & (~word + ONE)) - ONE)


@njit(inline="always")
def first_bits(n):
    """A word whose first n bits are set."""
    return ALL if n >= 64 else (ONE << np.uint64(max(n, 0))) - ONE


@njit(nogil=True, cache=True)
def in_words(goes):
    """(⌈n / 64⌉, I) words of the directions (n, I) of rows."""
    n, inner = goes.shape
    out = np.zeros(((n + ROWS - 1) // ROWS, inner), np.uint64)
    for r in range(n):
        words, row, shift = out[r // ROWS], goes[r], np.uint64(r % ROWS)
        for node in range(inner):
            words[node] |= np.uint64(row[node]) << shift
    return out


@njit(inline="always")
def passing(words, edge, begin, end):
    """A word that tells which of 64 rows pass all the splits ``edge[begin:end]``."""
    passed = ALL
    for e in range(begin, end):
        left = words[edge[e] >> 1]
        passed &= left if edge[e] & 1 == 1 else ~left
    return passed


@njit(nogil=True, cache=True)
def find_patterns(words, base, size, edge_start, edge, found):
    """``found[r]``: the pattern of each of 64 rows at the leaf with the members `base` … `base` + `size` − 1."""
    for r in range(ROWS):
        found[r] = 0
    for k in range(size):
        passed = passing(words, edge, edge_start[base + k], edge_start[base + k + 1])
        for r in range(ROWS):
            found[r] |= ((passed >> np.uint64(r)) & ONE) << np.uint64(k)


@njit(inline="always")
def empty_table(n):
    """A table to look up n words in: a power of two of places, all −1."""
    size = 1
    while size < 2 * n:
        size *= 2
    table = np.empty(size, np.int32)
    for slot in range(size):
        table[slot] = -1
    return table


@njit(nogil=True, cache=True)
def background_patterns(words, z_weight, start, edge_start, edge, most):
    """(first, mask, weight): the patterns ``first[l] … first[l + 1] − 1`` of background rows at leaf l, with weights.

    ``first[0]`` is −1 where more than `most` patterns would be needed.
    """
    n, patterns = z_weight.shape[0], 0
    first, place, seen = np.zeros(start.shape[0], np.int64), empty_table(n), np.empty(ROWS, np.uint64)
    mask, weight, last = np.empty(4096, np.uint64), np.empty(4096), np.uint64(place.shape[0] - 1)
    for leaf in range(start.shape[0] - 1):
        if patterns + n > mask.shape[0]:
            mask, weight = grown(mask, patterns + n), grown(weight, patterns + n)
        for slot in range(place.shape[0]):
            place[slot] = -1
        for b in range(n):
            if b % ROWS == 0:
                find_patterns(words[b // ROWS], start[leaf], start[leaf + 1] - start[leaf], edge_start, edge, seen)
            bits = seen[b % ROWS]
            here = mixed(bits) & last
            while place[here] >= 0 and mask[place[here]] != bits:
                here = (here + ONE) & last
            if place[here] < 0:
                place[here], mask[patterns], weight[patterns] = patterns, bits, 0.0
                patterns += 1
            weight[place[here]] += z_weight[b]
        first[leaf + 1] = patterns
        if patterns > most:
            first[0] = -1
            break
    return first, mask[:patterns].copy(), weight[:patterns].copy()


@njit(nogil=True, cache=True)
def group_leaves(begins_tree, start, member, n_players):
    """(first_leaf, first_player, who, local): leaves in groups of at most 64, with at most 64 players.

    Small trees stay together up to 16 leaves. Players of group g are ``who[first_player[g]] …``, among whom member q
    has the place ``local[q]``.
    """
    slot, who, local = np.full(n_players, -1, np.int32), np.empty_like(member), np.empty_like(member)
    first_leaf, first_player = np.zeros(start.shape[0] + 1, np.int64), np.zeros(start.shape[0] + 1, np.int64)
    g, players = 0, 0
    for leaf in range(start.shape[0] - 1):
        fresh, leaves = 0, leaf - first_leaf[g]
        for q in range(start[leaf], start[leaf + 1]):
            fresh += slot[member[q]] < 0
        crowded = leaves == 64 or players - first_player[g] + fresh > 64
        if crowded or (begins_tree[leaf] and leaves >= 16):
            for k in range(first_player[g], players):
                slot[who[k]] = -1
            g += 1
            first_leaf[g], first_player[g] = leaf, players
        for q in range(start[leaf], start[leaf + 1]):
            if slot[member[q]] < 0:
                slot[member[q]], who[players] = players - first_player[g], member[q]
                players += 1
            local[q] = slot[member[q]]
    first_leaf[g + 1], first_player[g + 1] = start.shape[0] - 1, players
    return first_leaf[: g + 2].copy(), first_player[: g + 2].copy(), who[:players].copy(), local


@njit(nogil=True, cache=True)
def fill(c, pattern, local, mask, weight, table, many, entry):
    """``entry[columns · i + j]``: what a leaf of value c gives to player i of its group at a pattern, in column j.

    A background row counts if it passes all b members that x fails. If x alone passes a of the others, each of these
    gains c · K(a + b, a), and each of the b loses c · K(a + b, a + 1). So background rows are counted by a: in
    ``many[k]`` those that member k gains by, and in the line after the last member all.
    """
    size, columns = local.shape[0], table.shape[1]
    failed = first_bits(size) & ~pattern
    b = ones(failed)
    for k in range(size + 1):
        for a in range(size - b + 1):
            many[k, a] = 0.0
    for z in range(mask.shape[0]):
        if mask[z] & failed == failed:
            alone = pattern & ~mask[z]
            a = ones(alone)
            many[size, a] += c * weight[z]
            while alone != 0:
                many[lowest(alone), a] += c * weight[z]
                alone &= alone - ONE
    for j in range(entry.shape[0]):
        entry[j] = 0.0
    for k in range(size):
        gains = np.int64((pattern >> np.uint64(k)) & ONE)
        line, here, sign = many[k if gains else size], entry[local[k] * columns :], 1.0 if gains else -1.0
        for a in range(gains, size - b + 1):
            if line[a] != 0.0:
                share, row = sign * line[a], table[level(a + b) + a - gains]
                for j in range(columns):
                    here[j] += share * row[j]


@njit(nogil=True, cache=True)
def find_entries(found, rows, leaf, table, many, place, kept, used, lines, at):
    """Fill in ``at[r]``, the line of the entry of row r, whose pattern is ``found[r]``; returns how many are used.

    Entries that are not kept (−1) are written into the last lines.
    """
    c, local, mask, weight = leaf
    for r in range(rows):
        if kept < 0:
            at[r] = lines.shape[0] - 1 - r
        else:
            slot = kept + np.int64(found[r])
            if place[slot] >= 0:
                at[r] = place[slot]
                continue
            at[r] = place[slot] = used
            used += 1
        fill(c, found[r], local, mask, weight, table, many, lines[at[r]])
    return used


@njit(nogil=True, cache=True)
def add_lines(lines, at, rows, sums):
    """Add to each of the rows of `sums` its line."""
    for r in range(rows):
        line, total = lines[at[r]], sums[r]
        for j in range(sums.shape[1]):
            total[j] += line[j]


@njit(nogil=True, cache=True)
def semivalues(words, n, leaves, groups, patterns, kept, table, many, place, memory, out):
    """Add to ``out[b, i, j, r]`` what player i is given at row 64·b + r, in column j of `table`.

    An entry is what a leaf gives to the players of its group at a pattern. Where ``kept[l]`` tells where those of leaf
    l begin in `place`, it is found once for all rows; where that is −1, for each row. There is `memory` for the entries
    of one group; when it is full, they are forgotten.
    """
    value, start, edge_start, edge = leaves
    first_leaf, first_player, who, local = groups
    first, mask, weight = patterns
    found, at, columns = np.empty(ROWS, np.uint64), np.empty(ROWS, np.uint32), table.shape[1]
    for g in range(first_leaf.shape[0] - 1):
        players = who[first_player[g] : first_player[g + 1]]
        width = players.shape[0] * columns
        if width == 0:
            continue
        lines = memory[: memory.shape[0] // width * width].reshape(-1, width)
        sums, rest = lines[:ROWS], lines[ROWS:]
        used = rest.shape[0]
        for b in range(words.shape[0]):
            rows = min(ROWS, n - ROWS * b)
            for r in range(rows):
                for j in range(width):
                    sums[r, j] = 0.0
            for leaf in range(first_leaf[g], first_leaf[g + 1]):
                base, end, z, z_end = start[leaf], start[leaf + 1], first[leaf], first[leaf + 1]
                if used + 2 * ROWS > rest.shape[0]:
                    used = 0
                    for slot in range(place.shape[0]):
                        place[slot] = -1
                find_patterns(words[b], base, end - base, edge_start, edge, found)
                one_leaf = value[leaf], local[base:end], mask[z:z_end], weight[z:z_end]
                used = find_entries(found, rows, one_leaf, table, many, place, kept[leaf], used, rest, at)
                add_lines(rest, at, rows, sums)
            for k in range(players.shape[0]):
                for j in range(columns):
                    total = out[b, players[k], j]
                    for r in range(rows):
                        total[r] += sums[r, k * columns + j]


@njit(nogil=True, cache=True)
def first_players(orders, parent, added, first, lane):
    """The distinct sets among the first 0..d players of the orders (n, m, d) of each row; the empty one comes first.

    Row r has the sets ``first[r] … first[r + 1] − 1``, numbered from 0 by ``lane[r, q, k]``; set s is set ``parent[s]``
    with the player ``added[s]``.
    """
    n, m, d = orders.shape
    place, of_order, of_size = np.empty((m, d), np.int32), np.empty(m * d + 1, np.int32), np.empty(m * d + 1, np.int32)
    table, seen = empty_table(m * d + 1), np.empty(m * d + 1, np.uint64)
    for r in range(n):
        order = orders[r]
        for q in range(m):
            for k in range(d):
                place[q, order[q, k]] = k
        sets = distinct_sets(order, place, d, table, seen, lane[r], of_order, of_size)
        for s in range(1, sets):
            q, k = of_order[s], of_size[s] - 1
            parent[first[r] + s], added[first[r] + s] = lane[r, q, k], order[q, k]
        first[r + 1] = first[r] + sets


@njit(nogil=True, cache=True)
def number_sets(parent, added, bit, coalition, table, number, distinct):
    """Number the coalitions that the sets of a row leave among the players of a group; returns how many there are.

    ``bit[p]`` stands for player p. ``number[s]`` is the number of set s, ``distinct[number]`` the coalition. Equal ones
    are found in a table of those seen last, with numbers counted from `base` on; one that it misses is numbered twice.
    """
    (seen, lane, base), n = table, 0
    coalition[0] = 0
    for s in range(1, parent.shape[0]):
        coalition[s] = coalition[parent[s]] | bit[added[s]]
    for s in range(parent.shape[0]):
        word = coalition[s]
        h = (word ^ (word >> np.uint64(12)) ^ (word >> np.uint64(24)) ^ (word >> np.uint64(40))) & np.uint64(SEEN - 1)
        is_new = (seen[h] != word) | (lane[h] < base)
        lane[h] = base + n if is_new else lane[h]
        seen[h] = distinct[n] = word
        number[s] = lane[h] - base
        n += is_new
    return n


@njit(nogil=True, cache=True)
def turn_round(distinct, n, line, r, known):
    """Bit s of ``known[w, i, r]``: whether player i is in coalition 64·w + s of the n `distinct` ones of row r."""
    for w in range((n + 63) // 64):
        for i in range(line.shape[0]):
            line[i] = 0
        for s in range(64 * w, min(n, 64 * w + 64)):
            for i in range(line.shape[0]):
                line[i] |= ((distinct[s] >> np.uint64(i)) & ONE) << np.uint64(s % 64)
        for i in range(line.shape[0]):
            known[w, i, r] = line[i]


@njit(nogil=True, cache=True)
def find_alive(words, base, local, edge_start, edge, known, alive):
    """Take from ``alive[r]`` the coalitions with a member of a leaf that row r fails; bits as of `known` (i, r)."""
    for k in range(local.shape[0]):
        passed, ours = passing(words, edge, edge_start[base + k], edge_start[base + k + 1]), known[local[k]]
        for r in range(ROWS):
            alive[r] &= ~ours[r] | (~((passed >> np.uint64(r)) & ONE) + ONE)


@njit(inline="always")
def share(mask, weight, members):
    """G: the share of the background that passes all of the members, bits of a word."""
    total = 0.0
    for z in range(mask.shape[0]):
        if mask[z] & members == members:
            total += weight[z]
    return total


@njit(nogil=True, cache=True)
def look_up(leaf, table, shares):
    """Fill in c · G(U) for all sets U of members, ``shares[U]``, and which members a coalition has, ``table[j, byte]``.

    That is by the players whose bits are set in byte j of a coalition.
    """
    c, local, mask, weight = leaf
    for at in range(shares.shape[0]):
        shares[at] = 0.0
    for z in range(mask.shape[0]):
        shares[mask[z]] += c * weight[z]
    for j in range(table.shape[0]):
        for byte in range(256):
            table[j, byte] = 0
    for k in range(local.shape[0]):
        bit, line = 1 << k, table[local[k] // 8]
        for begin in range(0, shares.shape[0], 2 * bit):
            for at in range(begin, begin + bit):
                shares[at] += shares[at + bit]
        for byte in range(256):
            if byte >> (local[k] % 8) & 1:
                line[byte] |= np.uint16(bit)


@njit(nogil=True, cache=True)
def add_alive(leaf, alive, rows, begin, distinct, table, shares, out):
    """Add to ``out[r, s]`` what a leaf gives to coalition ``distinct[r, s]``, if it is alive at row r.

    That is looked up, or found where there is nothing to look up.
    """
    c, local, mask, weight = leaf
    every, looked_up = first_bits(local.shape[0]), shares.shape[0] > 0
    for r in range(rows):
        left = alive[r]
        while left != 0:
            s, hidden = begin + lowest(left), every
            word, left = distinct[r, s], left & (left - ONE)
            if looked_up:
                for j in range(table.shape[0]):
                    hidden ^= np.uint64(table[j, word & np.uint64(255)])
                    word >>= np.uint64(8)
                out[r, s] += shares[hidden]
            else:
                for k in range(local.shape[0]):
                    hidden ^= ((word >> np.uint64(local[k])) & ONE) << np.uint64(k)
                out[r, s] += c * share(mask, weight, hidden)


@njit(nogil=True, cache=True)
def values(words, leaves, groups, patterns, kept, sets, bit, tables, shares, out):
    """Add to ``out[r, s]`` the value of set s of row r.

    Row r has the sets ``first[r] … end[r] − 1``, see `first_players`. Among the players of a group they are few
    coalitions, and a leaf is asked only about those that are alive: without any member that the row fails. What it
    gives is looked up in `shares` from ``kept[l]`` on, if that is not −1.
    """
    (value, start, edge_start, edge), (first_leaf, first_player, who, local) = leaves, groups
    (z_first, mask, weight), (parent, added, first, end) = patterns, sets
    (n, most), base = out.shape, 0
    coalition, number, counts = np.empty(most, np.uint64), np.empty((ROWS, most), np.int32), np.zeros(ROWS, np.int64)
    distinct, found, line = np.empty((ROWS, most + 1), np.uint64), np.empty((ROWS, most)), np.empty(64, np.uint64)
    seen, lane, known = np.zeros(SEEN, np.uint64), np.full(SEEN, -1), np.empty((most // 64 + 1, 64, ROWS), np.uint64)
    alive = np.empty(ROWS, np.uint64)
    for g in range(first_leaf.shape[0] - 1):
        players, nothing = who[first_player[g] : first_player[g + 1]], 0.0
        for k in range(players.shape[0]):
            bit[players[k]] = ONE << np.uint64(k)
        for leaf in range(first_leaf[g], first_leaf[g + 1]):
            mine, z, at = local[start[leaf] : start[leaf + 1]], slice(z_first[leaf], z_first[leaf + 1]), kept[leaf]
            nothing += value[leaf] * share(mask[z], weight[z], first_bits(mine.shape[0]))
            if at >= 0:
                room = shares[at : at + (1 << mine.shape[0])]
                look_up((value[leaf], mine, mask[z], weight[z]), tables[leaf - first_leaf[g]], room)
        for b in range(words.shape[0]):
            rows, widest = min(ROWS, n - ROWS * b), 0
            for r in range(rows):
                some, table = slice(first[ROWS * b + r], end[ROWS * b + r]), (seen, lane, base)
                counts[r] = number_sets(parent[some], added[some], bit, coalition, table, number[r], distinct[r])
                turn_round(distinct[r], counts[r], line[: players.shape[0]], r, known)
                base, widest = base + counts[r], max(widest, counts[r])
                for s in range(counts[r]):
                    found[r, s] = 0.0
            for leaf in range(first_leaf[g], first_leaf[g + 1]):
                mine, z, at = local[start[leaf] : start[leaf + 1]], slice(z_first[leaf], z_first[leaf + 1]), kept[leaf]
                room = shares[at : at + (1 << mine.shape[0])] if at >= 0 else shares[:0]
                one_leaf, place = (value[leaf], mine, mask[z], weight[z]), tables[leaf - first_leaf[g]]
                for w in range((widest + 63) // 64):
                    for r in range(ROWS):
                        alive[r] = first_bits(counts[r] - 64 * w) & (ALL - ONE if w == 0 else ALL)
                    find_alive(words[b], start[leaf], mine, edge_start, edge, known[w], alive)
                    of_players = place[: (players.shape[0] + 7) // 8]
                    add_alive(one_leaf, alive, rows, 64 * w, distinct, of_players, room, found)
            for r in range(rows):
                found[r, 0], total = nothing, out[ROWS * b + r]
                for s in range(end[ROWS * b + r] - first[ROWS * b + r]):
                    total[s] += found[r, number[r, s]]
        for k in range(players.shape[0]):
            bit[players[k]] = 0
