"""The paper's remark on cost: seconds for a row's contributions, and for the choice of its
weight."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import weightedshap as ws
from weightedshap.estimators import authors, exact
from weightedshap.games.rows import Rows
from weightedshap.selection import candidates, select
from weightedshap.utilities import aup
from weightedshap_paper import models
from weightedshap_paper.datasets import prepare
from weightedshap_paper.experiment import Case, Claim, Experiment, Numbers, Runs, Settings, across
from weightedshap_paper.tabular import recipe_of

MOST_ROWS = 20
WAYS = {"tree_surrogate": exact, "neural_surrogate": authors}
"""The game of each case and the estimator of its contributions: exact, or the authors' sampling."""


def run_costs(case: Case, settings: Settings, rng: np.random.Generator) -> Numbers:
    """CPU seconds of the fit, and by row of Δ, of the 13 attributions with their curves, and
    evaluations of v."""
    data = prepare(case.name, rng, authors_order=settings.authors_order)
    seed = int(rng.integers(2**31))
    model = models.boosting(data, seed=seed, learning_rate=models.rate(settings.quick))
    recipe = recipe_of(case.game, settings)
    started = time.process_time()
    explainer = ws.Explainer(
        model, np.unique(data.X_train, axis=0), game=recipe, random_state=seed, progress=False
    )
    fit = time.process_time() - started
    rows = data.X_test[: min(settings.rows, MOST_ROWS) + 1]
    found = [_timed(explainer, row, WAYS[case.game], seed) for row in rows]
    # The first row pays for the compiler.
    return {
        "fit": fit,
        "rows": [list(one) for one in found[1:]],
    }


def _timed(explainer: Any, row: Any, estimator: Any, seed: int) -> tuple[float, float, int]:
    """CPU seconds for Δ of one row and for Algorithm 1 on it, and the evaluations of v."""
    started = time.process_time()
    rows = Rows.of(explainer.game, row[None])
    family = explainer.family
    contributions = estimator(explainer.game.at(row), rng=np.random.default_rng(seed))
    known = time.process_time()
    view = rows.view(slice(0, 1))
    phi = family.with_references.phi(contributions.mean)[None, ..., None]
    select(candidates(view, view, phi, None, family, aup), family)
    return known - started, time.process_time() - known, contributions.evaluations


def claims_costs(runs: Runs) -> list[Claim]:
    """Seconds by row, and the share of the weights in them."""
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
    lambda settings: [Case("phoneme" if settings.quick else "fraud", game) for game in WAYS],
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
