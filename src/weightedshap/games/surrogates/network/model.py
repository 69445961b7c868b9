"""The masked network as arrays: two hidden layers of ELU units, for masked features and mask.

`Network` evaluates it with the compiled loops of `kernels`, without torch. `neural` makes a game of
it, and `training` fits its parameters.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap._lazy import LazyModule, special
from weightedshap.coalitions import slices_of

Float32Array = npt.NDArray[np.float32]
# Imported at first use, as numba takes a second to load.
kernels = LazyModule("weightedshap.games.surrogates.network.kernels")
# Columns that `kernels.product` adds up together: its own `LANES`, where half and double are
# compared.
LANES = 64
# Coalitions in a batch: their units, 128 kB for a layer of 64, stay in the cache of a core. Timed
# with layers of 64 and 128, it makes no difference beyond the noise, 10 %, at half or at double.
BATCH = 512


@dataclass(frozen=True)
class OutputScaling:
    """The scaling of a network's outputs: predictions to targets, and raw outputs to values."""

    # "sigmoid" or "softmax" for probabilities; "identity" for numbers in units of `scale` around
    # `centre`
    link: str
    centre: FloatArray  # (k,)
    scale: FloatArray  # (k,)

    @classmethod
    def fit(cls, f: FloatArray, link: str, standardise: bool) -> Self:
        """Learn the centre and scale of the background's predictions f (n, k)."""
        if link != "identity" or not standardise:
            return cls(link, np.zeros(f.shape[1]), np.ones(f.shape[1]))
        spread = f.std(axis=0)
        return cls(link, f.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def __call__(self, f: FloatArray) -> Float32Array:
        """Return the training targets (n, k) for predictions f (n, k)."""
        return ((f - self.centre) / self.scale).astype(np.float32)

    def values(self, raw: Float32Array) -> FloatArray:
        """Return values of the game (m, k) from the raw outputs (m, k) of the last layer."""
        numbers = raw.astype(np.float64)
        if self.link == "identity":
            return np.asarray(numbers * self.scale + self.centre)
        return np.asarray(
            special.expit(numbers) if self.link == "sigmoid" else special.softmax(numbers, axis=1)
        )


@dataclass(frozen=True)
class Network:
    """A network for v(S), with two hidden layers of ELU units on the masked row and its mask.

    v(S) = scaling(W3ᵀ·ELU(W2ᵀ·ELU(W1ᵀ·[x·S, S] + b1) + b2) + b3). At a fixed row the input of the
    first layer is a sum of terms in double precision, the bias and one term for each known player,
    which is updated from one coalition to the next. The second layer is a matrix product in single
    precision. Both are summed such that the value of a coalition is the same alone and in any
    batch, bit for bit.

    W1 (p + d, h), b1 (h,), W2 (h, h), b2 (h,), W3 (h, k), b3 (k,); the last d rows of W1 belong to
    the masks.
    """

    parameters: Mapping[str, Float32Array]
    player_of_input: IntArray  # (p,)
    scaling: OutputScaling

    def __call__(self, Z: Float32Array, coalitions: BoolArray) -> FloatArray:
        """Return v(S) (n, k) for rows of inputs Z (n, p), each with its own coalition S."""

        def fill_units(part: slice, units: Float32Array) -> None:
            shape = (next_multiple(part.stop - part.start, 4), weights.shape[1])
            inputs = masked_inputs(Z[part], coalitions[part], self.player_of_input, shape)
            sums = np.empty((len(weights), len(inputs), LANES), dtype=np.float32)
            kernels.product(inputs, weights, sums)
            kernels.hidden_units(sums, bias, units[: len(inputs)])

        weights, bias = self._padded_first_layer
        return self._values(fill_units, len(Z), 1)

    def terms(self, Z: Float32Array) -> FloatArray:
        """Return the terms that the first layer adds up, for each row of inputs Z (n, p).

        The terms are (n, d + 1, h) for h hidden units. ``[:, 0]`` is the bias, and ``[:, 1 + i]``
        is added when player i is known.
        """
        W1 = self.parameters["W1"]
        b1 = self.parameters["b1"]
        d = len(W1) - Z.shape[1]
        terms = np.empty((len(Z), d + 1, len(b1)))
        kernels.player_terms(Z, self.player_of_input, W1, b1, terms)
        return terms

    def at_coalitions(self, terms: FloatArray, coalitions: BoolArray) -> FloatArray:
        """Return v(S) (m, k) at coalitions (m, d) of one row, given its `terms` (d + 1, h)."""
        known = np.zeros(len(terms) - 1, dtype=np.bool_)
        sums = terms[0].copy()

        def fill_units(part: slice, units: Float32Array) -> None:
            kernels.first_layer(coalitions[part], terms, known, sums, units)

        return self._values(fill_units, len(coalitions), 1)

    def along_orders(self, terms: FloatArray, orders: IntArray) -> FloatArray:
        """Return v (m, d + 1, k) along orders (m, d) of one row, given its `terms` (d + 1, h)."""
        m, d = orders.shape

        def fill_units(part: slice, units: Float32Array) -> None:
            kernels.walk_layer(orders[part], terms, units)

        return self._values(fill_units, m, d + 1).reshape(m, d + 1, -1)

    def _values(
        self, fill_units: Callable[[slice, Float32Array], None], n: int, each: int
    ) -> FloatArray:
        """Return v(S) for n coalitions, or for n orders with `each` coalitions per order.

        The result is (n·each, k), with ``each = 1`` for coalitions. ``fill_units(part, units)``
        fills in the first layer's outputs, ELU + 1, of some items.
        """
        W2, b2, W3, b3 = self._upper_layers
        at_once = max(1, BATCH // each)
        most = next_multiple(min(at_once, n) * each, 4)

        # The product takes four rows at a time and whole blocks of columns: the rest is zero.
        units = np.zeros((most, W2.shape[1]), dtype=np.float32)
        sums = np.empty((len(W2), most, LANES), dtype=np.float32)
        raw = np.empty((n * each, len(b3)), dtype=np.float32)
        for part in slices_of(n, at_once):
            out = raw[part.start * each : part.stop * each]
            fill_units(part, units)
            n_rows = next_multiple(len(out), 4)
            own_sums = sums.reshape(-1)[: len(W2) * n_rows * LANES].reshape(len(W2), n_rows, LANES)
            kernels.product(units[:n_rows], W2, own_sums)
            kernels.last_layer(own_sums, b2, W3, b3, out)
        return self.scaling.values(raw)

    @cached_property
    def _padded_first_layer(self) -> tuple[Float32Array, Float32Array]:
        """The first layer's weights and bias, padded with zeros for the compiled loops."""
        return in_blocks(self.parameters["W1"], multiple=4), padded(self.parameters["b1"], LANES)

    @cached_property
    def _upper_layers(self) -> tuple[Float32Array, Float32Array, Float32Array, Float32Array]:
        """The weights and biases of the second and last layers, as the compiled loops need them."""
        W2, b2, W3, b3 = (self.parameters[name] for name in ("W2", "b2", "W3", "b3"))
        b2 = (b2 - W2.sum(axis=0, dtype=np.float64)).astype(np.float32)
        b3 = (b3 - W3.sum(axis=0, dtype=np.float64)).astype(np.float32)
        return in_blocks(W2, multiple=LANES), padded(b2, LANES), padded(W3.T, LANES), b3


def next_multiple(n: int, of: int) -> int:
    """Return the smallest multiple of `of` that is at least n."""
    return n + -n % of


def padded(array: Float32Array, multiple: int) -> Float32Array:
    """Return `array` with zeros added to its last axis, up to the next multiple of `multiple`."""
    missing = -array.shape[-1] % multiple
    widths = [*[(0, 0)] * (array.ndim - 1), (0, missing)]
    return np.ascontiguousarray(np.pad(array, widths))


def in_blocks(weights: Float32Array, multiple: int) -> Float32Array:
    """Split the columns of a weight matrix into blocks of equal width, padded with zeros.

    Weights (h, u) become B blocks (B, H, LANES). H is h rounded up to a multiple of `multiple`.
    """
    full = padded(padded(weights.T, multiple).T, LANES)
    return np.ascontiguousarray(full.reshape(len(full), -1, LANES).transpose(1, 0, 2))


def masked_inputs(
    Z: Float32Array, coalitions: BoolArray, owner: IntArray, shape: tuple[int, int] | None = None
) -> Float32Array:
    """Return the network's inputs: features, 0 where hidden, followed by the mask S.

    The inputs are [x·S, S], for features Z (m, p) and a coalition (m, d) for each row. `owner` (p,)
    is the player of each input. The result is (m, p + d), or padded with zeros to a larger `shape`.
    """
    m, p = Z.shape
    d = coalitions.shape[1]
    # In most tables each input is a player of its own, so that no lookup is needed.
    one_each = np.array_equal(owner, np.arange(d))
    known = coalitions if one_each else np.take(coalitions, owner, axis=1)
    inputs = np.zeros(shape or (m, p + d), dtype=np.float32)
    np.multiply(Z, known, out=inputs[:m, :p])
    inputs[:m, p : p + d] = coalitions
    return inputs
