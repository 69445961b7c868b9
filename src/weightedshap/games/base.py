"""Protocols for users' own games, and base classes of the games in this library.

A `Game` is v(S) at one row. A `Recipe` is fitted to a model and a background; the result is a
`FittedGame`, which returns the `Game` of any row. Inside the library a fitted game is a `BaseGame`,
and is evaluated for many rows at once as a `GameBatch`; users and estimators see a batch of one row
as a `RowGame`. Nothing is subtracted: the v(S) of Equation 1 is ``game(S) − game(∅)``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray, Seed, name_of
from weightedshap._format import plural
from weightedshap.coalitions import (
    as_coalitions,
    as_orders,
    empty_and_full,
    prefixes,
    unique_coalitions,
)
from weightedshap.contributions import EXACT_BY_GAME, Contributions
from weightedshap.games.surrogates.data import MaskedRows, relative_errors_text
from weightedshap.inputs import Data, Model, Table, take_rows
from weightedshap.inputs.rows import Rows


class Game(Protocol):
    """The coalition function v(S) at one row: a callable on coalitions of d players.

    Optional attributes: ``along(orders)`` returns the values along orders of the players;
    ``contributions()`` returns the exact Δ; ``parts`` contains the games whose mean this game is
    (`GameParts`); ``cost``, "cheap" or "costly", is that of one evaluation, for
    `weightedshap.estimators.auto`; ``player_names`` are the names of the players.
    """

    @property
    def d(self) -> int: ...  # the number of players
    def __call__(self, coalitions: BoolArray) -> FloatArray: ...  # (m, d) bool → (m[, k])


@runtime_checkable
class Recipe(Protocol):
    """The settings of a kind of game; ``fit`` builds the game for a model and a background."""

    def fit(self, model: Any, background: Data, rng: Seed = None) -> FittedGame: ...


@runtime_checkable
class FittedGame(Protocol):
    """A game fitted to a model and a background; ``at(row)`` returns the `Game` of one row.

    Users may write their own.
    """

    def at(self, row: Data) -> Game: ...
    def predict(self, rows: Data) -> FloatArray: ...  # (n[, k]) f(x) on the scale of the game


@dataclass(frozen=True)
class GameParts:
    """The games v_b, with weights, whose weighted mean is a given game: v = Σ_b weight_b v_b.

    Δ is linear in the game. So if b is drawn by weight, the change of v_b when a player is added to
    a random coalition is a random number whose mean is Δ.
    """

    n: int  # number of parts
    # (m, rng) → (m,) parts drawn by weight, with similar parts next to each other
    draw: Callable[[int, np.random.Generator], IntArray]
    # orders (m, d), parts (m,) → (m, d + 1[, k]) values of part t along order t
    along: Callable[[IntArray, IntArray], FloatArray]
    # () → (n, d, q) control variates for each part and player, with weighted mean 0
    control_variates: Callable[[], FloatArray]


class BaseGame(ABC):
    """A fitted game of this library, which can be evaluated for many rows at once.

    A subclass is a frozen dataclass whose first two fields are `model` and `background`. It
    implements `batch`, and overrides the attributes whose defaults do not fit.
    """

    model: Model
    background: Table

    label: ClassVar[str]  # the name of the game in results
    # Whether v([d]) = f(x), so that a correction can be anchored to the game.
    matches_model: ClassVar[bool] = False
    # Whether batches return exact Δ, by `GameBatch.semivalues`.
    is_exact: bool = False
    # Rows in a block, if memory allows: more than one where evaluating rows together is faster.
    rows_per_block: ClassVar[int] = 1

    @abstractmethod
    def batch(self, rows: Rows) -> GameBatch:
        """Return the games at all `rows` as one batch.

        Other games and models are called through `rows`, which caches their results.
        """

    @property
    def asks_by_block(self) -> bool:
        """Whether the model is called once for each block of rows, not once for all rows."""
        return self.model.single_threaded is not None

    @property
    def parts(self) -> tuple[BaseGame, ...]:
        """The games that this game combines; an empty tuple if it does not combine games."""
        return ()

    @property
    def bytes_per_row(self) -> int:
        """The approximate memory that a batch needs for each row, in bytes."""
        return sum(part.bytes_per_row for part in self.parts)

    @property
    def calls_per_value(self) -> int:
        """The number of model calls for one coalition that is neither empty nor full."""
        return 0

    def predictions(self, rows: Rows) -> FloatArray:
        """Return f(x) (n, k) on the scale of the game: by default the model's predictions."""
        return rows.ask(self.model)

    @property
    def output_axis(self) -> bool | None:
        """Whether results have an axis of outputs; None if that is known only from values."""
        return self.model.has_output_axis

    def has_output_axis(self, rows: Rows) -> bool:
        """Return whether results for `rows` have an axis of outputs."""
        return self.model.has_output_axis

    def predict(self, rows: Data) -> FloatArray:
        """Return f(x), (n,) or (n, k), on the game's scale, for `rows` with the table's columns."""
        own_rows = Rows(rows)
        f_x = self.predictions(own_rows)
        return f_x if self.has_output_axis(own_rows) else f_x[:, 0]

    def at(self, row: Data) -> Game:
        """Return the game at one row."""
        batch = self.batch(Rows(self.background.align(row, "row")))
        return batch.row_game(axis=self.model.has_output_axis)

    def values_at(self, rows: Data, masked: MaskedRows) -> FloatArray:
        """Return the values (N, k) of the game at N masked rows: rows with some features hidden.

        Corrections and judges are fitted to these values. Here one batch is built for each row; a
        subclass overrides the method where that is slow.
        """
        order = np.argsort(masked.row, kind="stable")
        row_starts = np.flatnonzero(np.diff(masked.row[order])) + 1
        values = []
        for places in np.split(order, row_starts):
            row = Rows(take_rows(rows, masked.row[places[:1]]))
            values.append(self.batch(row).values(masked.coalition[places])[0])
        return np.asarray(np.concatenate(values)[np.argsort(order)])

    def warm_up(self) -> Self:
        """Compute in advance everything that all batches share; return this game."""
        for part in self.parts:
            part.warm_up()
        return self

    def state(self) -> dict[str, Any] | None:
        """Return a learned game as a dict to save; None for a game that can be refitted quickly.

        The item "recipe" is the name of the recipe whose ``from_state`` rebuilds the game.
        """
        return None

    @property
    def info(self) -> Mapping[str, Any]:
        """The name, scale and quality of the game, as shown in results."""
        return {
            "game": self.label,
            "space": self.space,
            "background_rows": len(self.background),
        }

    @property
    def space(self) -> str:
        """The scale of the game: "probability", "margin" or "value"."""
        return self.model.space

    @cached_property
    def scale(self) -> str:
        """The name of the scale in texts: "log-odds" for margins that ``link="logit"`` gives."""
        is_log_odds = self.model.link == "logit" and self.space == "margin"
        plain = "prediction" if self.space == "value" else self.space
        return str(self.info.get("scale", "log-odds" if is_log_odds else plain))

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """The names of the explained outputs."""
        return self.model.output_names

    @cached_property
    def mean_prediction(self) -> FloatArray | float:
        """The mean prediction over the background, () or (k,)."""
        f = self.predict(self.background.data)
        return np.asarray(np.einsum("n,n...->...", self.background.weights, f))

    @cached_property
    def prediction_sd(self) -> FloatArray | float:
        """The standard deviation of the predictions over the background, () or (k,)."""
        squares = (self.predict(self.background.data) - self.mean_prediction) ** 2
        return np.asarray(np.sqrt(np.einsum("n,n...->...", self.background.weights, squares)))

    def __repr__(self) -> str:
        info = self.info
        facts = [str(self.background)]
        for many, one in (("trees", "tree"), ("leaves", "leaf")):
            if many in info:
                facts.append(plural(info[many], one, many))
        of = name_of(self.model.original)
        head = f"{info['game']} game of {of}, explains its {self.scale}"
        return f"{head}\n  {', '.join(facts)}{relative_errors_text(info)}"


@dataclass(frozen=True, eq=False)
class GameBatch(ABC):
    """The games of n rows, evaluated together.

    The first axis of every array is that of the rows and the last one that of the outputs, even if
    there is only one output.
    """

    game: BaseGame
    rows: Rows
    # Positions of the outputs among those of the game; None for all.
    outputs: tuple[int, ...] | None = field(default=None, kw_only=True)
    # Whether `semivalues` returns exact Δ; otherwise it raises an error.
    is_exact: bool = field(default=False, kw_only=True)

    # Whether `along` is cheaper than evaluating coalition by coalition. Only then does the game of
    # a row offer `along`, because samplers evaluate such games in another way.
    walks: ClassVar[bool] = True
    # Whether an evaluation is "cheap" or "costly", for the choice of an estimator.
    cost: ClassVar[str | None] = None

    @property
    def d(self) -> int:
        """The number of players."""
        return len(self.game.background.players)

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.rows.data)

    @cached_property
    def predictions(self) -> FloatArray:
        """The predictions f(x) (n, k) of the rows, computed at first use."""
        f_x = self.rows.ask(self.game)
        return f_x if self.outputs is None else f_x[:, list(self.outputs)]

    @abstractmethod
    def values(self, coalitions: BoolArray) -> FloatArray:
        """Return the values v(S) (n, m, k) of all n games at coalitions (m, d)."""

    @abstractmethod
    def along(self, orders: IntArray) -> FloatArray:
        """Return v (n, m, d + 1, k) with the first 0, …, d players of orders (n, m, d) known."""

    def endpoints(self) -> FloatArray:
        """Return the values (n, 2, k) at the empty and the full coalition, v(∅) and v([d])."""
        return self.values(empty_and_full(self.d))

    def semivalues(self, vectors: FloatArray) -> FloatArray:
        """Return exact attributions φ_w (n, m, d, k) under weights (m, d); unit vectors give Δ."""
        raise NotImplementedError(f"{type(self).__name__} has no exact Δ.")

    def output(self, index: int) -> Self:
        """Return the batch with a single output (k = 1), the one at position `index`."""
        return self.select((index,))

    def select(self, outputs: Sequence[int]) -> Self:
        """Return the batch with only the outputs at the positions `outputs`."""
        chosen = outputs if self.outputs is None else [self.outputs[o] for o in outputs]
        return replace(self, outputs=tuple(chosen))

    def game_parts(self) -> GameParts | None:
        """Return the games whose mean is the game of a single row; None if it is not a mean."""
        return None

    def row_game(self, axis: bool = True) -> Game:
        """Return the game of a single row; if `axis` is true, values have an axis of outputs."""
        return RowGame(self, axis)


@dataclass(frozen=True)
class RowGame:
    """The game of one row, made from a batch of one row; it checks its arguments.

    The optional attributes `along`, `contributions` and `parts` are None if the batch does not
    support them.
    """

    batch: GameBatch
    axis: bool = True  # whether outputs have an axis
    walks: bool | None = None  # whether to offer `along`; None: as ``batch.walks``

    @property
    def d(self) -> int:
        """The number of players."""
        return self.batch.d

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        """Return the values v(S), (m,) or (m, k), at coalitions (m, d)."""
        return self._drop_row_axis(self.batch.values(as_coalitions(coalitions, self.d)))

    @property
    def along(self) -> Callable[[IntArray], FloatArray] | None:
        """A function that returns v, (m, d + 1) or (m, d + 1, k), along orders (m, d).

        None if that is no cheaper than to evaluate coalition by coalition.
        """
        walks = self.batch.walks if self.walks is None else self.walks
        return self._along if walks else None

    @property
    def contributions(self) -> Callable[[], Contributions] | None:
        """A function that returns the exact Δ; None if Δ can only be estimated by sampling."""
        return self._contributions if self.batch.is_exact else None

    @property
    def parts(self) -> GameParts | None:
        """The games whose mean is this game, as `GameParts`; None if it is not a mean."""
        parts = self.batch.game_parts()
        if parts is None:
            return None
        return replace(parts, along=partial(self._along_parts, parts.along))

    @property
    def cost(self) -> str | None:
        """The cost of an evaluation, "cheap" or "costly"."""
        return self.batch.cost

    def _along(self, orders: IntArray) -> FloatArray:
        """Return v, (m, d + 1) or (m, d + 1, k), along orders (m, d)."""
        return self._drop_row_axis(self.batch.along(as_orders(orders, self.d)[None]))

    def _along_parts(
        self, along: Callable[[IntArray, IntArray], FloatArray], orders: IntArray, parts: IntArray
    ) -> FloatArray:
        """Return the values of the games `parts` along orders (m, d), computed by ``along``."""
        values = along(orders, parts)
        return values if self.axis else values[..., 0]

    def _contributions(self) -> Contributions:
        """Return the exact Δ of the row as a `Contributions` object."""
        delta = self.batch.semivalues(np.eye(self.d))
        return Contributions.from_exact(self._drop_row_axis(delta), stopped=EXACT_BY_GAME)

    def _drop_row_axis(self, values: FloatArray) -> FloatArray:
        """Return values (1, …, k) without the first axis, and without k if `axis` is false."""
        return np.asarray(values[0] if self.axis else values[0, ..., 0])


@dataclass(frozen=True, eq=False)
class RowwiseBatch(GameBatch):
    """A batch that evaluates its rows one by one, by `row_values` of a subclass."""

    walks: ClassVar[bool] = False

    @abstractmethod
    def row_values(self, r: int, coalitions: BoolArray) -> FloatArray:
        """Return the values (m, k) of all outputs for row r, at coalitions (m, d)."""

    def row_along(self, r: int, orders: IntArray) -> FloatArray:
        """Return the values (m, d + 1, k) of all outputs for row r, along orders (m, d)."""
        return along_by_coalitions(partial(self.row_values, r), orders)

    def values(self, coalitions: BoolArray) -> FloatArray:
        return self._stack([self.row_values(r, coalitions) for r in range(self.n)])

    def along(self, orders: IntArray) -> FloatArray:
        return self._stack([self.row_along(r, orders[r]) for r in range(self.n)])

    def _stack(self, rows: Sequence[FloatArray]) -> FloatArray:
        """Stack one array (…, k) for each row into (n, …, k), with only the batch's outputs."""
        if self.outputs is not None:
            rows = [row[..., list(self.outputs)] for row in rows]
        return np.stack(rows)


def along_by_coalitions(values: Callable[[BoolArray], FloatArray], orders: IntArray) -> FloatArray:
    """Return v along orders (m, d), evaluating `values` once at each distinct coalition."""
    m, d = orders.shape
    coalitions = prefixes(orders).reshape(-1, d)
    first, inverse = unique_coalitions(coalitions)
    v = values(coalitions[first])[inverse]
    return np.asarray(v.reshape(m, d + 1, *v.shape[1:]))
