"""One training run of the network: rows with fresh coalitions, held-out rows that tell the epochs apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from weightedshap.checks import BoolArray, FloatArray, IntArray
from weightedshap.coalitions import random_coalitions
from weightedshap.network.learning import LEARNERS, RATES, Batch, Learner
from weightedshap.network.network import Single, one_blas_thread

__all__ = ["HeldOut", "Lessons", "Training", "held_out_masks"]

EXAM = 4096  # held-out masked rows that tell the epochs apart; all of them judge the result
COALITION_BYTES = 2**24


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows with coalitions: the row of each (N,), and what is known of it (N, d)."""

    row: IntArray
    coalition: BoolArray

    @property
    def thin(self) -> int:
        """Every so many-th of them is enough to compare epochs by."""
        return max(1, len(self.row) // EXAM)


def held_out_masks(rows: IntArray, d: int, rng: np.random.Generator, most: int = 20_000) -> HeldOut:
    """Each row up to 16 times, with coalitions of uniform size."""
    repeated = np.repeat(rows, max(1, min(16, most // len(rows))))
    return HeldOut(repeated, random_coalitions(len(repeated), d, rng))


@dataclass(frozen=True)
class Lessons:
    """All rows to learn from and to be judged by: inputs (n, p), targets (n, k), weights (n,)."""

    Z: Single
    target: Single
    weights: FloatArray
    owner: IntArray
    d: int


@dataclass
class Best:
    """The state with the lowest held-out loss so far."""

    loss: float = np.inf
    epoch: int = 0
    parameters: dict[str, Single] | None = None


@dataclass(frozen=True)
class Training:
    """One training run. All randomness comes from the given generator; torch's own is left alone."""

    recipe: Any  # a NeuralSurrogate
    lessons: Lessons
    link: str

    def run(self, rows: IntArray, held: HeldOut, rng: np.random.Generator) -> tuple[dict[str, Single], str]:
        """The parameters with the lowest held-out loss, and why training stopped."""
        best = Best()
        try:
            with one_blas_thread():
                stopped = self._epochs(rows, held, best, rng)
        except KeyboardInterrupt:
            stopped = f"interrupted; the best state so far was kept, that of epoch {best.epoch}"
        if best.parameters is None:
            raise KeyboardInterrupt("interrupted before the first epoch was over: there is nothing to keep")
        return best.parameters, stopped

    def _epochs(self, rows: IntArray, held: HeldOut, best: Best, rng: np.random.Generator) -> str:
        """Train until the epochs or the patience are used up; `best` is kept up to date."""
        recipe, epochs = self.recipe, self.recipe.epochs_for(len(rows))
        shown = np.repeat(rows, recipe.masks)
        learner = LEARNERS[recipe.engine](self._start(rng), self.link, recipe)
        rate = RATES[recipe.schedule](recipe, epochs * -(-len(shown) // recipe.batch))
        exam = self._cut(held.row[:: held.thin], held.coalition[:: held.thin])
        for epoch, coalitions in enumerate(self._coalitions(epochs, len(shown), rng), start=1):
            for batch in self._batches(rng.permutation(shown), coalitions):
                learner.step(batch, rate.next())
            if epoch % recipe.every and epoch < epochs:
                continue
            loss = self._examined(learner, exam, epoch)
            rate.hear(loss)
            if loss < best.loss:
                best.loss, best.epoch, best.parameters = loss, epoch, learner.arrays()
            elif epoch - best.epoch >= recipe.patience:
                return f"the held-out loss did not fall for {recipe.patience} epochs after epoch {best.epoch}"
        return f"all {epochs} epochs done; the best was epoch {best.epoch}"

    def _start(self, rng: np.random.Generator) -> dict[str, Single]:
        """Weights and biases uniform within ±1/√(inputs of the layer), as torch draws them."""
        h, k = self.recipe.units, self.lessons.target.shape[1]
        layers = {"1": (len(self.lessons.owner) + self.lessons.d, h), "2": (h, h), "3": (h, k)}
        parameters = {}
        for layer, (inputs, outputs) in layers.items():
            for name, shape in (("W", (inputs, outputs)), ("b", (outputs,))):
                parameters[name + layer] = (rng.uniform(-1, 1, size=shape) / np.sqrt(inputs)).astype(np.float32)
        return parameters

    def _coalitions(self, epochs: int, n: int, rng: np.random.Generator) -> Iterator[BoolArray]:
        """(n, d) fresh coalitions for each epoch, drawn for several epochs at once, which is faster."""
        while epochs:
            ahead = max(1, min(epochs, COALITION_BYTES // (n * self.lessons.d)))
            epochs -= ahead
            yield from random_coalitions(ahead * n, self.lessons.d, rng).reshape(ahead, n, self.lessons.d)

    def _batches(self, rows: IntArray, coalitions: BoolArray) -> Iterator[Batch]:
        """One epoch, cut from arrays in memory."""
        for start in range(0, len(rows), self.recipe.batch):
            part = slice(start, start + self.recipe.batch)
            yield self._cut(rows[part], coalitions[part])

    def _cut(self, rows: IntArray, coalitions: BoolArray) -> Batch:
        from weightedshap.network import kernels

        lessons = self.lessons
        weights = lessons.weights[rows].astype(np.float32)
        inputs = kernels.masked_inputs(lessons.Z, rows, coalitions, lessons.owner)
        return Batch(inputs, lessons.target[rows], weights / max(float(weights.sum()), 1e-30))

    def _examined(self, learner: Learner, exam: Batch, epoch: int) -> float:
        loss = learner.loss(exam)
        if not np.isfinite(loss):
            raise ValueError(
                f"The network's held-out loss is {loss} after epoch {epoch}: training diverged. Lower `rate` (now "
                f"{self.recipe.rate:g}), or pass standardise=True if inputs or predictions are large."
            )
        return loss
