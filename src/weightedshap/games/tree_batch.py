"""Blocks of games that are read off trees; loaded, with the compiled loops, when the first is
made."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap.games.user import ExactGame
from weightedshap.trees.background import absent_rows
from weightedshap.trees.ensembles import Ensemble, Steps, alike
from weightedshap.trees.kernels import coalitions as lane_kernels
from weightedshap.trees.quadrature import Descent, Semivalues

KEPT_BYTES = 2**28  # of walks that another game will ask for
Made = TypeVar("Made")
Weigher = Callable[[Any, slice, FloatArray], None]
"""Fills in φ_w (k, n, m, d) of rows and k outputs that follow each other, under m weight
vectors."""


class Latest(Generic[Made]):
    """What was made of the latest weight vectors: all blocks of a call ask for the same, so it is
    made once."""

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
    """Ensembles with the same nodes, one for each output, under one way of removing features.

    What `at` finds of rows, the other methods ask for, with an output's place among the ensembles.
    """

    @property
    def ensembles(self) -> tuple[Ensemble, ...]: ...
    @property
    def row_bytes(self) -> int: ...
    def at(self, X: FloatArray) -> Any: ...
    def weigher(self, vectors: FloatArray) -> Weigher: ...
    def ends(self, rows: Any, output: int, out: FloatArray) -> None: ...
    def values(self, rows: Any, output: int, coalitions: BoolArray, out: FloatArray) -> None: ...
    def along(self, rows: Any, output: int, orders: IntArray, out: FloatArray) -> None: ...


@dataclass(frozen=True)
class TreeBlock:
    """The games of n rows, an `ExactBlock` read off trees."""

    # Of each its reader, what weighs, rows, and place.
    outputs: tuple[tuple[Reader, Latest[Weigher], Any, int], ...]
    d: int
    n: int

    def values(self, coalitions: BoolArray) -> FloatArray:
        known = np.ascontiguousarray(coalitions)
        return self._filled(
            (len(known),), lambda reader, rows, o, out: reader.values(rows, o, known, out)
        )

    def along(self, orders: IntArray) -> FloatArray:
        walked = np.ascontiguousarray(orders)
        shape = orders.shape[1], self.d + 1
        return self._filled(shape, lambda reader, rows, o, out: reader.along(rows, o, walked, out))

    def ends(self) -> FloatArray:
        return self._filled((2,), lambda reader, rows, o, out: reader.ends(rows, o, out))

    def semivalues(self, vectors: FloatArray) -> FloatArray:
        out = np.empty((len(self.outputs), self.n, len(vectors), self.d))
        for reader in {id(reader): reader for reader, *_ in self.outputs}.values():
            # One after the other.
            here = [at for at, one in enumerate(self.outputs) if one[0] is reader]
            _, weigher, rows, first = self.outputs[here[0]]
            weigher(vectors)(rows, slice(first, first + len(here)), out[here[0] : here[-1] + 1])
        return np.moveaxis(out, 0, -1)

    def _filled(
        self, shape: tuple[int, ...], fill: Callable[[Reader, Any, int, FloatArray], None]
    ) -> FloatArray:
        """(n, *shape, k); outputs stay apart in memory, and are filled one by one."""
        out = np.empty((len(self.outputs), self.n, *shape))
        for (reader, _, rows, place), of_one in zip(self.outputs, out, strict=True):
            fill(reader, rows, place, of_one)
        return np.moveaxis(out, 0, -1)

    def output(self, index: int) -> Self:
        return replace(self, outputs=self.outputs[index : index + 1])

    def alone(self) -> ExactGame:
        return ExactGame(self)


@dataclass(frozen=True)
class WalkedBlock(TreeBlock):
    """The same where two games share it: what the one finds along orders is kept until the other
    asks for it, too."""

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
        found = ((reader, of, reader.at(X)) for reader, of in self.readers)
        outputs = tuple((*one, place) for one in found for place in range(len(one[0].ensembles)))
        return TreeBlock(outputs, self.d, len(X))

    @property
    def row_bytes(self) -> int:
        """About how much memory is held of a row."""
        return sum(reader.row_bytes for reader, _ in self.readers)


@dataclass(frozen=True)
class ByCover:
    """Splits on hidden features are averaged by cover."""

    ensembles: tuple[Ensemble, ...]
    steps: Steps  # (k, I) those of `Ensemble.groups` with the values of each
    descent: Descent

    @classmethod
    def of(cls, ensembles: tuple[Ensemble, ...]) -> Self:
        nodes = ensembles[0]
        return cls(ensembles, nodes.valued(nodes.groups.steps, ensembles), Descent.of(ensembles))

    @property
    def row_bytes(self) -> int:
        """About what is held of a row, so that rows of large forests are cut for workers."""
        return 2 * len(self.ensembles[0].left)

    def at(self, X: FloatArray) -> BoolArray:
        """What is known of rows X (n, c), their directions (n, I), which the methods below ask
        for."""
        return self.ensembles[0].directions(X)

    def weigher(self, vectors: FloatArray) -> Weigher:
        return Semivalues.of(self.ensembles, self.descent, vectors).fill

    def ends(self, goes: BoolArray, output: int, out: FloatArray) -> None:
        """(n, 2) the values of no players and of all players."""
        ensemble = self.ensembles[output]
        out[:, 0], out[:, 1] = ensemble.mean_by_cover, ensemble.walk(goes)

    def values(self, goes: BoolArray, output: int, coalitions: BoolArray, out: FloatArray) -> None:
        """(n, m) the values of coalitions (m, d)."""
        e = self.ensembles[output]
        out[:] = e.constant
        lane_kernels.values(goes, e.steps, e.lines, coalitions, out)

    def along(self, goes: BoolArray, output: int, orders: IntArray, out: FloatArray) -> None:
        """(n, m, d + 1) the values when the first 0..d players of orders (n, m, d) are known."""
        out[:] = 0.0
        groups = self.ensembles[0].groups._replace(steps=self.steps[output])
        (_, m, d) = orders.shape
        widest = int(np.diff(groups.first_player).max(initial=0))
        room = lane_kernels.room(m, d, widest, self.ensembles[0].lines)
        ranges = np.empty((4, len(groups.steps)), np.uint64) if widest > lane_kernels.FEW else None
        lane_kernels.add_steps(goes, *groups, orders, room, ranges, out)
        np.cumsum(out, axis=2, out=out)  # of the changes with each player
        out += self.ensembles[output].constant


def leaf_games(
    ensembles: Sequence[Ensemble], Z: FloatArray, weights: FloatArray, d: int
) -> TreeGames:
    """Games whose hidden features take the values of absent rows Z (B, c) with weights (B,)."""
    return TreeGames.of((absent_rows(some, Z, weights) for some in alike(ensembles)), d)


def path_games(ensembles: Sequence[Ensemble], d: int) -> TreeGames:
    """Games whose splits on hidden features are averaged by cover."""
    return TreeGames.of(map(ByCover.of, alike(ensembles)), d)


def mask_game(ensembles: Sequence[Ensemble], d: int) -> ExactGame:
    """The game of ensembles trained on 0/1 masks, column i being 1 where player i is known; its Δ
    is exact."""
    games = leaf_games(ensembles, np.zeros((1, d)), np.ones(1), d)
    return ExactGame(games(np.ones((1, d))), axis=False)
