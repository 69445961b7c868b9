"""Blocks of games that are read off trees; loaded, with the compiled loops, when the first is made."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Self, TypeVar

import numpy as np

from weightedshap.checks import BoolArray, FloatArray, IntArray
from weightedshap.games.wrappers import ExactGame
from weightedshap.trees.backgrounds import Background, FewRows, absent_rows
from weightedshap.trees.ensembles import Ensemble, coefficient_table
from weightedshap.trees.points import Descent, Semivalues

Made = TypeVar("Made")


class Latest(Generic[Made]):
    """What was made of the latest weight vectors: all blocks of a call ask for the same, so it is made once."""

    def __init__(self, make: Callable[[FloatArray], Made]) -> None:
        self.make = make
        self.latest: tuple[FloatArray, Made] | None = None

    def __call__(self, vectors: FloatArray) -> Made:
        latest = self.latest  # another thread may set another one meanwhile
        if latest is None or latest[0] is not vectors:
            self.latest = latest = vectors, self.make(vectors)
        return latest[1]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.make,)


@dataclass(frozen=True)
class TreeBlock(ABC):
    """The games of n rows, an `ExactBlock` read off trees."""

    outputs: tuple[Any, ...]  # what is known of each
    d: int
    n: int

    @abstractmethod
    def values(self, coalitions: BoolArray) -> FloatArray: ...

    @abstractmethod
    def along(self, orders: IntArray) -> FloatArray: ...

    @abstractmethod
    def ends(self) -> FloatArray: ...

    @abstractmethod
    def semivalues(self, vectors: FloatArray) -> FloatArray: ...

    def output(self, index: int) -> Self:
        return replace(self, outputs=self.outputs[index : index + 1])

    def alone(self) -> ExactGame:
        return ExactGame(self)


@dataclass(frozen=True)
class LeafBlock(TreeBlock):
    """Games whose hidden features take the values of absent rows."""

    outputs: tuple[tuple[FewRows | Background, Any], ...]  # and what these know of the rows
    table: Latest[FloatArray]  # the coefficients K(s, t) times weight vectors, see `coefficient_table`

    def values(self, coalitions: BoolArray) -> FloatArray:
        known = np.ascontiguousarray(coalitions)
        return self._filled((len(known),), lambda absent, rows, out: absent.values(rows, known, out))

    def along(self, orders: IntArray) -> FloatArray:
        walked = np.ascontiguousarray(orders)
        return self._filled((orders.shape[1], self.d + 1), lambda absent, rows, out: absent.along(rows, walked, out))

    def ends(self) -> FloatArray:
        return self._filled((2,), lambda absent, rows, out: absent.ends(rows, out))

    def semivalues(self, vectors: FloatArray) -> FloatArray:
        table = self.table(vectors)
        return self._filled((len(vectors), self.d), lambda absent, rows, out: absent.semivalues(rows, table, out))

    def _filled(
        self, shape: tuple[int, ...], fill: Callable[[FewRows | Background, Any, FloatArray], None]
    ) -> FloatArray:
        """(n, *shape, k); outputs stay apart in memory, and are filled one by one."""
        out = np.empty((len(self.outputs), self.n, *shape))
        for one, of_one in zip(self.outputs, out, strict=True):
            fill(*one, of_one)
        return np.moveaxis(out, 0, -1)


@dataclass(frozen=True)
class LeafGames:
    """X (n, c) → the games of these rows, whose hidden features take the values of absent rows."""

    absent: tuple[FewRows | Background, ...]  # as the ensemble of each output sees them
    d: int
    table: Latest[FloatArray]  # the coefficients K(s, t) times weight vectors, see `coefficient_table`

    @classmethod
    def of(cls, ensembles: Sequence[Ensemble], Z: FloatArray, weights: FloatArray, d: int) -> Self:
        """The absent rows Z (B, c) with weights (B,)."""
        absent = tuple(absent_rows(ensemble, Z, weights) for ensemble in ensembles)
        coefficients = coefficient_table(d, max(one.widest for one in absent))
        return cls(absent, d, Latest(partial(_times, coefficients)))

    def __call__(self, X: FloatArray) -> LeafBlock:
        return LeafBlock(tuple((one, one.at(X)) for one in self.absent), self.d, len(X), self.table)

    @property
    def row_bytes(self) -> int:
        """About how much memory is held of a row."""
        return sum(one.row_bytes for one in self.absent)


def _times(coefficients: FloatArray, vectors: FloatArray) -> FloatArray:
    return np.ascontiguousarray(coefficients @ vectors.T)


@dataclass(frozen=True)
class PathBlock(TreeBlock):
    """Path-dependent games."""

    outputs: tuple[tuple[Ensemble, Latest[Semivalues], BoolArray], ...]  # and the directions of the rows (n, I)

    @classmethod
    def of(cls, readers: Sequence[tuple[Ensemble, Latest[Semivalues]]], X: FloatArray, d: int) -> Self:
        """The games of rows X (n, c)."""
        return cls(tuple((e, reader, e.directions(X)) for e, reader in readers), d, len(X))

    def values(self, coalitions: BoolArray) -> FloatArray:
        known = np.ascontiguousarray(coalitions)
        return together(e.path_values(goes, known) for e, _, goes in self.outputs)

    def along(self, orders: IntArray) -> FloatArray:
        return together(e.path_along(goes, orders) for e, _, goes in self.outputs)

    def ends(self) -> FloatArray:
        empty = (np.full(self.n, e.mean_by_cover) for e, _, _ in self.outputs)
        full = (e.walk(goes) for e, _, goes in self.outputs)
        return np.stack([together(empty), together(full)], axis=1)

    def semivalues(self, vectors: FloatArray) -> FloatArray:
        out = np.zeros((len(self.outputs), self.n, len(vectors), self.d))
        for (_, reader, goes), phi in zip(self.outputs, out, strict=True):
            reader(vectors).fill(goes, phi)
        return np.moveaxis(out, 0, -1)


def together(outputs: Iterable[FloatArray]) -> FloatArray:
    """(n, …) of each output → (n, …, k); in memory outputs stay one after the other."""
    return np.moveaxis(np.stack(list(outputs)), 0, -1)


def path_games(ensembles: Sequence[Ensemble], d: int) -> Callable[[FloatArray], PathBlock]:
    """X (n, c) → the games of these rows, whose splits on hidden features are averaged by cover."""
    readers = [(e, Latest(partial(Semivalues.of, e, Descent.of(e)))) for e in ensembles]
    return partial(PathBlock.of, readers, d=d)


def mask_game(ensembles: Sequence[Ensemble], d: int) -> ExactGame:
    """The game of ensembles trained on 0/1 masks, column i being 1 where player i is known; its Δ is exact."""
    games = LeafGames.of(ensembles, np.zeros((1, d)), np.ones(1), d)
    return ExactGame(games(np.ones((1, d))), axis=False)
