"""Batches of games whose values and Δ are computed from trees, and factories that build them.

A factory stores the data that all rows share: flat ensembles, lists of paths, background patterns.
It is built once for each fitted game, and returns a `TreeBatch` for any rows. `tree_model` and the
surrogates made of trees use it; they import the module, with the compiled loops, at first use.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Self, TypeVar

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap.games.base import BaseGame, GameBatch
from weightedshap.inputs.rows import Rows
from weightedshap.trees.background import choose_removal
from weightedshap.trees.ensembles import Ensemble, group_by_nodes
from weightedshap.trees.path_dependent import PathDependentRemoval
from weightedshap.trees.removal import Removal, SemivalueFiller

Value = TypeVar("Value")


@dataclass
class LastValueCache(Generic[Value]):
    """A function of weight vectors that remembers its result for the most recent vectors.

    All blocks of a call pass the same array, so the result is computed once. Arrays are compared by
    identity.
    """

    compute: Callable[[FloatArray], Value]
    latest: tuple[FloatArray, Value] | None = None

    def __call__(self, vectors: FloatArray) -> Value:
        # Read the attribute once, as another thread may replace it in between.
        latest = self.latest
        if latest is None or latest[0] is not vectors:
            latest = (vectors, self.compute(vectors))
            self.latest = latest
        return latest[1]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.compute,)


@dataclass(frozen=True)
class OutputReader:
    """One output of a `TreeBatch`: its encoded rows, and the functions that evaluate its trees."""

    removal: Removal
    filler: LastValueCache[SemivalueFiller]
    rows: Any  # the content that ``removal.encode_rows`` returned
    endpoints: FloatArray  # (n, 2) v(∅) and v([d])
    position: int  # of the output among the ensembles of `removal`


@dataclass(frozen=True, eq=False)
class TreeBatch(GameBatch):
    """The games of n rows, with values and Δ computed from trees."""

    readers: tuple[OutputReader, ...] = field(kw_only=True)  # of all outputs of the game

    @property
    def selected_readers(self) -> tuple[OutputReader, ...]:
        """The `OutputReader` of each selected output of the batch."""
        if self.outputs is None:
            return self.readers
        return tuple(self.readers[o] for o in self.outputs)

    def values(self, coalitions: BoolArray) -> FloatArray:
        known = np.ascontiguousarray(coalitions)

        def fill(one: OutputReader, out: FloatArray) -> None:
            one.removal.values(one.rows, one.position, known, out)

        return self._fill_outputs((len(known),), fill)

    def along(self, orders: IntArray) -> FloatArray:
        orders = np.ascontiguousarray(orders)

        def fill(one: OutputReader, out: FloatArray) -> None:
            one.removal.along(one.rows, one.position, orders, out)

        return self._fill_outputs((orders.shape[1], orders.shape[2] + 1), fill)

    def endpoints(self) -> FloatArray:
        return np.stack([reader.endpoints for reader in self.selected_readers], axis=-1)

    def semivalues(self, vectors: FloatArray) -> FloatArray:
        readers = self.selected_readers
        out = np.empty((len(readers), len(readers[0].endpoints), *vectors.shape))  # (k, n, m, d)
        start = 0
        while start < len(readers):
            # Neighbouring ensembles of one removal share their nodes, so they are filled together.
            first = readers[start]
            stop = start + 1
            while (
                stop < len(readers)
                and readers[stop].removal is first.removal
                and readers[stop].position == first.position + stop - start
            ):
                stop += 1
            positions = slice(first.position, first.position + stop - start)
            first.filler(vectors)(first.rows, positions, out[start:stop])
            start = stop
        return np.moveaxis(out, 0, -1)

    def _fill_outputs(
        self, shape: tuple[int, ...], fill: Callable[[OutputReader, FloatArray], None]
    ) -> FloatArray:
        """Return an array (n, *shape, k), written output by output by the function `fill`."""
        readers = self.selected_readers
        out = np.empty((len(readers), len(readers[0].endpoints), *shape))
        for reader, of_output in zip(readers, out, strict=True):
            fill(reader, of_output)
        return np.moveaxis(out, 0, -1)


@dataclass(frozen=True)
class BatchFactory:
    """Builds a `TreeBatch` of a fitted game from encoded rows."""

    removals: tuple[tuple[Removal, LastValueCache[SemivalueFiller]], ...]

    @classmethod
    def build(cls, removals: Iterable[Removal]) -> Self:
        """Build a factory from tree ensembles, each with a method that removes features."""
        return cls(
            tuple((removal, LastValueCache(removal.semivalue_filler)) for removal in removals)
        )

    def __call__(self, game: BaseGame, rows: Rows, X: FloatArray) -> TreeBatch:
        """Return the batch of `rows`; X (n, c) are the same rows, encoded as inputs of trees."""
        readers: list[OutputReader] = []
        for removal, filler in self.removals:
            content, endpoints = removal.encode_rows(X)
            readers += [
                OutputReader(removal, filler, content, of_output, position)
                for position, of_output in enumerate(endpoints)
            ]
        return TreeBatch(game, rows, is_exact=True, readers=tuple(readers))

    @property
    def bytes_per_row(self) -> int:
        """The approximate memory that a batch needs for each row, in bytes."""
        return sum(removal.bytes_per_row for removal, _ in self.removals)


def background_batches(
    ensembles: Sequence[Ensemble], Z: FloatArray, weights: FloatArray
) -> BatchFactory:
    """Return the `BatchFactory` of interventional games over weighted background rows Z (B, c)."""
    groups = group_by_nodes(ensembles)
    return BatchFactory.build(choose_removal(group, Z, weights) for group in groups)


def path_dependent_batches(ensembles: Sequence[Ensemble]) -> BatchFactory:
    """Return the `BatchFactory` of path-dependent games: splits on hidden features are averaged."""
    groups = group_by_nodes(ensembles)
    return BatchFactory.build(PathDependentRemoval.build(group) for group in groups)
