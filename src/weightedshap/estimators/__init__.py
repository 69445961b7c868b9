"""Game → Δ.

An estimator is a function ``(game, *, rng, …) → Contributions``. To add one, write it and add one
line to `ESTIMATORS`.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from weightedshap._checks import Seed, look_up, name_of, positive_integer
from weightedshap.contributions import Contributions
from weightedshap.estimators import stopping
from weightedshap.estimators.background_permutation import walks
from weightedshap.estimators.exact import exact
from weightedshap.estimators.permutation import permutation
from weightedshap.estimators.stratified import proxy, stratified
from weightedshap.games.user import checked

__all__ = [
    "ESTIMATORS",
    "algorithm_2",
    "authors",
    "auto",
    "exact",
    "permutation",
    "proxy",
    "stopping",
    "stratified",
]
__all__ += ["walks"]

Function = Callable[..., Contributions]
ENUMERATE_UP_TO = 12  # players
WORTH_EXACT = 2**17  # calls of a model in which a mean of games is still enumerated


@dataclass(frozen=True)
class Estimator:
    """A function of one game, and whether the game's own Δ is taken where it knows it: then nothing
    is left to do."""

    function: Function
    takes_own: bool = False

    def __call__(self, game: Any, rng: np.random.Generator) -> Contributions:
        return self.function(game, rng=rng)


def auto(game: Any, *, evaluations: int | None = None, rng: Seed = None) -> Contributions:
    """The game's own Δ; else enumeration up to d = 12 if the budget allows; else the sampler that
    suits the game.

    A game may say what an evaluation costs by an attribute ``cost``. "cheap": less than the
    arithmetic of a sampler; without a budget it is walked along many orders by `permutation`. All
    others, and any game with a budget, go to `stratified`, which needs few evaluations. What was
    picked is the first word of `Contributions.stopped`. The clock has no say, so that the choice is
    the same on every machine.

    A game that is a mean of B games, as the marginal one is of B background rows, costs B calls of
    the model for each evaluation. It is enumerated if d ≤ 12 and 2^d · B is at most the budget,
    which counts calls of the model then, or 2^17 without one; else it is sampled by `walks`.
    """
    game = checked(game)
    evaluations = None if evaluations is None else positive_integer("evaluations", evaluations)
    each, most = (1, 2**ENUMERATE_UP_TO) if game.parts is None else (game.parts.n, WORTH_EXACT)
    affordable = game.d <= ENUMERATE_UP_TO and 2**game.d * each <= (
        most if evaluations is None else evaluations
    )
    if game.contributions is not None or affordable:
        return exact(game, rng=rng)
    if game.parts is not None:
        return walks(game, evaluations=evaluations, rng=rng)
    if game.cost == "cheap" and evaluations is None:
        found = permutation(game, rng=rng)
        return replace(found, stopped=f"permutation: {found.stopped}")
    return stratified(game, evaluations=evaluations, rng=rng)


algorithm_2: Function = partial(
    permutation, orders="per_feature", stop=stopping.gelman_rubin(1.005, chains=10)
)
"""Algorithm 2 as printed: a fresh order for every feature, Gelman–Rubin on every Δ_j(x_i)."""

AUTHORS_RULE = stopping.gelman_rubin(1.005, chains=10, pooled=True, every=100)

authors: Function = partial(permutation, orders="independent", stop=AUTHORS_RULE)
"""The authors' program: shared orders, Gelman–Rubin on each feature's draws of all sizes, every 100
orders."""

ESTIMATORS: Mapping[str, Function] = {
    function.__name__: function for function in (auto, exact, permutation, stratified, proxy, walks)
}
"""Estimators by name, as `Explainer` takes them."""

TAKE_OWN = (auto, exact)  # estimators that ask a game for its own Δ first


def as_estimator(estimator: Any, evaluations: int | None = None) -> Estimator:
    """An estimator from a name or a function, with the budget bound if it takes one."""
    function = (
        look_up("estimator", estimator, ESTIMATORS) if isinstance(estimator, str) else estimator
    )
    if not callable(function):
        got = type(estimator).__name__
        raise TypeError(
            f"`estimator` must be a name or a function (game, *, rng) → Contributions; got {got}."
        )
    budget = None if evaluations is None else positive_integer("evaluations", evaluations)
    if budget is None or function is exact:  # the budget is for games that have to be sampled
        return Estimator(function, function in TAKE_OWN)
    if "evaluations" not in inspect.signature(function).parameters:
        ignored = f"takes no `evaluations`, so a budget of {budget:,} would be ignored"
        instead = "Leave it out, or bind the estimator's own budget with functools.partial."
        raise ValueError(f"The estimator {name_of(function)!r} {ignored}. {instead}")
    return Estimator(partial(function, evaluations=budget), function in TAKE_OWN)
