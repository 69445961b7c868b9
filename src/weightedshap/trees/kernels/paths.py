"""Compiled loops over the paths to leaves, for path-dependent games.

The path to every leaf is listed once, its splits grouped by player; a row either passes all splits
of a player or not. `weightedshap.trees.ensembles` lists the paths, which `patterns` reads as well;
`weightedshap.trees.quadrature` takes `semivalues` for leaves with very many players. Coefficients
are laid out and added up as in `leaf_lists`.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weightedshap._checks import FloatArray
from weightedshap._compile import compiled
from weightedshap.trees.kernels.leaf_lists import level, lift_to_widest


class PathTable(NamedTuple):
    """The paths to the L leaves of an ensemble, with the splits of each path grouped by player.

    The players on the path to a leaf are called its members.
    """

    leaf: npt.NDArray[np.int64]  # (L,) the leaves in the order of their paths
    start: npt.NDArray[np.int64]  # (L + 1,) members of leaf l are start[l] … start[l + 1] − 1
    member: npt.NDArray[np.int32]  # the player
    ratio: FloatArray  # product of the shares of cover that the member's splits send this way
    edge_start: npt.NDArray[np.int64]  # splits of member q: edge[edge_start[q] : edge_start[q + 1]]
    edge: npt.NDArray[np.int32]  # 2·node + (1 if the path goes left)
    widest: int  # the most members of a leaf


@compiled
def fill_paths(nodes, player, cover, slot, path, turn, table):
    """Write the paths to all leaves of `nodes` into the arrays of the `PathTable` `table`.

    A member's ratio is Π cover(child on the path) / cover(node) over its splits, 0 where a node has
    no cover. `slot` has −1 for each player; `path` and `turn` have room for one path: its nodes,
    and 1 where it goes left.
    """
    roots = nodes.roots
    left = nodes.left
    right = nodes.right
    leaf = table.leaf
    start = table.start
    member = table.member
    ratio = table.ratio
    edge_start = table.edge_start
    edge = table.edge
    n_inner = left.shape[0]
    n_leaves = 0
    n_members = 0
    n_edges = 0
    for root in roots:
        node = root
        length = 0
        while True:
            # Go down to the leftmost leaf. `path[:length]` are the nodes above `node`, and
            # `turn[:length]` the ways from there.
            while node < n_inner:
                path[length] = node
                turn[length] = 1
                length += 1
                node = left[node]

            # List the path's players as members from `first_member` on, each where it is first met;
            # ``slot[p]`` is the member of player p, or −1 if the path has not asked about it.
            first_member = n_members
            for step in range(length):
                p = player[path[step]]
                if slot[p] < 0:
                    slot[p] = n_members
                    member[n_members] = p
                    ratio[n_members] = 1.0
                    n_members += 1

            # List the splits of each member, from the root down; slots are −1 again after it.
            for q in range(first_member, n_members):
                for step in range(length):
                    parent = path[step]
                    if player[parent] == member[q]:
                        child = left[parent] if turn[step] == 1 else right[parent]
                        ratio[q] *= cover[child] / cover[parent] if cover[parent] > 0 else 0.0
                        edge[n_edges] = 2 * parent + turn[step]
                        n_edges += 1
                edge_start[q + 1] = n_edges
                slot[member[q]] = -1
            leaf[n_leaves] = node - n_inner
            n_leaves += 1
            start[n_leaves] = n_members

            # Go back up to the last node whose right side is still to come, and take that side.
            while length > 0 and turn[length - 1] == 0:
                length -= 1
            if length == 0:
                break
            turn[length - 1] = 0
            node = right[path[length - 1]]


@compiled
def divide_polynomial(product, degree, r, out):
    """Divide a polynomial in y by (r + y); write the coefficients of the quotient into `out`.

    `product` is a polynomial of degree `degree` in y with roots in (−∞, 0]. Coefficients are
    positive and log-concave: nothing cancels from below while r·q_t ≥ q_{t−1}, and from above for
    the rest.
    """
    # From below, product_t = r·q_t + q_{t−1}. `last` is the last coefficient that was found.
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

    # From above, q_{t} = product_{t+1} − r·q_{t+1}.
    above = 0.0
    for t in range(degree - 1, last, -1):
        above = product[t + 1] - r * above
        out[t] = above


@compiled
def semivalues(x_left, value, paths, table, out):
    """Write path-dependent φ_w = Σ_j w_j Δ_j(x_i) of each row and w into ``out[row, w, i]``.

    Each of the p members k of a leaf of value c multiplies it by a_k (1 if x passes its splits) if
    known, else by the cover ratio r_k. With q the coefficients of Π_{k≠i} (r_k + a_k y), Δ_j(i)
    gains c (a_i − r_i) Σ_t q_t K(p, t + 1)[j]. Of members with a_k = 0 only the product of their
    r_k is needed, because a_i − r_i = −r_i completes it. ``value[l]`` is that of the l-th path;
    `table` holds K(s, t) times the weight vectors, see `leaf_lists.semivalues`.
    """
    start = paths.start
    member = paths.member
    ratio = paths.ratio
    edge_start = paths.edge_start
    edge = paths.edge
    widest = paths.widest
    d = out.shape[2]
    # What players gain, by row of the table; players are numbered as they are met.
    gathered = np.zeros((table.shape[0], d + 7))
    slot = np.full(d, -1, np.int32)
    met = np.empty(d, np.int32)
    is_active = np.empty(widest, np.bool_)
    product = np.empty(widest + 1)
    quotient = np.empty(widest + 1)
    for row in range(out.shape[0]):
        n_met = 0
        for leaf in range(value.shape[0]):
            base = start[leaf]
            size = start[leaf + 1] - start[leaf]
            if size == 0 or value[leaf] == 0.0:
                continue

            # Multiply the factors of the members met so far: active ones, whose splits x passes,
            # into ``product[:degree + 1]``, and the ratios of the others into `scale`.
            scale = value[leaf]
            degree = 0
            product[0] = 1.0
            for k in range(size):
                is_active[k] = True
                for e in range(edge_start[base + k], edge_start[base + k + 1]):
                    is_active[k] &= x_left[row, edge[e] >> 1] == (edge[e] & 1 == 1)
                if not is_active[k]:
                    scale *= ratio[base + k]
                    continue
                product[degree + 1] = product[degree]
                for t in range(degree, 0, -1):
                    product[t] = product[t - 1] + ratio[base + k] * product[t]
                product[0] *= ratio[base + k]
                degree += 1
            if scale == 0.0:
                continue

            # Each member gains what the product of the others is; `cell` is the row of K(size, 1).
            cell = level(size)
            for k in range(size):
                p = member[base + k]
                if slot[p] < 0:
                    slot[p] = n_met
                    met[n_met] = p
                    n_met += 1
                i = slot[p]
                if is_active[k]:
                    divide_polynomial(product, degree, ratio[base + k], quotient)
                    gain = scale * (1.0 - ratio[base + k])
                    for t in range(degree):
                        gathered[cell + t, i] += gain * quotient[t]
                else:
                    for t in range(degree + 1):
                        gathered[cell + t, i] -= scale * product[t]

        # All leaves are gathered; `gathered` and `slot` are as they began after this.
        lift_to_widest(gathered, widest, table, slot, met[:n_met], out[row])
