"""An evaluation in words: the verdict in a sentence, a small table, the difference of two methods.

`summary` and `difference` are methods of `Evaluation`; reports and figures use `in_words`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from weightedshap._checks import FloatArray, check_choice
from weightedshap._format import format_change, number, percent, plural, with_margin
from weightedshap.curves import mean_interval

if TYPE_CHECKING:
    from weightedshap.evaluation.evaluate import Evaluation

LARGER_IS_BETTER = ("inclusion_auc", "masked_auc", "exclusion", "exclusion_mse")
"""Metrics for which larger values are better; for all others smaller ones are."""

SEARCHES = ("refined", "greedy", "optimum")
"""Methods that search on the judge that chose the weights, and so are no attributions."""

KINDS: Mapping[str, str | None] = {
    "anchored": "anchored",
    "network": "anchored_network",
    "surrogate": "tree_surrogate",
    "independent": None,
}
"""The name of the game for each kind of judge; None is the explainer's own kind."""

LEGEND = (
    "* the best attribution; own: the judge that chose the weights; summary(metric) and to_frame()"
    " have more"
)


def in_words(judge: str) -> str:
    """Return a phrase for a judge that can follow the words "judged by"."""
    if judge == "own":
        return "the game that chose the weights"
    if judge in KINDS:
        return f"{judge!r} games of rows that chose nothing"
    return f"the given judge {judge!r}"


class PairedDifference(tuple[float, float]):
    """The mean difference of two methods, and half the width of its 95 % interval.

    Its repr is a sentence that explains the numbers.
    """

    sentence: str

    def __repr__(self) -> str:
        return self.sentence


def relative_change(areas: FloatArray, reference: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the relative change from the sum of `reference` to that of `areas`, with its margin.

    It is R − 1 for R = Σ areas / Σ reference. The margin is half the width of the 95 % interval.
    Rows are paired: the error of R is the error of the mean of areas − R·reference, divided by the
    mean of the reference.
    """
    mean = np.maximum(reference.mean(axis=0), np.finfo(float).tiny)
    ratio = areas.mean(axis=0) / mean
    _, margin = mean_interval(areas - ratio * reference)
    return np.asarray(ratio - 1), np.asarray(margin / mean)


def baseline_method(evaluation: Evaluation) -> str:
    """Return the name of the method that others are compared with: Shapley, or else the last."""
    return "Shapley" if "Shapley" in evaluation.methods else evaluation.methods[-1]


def verdict(evaluation: Evaluation) -> str:
    """Return a sentence that compares the first method with Shapley and, if different, TreeSHAP."""
    judge = evaluation.judges[0]
    first = evaluation.methods[0]
    baseline = baseline_method(evaluation)
    areas = dict(zip(evaluation.methods, evaluation.areas(judge).T, strict=True))
    if first == baseline or not areas[baseline].any():
        return (
            f"{plural(len(evaluation), 'row')}, judged by {in_words(judge)}: there is nothing to"
            " compare."
        )

    # TreeSHAP is the Shapley value itself where the model's own trees are the game.
    trees = [
        name
        for name in areas
        if "TreeSHAP" in name and not np.allclose(areas[name], areas[baseline])
    ]
    comparisons = []
    for name in [baseline, *trees[:1]]:
        change, margin = relative_change(areas[first], areas[name])
        comparisons.append(_compare_with(name, float(change), float(margin)))

    where = "On games that did not choose it,"
    if judge == "own":
        where = "On the judge that chose it, which flatters it,"
    margin = relative_change(areas[first], areas[baseline])[1]
    noise = ""
    if np.isfinite(margin):
        noise = f"; differences below {percent(float(margin))} are noise here"
    return f"{where} {first} recovers predictions with {' and '.join(comparisons)}{noise}."


def _compare_with(name: str, change: float, margin: float) -> str:
    """Describe a relative change: ``9.0 % less error than Shapley (95 % interval 4.1 to 13.9)``."""
    comparison = format_change(change, "less error than", "more error than")
    comparison = comparison.replace("the same", "the same error as")
    if not np.isfinite(margin):
        return f"{comparison} {name}"
    low, high = (number(round(100 * (abs(change) + end), 1)) for end in (-margin, margin))
    unclear = "" if abs(change) > margin else ", so they cannot be told apart"
    return f"{comparison} {name} (95 % interval {low} to {high}{unclear})"


def summary(evaluation: Evaluation, metric: str = "recovery") -> str:
    """Format one metric as a text table of methods × judges, in % of Shapley's score.

    An asterisk marks the best method.
    """
    baseline = baseline_method(evaluation)
    direction = "larger" if metric in LARGER_IS_BETTER else "smaller"
    head = (
        f"{'recovery error' if metric == 'recovery' else metric} in % of {baseline}'s, {direction}"
        f" is better; ± half of the 95 % interval over {plural(len(evaluation), 'row')}"
    )

    columns = [["", *evaluation.methods]]
    columns += [[judge, *_cells(evaluation, judge, metric)] for judge in evaluation.judges]
    widths = [max(map(len, column)) for column in columns]
    lines = []
    for name, *cells in zip(*columns, strict=True):
        padded = [cell.rjust(width + 3) for cell, width in zip(cells, widths[1:], strict=True)]
        lines.append(name.ljust(widths[0]) + "".join(padded))

    shares = [
        f"{judge} {percent(round(evaluation.misfit(judge), 6))}" for judge in evaluation.judges
    ]
    foot = f"of {baseline}'s recovery error the judge itself makes: {', '.join(shares)}"
    return "\n".join([head, *lines, foot])


def _cells(evaluation: Evaluation, judge: str, metric: str) -> list[str]:
    """Return the table cells of all methods: scores in % of Shapley's, such as ``91 ± 4*``.

    An asterisk marks the best method.
    """
    areas = evaluation.areas(judge, metric)
    baseline = evaluation.methods.index(baseline_method(evaluation))
    change, margin = relative_change(areas, areas[:, [baseline]])
    is_attribution = np.array([method not in SEARCHES for method in evaluation.methods])
    loss = np.where(is_attribution, -change if metric in LARGER_IS_BETTER else change, np.inf)
    is_best = is_attribution & (loss <= loss.min() + 1e-9)

    cells = []
    for value, error, best in zip(
        100 * (1 + change), 100 * np.round(margin, 12), is_best, strict=True
    ):
        cells.append(with_margin(value, error) + ("*" if best else " "))
    return cells


def difference(
    evaluation: Evaluation,
    method: str = "WeightedSHAP",
    other: str = "Shapley",
    judge: str | None = None,
    metric: str = "recovery",
) -> PairedDifference:
    """Return the mean difference of two methods over the rows, with its 95 % margin.

    The margin is half the width of the interval; rows are paired. The repr of the result explains
    the numbers in words.
    """
    judge = judge or evaluation.judges[0]
    methods = evaluation.methods
    places = [methods.index(check_choice("method", name, methods)) for name in (method, other)]
    own, others = evaluation.areas(judge, metric)[:, places].T
    mean, margin = map(float, mean_interval(own - others))

    better = ""
    if mean != 0:
        is_better = (mean > 0) == (metric in LARGER_IS_BETTER)
        better = ", better" if is_better else ", worse"
    noise = ", within noise" if 0 < abs(mean) <= margin else ""
    change = format_change(float(relative_change(own, others)[0]))
    pair = PairedDifference((mean, margin))
    pair.sentence = (
        f"{method} − {other}: {with_margin(mean, margin)} ({change}{better}{noise}) in {metric},"
        f" judged by {in_words(judge)}"
    )
    return pair
