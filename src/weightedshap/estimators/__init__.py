"""Game → Δ.

An estimator is a function ``(game, *, rng, …) → Contributions``. To add one, write it and add one line
to `ESTIMATORS`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from weightedshap.checks import look_up, positive_integer
from weightedshap.contributions import Contributions
from weightedshap.estimators import stopping
from weightedshap.estimators.exact import exact
from weightedshap.estimators.permutation import permutation
from weightedshap.estimators.proxy import proxy
from weightedshap.estimators.stratified import stratified
from weightedshap.games.wrappers import checked

__all__ = ["ESTIMATORS", "algorithm_2", "authors", "auto", "exact", "permutation", "proxy", "stopping", "stratified"]

Estimator = Callable[..., Contributions]

ENUMERATE_UP_TO = 12
PROXY_FROM = 100


def auto(game: Any, *, evaluations: int | None = None, rng: Any = None) -> Contributions:
    """The game's own Δ; else enumeration up to d = 12 if the budget allows; else the sampler that suits the game.

    A game may say what an evaluation costs by an attribute ``cost``. "cheap": less than the arithmetic of a
    sampler; without a budget it is walked along many orders by `permutation`. "dear": milliseconds or more; with
    a budget of 100 d or more `proxy` makes the most of it, for seconds of its own. All others, and any game with
    another budget, go to `stratified`, which needs few evaluations. What was picked is the first word of
    `Contributions.stopped`. The clock has no say, so that the choice is the same on every machine.
    """
    game = checked(game)
    affordable = evaluations is None or 2**game.d <= evaluations
    if hasattr(game, "contributions") or (game.d <= ENUMERATE_UP_TO and affordable):
        return exact(game, rng=rng)
    cost = getattr(game, "cost", None)
    if cost == "cheap" and evaluations is None:
        found = permutation(game, rng=rng)
        return replace(found, stopped=f"permutation: {found.stopped}")
    if cost == "dear" and evaluations is not None and evaluations >= PROXY_FROM * game.d:
        return proxy(game, evaluations=evaluations, rng=rng)
    return stratified(game, evaluations=evaluations, rng=rng)


algorithm_2: Estimator = functools.partial(
    permutation, orders="per_feature", stop=stopping.gelman_rubin(1.005, chains=10)
)
"""Algorithm 2 as printed: a fresh order for every feature, Gelman–Rubin on every Δ_j(x_i)."""

AUTHORS_RULE = stopping.gelman_rubin(1.005, chains=10, pooled=True, every=100)

authors: Estimator = functools.partial(permutation, orders="independent", stop=AUTHORS_RULE)
"""The authors' program: shared orders, Gelman–Rubin on each feature's draws of all sizes, every 100 orders."""


ESTIMATORS: Mapping[str, Estimator] = {
    "auto": auto,
    "exact": exact,
    "permutation": permutation,
    "stratified": stratified,
    "proxy": proxy,
}


def as_estimator(estimator: Any, evaluations: int | None = None) -> Estimator:
    """An estimator from a name or a function, with the budget bound if it takes one."""
    if isinstance(estimator, str):
        estimator = look_up("estimator", estimator, ESTIMATORS)
    if not callable(estimator):
        raise TypeError(
            f"`estimator` must be a name or a function (game, *, rng) → Contributions; got {type(estimator).__name__}."
        )
    if evaluations is None:
        return estimator  # type: ignore[no-any-return]
    evaluations = positive_integer("evaluations", evaluations)
    if estimator is exact:  # the budget is for games that have to be sampled
        return estimator
    if "evaluations" not in inspect.signature(estimator).parameters:
        name = getattr(estimator, "__name__", type(estimator).__name__)
        raise ValueError(
            f"The estimator {name!r} takes no `evaluations`, so a budget of {evaluations:,} would be ignored. Leave it "
            "out, or bind the estimator's own budget with functools.partial."
        )
    return functools.partial(estimator, evaluations=evaluations)
