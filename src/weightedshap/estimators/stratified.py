"""Coalitions drawn size by size, with a sparse model of the game as control variate.

The estimator here is built from `strata` and `sparse_fourier`. `auto` picks `stratified` for every
game that is costly to evaluate or comes with a budget.
"""

from collections.abc import Iterator
from typing import Any

from weightedshap._checks import (
    BoolArray,
    Seed,
    as_generator,
    check_positive_integer,
    stream_fingerprint,
)
from weightedshap.contributions import Contributions
from weightedshap.estimators.noise import (
    REPEATS,
    add_noise_variance,
    noise_variance,
)
from weightedshap.estimators.sparse_fourier import SparseFourier
from weightedshap.estimators.stopping import attach_partial_result
from weightedshap.estimators.strata import (
    FEWEST_FOLDS,
    GameCall,
    SamplingPlan,
    StratifiedSample,
    estimate_contributions,
    minimum_budget,
    spread_by_size,
)
from weightedshap.games.user import check_game

# Models of single players, without interactions.
ADDITIVE = SparseFourier(rounds=0)


def stratified(
    game: Any, *, evaluations: int | None = None, rng: Seed = None, order: int = 2
) -> Contributions:
    """Estimate every Δ_j(x_i) from coalitions drawn size by size, and a sparse model of the game.

    1. Evaluate all coalitions of sizes 0, 1, d − 1 and d, and of every other size that the budget
       covers.
    2. Draw coalitions of the other sizes with their complements, n_s ∝ √(1/s + 1/(d−s)) of size s,
       in ten folds. With forty or more for every size, draw only a quarter in this way, and the
       rest by the spread σ_s of the residuals of an additive model: n_s ∝ σ_s (1/s + 1/(d−s)).
    3. For every fold fit a model g to the other folds, with terms for single features and parities
       of several (see `sparse_fourier`). It is a control variate.
    4. Δ = Δ(g), which is known, + Δ(v − g) by the means of v − g over the draws of the fold;
       average over the folds.

    Every evaluation informs all features, so far fewer are needed than with random orders. No fold
    is combined with a model fitted to it. A bias of order 1/n_s remains, small compared with the
    standard error, since the first quarter of the draws determines how the rest are drawn, and
    errors of other folds' models determine the number of terms. If the budget covers all 2^d
    coalitions, Δ is exact. If the game raises an error, the contributions from the finished folds
    are attached to it as ``error.contributions``.

    Parameters
    ----------
    evaluations : a hard budget; by default max(2,000, 100 d)
    order : 2 allows interactions, of any order, in the model; 1 allows none, which takes a tenth of
        the time

    Notes
    -----
    A feature that never matters gets zero up to the standard errors; `permutation` gives exact
    zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from weightedshap.games import FunctionGame
    >>> game = FunctionGame(lambda coalitions: coalitions @ np.arange(15.0), d=15)
    >>> contributions = stratified(game, evaluations=300, rng=0)
    >>> bool(np.allclose(contributions.mean, np.arange(15.0), atol=0.01))
    True
    """
    if check_positive_integer("order", order) > 2:
        raise ValueError(f"`order` must be 1 or 2; got {order!r}.")
    fit_models = ADDITIVE if order == 1 else SparseFourier()
    game = check_game(game)
    rng = as_generator(rng)
    d = game.d
    budget = max(2_000, 100 * d)
    if evaluations is not None:
        budget = check_positive_integer("evaluations", evaluations)
    least = minimum_budget(d)
    if budget < least:
        raise ValueError(
            f"A budget of {budget:,} evaluations is too small: at d = {d} 'stratified' needs at"
            f" least {least:,}, all coalitions of sizes 0, 1, d − 1 and d and three of every other"
            " size, with complements."
        )
    fingerprint = stream_fingerprint(rng)
    before = game.evaluations

    # Some evaluations are kept for the test for noise, unless the budget is tight.
    is_tight = budget < 2 * least or 2**d <= budget < 2**d + REPEATS
    plan = SamplingPlan.build(d, budget if is_tight else budget - REPEATS)
    pilot = plan.pilot_plan()
    n_folds = plan.n_folds
    has_complements = True

    # Step 1.
    whole_sizes = plan.whole_size_coalitions()
    calls = [GameCall(-1, whole_sizes, game(whole_sizes))]

    def table(reason: str) -> Contributions:
        """Return the contributions from all calls so far, with the reason for stopping."""
        sample, values = StratifiedSample.from_calls(calls, plan.is_whole, has_complements)
        spent = game.evaluations - before
        return estimate_contributions(sample, values, fit_models, spent, reason, fingerprint)

    def evaluate(drawn: Iterator[BoolArray]) -> None:
        """Call the game on the coalitions of each fold in turn, and record the calls."""
        for fold, coalitions in enumerate(drawn):
            with attach_partial_result(table if len(calls) > FEWEST_FOLDS else None):
                calls.append(GameCall(fold, coalitions, game(coalitions)))

    # Step 2: the residuals of an additive model of the pilot determine the draws of every size.
    evaluate(pilot.coalitions(rng, n_folds))
    if pilot is not plan:
        sample, values = StratifiedSample.from_calls(calls, plan.is_whole, has_complements)
        rest = plan.remaining(pilot, spread_by_size(sample, values, ADDITIVE))
        has_complements = rest.has_complements
        evaluate(rest.coalitions(rng, n_folds))

    sample, values = StratifiedSample.from_calls(calls, plan.is_whole, has_complements)
    has_room = budget - (game.evaluations - before) >= REPEATS
    variance = noise_variance(game, sample.coalitions, values) if has_room else None

    # Steps 3 and 4.
    contributions = table(f"stratified: budget of {budget:,} evaluations used")
    return contributions if variance is None else add_noise_variance(contributions, variance)
