"""Compiled loops over pairs of a row and a background row that can reach a leaf together: Shapley values of deep trees.

In a tree with more leaves than there are background rows, few of these can reach a leaf, and hardly any two explained
rows have the same pattern there. So nothing is kept: see `pattern_kernels` for trees with fewer leaves.
"""

import numpy as np

from weightedshap.compiling import compiled
from weightedshap.trees.leaf_kernels import level
from weightedshap.trees.pattern_kernels import ONE, ROWS, find_patterns, first_bits, lowest, ones, passing


@compiled
def add_leaves(x_words, z_words, z_weight, value, start, member, edge_start, edge, table, out):
    """Add to ``out[r, i]`` what player i is given at row r.

    Bit z of ``alive[r]`` tells whether each member of the leaf is passed by row r or by background row z of 64.
    """
    ours, alive = np.empty(ROWS, np.uint64), np.empty(ROWS, np.uint64)
    theirs = np.empty((z_words.shape[0], ROWS), np.uint64)
    for leaf in range(value.shape[0]):
        base, mine = start[leaf], member[start[leaf] : start[leaf + 1]]
        for w in range(z_words.shape[0]):
            find_patterns(z_words[w], base, mine.shape[0], edge_start, edge, theirs[w])
        for b in range(x_words.shape[0]):
            find_patterns(x_words[b], base, mine.shape[0], edge_start, edge, ours)
            for w in range(z_words.shape[0]):
                for r in range(ROWS):
                    alive[r] = first_bits(z_weight.shape[0] - ROWS * w)
                for k in range(mine.shape[0]):
                    passed = passing(z_words[w], edge, edge_start[base + k], edge_start[base + k + 1])
                    for r in range(ROWS):
                        alive[r] &= passed | (~((ours[r] >> np.uint64(k)) & ONE) + ONE)
                add_pairs(ours, theirs[w], alive, value[leaf], z_weight[ROWS * w :], mine, table, out[ROWS * b :])


@compiled
def add_pairs(ours, theirs, alive, c, z_weight, mine, table, out):
    """The same for a leaf of value c, 64 rows and 64 background rows.

    If x fails b members, and x alone passes a others, each of the a gains c · K(a + b, a), and each of the b loses
    c · K(a + b, a + 1): with the Shapley weights ``table[level(a + b) + a − 1]`` and the next one.
    """
    for r in range(min(ROWS, out.shape[0])):
        pairs, failed, lost, phi = alive[r], first_bits(mine.shape[0]) & ~ours[r], 0.0, out[r]
        b = ones(failed)
        while pairs != 0:
            z = lowest(pairs)
            pairs &= pairs - ONE
            alone, share = ours[r] & ~theirs[z], c * z_weight[z]
            a = ones(alone)
            at = level(a + b) + a
            gained, lost = share * table[at - 1], lost + share * table[at]
            while alone != 0:
                phi[mine[lowest(alone)]] += gained
                alone &= alone - ONE
        if lost != 0.0:
            while failed != 0:
                phi[mine[lowest(failed)]] -= lost
                failed &= failed - ONE
