"""The library's default beside the paper's method: the same comparison, one more ranking, a judge
without misfit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

import weightedshap as ws
from weightedshap.config import Setting
from weightedshap_paper.experiment import Case, Experiment, Numbers, Runs, Settings, across
from weightedshap_paper.tabular import MAIN, cases_of, rows_of_test, set_up

JUDGES = {
    "surrogate": "the paper's kind of game",
    "anchored": "a game that is right when all features are known",
}
METHODS = {
    "Shapley": "Shapley of the model itself",
    "WeightedSHAP": "",
    "default": "",
    "refined": "",
}
REFERENCE = "conditional Shapley"


def run_default(case: Case, settings: Settings, rng: np.random.Generator, *, kind: str) -> Numbers:
    """The mean recovery error over k = 1..d and the rows, by judge and method; judges saw rows that
    chose nothing."""
    data, model, paper = set_up(case, settings, rng, kind=kind)
    rows = data.X_test[rows_of_test(data, settings.rows)]
    default = Setting.of(
        model, paper.background.data, paper.choices.but(game="auto", estimator="auto")
    )
    compared = {"default": default, "WeightedSHAP": paper, REFERENCE: paper.but(family="shapley")}
    asked = ["WeightedSHAP", "refined", "Shapley"]
    found = ws.evaluate(compared, rows, judges=list(JUDGES), methods=asked, metrics=[])
    return {
        judge: dict(
            zip(found.methods, found.areas(judge).mean(axis=0) / rows.shape[1], strict=True)
        )
        for judge in JUDGES
    }


def table_default(runs: Runs) -> list[str]:
    """All methods on both judges, in percent of the Shapley value of the paper's game."""
    lines = []
    for judge, words in JUDGES.items():
        lines += [
            (
                f"Judged by {words}, in % of the Shapley value of the paper's game (smaller is"
                " better):"
            ),
            "",
        ]
        titles = [words or name for name, words in METHODS.items()]
        lines += [f"| | {' | '.join(titles)} |", "|---|" + "---:|" * len(METHODS)]
        for case, of in runs.items():
            lines.append(
                f"| {case.words} | {' | '.join(_share(of, judge, method) for method in METHODS)} |"
            )
        lines.append("")
    return lines[:-1]


def _share(runs: Sequence[Numbers], judge: str, method: str) -> str:
    return f"{100 * across(runs, judge, method).mean() / across(runs, judge, REFERENCE).mean():.1f}"


def _experiment(title: str, kind: str, most_runs: int) -> Experiment:
    return Experiment(
        title,
        partial(cases_of, MAIN),
        partial(run_default, kind=kind),
        table=table_default,
        game="tree_surrogate",
        most_runs=most_runs,
        notes=(
            (
                "WeightedSHAP is the paper's: one learned game explains and judges. The default"
                " weighs contributions of the model itself, on a judge that is right when all"
                " features are known; refined is a ranking only."
            ),
        ),
    )


DEFAULT = _experiment("boosting, with the library's default as one more method", "boosting", 5)
DEFAULT_LINEAR = _experiment(
    "linear models, with the library's default as one more method", "linear", 3
)
