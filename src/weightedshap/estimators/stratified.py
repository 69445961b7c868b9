"""Coalitions drawn per size, sizes 0, 1, d − 1 and d exact, sparse parities fitted to others as control variate."""

from __future__ import annotations

from typing import Any

import numpy as np

from weightedshap.checks import as_generator, positive_integer
from weightedshap.contributions import Contributions
from weightedshap.estimators.parities import Parities
from weightedshap.estimators.strata import budget_of, estimate
from weightedshap.games.wrappers import checked


def stratified(
    game: Any, *, evaluations: int | None = None, rng: np.random.Generator | int | None = None, order: int = 2
) -> Contributions:
    """Estimate every Δ_j(x_i) from coalitions drawn size by size, with a sparse model as control variate.

    1. Evaluate all coalitions of sizes 0, 1, d − 1 and d, and of every other size that the budget covers.
    2. Draw coalitions of the other sizes with their complements, n_s ∝ √(1/s + 1/(d−s)) of size s, in ten folds. With
       forty or more for every size, draw but a quarter so, and the rest by the spread σ_s that an additive model
       leaves: n_s ∝ σ_s (1/s + 1/(d−s)).
    3. For every fold fit a model g to the other folds: single features, and parities of several (see `parities`).
    4. Δ = Δ(g), which is known, + Δ(v − g) by the means of the fold's remainders; average the folds.

    Every evaluation informs all features, so far fewer are needed than by walks. A fold never meets a model fitted to
    it. That the first quarter decides on the rest, and errors of other folds' models on the number of terms, leaves a
    bias of order 1/n_s, small beside the standard error. If the budget covers all 2^d coalitions, Δ is exact.

    Parameters
    ----------
    evaluations : a hard budget; by default max(2,000, 100 d)
    order : 2 lets the model have interactions, of any order; 1 does not, which takes a tenth of the time

    Notes
    -----
    A feature that never matters gets zero up to the standard errors; `permutation` gives exact zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from weightedshap.games import FunctionGame
    >>> game = FunctionGame(lambda coalitions: coalitions @ np.arange(15.0), d=15)
    >>> contributions = stratified(game, evaluations=300, rng=0)
    >>> bool(np.allclose(contributions.mean, np.arange(15.0), atol=0.01))
    True
    """
    game, rng = checked(game), as_generator(rng)
    if positive_integer("order", order) > 2:
        raise ValueError(f"`order` must be 1 or 2; got {order!r}.")
    budget = budget_of(evaluations, game.d, "stratified sampling")
    crossfit = Parities(rounds=0) if order == 1 else Parities()
    return estimate(game, budget, rng, rough=Parities(rounds=0), crossfit=crossfit, who="stratified")
