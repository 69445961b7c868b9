"""Which few features suffice? An order made better by a local search: a ranking, no attribution."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from weightedshap.checks import BoolArray, FloatArray, IntArray
from weightedshap.games.rows import View

Number = TypeVar("Number", np.float64, np.intp)

LEAST_GAIN = 0.1  # standard deviations of f(x): a smaller gain is within what a judge may miss
PASSES = 10


def refined(judge: View, orders: IntArray, spread: FloatArray) -> IntArray:
    """Orders (n, d, k) whose neighbours change places where that brings the judge nearer to f(x).

    Exchanging places t and t + 1 changes one coalition of the walk, that of the first t + 1: all pairs that begin at an
    even place are tried in one walk, then the odd ones, ten times at most or until nothing moves. |f(x) − v| must fall
    by more than `LEAST_GAIN` times the spread (n, k), the standard deviation of f(x) over the background.
    """
    walked = _errors(judge, orders)  # (n, d + 1, k)
    for _ in range(PASSES):
        moved = False
        for start in (0, 1):
            tried = _exchanged(orders, start)
            errors = _errors(judge, tried)
            first = np.arange(start, orders.shape[1] - 1, 2)  # of each pair
            better = walked[:, first + 1] - errors[:, first + 1] > LEAST_GAIN * spread[:, None]  # (n, pairs, k)
            moved |= bool(better.any())
            for place in (first, first + 1):
                orders = _where(better, tried, orders, place)
            walked = _where(better, errors, walked, first + 1)
        if not moved:
            break
    return orders


def _errors(judge: View, orders: IntArray) -> FloatArray:
    """(n, d + 1, k) |f(x) − v| along orders (n, d, k)."""
    return np.abs(judge.f_x[:, None] - judge.along(orders[:, None])[:, 0])


def _exchanged(orders: IntArray, start: int) -> IntArray:
    """Orders (n, d, k) with the pairs that begin at places `start`, `start` + 2 … exchanged."""
    place = np.arange(orders.shape[1])
    first = np.arange(start, len(place) - 1, 2)
    place[first], place[first + 1] = first + 1, first
    return orders[:, place]


def _where(
    better: BoolArray, new: npt.NDArray[Number], old: npt.NDArray[Number], place: IntArray
) -> npt.NDArray[Number]:
    """`old` (n, …, k) with `new` at the places where it is better (n, pairs, k)."""
    made = old.copy()
    made[:, place] = np.where(better, new[:, place], old[:, place])
    return made
