"""Blocks of games that are read off trees; loaded, with the compiled loops, when the first is made."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from weightedshap.checks import BoolArray, FloatArray, IntArray
from weightedshap.coalitions import ends
from weightedshap.games.wrappers import ExactGame
from weightedshap.trees import leaf_kernels, path_kernels
from weightedshap.trees.ensembles import Coefficients, Ensemble


@dataclass(frozen=True)
class TreeBlock(ABC):
    """The games of n rows, read off trees.

    Attributes
    ----------
    lists : for each output the arrays that the kernels of the subclass read
    offsets : for each output what is added to the leaves
    """

    lists: tuple[tuple[Any, ...], ...]
    offsets: tuple[float, ...]
    coefficients: Coefficients
    d: int
    n: int

    @abstractmethod
    def values(self, coalitions: BoolArray) -> FloatArray:
        """(m, d) → (n, m, k) values of coalitions at every row."""

    @abstractmethod
    def along(self, orders: IntArray) -> FloatArray:
        """(n, m, d) orders → (n, m, d + 1, k)."""

    @abstractmethod
    def semivalues(self, vectors: FloatArray) -> FloatArray:
        """(m, d) weight vectors → (n, m, d, k) exact φ_w; the unit vectors give Δ itself."""

    def ends(self) -> FloatArray:
        """(n, 2, k) game(∅) and game([d])."""
        return self.values(ends(self.d))

    def output(self, index: int) -> TreeBlock:
        """The block of one output."""
        return replace(self, lists=self.lists[index : index + 1], offsets=self.offsets[index : index + 1])

    def alone(self) -> ExactGame:
        """The game of the only row."""
        return ExactGame(self)

    def _room(self, *shape: int) -> FloatArray:
        """(k, n, …) filled with the offsets; outputs stay apart in memory, so that kernels fill them one by one."""
        room = np.empty((len(self.lists), self.n, *shape))
        room[:] = np.reshape(self.offsets, (-1,) + (1,) * (room.ndim - 1))
        return room

    def _table(self, vectors: FloatArray) -> FloatArray:
        """The coefficients K(s, t) times the weight vectors."""
        return np.ascontiguousarray(self.coefficients.table @ vectors.T)


class LeafBlock(TreeBlock):
    """Games whose leaves are indicators 1[A ⊆ S, B ∩ S = ∅]; lists are those that `leaf_kernels` makes."""

    def values(self, coalitions: BoolArray) -> FloatArray:
        out = self._room(len(coalitions))
        for lists, values in zip(self.lists, out, strict=True):
            leaf_kernels.values_of_leaves(*lists, np.ascontiguousarray(coalitions), values)
        return np.moveaxis(out, 0, -1)

    def ends(self) -> FloatArray:
        out = self._room(2)
        for (first, c, n_known, start, _), values in zip(self.lists, out, strict=True):
            leaf_kernels.ends_of_leaves(first, c, n_known, start, values)
        return np.moveaxis(out, 0, -1)

    def along(self, orders: IntArray) -> FloatArray:
        out = self._room(orders.shape[1], self.d + 1)
        for lists, values in zip(self.lists, out, strict=True):
            leaf_kernels.along_leaves(*lists, np.ascontiguousarray(orders), values)
        return np.moveaxis(out, 0, -1)

    def semivalues(self, vectors: FloatArray) -> FloatArray:
        out, table = np.empty((len(self.lists), self.n, len(vectors), self.d)), self._table(vectors)
        for lists, phi in zip(self.lists, out, strict=True):
            leaf_kernels.semivalues_of_leaves(*lists, table, self.coefficients.level, phi)
        return np.moveaxis(out, 0, -1)


class PathBlock(TreeBlock):
    """Path-dependent games; lists are the directions of the rows and the arrays of `Paths`."""

    def values(self, coalitions: BoolArray) -> FloatArray:
        out = self._room(len(coalitions))
        for lists, values in zip(self.lists, out, strict=True):
            path_kernels.values_of_paths(*lists, np.ascontiguousarray(coalitions), values)
        return np.moveaxis(out, 0, -1)

    def along(self, orders: IntArray) -> FloatArray:
        out = self._room(orders.shape[1], self.d + 1)
        for lists, values in zip(self.lists, out, strict=True):
            path_kernels.along_paths(*lists, np.ascontiguousarray(orders), values)
        return np.moveaxis(out, 0, -1)

    def semivalues(self, vectors: FloatArray) -> FloatArray:
        out, table = np.empty((len(self.lists), self.n, len(vectors), self.d)), self._table(vectors)
        for lists, phi in zip(self.lists, out, strict=True):
            path_kernels.semivalues_of_paths(*lists, table, self.coefficients.level, phi)
        return np.moveaxis(out, 0, -1)


def mask_game(ensembles: Sequence[Ensemble], d: int, axis: bool = False) -> ExactGame:
    """The game whose value of a coalition is what ensembles trained on 0/1 masks predict for it.

    Player i is column i; known players are 1 and hidden ones 0. Its Δ is exact, so an ensemble fitted to
    sampled evaluations of a costly game can be read out at once.
    """
    lists, widest = [], 0
    for e in ensembles:
        known, hidden = e.directions(np.ones((1, d))), e.directions(np.zeros((1, d)))
        trees = e.roots, e.left, e.right, e.column, e.value, d, e.depth
        lists.append(leaf_kernels.list_leaves(known, hidden, np.ones(1), *trees))
        widest = max(widest, e.widest(e.column, d))
    offsets = tuple(e.offset for e in ensembles)
    return ExactGame(LeafBlock(tuple(lists), offsets, Coefficients.of(d, widest), d, 1), axis)
