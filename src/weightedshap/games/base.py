"""What a game is, to people and inside. Nothing is subtracted: the v(S) of Equation 1 is ``game(S)
− game(∅)``."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray, Seed
from weightedshap.games.surrogates.data import Masked
from weightedshap.inputs import Data, Model, Table, part_of


class Game(Protocol):
    """v(S) at one row: a callable on coalitions of d players.

    It may also have ``along(orders)``, its own exact ``contributions()``, which are else built from
    the call, ``parts`` that it is the mean of, and the ``cost`` of an evaluation, "cheap" or
    "costly", for `weightedshap.estimators.auto`.
    """

    @property
    def d(self) -> int: ...  # how many players there are
    def __call__(
        self, coalitions: BoolArray
    ) -> FloatArray: ...  # (m, d) bool → (m[, k]) predictions


@dataclass(frozen=True)
class Parts:
    """v = Σ_b weight_b v_b: Δ is linear, so a step of a walk through one v_b, drawn by its weight,
    is a draw of Δ."""

    n: int  # how many there are
    # (m, rng) → (m,) parts, by weight; neighbours are alike.
    draw: Callable[[int, np.random.Generator], IntArray]
    # Orders (m, d), parts (m,) → (m, d + 1[, k]) values of the parts.
    along: Callable[[IntArray, IntArray], FloatArray]
    # (n, d, q) what may tell of the steps of each part and player; its mean, by weight, is 0
    traits: FloatArray


class Block(Protocol):
    """The games of n rows at once, inside: rows in front, outputs k, also a single one, at the end
    of every array."""

    @property
    def d(self) -> int: ...
    @property
    def n(self) -> int: ...
    def values(self, coalitions: BoolArray) -> FloatArray: ...  # (m, d) coalitions → (n, m, k)
    def along(
        self, orders: IntArray
    ) -> FloatArray: ...  # (n, m, d) orders → (n, m, d + 1, k), the first 0..d known
    def ends(self) -> FloatArray: ...  # (n, 2, k) game(∅) and game([d])
    def output(self, index: int) -> Self: ...  # the block of one output, k = 1
    def alone(
        self,
    ) -> Game: ...  # the game of the only row of a block of one, for estimators that take one game


class ExactBlock(Block, Protocol):
    """A block that knows its Δ without sampling."""

    def semivalues(
        self, vectors: FloatArray
    ) -> FloatArray: ...  # (m, d) → (n, m, d, k) exact φ_w; Δ for unit vectors


@runtime_checkable
class FittedGame(Protocol):
    """A game that knows model and background and still waits for the row, as people may write
    one."""

    def at(self, row: Data) -> Game: ...
    def predict(self, rows: Data) -> FloatArray: ...  # (n,) or (n, k) f(x) on the scale of the game


class Fitted(FittedGame, ABC):
    """A fitted game of this library, which also gives blocks of rows."""

    at_once: ClassVar[int] = 1  # rows of a block, where memory allows: more if that is faster

    @abstractmethod
    def block(
        self, rows: Data
    ) -> Block: ...  # the games of rows that are aligned with the background
    @abstractmethod
    def outputs(
        self, rows: Data
    ) -> tuple[FloatArray, bool]: ...  # (n, k) f(x), and whether people see the axis k
    @property
    @abstractmethod
    def info(self) -> Mapping[str, Any]: ...  # what this game is, for the result
    @property
    @abstractmethod
    def space(self) -> str: ...  # the scale of the game: "probability", "margin" or "value"
    @property
    @abstractmethod
    def scale(self) -> str: ...  # the same as people say it
    @property
    @abstractmethod
    def output_names(self) -> tuple[str, ...]: ...  # none where the game does not know them
    @property
    @abstractmethod
    def mean_prediction(
        self,
    ) -> FloatArray | float: ...  # ([k]) E f over the background; NaN where it is not known
    @property
    @abstractmethod
    def spread(
        self,
    ) -> FloatArray | float: ...  # ([k]) standard deviation of f over the background; NaN likewise
    @property
    @abstractmethod
    def row_bytes(self) -> int: ...  # about how much memory the block of one row takes

    def predict(self, rows: Data) -> FloatArray:
        """f(x) of aligned rows as people see it, (n,) or (n, k)."""
        f_x, axis = self.outputs(rows)
        return f_x if axis else f_x[:, 0]

    def unasked(self, n: int) -> tuple[FloatArray, bool] | None:
        """(n, k) room for f(x), which blocks ask for, and whether people see k; None where one asks
        for all at once."""
        return None

    def link_from(self, other: FittedGame) -> Callable[[FloatArray], FloatArray] | None:
        """How f(x) follows from that of another game; None where the model is to be asked."""
        return None

    def ready(self) -> Self:
        """The same game, after what every call needs is done: a call only explains."""
        return self

    def stored(self) -> dict[str, Any] | None:
        """What files keep of a learned game, under "recipe" the class that reads it; None for one
        fitted again."""
        return None


class ExactFitted(Fitted):
    """A fitted game whose blocks know their Δ: many rows are read off at once."""

    at_once: ClassVar[int] = 256  # larger blocks save no time and make the progress bar jump

    @abstractmethod
    def block(self, rows: Data) -> ExactBlock: ...


class Anchor(Fitted):
    """A fitted game that gives f(x) itself when all players are known: what a correction can be
    learned on."""

    model: Model
    background: Table

    @property
    def calls(self) -> int:
        """Calls of the model that a value costs when some players are known and some are not."""
        return 0

    def pairs(self, rows: Data, masked: Masked) -> FloatArray:
        """(N, k) the game of row ``rows[masked.row[t]]`` at the coalition
        ``masked.coalition[t]``."""
        order = np.argsort(masked.row, kind="stable")
        of_row = np.split(order, np.flatnonzero(np.diff(masked.row[order])) + 1)
        found = [
            self.block(part_of(rows, masked.row[at[:1]])).values(masked.coalition[at])[0]
            for at in of_row
        ]
        return np.asarray(np.concatenate(found)[np.argsort(order)])


@runtime_checkable
class Recipe(Protocol):
    """How to make a game out of a model and a background."""

    def fit(self, model: Any, background: Data, rng: Seed = None) -> FittedGame: ...
