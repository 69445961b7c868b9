"""The masked network as plain arrays: two hidden layers of ELU units on [x·S, S], evaluated without
torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap._lazy import Lazily, special
from weightedshap.coalitions import batches

Single = npt.NDArray[np.float32]
kernels = Lazily("weightedshap.games.surrogates.network.kernels")  # numba takes a second to load
LANES = 64  # columns that `kernels.product` adds up side by side
# Coalitions at a time: their units, 128 kB where a layer has 64, stay in the cache of a core
BATCH = 512


@dataclass(frozen=True)
class Target:
    """What the network is to give, and how the raw numbers of its last layer become values of the
    game."""

    # "sigmoid" or "softmax" for probabilities; "identity" for numbers in units of `scale` around
    # `centre`
    link: str
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
        return np.asarray(
            special.expit(numbers) if self.link == "sigmoid" else special.softmax(numbers, axis=1)
        )


@dataclass(frozen=True)
class Network:
    """v(S) at x = target(W3ᵀ·ELU(W2ᵀ·ELU(W1ᵀ·[x·S, S] + b1) + b2) + b3).

    At a fixed row the first layer sees a sum of terms in double precision, the bias and one for
    each known player, which is carried from one coalition to the next. The second layer is a
    product in single precision. Both are added up so that a coalition has the same bits alone and
    in any batch.

    W1 (p + d, h), b1 (h,), W2 (h, h), b2 (h,), W3 (h, k), b3 (k,); the last d rows of W1 belong to
    the masks.
    """

    parameters: Mapping[str, Single]
    owner: IntArray  # (p,) the player of each input
    target: Target

    def __call__(self, Z: Single, coalitions: BoolArray) -> FloatArray:
        """Return (n, k) v(S) at rows with inputs Z (n, p), each with its own coalition (n, d)."""

        def fill_units(part: slice, units: Single) -> None:
            shape = (next_multiple(part.stop - part.start, 4), weights.shape[1])
            inputs = masked_inputs(Z[part], coalitions[part], self.owner, shape)
            sums = np.empty((len(weights), len(inputs), LANES), dtype=np.float32)
            kernels.product(inputs, weights, sums)
            kernels.hidden_units(sums, bias, units[: len(inputs)])

        weights, bias = self._padded_first_layer
        return self._values(fill_units, len(Z), 1)

    def terms(self, Z: Single) -> FloatArray:
        """Return (n, d + 1, h) what the first layer adds up at rows with inputs Z (n, p).

        ``[:, 0]`` is the bias, and ``[:, 1 + i]`` what player i adds when known.
        """
        W1 = self.parameters["W1"]
        b1 = self.parameters["b1"]
        d = len(W1) - Z.shape[1]
        terms = np.empty((len(Z), d + 1, len(b1)))
        kernels.player_terms(Z, self.owner, W1, b1, terms)
        return terms

    def at_coalitions(self, terms: FloatArray, coalitions: BoolArray) -> FloatArray:
        """Return (m, k) v(S) of coalitions (m, d) at the row with these terms (d + 1, h)."""
        known = np.zeros(len(terms) - 1, dtype=np.bool_)
        sums = terms[0].copy()

        def fill_units(part: slice, units: Single) -> None:
            kernels.first_layer(coalitions[part], terms, known, sums, units)

        return self._values(fill_units, len(coalitions), 1)

    def along_orders(self, terms: FloatArray, orders: IntArray) -> FloatArray:
        """Return (m, d + 1, k) v(S) of the first 0..d players of orders (m, d) at the row with
        these terms."""
        m, d = orders.shape

        def fill_units(part: slice, units: Single) -> None:
            kernels.walk_layer(orders[part], terms, units)

        return self._values(fill_units, m, d + 1).reshape(m, d + 1, -1)

    def _values(self, fill_units: Callable[[slice, Single], None], n: int, each: int) -> FloatArray:
        """Return (n·each, k) v(S) of n items that stand for `each` coalitions.

        ``fill_units(part, units)`` sets the first layer's units, ELU + 1, of the items in a part.
        """
        W2, b2, W3, b3 = self._upper_layers
        at_once = max(1, BATCH // each)
        most = next_multiple(min(at_once, n) * each, 4)

        # The product takes four rows at a time and whole blocks of columns: what is beyond is zero.
        units = np.zeros((most, W2.shape[1]), dtype=np.float32)
        sums = np.empty((len(W2), most, LANES), dtype=np.float32)
        raw = np.empty((n * each, len(b3)), dtype=np.float32)
        for part in batches(n, at_once):
            out = raw[part.start * each : part.stop * each]
            fill_units(part, units)
            n_rows = next_multiple(len(out), 4)
            own_sums = sums.reshape(-1)[: len(W2) * n_rows * LANES].reshape(len(W2), n_rows, LANES)
            kernels.product(units[:n_rows], W2, own_sums)
            kernels.last_layer(own_sums, b2, W3, b3, out)
        return self.target.values(raw)

    @cached_property
    def _padded_first_layer(self) -> tuple[Single, Single]:
        """W1 in blocks, and b1 with zeros behind it, as `kernels.product` and `hidden_units` take
        them."""
        return in_blocks(self.parameters["W1"], multiple=4), padded(self.parameters["b1"], LANES)

    @cached_property
    def _upper_layers(self) -> tuple[Single, Single, Single, Single]:
        """W2 in blocks, b2, W3ᵀ and b3, for units that are ELU + 1, which saves a subtraction for
        each unit."""
        W2, b2, W3, b3 = (self.parameters[name] for name in ("W2", "b2", "W3", "b3"))
        b2 = (b2 - W2.sum(axis=0, dtype=np.float64)).astype(np.float32)
        b3 = (b3 - W3.sum(axis=0, dtype=np.float64)).astype(np.float32)
        return in_blocks(W2, multiple=LANES), padded(b2, LANES), padded(W3.T, LANES), b3


def next_multiple(n: int, of: int) -> int:
    """Return the smallest multiple of a number that is not below n."""
    return n + -n % of


def padded(array: Single, multiple: int) -> Single:
    """Return `array` with zeros behind its last axis, up to a multiple."""
    missing = -array.shape[-1] % multiple
    widths = [*[(0, 0)] * (array.ndim - 1), (0, missing)]
    return np.ascontiguousarray(np.pad(array, widths))


def in_blocks(weights: Single, multiple: int) -> Single:
    """Return weights (h, u) as (B, H, LANES): blocks of columns, rows up to a multiple, zeros where
    nothing was."""
    full = padded(padded(weights.T, multiple).T, LANES)
    return np.ascontiguousarray(full.reshape(len(full), -1, LANES).transpose(1, 0, 2))


def masked_inputs(
    Z: Single, coalitions: BoolArray, owner: IntArray, shape: tuple[int, int] | None = None
) -> Single:
    """Return [x·S, S] for inputs Z (m, p), each with its own coalition (m, d).

    The result is (m, p + d), or of a larger shape with zeros behind.
    """
    m, p = Z.shape
    d = coalitions.shape[1]
    # In most tables each input is a player of its own, and nothing need be looked up.
    one_each = np.array_equal(owner, np.arange(d))
    known = coalitions if one_each else np.take(coalitions, owner, axis=1)
    inputs = np.zeros(shape or (m, p + d), dtype=np.float32)
    np.multiply(Z, known, out=inputs[:m, :p])
    inputs[:m, p : p + d] = coalitions
    return inputs
