"""One row and many: people's one-row games as blocks, at the door; blocks of one row as games, for
people."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np

from weightedshap._checks import (
    BoolArray,
    FloatArray,
    IntArray,
    as_generator,
    as_outputs,
    name_of,
    offered,
    with_axis,
)
from weightedshap._format import plural
from weightedshap.coalitions import as_coalitions, as_orders, distinct, ends, prefixes
from weightedshap.contributions import OWN, Contributions
from weightedshap.games.adapters import from_shapiq
from weightedshap.games.base import Block, ExactBlock, Fitted, FittedGame, Game, Parts
from weightedshap.games.surrogates.data import missed
from weightedshap.inputs import (
    Data,
    Model,
    Table,
    as_model,
    as_table,
    is_frame,
    part_of,
    trained_columns,
)


@dataclass
class CheckedGame:
    """A game of one row whose answers are examined (finite, of the same shape always), and whose
    calls are counted."""

    game: Game
    d: int
    along: Callable[[IntArray], FloatArray] | None = None  # the game's own
    contributions: Callable[[], Contributions] | None = None  # the game's own
    cost: str | None = None  # "cheap" or "costly"
    parts: Parts | None = None  # the games that it is the mean of
    player_names: tuple[str, ...] | None = None
    evaluations: int = 0
    out: tuple[int, ...] | None = field(default=None, repr=False)

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        values = as_outputs(self.game(coalitions), len(coalitions), "The game")
        self.evaluations += len(coalitions)
        if self.out is None:
            self.out = values.shape[1:]
        if values.shape[1:] != self.out:
            said = (
                f"The game returned outputs of shape {values.shape[1:]} where it returned"
                f" {self.out} before."
            )
            raise ValueError(
                f"{said} A game must return the same number of outputs for every coalition."
            )
        return values


def checked(game: Any) -> CheckedGame:
    """`game` as a `CheckedGame`, after looking at what it is and what it can do."""
    if isinstance(game, CheckedGame):
        return game
    if not callable(game):
        raise TypeError(f"A game must be callable on coalitions (m, d); got {type(game).__name__}.")
    able = offered(
        game, "d", "n_players", "along", "contributions", "cost", "parts", "player_names"
    )
    if "d" not in able and "n_players" in able:
        return checked(from_shapiq(game))
    d = able.pop("d", None)
    _ = able.pop("n_players", None)
    if isinstance(d, bool) or not isinstance(d, (int, np.integer)):
        said = (
            f"A game needs an integer attribute `d`, its number of players; {type(game).__name__}"
            f" has {d!r}."
        )
        wrap = (
            "Wrap a plain function with weightedshap.games.FunctionGame(function, d), and a shap"
            " masker with"
        )
        raise TypeError(f"{said} {wrap} weightedshap.games.from_shap(model, masker, x).")
    if d < 1:
        raise ValueError(f"A game needs at least one player; this one has d = {d}.")
    return CheckedGame(game, int(d), **able)


def along_distinct(values: Callable[[BoolArray], FloatArray], orders: IntArray) -> FloatArray:
    """(m, d) orders → (m, d + 1[, k]) by `values` of coalitions, each distinct prefix evaluated
    once."""
    m, d = orders.shape
    coalitions = prefixes(orders).reshape(-1, d)
    where, back = distinct(coalitions)
    found = values(coalitions[where])[back]
    return np.asarray(found.reshape(m, d + 1, *found.shape[1:]))


@dataclass(frozen=True)
class Rowwise(ABC):
    """A `Block` whose rows are evaluated one after the other; a subclass says what one row
    gives."""

    d: int
    n: int
    # The position of the single output looked at; None for all.
    only: int | None = field(default=None, kw_only=True)

    @abstractmethod
    def row_values(self, r: int, coalitions: BoolArray) -> FloatArray:
        """(m, d) coalitions → (m, k) all outputs at row r."""

    def row_along(self, r: int, orders: IntArray) -> FloatArray:
        """(m, d) orders → (m, d + 1, k) all outputs at row r."""
        return along_distinct(partial(self.row_values, r), orders)

    def values(self, coalitions: BoolArray) -> FloatArray:
        return self._seen([self.row_values(r, coalitions) for r in range(self.n)])

    def along(self, orders: IntArray) -> FloatArray:
        return self._seen([self.row_along(r, orders[r]) for r in range(self.n)])

    def ends(self) -> FloatArray:
        return self.values(ends(self.d))

    def output(self, index: int) -> Self:
        return replace(self, only=index)

    def alone(self) -> Game:
        return RowGame(self)

    def _seen(self, rows: Sequence[FloatArray]) -> FloatArray:
        return np.stack(rows if self.only is None else [row[..., [self.only]] for row in rows])


@dataclass(frozen=True)
class GivenBlock(Rowwise):
    """People's one-row games as a block."""

    games: tuple[CheckedGame, ...]

    @classmethod
    def of(cls, *games: Game) -> Self:
        looked_at = tuple(map(checked, games))
        return cls(looked_at[0].d, len(games), looked_at)

    def row_values(self, r: int, coalitions: BoolArray) -> FloatArray:
        return with_axis(self.games[r](coalitions))

    def row_along(self, r: int, orders: IntArray) -> FloatArray:
        if (walk := self.games[r].along) is None:
            return super().row_along(r, orders)
        return np.asarray(walk(orders)).reshape(len(orders), self.d + 1, -1)

    def alone(self) -> Game:
        return self.games[0]


@dataclass(frozen=True)
class RowGame:
    """A block of one row as people see it; the axis k is there unless `axis` is False."""

    block: Block
    axis: bool = True

    @property
    def d(self) -> int:
        return self.block.d

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        return self._public(self.block.values(as_coalitions(coalitions, self.d)))

    def _public(self, found: FloatArray) -> FloatArray:
        """The only row of `found` (1, …, k)."""
        return np.asarray(found[0] if self.axis else found[0, ..., 0])


@dataclass(frozen=True)
class WalkingGame(RowGame):
    """A block of one row that has a way of its own along orders."""

    cost: str | None = None

    def along(self, orders: IntArray) -> FloatArray:
        """(m, d) orders → (m, d + 1[, k]) predictions when the first 0..d players are known."""
        return self._public(self.block.along(as_orders(orders, self.d)[None]))


@dataclass(frozen=True)
class ExactGame(WalkingGame):
    """A block of one row that knows its Δ."""

    block: ExactBlock

    def contributions(self) -> Contributions:
        """The exact Δ."""
        return Contributions.known(self._public(self.block.semivalues(np.eye(self.d))), stopped=OWN)


@dataclass(frozen=True)
class JoinedBlock(ABC):
    """A `Block` whose values are those of other blocks of the same rows, joined."""

    cost: ClassVar[str | None] = "cheap"
    parts: tuple[Block, ...]

    @property
    def d(self) -> int:
        return self.parts[0].d

    @property
    def n(self) -> int:
        return self.parts[0].n

    @abstractmethod
    def joined(self, found: Sequence[FloatArray], size: IntArray) -> FloatArray:
        """(n, …, m, k) from what each part gives, at coalitions of sizes (m,)."""

    def values(self, coalitions: BoolArray) -> FloatArray:
        return self.joined([part.values(coalitions) for part in self.parts], coalitions.sum(axis=1))

    def along(self, orders: IntArray) -> FloatArray:
        return self.joined([part.along(orders) for part in self.parts], np.arange(self.d + 1))

    def ends(self) -> FloatArray:
        return self.joined([part.ends() for part in self.parts], np.array([0, self.d]))

    def output(self, index: int) -> Self:
        return replace(self, parts=tuple(part.output(index) for part in self.parts))

    def alone(self) -> Game:
        return WalkingGame(self, cost=self.cost)


@dataclass(frozen=True, repr=False)
class FittedOnTable(Fitted):
    """The model and background behind a fitted game; `block` is given by subclasses."""

    model: Model
    background: Table

    def __repr__(self) -> str:
        info = self.info
        words = {"trees": "tree", "leaves": "leaf"}
        facts = [
            str(self.background),
            *(plural(info[many], one, many) for many, one in words.items() if many in info),
        ]
        of = name_of(self.model.original)
        return (
            f"{info['game']} game of {of}, explains its {self.scale}\n "
            f" {', '.join(facts)}{missed(info)}"
        )

    @property
    def space(self) -> str:
        return self.model.space

    @cached_property
    def scale(self) -> str:
        """What the game calls its numbers; margins that the user's link makes are log-odds."""
        odds = self.model.link == "logit" and self.space == "margin"
        plain = "prediction" if self.space == "value" else self.space
        return str(self.info.get("scale", "log-odds" if odds else plain))

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        return self.model.output_names

    @property
    def info(self) -> Mapping[str, Any]:
        name = type(self).__name__.removeprefix("Fitted").lower()
        return {"game": name, "space": self.space, "background_rows": len(self.background)}

    def outputs(self, rows: Data) -> tuple[FloatArray, bool]:
        return (self.model.on_one_thread or self.model)(rows), self.model.has_axis

    @property
    def one_thread(self) -> bool:  # whether f(x) takes one
        return self.model.on_one_thread is not None

    def unasked(self, n: int) -> tuple[FloatArray, bool] | None:
        return (
            (np.full((n, len(self.output_names)), np.nan), self.model.has_axis)
            if self.one_thread
            else None
        )

    @property
    def inner(self) -> tuple[Fitted, ...]:
        """The games that it is made of."""
        return ()

    @property
    def row_bytes(self) -> int:
        return sum(game.row_bytes for game in self.inner)

    def ready(self) -> Self:
        _ = (
            [game.ready() for game in self.inner],
            self.mean_prediction,
            self.info,
            self.output_names,
            self.scale,
        )
        return self

    def at(self, row: Data) -> Game:
        game = self.block(self.background.align(row, "row")).alone()
        assert isinstance(game, RowGame)
        return replace(game, axis=self.model.has_axis)

    @cached_property
    def mean_prediction(self) -> FloatArray:
        return np.asarray(
            np.einsum("n,n...->...", self.background.weights, self.predict(self.background.data))
        )

    @cached_property
    def spread(self) -> FloatArray:
        squared = (self.predict(self.background.data) - self.mean_prediction) ** 2
        return np.asarray(np.sqrt(np.einsum("n,n...->...", self.background.weights, squared)))


@dataclass(frozen=True)
class GivenFitted(Fitted):
    """People's own games, one for each row, in the place of a fitted game."""

    bind: Callable[[Any], Game]  # of a table of one row
    predictor: Callable[[Any], FloatArray] | None = (
        None  # f(x) of rows; None takes the game of all players
    )
    about: Mapping[str, Any] = field(default_factory=lambda: {"game": "given"})
    output_names: tuple[str, ...] = ()
    mean_prediction: FloatArray | float = np.nan
    spread = np.nan
    space = "value"
    scale = "prediction"
    row_bytes = 0

    @property
    def info(self) -> Mapping[str, Any]:
        return self.about

    def at(self, row: Data) -> Game:
        return self.bind(row)

    def block(self, rows: Data) -> GivenBlock:
        return GivenBlock.of(*(self.bind(part_of(rows, slice(r, r + 1))) for r in range(len(rows))))

    def outputs(self, rows: Data) -> tuple[FloatArray, bool]:
        if self.predictor is not None:
            f_x = np.asarray(self.predictor(rows))
        else:
            f_x = np.stack([game(ends(game.d)[1:])[0] for game in self.block(rows).games])
        return with_axis(f_x), f_x.ndim == 2


def as_fitted(game: Any, background: Table) -> Fitted:
    """A fitted game of this library as it is; one of people's own, or a function row → Game, made
    to look like it."""
    if isinstance(game, Fitted):
        return game
    if isinstance(game, FittedGame):
        about = offered(game, "info").get("info", {"game": "given"})
        return GivenFitted(
            game.at, game.predict, about, **offered(game, "output_names", "mean_prediction")
        )
    if not callable(game):
        known = (
            "a name, a recipe with `fit`, a fitted game with `at` and `predict`, or a function row"
            " → Game"
        )
        raise TypeError(f"`game` must be {known}; got {type(game).__name__}.")
    return GivenFitted(game if is_frame(background.data) else partial(_of_flat_row, game))


def _of_flat_row(game: Callable[[Any], Game], row: Data) -> Game:
    return game(np.asarray(row).reshape(-1))


def wrapped(model: Any, background: Data, rng: object) -> tuple[Model, Table, np.random.Generator]:
    """A bare model, array and seed as the `Model`, `Table` and Generator that a recipe works
    with."""
    table = as_table(background, order=trained_columns(model))
    return as_model(model, table), table, as_generator(rng)
