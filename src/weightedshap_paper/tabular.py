"""The paper's Section 5 and its appendix: rankings compared on the datasets, with boosting and linear models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import weightedshap as ws
from weightedshap.checks import IntArray
from weightedshap.estimators import AUTHORS_RULE, authors
from weightedshap.estimators.stopping import visited
from weightedshap.games import GAMES
from weightedshap_paper import models
from weightedshap_paper.comparison import METHODS, claims, draw, headline, single_numbers, table
from weightedshap_paper.datasets import REGRESSION, Prepared, prepare
from weightedshap_paper.runner import Claim, Experiment, Numbers, Runs, Settings

__all__ = [
    *("AUTHORS", "BOOSTING", "EXCLUSION", "FURTHER", "LINEAR", "MASKED"),
    *("NETWORK", "NETWORK_EXCLUSION", "NETWORK_LINEAR", "NETWORK_MASKED"),
]

MAIN = (*REGRESSION, "gaussian", "fraud", "phoneme", "wind")
FURTHER_DATASETS = ("cpu", "adult", "2dplanes", "click")
NETWORK_DATASETS = ("airfoil", "boston", "phoneme", "fraud")
QUICK = ("airfoil", "phoneme", "adult")
WALKS = partial(authors, stop=AUTHORS_RULE & visited(every=100))
"""The authors' sampling, and on where a cell is left without a draw: theirs takes it as zero."""
AUC_ROWS = {"fraud": 1000}
"""Rows for the AUC where the test part has few of one class."""


def fitted_model(data: Prepared, kind: str, settings: Settings, seed: int) -> Any:
    """The prediction model: boosted trees or a linear model."""
    if kind == "linear":
        return models.linear(data)
    rate = models.rate(settings.quick)
    return models.boosting(data, seed=seed, learning_rate=rate, authors_stop=settings.authors_stop)


def recipe_of(game: str, settings: Settings) -> Any:
    """The game by its name; the network as the paper trains it, unless it has to be quick."""
    if game == "neural_surrogate" and not settings.quick:
        return ws.games.NeuralSurrogate.paper()
    return GAMES[game]()


def set_up(
    case: str, settings: Settings, rng: np.random.Generator, *, kind: str = "boosting", utility: str = "aup"
) -> tuple[Prepared, Any, ws.Explainer]:
    """The data of a case, its model, and an explainer for `evaluate`, which fits the game on halves of the background.

    A network is sampled as the authors do; contributions of the tree surrogate are exact. The background is the
    distinct rows of the training part, as in the authors' program; the paper's text says the estimation part.
    """
    name, game = case.split("/")
    data = prepare(name, rng, authors_order=settings.authors_order)
    seed = int(rng.integers(2**31))
    model = fitted_model(data, kind, settings, seed)
    several = data.task == "classification" and hasattr(model, "predict_proba")
    explainer = ws.Explainer(
        model,
        np.unique(data.X_train, axis=0),
        game="baseline",
        estimator=WALKS if game == "neural_surrogate" else "auto",
        utility=utility,
        outputs=1 if several else None,
        random_state=seed,
        progress=False,
    )
    return data, model, explainer.but(recipe=recipe_of(game, settings))


def rows_of_test(data: Prepared, rows: int) -> IntArray:
    """The first `rows` test rows; of classes as many as their share asks for, but two at least, for the AUC."""
    n = min(rows, len(data.y_test))
    if data.task == "regression":
        return np.arange(n)
    positive, negative = np.flatnonzero(data.y_test > 0), np.flatnonzero(data.y_test == 0)
    k = int(np.clip(round(n * len(positive) / len(data.y_test)), 2, n - 2))
    return np.sort(np.concatenate([positive[:k], negative[: n - k]]))


def run_tabular(
    case: str, settings: Settings, rng: np.random.Generator, *, kind: str, utility: str, metrics: Sequence[str]
) -> Numbers:
    """Mean curves over the test rows, by judge, metric and method; and facts of the model."""
    name, game = case.split("/")
    data, model, explainer = set_up(case, settings, rng, kind=kind, utility=utility)
    cheap = utility == "aup" and game == "tree_surrogate" and not settings.quick
    rows = max(settings.rows, AUC_ROWS.get(name, 0)) if cheap else settings.rows
    costly = [] if utility == "aup" else [utility, "performance"]
    methods = [method for method in METHODS if kind == "boosting" or not method.startswith("TreeSHAP")]
    chosen = rows_of_test(data, rows)
    evaluation = ws.evaluate(explainer, data.X_test[chosen], data.y_test[chosen], methods=methods, metrics=costly)
    kept = [metric for metric in evaluation.metrics if metric in metrics]
    return {
        "trees": models.number_of_trees(model) if kind == "boosting" else None,
        "curves": {
            judge: {
                metric: {method: of.mean(axis=0) for method, of in evaluation.curves(judge, metric).items()}
                for metric in kept
            }
            for judge in evaluation.judges
        },
    }


NOTES = (
    "The three numbers are the MCI's, Shapley's and WeightedSHAP's means over k = 1..d, the rows and the runs; ± is "
    "half of a 95 % interval over the runs. A claim holds if WeightedSHAP is better than both on both games beyond "
    "that noise, and in part if somewhere. The figure shows the own game, as the paper's do.",
)
FRAUD_ROWS = "On fraud 1,000 test rows are explained, greedy included: of 100 rows only five are frauds."
MASKED_JUDGE = (
    "Masked rows need no learned game, so that there is one judge: the model itself. It chose the weights too, and "
    "WeightedSHAP's masked recovery error cannot be above Shapley's."
)


def _experiment(
    title: str,
    datasets: Sequence[str],
    metrics: Sequence[str],
    *notes: str,
    kind: str = "boosting",
    utility: str = "aup",
    game: str = "tree_surrogate",
    as_authors: bool = False,
) -> Experiment:
    def cases(settings: Settings) -> Sequence[str]:
        names = ([name for name in datasets if name in QUICK] or datasets[:1]) if settings.quick else datasets
        return [f"{name}/{settings.game}" for name in names]

    tabular: Callable[..., Numbers] = partial(run_tabular, kind=kind, utility=utility, metrics=metrics)

    def run(case: str, settings: Settings, rng: np.random.Generator) -> Numbers:
        forced = replace(settings, authors_order=True, authors_stop=True) if as_authors else settings
        return tabular(case, forced, rng)

    def all_claims(runs: Runs) -> list[Claim]:
        told = kind == "boosting" and utility == "aup"
        return claims(runs, metrics=metrics) + (single_numbers(runs) if told else [])

    ways = () if as_authors else ("authors_order", "authors_stop") if kind == "boosting" else ("authors_order",)
    return Experiment(
        title,
        cases,
        run,
        partial(draw, metrics=metrics),
        all_claims,
        table=partial(table, metric=metrics[0]),
        headline=partial(headline, metric=metrics[0]),
        depends=("seed", "rows", "quick", *ways),
        game=game,
        notes=(*NOTES, *notes),
    )


INCLUSION = ("recovery", "inclusion_mse", "inclusion_auc")
EXCLUDED = ("exclusion", "exclusion_mse", "exclusion_auc")
MASKS = ("masked_inclusion", "masked_mse", "masked_auc")
BOOSTING = _experiment("boosting: recovery error and inclusion curves", MAIN, INCLUSION, FRAUD_ROWS)
LINEAR = _experiment("linear models: recovery error and inclusion curves", MAIN, INCLUSION, FRAUD_ROWS, kind="linear")
FURTHER = _experiment("boosting, four further datasets", FURTHER_DATASETS, INCLUSION)
EXCLUSION = _experiment("exclusion, with its own utility", MAIN, EXCLUDED, utility="exclusion")
MASKED = _experiment("masked inclusion, with its own utility", MAIN, MASKS, MASKED_JUDGE, utility="masked_inclusion")
AUTHORS = _experiment(
    "fraud as the authors prepare it: balanced before the split, boosting stopped by the loss or the error",
    ("fraud",),
    INCLUSION,
    FRAUD_ROWS,
    as_authors=True,
)
_network = partial(_experiment, game="neural_surrogate")
NETWORK = _network("boosting, the paper's network with the authors' sampling", NETWORK_DATASETS, INCLUSION)
NETWORK_LINEAR = _network("linear models, the paper's network", NETWORK_DATASETS, INCLUSION, kind="linear")
NETWORK_EXCLUSION = _network("exclusion, the paper's network", NETWORK_DATASETS, EXCLUDED, utility="exclusion")
NETWORK_MASKED = _network(
    "masked inclusion, the paper's network", NETWORK_DATASETS, MASKS, MASKED_JUDGE, utility="masked_inclusion"
)
