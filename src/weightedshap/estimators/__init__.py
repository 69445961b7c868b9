"""Estimators of Δ: functions of one game that return its `Contributions`.

An estimator is a function ``(game, *, rng, …) → Contributions``. To add one, write the function and
add it to `ESTIMATORS`. This module has the names of all estimators, the rule by which `auto` picks
one, and the presets of the paper and of the authors' program.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from weightedshap._checks import Seed, check_positive_integer, look_up, name_of
from weightedshap.contributions import Contributions
from weightedshap.estimators import stopping
from weightedshap.estimators.background_permutation import walks
from weightedshap.estimators.exact import exact
from weightedshap.estimators.permutation import permutation
from weightedshap.estimators.stratified import stratified
from weightedshap.games.user import CheckedGame, check_game

__all__ = [
    "ESTIMATORS",
    "algorithm_2",
    "authors",
    "auto",
    "exact",
    "permutation",
    "stopping",
    "stratified",
    "walks",
]

Function = Callable[..., Contributions]
# Games with at most so many players are enumerated.
ENUMERATE_UP_TO = 12
# Without a budget, a mean of games is enumerated with at most so many calls of the model.
WORTH_EXACT = 2**17


@dataclass(frozen=True)
class Estimator:
    """An estimator with fixed options: a function of a game and a random generator."""

    function: Function
    # Whether the exact Δ of a game that computes it is used instead of sampling.
    uses_exact: bool = False

    def __call__(self, game: Any, rng: np.random.Generator) -> Contributions:
        """Return the contributions Δ of one game."""
        return self.function(game, rng=rng)


def auto(game: Any, *, evaluations: int | None = None, rng: Seed = None) -> Contributions:
    """Compute Δ by the best method for the game: the game's formula, enumeration or a sampler.

    Games with at most 12 players are enumerated if the budget `evaluations` allows it.

    A game may declare the cost of an evaluation by an attribute ``cost``. If this is "cheap", less
    than the arithmetic of a sampler, and there is no budget, the game is evaluated along many
    random orders by `permutation`. All others, and any game with a budget, are sampled by
    `stratified`, which needs few evaluations. The first word of `Contributions.stopped` names the
    method. The choice does not depend on run time, so it is the same on every machine.

    A game that is a mean of B games, as the marginal game is of B background rows, costs B calls of
    the model for each evaluation. It is enumerated if d ≤ 12 and 2^d · B is at most the budget,
    which counts calls of the model then, or 2^17 without one; else it is sampled by `walks`.
    """
    game = check_game(game)
    evaluations = (
        None if evaluations is None else check_positive_integer("evaluations", evaluations)
    )
    if game.contributions is not None or _can_enumerate(game, evaluations):
        return exact(game, rng=rng)
    if game.parts is not None:
        return walks(game, evaluations=evaluations, rng=rng)
    if game.cost == "cheap" and evaluations is None:
        contributions = permutation(game, rng=rng)
        return replace(contributions, stopped=f"permutation: {contributions.stopped}")
    return stratified(game, evaluations=evaluations, rng=rng)


def _can_enumerate(game: CheckedGame, evaluations: int | None) -> bool:
    """Return whether `auto` can evaluate all coalitions of the game within its budget."""
    cost = 1
    most = 2**ENUMERATE_UP_TO
    if game.parts is not None:
        cost = game.parts.n
        most = WORTH_EXACT
    if evaluations is not None:
        most = evaluations
    return game.d <= ENUMERATE_UP_TO and 2**game.d * cost <= most


algorithm_2: Function = partial(
    permutation, orders="per_feature", stop=stopping.gelman_rubin(1.005, chains=10)
)
"""Algorithm 2 as printed: a fresh order for every feature, Gelman–Rubin on every Δ_j(x_i)."""

AUTHORS_RULE = stopping.gelman_rubin(1.005, chains=10, pooled=True, every=100)

authors: Function = partial(permutation, orders="independent", stop=AUTHORS_RULE)
"""The authors' program: orders shared by all features, and Gelman–Rubin, every 100 orders, on each
feature's draws of all sizes together."""

ESTIMATORS: Mapping[str, Function] = {
    function.__name__: function for function in (auto, exact, permutation, stratified, walks)
}
"""The estimators by name, as `Explainer` accepts them."""

# Estimators that use the exact Δ of a game that computes it.
USE_EXACT = (auto, exact)


def as_estimator(estimator: Any, evaluations: int | None = None) -> Estimator:
    """Return the estimator given by a name or a function, with a budget of `evaluations`."""
    function = estimator
    if isinstance(estimator, str):
        function = look_up("estimator", estimator, ESTIMATORS)
    if not callable(function):
        raise TypeError(
            "`estimator` must be a name or a function (game, *, rng) → Contributions; got"
            f" {type(estimator).__name__}."
        )
    uses_exact = function in USE_EXACT
    budget = None if evaluations is None else check_positive_integer("evaluations", evaluations)
    # The budget is for games that have to be sampled.
    if budget is None or function is exact:
        return Estimator(function, uses_exact)
    if "evaluations" not in inspect.signature(function).parameters:
        raise ValueError(
            f"The estimator {name_of(function)!r} takes no `evaluations`, so a budget of"
            f" {budget:,} would be ignored. Leave it out, or bind the estimator's own budget with"
            " functools.partial."
        )
    return Estimator(partial(function, evaluations=budget), uses_exact)
