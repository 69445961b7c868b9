"""Compiled loops over the ways to leaves: path-dependent games, and Shapley values of pairs of
rows.

The way to every leaf is listed once, its splits grouped by player; a row either passes all splits
of a player or not.
"""

import numpy as np

from weightedshap._compile import compiled
from weightedshap.trees.kernels.leaf_lists import level, spread
from weightedshap.trees.kernels.patterns import (
    ONE,
    ROWS,
    find_patterns,
    first_bits,
    lowest,
    ones,
    passing,
)


@compiled
def fill_paths(
    roots, left, right, player, cover, slot, way, turn, leaf, start, member, ratio, edge_start, edge
):
    """Fill in the way to every leaf, grouped by player, as the fields of
    `weightedshap.trees.ensembles.Paths`.

    `slot` has −1 for each player; `way` and `turn` have room for one path. Leaves are numbered in
    ``leaf``.
    """
    n_inner = left.shape[0]
    leaves = 0
    members = 0
    edges = 0
    for root in roots:
        node = root
        length = 0
        while True:
            while node < n_inner:
                way[length] = node
                turn[length] = 1
                length += 1
                node = left[node]
            base = members
            for q in range(length):
                p = player[way[q]]
                if slot[p] < 0:
                    slot[p] = members
                    member[members] = p
                    ratio[members] = 1.0
                    members += 1
            for q in range(base, members):
                for k in range(length):
                    if player[way[k]] == member[q]:
                        went = left[way[k]] if turn[k] == 1 else right[way[k]]
                        ratio[q] *= cover[went] / cover[way[k]] if cover[way[k]] > 0 else 0.0
                        edge[edges] = 2 * way[k] + turn[k]
                        edges += 1
                edge_start[q + 1] = edges
                slot[member[q]] = -1
            leaf[leaves] = node - n_inner
            leaves += 1
            start[leaves] = members
            while length > 0 and turn[length - 1] == 0:
                length -= 1
            if length == 0:
                break
            turn[length - 1] = 0
            node = right[way[length - 1]]


@compiled
def divide(product, degree, r, out):
    """Coefficients of ``product / (r + y)``, a polynomial of degree `degree` with roots in (−∞, 0].

    They are positive and log-concave: nothing cancels from below while r·q_t ≥ q_{t−1}, and from
    above for the rest.
    """
    last = -1
    if r > 0:
        before = 0.0
        for t in range(degree):
            q = (product[t] - before) / r
            if q * r < before:
                break
            out[t] = q
            before = q
            last = t
    above = 0.0
    for t in range(degree - 1, last, -1):
        above = product[t + 1] - r * above
        out[t] = above


@compiled
def semivalues(x_left, value, start, member, ratio, edge_start, edge, widest, table, out):
    """Path-dependent: ``out[r, q, i]`` = Σ_j w_qj Δ_j(x_i) for every row r and weight vector w_q.

    Each of the p members k of a leaf multiplies it by a_k (1 if x passes its splits) if known, else
    by the cover ratio r_k. With q the coefficients of Π_{k≠i} (r_k + a_k y), Δ_j(i) gains c (a_i −
    r_i) Σ_t q_t K(p, t + 1)[j]. Of members with a_k = 0 only the product of their r_k is needed,
    because a_i − r_i = −r_i completes it.
    """
    d = out.shape[2]
    gathered = np.zeros((table.shape[0], d + 7))
    slot = np.full(d, -1, np.int32)
    met = np.empty(d, np.int32)
    active = np.empty(widest, np.bool_)
    product = np.empty(widest + 1)
    quotient = np.empty(widest + 1)
    for r in range(out.shape[0]):
        n_met = 0
        for leaf in range(value.shape[0]):
            base = start[leaf]
            size = start[leaf + 1] - start[leaf]
            if size == 0 or value[leaf] == 0.0:
                continue
            scale = value[leaf]
            degree = 0
            product[0] = 1.0
            for q in range(size):
                active[q] = True
                for e in range(edge_start[base + q], edge_start[base + q + 1]):
                    active[q] &= x_left[r, edge[e] >> 1] == (edge[e] & 1 == 1)
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
            cell = level(size)
            for q in range(size):
                p = member[base + q]
                if slot[p] < 0:
                    slot[p] = n_met
                    met[n_met] = p
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
        spread(gathered, widest, table, slot, met[:n_met], out[r])


@compiled
def interventional(x_words, z_words, z_weight, value, start, member, edge_start, edge, table, out):
    """Interventional: add to ``out[r, i]`` the Shapley value of player i at row r.

    Made for trees with more leaves than there are background rows: few of them reach a leaf
    together with row r, those with their bit in ``alive[r]``, and hardly two rows have the same
    pattern there; `pattern_kernels` is for others.
    """
    ours = np.empty(ROWS, np.uint64)
    alive = np.empty(ROWS, np.uint64)
    theirs = np.empty((z_words.shape[0], ROWS), np.uint64)
    for leaf in range(value.shape[0]):
        base = start[leaf]
        mine = member[start[leaf] : start[leaf + 1]]
        for w in range(z_words.shape[0]):
            find_patterns(z_words[w], base, mine.shape[0], edge_start, edge, theirs[w])
        for b in range(x_words.shape[0]):
            find_patterns(x_words[b], base, mine.shape[0], edge_start, edge, ours)
            for w in range(z_words.shape[0]):
                for r in range(ROWS):
                    alive[r] = first_bits(z_weight.shape[0] - ROWS * w)
                for k in range(mine.shape[0]):
                    passed = passing(
                        z_words[w], edge, edge_start[base + k], edge_start[base + k + 1]
                    )
                    for r in range(ROWS):
                        alive[r] &= passed | (~((ours[r] >> np.uint64(k)) & ONE) + ONE)
                add_pairs(
                    ours,
                    theirs[w],
                    alive,
                    value[leaf],
                    z_weight[ROWS * w :],
                    mine,
                    table,
                    out[ROWS * b :],
                )


@compiled
def add_pairs(ours, theirs, alive, c, z_weight, mine, table, out):
    """The same for one leaf of value c, and 64 rows of each kind.

    If x fails b members, and x alone passes a others, each of the a gains c · K(a + b, a), and each
    of the b loses c · K(a + b, a + 1): with the Shapley weights ``table[level(a + b) + a − 1]`` and
    the next one.
    """
    for r in range(min(ROWS, out.shape[0])):
        pairs = alive[r]
        failed = first_bits(mine.shape[0]) & ~ours[r]
        lost = 0.0
        phi = out[r]
        b = ones(failed)
        while pairs != 0:
            z = lowest(pairs)
            pairs &= pairs - ONE
            alone = ours[r] & ~theirs[z]
            share = c * z_weight[z]
            a = ones(alone)
            at = level(a + b) + a
            gained = share * table[at - 1]
            lost = lost + share * table[at]
            while alone != 0:
                phi[mine[lowest(alone)]] += gained
                alone &= alone - ONE
        if lost != 0.0:
            while failed != 0:
                phi[mine[lowest(failed)]] -= lost
                failed &= failed - ONE
