"""Blocks of games that are read off trees; loaded, with the compiled loops, when the first is made."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from weightedshap.checks import BoolArray, FloatArray, IntArray
from weightedshap.games.wrappers import ExactGame
from weightedshap.trees import lane_kernels
from weightedshap.trees.backgrounds import absent_rows
from weightedshap.trees.ensembles import Ensemble, Steps, alike
from weightedshap.trees.points import Descent, Semivalues

KEPT_BYTES = 2**28  # of walks that another game will ask for
Made = TypeVar("Made")
Weigher = Callable[[Any, FloatArray], None]
"""Fills in φ_w (n, m, d) of rows under m weight vectors."""


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


class Reader(Protocol):
    """k ensembles with the same nodes under one way of removing features.

    What `at` finds of rows, the other methods ask for; they fill in arrays with the outputs in front.
    """

    @property
    def ensembles(self) -> tuple[Ensemble, ...]: ...
    @property
    def row_bytes(self) -> int: ...
    def only(self, output: int, rows: Any) -> tuple[Self, Any]: ...
    def at(self, X: FloatArray) -> Any: ...
    def weigher(self, vectors: FloatArray) -> Weigher: ...
    def ends(self, rows: Any, out: FloatArray) -> None: ...
    def values(self, rows: Any, coalitions: BoolArray, out: FloatArray) -> None: ...
    def along(self, rows: Any, orders: IntArray, out: FloatArray) -> None: ...


@dataclass(frozen=True)
class TreeBlock:
    """The games of n rows, an `ExactBlock` read off trees."""

    parts: tuple[tuple[Reader, Latest[Weigher], Any], ...]  # of outputs: a reader, what weighs, and the rows
    d: int
    n: int

    def values(self, coalitions: BoolArray) -> FloatArray:
        known = np.ascontiguousarray(coalitions)
        return self._filled((len(known),), lambda reader, _, rows, out: reader.values(rows, known, out))

    def along(self, orders: IntArray) -> FloatArray:
        walked = np.ascontiguousarray(orders)
        shape = orders.shape[1], self.d + 1
        return self._filled(shape, lambda reader, _, rows, out: reader.along(rows, walked, out))

    def ends(self) -> FloatArray:
        return self._filled((2,), lambda reader, _, rows, out: reader.ends(rows, out))

    def semivalues(self, vectors: FloatArray) -> FloatArray:
        shape = len(vectors), self.d
        return self._filled(shape, lambda _, weigher, rows, out: weigher(vectors)(rows, out))

    def _filled(
        self, shape: tuple[int, ...], fill: Callable[[Reader, Latest[Any], Any, FloatArray], None]
    ) -> FloatArray:
        """(n, *shape, k); outputs stay apart in memory."""
        sizes = [len(reader.ensembles) for reader, *_ in self.parts]
        out = np.empty((sum(sizes), self.n, *shape))
        for part, of_part in zip(self.parts, np.split(out, np.cumsum(sizes[:-1])), strict=True):
            fill(*part, of_part)
        return np.moveaxis(out, 0, -1)

    def output(self, index: int) -> Self:
        first = 0
        for reader, _, rows in self.parts:
            if index < first + len(reader.ensembles):
                break
            first += len(reader.ensembles)
        only, rows = reader.only(index - first, rows)
        return replace(self, parts=((only, Latest(only.weigher), rows),))

    def alone(self) -> ExactGame:
        return ExactGame(self)


@dataclass(frozen=True)
class WalkedBlock(TreeBlock):
    """The same where two games share it: what the one finds along orders is kept until the other asks for it, too."""

    kept: dict[Any, FloatArray]
    name: tuple[int, ...]  # of rows and output

    def along(self, orders: IntArray) -> FloatArray:
        walk = *self.name, hashlib.blake2b(orders.tobytes()).digest()
        if (found := self.kept.pop(walk, None)) is None:
            found = super().along(orders)
            if sum(array.nbytes for array in [*self.kept.values(), found]) <= KEPT_BYTES:
                self.kept[walk] = found
        return found

    def output(self, index: int) -> Self:
        return replace(super().output(index), name=(*self.name, index))


@dataclass(frozen=True)
class TreeGames:
    """X (n, c) → the games of these rows, by the readers of outputs."""

    readers: tuple[tuple[Reader, Latest[Weigher]], ...]
    d: int

    @classmethod
    def of(cls, readers: Iterable[Reader], d: int) -> Self:
        return cls(tuple((reader, Latest(reader.weigher)) for reader in readers), d)

    def __call__(self, X: FloatArray) -> TreeBlock:
        return TreeBlock(tuple((reader, of, reader.at(X)) for reader, of in self.readers), self.d, len(X))

    @property
    def row_bytes(self) -> int:
        """About how much memory is held of a row."""
        return sum(reader.row_bytes for reader, _ in self.readers)


@dataclass(frozen=True)
class ByCover:
    """Splits on hidden features are averaged by cover."""

    nodes: Ensemble  # any of the ensembles, for what they have in common
    ensembles: tuple[Ensemble, ...]  # one for each of k outputs
    grouped: Steps  # (k, I) the steps of `nodes.groups` with the values of each
    descent: Descent

    @classmethod
    def of(cls, ensembles: tuple[Ensemble, ...]) -> Self:
        nodes = ensembles[0]
        return cls(nodes, ensembles, nodes.valued(nodes.groups.steps, ensembles), Descent.of(ensembles))

    @property
    def row_bytes(self) -> int:
        """About what is held of a row, so that rows of large forests are cut for workers."""
        return 2 * len(self.nodes.left)

    def only(self, output: int, rows: BoolArray) -> tuple[Self, BoolArray]:
        """The same for one of the outputs."""
        one = slice(output, output + 1)
        descent = replace(self.descent, steps=self.descent.steps[one])
        return replace(self, ensembles=self.ensembles[one], grouped=self.grouped[one], descent=descent), rows

    def at(self, X: FloatArray) -> BoolArray:
        """What is known of rows X (n, c), their directions (n, I), which the methods below ask for."""
        return self.nodes.directions(X)

    def weigher(self, vectors: FloatArray) -> Weigher:
        return Semivalues.of(self.ensembles, self.descent, vectors).fill

    def ends(self, goes: BoolArray, out: FloatArray) -> None:
        """(k, n, 2) the values of no players and of all players."""
        for e, of_one in zip(self.ensembles, out, strict=True):
            of_one[:, 0], of_one[:, 1] = e.mean_by_cover, e.walk(goes)

    def values(self, goes: BoolArray, coalitions: BoolArray, out: FloatArray) -> None:
        """(k, n, m) the values of coalitions (m, d)."""
        for e, steps, of_one in zip(self.ensembles, self.nodes.valued(self.nodes.steps, self.ensembles), out, strict=True):
            of_one[:] = e.constant
            lane_kernels.values(goes, steps, self.nodes.lines, coalitions, of_one)

    def along(self, goes: BoolArray, orders: IntArray, out: FloatArray) -> None:
        """(k, n, m, d + 1) the values when the first 0..d players of orders (n, m, d) are known."""
        out[:], groups = 0.0, self.nodes.groups
        for e, steps, of_one in zip(self.ensembles, self.grouped, out, strict=True):
            lane_kernels.add_steps(goes, steps, *groups[1:], orders, of_one)  # changes with each player
            np.cumsum(of_one, axis=2, out=of_one)
            of_one += e.constant


def leaf_games(ensembles: Sequence[Ensemble], Z: FloatArray, weights: FloatArray, d: int) -> TreeGames:
    """Games whose hidden features take the values of absent rows Z (B, c) with weights (B,)."""
    return TreeGames.of((absent_rows(some, Z, weights) for some in alike(ensembles)), d)


def path_games(ensembles: Sequence[Ensemble], d: int) -> TreeGames:
    """Games whose splits on hidden features are averaged by cover."""
    return TreeGames.of(map(ByCover.of, alike(ensembles)), d)


def mask_game(ensembles: Sequence[Ensemble], d: int) -> ExactGame:
    """The game of ensembles trained on 0/1 masks, column i being 1 where player i is known; its Δ is exact."""
    games = leaf_games(ensembles, np.zeros((1, d)), np.ones(1), d)
    return ExactGame(games(np.ones((1, d))), axis=False)
