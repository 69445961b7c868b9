"""The choice of a weight for blocks of rows, and the blocks put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weightedshap.checks import FloatArray, IntArray
from weightedshap.selection import REFERENCES, SHARED, Candidates, best_weight
from weightedshap.weights import WeightFamily

__all__ = ["Chosen", "Joined", "choose"]

Chosen = dict[str, Any]


def choose(scored: Sequence[Candidates], family: WeightFamily, select: str) -> Chosen | Sequence[Candidates]:
    """Settle one block of rows, given the candidates of each output.

    With one weight per row the choice is made here and the other candidates are let go, so memory does
    not grow with them. A shared weight has to wait for all rows: the candidates are passed on.
    """
    if select in SHARED:
        return scored
    return _picked(scored, [best_weight(output.scores, family) for output in scored], family)


class Joined:
    """Blocks of rows that `choose` settled, put together as they come: no block is held any longer than that."""

    def __init__(self, n: int, family: WeightFamily, select: str) -> None:
        self.n, self.family, self.select = n, family, select
        self.arrays: dict[str, Any] = {}
        self.waiting: list[tuple[slice, Sequence[Candidates]]] = []

    def add(self, part: slice, block: Chosen | Sequence[Candidates]) -> None:
        """The rows `part` of all n."""
        if isinstance(block, dict):
            for name, array in block.items():
                self._room(name, array)[part] = array
        else:
            self.waiting.append((part, block))

    def fields(self, axis: bool) -> dict[str, Any]:
        """The fields of an Explanation that depend on the chosen weight."""
        if self.waiting:
            parts, blocks = zip(*self.waiting, strict=True)
            for part, block in zip(parts, _shared(blocks, self.family, self.select), strict=True):
                self.add(part, block)
        joined = self.arrays if axis else {name: array[..., 0] for name, array in self.arrays.items()}
        joined["reference_curves"] = {name: joined.pop(name + " curve") for name in REFERENCES}
        joined["weight_labels"] = np.asarray(self.family.labels)[joined.pop("index")]
        joined.setdefault("standard_errors", None)
        return joined

    def _room(self, name: str, like: FloatArray) -> FloatArray:
        """The array of all rows; zero where nothing is added: rows that know their own Δ have no errors."""
        if name not in self.arrays:
            self.arrays[name] = np.zeros((self.n, *like.shape[1:]), dtype=like.dtype)
        return np.asarray(self.arrays[name])


def _shared(blocks: Sequence[Sequence[Candidates]], family: WeightFamily, select: str) -> list[Chosen]:
    """One weight for all rows of an output."""
    outputs = range(len(blocks[0]))
    best = [SHARED[select](np.concatenate([block[o].scores for block in blocks]), family) for o in outputs]
    return [_picked(block, [np.full(len(block[o]), best[o]) for o in outputs], family) for block in blocks]


def _picked(scored: Sequence[Candidates], index: Sequence[IntArray], family: WeightFamily) -> Chosen:
    """What the chosen weights give, outputs stacked on a last axis."""
    outputs = [_pick(output, i, family) for output, i in zip(scored, index, strict=True)]
    return {name: np.stack([output[name] for output in outputs], axis=-1) for name in outputs[0]}


def _pick(block: Candidates, index: IntArray, family: WeightFamily) -> Chosen:
    rows = np.arange(len(block))
    references = zip(REFERENCES, block.reference, strict=True)
    return {
        "values": block.phi[rows, index],
        "orders": block.orders[rows, index],
        "curves": block.recovery[rows, index],
        "shapley": block.phi[:, block.reference[0]],
        "weights": family.vectors[index],
        "scores": block.scores,
        "index": index,
        **({} if block.errors is None else {"standard_errors": block.errors[rows, index]}),
        **{name + " curve": block.recovery[:, position] for name, position in references},
    }
