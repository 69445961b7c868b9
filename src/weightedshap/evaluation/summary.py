"""What an evaluation says: the verdict in one sentence, a small table, a difference in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from weightedshap._checks import FloatArray, one_of
from weightedshap._format import compared, number, percent, plural, with_margin
from weightedshap.curves import mean_interval

if TYPE_CHECKING:
    from weightedshap.evaluation.evaluate import Evaluation

LARGER_IS_BETTER = ("inclusion_auc", "masked_auc", "exclusion", "exclusion_mse")
# Look at the judge that chose, so they are no attributions.
SEARCHED = (
    "refined",
    "greedy",
    "optimum",
)
LEGEND = (
    "* the best attribution; own: the judge that chose the weights; summary(metric) and to_frame()"
    " have more"
)
KINDS: Mapping[str, str | None] = {
    "anchored": "anchored",
    "network": "anchored_network",
    "surrogate": "tree_surrogate",
    "independent": None,
}
"""Kinds of judges and the games behind them; None is the explainer's own."""


def in_words(judge: str) -> str:
    """A kind of judge in words."""
    if judge == "own":
        return "the game that chose the weights"
    return (
        f"{judge!r} games of rows that chose nothing"
        if judge in KINDS
        else f"{judge!r}, which was given"
    )


class Difference(tuple[float, float]):
    """The mean difference of two methods and half the width of its 95 % interval; it prints what
    that means."""

    said: str

    def __repr__(self) -> str:
        return self.said


def relative(areas: FloatArray, reference: FloatArray) -> tuple[FloatArray, FloatArray]:
    """R − 1 for R = Σ areas / Σ reference over the rows, and half the width of its 95 % interval
    (paired).

    A ratio of means varies as the mean of areas − R·reference does, over the mean of the reference.
    """
    mean = np.maximum(reference.mean(axis=0), np.finfo(float).tiny)
    ratio = areas.mean(axis=0) / mean
    return np.asarray(ratio - 1), np.asarray(mean_interval(areas - ratio * reference)[1] / mean)


def _reference(evaluation: Evaluation) -> str:
    return "Shapley" if "Shapley" in evaluation.methods else evaluation.methods[-1]


def verdict(evaluation: Evaluation) -> str:
    """How much better the first method recovers predictions than Shapley and TreeSHAP, and what is
    noise."""
    judge = evaluation.judges[0]
    first = evaluation.methods[0]
    reference = _reference(evaluation)
    areas = dict(zip(evaluation.methods, evaluation.areas(judge).T, strict=True))
    if first == reference or not areas[reference].any():
        return (
            f"{plural(len(evaluation), 'row')}, judged by {in_words(judge)}: there is nothing to"
            " compare."
        )
    trees = [
        name
        for name in areas
        if "TreeSHAP" in name and not np.allclose(areas[name], areas[reference])
    ]
    others = [reference, *trees[:1]]
    own = (
        "On the judge that chose it, which flatters it,"
        if judge == "own"
        else "On games that did not choose it,"
    )
    said = " and ".join(
        _against(name, *map(float, relative(areas[first], areas[name]))) for name in others
    )
    margin = float(relative(areas[first], areas[reference])[1])
    noise = f"; differences below {percent(margin)} are noise here" if np.isfinite(margin) else ""
    return f"{own} {first} recovers predictions with {said}{noise}."


def _against(name: str, change: float, margin: float) -> str:
    """``9.0 % less error than Shapley (95 % interval 4.1 to 13.9)``."""
    said = compared(change, "less error than", "more error than").replace(
        "the same", "the same error as"
    )
    low, high = (number(round(100 * (abs(change) + end), 1)) for end in (-margin, margin))
    clear = "" if abs(change) > margin else ", so they cannot be told apart"
    return f"{said} {name}" + (
        f" (95 % interval {low} to {high}{clear})" if np.isfinite(margin) else ""
    )


def summary(evaluation: Evaluation, metric: str = "recovery") -> str:
    """Methods × judges: one metric in percent of Shapley's, the best attribution of each judge
    marked."""
    reference = _reference(evaluation)
    larger = metric in LARGER_IS_BETTER
    place = evaluation.methods.index(reference)
    fair = np.array([method not in SEARCHED for method in evaluation.methods])
    columns = []
    for judge in evaluation.judges:
        areas = evaluation.areas(judge, metric)
        change, margin = relative(areas, areas[:, [place]])
        behind = np.where(fair, -change if larger else change, np.inf)
        cells = zip(
            100 * (1 + change),
            100 * np.round(margin, 12),
            fair & (behind <= behind.min() + 1e-9),
            strict=True,
        )
        columns.append(
            [judge, *(with_margin(value, error) + " *"[int(best)] for value, error, best in cells)]
        )
    misses = ", ".join(
        f"{judge} {percent(round(evaluation.misfit(judge), 6))}" for judge in evaluation.judges
    )
    what = "recovery error" if metric == "recovery" else metric
    head = (
        f"{what} in % of {reference}'s, {'larger' if larger else 'smaller'} is better; ± half of"
        " the 95 % interval"
    )
    widths = [max(map(len, column)) + 3 for column in columns]
    left = max(map(len, evaluation.methods))
    lines = zip(("", *evaluation.methods), *columns, strict=True)
    table = [f"{name:<{left}}" + "".join(map(str.rjust, row, widths)) for name, *row in lines]
    rest = f"of {reference}'s recovery error the judge itself makes: {misses}"
    return "\n".join([f"{head} over {plural(len(evaluation), 'row')}", *table, rest])


def difference(
    evaluation: Evaluation,
    method: str = "WeightedSHAP",
    other: str = "Shapley",
    judge: str | None = None,
    metric: str = "recovery",
) -> Difference:
    """Mean difference of two methods over the rows, and half the width of its 95 % interval
    (paired), in words."""
    judge = judge or evaluation.judges[0]
    methods = evaluation.methods
    places = [methods.index(one_of("method", name, methods)) for name in (method, other)]
    one, two = evaluation.areas(judge, metric)[:, places].T
    mean, margin = map(float, mean_interval(one - two))
    good = (
        "" if mean == 0 else ", better" if (mean > 0) == (metric in LARGER_IS_BETTER) else ", worse"
    )
    noise = ", within noise" if 0 < abs(mean) <= margin else ""
    words = f"{with_margin(mean, margin)} ({compared(float(relative(one, two)[0]))}{good}{noise})"
    found = Difference((mean, margin))
    found.said = f"{method} − {other}: {words} in {metric}, judged by {in_words(judge)}"
    return found
