"""The paper's Section 5 and its appendix: rankings compared on the datasets.

The models are boosted trees or linear models, the games tree surrogates or the paper's network.
`weightedshap.evaluate` compares the rankings; `comparison` turns the results into claims, tables
and figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import weightedshap as ws
from weightedshap._checks import FloatArray, IntArray
from weightedshap.config import Config, Setup
from weightedshap.estimators import AUTHORS_RULE, authors
from weightedshap.estimators.stopping import visited
from weightedshap.games import GAMES, Recipe
from weightedshap_paper import models
from weightedshap_paper.comparison import COMPARED, METHODS, claims, draw, headline, table
from weightedshap_paper.datasets import REGRESSION, Prepared, prepare
from weightedshap_paper.experiment import Case, Experiment, Numbers, Settings

MAIN = (*REGRESSION, "gaussian", "fraud", "phoneme", "wind")
FURTHER_DATASETS = ("cpu", "adult", "2dplanes", "click")
NETWORK_DATASETS = ("airfoil", "boston", "phoneme", "fraud")
QUICK = ("airfoil", "phoneme", "adult")
WALKS = partial(authors, stop=AUTHORS_RULE & visited(every=100))
"""The authors' sampling, continued until every cell of Δ has a draw: their program takes cells
without draws as zero."""
AUC_ROWS = {"fraud": 1000}
"""The number of test rows for the AUC, where one class is rare."""


def select_cases(datasets: Sequence[str], settings: Settings) -> list[Case]:
    """Return one case per dataset, with the game of the settings; quick runs use few datasets."""
    names = datasets
    if settings.quick:
        names = [name for name in datasets if name in QUICK] or datasets[:1]
    return [Case(name, settings.game) for name in names]


def fit_model(data: Prepared, kind: str, settings: Settings, seed: int) -> Any:
    """Fit the prediction model to the training part; `kind` is "boosting" or "linear"."""
    if kind == "linear":
        return models.linear(data)
    rate = models.rate(settings.quick)
    return models.boosting(data, seed=seed, learning_rate=rate, authors_stop=settings.authors_stop)


def build_recipe(game: str, settings: Settings) -> Recipe:
    """Return the recipe for fitting the game with this name.

    "neural_surrogate" is the paper's network, except in quick runs; other games have the library's
    default recipe.
    """
    if game == "neural_surrogate" and not settings.quick:
        return ws.games.NeuralSurrogate.paper()
    return GAMES[game]()


def set_up(
    case: Case,
    settings: Settings,
    rng: np.random.Generator,
    *,
    kind: str = "boosting",
    utility: str = "aup",
) -> tuple[Prepared, Any, Setup]:
    """Prepare the data of a case and fit its model; return data, model and `Setup` of the games.

    `kind` is the model, "boosting" or "linear"; `utility` is the criterion that chooses the
    weights. The games are not fitted yet: the comparison fits them on halves of the background. A
    network is sampled as in the authors' program; contributions of the tree surrogate are exact.
    The background is the distinct rows of the training part, as in the authors' program; the
    paper's text says the estimation part.
    """
    data = prepare(case.name, rng, authors_order=settings.authors_order)
    seed = int(rng.integers(2**31))
    model = fit_model(data, kind, settings, seed)
    has_two_outputs = data.task == "classification" and hasattr(model, "predict_proba")
    config = Config(
        game=build_recipe(case.game, settings),
        estimator=WALKS if case.game == "neural_surrogate" else "auto",
        utility=utility,
        outputs=1 if has_two_outputs else None,
        random_state=seed,
        progress=False,
    )
    background = np.unique(data.X_train, axis=0)
    return data, model, Setup.build(model, background, config)


def choose_test_rows(data: Prepared, rows: int) -> IntArray:
    """Return the positions of at most `rows` test rows, with the classes in proportion.

    They are the first rows of each class, and at least two of each, for the AUC.
    """
    n = min(rows, len(data.y_test))
    if data.task == "regression":
        return np.arange(n)
    positive = np.flatnonzero(data.y_test > 0)
    negative = np.flatnonzero(data.y_test == 0)
    k = int(np.clip(round(n * len(positive) / len(data.y_test)), 2, n - 2))
    return np.sort(np.concatenate([positive[:k], negative[: n - k]]))


def run_tabular(
    case: Case,
    settings: Settings,
    rng: np.random.Generator,
    *,
    kind: str,
    utility: str,
    as_authors: bool = False,
) -> Numbers:
    """Compare rankings on one dataset; return the number of trees and mean curves over test rows.

    The curves (d + 1,) are by judge, metric and method. `kind` is the model, "boosting" or
    "linear"; `utility` is the criterion that chooses the weights; with `as_authors`, the fraud data
    are balanced and boosting is stopped as in the authors' program.
    """
    if as_authors:
        settings = replace(settings, authors_order=True, authors_stop=True)
    data, model, setup = set_up(case, settings, rng, kind=kind, utility=utility)

    n_rows = settings.rows
    is_cheap = utility == "aup" and case.game == "tree_surrogate" and not settings.quick
    if is_cheap:
        n_rows = max(n_rows, AUC_ROWS.get(case.name, 0))
    chosen = choose_test_rows(data, n_rows)

    methods = [
        method for method in METHODS if kind == "boosting" or not method.startswith("TreeSHAP")
    ]
    evaluation = ws.evaluate(
        setup,
        data.X_test[chosen],
        data.y_test[chosen],
        judges="independent",
        methods=methods,
        metrics=[] if utility == "aup" else [utility, "performance"],
    )

    curves: dict[str, dict[str, dict[str, FloatArray]]] = {}
    for judge in evaluation.judges:
        curves[judge] = {}
        for metric in evaluation.metrics:
            if metric in COMPARED[utility]:
                by_method = evaluation.curves(judge, metric)
                curves[judge][metric] = {
                    method: of_rows.mean(axis=0) for method, of_rows in by_method.items()
                }
    return {
        "trees": models.number_of_trees(model) if kind == "boosting" else None,
        "curves": curves,
    }


NOTES = (
    (
        "The three numbers are the MCI's, Shapley's and WeightedSHAP's means over k = 1..d, the"
        " rows and the runs; ± is half of a 95 % interval over the runs. A claim holds if"
        " WeightedSHAP is better than both on both games beyond that noise, and in part if"
        " somewhere. The figure shows the own game, as the paper's do."
    ),
)
FRAUD_ROWS = (
    "On fraud 1,000 test rows are explained, greedy included: of 100 rows only five are frauds."
)
MASKED_JUDGE = (
    "Masked rows need no learned game, so that there is one judge: the model itself. It chose the"
    " weights too, and WeightedSHAP's masked recovery error cannot be above Shapley's."
)


def _experiment(
    title: str,
    datasets: Sequence[str],
    *notes: str,
    kind: str = "boosting",
    utility: str = "aup",
    game: str = "tree_surrogate",
    as_authors: bool = False,
) -> Experiment:
    """Build an experiment that compares rankings on datasets, with one kind of model and game.

    See `run_tabular` for `kind`, `utility` and `as_authors`; `notes` are sentences for RESULTS.md.
    """
    preparation: tuple[str, ...] = ()
    if not as_authors:
        preparation = ("authors_order",)
        if kind == "boosting":
            preparation = ("authors_order", "authors_stop")
    metrics = tuple(COMPARED[utility])
    return Experiment(
        title,
        partial(select_cases, datasets),
        partial(run_tabular, kind=kind, utility=utility, as_authors=as_authors),
        partial(draw, metrics=metrics),
        partial(claims, metrics=metrics, single=kind == "boosting" and utility == "aup"),
        partial(table, metric=metrics[0]),
        partial(headline, metric=metrics[0]),
        depends=("seed", "rows", "quick", *preparation),
        game=game,
        notes=(*NOTES, *notes),
    )


BOOSTING = _experiment("boosting: recovery error and inclusion curves", MAIN, FRAUD_ROWS)
LINEAR = _experiment(
    "linear models: recovery error and inclusion curves", MAIN, FRAUD_ROWS, kind="linear"
)
FURTHER = _experiment("boosting, four further datasets", FURTHER_DATASETS)
EXCLUSION = _experiment("exclusion, with its own utility", MAIN, utility="exclusion")
MASKED = _experiment(
    "masked inclusion, with its own utility", MAIN, MASKED_JUDGE, utility="masked_inclusion"
)
AUTHORS = _experiment(
    "fraud as the authors prepare it: balanced before the split, boosting stopped by the loss or"
    " the error",
    ("fraud",),
    FRAUD_ROWS,
    as_authors=True,
)
_network = partial(_experiment, game="neural_surrogate")
NETWORK = _network("boosting, the paper's network with the authors' sampling", NETWORK_DATASETS)
NETWORK_LINEAR = _network("linear models, the paper's network", NETWORK_DATASETS, kind="linear")
NETWORK_EXCLUSION = _network(
    "exclusion, the paper's network", NETWORK_DATASETS, utility="exclusion"
)
NETWORK_MASKED = _network(
    "masked inclusion, the paper's network",
    NETWORK_DATASETS,
    MASKED_JUDGE,
    utility="masked_inclusion",
)
