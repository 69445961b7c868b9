"""Compiled loops for linear guesses at hidden columns, column by column as they become known.

With L the Cholesky factor of the covariance of the known columns in their order, y = L⁻¹ z and u_q = L⁻¹ Cov(known, q),
the conditional mean of column q is u_q · y. One more known column adds one term and leaves the others as they are.
"""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def learn(i, at, z, known, covariance, L, y, u, mean):
    """Add to ``mean[q]`` what column i tells, the next after the first `at` columns in `known`."""
    known[at] = i
    row = L[at]
    for b in range(at):
        left = covariance[i, known[b]]
        for k in range(b):
            left -= row[k] * L[b, k]
        row[b] = left / L[b, b]
    variance, rest = covariance[i, i], z[i]
    for k in range(at):
        variance -= row[k] * row[k]
        rest -= row[k] * y[k]
    row[at] = np.sqrt(variance)
    y[at] = rest / row[at]
    for q in range(mean.shape[0]):
        left = covariance[i, q]
        for k in range(at):
            left -= row[k] * u[q, k]
        u[q, at] = left / row[at]
        mean[q] += u[q, at] * y[at]


@njit(nogil=True, cache=True)
def pairs(Z, row, known, covariance, out):
    """``out[t, q]`` = the mean of column q given the columns ``known[t]`` (N, H) of row ``Z[row[t]]``."""
    H, most = Z.shape[1], out.shape[1]
    order, L, y, u = np.empty(H, np.int64), np.empty((H, H)), np.empty(H), np.empty((most, H))
    for t in range(row.shape[0]):
        at = 0
        out[t] = 0.0
        for i in range(H):
            if known[t, i]:
                learn(i, at, Z[row[t]], order, covariance, L, y, u, out[t])
                at += 1


@njit(nogil=True, cache=True)
def along(Z, orders, start, column, covariance, out):
    """``out[r, a, k, q]`` = the same when the first k players of order a of row r are known.

    The columns of player p are ``column[start[p] : start[p + 1]]``.
    """
    H, most = Z.shape[1], out.shape[3]
    order, L, y, u = np.empty(H, np.int64), np.empty((H, H)), np.empty(H), np.empty((most, H))
    for r in range(orders.shape[0]):
        for a in range(orders.shape[1]):
            at = 0
            out[r, a, 0] = 0.0
            for k in range(orders.shape[2]):
                p = orders[r, a, k]
                out[r, a, k + 1] = out[r, a, k]
                for c in range(start[p], start[p + 1]):
                    learn(column[c], at, Z[r], order, covariance, L, y, u, out[r, a, k + 1])
                    at += 1
