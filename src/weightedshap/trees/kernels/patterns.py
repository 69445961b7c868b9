"""Compiled loops for games whose hidden features take the values of many background rows.

The pattern of a row at a leaf tells which of the leaf's members the row passes, bit k for member k.
With G(U) the share of the background that passes all members in U, a leaf of value c gives c ·
G(members outside S) to a coalition S whose members the row passes, and nothing to others. So only
the patterns of a row matter. What depends on a pattern is computed when it first occurs, and stored
in a table of bounded size, where the result of a later pattern may replace it.

Rows come in blocks of 64: throughout, r is the place of a row in its block, k a member of a leaf,
and bits of a word stand for rows, members, players or coalitions, as the loop says. Leaves and
their members are those of `paths.PathTable`, sets along orders are numbered by `coalitions`.
`weightedshap.trees.background` calls the loops.
"""

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from weightedshap._checks import BoolArray, FloatArray
from weightedshap._compile import compiled, inlined
from weightedshap.trees.kernels.coalitions import distinct_sets
from weightedshap.trees.kernels.leaf_lists import level

# Rows taken together: what they do at a split is a word, bit r for row r.
ROWS = 64
# The most leaves of a group. Larger groups share the coalitions of their players, smaller ones have
# fewer players. Timed with 100 and 200 trees, it hardly matters: at half between 1 % faster and 8 %
# slower, at double between 5 % faster and 3 % slower.
GROUP = 64
# From this many leaves on, a leaf with a player that the group lacks begins a new group. It trades
# φ_w, faster with few players, for curves and values, faster with many leaves. Timed with 100 and
# 200 trees: at half φ_w takes 4 to 8 % less, curves 17 to 37 % more and values 36 % more; at double
# φ_w takes 2 to 15 % more, curves between 6 % less and 4 % more, and values 21 % less.
MIN_GROUP = 24
# Coalitions that are remembered while those of a row are numbered. With more of them fewer are
# numbered twice, with fewer all stay in the cache. Timed with 8 and 64 orders: at half 2 to 8 %
# slower, at double 0 to 5 % faster.
SEEN = 4096
Words = npt.NDArray[np.uint64]
ONE = np.uint64(1)
ALL = np.uint64(2**64 - 1)


class LeafPaths(NamedTuple):
    """The players and splits on the path to each leaf: three arrays of `paths.PathTable`."""

    start: npt.NDArray[np.int64]  # (L + 1,) members of leaf l are start[l] … start[l + 1] − 1
    edge_start: npt.NDArray[np.int64]  # splits of member q: edge[edge_start[q] : edge_start[q + 1]]
    edge: npt.NDArray[np.int32]  # 2·node + (1 if the path goes left)


class LeafGroups(NamedTuple):
    """Groups of consecutive leaves, whose paths have at most 64 players per group."""

    first_leaf: npt.NDArray[np.int64]  # (G + 1,)
    first_player: npt.NDArray[np.int64]  # (G + 1,) in `player`
    player: npt.NDArray[np.int32]  # the players of the groups, one group after the other
    local: npt.NDArray[np.int32]  # the place of each member among the players of its group


class PatternTable(NamedTuple):
    """The distinct patterns of background rows at each leaf, with their weights."""

    first: npt.NDArray[np.int64]  # (L + 1,) leaf l has patterns first[l] … first[l + 1] − 1
    mask: Words  # the patterns
    weight: FloatArray  # the weight of the rows that have it


class Memo(NamedTuple):
    """A cache of results for pairs of a leaf and a 64-bit word, one result per hash slot."""

    leaf: npt.NDArray[np.int32]  # −1 where there is none
    word: Words
    result: npt.NDArray[Any]

    @classmethod
    def empty(cls, slots: int, dtype: npt.DTypeLike) -> Self:
        """Return an empty cache; `slots` is a power of two."""
        return cls(
            leaf=np.full(slots, -1, np.int32),
            word=np.empty(slots, np.uint64),
            result=np.empty(slots, dtype),
        )


class CoalitionWords(NamedTuple):
    """Coalitions of the players of one group of leaves as bits, for each of 64 rows."""

    coalition: Words  # (64, m + 1) players as bits
    known: Words  # (⌊m / 64⌋ + 1, 64, 64) the same transposed: [·, player, row], coalitions as bits
    count: npt.NDArray[np.int64]  # (64,) coalitions of each row
    line: Words  # (64,) of use while one row is transposed
    alive: Words  # (64,) of use at one leaf

    @classmethod
    def build(cls, m: int) -> Self:
        """Allocate the arrays for up to m coalitions."""
        return cls(
            coalition=np.empty((ROWS, m + 1), np.uint64),
            known=np.empty((m // 64 + 1, 64, ROWS), np.uint64),
            count=np.empty(ROWS, np.int64),
            line=np.empty(64, np.uint64),
            alive=np.empty(ROWS, np.uint64),
        )


class PatternScratch(NamedTuple):
    """The working memory of `semivalues`."""

    pattern: Words  # (64,) of the rows at the leaf at hand
    counted: FloatArray  # (65, 65) background rows by how many members x alone passes
    total: FloatArray  # what players of a group gain, by row, output, player and column


class PrefixScratch(NamedTuple):
    """The working memory of `along`, for up to m sets of first players per row."""

    bit: Words  # (d,) of each player in the group at hand, 0 for others
    bits: Words  # (m,) the sets as bits of the group's players
    seen: Words  # (SEEN,) coalitions that were numbered last
    seen_number: npt.NDArray[np.int64]  # (SEEN,) their numbers
    number: npt.NDArray[np.int32]  # (64, m) the coalition of each set, by row
    value: FloatArray  # (64, m) what a group gives to each coalition, by row

    @classmethod
    def build(cls, m: int, d: int) -> Self:
        """Allocate the arrays for up to m coalitions among d players."""
        return cls(
            bit=np.zeros(d, np.uint64),
            bits=np.empty(m, np.uint64),
            seen=np.zeros(SEEN, np.uint64),
            seen_number=np.full(SEEN, -1),
            number=np.empty((ROWS, m), np.int32),
            value=np.empty((ROWS, m)),
        )


@inlined
def popcount(word):
    """Return the number of bits that are set in a 64-bit word."""
    n = 0
    while word != 0:
        word &= word - ONE
        n += 1
    return n


@inlined
def lowest_bit(word):
    """Return the position of the lowest bit that is set in a 64-bit word."""
    return popcount((word & (~word + ONE)) - ONE)


@inlined
def low_mask(n):
    """Return a word whose first n bits are set."""
    return ALL if n >= 64 else (ONE << np.uint64(max(n, 0))) - ONE


@inlined
def slot_of(leaf, word, slots):
    """Return the cache slot, out of `slots`, to which a leaf and a 64-bit word are hashed.

    Words of a leaf that differ only in their last bits get different slots.
    """
    return (
        word ^ (word >> np.uint64(15)) ^ np.uint64(leaf) * np.uint64(0x9E3779B97F4A7C15)
    ) & np.uint64(slots - 1)


def pack_bits(goes_left: BoolArray) -> Words:
    """Pack booleans (n, I) into words (⌈n / 64⌉, I), each with the bits of 64 rows."""
    out = np.zeros((-(-len(goes_left) // ROWS), goes_left.shape[1]), np.uint64)
    fill_words(goes_left, out)
    return out


@compiled
def fill_words(x_left, out):
    """Pack booleans into words: set bit r of ``out[b, node]`` if row 64·b + r goes left."""
    for r in range(x_left.shape[0]):
        words = out[r // ROWS]
        row = x_left[r]
        shift = np.uint64(r % ROWS)
        for node in range(row.shape[0]):
            words[node] |= np.uint64(row[node]) << shift


@inlined
def rows_passing(words, edge, begin, end):
    """Return a word whose bit r says whether row r passes all splits ``edge[begin:end]``."""
    passed = ALL
    for e in range(begin, end):
        left = words[edge[e] >> 1]
        passed &= left if edge[e] & 1 == 1 else ~left
    return passed


@inlined
def find_patterns(words, base, size, edge_start, edge, pattern):
    """Find the pattern of each of 64 rows at one leaf: the players whose splits the row passes.

    The members are `base` … `base + size − 1`. Bit k of ``pattern[r]`` is set if row r passes all
    splits of member k.
    """
    for r in range(ROWS):
        pattern[r] = 0
    # A word of rows for each member becomes a word of members for each row.
    for k in range(size):
        passed = rows_passing(words, edge, edge_start[base + k], edge_start[base + k + 1])
        for r in range(ROWS):
            pattern[r] |= ((passed >> np.uint64(r)) & ONE) << np.uint64(k)


@inlined
def hash_bits(word):
    """Return a hash of a 64-bit word."""
    word = (word ^ (word >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return word ^ (word >> np.uint64(29))


@compiled
def fill_patterns(words, z_weight, paths, slot, pattern, done, table):
    """List in `table` the distinct patterns of background rows at each leaf from `done` on.

    The weight of a pattern is Σ z_weight over the background rows that have it at the leaf. Return
    the first leaf that there was no room for, or the number of leaves. `slot`, a hash table of
    patterns, has a power of two of slots; `pattern` has room for 64.
    """
    start = paths.start
    edge_start = paths.edge_start
    edge = paths.edge
    first = table.first
    mask = table.mask
    weight = table.weight
    n_patterns = first[done]
    last = np.uint64(slot.shape[0] - 1)
    for leaf in range(done, start.shape[0] - 1):
        # Without room for as many patterns as there are rows, the caller has to make some.
        if n_patterns + z_weight.shape[0] > mask.shape[0]:
            return leaf

        # ``slot[h]`` is a pattern of this leaf, −1 for none.
        for at in range(slot.shape[0]):
            slot[at] = -1
        for row in range(z_weight.shape[0]):
            if row % ROWS == 0:
                find_patterns(
                    words[row // ROWS],
                    start[leaf],
                    start[leaf + 1] - start[leaf],
                    edge_start,
                    edge,
                    pattern,
                )

            # Find the row's pattern among those of the leaf, or list it. Where the slot is taken by
            # another pattern, the next one is tried.
            bits = pattern[row % ROWS]
            here = hash_bits(bits) & last
            while slot[here] >= 0 and mask[slot[here]] != bits:
                here = (here + ONE) & last
            if slot[here] < 0:
                slot[here] = n_patterns
                mask[n_patterns] = bits
                weight[n_patterns] = 0.0
                n_patterns += 1
            weight[slot[here]] += z_weight[row]
        first[leaf + 1] = n_patterns
    return start.shape[0] - 1


@compiled
def group_leaves(start, member, slot, groups):
    """Divide consecutive leaves into groups of at most 64 players; return the number of groups.

    ``slot[p]`` is −1 for every player.
    """
    first_leaf = groups.first_leaf
    first_player = groups.first_player
    player = groups.player
    local = groups.local
    group = 0
    n_players = 0
    for leaf in range(start.shape[0] - 1):
        # Players of the group at hand have a slot, its position among them; `n_fresh` members of
        # the leaf have none yet.
        n_fresh = 0
        n_leaves = leaf - first_leaf[group]
        for at in range(start[leaf], start[leaf + 1]):
            n_fresh += slot[member[at]] < 0

        # A leaf begins a group where the last one is full, or has enough leaves and lacks a player.
        is_full = n_leaves == GROUP or n_players - first_player[group] + n_fresh > 64
        if is_full or (n_fresh > 0 and n_leaves >= MIN_GROUP):
            for k in range(first_player[group], n_players):
                slot[player[k]] = -1
            group += 1
            first_leaf[group] = leaf
            first_player[group] = n_players

        # Put the leaf into the group.
        for at in range(start[leaf], start[leaf + 1]):
            if slot[member[at]] < 0:
                slot[member[at]] = n_players - first_player[group]
                player[n_players] = member[at]
                n_players += 1
            local[at] = slot[member[at]]
    first_leaf[group + 1] = start.shape[0] - 1
    first_player[group + 1] = n_players
    return group + 1


@inlined
def fill_entry(
    pattern, base, size, local, mask, weight, begin, end, table, counted, memory, entry, width
):
    """Compute what players gain from a leaf of value one, for rows with the given pattern.

    The gain of player i, in column j of the table, is ``memory[entry + columns · i + j]``. A
    background row counts if it passes all b members that x fails. If x alone passes a of the
    others, each of these gains K(a + b, a), and each of the b loses K(a + b, a + 1). So background
    rows are counted by a: in ``counted[a, k]`` those that member k gains by, and after the last
    member all.
    """
    columns = table.shape[1]

    # Count the background rows that pass all that x fails. `alone` are the members that x passes
    # and the background row does not.
    failed = low_mask(size) & ~pattern
    b = popcount(failed)
    for a in range(size - b + 1):
        for k in range(size + 1):
            counted[a, k] = 0.0
    for absent in range(begin, end):
        if mask[absent] & failed == failed:
            alone = pattern & ~mask[absent]
            share = weight[absent]
            a = popcount(alone)
            for k in range(size):
                counted[a, k] += share if (alone >> np.uint64(k)) & ONE else 0.0
            counted[a, size] += share

    # Multiply the counts by the table, member by member; `local` is where its player stands.
    for at in range(entry, entry + width):
        memory[at] = 0.0
    for k in range(size):
        gains = np.int64((pattern >> np.uint64(k)) & ONE)
        here = entry + local[base + k] * columns
        count = k if gains else size
        sign = 1.0 if gains else -1.0
        for a in range(gains, size - b + 1):
            if counted[a, count] != 0.0:
                share = sign * counted[a, count]
                line = level(a + b) + a - gains
                for column in range(columns):
                    memory[here + column] += share * table[line, column]


@compiled
def semivalues(words, n, value, counts, paths, groups, patterns, memo, table, memory, scratch, out):
    """Add what player i gains at row 64·b + r, for output o, to ``out[o, b, i, j, r]``.

    The leaf values are ``value[:, o]``, and j is the column of the table. A gain is Σ over leaves
    of value times entry, see `fill_entry`. What a leaf of value one gives to the players of its
    group at a pattern is an entry in `memory`, and `memo` says where it begins. When that is full,
    all are forgotten. A leaf counts if it has a value in any output.
    """
    start = paths.start
    edge_start = paths.edge_start
    edge = paths.edge
    first_leaf = groups.first_leaf
    first_player = groups.first_player
    player = groups.player
    local = groups.local
    first_pattern = patterns.first
    mask = patterns.mask
    weight = patterns.weight
    of_leaf = memo.leaf
    of_pattern = memo.word
    entry = memo.result
    pattern = scratch.pattern
    counted = scratch.counted
    sums = scratch.total
    columns = table.shape[1]
    outputs = value.shape[1]
    for group in range(first_leaf.shape[0] - 1):
        players = first_player[group + 1] - first_player[group]
        # Entries of a group have `width` numbers, and fill ``memory[:used]``. What earlier groups
        # remember is of other leaves, so none of it is found, and all is written over.
        used = 0
        width = players * columns
        for block in range(words.shape[0]):
            rows = min(ROWS, n - ROWS * block)
            for i in range(rows * outputs * width):
                sums[i] = 0.0
            for leaf in range(first_leaf[group], first_leaf[group + 1]):
                if not counts[leaf]:
                    continue
                # The rows of a block fill at most 64 entries at a leaf.
                if used + ROWS * width > memory.shape[0]:
                    used = 0
                    for p in range(of_leaf.shape[0]):
                        of_leaf[p] = -1
                base = start[leaf]
                size = start[leaf + 1] - start[leaf]
                find_patterns(words[block], base, size, edge_start, edge, pattern)
                for r in range(rows):
                    # Look the entry up, or fill it in: ``entry[at]`` is where it begins.
                    at = slot_of(leaf, pattern[r], entry.shape[0])
                    if of_leaf[at] != leaf or of_pattern[at] != pattern[r]:
                        of_leaf[at] = leaf
                        of_pattern[at] = pattern[r]
                        entry[at] = used
                        first = first_pattern[leaf]
                        last = first_pattern[leaf + 1]
                        fill_entry(
                            pattern[r],
                            base,
                            size,
                            local,
                            mask,
                            weight,
                            first,
                            last,
                            table,
                            counted,
                            memory,
                            used,
                            width,
                        )
                        used += width

                    # Outputs differ by the value of the leaf alone.
                    line = memory[entry[at] : entry[at] + width]
                    for output in range(outputs):
                        c = value[leaf, output]
                        begin = (r * outputs + output) * width
                        total = sums[begin : begin + width]
                        for i in range(width):
                            total[i] += c * line[i]

            # Hand the sums on, turned so that rows stand side by side.
            for output in range(outputs):
                for k in range(players):
                    for column in range(columns):
                        total = out[output, block, player[first_player[group] + k], column]
                        for r in range(rows):
                            place = (r * outputs + output) * players + k
                            total[r] += sums[place * columns + column]


@compiled
def first_players(orders, bits, parent, added, n_sets, lane):
    """Number the distinct sets of the first 0, 1, …, d players of orders (n, m, d), by row.

    Row r has ``n_sets[r]`` of them, the empty one first, numbered by ``lane[r, q, k]``; set s is
    set ``parent[r, s]`` with ``added[r, s]``.
    """
    n_rows, m, d = orders.shape
    for row in range(n_rows):
        n_sets[row] = distinct_sets(orders[row], d, bits, lane[row])
        # Backwards, so that a set keeps the order that it was first met in, and a parent before it.
        for q in range(m - 1, -1, -1):
            for k in range(d):
                s = lane[row, q, k + 1]
                parent[row, s] = lane[row, q, k]
                added[row, s] = orders[row, q, k]


@inlined
def number_sets(parent, added, bit, bits, seen, seen_number, base, number, distinct):
    """Restrict the sets of a row to a group's players, and number the distinct coalitions.

    Return the number of coalitions. ``bit[p]`` stands for player p. ``number[s]`` is the number of
    set s, ``distinct[number]`` the coalition. Equal coalitions are searched among
    those `seen` last, with numbers from `base` on; one that is missed is numbered twice.
    """
    # Each set as bits: its parent's, and the player that it adds, if that is one of the group.
    n = 0
    bits[0] = 0
    for s in range(1, parent.shape[0]):
        bits[s] = bits[parent[s]] | bit[added[s]]

    # Number them without branches: the place `h` holds the coalition met there last, with a number
    # below `base` if that was at another row. A coalition that is not new is written once more
    # behind the n that are numbered, where the next one takes its place.
    for s in range(parent.shape[0]):
        word = bits[s]
        h = (
            word ^ (word >> np.uint64(12)) ^ (word >> np.uint64(24)) ^ (word >> np.uint64(40))
        ) & np.uint64(SEEN - 1)
        is_new = (seen[h] != word) | (seen_number[h] < base)
        seen_number[h] = base + n if is_new else seen_number[h]
        seen[h] = word
        distinct[n] = word
        number[s] = seen_number[h] - base
        n += is_new
    return n


@inlined
def transpose_bits(coalition, n, line, r, known):
    """Transpose n coalitions of row r, from a word per coalition to a word per player.

    Bit s of ``known[w, i, r]`` is set if player i is in coalition 64·w + s.

    `line` has room for a word of each player.
    """
    for w in range((n + 63) // 64):
        for i in range(line.shape[0]):
            line[i] = 0
        for s in range(64 * w, min(n, 64 * w + 64)):
            for i in range(line.shape[0]):
                line[i] |= ((coalition[s] >> np.uint64(i)) & ONE) << np.uint64(s % 64)
        for i in range(line.shape[0]):
            known[w, i, r] = line[i]


@inlined
def pattern_weight(hidden, local, mask, weight):
    """Return the share of background rows that pass the splits of all hidden players of a leaf.

    `hidden` are the hidden players of the group, as bits of a word.
    """
    # Bits of players become bits of members, as patterns have them.
    members = np.uint64(0)
    total = 0.0
    for k in range(local.shape[0]):
        members |= ((hidden >> np.uint64(local[k])) & ONE) << np.uint64(k)
    for z in range(mask.shape[0]):
        total += weight[z] if mask[z] & members == members else 0.0
    return total


@inlined
def add_leaves(words, group, value, paths, groups, patterns, memo, coalitions, rows, skip, out):
    """Add what one group of leaves gives to the value of row r at coalition s to ``out[r, s]``.

    That part is Σ over leaves of value · G(members that are hidden), see `pattern_weight`. A row
    has coalitions from `skip` on to ``coalitions.count[r]``; those get something that are alive:
    without any member that the row fails.
    """
    start = paths.start
    edge_start = paths.edge_start
    edge = paths.edge
    local = groups.local
    first = patterns.first
    mask = patterns.mask
    weight = patterns.weight
    of_leaf = memo.leaf
    of_hidden = memo.word
    share = memo.result
    coalition = coalitions.coalition
    known = coalitions.known
    n = coalitions.count
    alive = coalitions.alive
    leaf_end = groups.first_leaf[group + 1]
    # The most coalitions that a row has.
    most = 0
    for r in range(rows):
        most = max(most, n[r])
    for leaf in range(groups.first_leaf[group], leaf_end):
        # A leaf of a forest says nothing of most classes.
        if value[leaf] == 0.0:
            continue
        base = start[leaf]
        mine = local[start[leaf] : start[leaf + 1]]
        z = slice(first[leaf], first[leaf + 1])

        # All players of the leaf, as bits.
        every = np.uint64(0)
        for player in mine:
            every |= ONE << np.uint64(player)
        for w in range((most + 63) // 64):
            # ``alive[r]`` are the coalitions of row r among the 64 of word w that get something. A
            # member takes those away that have its player, if the row fails it: the last term is
            # all bits for a row that passes, 0 for one that fails.
            for r in range(ROWS):
                alive[r] = low_mask(n[r] - 64 * w) & ~low_mask(skip - 64 * w)
            for k in range(mine.shape[0]):
                passed = rows_passing(words, edge, edge_start[base + k], edge_start[base + k + 1])
                ours = known[w, mine[k]]
                for r in range(ROWS):
                    alive[r] &= ~ours[r] | (~((passed >> np.uint64(r)) & ONE) + ONE)

            # Go through these, bit by bit; ``share[at]`` is what the leaf gives.
            for r in range(rows):
                lanes = alive[r]
                while lanes != 0:
                    s = 64 * w + lowest_bit(lanes)
                    lanes &= lanes - ONE
                    hidden = every & ~coalition[r, s]
                    at = slot_of(leaf, hidden, share.shape[0])
                    if of_leaf[at] != leaf or of_hidden[at] != hidden:
                        of_leaf[at] = leaf
                        of_hidden[at] = hidden
                        share[at] = value[leaf] * pattern_weight(hidden, mine, mask[z], weight[z])
                    out[r, s] += share[at]


@compiled
def along(
    words,
    value,
    paths,
    groups,
    patterns,
    memo,
    empty_values,
    parent,
    added,
    n_sets,
    coalitions,
    scratch,
    out,
):
    """Add the value of row r at its s-th set of first players to ``out[r, s]``.

    `first_players` numbers the sets. ``empty_values[g]`` is the part of v(∅) from the leaves of
    group g. A group of leaves depends on its own players alone, so many sets are the same coalition
    for it.
    """
    first_leaf = groups.first_leaf
    first_player = groups.first_player
    player = groups.player
    coalition = coalitions.coalition
    known = coalitions.known
    n = coalitions.count
    line = coalitions.line
    bit = scratch.bit
    bits = scratch.bits
    seen = scratch.seen
    seen_number = scratch.seen_number
    number = scratch.number
    group_value = scratch.value
    n_rows = out.shape[0]
    # Coalitions that were numbered so far, of all rows and groups.
    base = 0
    for r in range(ROWS):
        n[r] = 1
    for group in range(first_leaf.shape[0] - 1):
        players = player[first_player[group] : first_player[group + 1]]
        # Players of other groups have no bit: ``bit[p]`` is 0.
        for k in range(players.shape[0]):
            bit[players[k]] = ONE << np.uint64(k)
        for row in range(0, n_rows, ROWS):
            # Number the coalitions that the sets of each row are to the group, that of no players
            # as 0; its value is the same at all rows.
            rows = min(ROWS, n_rows - row)
            for r in range(rows):
                size = n_sets[row + r]
                before = parent[row + r, :size]
                last = added[row + r, :size]
                n[r] = number_sets(
                    before, last, bit, bits, seen, seen_number, base, number[r], coalition[r]
                )
                transpose_bits(coalition[r], n[r], line[: players.shape[0]], r, known)
                for s in range(n[r]):
                    group_value[r, s] = 0.0
                group_value[r, 0] = empty_values[group]
                base += n[r]

            add_leaves(
                words[row // ROWS],
                group,
                value,
                paths,
                groups,
                patterns,
                memo,
                coalitions,
                rows,
                np.int64(1),
                group_value,
            )

            # A set gets what its coalition gets.
            for r in range(rows):
                for s in range(n_sets[row + r]):
                    out[row + r, s] += group_value[r, number[r, s]]
        for k in range(players.shape[0]):
            bit[players[k]] = 0


@compiled
def values(words, value, paths, groups, patterns, memo, known_players, coalitions, out):
    """Add the value of row r at coalition ``known_players[q]`` to ``out[r, q]``."""
    first_leaf = groups.first_leaf
    first_player = groups.first_player
    player = groups.player
    coalition = coalitions.coalition
    known = coalitions.known
    n = coalitions.count
    line = coalitions.line
    (n_rows, m) = out.shape
    for r in range(ROWS):
        n[r] = m
    for group in range(first_leaf.shape[0] - 1):
        players = player[first_player[group] : first_player[group + 1]]
        # All blocks of rows have the same coalitions, as bits of the group's players.
        for r in range(min(ROWS, n_rows)):
            for q in range(m):
                word = np.uint64(0)
                for k in range(players.shape[0]):
                    word |= np.uint64(known_players[q, players[k]]) << np.uint64(k)
                coalition[r, q] = word
            transpose_bits(coalition[r], m, line[: players.shape[0]], r, known)
        for row in range(0, n_rows, ROWS):
            rows = min(ROWS, n_rows - row)
            add_leaves(
                words[row // ROWS],
                group,
                value,
                paths,
                groups,
                patterns,
                memo,
                coalitions,
                rows,
                np.int64(0),
                out[row:],
            )
