"""Coalitions drawn per size, and a model of the game as control variate: sparse parities, or
boosted trees."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from weightedshap._checks import (
    BoolArray,
    FloatArray,
    IntArray,
    Seed,
    as_generator,
    positive_integer,
)
from weightedshap.contributions import Contributions
from weightedshap.estimators import strata
from weightedshap.estimators.noise import REPEATS, fingerprint, keep_partial, noise, with_noise
from weightedshap.estimators.sparse_fourier import Parities
from weightedshap.estimators.strata import Crossfit, Fit, Plan, Sample
from weightedshap.games.user import checked

ADDITIVE = Parities(rounds=0)  # a polynomial of order 1
BINS = {"max_bin": 3, "verbosity": -1}  # a mask has two values
REPEATABLE = {"num_threads": 1, "deterministic": True, "force_col_wise": True, "seed": 0}
LEARNING = {
    "objective": "regression",
    "min_data_in_leaf": 5,
    "lambda_l2": 1.0,
    **BINS,
    **REPEATABLE,
}


def stratified(
    game: Any, *, evaluations: int | None = None, rng: Seed = None, order: int = 2
) -> Contributions:
    """Estimate every Δ_j(x_i) from coalitions drawn size by size, with a sparse model as control
    variate.

    1. Evaluate all coalitions of sizes 0, 1, d − 1 and d, and of every other size that the budget
       covers.
    2. Draw coalitions of the other sizes with their complements, n_s ∝ √(1/s + 1/(d−s)) of size s,
       in ten folds. With forty or more for every size, draw but a quarter so, and the rest by the
       spread σ_s that an additive model leaves: n_s ∝ σ_s (1/s + 1/(d−s)).
    3. For every fold fit a model g to the other folds: single features, and parities of several
       (see `parities`).
    4. Δ = Δ(g), which is known, + Δ(v − g) by the means of the fold's remainders; average the
       folds.

    Every evaluation informs all features, so far fewer are needed than by walks. A fold never meets
    a model fitted to it. That the first quarter decides on the rest, and errors of other folds'
    models on the number of terms, leaves a bias of order 1/n_s, small beside the standard error. If
    the budget covers all 2^d coalitions, Δ is exact.

    Parameters
    ----------
    evaluations : a hard budget; by default max(2,000, 100 d)
    order : 2 lets the model have interactions, of any order; 1 does not, which takes a tenth of the
        time

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
    if positive_integer("order", order) > 2:
        raise ValueError(f"`order` must be 1 or 2; got {order!r}.")
    return _estimate(game, evaluations, rng, ADDITIVE if order == 1 else Parities(), "stratified")


def proxy(
    game: Any,
    *,
    evaluations: int | None = None,
    rng: Seed = None,
    trees: int = 400,
    leaves: int = 15,
    rate: float = 0.1,
) -> Contributions:
    """Estimate every Δ_j(x_i) with boosted trees in the place of the game, and correct what they
    miss.

    1. Draw coalitions as `stratified` does, in folds.
    2. For every group of folds fit a polynomial of order 1 and then LightGBM, on 0/1 masks, to the
       others.
    3. Both know their Δ exactly: the trees by their leaves 1[A ⊆ S, B ∩ S = ∅].
    4. Add Δ of the remainder by the means of the fold; average the folds.

    Trees find a few strong interactions of any order among many features. Bias and errors are those
    of `stratified`.

    Parameters
    ----------
    evaluations : a hard budget; by default max(2,000, 100 d)
    trees, leaves, rate : of LightGBM; fewer trees where the error on a part of the others stops
        falling
    """
    grown = {"num_leaves": leaves, "learning_rate": rate}
    return _estimate(game, evaluations, rng, partial(_boosted, trees, grown), "proxy")


def _estimate(
    game: Any, evaluations: int | None, rng: Seed, crossfit: Crossfit, who: str
) -> Contributions:
    """Evaluate coalitions within the budget and read Δ off their means, with the help of a fitted
    model.

    1. Evaluate the sizes that are taken whole, and a pilot of the others, each coalition with its
       complement.
    2. The spread of what an additive model leaves of the pilot tells how many more to draw of every
       size.
    3. Draw them, and correct the means of all draws by `crossfit`.

    If the game raises, the error carries what the finished folds tell as ``error.contributions``.
    """
    game = checked(game)
    rng = as_generator(rng)
    d = game.d
    budget = None if evaluations is None else positive_integer("evaluations", evaluations)
    budget = budget or max(2_000, 100 * d)
    least = strata.least_budget(d)
    if budget < least:
        what = (
            "all coalitions of sizes 0, 1, d − 1 and d and three of every other size, with"
            " complements"
        )
        said = (
            f"A budget of {budget:,} evaluations is too small: at d = {d} {who!r} needs at least"
            f" {least:,}"
        )
        raise ValueError(f"{said}, {what}.")
    draws = fingerprint(rng)
    before = game.evaluations
    tight = budget < 2 * least or 2**d <= budget < 2**d + REPEATS
    plan = Plan.of(d, budget if tight else budget - REPEATS)  # the rest is for the search for noise
    pilot = plan.pilot()
    folds = plan.folds
    whole = plan.whole_sizes()
    calls = [(-1, whole, game(whole))]
    paired = True

    def table(reason: str) -> Contributions:
        found = Sample.of(calls, plan.whole, paired)
        return strata.table_of(*found, crossfit, game.evaluations - before, reason, draws)

    def evaluate(drawn: Iterator[BoolArray]) -> None:
        for fold, coalitions in enumerate(drawn):
            with keep_partial(table if len(calls) > strata.FEWEST_FOLDS else None):
                calls.append((fold, coalitions, game(coalitions)))

    evaluate(pilot.drawn(rng, folds))
    if pilot is not plan:
        rest = plan.rest(
            pilot, strata.spread_by_size(*Sample.of(calls, plan.whole, paired), ADDITIVE)
        )
        paired = rest.paired
        evaluate(rest.drawn(rng, folds))
    sample, values = Sample.of(calls, plan.whole, paired)
    room = budget - (game.evaluations - before) >= REPEATS
    variance = noise(game, sample.coalitions, values) if room else None
    return with_noise(table(f"{who}: budget of {budget:,} evaluations used"), variance)


def _boosted(trees: int, grown: dict[str, float], sample: Sample, y: FloatArray) -> Fit:
    """LightGBM on what polynomials of order 1 leave, one ensemble for each group of folds."""
    start = ADDITIVE(sample, y)
    whole, *groups = sample.groups
    found = []
    for g, predicted in enumerate(start.predicted):
        others = [rows for h, rows in enumerate(groups) if h != g]
        held = others.pop(g % len(others))
        seen = np.concatenate([whole, *others])
        found.append(_read_out(trees, grown, sample, y - predicted, seen, held))
    delta, values = map(np.stack, zip(*found, strict=True))
    return Fit(sample, y, start.delta + delta, start.predicted + values)


def _read_out(
    trees: int,
    grown: dict[str, float],
    sample: Sample,
    y: FloatArray,
    seen: IntArray,
    held: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Δ of an ensemble fitted to the rows `seen` and stopped by the rows `held`, and its values
    everywhere."""
    import lightgbm

    from weightedshap.games.tree_batch import mask_game
    from weightedshap.trees.readers import lightgbm_ensembles

    masks = sample.coalitions.astype(np.float32)
    scale = float(np.sqrt(np.mean(y[seen] ** 2))) or 1.0
    train = lightgbm.Dataset(masks[seen], y[seen] / scale, params=BINS)
    valid = train.create_valid(masks[held], y[held] / scale)
    patience = lightgbm.early_stopping(20, verbose=False)
    booster = lightgbm.train(
        LEARNING | grown, train, trees, valid_sets=[valid], callbacks=[patience]
    )
    game = mask_game(lightgbm_ensembles(booster.dump_model(), scale), sample.d)
    return game.contributions().mean, game(sample.coalitions)
