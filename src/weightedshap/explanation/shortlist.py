"""Which few features suffice for this prediction? A short list with what the judge predicts after each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weightedshap.checks import FloatArray
from weightedshap.weighing import Weighing

if TYPE_CHECKING:
    from weightedshap.explanation.result import Explanation


@dataclass(frozen=True, eq=False)
class Shortlist:
    """The few features that suffice for one prediction, in their order: a ranking, told apart from attributions."""

    row: int  # its position
    output: str  # its name
    features: tuple[str, ...]  # names of the k that suffice, first the one that brings the judge nearest
    predictions: FloatArray  # (k + 1,) what the judge predicts when the first 0..k of them are known
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
        names = ["no feature", *self.features]
        width = max(map(len, names))
        cells = [(f"{p:,.4g}", f"{e:,.4g}") for p, e in zip(self.predictions, self.errors, strict=True)]
        left, right = (max(len(title), *map(len, column)) for title, column in zip(TITLES, zip(*cells), strict=True))
        lines = [f"  {'known':<{width + 2}}  {TITLES[0]:>{left}}  {TITLES[1]:>{right}}"]
        for place, (name, (p, e)) in enumerate(zip(names, cells, strict=True)):
            lines.append(f"  {'+ ' if place else '  '}{name:<{width}}  {p:>{left}}  {e:>{right}}")
        return "\n".join([self._sentence(), *lines])

    def _sentence(self) -> str:
        k, near = len(self), f"within {self.tolerance:,.3g} of the model's {self.prediction:,.4g}"
        if not k:
            return f"Row {self.row}: no feature is needed; the judge is {near} when nothing is known."
        if not self.enough:
            return f"Row {self.row}: all {k} features are needed to come {near}."
        what = f"{k} features suffice" if k > 1 else "1 feature suffices"
        return f"Row {self.row}: {what} to come {near}: {', '.join(self.features)}."


TITLES = ("judge predicts", "error left")


def shortlisted(one: Explanation, judge: Weighing, row: int, tolerance: float) -> Shortlist:
    """The shortlist of an explanation of one row and output, whose position among all rows is `row`."""
    if not tolerance > 0:
        raise ValueError(f"`tolerance` must be a positive number of standard deviations; got {tolerance!r}.")
    order = judge.refine(one.orders).reshape(1, -1, 1)
    walked, spread = judge.judged(order)
    f_x, near, predictions = float(one.judge_predictions.item()), tolerance * float(spread.item()), walked[0, :, 0]
    good = np.flatnonzero(np.abs(f_x - predictions) <= near)
    k = int(good[0]) if len(good) else order.size
    names = tuple(one.feature_names[i] for i in order[0, :k, 0])
    return Shortlist(row, one.output_names[0], names, predictions[: k + 1], f_x, near, bool(len(good)))
