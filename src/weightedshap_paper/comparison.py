"""The paper's claims and panels, and further tables, from runs that compare rankings.

The runs are those of `tabular`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from weightedshap._checks import FloatArray
from weightedshap.curves import mean_interval
from weightedshap.evaluation import LARGER_IS_BETTER
from weightedshap_paper import figures
from weightedshap_paper.experiment import Case, Claim, Numbers, Runs, across

PAPER_METHODS = ("MCI", "Shapley", "WeightedSHAP")
METHODS = (
    *PAPER_METHODS,
    *("WeightedSHAP shared", "WeightedSHAP one-SE", "WeightedSHAP wide", "MCI global"),
    *("TreeSHAP path", "TreeSHAP interventional", "greedy"),
)
JUDGES = ("own", "independent")
COMPARED = {
    "aup": {
        "recovery": "recovery error",
        "inclusion_mse": "inclusion MSE",
        "inclusion_auc": "inclusion AUC",
    },
    "exclusion": {
        "exclusion": "exclusion error",
        "exclusion_mse": "exclusion MSE",
        "exclusion_auc": "exclusion AUC",
    },
    "masked_inclusion": {
        "masked_inclusion": "masked recovery error",
        "masked_mse": "masked MSE",
        "masked_auc": "masked AUC",
    },
}
"""The metrics that are compared for each utility that chooses the weights, with names in words."""
IN_WORDS = {metric: words for metrics in COMPARED.values() for metric, words in metrics.items()}
SINGLE = {
    "airfoil": ("inclusion_mse", "MSE", 10, 0.53),
    "fraud": ("inclusion_auc", "AUC", 14, 0.995),
}
"""The two numbers that the paper's text gives, about boosting, by dataset: metric, its short name,
number of features, value."""


def claims(runs: Runs, *, metrics: Sequence[str], single: bool = False) -> list[Claim]:
    """Return, for each dataset and metric, the claim that WeightedSHAP beats MCI and Shapley.

    With `single`, the claims of `single_numbers` follow.
    """
    comparisons = [
        _claim(case, of_case, metric)
        for case, of_case in runs.items()
        for metric in metrics
        if metric in of_case[0]["curves"]["own"]
    ]
    return comparisons + single_numbers(runs) if single else comparisons


def _claim(case: Case, runs: Sequence[Numbers], metric: str) -> Claim:
    """Return the claim that WeightedSHAP beats MCI and Shapley on one dataset and metric.

    It beats another method if the 95 % interval of the difference, paired by run, excludes 0.
    """
    judges = _judges({case: runs}, metric)
    better = [
        is_better(*_gap(runs, judge, metric, other), metric)
        for judge in judges
        for other in PAPER_METHODS[:2]
    ]
    shown = "; ".join(
        f"{words} {_format_means(runs, judge, metric)}".lstrip() for judge, words in judges.items()
    )
    text = f"{case.words}, {IN_WORDS[metric]}: WeightedSHAP is better than the MCI and Shapley"
    return Claim(text, "better", shown, better)


def _judges(runs: Runs, metric: str) -> dict[str, str]:
    """Return the judges to report, as a dict from each judge to the phrase that names it.

    These are the game that is explained ("own") and an independent one. Masked rows are judged by
    the model itself, so the two agree: then only one is reported, with an empty phrase.
    """
    curves = [run["curves"] for of in runs.values() for run in of]
    if all(of["own"][metric] == of["independent"][metric] for of in curves):
        return {"own": ""}
    return {judge: f"{judge} game" for judge in JUDGES}


def _format_means(runs: Sequence[Numbers], judge: str, metric: str) -> str:
    """Format the means of MCI, Shapley and WeightedSHAP, and the difference from Shapley in %."""
    means = {method: float(areas(runs, judge, metric, method).mean()) for method in PAPER_METHODS}
    mean, margin = _gap(runs, judge, metric, "Shapley")
    gap = (
        f"{100 * mean / means['Shapley']:+.1f} % ± {100 * margin / means['Shapley']:.1f} to Shapley"
    )
    return f"{', '.join(f'{value:.4g}' for value in means.values())} ({gap})"


def areas(runs: Sequence[Numbers], judge: str, metric: str, method: str) -> FloatArray:
    """Return the area under a method's curve for each run (runs,), as its mean over k = 1..d."""
    return np.asarray(across(runs, "curves", judge, metric, method)[:, 1:].mean(axis=1))


def _gap(
    runs: Sequence[Numbers], judge: str, metric: str, other: str
) -> tuple[FloatArray, FloatArray]:
    """Return the mean difference between WeightedSHAP's curve and another method's, and its margin.

    Both are over the runs; the margin is half of the 95 % interval.
    """
    difference = areas(runs, judge, metric, "WeightedSHAP") - areas(runs, judge, metric, other)
    return mean_interval(difference)


def is_better(mean: FloatArray, margin: FloatArray, metric: str) -> bool:
    """Return whether a mean difference is an improvement by more than its 95 % margin.

    The metric decides whether larger is better. With one run the margin is NaN, and ignored.
    """
    loss = -mean if metric in LARGER_IS_BETTER else mean
    return bool(loss + np.nan_to_num(margin) < 0)


def single_numbers(runs: Runs) -> list[Claim]:
    """Return the claims about the two numbers that the paper's text states, see `SINGLE`.

    A claim is left out if the runs have no such curve, or fewer features.
    """
    numbers = []
    for case, of_case in runs.items():
        if case.name not in SINGLE:
            continue
        metric, short, k, paper = SINGLE[case.name]
        curve = of_case[0]["curves"]["own"].get(metric, {}).get("Shapley", ())
        if len(curve) > k:
            numbers.append(_single_number(case, of_case, metric, short, k, paper))
    return numbers


def _single_number(
    case: Case, runs: Sequence[Numbers], metric: str, short: str, k: int, paper: float
) -> Claim:
    """Return the claim that WeightedSHAP with k features beats Shapley with any number of features.

    Shapley is taken where its mean curve over runs is best. `short` is the metric's short name,
    `paper` the paper's number.
    """
    better = []
    shown = []
    for judge in JUDGES:
        weighted, shapley = (
            across(runs, "curves", judge, metric, method) for method in ("WeightedSHAP", "Shapley")
        )
        mean_curve = shapley.mean(axis=0)
        best = int(mean_curve.argmax() if metric in LARGER_IS_BETTER else mean_curve.argmin())
        mean, margin = mean_interval(weighted[:, k] - shapley[:, best])
        better.append(is_better(mean, margin, metric))
        shown.append(
            f"{judge} game {short} {weighted[:, k].mean():.3f}, Shapley's best"
            f" {mean_curve[best]:.3f} with {best} features (difference {mean:+.3f} ± {margin:.3f})"
        )
    text = (
        f"{case.words}: WeightedSHAP's {short} with {k} features is one that Shapley never reaches"
    )
    return Claim(text, f"{short} {paper}", "; ".join(shown), better)


def headline(runs: Runs, *, metric: str) -> str:
    """Describe in words by how many percent WeightedSHAP's mean differs from Shapley's.

    The range is from the dataset with the smallest change to that with the largest.
    """
    judges = _judges(runs, metric).items()
    ranges = [
        _range(runs, judge, metric) + (f" on the {words}" if words else "")
        for judge, words in judges
    ]
    return f"{IN_WORDS[metric]} against Shapley's: {', '.join(ranges)}"


def _range(runs: Runs, judge: str, metric: str) -> str:
    """Format the smallest and the largest change relative to Shapley, as "-3.1 to -12.0 %"."""
    changes = sorted(
        (100 * (_ratio(of, judge, metric, "WeightedSHAP") - 1) for of in runs.values()), key=abs
    )
    ends = dict.fromkeys((changes[0], changes[-1]))  # a single change is shown once
    return " to ".join(f"{change:+.1f}" for change in ends) + " %"


def _ratio(runs: Sequence[Numbers], judge: str, metric: str, method: str) -> float:
    """Return the mean of a method's curve, divided by the mean of Shapley's curve."""
    reference = areas(runs, judge, metric, "Shapley").mean()
    return float(areas(runs, judge, metric, method).mean() / reference)


def table(runs: Runs, *, metric: str) -> list[str]:
    """Return a Markdown table for each judge: each method's mean in percent of Shapley's mean.

    This goes beyond the paper.
    """
    seen = {method for of in runs.values() for method in of[0]["curves"]["own"][metric]}
    others = [method for method in METHODS if method in seen - {"Shapley"}]
    good = "larger" if metric in LARGER_IS_BETTER else "smaller"
    lines = []
    for judge, words in sorted(_judges(runs, metric).items()):  # the independent game first
        where = f" on the {words}" if words else ""
        title = (
            f"{IN_WORDS[metric]}{where}, mean over the curve in % of Shapley's ({good} is better):"
        )
        lines += [title[0].upper() + title[1:], ""]
        lines += [f"| | {' | '.join(others)} |", "|---|" + "---:|" * len(others)]
        for case, of in runs.items():
            lines.append(
                f"| {case.words} |"
                f" {' | '.join(_share(of, judge, metric, method) for method in others)} |"
            )
        lines.append("")
    return lines[:-1] if metric != "recovery" else [*lines, _final_errors(runs)]


def _final_errors(runs: Runs) -> str:
    """Return a sentence on the recovery error that remains when all features are known.

    It is an error of the learned game: no ranking can change it.
    """
    errors = {
        case: across(of, "curves", "own", "recovery", "Shapley")[:, -1].mean()
        for case, of in runs.items()
    }
    shown = ", ".join(f"{case.words} {error:.3g}" for case, error in errors.items())
    return (
        f"With all features known the game that explains still misses the prediction by: {shown}."
    )


def _share(runs: Sequence[Numbers], judge: str, metric: str, method: str) -> str:
    """Format a method's mean in percent of Shapley's mean; "–" if the method was not compared."""
    present = method in runs[0]["curves"][judge][metric]
    return f"{100 * _ratio(runs, judge, metric, method):.1f}" if present else "–"


def draw(runs: Runs, *, metrics: Sequence[str], judge: str = "own") -> Figure:
    """Draw the paper's panels of mean curves: one for each metric and dataset."""
    panels = {
        f"{case.words}\n{IN_WORDS[metric]}": {
            method: mean_interval(across(of, "curves", judge, metric, method))
            for method in PAPER_METHODS
        }
        for metric in metrics
        for case, of in runs.items()
        if metric in of[0]["curves"][judge]
    }
    return figures.curves(panels, PAPER_METHODS)
