"""Which few features suffice? An order made better by a local search: a ranking, no attribution."""

import numpy as np

from weightedshap.checks import FloatArray, IntArray
from weightedshap.games.rows import View

LEAST_GAIN = 0.1  # standard deviations of f(x): a smaller gain is within what a judge may miss
PASSES = 10


def refined(judge: View, orders: IntArray, spread: FloatArray) -> IntArray:
    """Orders (n, d, k) whose neighbours change places where that brings the judge nearer to f(x).

    Exchanging places t and t + 1 changes one coalition of the walk, that of the first t + 1: all pairs that begin at an
    even place are tried in one walk, then the odd ones, ten times at most or until nothing moves. |f(x) − v| must fall
    by more than `LEAST_GAIN` times the spread (n, k), the standard deviation of f(x) over the background.
    """
    walked, d = _errors(judge, orders), orders.shape[1]  # (n, d + 1, k)
    for _ in range(PASSES):
        before = orders
        for start in (0, 1):
            first = np.arange(start, d - 1, 2)  # of each pair
            place = np.arange(d)
            place[first], place[first + 1] = first + 1, first
            tried = orders[:, place]
            errors = _errors(judge, tried)
            better = np.zeros(walked.shape, dtype=np.bool_)  # by the place where the walk changes
            better[:, first + 1] = walked[:, first + 1] - errors[:, first + 1] > LEAST_GAIN * spread[:, None]
            walked = np.where(better, errors, walked)
            better[:, first] = better[:, first + 1]
            orders = np.where(better[:, :d], tried, orders)
        if (orders == before).all():
            break
    return orders


def _errors(judge: View, orders: IntArray) -> FloatArray:
    """(n, d + 1, k) |f(x) − v| along orders (n, d, k)."""
    return np.abs(judge.f_x[:, None] - judge.along(orders[:, None])[:, 0])
