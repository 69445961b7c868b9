"""The paper's remark on cost: seconds per row to compute contributions and to choose the weight.

The experiment fits one game, and measures the rows one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import weightedshap as ws
from weightedshap._checks import FloatArray
from weightedshap.contributions import Contributions
from weightedshap.estimators import authors, exact
from weightedshap.inputs.rows import Rows
from weightedshap.method import score_weights
from weightedshap.selection import select
from weightedshap_paper import models
from weightedshap_paper.datasets import prepare
from weightedshap_paper.experiment import Case, Claim, Experiment, Numbers, Runs, Settings, across
from weightedshap_paper.tabular import build_recipe

MOST_ROWS = 20
ESTIMATORS = {"tree_surrogate": exact, "neural_surrogate": authors}
"""The estimator of Δ for each game: exact, or the authors' sampling."""


def run_costs(case: Case, settings: Settings, rng: np.random.Generator) -> Numbers:
    """Measure the CPU seconds of fitting a game and of each row, and count its evaluations.

    For each row these are the seconds to compute Δ, the seconds to score the 13 attributions by
    their curves and to choose one, and the number of evaluations.
    """
    data = prepare(case.name, rng, authors_order=settings.authors_order)
    seed = int(rng.integers(2**31))
    model = models.boosting(data, seed=seed, learning_rate=models.rate(settings.quick))
    recipe = build_recipe(case.game, settings)
    started = time.process_time()
    explainer = ws.Explainer(
        model, np.unique(data.X_train, axis=0), game=recipe, random_state=seed, progress=False
    )
    fit = time.process_time() - started
    rows = data.X_test[: min(settings.rows, MOST_ROWS) + 1]
    costs = [_measure_row(explainer, row, ESTIMATORS[case.game], seed) for row in rows]
    # The first row is left out: it includes the time of the compiler.
    return {"fit": fit, "rows": [list(of_row) for of_row in costs[1:]]}


def _measure_row(
    explainer: ws.Explainer, row: FloatArray, estimator: Callable[..., Contributions], seed: int
) -> tuple[float, float, int]:
    """Measure the CPU seconds to compute contributions Δ and to choose the weight, for one row.

    Return the seconds for Δ, the seconds for Algorithm 1 without Δ, and the number of evaluations
    of v.
    """
    problem = explainer.problem
    game = explainer.game
    rows = Rows(row[None])

    started = time.process_time()
    f_x = rows.ask(game)
    contributions = estimator(game.at(row), rng=np.random.default_rng(seed))
    estimated = time.process_time()

    # The game judges itself, as in the paper, by −AUP.
    judge = rows.bind(game)
    phi = problem.family.with_references.phi(contributions.mean)[None, ..., None]  # (1, M, d, 1)
    select(score_weights(problem, judge, f_x, judge, phi, None), problem.choices)
    chosen = time.process_time()
    return estimated - started, chosen - estimated, contributions.evaluations


def claims_costs(runs: Runs) -> list[Claim]:
    """Return the claims on the seconds per row, and on the share spent on choosing the weight."""
    claims = []
    for case, of in runs.items():
        contributions, weights, evaluations = np.concatenate([run["rows"] for run in of]).mean(
            axis=0
        )
        ours = (
            f"{contributions:.3g} s and {weights:.3g} s, {weights / (contributions + weights):.1%}"
            f" for the weights; {evaluations:,.0f} evaluations; fit"
            f" {across(of, 'fit').mean():.0f} s"
        )
        text = f"{case}: CPU seconds for the contributions and for the weight of a row"
        claims.append(
            Claim(text, "20.7 s and 0.18 s, 0.86 %", ours, [contributions < 20.7, weights < 0.18])
        )
    return claims


COSTS = Experiment(
    "seconds per row for contributions and for the weight",
    lambda settings: [Case("phoneme" if settings.quick else "fraud", game) for game in ESTIMATORS],
    run_costs,
    claims=claims_costs,
    depends=("seed", "rows", "quick", "authors_order"),
    most_runs=1,
    notes=(
        (
            "Seconds differ from machine to machine and from run to run; all else is the same for"
            f" the same seed. They are CPU seconds of at most {MOST_ROWS} rows, one by one; blocks"
            " of rows are faster. The network is the paper's recipe with the authors' sampling;"
            " contributions of the tree surrogate are exact. A claim holds if both are below the"
            " paper's."
        ),
    ),
)
