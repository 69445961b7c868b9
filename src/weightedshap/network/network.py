"""The masked network as plain arrays: two hidden layers of ELU units on [x·S, S], evaluated without torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from weightedshap.checks import BoolArray, FloatArray, IntArray
from weightedshap.coalitions import batches
from weightedshap.lazily import Lazily, special
from weightedshap.parallel import one_blas_thread

Single = npt.NDArray[np.float32]
kernels = Lazily("weightedshap.network.kernels")  # numba takes a second to load
BATCH = 512  # coalitions of one row at a time: their units, 128 kB where a layer has 64, stay in the cache of a core
ROWS = 4096  # rows with a coalition each at a time: bounds the memory that [x·S, S] takes


@dataclass(frozen=True)
class Target:
    """What the network is to give, and how the raw numbers of its last layer become values of the game."""

    link: str  # "sigmoid" or "softmax" for probabilities; "identity" for numbers in units of `scale` around `centre`
    centre: FloatArray  # (k,)
    scale: FloatArray  # (k,)

    @classmethod
    def of(cls, f: FloatArray, link: str, standardise: bool) -> Self:
        """Learn centre and scale from predictions f (n, k) of the background."""
        if link != "identity" or not standardise:
            return cls(link, np.zeros(f.shape[1]), np.ones(f.shape[1]))
        spread = f.std(axis=0)
        return cls(link, f.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def __call__(self, f: FloatArray) -> Single:
        """(n, k) what is to be learned, of predictions f (n, k)."""
        return ((f - self.centre) / self.scale).astype(np.float32)

    def values(self, raw: Single) -> FloatArray:
        """(m, k) values of the game, of what the last layer gives (m, k)."""
        numbers = raw.astype(np.float64)
        if self.link == "identity":
            return np.asarray(numbers * self.scale + self.centre)
        return np.asarray(special.expit(numbers) if self.link == "sigmoid" else special.softmax(numbers, axis=1))


@dataclass(frozen=True)
class Network:
    """v(S) at x = target(W3ᵀ·ELU(W2ᵀ·ELU(W1ᵀ·[x·S, S] + b1) + b2) + b3).

    At a fixed row the first layer sees b1 + Σ_{i∈S} vectors[i], a sum that is carried from one coalition to the next in
    double precision. The second is a matrix product in single precision: its last digits depend on the place in a
    batch. W1 (p + d, h), b1 (h,), W2 (h, h), b2 (h,), W3 (h, k), b3 (k,); the last d rows of W1 belong to the masks.
    """

    parameters: Mapping[str, Single]
    owner: IntArray  # (p,) the player of each input
    target: Target

    def __call__(self, Z: Single, coalitions: BoolArray) -> FloatArray:
        """(n, k) v(S) at rows with inputs Z (n, p), each with its own coalition (n, d)."""
        return self._values(self._masked_layer, np.arange(len(Z)), ROWS, 1, Z, coalitions)

    def vectors(self, z: Single) -> FloatArray:
        """(d, h) what each known player adds to the first layer at a row with inputs z (p,)."""
        W1 = self.parameters["W1"].astype(np.float64)
        vectors = W1[len(z) :].copy()
        np.add.at(vectors, self.owner, z[:, None] * W1[: len(z)])
        return vectors

    def at_coalitions(self, vectors: FloatArray, coalitions: BoolArray) -> FloatArray:
        """(m, k) v(S) of coalitions (m, d) at the row with these vectors (d, h)."""
        known, sums = np.zeros(len(vectors), dtype=np.bool_), self.parameters["b1"].astype(np.float64)
        return self._values(kernels.first_layer, coalitions, BATCH, 1, vectors, known, sums)

    def along_orders(self, vectors: FloatArray, orders: IntArray) -> FloatArray:
        """(m, d + 1, k) v(S) of the first 0..d players of orders (m, d) at the row with these vectors (d, h)."""
        (m, d), bias = orders.shape, self.parameters["b1"].astype(np.float64)
        return self._values(kernels.walk_layer, orders, BATCH, d + 1, vectors, bias).reshape(m, d + 1, -1)

    def _values(
        self, layer: Callable[..., None], items: IntArray | BoolArray, batch: int, each: int, *given: npt.NDArray[Any]
    ) -> FloatArray:
        """(n·each, k) v(S) of n items that stand for `each` coalitions; `layer` fills in their first units, ELU + 1."""
        W2, b2, W3, b3 = self._upper
        n, step = len(items), max(1, batch // each)
        raw = np.empty((n * each, len(b3)), dtype=np.float32)
        units, inputs = np.empty((2, min(step, n) * each, len(b2)), dtype=np.float32)
        with one_blas_thread():
            for part in batches(n, step):
                out = raw[part.start * each : part.stop * each]
                layer(items[part], *given, units[: len(out)])
                np.matmul(units[: len(out)], W2, out=inputs[: len(out)])
                kernels.last_layer(inputs[: len(out)], b2, W3, b3, out)
        return self.target.values(raw)

    def _masked_layer(self, rows: IntArray, Z: Single, coalitions: BoolArray, units: Single) -> None:
        np.matmul(masked_inputs(Z[rows], coalitions[rows], self.owner), self.parameters["W1"], out=units)
        kernels.elu(units, self.parameters["b1"], np.float32(1))

    @cached_property
    def _upper(self) -> tuple[Single, Single, Single, Single]:
        """W2, b2, W3ᵀ, b3 for units that are ELU + 1, which saves a subtraction for each unit."""
        W2, b2, W3, b3 = (self.parameters[name] for name in ("W2", "b2", "W3", "b3"))
        less = [W.sum(axis=0, dtype=np.float64) for W in (W2, W3)]
        return W2, (b2 - less[0]).astype(np.float32), np.ascontiguousarray(W3.T), (b3 - less[1]).astype(np.float32)


def masked_inputs(Z: Single, coalitions: BoolArray, owner: IntArray) -> Single:
    """(m, p + d) [x·S, S] for inputs Z (m, p), each with its own coalition (m, d)."""
    one_each = np.array_equal(owner, np.arange(coalitions.shape[1]))  # as in most tables; then nothing is looked up
    known = coalitions if one_each else np.take(coalitions, owner, axis=1)
    return np.concatenate([Z * known, coalitions], axis=1)
