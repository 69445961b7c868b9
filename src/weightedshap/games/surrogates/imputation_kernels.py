"""A compiled loop that imputes hidden columns linearly, as others become known one by one.

With L the Cholesky factor of the covariance of the known columns in their order, y = L⁻¹ z and u_q
= L⁻¹ Cov(known, q), the conditional mean of column q is u_q · y. One more known column adds one
term and does not change the others. `weightedshap.games.surrogates.imputation` calls the loop.
"""

import numpy as np

from weightedshap._compile import compiled


@compiled
def impute_along(Z, row, column, stop, covariance, out):
    """Fill `out` with imputed values, as columns become known one by one in each sequence.

    ``out[t, k, q]`` = E[z_q | columns of sequence t known at step k]. The values z are those of row
    ``Z[row[t]]``; columns are jointly normal with means 0 and `covariance`. `column` contains the
    sequences of columns that become known, one sequence after the other: at step k those of
    sequence t before ``column[stop[t, k]]`` are known. The sequence ends before ``column[stop[t,
    -1]]``, where the next one begins.
    """
    n_columns = Z.shape[1]
    n_targets = out.shape[2]
    begin = 0
    L = np.empty((n_columns, n_columns))
    u = np.empty((n_targets, n_columns))
    y = np.empty(n_columns)
    mean = np.empty(n_targets)
    for t in range(row.shape[0]):
        # Before any column is known, scores have mean zero.
        n_known = 0
        for q in range(n_targets):
            mean[q] = 0.0
        for k in range(stop.shape[1]):
            # Make columns known up to the stop. ``L[:n_known, :n_known]``, ``y[:n_known]`` and
            # ``u[:, :n_known]`` are those of the columns known so far, and `mean` is u · y.
            while begin + n_known < stop[t, k]:
                i = column[begin + n_known]

                # The new line of L by forward substitution, with what is left of the column's
                # variance and score.
                variance = covariance[i, i]
                rest = Z[row[t], i]
                for b in range(n_known):
                    left = covariance[i, column[begin + b]]
                    for j in range(b):
                        left -= L[n_known, j] * L[b, j]
                    left /= L[b, b]
                    variance -= left * left
                    rest -= left * y[b]
                    L[n_known, b] = left
                scale = np.sqrt(variance)
                L[n_known, n_known] = scale
                y[n_known] = rest / scale

                # One more term of each target, in the same way.
                for q in range(n_targets):
                    left = covariance[i, q]
                    for b in range(n_known):
                        left -= L[n_known, b] * u[q, b]
                    u[q, n_known] = left / scale
                    mean[q] += u[q, n_known] * y[n_known]
                n_known += 1
            for q in range(n_targets):
                out[t, k, q] = mean[q]
        begin += n_known
