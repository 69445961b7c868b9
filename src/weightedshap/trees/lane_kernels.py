"""Compiled loops over many coalitions at once, the lanes: path-dependent values from the leaves up.

At a split a known player goes the row's way, and a hidden one both ways by their shares of the cover. So the value of a
node is a mix of those of its children, found for all lanes in one flat loop.
"""

import numpy as np
from numba import njit

from weightedshap.trees.leaf_kernels import goes_left

LANES = 512  # masked rows at a time: a line of lanes takes 4 KiB, so that a stack of a few stays in the nearest cache


@njit(nogil=True, cache=True)
def parents_first(roots, left, right, need):
    """(I,) all inner nodes, each before its children; of two children the one with less `need` is visited first."""
    order, waiting = np.empty(left.shape[0], np.int32), np.empty(left.shape[0] + 2, np.int32)
    found = 0
    for root in roots[::-1]:
        waiting[0], top = root, 1
        while top > 0:
            top -= 1
            node = waiting[top]
            if node < left.shape[0]:
                order[found] = node
                found += 1
                more = need[left[node]] >= need[right[node]]
                waiting[top], waiting[top + 1] = (left[node], right[node]) if more else (right[node], left[node])
                top += 2
    return order


@njit(nogil=True, cache=True)
def count_lines(children_first, left, right, need):
    """How many lines of lanes are held at once below each node, if the child that needs more comes first."""
    for node in children_first:
        a, b = need[left[node]], need[right[node]]
        need[node] = max(a, b, min(a, b) + 1)


@njit(nogil=True, cache=True)
def masked_values(X, row, coalition, programme, nan_left, cat_slot, cat_start, cat_words, member_left, out):
    """Path-dependent: add to ``out[t]`` the value of coalition t (N, d) at row ``X[row[t]]``.

    Loops over lanes have no branches: a hidden player mixes the children by their shares, a known one picks the child
    that its value answers for. Answers of special splits are found one by one, and stand in for values.
    """
    special, column, player, sign, limit, yes_first, inner, share, leaf, is_root, lines = programme
    x, hidden = np.empty((X.shape[1] + 1, LANES)), np.empty((coalition.shape[1], LANES), np.bool_)
    stack = np.empty((lines, LANES))
    for begin in range(0, row.shape[0], LANES):
        n, top = min(LANES, row.shape[0] - begin), -1
        for s in range(n):
            for c in range(X.shape[1]):
                x[c, s] = X[row[begin + s], c]
            for p in range(hidden.shape[0]):
                hidden[p, s] = not coalition[begin + s, p]
        for at in range(inner.shape[0]):
            c, p, sg, most, yes, (a, b) = column[at], player[at], sign[at], limit[at], yes_first[at], share[at]
            if special[at] >= 0:
                node = special[at]
                for s in range(n):
                    if s > 0 and row[begin + s] == row[begin + s - 1]:
                        x[-1, s] = x[-1, s - 1]
                        continue
                    compared = (sg * x[c, s] <= most) != nan_left[node]
                    left = goes_left(
                        x[c, s], compared, nan_left[node], cat_slot[node], cat_start, cat_words, member_left
                    )
                    x[-1, s] = 0.0 if left != nan_left[node] else 1.0
                c, sg, most = X.shape[1], 1.0, 0.0
            if inner[at] == 0:
                top += 1
                u, v = leaf[at]
                mean = a * u + b * v
                if not yes:
                    u, v = v, u
                for s in range(n):
                    stack[top, s] = mean if hidden[p, s] else (u if sg * x[c, s] <= most else v)
            elif inner[at] == 1:
                v = leaf[at, 1]
                for s in range(n):
                    u = stack[top, s]
                    stack[top, s] = a * u + b * v if hidden[p, s] else (u if (sg * x[c, s] <= most) == yes else v)
            else:
                top -= 1
                for s in range(n):
                    u, v = stack[top, s], stack[top + 1, s]
                    stack[top, s] = a * u + b * v if hidden[p, s] else (u if (sg * x[c, s] <= most) == yes else v)
            if is_root[at]:
                for s in range(n):
                    out[begin + s] += stack[0, s]
                top = -1
