"""Coalitions drawn per size, sizes 0, 1, d − 1 and d exact, a polynomial fitted to other draws as control variate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from weightedshap.checks import BoolArray, FloatArray, IntArray, as_generator, positive_integer
from weightedshap.contributions import Contributions
from weightedshap.estimators._strata import Fit, Sample, estimate, refuse_small_budget
from weightedshap.games.base import checked

__all__ = ["stratified"]

DEGREE = 2
MOST_PAIRS = 600
PENALTIES = (1e-8, 1e-3, 1e-2, 1e-1)


def stratified(
    game: Any, *, evaluations: int | None = None, rng: np.random.Generator | int | None = None, order: int = 2
) -> Contributions:
    """Estimate every Δ_j(x_i) from coalitions drawn size by size, with a polynomial as control variate.

    1. Evaluate all coalitions of sizes 0, 1, d − 1 and d, and of every other size that the budget covers.
    2. Draw coalitions of the remaining sizes, n_s ∝ √(1/s + 1/(d−s)) of size s, in ten folds.
    3. For every fold fit a polynomial g of the masks to the other folds (ridge regression).
    4. Δ = Δ(g), which is known, + Δ(v − g) by the means of the fold's remainders; average the folds.

    Every evaluation informs all features, so at the same accuracy far fewer are needed than by walks. The
    estimate has no bias: a fold never meets a polynomial that has seen it. If the budget covers all 2^d
    coalitions, Δ is exact.

    Parameters
    ----------
    evaluations : a hard budget; by default max(2,000, 100 d)
    order : 2 lets the polynomial have products of two features, 1 does not. Which terms are used, and the
        penalty, is decided for every fold by the error on a part of the other folds.

    Notes
    -----
    A feature that never matters gets zero up to the standard errors, not exactly: the coalitions with it and
    those without it are different ones. `permutation` gives exact zeros.

    Examples
    --------
    >>> import numpy as np
    >>> from weightedshap.games import FunctionGame
    >>> game = FunctionGame(lambda coalitions: coalitions @ np.arange(15.0), d=15)
    >>> contributions = stratified(game, evaluations=300, rng=0)
    >>> bool(np.allclose(contributions.mean, np.arange(15.0), atol=0.01))
    True
    """
    game, rng = checked(game), as_generator(rng)
    if order not in (1, 2):
        raise ValueError(f"`order` must be 1 or 2; got {order!r}.")
    budget = default_budget(game.d) if evaluations is None else positive_integer("evaluations", evaluations)
    refuse_small_budget(budget, game.d, "stratified sampling")
    return estimate(game, budget, rng, Polynomials(order), "stratified")


def default_budget(d: int) -> int:
    """max(2,000, 100 d)."""
    return max(2_000, 100 * d)


@dataclass(frozen=True)
class Polynomials:
    """Ridge regressions of v on polynomials of the mask and its size, one for each group of folds."""

    order: int = 2

    def __call__(self, sample: Sample) -> Fit:
        pairs = strongest_pairs(sample) if self.order == 2 else np.zeros((0, 2), dtype=np.intp)
        basis = Basis(sample.d, pairs)
        with threadpool_limits(1, "blas"):  # many small systems: threads would wait for each other
            X = basis(sample.coalitions)
            scale = np.sqrt((X**2).mean(axis=0))
            scale[scale == 0] = 1.0
            X /= scale
            parts = [Moments.of(X[rows], sample.values[rows]) for rows in sample.groups]
            beta = np.stack([_fit(parts, g, basis.widths) for g in range(1, len(parts))])
            predicted = beta @ X.T
        delta = np.stack([basis.delta(b / scale) for b in beta])
        return Fit(delta[sample.group_of_fold], predicted[sample.group_of_fold])


@dataclass(frozen=True)
class Moments:
    """XᵀX, Xᵀy, yᵀy and n of a part of the draws: parts add up."""

    gram: FloatArray
    cross: FloatArray
    square: float
    n: int

    @classmethod
    def of(cls, X: FloatArray, y: FloatArray) -> Moments:
        return cls(X.T @ X, X.T @ y, float(y @ y), len(y))

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.gram + other.gram, self.cross + other.cross, self.square + other.square, self.n + other.n)

    def ridge(self, width: int, penalty: float) -> FloatArray:
        """Coefficients of the first `width` columns."""
        system = self.gram[:width, :width].copy()
        shrink = np.full(width, penalty * self.n)
        shrink[:SIZE_TERMS] = 1e-9 * self.n
        system[np.diag_indices(width)] += shrink
        return np.asarray(scipy.linalg.solve(system, self.cross[:width], assume_a="pos", check_finite=False))

    def error(self, beta: FloatArray) -> float:
        """Σ (y − Xβ)² for the first columns."""
        w = len(beta)
        return float(self.square - 2 * beta @ self.cross[:w] + beta @ self.gram[:w, :w] @ beta)


def _fit(parts: Sequence[Moments], group: int, widths: Sequence[int]) -> FloatArray:
    """Coefficients for one group of draws from all the others; part 0 holds the sizes known in full."""
    others = [g for g in range(1, len(parts)) if g != group]
    held = others[group % len(others)]
    seen = _total([parts[g] for g in [0, *others] if g != held])
    tried = {choice: parts[held].error(seen.ridge(*choice)) for choice in product(widths, PENALTIES[1:3])}
    width = min(tried, key=tried.__getitem__)[0]
    tried |= {(width, p): parts[held].error(seen.ridge(width, p)) for p in (PENALTIES[0], PENALTIES[-1])}
    best = min(tried, key=tried.__getitem__)
    beta = np.zeros(len(parts[0].cross))
    beta[: best[0]] = (seen + parts[held]).ridge(*best)
    return beta


def _total(parts: Sequence[Moments]) -> Moments:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


SIZE_TERMS = 4


@dataclass(frozen=True)
class Basis:
    """Polynomials of a mask x ∈ {0, 1}^d and its size s, whose Δ is known.

    With u_i = x_i − s/d and z = 2s/d − 1 the columns are z^0..z^3, an indicator of every size, u_i z^t for
    t = 0..2, and u_i u_l z^t for the pairs and t = 0, 1. Coefficients that change with size are what games of
    higher order, and saturating ones, look like from order 1 and 2.
    """

    d: int
    pairs: IntArray  # (p, 2)

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns of the models to choose from: each has the terms of the one before."""
        first = SIZE_TERMS + self.d + 1 + self.d
        second = first + DEGREE * self.d
        return tuple(dict.fromkeys((first, second, second + len(self.pairs), second + 2 * len(self.pairs))))

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        """(n, columns)."""
        s = coalitions.sum(axis=1)[:, None]
        z = 2 * s / self.d - 1
        u = coalitions - s / self.d
        pairs = u[:, self.pairs[:, 0]] * u[:, self.pairs[:, 1]]
        mains = [u * z**t for t in range(DEGREE + 1)]
        return np.concatenate(
            [z ** np.arange(SIZE_TERMS), s == np.arange(self.d + 1), *mains, pairs, pairs * z], axis=1
        )

    def delta(self, beta: FloatArray) -> FloatArray:
        """(d, d) exact Δ of the polynomial with coefficients `beta`.

        A term contributes its mean over the coalitions of size j with i, less that over those of size j − 1
        without i; both depend only on whether i is a member of the term.
        """
        d, s = self.d, np.arange(self.d + 1)
        z = 2 * s / d - 1
        cuts = np.cumsum([SIZE_TERMS, d + 1, (DEGREE + 1) * d, len(self.pairs)])
        powers, sizes, mains, pairs, sloped = np.split(beta, cuts)
        delta = np.repeat(np.diff(z[:, None] ** np.arange(SIZE_TERMS) @ powers + sizes)[:, None], d, axis=1)
        for t, b in enumerate(mains.reshape(-1, d)):
            profile = _steps(z**t * (1 - s / d), -(z**t) * s / d)
            delta += profile[:, None] * (b - (b.sum() - b) / max(d - 1, 1))
        for t, c in enumerate((pairs, sloped) if len(pairs) else ()):
            member = np.bincount(self.pairs.ravel(), weights=np.repeat(c, 2), minlength=d)
            inside, outside = (_steps(z**t * one, z**t * other) for one, other in _pair_means(d))
            delta += inside[:, None] * member + outside[:, None] * (c.sum() - member)
        return np.asarray(delta)


def _steps(with_i: FloatArray, without_i: FloatArray) -> FloatArray:
    """(d,) means at size j with i less those at size j − 1 without i, from means by size 0..d."""
    return np.asarray(with_i[1:] - without_i[:-1])


def _pair_means(d: int) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """Means of u_i u_l by size over coalitions with and without player k: for k a member, and for k another."""
    s = np.arange(d + 1)
    p, pairs = s / d, (d - 1) * max(d - 2, 1)
    another_in = (s - 1) * (s - 2) / pairs - 2 * p * (s - 1) / (d - 1) + p**2
    another_out = s * (s - 1) / pairs - 2 * p * s / (d - 1) + p**2
    return (-((1 - p) ** 2) / (d - 1), -(p**2) / (d - 1)), (another_in, another_out)


def strongest_pairs(sample: Sample) -> IntArray:
    """(p, 2) pairs of the features with the largest |Δ_1| + |Δ_d|, at most 600, and at most a quarter of the draws.

    Δ_1 and Δ_d are known before anything is drawn, so the choice does not spoil the independence of the folds.
    """
    one, other = np.triu_indices(sample.d, 1)
    strength = np.abs(sample.known_delta[[0, -1]]).sum(axis=0)
    most = min(len(one), MOST_PAIRS, len(sample.values) // 4)
    top = np.sort(np.argsort(-strength[one] * strength[other], kind="stable")[:most])
    return np.stack([one[top], other[top]], axis=1)
