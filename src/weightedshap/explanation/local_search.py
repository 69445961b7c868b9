"""Which few features suffice? An order made better by a local search on the judge: a ranking, no
attribution."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weightedshap._checks import FloatArray, IntArray
from weightedshap.curves import recovery
from weightedshap.explanation.export import place_of, row_position
from weightedshap.games.rows import View
from weightedshap.parallel import each_block

if TYPE_CHECKING:
    from weightedshap.explanation.result import Explanation

LEAST_GAIN = 0.1  # standard deviations of f(x): a smaller gain is within what a judge may miss
PASSES = 10


@dataclass(frozen=True, eq=False)
class Shortlist:
    """The few features that suffice for one prediction, in their order: a ranking, told apart from
    attributions."""

    row: int  # its position
    output: str  # its name
    # Names of the k that suffice, first the one that brings the judge nearest.
    features: tuple[str, ...]
    predictions: (
        FloatArray  # (k + 1,) what the judge predicts when the first 0..k of them are known
    )
    prediction: float  # f(x), on the scale of the judge
    tolerance: float  # how near is near enough, on the same scale
    enough: bool  # whether they suffice; if not, all features are listed

    def __len__(self) -> int:
        return len(self.features)

    @property
    def errors(self) -> FloatArray:
        """(k + 1,) |f(x) − v| when the first 0..k features are known."""
        return np.abs(self.prediction - self.predictions)

    def __repr__(self) -> str:
        names = ["  no feature", *(f"+ {name}" for name in self.features)]
        numbers = (
            [f"{value:,.4g}" for value in values] for values in (self.predictions, self.errors)
        )
        rows = [("known", "judge predicts", "error left"), *zip(names, *numbers, strict=True)]
        known, left, right = (max(map(len, column)) for column in zip(*rows))
        lines = [f"  {name:<{known}}  {p:>{left}}  {e:>{right}}" for name, p, e in rows]
        return "\n".join([self._sentence(), *lines])

    def _sentence(self) -> str:
        k = len(self)
        near = f"within {self.tolerance:,.3g} of the model's {self.prediction:,.4g}"
        if not k:
            return (
                f"Row {self.row}: no feature is needed; the judge is {near} when nothing is known."
            )
        if not self.enough:
            return f"Row {self.row}: all {k} features are needed to come {near}."
        what = f"{k} features suffice" if k > 1 else "1 feature suffices"
        return f"Row {self.row}: {what} to come {near}: {', '.join(self.features)}."


def shortlist(
    explanation: "Explanation", row: int, tolerance: float = 0.1, output: int | str = 0
) -> Shortlist:
    """The first features of the refined order that suffice for one row: the judge is within
    `tolerance` deviations.

    These are standard deviations of f over the background. All features are listed where it never
    comes so near.
    """
    place = place_of(explanation, output)
    row = row_position(explanation, row)
    one = explanation[[row], :, [place]] if explanation.has_outputs else explanation[[row]]
    weighing = one._judging("Ask for a shortlist")
    if not tolerance > 0:
        raise ValueError(
            f"`tolerance` must be a positive number of standard deviations; got {tolerance!r}."
        )
    view = weighing.judge.view(slice(0, 1))
    order = refined_orders(one).reshape(1, 1, -1, 1)
    predictions = view.along(order)[0, 0, :, 0]
    near = tolerance * float(weighing.judge.spread(view).item())
    f_x = float(one.judge_predictions.item())
    good = np.flatnonzero(np.abs(f_x - predictions) <= near)
    k = int(good[0]) if len(good) else order.size
    names = tuple(one.feature_names[i] for i in order[0, 0, :k, 0])
    return Shortlist(
        row, one.output_names[0], names, predictions[: k + 1], f_x, near, bool(len(good))
    )


def refined_orders(explanation: "Explanation") -> IntArray:
    """(n, d[, k]) rankings, no attributions, that a local search on the judge finds from `orders`.

    That is: passes of `nearer`, ten at most. A row where nothing moves is not looked at again.
    """
    weighing = explanation._judging("Refine")
    orders = explanation.orders
    start = orders.reshape(*orders.shape[:2], -1)
    judge = weighing.judge

    def work(part: slice) -> IntArray:
        found = start[part].copy()
        moving = np.arange(part.stop - part.start)
        for _ in range(PASSES):
            rows = judge.take(part.start + moving, None)
            view = rows.view(slice(0, len(moving)))
            before = found[moving]
            found[moving] = nearer(view, before, rows.spread(view))
            moving = moving[(found[moving] != before).any(axis=(1, 2))]
            if not len(moving):
                break
        return found

    found = each_block(work, judge.parts(start.shape[1]), weighing.method, "refining")
    return np.concatenate(list(found)).reshape(orders.shape)


def nearer(judge: View, orders: IntArray, spread: FloatArray) -> IntArray:
    """Orders (n, d, k) whose neighbours change places where that brings the judge nearer to f(x).

    Exchanging places t and t + 1 changes one coalition of the walk, that of the first t + 1: all
    pairs that begin at an even place are tried in one walk, then the odd ones. |f(x) − v| must fall
    by more than `LEAST_GAIN` times the spread (n, k), the standard deviation of f(x) over the
    background.
    """
    d = orders.shape[1]
    for start in (0, 1):
        first = np.arange(start, d - 1, 2)
        place = np.arange(d)  # of each pair; of each player
        place[first], place[first + 1] = first + 1, first
        tried = orders[:, place]
        moves = np.zeros(orders.shape, dtype=np.bool_)
        # (n, 2, pairs, k).
        errors = recovery(judge, np.stack([orders, tried], axis=1))[:, :, first + 1]
        moves[:, first] = moves[:, first + 1] = (
            errors[:, 0] - errors[:, 1] > LEAST_GAIN * spread[:, None]
        )
        orders = np.where(moves, tried, orders)
    return orders
