"""Coalitions drawn per size, sizes 0, 1, d − 1 and d exact, a polynomial fitted to other draws as control variate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from weightedshap.checks import BoolArray, FloatArray, IntArray, as_generator
from weightedshap.contributions import Contributions
from weightedshap.estimators.strata import Fit, Sample, budget_of, estimate
from weightedshap.games.wrappers import checked

DEGREE = 2  # how single features change with the size of the coalition
SIZE_TERMS = 4
NONE = np.zeros(0, dtype=np.intp)
MOST_PAIRS = 300  # more cost time and bring little: the strongest are ranked first
PENALTIES = (1e-8, 1e-3, 1e-2, 1e-1)  # of the ridge, from none to strong


def stratified(
    game: Any, *, evaluations: int | None = None, rng: np.random.Generator | int | None = None, order: int = 2
) -> Contributions:
    """Estimate every Δ_j(x_i) from coalitions drawn size by size, with a polynomial as control variate.

    1. Evaluate all coalitions of sizes 0, 1, d − 1 and d, and of every other size that the budget covers.
    2. Draw coalitions of the remaining sizes with their complements, n_s ∝ √(1/s + 1/(d−s)) of size s, in ten folds.
       With forty or more for every size, draw only a quarter so, and the rest where the spread σ_s that an additive
       model leaves is large: n_s ∝ σ_s (1/s + 1/(d−s)).
    3. For every fold fit a polynomial g of the masks to the other folds (ridge regression); its pairs of features are
       those that explain most of what an additive model leaves of these folds.
    4. Δ = Δ(g), which is known, + Δ(v − g) by the means of the fold's remainders; average the folds.

    Every evaluation informs all features, so at the same accuracy far fewer are needed than by walks. A fold never
    meets a polynomial that has seen it, so there is no bias from fitting. That the first quarter decides how many more
    are drawn leaves a bias of order 1/n_s, small beside the standard error. If the budget covers all 2^d coalitions, Δ
    is exact.

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
    budget = budget_of(evaluations, game.d, "stratified sampling")
    return estimate(game, budget, rng, rough=Polynomials(1), crossfit=Polynomials(order), who="stratified")


@dataclass(frozen=True)
class Polynomials:
    """Ridge regressions of v on polynomials of the mask and its size, one for each group of folds."""

    order: int = 2

    def __call__(self, sample: Sample, y: FloatArray) -> Fit:
        with threadpool_limits(1, "blas"):  # many small systems: threads would wait for each other
            basis = Basis(sample.d, NONE.reshape(0, 2))
            X, beta = _regress(sample, y, basis, [basis.models()] * (len(sample.groups) - 1))
            if self.order == 2:
                ranked = [_ranked_pairs(sample, y - X @ b, g) for g, b in enumerate(beta, start=1)]
                union = np.unique(np.concatenate(ranked))
                basis = Basis(sample.d, np.stack(np.triu_indices(sample.d, 1), axis=1)[union])
                models = [basis.models(np.searchsorted(union, pairs)) for pairs in ranked]
                X, beta = _regress(sample, y, basis, models)
            predicted = beta @ X.T
        return Fit(np.stack([basis.delta(b) for b in beta]), predicted)


def _regress(
    sample: Sample, y: FloatArray, basis: Basis, models: Sequence[Sequence[IntArray]]
) -> tuple[FloatArray, FloatArray]:
    """(n, p) columns of the basis and (groups, p) coefficients for every group, fitted to the others."""
    X = basis(sample.coalitions)
    scale = np.sqrt((X**2).mean(axis=0))
    scale[scale == 0] = 1.0
    root = np.sqrt(sample.weights)
    parts = [Moments.of(X[rows] * (root[rows, None] / scale), y[rows] * root[rows]) for rows in sample.groups]
    return X, np.stack([_fit(parts, g, models[g - 1]) for g in range(1, len(parts))]) / scale


def _ranked_pairs(sample: Sample, remainder: FloatArray, group: int) -> IntArray:
    """(p,) pairs of features, as places in the upper triangle, by their products' share in the remainder of the others.

    At most 300, and at most a quarter of the draws.
    """
    others = np.concatenate([rows for g, rows in enumerate(sample.groups) if g != group])
    u = sample.coalitions[others] - (sample.sizes[others] / sample.d)[:, None]
    share = np.abs((u * (sample.weights * remainder)[others, None]).T @ u)[np.triu_indices(sample.d, 1)]
    return np.argsort(-share, kind="stable")[: min(MOST_PAIRS, len(others) // 4)]


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

    def ridge(self, columns: IntArray, penalty: float) -> FloatArray:
        """Coefficients, 0 for all but `columns`."""
        system = self.gram[np.ix_(columns, columns)]
        system[np.diag_indices(len(columns))] += np.where(columns < SIZE_TERMS, 1e-9, penalty) * self.n
        beta = np.zeros(len(self.cross))
        beta[columns] = scipy.linalg.solve(system, self.cross[columns], assume_a="pos", check_finite=False)
        return beta

    def error(self, beta: FloatArray) -> float:
        """Σ (y − Xβ)²."""
        return float(self.square - 2 * beta @ self.cross + beta @ self.gram @ beta)


def _fit(parts: Sequence[Moments], group: int, models: Sequence[IntArray]) -> FloatArray:
    """Coefficients for one group of draws from all the others; part 0 holds the sizes known in full."""
    others = [g for g in range(1, len(parts)) if g != group]
    held = others[group % len(others)]
    seen = sum((parts[g] for g in others if g != held), start=parts[0])

    def error(model: int, penalty: float) -> float:
        return parts[held].error(seen.ridge(models[model], penalty))

    first, middle, *rest = PENALTIES
    tried = {(model, middle): error(model, middle) for model in range(len(models))}
    best, _ = min(tried, key=tried.__getitem__)
    tried |= {(best, penalty): error(best, penalty) for penalty in (first, *rest)}
    best, penalty = min(tried, key=tried.__getitem__)
    return (seen + parts[held]).ridge(models[best], penalty)


@dataclass(frozen=True)
class Basis:
    """Polynomials of a mask x ∈ {0, 1}^d and its size s, whose Δ is known.

    With u_i = x_i − s/d and z = 2s/d − 1 the columns are z^0..z^3, an indicator of every size, u_i z^t for
    t = 0..2, and u_i u_l z^t for the pairs and t = 0, 1. Coefficients that change with size are what games of
    higher order, and saturating ones, look like from order 1 and 2.
    """

    d: int
    pairs: IntArray  # (p, 2)

    def models(self, ranked: IntArray = NONE) -> list[IntArray]:
        """Columns of the models to choose from, with more and more of the `ranked` pairs."""
        first = SIZE_TERMS + self.d + 1 + self.d
        second = first + DEGREE * self.d
        found = [np.arange(first), np.arange(second)]
        for share in (4, 2, 1) if len(ranked) else ():
            pairs = second + ranked[: len(ranked) // share]
            found += [np.concatenate([found[1], pairs]), np.concatenate([found[1], pairs, pairs + len(self.pairs)])]
        return found

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        """(n, columns)."""
        s = coalitions.sum(axis=1)[:, None]
        z = 2 * s / self.d - 1
        u = coalitions - s / self.d
        pairs = u[:, self.pairs[:, 0]] * u[:, self.pairs[:, 1]]
        mains = [u * z**t for t in range(DEGREE + 1)]
        return np.hstack([z ** np.arange(SIZE_TERMS), s == np.arange(self.d + 1), *mains, pairs, pairs * z])

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
