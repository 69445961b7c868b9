"""What every game has, and the few things that are the same for all of them.

A game is on the model's output scale with nothing subtracted: the paper's v(S) of Equation 1 is
``game(S) − game(∅)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np

from weightedshap.checks import BoolArray, FloatArray, IntArray, as_generator, as_outputs
from weightedshap.coalitions import as_coalitions
from weightedshap.contributions import Contributions
from weightedshap.games.adapters import from_shapiq
from weightedshap.inputs import Model, Table, as_model, as_table, part_of, trained_columns

__all__ = ["Game", "GameBlock", "FittedGame", "Recipe", "FunctionGame", "CheckedGame", "checked", "output_of"]


class Game(Protocol):
    """v(S) at one row: a callable on coalitions of d players.

    A game may also have ``along(orders)`` (predictions along orders of the players) and
    ``contributions()`` (its own exact Δ). Where it has not, both are built from the call: by
    `weightedshap.curves.along` and by `weightedshap.estimators.exact`. An attribute ``cost``, "cheap" or "dear", tells
    `weightedshap.estimators.auto` what an evaluation costs.
    """

    @property
    def d(self) -> int:
        """How many players there are."""

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        """(m, d) bool → (m,) or (m, k): the prediction when only these players are known."""


class GameBlock(Protocol):
    """The games of n rows at once, for fitted games that are faster this way.

    Every array has the rows in front. A fitted game that has ``block(rows)`` is explained in blocks.
    """

    @property
    def d(self) -> int:
        """How many players there are."""

    @property
    def rows(self) -> int:
        """n."""

    def ends(self) -> FloatArray:
        """(n, 2[, k]) game(∅) and game([d])."""

    def semivalues(self, vectors: FloatArray) -> FloatArray:
        """(m, d) weight vectors → (n, m, d[, k]) exact φ_w; the unit vectors give Δ itself."""

    def along(self, orders: IntArray) -> FloatArray:
        """(n, m, d) orders → (n, m, d + 1[, k])."""

    def output(self, index: int) -> GameBlock:
        """The block of one output of several."""


@runtime_checkable
class FittedGame(Protocol):
    """A game that knows model and background and still waits for the row."""

    def at(self, row: Any) -> Game:
        """The game at one row."""

    def predict(self, rows: Any) -> FloatArray:
        """f(x) of rows on the scale of the game."""


class Recipe(Protocol):
    """How to make a game out of a model and a background."""

    def fit(self, model: Any, background: Any, rng: np.random.Generator | int | None = None) -> FittedGame:
        """Do once what does not depend on the row."""


@dataclass(frozen=True)
class FunctionGame:
    """A user's own function of coalitions as a game.

    Parameters
    ----------
    function : maps coalitions (m, d) bool to values (m,) or (m, k)
    d : number of players
    player_names : optional names, used in results

    Examples
    --------
    >>> import numpy as np
    >>> game = FunctionGame(lambda coalitions: coalitions @ np.array([1.0, 2.0]), d=2)
    >>> game(np.array([[False, True]]))
    array([2.])
    """

    function: Callable[[BoolArray], Any]
    d: int
    player_names: tuple[str, ...] | None = None

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        coalitions = as_coalitions(coalitions, self.d)
        return as_outputs(self.function(coalitions), len(coalitions), "The game")


@dataclass(frozen=True)
class BoundGame:
    """A fitted game at one row, in the table's type; subclasses say how hidden columns are filled."""

    model: Model
    background: Table
    row: Any  # one row in the background's type

    @property
    def d(self) -> int:
        return self.background.d


@dataclass(frozen=True)
class FittedOnTable:
    """The model and background behind a fitted game; `at` is given by subclasses."""

    model: Model
    background: Table

    @property
    def space(self) -> str:
        """The scale of the game: "probability", "margin" or "value"."""
        return self.model.space

    @property
    def output_names(self) -> tuple[str, ...]:
        return self.model.output_names

    @property
    def info(self) -> Mapping[str, Any]:
        """What this game is, for the result."""
        return {"game": type(self).__name__.removeprefix("Fitted").lower(), "background_rows": len(self.background)}

    def predict(self, rows: Any) -> FloatArray:
        """f(x) of rows, (n,) or (n, k)."""
        return self.model.public(self.model(rows))

    @cached_property
    def mean_prediction(self) -> FloatArray:
        """E f over the background, ([k])."""
        return np.asarray(np.einsum("n,n...->...", self.background.weights, self.predict(self.background.data)))


def wrapped(
    model: Any, background: Any, rng: np.random.Generator | int | None
) -> tuple[Model, Table, np.random.Generator]:
    """A bare model, array and seed as the `Model`, `Table` and Generator that a recipe works with."""
    table = as_table(background, order=trained_columns(model))
    return as_model(model, table), table, as_generator(rng)


@dataclass(frozen=True)
class GivenGame:
    """One bound game in the place of a fitted one: it is the same at every row."""

    game: Any

    def at(self, row: Any) -> Any:
        """The game, whatever the row."""
        return self.game

    def predict(self, rows: Any) -> FloatArray:
        """(n[, k]) the game of all players."""
        return np.stack([_grand(self.game)] * len(rows))


@dataclass(frozen=True)
class GameFunction:
    """A user's function row → Game in the place of a fitted game."""

    function: Callable[[Any], Any]
    background: Table

    def at(self, row: Any) -> Any:
        """The game that the function makes for one row; arrays are handed over as 1-D."""
        return self.function(row if self.background.is_frame else np.asarray(row).reshape(-1))

    def predict(self, rows: Any) -> FloatArray:
        """(n[, k]) the game of all players at each row."""
        return np.stack([_grand(self.at(row_of(rows, r))) for r in range(len(rows))])


def row_of(rows: Any, r: int) -> Any:
    """Row r as a table of one row."""
    return part_of(rows, slice(r, r + 1))


def _grand(game: Any) -> FloatArray:
    game = checked(game)
    return np.asarray(game(np.ones((1, game.d), dtype=np.bool_))[0])


@dataclass
class CheckedGame:
    """A game whose answers are examined, and whose evaluations are counted.

    Every answer must be finite, have one value for each coalition, and the same outputs as before.
    """

    game: Game
    evaluations: int = 0
    out: tuple[int, ...] | None = field(default=None, repr=False)

    @property
    def d(self) -> int:
        return self.game.d

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        values = as_outputs(self.game(coalitions), len(coalitions), "The game")
        self.evaluations += len(coalitions)
        if self.out is None:
            self.out = values.shape[1:]
        if values.shape[1:] != self.out:
            raise ValueError(
                f"The game returned outputs of shape {values.shape[1:]} where it returned {self.out} before. "
                "A game must return the same number of outputs for every coalition."
            )
        return values

    def __getattr__(self, name: str) -> Any:
        if name in ("along", "contributions", "cost", "output", "player_names"):
            return getattr(self.game, name)
        raise AttributeError(name)


def checked(game: Any) -> CheckedGame:
    """`game` as a `CheckedGame`, after looking at what it is."""
    if isinstance(game, CheckedGame):
        return game
    if not callable(game):
        raise TypeError(f"A game must be callable on coalitions (m, d); got {type(game).__name__}.")
    if not hasattr(game, "d") and hasattr(game, "n_players"):
        game = from_shapiq(game)
    d = getattr(game, "d", None)
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)):
        raise TypeError(
            f"A game needs an integer attribute `d`, its number of players; {type(game).__name__} has {d!r}. "
            "Wrap a plain function with weightedshap.games.FunctionGame(function, d), and a shap masker with "
            "weightedshap.games.from_shap(model, masker, x)."
        )
    if d < 1:
        raise ValueError(f"A game needs at least one player; this one has d = {d}.")
    return CheckedGame(game)


@dataclass(frozen=True)
class OutputView:
    """One output of a game with several."""

    game: Any
    index: int

    @property
    def d(self) -> int:
        return int(self.game.d)

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        return np.asarray(self.game(coalitions)[..., self.index])

    def __getattr__(self, name: str) -> Any:
        if name == "along":
            along = self.game.along
            return lambda orders: along(orders)[..., self.index]
        raise AttributeError(name)


def output_of(game: Any, index: int) -> Any:
    """The game of one output; a game with a cheaper way offers it as ``output(index)``."""
    view = getattr(game, "output", None)
    return view(index) if view is not None else OutputView(game, index)


def known_contributions(game: Any) -> Contributions | None:
    """The game's own exact Δ, or None if it does not know it."""
    own = getattr(game, "contributions", None)
    return None if own is None else own()
