"""Local search: rankings that come nearer to f(x), and the few features that suffice.

Its results are not attributions. `Explanation.shortlist` and `Explanation.refined_orders` are the
functions of this module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weightedshap._checks import FloatArray, IntArray
from weightedshap.curves import along_each_output, recovery_curves
from weightedshap.explanation.export import output_index, row_position
from weightedshap.games.base import GameBatch
from weightedshap.method import judge_slices
from weightedshap.parallel import each_block

if TYPE_CHECKING:
    from weightedshap.explanation.result import Explanation

# In standard deviations of f(x): a smaller gain is within the error of the judge.
MIN_GAIN = 0.1
MAX_PASSES = 10


@dataclass(frozen=True, eq=False)
class Shortlist:
    """The few features that suffice to predict f(x) at one row, in order; not an attribution."""

    row: int  # the position of the row
    output: str  # the name of the output
    # The names of the k features that suffice, in the order in which they become known.
    features: tuple[str, ...]
    # (k + 1,) v when the first 0..k features are known.
    predictions: FloatArray
    prediction: float  # f(x), on the scale of the judge
    tolerance: float  # the largest |f(x) − v| that counts as near f(x), on the same scale
    enough: bool  # whether the features suffice; if not, all are listed

    def __len__(self) -> int:
        return len(self.features)

    @property
    def errors(self) -> FloatArray:
        """The errors |f(x) − v| (k + 1,) when the first 0..k features are known."""
        return np.abs(self.prediction - self.predictions)

    def __repr__(self) -> str:
        names = ["  no feature", *(f"+ {name}" for name in self.features)]
        predictions = [f"{value:,.4g}" for value in self.predictions]
        errors = [f"{value:,.4g}" for value in self.errors]
        header = ("known", "judge predicts", "error left")
        table = [header, *zip(names, predictions, errors, strict=True)]
        name_width, prediction_width, error_width = (
            max(map(len, column)) for column in zip(*table, strict=True)
        )
        lines = [
            f"  {name:<{name_width}}  {prediction:>{prediction_width}}  {error:>{error_width}}"
            for name, prediction, error in table
        ]
        return "\n".join([self._sentence(), *lines])

    def _sentence(self) -> str:
        """Return a sentence with the number and the names of the features."""
        k = len(self)
        near = f"within {self.tolerance:,.3g} of the model's {self.prediction:,.4g}"
        if not k:
            return (
                f"Row {self.row}: no feature is needed; the judge is {near} when nothing is known."
            )
        if not self.enough:
            return f"Row {self.row}: all {k} features are needed to come {near}."
        count = f"{k} features suffice" if k > 1 else "1 feature suffices"
        return f"Row {self.row}: {count} to come {near}: {', '.join(self.features)}."


def shortlist(
    explanation: Explanation, row: int, tolerance: float = 0.1, output: int | str = 0
) -> Shortlist:
    """Return the few features that suffice to predict f(x) at one row, as a `Shortlist`.

    They are the first ones of `refined_orders`, and suffice when the judge predicts f(x) to within
    `tolerance` standard deviations of f over the background. If the judge never comes so near, all
    features are listed.
    """
    o = output_index(explanation, output)
    row = row_position(explanation, row)
    one = explanation[[row], :, [o]] if explanation.has_outputs else explanation[[row]]
    source = one._require_source("Ask for a shortlist")
    if not tolerance > 0:
        raise ValueError(
            f"`tolerance` must be a positive number of standard deviations; got {tolerance!r}."
        )
    judge: GameBatch = source.rows.bind(source.problem.judge).select(source.outputs)
    order = refined_orders(one).ravel()  # (d,)
    predictions = along_each_output(judge, order.reshape(1, 1, -1, 1))[0, 0, :, 0]  # (d + 1,)

    f_x = float(one.judge_predictions.item())
    near = tolerance * float(prediction_spread(judge).item())
    near_enough = np.flatnonzero(np.abs(f_x - predictions) <= near)
    enough = len(near_enough) > 0
    k = int(near_enough[0]) if enough else len(order)
    return Shortlist(
        row=row,
        output=one.output_names[0],
        features=tuple(one.feature_names[i] for i in order[:k]),
        predictions=predictions[: k + 1],
        prediction=f_x,
        tolerance=near,
        enough=enough,
    )


def refined_orders(explanation: Explanation) -> IntArray:
    """Improve rankings (n, d[, k]) by a local search for a smaller recovery error; return them.

    They are not attributions. The judge, the game that scores rankings, gives the errors. The
    search starts at `orders` and makes at most ten passes of `swap_neighbours`; a row is finished
    when a pass leaves its order unchanged.
    """
    source = explanation._require_source("Refine")
    problem = source.problem
    orders = explanation.orders
    start = orders.reshape(*orders.shape[:2], -1)
    n, d, k = start.shape

    def refine(part: slice) -> IntArray:
        refined = start[part].copy()
        active = np.arange(part.stop - part.start)
        for _ in range(MAX_PASSES):
            rows = source.rows[part.start + active]
            judge: GameBatch = rows.bind(problem.judge).select(source.outputs)
            before = refined[active]
            after = swap_neighbours(judge, before, prediction_spread(judge))
            refined[active] = after
            active = active[(after != before).any(axis=(1, 2))]
            if not len(active):
                break
        return refined

    parts = judge_slices(problem.judge, n, d, k)
    blocks = each_block(refine, parts, problem.workers, "refining")
    return np.concatenate(list(blocks)).reshape(orders.shape)


def prediction_spread(batch: GameBatch) -> FloatArray:
    """Return the standard deviation of f over the background, repeated for each row: (n, k).

    If it is unknown, as for a user's own game, |f(x) − v(∅)| of each row is returned.
    """
    sd = np.atleast_1d(batch.game.prediction_sd)
    if batch.outputs is not None and len(sd) > 1:
        sd = sd[list(batch.outputs)]
    if np.isnan(sd).any():
        return np.abs(batch.predictions - batch.endpoints()[:, 0])
    return np.broadcast_to(sd, batch.predictions.shape)


def swap_neighbours(judge: GameBatch, orders: IntArray, spread: FloatArray) -> IntArray:
    """Swap neighbours in orders (n, d, k) where that brings v, the judge's value, nearer to f(x).

    Swapping the positions t and t + 1 of an order changes a single coalition, the first t + 1
    features. So all pairs that begin at an even position are tried together, then all others. A
    swap must lower |f(x) − v| by more than `MIN_GAIN` times the spread (n, k), see
    `prediction_spread`.
    """
    d = orders.shape[1]
    for parity in (0, 1):
        first = np.arange(parity, d - 1, 2)  # the first position of each pair
        swapped_places = np.arange(d)
        swapped_places[first] = first + 1
        swapped_places[first + 1] = first
        swapped = orders[:, swapped_places]

        walks = np.stack([orders, swapped], axis=1)
        curves = recovery_curves(judge, walks, judge.predictions)
        errors = curves[:, :, first + 1]  # (n, 2, pairs, k)
        is_nearer = errors[:, 0] - errors[:, 1] > MIN_GAIN * spread[:, None]
        takes_swap = np.zeros(orders.shape, dtype=np.bool_)
        takes_swap[:, first] = is_nearer
        takes_swap[:, first + 1] = is_nearer
        orders = np.where(takes_swap, swapped, orders)
    return orders
