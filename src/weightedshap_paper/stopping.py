"""How the authors' program differs: how it stops boosting, and when it balances the fraud data."""

from __future__ import annotations

import numpy as np

from weightedshap.evaluation.metrics import auc_points
from weightedshap_paper import models
from weightedshap_paper.datasets import DATASETS, OVERSAMPLED, Prepared, prepare
from weightedshap_paper.experiment import Case, Experiment, Numbers, Runs, Settings, across

RULES = {"loss": False, "loss or error": True}
"""The two stopping rules of boosting by name; True for the rule of the authors' program."""


def run_stopping(case: Case, settings: Settings, rng: np.random.Generator) -> Numbers:
    """Fit boosting with two stopping rules, ours and the authors'; return trees and test scores.

    The fraud data are used twice: balanced after the split (ours) and before it (the authors'),
    from the same random state. The share of `copies` is returned too.
    """
    state = rng.bit_generator.state
    numbers = {}
    for order in ("ours", "authors") if case.name in OVERSAMPLED else ("ours",):
        rng.bit_generator.state = state
        data = prepare(case.name, rng, authors_order=order == "authors")
        fits = {rule: _fit(data, settings, authors_stop) for rule, authors_stop in RULES.items()}
        numbers[order] = {**fits, "copies": copies(data)}
    return numbers


def _fit(data: Prepared, settings: Settings, authors_stop: bool) -> Numbers:
    """Fit boosted trees with one stopping rule; return the number of trees and the test score.

    `authors_stop` selects the authors' rule. The score is the AUC, or the share of variance
    explained.
    """
    rate = models.rate(settings.quick)
    booster = models.boosting(
        data, seed=settings.seed, learning_rate=rate, authors_stop=authors_stop
    )
    predictions = booster.predict(data.X_test)
    if data.task == "regression":
        score = 1 - np.mean((data.y_test - predictions) ** 2) / data.y_test.var()
    else:
        score = auc_points(predictions, data.y_test > 0).mean()
    return {"trees": models.number_of_trees(booster), "score": score}


def copies(data: Prepared) -> float:
    """Return the share of test rows of class 1 that also occur in the training part.

    Only the original columns are compared, not the spurious ones.
    """
    original = [i for i, name in enumerate(data.feature_names) if not name.startswith("spurious_")]
    seen = {row.tobytes() for row in data.X_train[:, original]}
    rows = data.X_test[data.y_test > 0][:, original]
    return float(np.mean([row.tobytes() in seen for row in rows]))


def table_stopping(runs: Runs) -> list[str]:
    """Return a Markdown table of the mean number of trees and the mean score by stopping rule.

    Fraud has two lines: balanced after the split, and balanced before it.
    """
    lines = [
        "| | trees: loss | loss or error | score: loss | loss or error | copies |",
        "|---|" + "---:|" * 5,
    ]
    for case, of in runs.items():
        for order in of[0]:
            trees = [across(of, order, rule, "trees").mean() for rule in RULES]
            scores = [across(of, order, rule, "score").mean() for rule in RULES]
            share = f"{across(of, order, 'copies').mean():.0%}" if case.name in OVERSAMPLED else ""
            cells = [
                *(f"{value:.0f}" for value in trees),
                *(f"{value:.3f}" for value in scores),
                share,
            ]
            text = f"{case.words}, balanced before the split" if order == "authors" else case.words
            lines.append(f"| {text} | {' | '.join(cells)} |")
    return lines


STOPPING = Experiment(
    "boosting models: trees left by stopping on the loss, and by the authors' rule; fraud balanced"
    " before the split",
    lambda settings: [
        Case(name) for name in (("phoneme", "fraud") if settings.quick else DATASETS)
    ],
    run_stopping,
    table=table_stopping,
    depends=("seed", "quick"),
    notes=(
        (
            "The score is the AUC, or the share of variance explained, on the test part. Copies:"
            " the share of test rows of class 1 that stand in the training part too."
        ),
    ),
)
