"""E[f(X) | X_S = x_S] under distributions whose conditionals are known: Gaussian, mixtures of
Gaussians, t copulas.

Everything happens to latents, which margins turn into features: latents have the conditionals in
closed form, and trees compare them as well, once thresholds are turned into latents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
from numba import njit
from scipy.special import expit, logsumexp, ndtr, ndtri, stdtrit
from scipy.stats.qmc import Sobol

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap.coalitions import as_coalitions, as_orders, prefixes
from weightedshap.trees.ensembles import Ensemble

FREEDOM = 4  # of the t copula; `scores` knows the distribution function of four degrees of freedom
LOG_SCALE = 0.6  # standard deviation of the logarithm of lognormal margins
# Times a word of one bit, the upper five bits tell which bit it was.
DE_BRUIJN = np.uint32(0x077CB531)
HALF_STEP = 2.0**-31  # of a Sobol sequence, which may hold 0
UPPER = np.uint32(27)
ONE = np.uint32(1)
ALL = np.uint32(0xFFFFFFFF)

Map = Callable[[FloatArray], FloatArray]
Value = Callable[[FloatArray, BoolArray, FloatArray], FloatArray]
"""Latents (d,), which of them are known, and draws (d, n) that share these → (n,) predictions."""


def scores(z: FloatArray) -> FloatArray:
    """Φ⁻¹(T₄(z)), latents of a t copula as normal scores: with s = |z| / √(4 + z²), T₄(−|z|) = (1 −
    s)² (2 + s) / 4."""
    root = np.sqrt(4 + z * z)
    size = np.abs(z)
    rest = 4 / (root * (root + size))  # 1 − s without cancellation
    return np.copysign(ndtri(rest * rest * (3 - rest) / 4), z)


def of_scores(score: FloatArray) -> FloatArray:
    """T₄⁻¹(Φ(score)), the way back."""
    return np.copysign(stdtrit(FREEDOM, ndtr(-np.abs(score))), score)


MARGINS: dict[str, tuple[Map, Map]] = {
    "plain": (lambda z: z, lambda x: x),
    "normal": (scores, of_scores),
    "lognormal": (
        lambda z: np.expm1(LOG_SCALE * scores(z)) / LOG_SCALE,
        lambda x: of_scores(np.log1p(LOG_SCALE * x) / LOG_SCALE),
    ),
}
"""Latents as features, by an increasing function, and back."""


@dataclass(frozen=True)
class Noise:
    """One half of antithetic draws, common to all coalitions of a row."""

    normal: FloatArray  # (K, d, pairs) of N(0, Σ_k)
    # (d + 1, pairs) χ² of ν + s degrees of freedom, s = 0..d: sums of squares; none for Gaussians
    squares: FloatArray


@dataclass(frozen=True)
class Component:
    """What x_S says of one component: log(w_k N(z_S)) but for a constant, and the hidden latents'
    distribution."""

    log: float
    mean: FloatArray  # (|H|,)
    gain: FloatArray  # (|H|, |S|) Σ_HS Σ_SS⁻¹
    distance: float  # (z_S − μ_S)ᵀ Σ_SS⁻¹ (z_S − μ_S)


@dataclass(frozen=True)
class Distribution:
    """A mixture of Gaussians, or a t distribution, of latents; and margins that turn them into
    features.

    Given z_S, component k has the posterior π_k ∝ w_k N(z_S; μ_k, Σ_k), and in it hidden latents
    have the mean μ_H + G (z_S − μ_S) and the covariance Σ_HH − G Σ_SH, G = Σ_HS Σ_SS⁻¹. A draw Y of
    all latents becomes one of the hidden ones by Y_H + G (z_S − Y_S). Those of a t distribution
    have ν + |S| degrees of freedom, and that covariance times (ν + δ) / (ν + |S|), δ being the
    distance of z_S.
    """

    weights: FloatArray  # (K,)
    means: FloatArray  # (K, d)
    covariances: FloatArray  # (K, d, d)
    freedom: int = 0  # ν, with one component; 0 for Gaussians
    margins: str = "plain"

    @property
    def d(self) -> int:
        return self.means.shape[1]

    def features(self, z: FloatArray) -> FloatArray:
        return MARGINS[self.margins][0](z)

    def latents(self, x: FloatArray) -> FloatArray:
        return MARGINS[self.margins][1](x)

    def rows(self, n: int, rng: np.random.Generator) -> FloatArray:
        """(n, d) features."""
        k = rng.choice(len(self.weights), size=n, p=self.weights)
        around = np.einsum(
            "nij,nj->ni", np.linalg.cholesky(self.covariances)[k], rng.standard_normal((n, self.d))
        )
        heavy = (
            np.sqrt(self.freedom / rng.chisquare(self.freedom, size=(n, 1)))
            if self.freedom
            else 1.0
        )
        return self.features(self.means[k] + heavy * around)

    def noise(self, pairs: int, rng: np.random.Generator) -> Noise:
        """Noise of a scrambled Sobol sequence, for a power of two of pairs: a third of the error of
        independent draws.

        The latents come first: the sequence is at its best in its first places.
        """
        m = self.d + (self.freedom and self.freedom + self.d)
        standard = ndtri(Sobol(m, rng=rng).random(pairs) + HALF_STEP).T
        normal = np.linalg.cholesky(self.covariances) @ standard[: self.d]
        squares = (standard[self.d :] ** 2).cumsum(axis=0)[max(self.freedom - 1, 0) :]
        return Noise(normal.astype(np.float32), squares)

    def no_noise(self) -> Noise:
        """One draw at the mean, which is all that a linear function of plain latents needs."""
        return Noise(np.zeros((*self.means.shape, 1)), np.ones((self.d + 1, 1)))

    def given(self, z: FloatArray, known: BoolArray, noise: Noise) -> tuple[FloatArray, FloatArray]:
        """Latents (d, n) drawn given z_S, and weights (n,): a component has as many pairs as its
        posterior asks for.

        Each begins at a place of its own in the noise, the same for all coalitions, so that
        components share as little of it as possible and coalitions as much as possible.
        """
        components = [self._component(k, z, known) for k in range(len(self.weights))]
        log = np.array([one.log for one in components])
        pairs = noise.normal.shape[2]
        posterior = np.exp(log - logsumexp(log))
        # A posterior may be rounded to 0.
        counts = np.maximum(np.ceil(posterior * pairs), 1).astype(int)
        draws = np.empty((self.d, 2 * counts.sum()), dtype=noise.normal.dtype)
        draws[known] = z[known, None]
        ends = 2 * counts.cumsum()
        for k, one in enumerate(components):
            middle = one.mean[:, None]
            away = self._deviations(one, known, noise, k, counts[k])
            draws[~known, ends[k] - 2 * counts[k] : ends[k]] = np.concatenate(
                [middle + away, middle - away], axis=1
            )
        return draws, np.repeat(posterior / np.maximum(2 * counts, 1), 2 * counts)

    def _component(self, k: int, z: FloatArray, known: BoolArray) -> Component:
        inside = self.covariances[k][np.ix_(known, known)]
        across = self.covariances[k][np.ix_(known, ~known)]
        away = z[known] - self.means[k, known]
        solved = np.linalg.solve(inside, np.column_stack([across, away]))
        gain = solved[:, :-1].T
        distance = float(away @ solved[:, -1])
        log = np.log(self.weights[k]) - (distance + np.linalg.slogdet(inside)[1]) / 2
        return Component(log, self.means[k, ~known] + gain @ away, gain, distance)

    def _deviations(
        self, one: Component, known: BoolArray, noise: Noise, k: int, n: int
    ) -> FloatArray:
        """(|H|, n) from the conditional mean."""
        pairs = np.arange(n) + k * noise.normal.shape[2] // len(self.weights)
        normal = noise.normal[k].take(pairs, axis=1, mode="wrap")
        deviations = normal[~known] - one.gain.astype(normal.dtype) @ normal[known]
        if self.freedom:
            squares = noise.squares[known.sum()].take(pairs, mode="wrap")
            deviations *= np.sqrt((self.freedom + one.distance) / squares).astype(normal.dtype)
        return deviations


@dataclass(frozen=True)
class TrueGame:
    """v(S) = E[f(X) | X_S = x_S] at one row, on the scale of the model; each coalition is evaluated
    once and kept."""

    distribution: Distribution
    value: Value
    z: FloatArray  # (d,) the latents of the row
    noise: Noise = field(repr=False)
    kept: dict[bytes, float] = field(repr=False)

    @property
    def d(self) -> int:
        return len(self.z)

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        """(m, d) coalitions → (m,)."""
        return np.array([self._kept(known) for known in as_coalitions(coalitions, self.d)])

    def along(self, orders: IntArray) -> FloatArray:
        """(m, d) orders → (m, d + 1) the values of their first 0..d players."""
        coalitions = prefixes(as_orders(orders, self.d))
        return self(coalitions.reshape(-1, self.d)).reshape(coalitions.shape[:2])

    def _kept(self, known: BoolArray) -> float:
        key = known.tobytes()
        if key not in self.kept:
            self.kept[key] = mean(self.distribution, self.value, self.z, known, self.noise)
        return self.kept[key]


def mean(
    distribution: Distribution, value: Value, z: FloatArray, known: BoolArray, noise: Noise
) -> float:
    """v(S) at latents z (d,)."""
    draws, weights = distribution.given(z, known, noise)
    return float(weights @ value(z, known, draws))


@dataclass(frozen=True)
class Truth:
    """The true game at any row; its noise is the row's own, so that errors average out over rows.

    v([d]) is the model's own prediction, and v(∅), which all rows share, was found with many more
    draws.
    """

    distribution: Distribution
    value: Value
    predict: Map
    of_none: float
    seed: int
    pairs: int  # 0 where the mean is known without draws

    def __call__(self, row: FloatArray) -> TrueGame:
        rng = np.random.default_rng([self.seed, crc32(row.tobytes())])
        noise = (
            self.distribution.noise(self.pairs, rng) if self.pairs else self.distribution.no_noise()
        )
        ends = {bytes(len(row)): self.of_none, b"\1" * len(row): float(self.predict(row[None])[0])}
        return TrueGame(self.distribution, self.value, self.distribution.latents(row), noise, ends)


@dataclass(frozen=True)
class Trees:
    """An ensemble of trees of at most 32 leaves, which are the bits of a word from left to right.

    Whoever goes right at a node loses the leaves under its left child; the first one never lost is
    where he ends. So one comparison is made for all draws at once, and only at nodes that the known
    features leave open.
    """

    start: IntArray  # (T + 1,) splits of tree t are start[t] … start[t + 1] − 1
    column: IntArray
    threshold: FloatArray
    left: IntArray  # leaves under the left child, as a word
    right: IntArray
    leaf: FloatArray  # (T, 32) by the upper bits of DE_BRUIJN times the leaf's bit
    offset: float
    probability: bool

    @classmethod
    def of(cls, ensemble: Ensemble, latents: Map, probability: bool) -> Trees:
        leaf = np.zeros((len(ensemble.roots), 32))
        start = [0]
        splits = []
        for tree, root in zip(leaf, ensemble.roots, strict=True):
            _list_splits(ensemble, root, 0, tree, splits)
            start.append(len(splits))
        node, left, right = np.array(splits, dtype=np.int64).T
        words = left.astype(np.uint32), right.astype(np.uint32)
        thresholds = latents(ensemble.threshold[node])
        return cls(
            np.array(start),
            ensemble.column[node],
            thresholds,
            *words,
            leaf,
            ensemble.offset,
            probability,
        )

    def __call__(self, z: FloatArray, known: BoolArray, draws: FloatArray) -> FloatArray:
        total = np.full(draws.shape[1], self.offset)
        arrays = self.start, self.column, self.threshold, self.left, self.right, self.leaf
        add_trees(z, known, draws, *arrays, total)
        return expit(total) if self.probability else total


def _list_splits(
    e: Ensemble, node: int, first: int, leaf: FloatArray, splits: list[tuple[int, int, int]]
) -> int:
    """The leaves under `node` as a word, `first` being the first of them; their values and the
    splits are noted."""
    if node >= len(e.left):
        leaf[int(DE_BRUIJN) * 2**first % 2**32 >> 27] = e.value[node - len(e.left)]
        return 2**first
    left = _list_splits(e, e.left[node], first, leaf, splits)
    right = _list_splits(e, e.right[node], left.bit_length(), leaf, splits)
    splits.append((node, left, right))
    return left | right


@njit(cache=True)
def slot(word: Any) -> Any:
    """Where the value of the first leaf of a word stands."""
    return np.uint32(np.uint32(word & np.uint32(~word + ONE)) * DE_BRUIJN) >> UPPER


@njit(cache=True)
def add_trees(z, known, draws, start, column, threshold, left, right, leaf, total):
    """Add the trees' values of draws (d, n), whose known latents are those of z (d,), to total
    (n,)."""
    words = np.empty(draws.shape[1], dtype=np.uint32)
    for t in range(len(leaf)):
        alive = ALL
        is_open = False
        for q in range(start[t], start[t + 1]):
            if known[column[q]]:
                alive &= ~(right[q] if z[column[q]] <= threshold[q] else left[q])
        for q in range(start[t], start[t + 1]):
            if not known[column[q]] and left[q] & alive:
                if not is_open:
                    words[:] = alive
                    is_open = True
                latents = draws[column[q]]
                bound = np.float32(threshold[q])
                rest = ~left[q]
                for i in range(len(words)):
                    words[i] &= rest if latents[i] > bound else ALL
        if is_open:
            for i in range(len(words)):
                total[i] += leaf[t, slot(words[i])]
        else:
            total += leaf[t, slot(alive)]
