"""The options of an `Explainer`, and the games that they select for a model and a background.

`Config` holds the options as the user gave them. `Setup` adds the model and the background; its
`fit` replaces names and "auto" by fitted games and returns the `Problem` that `weightedshap.method`
solves. `Explainer`, saved explainers and the evaluation build on this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import zip_longest
from typing import Any, Self

import numpy as np

from weightedshap._checks import (
    check_bool_or_auto,
    check_choice,
    check_integer,
    check_workers,
    look_up,
)
from weightedshap.estimators import as_estimator
from weightedshap.games import GAMES, JUDGES, Anchored
from weightedshap.games.base import BaseGame, Recipe
from weightedshap.games.tree_model import PathTreeGame, try_read_trees
from weightedshap.games.user import as_base_game
from weightedshap.inputs import (
    Data,
    Groups,
    Model,
    Outputs,
    Table,
    as_model,
    as_table,
    trained_columns,
)
from weightedshap.inputs.rows import Rows
from weightedshap.method import Problem
from weightedshap.parallel import Workers
from weightedshap.selection import SELECTIONS
from weightedshap.utilities import Utility, as_utility
from weightedshap.weights import WeightFamily, as_family

NEED_A_FIT = ("game", "judge", "predict", "outputs", "link", "random_state")
"""Options that the fitted games depend on."""

OTHER_MODELS = ("marginal", "distilled_trees")
"""The games that compete by default for a model without readable trees."""

FALLBACK_NOTE = (
    "So the games 'marginal' (the model on rows mixed with background rows, sampled where there are"
    " many features) and 'distilled_trees' (boosted trees fitted to the model) explain it."
)
"""A note on which games explain a model, after the reason why its trees cannot be read."""

# Added to the seed of judges, so that a judge with the game's recipe is not the same game.
JUDGES_STREAM = 4


@dataclass(frozen=True, kw_only=True)
class Config:
    """The options of an Explainer as the user gave them; the constructor checks all names.

    `weightedshap.Explainer` describes each option.
    """

    game: Any = "auto"
    judge: Any = "auto"
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
        _check_names(self.game, self.judge)
        check_choice("selection", self.select, SELECTIONS)
        check_choice("link", self.link, ("identity", "logit"))
        check_bool_or_auto("keep_contributions", self.keep_contributions)
        check_workers(self.n_jobs, self.progress)
        object.__setattr__(
            self, "random_state", check_integer("random_state", self.random_state, 0)
        )
        as_estimator(self.estimator, self.evaluations)
        as_utility(self.utility)

    def with_options(self, **changes: Any) -> Self:
        """Return the config with some options changed; raise an error for an unknown option."""
        for name in changes:
            check_choice("choice", name, [field.name for field in fields(self)])
        return replace(self, **changes)

    @property
    def workers(self) -> Workers:
        """The number of parallel workers, and whether they show a progress bar."""
        return Workers(self.n_jobs, self.progress)


@dataclass(frozen=True)
class Setup:
    """A model (None for a user's game), a background and options; `fit` fits the games."""

    model: Model | None
    background: Table
    config: Config

    @classmethod
    def build(
        cls,
        model: Any,
        background: Data,
        config: Config,
        groups: Groups | None = None,
        weights: Any = None,
    ) -> Self:
        """Build a setup from the user's model and background; check that they fit together.

        `weights` are those of the background rows, `groups` the players made of several columns.
        """
        table = as_table(background, weights, groups, trained_columns(model))
        own = None
        if model is not None:
            own = as_model(model, table, config.predict, config.outputs, config.link)
            own = replace(own, progress=config.progress)
        setup = cls(own, table, config)
        # An unknown family raises an error now, before anything is fitted.
        _ = setup.family
        return setup

    @cached_property
    def family(self) -> WeightFamily:
        """The family of weight vectors that the options select."""
        return as_family(self.config.family, len(self.background.players))

    def with_options(self, **changes: Any) -> Self:
        """Return a copy with some options changed; raise an error if one requires a new fit."""
        for name in NEED_A_FIT:
            if name in changes:
                raise ValueError(
                    f"The fitted games depend on `{name}`. Make a new Explainer for it."
                )
        return replace(self, config=self.config.with_options(**changes))

    def resolve(
        self, path: PathTreeGame | None = None
    ) -> tuple[tuple[Any, ...], Any, tuple[str, ...]]:
        """Find the games and the judge that the options select for this model, with notes.

        Games and judge are names, recipes or fitted games. `path` is the path-dependent game of the
        model's own trees, if these have been read already.
        """
        game = self.config.game
        judge = self.config.judge
        several = isinstance(game, (list, tuple))
        games: tuple[Any, ...] = tuple(game) if several else (game,)
        default: Any = "anchored" if several else "game"
        notes: tuple[str, ...] = ()
        if is_name(game, "auto"):
            if path is None and self.model is not None:
                path, reason = try_read_trees(self.model, self.background)
                notes = (f"{reason} {FALLBACK_NOTE}",) if reason else ()
            if path is None:
                games = OTHER_MODELS
                default = "anchored"
            else:
                games = (path,)
                default = Anchored().recipe_for_trees(path)
        if is_name(judge, "auto"):
            judge = default
        if len(games) > 1 and is_name(judge, "game"):
            raise ValueError(
                f"{len(games)} games compete, and none of them can judge the others. Give `judge` a"
                " name, or explain one game."
            )
        return games, judge, notes

    def fit(self, games: Sequence[BaseGame | None] = (), judge: BaseGame | None = None) -> Problem:
        """Fit the games and the judge that the options select, and return the resulting `Problem`.

        `games` contains games that are fitted already, at their positions, and `judge` a fitted
        judge; None stands for a game that is still to be fitted.
        """
        path = next((one for one in games if isinstance(one, PathTreeGame)), None)

        choices, judge_choice, notes = self.resolve(path)
        fitted_games = tuple(
            fitted or self.fit_game(choice)
            for choice, fitted in zip_longest(choices, games[: len(choices)])
        )
        _check_scales(fitted_games, self.background)
        if is_name(judge_choice, "game"):
            judge = fitted_games[0]
        elif judge is None:
            judge = self.fit_game(judge_choice, JUDGES, JUDGES_STREAM)
        return self.problem(fitted_games, judge, notes)

    def problem(
        self, games: tuple[BaseGame, ...], judge: BaseGame, notes: tuple[str, ...] = ()
    ) -> Problem:
        """Combine fitted games and a fitted judge with the options into a `Problem`."""
        config = self.config
        utility = as_utility(config.utility)
        return Problem(
            games=games,
            judge=judge,
            scorer=self.fit_scorer(utility, judge),
            estimator=as_estimator(config.estimator, config.evaluations),
            family=self.family,
            utility=utility,
            select=config.select,
            keep_delta=config.keep_contributions,
            seed=config.random_state,
            workers=config.workers,
            notes=notes,
        )

    def fit_game(
        self, game: Any, recipes: Mapping[str, Callable[[], Recipe]] = GAMES, *stream: int
    ) -> BaseGame:
        """Fit a game given by its name or recipe; a game that is already fitted is only wrapped.

        `recipes` are the known recipes by name. The numbers in `stream` extend the seed, so that
        a judge and a game draw different random numbers.
        """
        recipe = look_up("game", game, recipes)() if isinstance(game, str) else game
        if isinstance(recipe, Recipe):
            seed: Any = self.config.random_state
            if stream:
                seed = [seed, *stream]
            fitted = recipe.fit(self.model, self.background, np.random.default_rng(seed))
        else:
            fitted = recipe
        return fitted if isinstance(fitted, BaseGame) else as_base_game(fitted, self.background)

    def fit_scorer(self, utility: Utility, judge: BaseGame) -> BaseGame:
        """Fit the game that the utility asks for; return the judge if it asks for none."""
        if utility.game is None:
            return judge
        return self.fit_game(utility.game)

    def refit(self, background: Table, games: Sequence[BaseGame] = ()) -> tuple[Self, Problem]:
        """Fit the same games to another background; return the new setup and the new problem.

        `games` were fitted before: path-dependent ones are reused, as they do not depend on the
        background.
        """
        for option, choice in (("game", self.config.game), ("judge", self.config.judge)):
            choices = choice if isinstance(choice, (list, tuple)) else [choice]
            if not all(isinstance(one, (str, Recipe)) for one in choices):
                raise ValueError(
                    f"The {option} was given as a fitted one or as a function, so it cannot be"
                    " fitted on other rows. Give its name or a recipe."
                )
        other = replace(self, background=background)
        paths = [game if isinstance(game, PathTreeGame) else None for game in games]
        return other, other.fit(paths)


def is_name(choice: object, name: str) -> bool:
    """Return whether an option, which may be any object, equals the string `name`."""
    return isinstance(choice, str) and choice == name


def _check_names(game: Any, judge: Any) -> None:
    """Raise an error for an unknown name of a game or judge, or for an empty list of games."""
    several = isinstance(game, (list, tuple))
    if several and not game:
        raise ValueError("`game` is an empty list. Name at least one game, or leave it out.")
    for one in game if several else [game]:
        if isinstance(one, str):
            check_choice("game", one, GAMES if several else (*GAMES, "auto"))
    if isinstance(judge, str):
        check_choice("judge", judge, ("auto", "game", *JUDGES))
    if several and len(game) > 1 and is_name(judge, "game"):
        raise ValueError(
            "`judge='game'` asks the explained game to judge, but several compete. Name a judge."
        )


def _check_scales(games: tuple[BaseGame, ...], background: Table) -> None:
    """Raise an error if games that compete predict different f(x), for example on two scales."""
    if len(games) == 1:
        return
    few = Rows(background.take(slice(0, 20)))
    first, *others = games
    f = few.ask(first)
    for game in others:
        other_f = few.ask(game)
        if (game.space, other_f.shape) != (first.space, f.shape) or not np.allclose(
            other_f, f, rtol=1e-4, atol=1e-6
        ):
            raise ValueError(
                f"The games {first.info['game']!r} (scale: {first.space}) and"
                f" {game.info['game']!r} (scale: {game.space}) predict different numbers, so their"
                " attributions cannot compete. Name games of one scale; link='logit' brings"
                " probabilities to the log-odds that the trees of a boosted classifier give."
            )
