"""What runs of compared rankings say: the claims, the tables beyond the paper, and the paper's panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weightedshap.checks import FloatArray
from weightedshap.curves import mean_interval
from weightedshap.evaluation import LARGER_IS_BETTER
from weightedshap_paper import figures
from weightedshap_paper.runner import Claim, Numbers, Runs, shown_case, verdict

__all__ = ["METHODS", "claims", "draw", "headline", "single_numbers", "table"]

PAPER_METHODS = ("MCI", "Shapley", "WeightedSHAP")
METHODS = (
    *PAPER_METHODS,
    *("WeightedSHAP shared", "WeightedSHAP one-SE", "WeightedSHAP wide", "MCI global"),
    *("TreeSHAP path", "TreeSHAP interventional", "greedy"),
)
JUDGES = ("own", "independent")


def claims(runs: Runs, *, metrics: Sequence[str]) -> list[Claim]:
    """One line for each dataset and metric: is WeightedSHAP better than the MCI and Shapley, on either game?"""
    return [
        _claim(case, of, metric) for case, of in runs.items() for metric in metrics if metric in of[0]["curves"]["own"]
    ]


def _claim(case: str, runs: Sequence[Numbers], metric: str) -> Claim:
    """It is better where the 95 % interval of the difference, paired by run, leaves no doubt."""
    judges = _judges({case: runs}, metric)
    better = [is_better(*_gap(runs, judge, metric, other), metric) for judge in judges for other in PAPER_METHODS[:2]]
    shown = "; ".join(f"{words} {_shown(runs, judge, metric)}".lstrip() for judge, words in judges.items())
    text = f"{shown_case(case)}, {shown_metric(metric)}: WeightedSHAP is better than the MCI and Shapley"
    return Claim(text, "better", shown, verdict(better))


def _judges(runs: Runs, metric: str) -> dict[str, str]:
    """The games to tell of and their names; the model itself judges masked rows, for both games, and needs no name."""
    curves = [run["curves"] for of in runs.values() for run in of]
    if all(of["own"][metric] == of["independent"][metric] for of in curves):
        return {"own": ""}
    return {judge: f"{judge} game" for judge in JUDGES}


def _shown(runs: Sequence[Numbers], judge: str, metric: str) -> str:
    """The means of the three methods, and the difference to Shapley in percent of Shapley's."""
    means = {method: float(areas(runs, judge, metric, method).mean()) for method in PAPER_METHODS}
    mean, margin = _gap(runs, judge, metric, "Shapley")
    gap = f"{100 * mean / means['Shapley']:+.1f} % ± {100 * margin / means['Shapley']:.1f} to Shapley"
    return f"{', '.join(f'{value:.4g}' for value in means.values())} ({gap})"


def curves_of(runs: Sequence[Numbers], judge: str, metric: str, method: str) -> FloatArray:
    """(runs, d + 1) the curve of each run."""
    return np.array([run["curves"][judge][metric][method] for run in runs])


def areas(runs: Sequence[Numbers], judge: str, metric: str, method: str) -> FloatArray:
    """(runs,) the mean over k = 1..d of the curve of each run."""
    return np.asarray(curves_of(runs, judge, metric, method)[:, 1:].mean(axis=1))


def _gap(runs: Sequence[Numbers], judge: str, metric: str, other: str) -> tuple[float, float]:
    """WeightedSHAP's mean over the curve less another's, over the runs, and half of its 95 % interval."""
    gaps = areas(runs, judge, metric, "WeightedSHAP") - areas(runs, judge, metric, other)
    mean, margin = mean_interval(gaps)
    return float(mean), float(margin)


def is_better(mean: float, margin: float, metric: str) -> bool:
    """Whether a difference is beyond the noise between runs, on the good side; one run has no noise to look at."""
    return bool((-mean if metric in LARGER_IS_BETTER else mean) + np.nan_to_num(margin) < 0)


def single_numbers(runs: Runs) -> list[Claim]:
    """The two numbers that the paper's text gives, about boosting."""
    claims = []
    for case, of in runs.items():
        for name, metric, k, paper in (("airfoil", "inclusion_mse", 10, 0.53), ("fraud", "inclusion_auc", 14, 0.995)):
            if case.partition("/")[0] == name and _has(of, metric, k):
                claims.append(_reached(case, of, metric, k, paper))
    return claims


def _has(runs: Sequence[Numbers], metric: str, k: int) -> bool:
    """Whether there is such a curve, with at least k features."""
    curves = runs[0]["curves"]["own"]
    return metric in curves and len(curves[metric]["Shapley"]) > k


def _reached(case: str, runs: Sequence[Numbers], metric: str, k: int, paper: float) -> Claim:
    """WeightedSHAP after k features against Shapley where its mean curve is best, paired by run."""
    short = metric.partition("_")[2].upper()
    better, shown = [], []
    for judge in JUDGES:
        weighted, shapley = (curves_of(runs, judge, metric, method) for method in ("WeightedSHAP", "Shapley"))
        mean_curve = shapley.mean(axis=0)
        best = int(mean_curve.argmax() if metric in LARGER_IS_BETTER else mean_curve.argmin())
        mean, margin = mean_interval(weighted[:, k] - shapley[:, best])
        better.append(is_better(float(mean), float(margin), metric))
        shown.append(
            f"{judge} game {short} {weighted[:, k].mean():.3f}, Shapley's best {mean_curve[best]:.3f} "
            f"with {best} features (difference {mean:+.3f} ± {margin:.3f})"
        )
    text = f"{shown_case(case)}: WeightedSHAP's {short} with {k} features is one that Shapley never reaches"
    return Claim(text, f"{short} {paper}", "; ".join(shown), verdict(better))


def headline(runs: Runs, *, metric: str) -> str:
    """By how many percent WeightedSHAP's mean differs from Shapley's, from the least dataset to the most."""
    judges = _judges(runs, metric).items()
    ranges = [_range(runs, judge, metric) + (f" on the {words}" if words else "") for judge, words in judges]
    return f"{shown_metric(metric)} against Shapley's: {', '.join(ranges)}"


def _range(runs: Runs, judge: str, metric: str) -> str:
    changes = sorted((100 * (_ratio(of, judge, metric, "WeightedSHAP") - 1) for of in runs.values()), key=abs)
    return " to ".join(f"{change:+.1f}" for change in dict.fromkeys((changes[0], changes[-1]))) + " %"


def _ratio(runs: Sequence[Numbers], judge: str, metric: str, method: str) -> float:
    return float(areas(runs, judge, metric, method).mean() / areas(runs, judge, metric, "Shapley").mean())


def table(runs: Runs, *, metric: str) -> list[str]:
    """Beyond the paper: all methods on both games, the mean over the curve in percent of Shapley's."""
    known = [method for method in METHODS if any(method in of[0]["curves"]["own"][metric] for of in runs.values())]
    others = [method for method in known if method != "Shapley"]
    lines = []
    for judge, words in sorted(_judges(runs, metric).items()):  # the independent game first
        where = f" on the {words}" if words else ""
        good = "larger" if metric in LARGER_IS_BETTER else "smaller"
        title = f"{shown_metric(metric)}{where}, mean over the curve in % of Shapley's ({good} is better):"
        lines += [title[0].upper() + title[1:], ""]
        lines += [f"| | {' | '.join(others)} |", "|---|" + "---:|" * len(others)]
        lines += [
            f"| {shown_case(case)} | {' | '.join(_share(of, judge, metric, method) for method in others)} |"
            for case, of in runs.items()
        ]
        lines += [""]
    return lines[:-1] if metric != "recovery" else [*lines, _ends(runs)]


def _ends(runs: Runs) -> str:
    """What no ranking can mend: the error of the learned game where all features are known."""
    errors = {case: curves_of(of, "own", "recovery", "Shapley")[:, -1].mean() for case, of in runs.items()}
    shown = ", ".join(f"{shown_case(case)} {error:.3g}" for case, error in errors.items())
    return f"With all features known the game that explains still misses the prediction by: {shown}."


def _share(runs: Sequence[Numbers], judge: str, metric: str, method: str) -> str:
    if method not in runs[0]["curves"][judge][metric]:
        return "–"
    return f"{100 * _ratio(runs, judge, metric, method):.1f}"


def draw(runs: Runs, *, metrics: Sequence[str], judge: str = "own") -> Any:
    """The paper's panels: one for each metric and dataset."""
    panels = {}
    for metric in metrics:
        for case, of in runs.items():
            if metric in of[0]["curves"][judge]:
                curves = {method: mean_interval(curves_of(of, judge, metric, method)) for method in PAPER_METHODS}
                panels[f"{shown_case(case)}\n{shown_metric(metric)}"] = curves
    return figures.curves(panels, PAPER_METHODS)


def shown_metric(metric: str) -> str:
    """ "inclusion_auc" → "inclusion AUC"; the first three are errors between predictions."""
    words = {"recovery": "recovery error", "exclusion": "exclusion error", "masked_inclusion": "masked recovery error"}
    kind, _, score = metric.partition("_")
    return words.get(metric, f"{kind} {score.upper()}")
