"""Compiled loops over leaves and patterns: games whose hidden features take the values of
background rows.

The pattern of a row at a leaf tells which of the leaf's members the row passes, bit k for member k.
With G(U) the share of the background that passes all members in U, a leaf of value c gives c ·
G(members outside S) to a coalition S whose members the row passes, and nothing to others. So a row
matters by its patterns alone. What depends on one is found when it is first met, and kept in a
table of bounded size, where a later one may take its place.
"""

import numpy as np
import numpy.typing as npt

from weightedshap._checks import BoolArray
from weightedshap._compile import compiled, inlined
from weightedshap.trees.kernels.coalitions import distinct_sets
from weightedshap.trees.kernels.leaf_lists import level

ROWS = 64  # taken together: what they do at a split is a word, bit r for row r
GROUP = 64  # leaves of a group
SEEN = 4096  # coalitions that are remembered while those of a row are numbered
Words = npt.NDArray[np.uint64]
ONE = np.uint64(1)
ALL = np.uint64(2**64 - 1)


@inlined
def ones(word):
    """How many bits of a word are set."""
    n = 0
    while word != 0:
        word &= word - ONE
        n += 1
    return n


@inlined
def lowest(word):
    """The position of the lowest bit that is set."""
    return ones((word & (~word + ONE)) - ONE)


@inlined
def first_bits(n):
    """A word whose first n bits are set."""
    return ALL if n >= 64 else (ONE << np.uint64(max(n, 0))) - ONE


@inlined
def place_of(leaf, word, places):
    """Where to look for a word of a leaf: words that differ in their last bits do not meet."""
    return (
        word ^ (word >> np.uint64(15)) ^ np.uint64(leaf) * np.uint64(0x9E3779B97F4A7C15)
    ) & np.uint64(places - 1)


def in_words(goes: BoolArray) -> Words:
    """(⌈n / 64⌉, I) words of the directions (n, I) of rows."""
    out = np.zeros((-(-len(goes) // ROWS), goes.shape[1]), np.uint64)
    fill_words(goes, out)
    return out


@compiled
def fill_words(goes, out):
    """Bit r of ``out[b, node]``: whether row 64·b + r goes left at the node."""
    for r in range(goes.shape[0]):
        words = out[r // ROWS]
        row = goes[r]
        shift = np.uint64(r % ROWS)
        for node in range(row.shape[0]):
            words[node] |= np.uint64(row[node]) << shift


@inlined
def passing(words, edge, begin, end):
    """A word that tells which of 64 rows pass all the splits ``edge[begin:end]``."""
    passed = ALL
    for e in range(begin, end):
        left = words[edge[e] >> 1]
        passed &= left if edge[e] & 1 == 1 else ~left
    return passed


@inlined
def find_patterns(words, base, size, edge_start, edge, found):
    """``found[r]``: the pattern of each of 64 rows at the leaf with the members `base` … `base` +
    `size` − 1."""
    for r in range(ROWS):
        found[r] = 0
    for k in range(size):
        passed = passing(words, edge, edge_start[base + k], edge_start[base + k + 1])
        for r in range(ROWS):
            found[r] |= ((passed >> np.uint64(r)) & ONE) << np.uint64(k)


@inlined
def mixed(word):
    """The bits of a word, mixed up."""
    word = (word ^ (word >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return word ^ (word >> np.uint64(29))


@compiled
def fill_patterns(words, z_weight, start, edge_start, edge, place, seen, done, first, mask, weight):
    """Fill in the patterns of background rows from leaf `done` on; the leaf that there was no room
    for, or all.

    Leaf l has ``first[l] … first[l + 1] − 1``. `place`, where patterns are looked up, has a power
    of two of places.
    """
    patterns = first[done]
    last = np.uint64(place.shape[0] - 1)
    for leaf in range(done, start.shape[0] - 1):
        if patterns + z_weight.shape[0] > mask.shape[0]:
            return leaf
        for slot in range(place.shape[0]):
            place[slot] = -1
        for b in range(z_weight.shape[0]):
            if b % ROWS == 0:
                find_patterns(
                    words[b // ROWS],
                    start[leaf],
                    start[leaf + 1] - start[leaf],
                    edge_start,
                    edge,
                    seen,
                )
            bits = seen[b % ROWS]
            here = mixed(bits) & last
            while place[here] >= 0 and mask[place[here]] != bits:
                here = (here + ONE) & last
            if place[here] < 0:
                place[here] = patterns
                mask[patterns] = bits
                weight[patterns] = 0.0
                patterns += 1
            weight[place[here]] += z_weight[b]
        first[leaf + 1] = patterns
    return start.shape[0] - 1


@compiled
def group_leaves(start, member, slot, first_leaf, first_player, who, local):
    """Put leaves one after the other in groups of at most 64 players; returns how many groups there
    are.

    Players of group g are ``who[first_player[g]] …``, where member q has the place ``local[q]``;
    ``slot[p]`` is −1.
    """
    g = 0
    players = 0
    for leaf in range(start.shape[0] - 1):
        fresh = 0
        leaves = leaf - first_leaf[g]
        for q in range(start[leaf], start[leaf + 1]):
            fresh += slot[member[q]] < 0
        crowded = leaves == GROUP or players - first_player[g] + fresh > 64
        if crowded or (fresh > 0 and leaves >= 24):
            for k in range(first_player[g], players):
                slot[who[k]] = -1
            g += 1
            first_leaf[g] = leaf
            first_player[g] = players
        for q in range(start[leaf], start[leaf + 1]):
            if slot[member[q]] < 0:
                slot[member[q]] = players - first_player[g]
                who[players] = member[q]
                players += 1
            local[q] = slot[member[q]]
    first_leaf[g + 1] = start.shape[0] - 1
    first_player[g + 1] = players
    return g + 1


@inlined
def fill(pattern, base, size, local, patterns, begin, end, table, many, memory, entry, width):
    """``memory[entry + columns · i + j]``: what a leaf of value one gives to player i at a pattern,
    in column j.

    A background row counts if it passes all b members that x fails. If x alone passes a of the
    others, each of these gains K(a + b, a), and each of the b loses K(a + b, a + 1). So background
    rows are counted by a: in ``many[a, k]`` those that member k gains by, and after the last member
    all.
    """
    (_, mask, weight) = patterns
    columns = table.shape[1]
    failed = first_bits(size) & ~pattern
    b = ones(failed)
    for a in range(size - b + 1):
        for k in range(size + 1):
            many[a, k] = 0.0
    for z in range(begin, end):
        if mask[z] & failed == failed:
            alone = pattern & ~mask[z]
            share = weight[z]
            a = ones(alone)
            for k in range(size):
                many[a, k] += share if (alone >> np.uint64(k)) & ONE else 0.0
            many[a, size] += share
    for j in range(entry, entry + width):
        memory[j] = 0.0
    for k in range(size):
        gains = np.int64((pattern >> np.uint64(k)) & ONE)
        here = entry + local[base + k] * columns
        who = k if gains else size
        sign = 1.0 if gains else -1.0
        for a in range(gains, size - b + 1):
            if many[a, who] != 0.0:
                share = sign * many[a, who]
                line = level(a + b) + a - gains
                for j in range(columns):
                    memory[here + j] += share * table[line, j]


@compiled
def semivalues(words, n, value, counts, background, places, table, memory, scratch, out):
    """Add to ``out[o, b, i, j, r]`` what player i is given at row 64·b + r by leaves of ``value[:,
    o]``, in column j.

    What a leaf of value one gives to the players of its group at a pattern is an entry in `memory`.
    When that is full, all are forgotten. A leaf counts if it has a value in any output.
    """
    (start, edge_start, edge), (first_leaf, first_player, who, local), patterns = background
    (of_leaf, of_pattern, entry) = places
    columns = table.shape[1]
    outputs = value.shape[1]
    found, many, sums = scratch
    for g in range(first_leaf.shape[0] - 1):
        players = first_player[g + 1] - first_player[g]
        used = 0
        width = players * columns
        for b in range(words.shape[0]):
            rows = min(ROWS, n - ROWS * b)
            for j in range(rows * outputs * width):
                sums[j] = 0.0
            for leaf in range(first_leaf[g], first_leaf[g + 1]):
                if not counts[leaf]:
                    continue
                if used + ROWS * width > memory.shape[0]:
                    used = 0
                    for p in range(of_leaf.shape[0]):
                        of_leaf[p] = -1
                base = start[leaf]
                size = start[leaf + 1] - start[leaf]
                find_patterns(words[b], base, size, edge_start, edge, found)
                for r in range(rows):
                    at = place_of(leaf, found[r], entry.shape[0])
                    if of_leaf[at] != leaf or of_pattern[at] != found[r]:
                        of_leaf[at] = leaf
                        of_pattern[at] = found[r]
                        entry[at] = used
                        first = patterns[0][leaf]
                        last = patterns[0][leaf + 1]
                        fill(
                            found[r],
                            base,
                            size,
                            local,
                            patterns,
                            first,
                            last,
                            table,
                            many,
                            memory,
                            used,
                            width,
                        )
                        used += width
                    line = memory[entry[at] : entry[at] + width]
                    for o in range(outputs):
                        c = value[leaf, o]
                        total = sums[(r * outputs + o) * width : (r * outputs + o + 1) * width]
                        for j in range(width):
                            total[j] += c * line[j]
            for o in range(outputs):
                for k in range(players):
                    for j in range(columns):
                        total = out[o, b, who[first_player[g] + k], j]
                        for r in range(rows):
                            total[r] += sums[((r * outputs + o) * players + k) * columns + j]


@compiled
def first_players(orders, bits, parent, added, sets, lane):
    """The distinct sets among the first 0..d players of the orders (n, m, d) of each row; the empty
    one comes first.

    Row r has ``sets[r]`` of them, numbered by ``lane[r, q, k]``; set s is set ``parent[r, s]`` with
    ``added[r, s]``.
    """
    n, m, d = orders.shape
    for r in range(n):
        sets[r] = distinct_sets(orders[r], d, bits, lane[r])
        # So that a set keeps the order that it was first met in, and a parent before it.
        for q in range(m - 1, -1, -1):
            for k in range(d):
                s = lane[r, q, k + 1]
                parent[r, s] = lane[r, q, k]
                added[r, s] = orders[r, q, k]


@inlined
def number_sets(parent, added, bit, bits, table, base, number, distinct):
    """Number the coalitions that the sets of a row leave among the players of a group; returns how
    many there are.

    ``bit[p]`` stands for player p. ``number[s]`` is the number of set s, ``distinct[number]`` the
    coalition. Equal ones are found in a table of those seen last, with numbers counted from `base`
    on; one that it misses is numbered twice.
    """
    (seen, lane) = table
    n = 0
    bits[0] = 0
    for s in range(1, parent.shape[0]):
        bits[s] = bits[parent[s]] | bit[added[s]]
    for s in range(parent.shape[0]):
        word = bits[s]
        h = (
            word ^ (word >> np.uint64(12)) ^ (word >> np.uint64(24)) ^ (word >> np.uint64(40))
        ) & np.uint64(SEEN - 1)
        is_new = (seen[h] != word) | (lane[h] < base)
        lane[h] = base + n if is_new else lane[h]
        seen[h] = distinct[n] = word
        number[s] = lane[h] - base
        n += is_new
    return n


@inlined
def turn_round(coalition, n, line, r, known):
    """Bit s of ``known[w, i, r]``: whether player i is in coalition 64·w + s of the first n of row
    r."""
    for w in range((n + 63) // 64):
        for i in range(line.shape[0]):
            line[i] = 0
        for s in range(64 * w, min(n, 64 * w + 64)):
            for i in range(line.shape[0]):
                line[i] |= ((coalition[s] >> np.uint64(i)) & ONE) << np.uint64(s % 64)
        for i in range(line.shape[0]):
            known[w, i, r] = line[i]


@inlined
def share_of(hidden, local, mask, weight):
    """G: the share of the background that passes all members of a leaf among the `hidden` players,
    bits of a word."""
    members = np.uint64(0)
    total = 0.0
    for k in range(local.shape[0]):
        members |= ((hidden >> np.uint64(local[k])) & ONE) << np.uint64(k)
    for z in range(mask.shape[0]):
        total += weight[z] if mask[z] & members == members else 0.0
    return total


@inlined
def add_leaves(words, g, value, background, places, asked, alive, rows, skip, out):
    """Add to ``out[r, s]`` what the leaves of group g give to the coalition ``coalition[r, s]``.

    A row has coalitions from `skip` on to ``n[r]``; those count that are alive: without any member
    that the row fails.
    """
    (start, edge_start, edge), (first_leaf, _, _, local), (first, mask, weight) = background
    (of_leaf, of_hidden, share) = places
    (coalition, known, n) = asked
    most = 0
    for r in range(rows):
        most = max(most, n[r])
    for leaf in range(first_leaf[g], first_leaf[g + 1]):
        if value[leaf] == 0.0:  # as of classes that a leaf of a forest knows nothing of
            continue
        base = start[leaf]
        mine = local[start[leaf] : start[leaf + 1]]
        z = slice(first[leaf], first[leaf + 1])
        every = np.uint64(0)
        for k in mine:
            every |= ONE << np.uint64(k)
        for w in range((most + 63) // 64):
            for r in range(ROWS):
                alive[r] = first_bits(n[r] - 64 * w) & ~first_bits(skip - 64 * w)
            for k in range(mine.shape[0]):
                passed = passing(words, edge, edge_start[base + k], edge_start[base + k + 1])
                ours = known[w, mine[k]]
                for r in range(ROWS):
                    alive[r] &= ~ours[r] | (~((passed >> np.uint64(r)) & ONE) + ONE)
            for r in range(rows):
                lanes = alive[r]
                while lanes != 0:
                    s = 64 * w + lowest(lanes)
                    lanes &= lanes - ONE
                    hidden = every & ~coalition[r, s]
                    at = place_of(leaf, hidden, share.shape[0])
                    if of_leaf[at] != leaf or of_hidden[at] != hidden:
                        of_leaf[at] = leaf
                        of_hidden[at] = hidden
                        share[at] = value[leaf] * share_of(hidden, mine, mask[z], weight[z])
                    out[r, s] += share[at]


@compiled
def along(
    words, value, background, places, nothing, parent, added, sets, bit, seen, lanes, scratch, out
):
    """Add to ``out[r, s]`` the value of set s of row r, see `first_players`; to that of no players
    ``nothing[g]``.

    To a group of leaves only its own players matter, so that many sets are the same coalition;
    ``bit[p]`` is 0.
    """
    (first_leaf, first_player, who, _) = background[1]
    n_rows = out.shape[0]
    (coalition, known, n, line, alive) = lanes
    (bits, number, found) = scratch
    base = 0
    for r in range(ROWS):
        n[r] = 1
    for g in range(first_leaf.shape[0] - 1):
        players = who[first_player[g] : first_player[g + 1]]
        for k in range(players.shape[0]):
            bit[players[k]] = ONE << np.uint64(k)
        for row in range(0, n_rows, ROWS):
            rows = min(ROWS, n_rows - row)
            for r in range(rows):
                size = sets[row + r]
                before = parent[row + r, :size]
                player = added[row + r, :size]
                n[r] = number_sets(before, player, bit, bits, seen, base, number[r], coalition[r])
                turn_round(coalition[r], n[r], line[: players.shape[0]], r, known)
                for s in range(n[r]):
                    found[r, s] = 0.0
                found[r, 0] = nothing[g]
                base += n[r]
            asked = coalition, known, n
            add_leaves(
                words[row // ROWS],
                g,
                value,
                background,
                places,
                asked,
                alive,
                rows,
                np.int64(1),
                found,
            )
            for r in range(rows):
                for s in range(sets[row + r]):
                    out[row + r, s] += found[r, number[r, s]]
        for k in range(players.shape[0]):
            bit[players[k]] = 0


@compiled
def values(words, value, background, places, coalitions, lanes, out):
    """Add to ``out[r, q]`` the value of coalition q at row r."""
    (first_leaf, first_player, who, _) = background[1]
    (n_rows, m) = out.shape
    coalition, known, n, line, alive = lanes
    for r in range(ROWS):
        n[r] = m
    for g in range(first_leaf.shape[0] - 1):
        players = who[first_player[g] : first_player[g + 1]]
        for r in range(min(ROWS, n_rows)):
            for q in range(m):
                word = np.uint64(0)
                for k in range(players.shape[0]):
                    word |= np.uint64(coalitions[q, players[k]]) << np.uint64(k)
                coalition[r, q] = word
            turn_round(coalition[r], m, line[: players.shape[0]], r, known)
        for row in range(0, n_rows, ROWS):
            asked = (coalition, known, n)
            rows = min(ROWS, n_rows - row)
            add_leaves(
                words[row // ROWS],
                g,
                value,
                background,
                places,
                asked,
                alive,
                rows,
                np.int64(0),
                out[row:],
            )
