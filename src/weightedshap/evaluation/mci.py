"""MCI (marginal contribution feature importance): the largest contribution to any coalition.

Catav et al. (2021) define it. `rankings` lists it as two of the methods that `evaluate` compares.
"""

from __future__ import annotations

import numpy as np

from weightedshap._checks import FloatArray, IntArray
from weightedshap.coalitions import all_coalitions
from weightedshap.curves import rank_features
from weightedshap.estimators.exact import differences
from weightedshap.games.base import BaseGame, GameBatch
from weightedshap.inputs.rows import Rows
from weightedshap.method import judge_slices
from weightedshap.parallel import Workers, each_block

# The MCI uses all coalitions of up to this many players, and those along some orders of more.
MOST_ENUMERATED = 10


def mci_rankings(
    judge: BaseGame, rows: Rows, walks: IntArray, workers: Workers
) -> tuple[IntArray, IntArray]:
    """Rank features by MCI (marginal contribution feature importance), by row and over all rows.

    Both rankings are (n, d, k). `walks` (m, d) are orders of the features: with more than 10
    features, contributions are only computed along these. For a single row, v is the judge; for all
    rows together, v is minus the judge's mean squared error.
    """
    n, k = rows.ask(judge).shape
    d = walks.shape[1]

    def work(part: slice) -> tuple[IntArray, FloatArray]:
        return _rank_block(rows[part].bind(judge), walks)

    parts = judge_slices(judge, n, d, k)
    blocks = list(each_block(work, parts, workers, "MCI"))
    by_row = np.concatenate([orders for orders, _ in blocks])

    # A factor does not change a ranking, so the sum of the errors replaces their mean.
    squared_error = np.sum([errors for _, errors in blocks], axis=0)  # (k, …)
    importance = np.stack([mci(-of_output, walks) for of_output in squared_error], axis=-1)
    overall = rank_features(importance, axis=0)  # (d, k)
    return by_row, np.tile(overall, (n, 1, 1))


def _rank_block(batch: GameBatch, walks: IntArray) -> tuple[IntArray, FloatArray]:
    """Rank the features for each row of a block; return rankings and sums of squared errors.

    The rankings (n, d, k) are by MCI (marginal contribution feature importance). The sums (k, …)
    over the rows are by output, and by coalition as in `sampled_values`.
    """
    importance = []
    squared_error = []
    for o in range(batch.predictions.shape[1]):
        f_x = batch.predictions[:, o]
        values = sampled_values(batch.output(o), walks)  # (n, …)
        # At one row a feature matters whether it raises the prediction or lowers it.
        importance.append(np.maximum(mci(values, walks), mci(-values, walks)))
        errors = f_x.reshape(-1, *(1,) * (values.ndim - 1)) - values
        squared_error.append((errors**2).sum(axis=0))
    return rank_features(np.stack(importance, axis=-1), axis=1), np.stack(squared_error)


def sampled_values(batch: GameBatch, walks: IntArray) -> FloatArray:
    """Return the values (n, 2^d) of a game at all coalitions of d ≤ 10 players, for one output.

    With more players, return the values (n, m, d + 1) along the orders `walks` (m, d).
    """
    if batch.d <= MOST_ENUMERATED:
        return batch.values(all_coalitions(batch.d))[..., 0]
    return batch.along(np.tile(walks, (batch.n, 1, 1)))[..., 0]


def mci(values: FloatArray, walks: IntArray) -> FloatArray:
    """Return the MCI (…, d): the largest increase in the value of any coalition by each feature.

    For feature i it is the maximum of v(S ∪ i) − v(S) over the coalitions S of a game v.
    `values` and the orders `walks` are those of `sampled_values`.
    """
    d = walks.shape[1]
    if d <= MOST_ENUMERATED:
        by_coalition = np.moveaxis(values, -1, 0)  # (2^d, …)
        largest = [differences(by_coalition, i).max(axis=0) for i in range(d)]
        return np.stack(largest, axis=-1)

    steps = np.diff(values, axis=-1)  # (…, m, d) by position in the order
    place_of_feature = np.broadcast_to(np.argsort(walks, axis=-1), steps.shape)
    by_feature = np.take_along_axis(steps, place_of_feature, axis=-1)
    return np.asarray(by_feature.max(axis=-2))
