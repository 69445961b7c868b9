"""Games written by the user: check games of one row, and combine them into batches of rows.

A user's game is any callable with an attribute `d` that maps coalitions (m, d) to values. A user's
fitted game has ``at(row)`` and ``predict(rows)``, or is a function of a row. This module wraps
both, so that other modules can treat them like the library's games; `weightedshap.config`, curves
and utilities call it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from weightedshap._checks import (
    BoolArray,
    FloatArray,
    IntArray,
    as_2d,
    as_generator,
    as_outputs,
    optional_attrs,
)
from weightedshap.coalitions import empty_and_full
from weightedshap.contributions import Contributions
from weightedshap.games.adapters import from_shapiq
from weightedshap.games.base import BaseGame, FittedGame, Game, GameParts, RowwiseBatch
from weightedshap.inputs import (
    Data,
    Model,
    Table,
    as_model,
    as_table,
    is_frame,
    take_rows,
    trained_columns,
)
from weightedshap.inputs.rows import Rows


@dataclass
class CheckedGame:
    """A game of one row that counts evaluations; it checks that values are finite, of one shape."""

    game: Game
    d: int
    along: Callable[[IntArray], FloatArray] | None = None  # that of the game
    contributions: Callable[[], Contributions] | None = None  # that of the game
    cost: str | None = None  # "cheap" or "costly"
    parts: GameParts | None = None  # the games whose mean it is
    player_names: tuple[str, ...] | None = None
    evaluations: int = 0  # number of coalitions evaluated so far
    out: tuple[int, ...] | None = field(default=None, repr=False)  # the shape of one value

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        values = as_outputs(self.game(coalitions), len(coalitions), "The game")
        self.evaluations += len(coalitions)
        if self.out is None:
            self.out = values.shape[1:]
        if values.shape[1:] != self.out:
            raise ValueError(
                f"The game returned outputs of shape {values.shape[1:]} where it returned"
                f" {self.out} before. A game must return the same number of outputs for every"
                " coalition."
            )
        return values


def check_game(game: Any) -> CheckedGame:
    """Wrap `game` as a `CheckedGame`; raise an error if it is not a game."""
    if isinstance(game, CheckedGame):
        return game
    if not callable(game):
        raise TypeError(f"A game must be callable on coalitions (m, d); got {type(game).__name__}.")
    attributes = optional_attrs(
        game, "d", "n_players", "along", "contributions", "cost", "parts", "player_names"
    )
    if "d" not in attributes and "n_players" in attributes:
        return check_game(from_shapiq(game))

    d = attributes.pop("d", None)
    attributes.pop("n_players", None)
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)):
        raise TypeError(
            f"A game needs an integer attribute `d`, its number of players; {type(game).__name__}"
            f" has {d!r}. Wrap a plain function with weightedshap.games.FunctionGame(function, d),"
            " and a shap masker with weightedshap.games.from_shap(model, masker, x)."
        )
    if d < 1:
        raise ValueError(f"A game needs at least one player; this one has d = {d}.")
    return CheckedGame(game, int(d), **attributes)


@dataclass(frozen=True, repr=False)
class UserGame(BaseGame):
    """A fitted game made from the user's games, one for each row."""

    label = "given"

    # Maps a table of one row to its game.
    game_at: Callable[[Any], Game]
    # Maps rows to f(x); None takes v([d]).
    predictor: Callable[[Any], FloatArray] | None = None
    description: Mapping[str, Any] = field(default_factory=lambda: {"game": "given"})
    output_names: tuple[str, ...] = ()
    mean_prediction: FloatArray | float = np.nan
    prediction_sd = np.nan
    space = "value"
    scale = "prediction"
    bytes_per_row = 0

    @property
    def info(self) -> Mapping[str, Any]:
        return self.description

    @property
    def asks_by_block(self) -> bool:
        # Without a predictor f(x) comes from the games, which are built block by block.
        return self.predictor is None

    def at(self, row: Data) -> Game:
        return self.game_at(row)

    def batch(self, rows: Rows) -> UserBatch:
        return UserBatch(self, rows)

    def predictions(self, rows: Rows) -> FloatArray:
        return as_2d(self._answer(rows))

    @property
    def output_axis(self) -> None:
        return None

    def has_output_axis(self, rows: Rows) -> bool:
        # Only the values of a user's game show whether there are several outputs.
        return self._answer(rows).ndim == 2

    def _answer(self, rows: Rows) -> FloatArray:
        """Return f(x), (n,) or (n, k), from the user's predictor or, without one, as v([d])."""
        if self.predictor is not None:
            predict = self.predictor
            return rows.remember(predict, lambda: np.asarray(predict(rows.data)))
        games = rows.bind(self).games

        def full_values() -> FloatArray:
            return np.stack([game(empty_and_full(game.d)[1:])[0] for game in games])

        return rows.remember(self.game_at, full_values)

    def __repr__(self) -> str:
        return f"UserGame({self.description!r})"


@dataclass(frozen=True, eq=False)
class UserBatch(RowwiseBatch):
    """A batch of the user's games, one for each row."""

    game: UserGame

    @cached_property
    def games(self) -> tuple[CheckedGame, ...]:
        """The game of each row, as a `CheckedGame`."""
        rows = self.rows.data
        bound = (self.game.game_at(take_rows(rows, slice(r, r + 1))) for r in range(self.n))
        return tuple(map(check_game, bound))

    @property
    def d(self) -> int:
        return self.games[0].d

    def row_values(self, r: int, coalitions: BoolArray) -> FloatArray:
        return as_2d(self.games[r](coalitions))

    def row_along(self, r: int, orders: IntArray) -> FloatArray:
        along = self.games[r].along
        if along is None:
            return super().row_along(r, orders)
        return np.asarray(along(orders)).reshape(len(orders), self.d + 1, -1)

    def row_game(self, axis: bool = True) -> Game:
        return self.games[0]


def as_batch(game: Game, f_x: float | None = None) -> UserBatch:
    """Wrap the game of one row as a batch; `f_x` is the row's prediction, v([d]) if omitted."""
    bound = check_game(game)
    predictor = None if f_x is None else lambda rows: np.array([f_x])
    fitted = UserGame(lambda row: bound, predictor)
    return fitted.batch(Rows(np.full((1, bound.d), np.nan)))


def as_base_game(game: Any, background: Table) -> BaseGame:
    """Convert a fitted game to a `BaseGame`, wrapping a user's game in a `UserGame`."""
    if isinstance(game, BaseGame):
        return game
    if isinstance(game, FittedGame):
        description = optional_attrs(game, "info").get("info", {"game": "given"})
        attributes = optional_attrs(game, "output_names", "mean_prediction")
        return UserGame(game.at, game.predict, description, **attributes)
    if not callable(game):
        expected = (
            "a name, a recipe with `fit`, a fitted game with `at` and `predict`, or a function row"
            " → Game"
        )
        raise TypeError(f"`game` must be {expected}; got {type(game).__name__}.")
    return UserGame(game if is_frame(background.data) else partial(_bind_flat_row, game))


def _bind_flat_row(game: Callable[[Any], Game], row: Data) -> Game:
    """Return the user's game for one row, passing the row with shape (c,) instead of (1, c)."""
    return game(np.asarray(row).reshape(-1))


def as_model_and_table(
    model: Any, background: Data, rng: object
) -> tuple[Model, Table, np.random.Generator]:
    """Convert a model, background and seed to the Model, Table and Generator that recipes use."""
    table = as_table(background, order=trained_columns(model))
    return as_model(model, table), table, as_generator(rng)
