"""What an evaluation says: the verdict in one sentence, a small table, the full tables, a difference in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from weightedshap.checks import FloatArray
from weightedshap.curves import mean_interval
from weightedshap.wording import compared, number, percent, plural, with_margin

if TYPE_CHECKING:
    from weightedshap.evaluation.evaluate import Evaluation

LARGER_IS_BETTER = ("inclusion_auc", "masked_auc", "exclusion", "exclusion_mse")
SEARCHED = ("refined", "greedy", "optimum")  # look at the judge that chose, so they are no attributions
WORDS = {"recovery": "recovery error", "masked_inclusion": "recovery error with means elsewhere"}
REFERENCE = "Shapley"


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
    return f"{judge!r} games of rows that chose nothing" if judge in KINDS else f"{judge!r}, which was given"


class Said(str):
    """Text that a prompt shows as it is."""

    def __repr__(self) -> str:
        return str(self)


class Difference(tuple[float, float]):
    """The mean difference of two methods and half the width of its 95 % interval; it prints what that means."""

    said: str

    @classmethod
    def of(cls, mean: float, margin: float, said: str) -> Difference:
        made = cls((mean, margin))
        made.said = said
        return made

    def __repr__(self) -> str:
        return self.said


def relative(areas: FloatArray, reference: FloatArray) -> tuple[FloatArray, FloatArray]:
    """R − 1 for R = Σ areas / Σ reference over the rows, and half the width of its 95 % interval (paired).

    A ratio of means varies as the mean of areas − R·reference does, over the mean of the reference.
    """
    mean = reference.mean(axis=0)
    ratio = np.divide(areas.mean(axis=0), mean, out=np.full(np.shape(areas)[1:], np.nan), where=mean > 0)
    margin = mean_interval(areas - ratio * reference)[1]
    return ratio - 1, np.divide(margin, mean, out=np.full_like(margin, np.nan), where=mean > 0)


def verdict(evaluation: Evaluation) -> str:
    """How much better the first method recovers predictions than Shapley and TreeSHAP, and what is noise."""
    judge, methods = evaluation.judges[0], evaluation.methods
    first, *others = [method for method in methods if method not in SEARCHED] or methods
    near = [REFERENCE] if REFERENCE in others else others[:1]
    areas = dict(zip(methods, evaluation.areas(judge).T, strict=True))
    apart = [name for name in others if name.startswith("TreeSHAP") and not np.allclose(areas[name], areas[near[0]])]
    if not near or not areas[near[0]].any():
        return f"{plural(len(evaluation), 'row')}, judged by {in_words(judge)}: there is nothing to compare."
    found = {name: relative(areas[first], areas[name]) for name in (*near, *apart[:1])}
    own = "On the judge that chose it, which flatters it," if judge == "own" else "On games that did not choose it,"
    said = " and ".join(_against(*one, "" if place else " error") for place, one in enumerate(found.items()))
    margin = float(found[near[0]][1])
    noise = f"; differences below {percent(margin)} are noise here" if np.isfinite(margin) else ""
    return f"{own} {first} recovers predictions with {said}{noise}."


def _against(name: str, change: tuple[FloatArray, FloatArray], what: str) -> str:
    """``9.0 % less error than Shapley (95 % interval 4.1 to 13.9)``."""
    mean, margin = map(float, change)
    said = compared(mean, f"less{what} than", f"more{what} than").replace("the same", f"the same{what} as")
    if not np.isfinite(margin):
        return f"{said} {name}"
    low, high = (number(round(100 * (abs(mean) + end), 1)) for end in (-margin, margin))
    clear = "" if abs(mean) > margin else ", so they cannot be told apart"
    return f"{said} {name} ({'95 % interval ' * bool(what)}{low} to {high}{clear})"


def summary(evaluation: Evaluation, metric: str) -> str:
    """Methods × judges: one metric in percent of Shapley's, the best attribution of each judge marked."""
    reference = REFERENCE if REFERENCE in evaluation.methods else evaluation.methods[0]
    place = evaluation.methods.index(reference)
    columns = [_percents(evaluation, judge, metric, place) for judge in evaluation.judges]
    better = "larger" if metric in LARGER_IS_BETTER else "smaller"
    head = f"{WORDS.get(metric, metric)} in % of {reference}'s, {better} is better; ± half of the 95 % interval over"
    table = _lined(f"{head} {plural(len(evaluation), 'row')}", evaluation, evaluation.judges, columns)
    misses = ", ".join(f"{judge} {percent(round(evaluation.misfit(judge), 6))}" for judge in evaluation.judges)
    return f"{table}\nof Shapley's recovery error the judge itself makes: {misses}"


def _percents(evaluation: Evaluation, judge: str, metric: str, place: int) -> list[str]:
    areas = evaluation.areas(judge, metric)
    change, margin = relative(areas, areas[:, [place]])
    sign = -1 if metric in LARGER_IS_BETTER else 1
    fair = np.array([method not in SEARCHED for method in evaluation.methods])
    best = np.nanmin(np.where(fair, sign * change, np.inf), initial=np.inf)
    marks = ["*" if f and sign * c <= best + 1e-9 else " " for f, c in zip(fair, change, strict=True)]
    cells = [with_margin(100 * (1 + c), 100 * m) for c, m in zip(change, np.round(margin, 12), strict=True)]
    return [cell + mark for cell, mark in zip(cells, marks, strict=True)]


def tables(evaluation: Evaluation) -> str:
    """Every judge's methods × metrics in the numbers themselves: sums over the features known, mean ± margin."""
    titles = [f"{metric} {'↑' if metric in LARGER_IS_BETTER else '↓'}" for metric in evaluation.metrics]
    found = []
    for judge in evaluation.judges:
        pairs = zip(evaluation.mean(judge).T, evaluation.margin(judge).T, strict=True)
        cells = [[with_margin(*cell) for cell in zip(*pair, strict=True)] for pair in pairs]
        head = f"{plural(len(evaluation), 'row')}, judged by {in_words(judge)} (mean ± half of the 95 % interval)"
        found.append(_lined(head, evaluation, titles, cells))
    return "\n\n".join(found)


def _lined(head: str, evaluation: Evaluation, titles: Sequence[str], cells: Sequence[Sequence[str]]) -> str:
    """Columns of equal width under their titles, a line for each method."""
    widths = [max(len(title), *map(len, column)) + 3 for title, column in zip(titles, cells, strict=True)]
    left = max(map(len, evaluation.methods))
    lines = [("", *titles), *zip(evaluation.methods, *cells, strict=True)]
    return "\n".join([head, *(f"{name:<{left}}" + "".join(map(str.rjust, row, widths)) for name, *row in lines)])


def differing(evaluation: Evaluation, method: str, other: str, judge: str, metric: str) -> Difference:
    """The paired difference of two methods, and what it means."""
    one, two = (evaluation.areas(judge, metric)[:, evaluation.methods.index(name)] for name in (method, other))
    mean, margin = map(float, mean_interval(one - two))
    change, _ = relative(one, two)
    good = "" if mean == 0 else ", better" if (mean > 0) == (metric in LARGER_IS_BETTER) else ", worse"
    noise = "" if not np.isfinite(margin) or abs(mean) > margin or mean == 0 else ", within noise"
    words = f"{with_margin(mean, margin)} ({compared(float(change))}{good}{noise})"
    return Difference.of(mean, margin, f"{method} − {other}: {words} in {metric}, judged by {in_words(judge)}")
