"""What a person chooses, as one value; and a model with its background under such choices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from weightedshap.checks import UnknownName, look_up, one_of, unknown_sentence
from weightedshap.estimators import Estimator, as_estimator
from weightedshap.games import GAMES
from weightedshap.games.protocols import Fitted, Recipe
from weightedshap.games.rows import Rows
from weightedshap.games.wrappers import as_fitted
from weightedshap.inputs import Data, Groups, Model, Outputs, Table, as_model, as_table, trained_columns
from weightedshap.selection import SELECTIONS
from weightedshap.utilities import Utility, as_utility
from weightedshap.weights import WeightFamily, as_family

NEED_A_FIT = ("game", "predict", "outputs", "link", "random_state")
"""Choices that the fitted game depends on."""


@dataclass(frozen=True, kw_only=True)
class Choices:
    """How to explain, as the user said it; `weightedshap.Explainer` tells what each choice means.

    The explainer, its files and the experiments share this value. Every name is checked when it is made.
    """

    game: Any = "tree_surrogate"
    estimator: Any = "auto"
    family: Any = "paper"
    utility: Any = "aup"
    select: str = "per_row"
    evaluations: int | None = None
    predict: Callable[[Any], Any] | None = None
    outputs: Outputs = None
    link: str = "identity"
    keep_contributions: bool | str = "auto"
    random_state: int = 0
    n_jobs: int | None = 1
    progress: bool | str = "auto"

    def __post_init__(self) -> None:
        if isinstance(self.game, str):
            look_up("game", self.game, GAMES)
        one_of("selection", self.select, SELECTIONS)
        one_of("link", self.link, ("identity", "logit"))
        as_estimator(self.estimator, self.evaluations)
        as_utility(self.utility)
        if self.keep_contributions not in (True, False, "auto"):
            raise ValueError(f"`keep_contributions` must be True, False or 'auto'; got {self.keep_contributions!r}.")
        object.__setattr__(self, "random_state", int(self.random_state))

    def but(self, **changes: Any) -> Choices:
        """The same with some changed; a name that is no choice is refused."""
        names = [field.name for field in fields(self)]
        for name in changes:
            if name not in names:
                raise UnknownName(unknown_sentence("choice", name, names))
        return replace(self, **changes)

    def method(self, d: int) -> Method:
        """The parts that these choices name, for d players."""
        estimator, family = as_estimator(self.estimator, self.evaluations), as_family(self.family, d).ready()
        rest = self.select, self.keep_contributions, self.random_state, self.n_jobs, self.progress
        return Method(estimator, family, as_utility(self.utility), *rest)


@dataclass(frozen=True)
class Method:
    """The parts of the method, looked up: how Δ is estimated, weighed, scored and chosen, and by how many workers."""

    estimator: Estimator
    family: WeightFamily
    utility: Utility
    select: str
    keep: bool | str
    seed: int
    n_jobs: int | None
    progress: bool | str


@dataclass(frozen=True)
class Setting:
    """A model, its background, and how it is to be explained: all that an explainer is made of.

    `model` is None where only a game of the user's own is explained.
    """

    model: Model | None
    background: Table
    choices: Choices
    method: Method

    @classmethod
    def of(
        cls, model: Any, background: Data, choices: Choices, groups: Groups | None = None, weights: Any = None
    ) -> Setting:
        """Look at the user's model and table."""
        table = as_table(background, weights, groups, trained_columns(model))
        method = choices.method(table.d)
        called = choices.predict, choices.outputs, choices.link
        return cls(None if model is None else as_model(model, table, *called), table, choices, method)

    def but(self, **changes: Any) -> Setting:
        """The same with other choices, none of which the fitted game depends on."""
        fixed = [name for name in NEED_A_FIT if name in changes]
        if fixed:
            raise ValueError(f"The fitted game depends on `{fixed[0]}`. Make a new Explainer for it.")
        choices = self.choices.but(**changes)
        return replace(self, choices=choices, method=choices.method(self.background.d))

    def fit(self, game: Any = None) -> Fitted:
        """A game, the chosen one by default, fitted to model and background."""
        game = self.choices.game if game is None else game
        recipe = look_up("game", game, GAMES)() if isinstance(game, str) else game
        if isinstance(recipe, Recipe):
            recipe = recipe.fit(self.model, self.background, np.random.default_rng(self.choices.random_state))
        return as_fitted(recipe, self.background)

    def refit(self, background: Table) -> tuple[Setting, Fitted]:
        """The same choices on other rows, and the game fitted to them."""
        if not isinstance(self.choices.game, (str, Recipe)):
            raise ValueError(
                "The game was given as a fitted one or as a function, so it cannot be fitted on other rows. Give its "
                "name or a recipe."
            )
        other = replace(self, background=background)
        return other, other.fit()

    def judge(self, utility: Utility, explained: Rows) -> Rows:
        """The rows under the game that `utility` asks for."""
        judge = Rows.of(self.fit(utility.game), explained.rows)
        return replace(judge, f_x=judge.f_x[:, list(explained.outputs)], outputs=explained.outputs)
