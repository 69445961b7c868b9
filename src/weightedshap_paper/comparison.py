"""What runs of compared rankings say: the claims, the tables beyond the paper, and the paper's
panels."""

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
"""The metrics that are compared where a utility chooses the weights, in words."""
IN_WORDS = {metric: words for metrics in COMPARED.values() for metric, words in metrics.items()}
SINGLE = {
    "airfoil": ("inclusion_mse", "MSE", 10, 0.53),
    "fraud": ("inclusion_auc", "AUC", 14, 0.995),
}
"""The two numbers that the paper's text gives, about boosting: metric, its short name, number of
features, value."""


def claims(runs: Runs, *, metrics: Sequence[str], single: bool = False) -> list[Claim]:
    """For each dataset and metric: is WeightedSHAP better than the MCI and Shapley? And if asked,
    `single_numbers`."""
    return [
        _claim(case, of, metric)
        for case, of in runs.items()
        for metric in metrics
        if metric in of[0]["curves"]["own"]
    ] + (single_numbers(runs) if single else [])


def _claim(case: Case, runs: Sequence[Numbers], metric: str) -> Claim:
    """It is better where the 95 % interval of the difference, paired by run, leaves no doubt."""
    judges = _judges({case: runs}, metric)
    better = [
        is_better(*_gap(runs, judge, metric, other), metric)
        for judge in judges
        for other in PAPER_METHODS[:2]
    ]
    shown = "; ".join(
        f"{words} {_shown(runs, judge, metric)}".lstrip() for judge, words in judges.items()
    )
    text = f"{case.words}, {IN_WORDS[metric]}: WeightedSHAP is better than the MCI and Shapley"
    return Claim(text, "better", shown, better)


def _judges(runs: Runs, metric: str) -> dict[str, str]:
    """The games to tell of and their names; the model itself judges masked rows, for both games,
    and needs no name."""
    curves = [run["curves"] for of in runs.values() for run in of]
    if all(of["own"][metric] == of["independent"][metric] for of in curves):
        return {"own": ""}
    return {judge: f"{judge} game" for judge in JUDGES}


def _shown(runs: Sequence[Numbers], judge: str, metric: str) -> str:
    """The means of the three methods, and the difference to Shapley in percent of Shapley's."""
    means = {method: float(areas(runs, judge, metric, method).mean()) for method in PAPER_METHODS}
    mean, margin = _gap(runs, judge, metric, "Shapley")
    gap = (
        f"{100 * mean / means['Shapley']:+.1f} % ± {100 * margin / means['Shapley']:.1f} to Shapley"
    )
    return f"{', '.join(f'{value:.4g}' for value in means.values())} ({gap})"


def areas(runs: Sequence[Numbers], judge: str, metric: str, method: str) -> FloatArray:
    """(runs,) the mean over k = 1..d of the curve of each run."""
    return np.asarray(across(runs, "curves", judge, metric, method)[:, 1:].mean(axis=1))


def _gap(
    runs: Sequence[Numbers], judge: str, metric: str, other: str
) -> tuple[FloatArray, FloatArray]:
    """WeightedSHAP's mean over the curve less another's, over the runs, and half of its 95 %
    interval."""
    return mean_interval(
        areas(runs, judge, metric, "WeightedSHAP") - areas(runs, judge, metric, other)
    )


def is_better(mean: FloatArray, margin: FloatArray, metric: str) -> bool:
    """Whether a difference is beyond the noise between runs, on the good side; one run has no noise
    to look at."""
    return bool((-mean if metric in LARGER_IS_BETTER else mean) + np.nan_to_num(margin) < 0)


def single_numbers(runs: Runs) -> list[Claim]:
    """The claims about `SINGLE`, where there are such curves, with as many features."""
    found = {case: (of, *SINGLE[case.name]) for case, of in runs.items() if case.name in SINGLE}
    return [
        _reached(case, of, metric, short, k, paper)
        for case, (of, metric, short, k, paper) in found.items()
        if len(of[0]["curves"]["own"].get(metric, {}).get("Shapley", ())) > k
    ]


def _reached(
    case: Case, runs: Sequence[Numbers], metric: str, short: str, k: int, paper: float
) -> Claim:
    """WeightedSHAP after k features against Shapley where its mean curve is best, paired by run."""
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
    """By how many percent WeightedSHAP's mean differs from Shapley's, from the least dataset to the
    most."""
    judges = _judges(runs, metric).items()
    ranges = [
        _range(runs, judge, metric) + (f" on the {words}" if words else "")
        for judge, words in judges
    ]
    return f"{IN_WORDS[metric]} against Shapley's: {', '.join(ranges)}"


def _range(runs: Runs, judge: str, metric: str) -> str:
    changes = sorted(
        (100 * (_ratio(of, judge, metric, "WeightedSHAP") - 1) for of in runs.values()), key=abs
    )
    return (
        " to ".join(f"{change:+.1f}" for change in dict.fromkeys((changes[0], changes[-1]))) + " %"
    )


def _ratio(runs: Sequence[Numbers], judge: str, metric: str, method: str) -> float:
    return float(
        areas(runs, judge, metric, method).mean() / areas(runs, judge, metric, "Shapley").mean()
    )


def table(runs: Runs, *, metric: str) -> list[str]:
    """Beyond the paper: all methods on both games, the mean over the curve in percent of
    Shapley's."""
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
    return lines[:-1] if metric != "recovery" else [*lines, _ends(runs)]


def _ends(runs: Runs) -> str:
    """What no ranking can mend: the error of the learned game where all features are known."""
    errors = {
        case: across(of, "curves", "own", "recovery", "Shapley")[:, -1].mean()
        for case, of in runs.items()
    }
    shown = ", ".join(f"{case.words} {error:.3g}" for case, error in errors.items())
    return (
        f"With all features known the game that explains still misses the prediction by: {shown}."
    )


def _share(runs: Sequence[Numbers], judge: str, metric: str, method: str) -> str:
    present = method in runs[0]["curves"][judge][metric]
    return f"{100 * _ratio(runs, judge, metric, method):.1f}" if present else "–"


def draw(runs: Runs, *, metrics: Sequence[str], judge: str = "own") -> Figure:
    """The paper's panels: one for each metric and dataset."""
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
