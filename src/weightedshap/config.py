"""What a person chooses, as one value; and a model with its background under such choices."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import zip_longest
from typing import Any, Self

import numpy as np

from weightedshap._checks import check_switch, check_workers, look_up, one_of, whole_number
from weightedshap.estimators import Estimator, as_estimator
from weightedshap.games import GAMES, JUDGES, Anchored
from weightedshap.games.base import Fitted, Recipe
from weightedshap.games.rows import Rows
from weightedshap.games.tree_model import FittedPath, read_or_told
from weightedshap.games.user import as_fitted
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
from weightedshap.selection import SELECTIONS
from weightedshap.utilities import Utility, as_utility
from weightedshap.weights import WeightFamily, as_family

NEED_A_FIT = ("game", "judge", "predict", "outputs", "link", "random_state")
"""Choices that the fitted games depend on."""

OTHER_MODELS = ("marginal", "distilled_trees")
"""The games that compete by default where the model has no trees that can be read."""

INSTEAD = (
    "So the games 'marginal' (the model on rows mixed with background rows, sampled where there are"
    " many features) and 'distilled_trees' (boosted trees fitted to the model) explain it."
)
"""What happens to a model with trees that cannot be read, after the reason."""

JUDGES_STREAM = 4  # of the seed: a judge of the same recipe as the game is another game


@dataclass(frozen=True)
class Method:
    """The parts of the method, looked up: how Δ is estimated, weighed, scored and chosen, and by
    how many workers."""

    estimator: Estimator
    family: WeightFamily
    utility: Utility
    select: str
    keep: bool | str
    seed: int
    n_jobs: int | None
    progress: bool | str
    shared: tuple[int, ...] | None = (
        None  # the weights that all rows share, by output, where they are chosen already
    )


@dataclass(frozen=True, kw_only=True)
class Choices:
    """How to explain, as the user said it; `weightedshap.Explainer` tells what each choice means.
    Names are checked."""

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
        _check_games(self.game, self.judge)
        one_of("selection", self.select, SELECTIONS)
        one_of("link", self.link, ("identity", "logit"))
        as_estimator(self.estimator, self.evaluations)
        as_utility(self.utility)
        check_switch("keep_contributions", self.keep_contributions)
        check_workers(self.n_jobs, self.progress)
        object.__setattr__(self, "random_state", whole_number("random_state", self.random_state, 0))

    def but(self, **changes: Any) -> Self:
        """The same with some changed; a name that is no choice is refused."""
        for name in changes:
            one_of("choice", name, [field.name for field in fields(self)])
        return replace(self, **changes)

    def method(self, d: int) -> Method:
        """The parts that these choices name, for d players."""
        estimator = as_estimator(self.estimator, self.evaluations)
        family = as_family(self.family, d).ready()
        rest = self.select, self.keep_contributions, self.random_state, self.n_jobs, self.progress
        return Method(estimator, family, as_utility(self.utility), *rest)


@dataclass(frozen=True)
class Fits:
    """The fitted games of an explainer: those whose contributions are weighted, and the one that
    judges."""

    games: tuple[Fitted, ...]
    judge: Fitted  # the very same as the game where that judges itself
    notes: tuple[str, ...] = ()  # sentences about the games that the reader of a result should know

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the games are called; of two with one name the second is numbered."""
        own = [str(game.info.get("game", "given")) for game in self.games]
        return tuple(
            name if name not in own[:i] else f"{name} {i + 1}" for i, name in enumerate(own)
        )

    def ready(self) -> Self:
        """The same, after what every call needs is done."""
        _ = self.names, [game.ready() for game in (*self.games, self.judge)]
        return self


@dataclass(frozen=True)
class Setting:
    """A model (None for a game of one's own), its background, and how it is explained: all that an
    explainer is of."""

    model: Model | None
    background: Table
    choices: Choices
    method: Method

    @classmethod
    def of(
        cls,
        model: Any,
        background: Data,
        choices: Choices,
        groups: Groups | None = None,
        weights: Any = None,
    ) -> Self:
        """Look at the user's model and table."""
        table = as_table(background, weights, groups, trained_columns(model))
        method = choices.method(table.d)
        called = choices.predict, choices.outputs, choices.link
        known = (
            None
            if model is None
            else replace(as_model(model, table, *called), progress=choices.progress)
        )
        return cls(known, table, choices, method)

    def but(self, **changes: Any) -> Self:
        """The same with other choices, none of which the fitted games depend on."""
        if fixed := [name for name in NEED_A_FIT if name in changes]:
            raise ValueError(
                f"The fitted games depend on `{fixed[0]}`. Make a new Explainer for it."
            )
        choices = self.choices.but(**changes)
        return replace(self, choices=choices, method=choices.method(self.background.d))

    def meant(self, path: FittedPath | None = None) -> tuple[tuple[Any, ...], Any, tuple[str, ...]]:
        """What `game` and `judge` stand for with this model, or trees that were read: games, who
        judges, and notes."""
        game = self.choices.game
        judge = self.choices.judge
        several = isinstance(self.choices.game, (list, tuple))
        games: tuple[Any, ...] = tuple(game) if several else (game,)
        own: Any = "anchored" if several else "game"
        notes: tuple[str, ...] = ()
        if _says(game, "auto"):
            if path is None and self.model is not None:
                path, reason = read_or_told(self.model, self.background)
                notes = (f"{reason} {INSTEAD}",) if reason else ()
            games, own = (
                (OTHER_MODELS, "anchored") if path is None else ((path,), Anchored().of_trees(path))
            )
        judge = own if _says(judge, "auto") else judge
        if len(games) > 1 and _says(judge, "game"):
            said = f"{len(games)} games compete, and none of them can judge the others"
            raise ValueError(f"{said}. Give `judge` a name, or explain one game.")
        return games, judge, notes

    def fit(self, game: Sequence[Fitted | None] = (), judge: Sequence[Fitted | None] = ()) -> Fits:
        """The chosen games, fitted to model and background; those that are given here are fitted
        already."""
        games, who, notes = self.meant(
            next((one for one in game if isinstance(one, FittedPath)), None)
        )
        fitted = tuple(known or self.fit_one(one) for one, known in zip_longest(games, game))
        _check_scales(fitted, self.background)
        if _says(who, "game"):
            return Fits(fitted, fitted[0], notes)
        return Fits(
            fitted, next(iter(judge), None) or self.fit_one(who, JUDGES, JUDGES_STREAM), notes
        )

    def fit_one(
        self, game: Any, known: Mapping[str, Callable[[], Recipe]] = GAMES, *stream: int
    ) -> Fitted:
        """A game by name, recipe, or as it is, fitted to model and background; judges draw from a
        stream apart."""
        recipe = look_up("game", game, known)() if isinstance(game, str) else game
        if isinstance(recipe, Recipe):
            seed = [self.choices.random_state, *stream] if stream else self.choices.random_state
            recipe = recipe.fit(self.model, self.background, np.random.default_rng(seed))
        return as_fitted(recipe, self.background)

    def refit(self, background: Table, known: Sequence[Fitted] = ()) -> tuple[Self, Fits]:
        """The same choices on other rows, and the games fitted to them but for those of paths that
        are `known`."""
        for what, chosen in (("game", self.choices.game), ("judge", self.choices.judge)):
            given = chosen if isinstance(chosen, (list, tuple)) else [chosen]
            if not all(isinstance(one, (str, Recipe)) for one in given):
                said = (
                    f"The {what} was given as a fitted one or as a function, so it cannot be fitted"
                    " on other rows."
                )
                raise ValueError(f"{said} Give its name or a recipe.")
        other = replace(self, background=background)
        return other, other.fit([game if isinstance(game, FittedPath) else None for game in known])

    def scorer(self, utility: Utility, explained: Rows) -> Rows:
        """The rows under the game that `utility` asks for."""
        judge = Rows.of(self.fit_one(utility.game), explained.rows)
        return replace(judge, f_x=judge.f_x[:, list(explained.outputs)], outputs=explained.outputs)


def _says(choice: object, word: str) -> bool:
    """Whether a choice, which may be anything, is this word."""
    return isinstance(choice, str) and choice == word


def _check_games(game: Any, judge: Any) -> None:
    """Names of games and judges that are known; at least one game."""
    several = isinstance(game, (list, tuple))
    if several and not game:
        raise ValueError("`game` is an empty list. Name at least one game, or leave it out.")
    for one in game if several else [game]:
        if isinstance(one, str):
            one_of("game", one, GAMES if several else (*GAMES, "auto"))
    if isinstance(judge, str):
        one_of("judge", judge, ("auto", "game", *JUDGES))
    if several and len(game) > 1 and _says(judge, "game"):
        raise ValueError(
            "`judge='game'` asks the explained game to judge, but several compete. Name a judge."
        )


def _check_scales(games: tuple[Fitted, ...], background: Table) -> None:
    """Games that compete must mean the same prediction."""
    if len(games) == 1:
        return
    few = background.take(slice(0, 20))
    first, *others = [(game.info["game"], game.space, game.outputs(few)[0]) for game in games]
    for name, space, f_x in others:
        if (space, f_x.shape) != (first[1], first[2].shape) or not np.allclose(
            f_x, first[2], rtol=1e-4, atol=1e-6
        ):
            raise ValueError(
                f"The games {first[0]!r} (scale: {first[1]}) and {name!r} (scale: {space}) predict"
                " different numbers, so their attributions cannot compete. Name games of one"
                " scale; link='logit' brings probabilities to the log-odds that the trees of a"
                " boosted classifier give."
            )
