"""A compiled loop for linear guesses at hidden columns, column by column as they become known.

With L the Cholesky factor of the covariance of the known columns in their order, y = L⁻¹ z and u_q
= L⁻¹ Cov(known, q), the conditional mean of column q is u_q · y. One more known column adds one
term and leaves the others as they are.
"""

import numpy as np

from weightedshap._compile import compiled


@compiled
def guess(Z, row, column, stop, covariance, out):
    """``out[t, k, q]`` = the mean of column q of row ``Z[row[t]]`` given its columns from the first
    of t to the stop k.

    One walk after the other: that of t ends before ``column[stop[t, -1]]``, and the next one begins
    there.
    """
    H = Z.shape[1]
    most = out.shape[2]
    begin = 0
    L = np.empty((H, H))
    u = np.empty((most, H))
    y = np.empty(H)
    mean = np.empty(most)
    for t in range(row.shape[0]):
        at = 0
        for q in range(most):
            mean[q] = 0.0
        for k in range(stop.shape[1]):
            while begin + at < stop[t, k]:
                i = column[begin + at]
                variance = covariance[i, i]
                rest = Z[row[t], i]
                for b in range(at):
                    left = covariance[i, column[begin + b]]
                    for j in range(b):
                        left -= L[at, j] * L[b, j]
                    left /= L[b, b]
                    variance -= left * left
                    rest -= left * y[b]
                    L[at, b] = left
                scale = np.sqrt(variance)
                L[at, at] = scale
                y[at] = rest / scale
                for q in range(most):
                    left = covariance[i, q]
                    for b in range(at):
                        left -= L[at, b] * u[q, b]
                    u[q, at] = left / scale
                    mean[q] += u[q, at] * y[at]
                at += 1
            for q in range(most):
                out[t, k, q] = mean[q]
        begin += at
