"""The library's default compared with the paper's method.

It repeats the comparison of `tabular` with one more method, and with a second judge that is right
when all features are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

import weightedshap as ws
from weightedshap.config import Setup
from weightedshap_paper.experiment import Case, Experiment, Numbers, Runs, Settings, across
from weightedshap_paper.tabular import MAIN, choose_test_rows, select_cases, set_up

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
    """Compare Shapley, the paper's method and this library's default by their recovery errors.

    Return mean errors by judge and method, over k = 1..d and the test rows; `kind` is the model,
    "boosting" or "linear". The judges are fitted to background rows that were not used to choose
    weights.
    """
    data, model, paper = set_up(case, settings, rng, kind=kind)
    rows = data.X_test[choose_test_rows(data, settings.rows)]
    config = paper.config.with_options(game="auto", estimator="auto")
    compared = {
        "default": Setup.build(model, paper.background.data, config),
        "WeightedSHAP": paper,
        REFERENCE: paper.with_options(family="shapley"),
    }
    evaluation = ws.evaluate(
        compared,
        rows,
        judges=list(JUDGES),
        methods=["WeightedSHAP", "refined", "Shapley"],
        metrics=[],
    )
    numbers = {}
    for judge in JUDGES:
        errors = evaluation.areas(judge).mean(axis=0) / rows.shape[1]  # (methods,)
        numbers[judge] = dict(zip(evaluation.methods, errors, strict=True))
    return numbers


def table_default(runs: Runs) -> list[str]:
    """Return a Markdown table for each judge: each method's error in percent of Shapley's.

    100 % is the error of the Shapley value of the paper's game.
    """
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
    """Format a method's mean error as a percentage of Shapley's error on the paper's game."""
    error = across(runs, judge, method).mean()
    return f"{100 * error / across(runs, judge, REFERENCE).mean():.1f}"


def _experiment(title: str, kind: str, most_runs: int) -> Experiment:
    """Build the experiment for one kind of model, "boosting" or "linear"."""
    return Experiment(
        title,
        partial(select_cases, MAIN),
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
