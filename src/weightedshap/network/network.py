"""The masked network as plain arrays: two hidden layers of ELU units on [x·S, S], evaluated without torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from weightedshap.checks import BoolArray, FloatArray, IntArray

Single = npt.NDArray[np.float32]
BATCH = 512  # coalitions whose units stay in the cache


@dataclass(frozen=True)
class Network:
    """Weights of the network and the scale of its output.

    Attributes
    ----------
    parameters : W1 (p + d, h), b1 (h,), W2 (h, h), b2 (h,), W3 (h, k), b3 (k,) as float32; the first p
        rows of W1 belong to inputs, the other d to the players' masks
    owner : (p,) the player of each input
    link : "identity", "sigmoid" or "softmax"
    centre, scale : (k,) of the target, for the identity
    """

    parameters: Mapping[str, Single]
    owner: IntArray
    link: str
    centre: FloatArray
    scale: FloatArray

    @property
    def d(self) -> int:
        """How many players there are."""
        return len(self.parameters["W1"]) - len(self.owner)

    def __call__(self, Z: Single, coalitions: BoolArray) -> FloatArray:
        """(n, k) outputs for inputs Z (n, p), each with its own coalition (n, d)."""
        parts = [self._outputs(Z[s : s + 4096], coalitions[s : s + 4096]) for s in range(0, len(Z), 4096)]
        return np.concatenate(parts)

    def _outputs(self, Z: Single, coalitions: BoolArray) -> FloatArray:
        from weightedshap.network import kernels

        with one_blas_thread():
            units = kernels.masked_inputs(Z, np.arange(len(Z)), coalitions, self.owner) @ self.parameters["W1"]
            kernels.elu_layer(units, self.parameters["b1"])
            return self.on_scale(self.upper(units, np.empty_like(units)))

    def upper(self, units: Single, inputs: Single) -> Single:
        """(m, k) what the last layer gives for units (m, h) of the first, ELU + 1; `inputs` (m, h) is overwritten."""
        from weightedshap.network import kernels

        W2, b2, W3, b3 = self.rest
        raw = np.empty((len(units), len(b3)), dtype=np.float32)
        kernels.last_layer(np.matmul(units, W2, out=inputs), b2, W3, b3, raw)
        return raw

    def on_scale(self, raw: Single) -> FloatArray:
        """What the last layer gives, on the scale of the game."""
        values = raw.astype(np.float64)
        if self.link == "sigmoid":
            return np.asarray(expit(values))
        return np.asarray(softmax(values, axis=1)) if self.link == "softmax" else values * self.scale + self.centre

    def at(self, z: Single) -> NetworkRow:
        """The first layer of a row with inputs z (p,)."""
        W1 = self.parameters["W1"].astype(np.float64)
        vectors = W1[len(z) :].copy()
        np.add.at(vectors, self.owner, z[:, None] * W1[: len(z)])
        return NetworkRow(self, vectors, self.parameters["b1"].astype(np.float64))

    @cached_property
    def rest(self) -> tuple[Single, Single, Single, Single]:
        """W2, b2, W3ᵀ, b3 for units that are ELU + 1, which saves a subtraction for each unit."""
        p = self.parameters
        shifted = [
            np.asarray(p[b] - p[W].sum(axis=0, dtype=np.float64), np.float32) for W, b in (("W2", "b2"), ("W3", "b3"))
        ]
        return p["W2"], shifted[0], np.ascontiguousarray(p["W3"].T), shifted[1]


@dataclass(frozen=True)
class NetworkRow:
    """The network at one row.

    Only the first layer sees the coalition, as bias + Σ_{i∈S} vectors[i]. That sum is carried from one coalition
    to the next, in double precision: in a walk it is one vector for each step. The second layer is a matrix
    product in single precision, whose last digits depend on the place of a coalition in its batch.

    Attributes
    ----------
    vectors : (d, h) what each known player adds
    bias : (h,)
    """

    network: Network
    vectors: FloatArray
    bias: FloatArray

    @property
    def d(self) -> int:
        return len(self.vectors)

    def values(self, coalitions: BoolArray) -> FloatArray:
        """(m, d) coalitions → (m, k)."""
        from weightedshap.network import kernels

        known, sums = np.zeros(self.d, dtype=np.bool_), self.bias.copy()

        def first_layer(part: slice, units: Single) -> None:
            kernels.first_layer(coalitions[part], self.vectors, known, sums, units)

        return self._values(first_layer, len(coalitions), 1)

    def along(self, orders: IntArray) -> FloatArray:
        """(m, d) orders → (m, d + 1, k)."""
        from weightedshap.network import kernels

        def first_layer(part: slice, units: Single) -> None:
            kernels.walk_layer(orders[part], self.vectors, self.bias, units)

        return self._values(first_layer, len(orders), self.d + 1).reshape(len(orders), self.d + 1, -1)

    def _values(self, first_layer: Callable[[slice, Single], None], n: int, each: int) -> FloatArray:
        """(n·each, k) values of n items with `each` coalitions, given what fills in the units of a slice of items."""
        step = max(1, BATCH // each)
        units, inputs = np.empty((2, min(step, n) * each, len(self.bias)), dtype=np.float32)
        parts = [np.empty((0, len(self.network.centre)), dtype=np.float32)]
        with one_blas_thread():
            for start in range(0, n, step):
                m = (min(start + step, n) - start) * each
                first_layer(slice(start, start + step), units[:m])
                parts.append(self.network.upper(units[:m], inputs[:m]))
        return self.network.on_scale(np.concatenate(parts))


def one_blas_thread() -> Any:
    """A context in which BLAS keeps to one thread: at these sizes that is fastest, and rows are spread over workers."""
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
