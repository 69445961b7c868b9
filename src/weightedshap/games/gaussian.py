"""Hidden features follow the known ones as in a Gaussian distribution or copula; and the closed
form of Theorem 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from weightedshap._checks import BoolArray, FloatArray, Seed, offered, positive_integer
from weightedshap._lazy import Lazily, special
from weightedshap.coalitions import batches
from weightedshap.contributions import Contributions
from weightedshap.games.surrogates.data import refuse_infinite
from weightedshap.games.user import FittedOnTable, Rowwise, wrapped
from weightedshap.inputs import Data, Model, Table, column_of

stats = Lazily("scipy.stats")
covariance = Lazily("sklearn.covariance")
BATCH_BYTES = 2**26  # drawn rows held at once
LEAST_EIGENVALUE = 1e-8  # of a correlation matrix that is taken as it is


@dataclass(frozen=True)
class Gaussian:
    """v(S) = E[f(X) | X_S = x_S] for X ~ N(μ, Σ), with μ and Σ of the background.

    Hidden features are drawn from their exact conditional distribution by Matheron's rule: from a
    draw Y of all features,

        X_H = Y_H + Σ_HS Σ_SS⁻¹ (x_S − Y_S),

    with the same `draws` of Y, in pairs μ ± e, for every coalition and every row; and the model's
    predictions are averaged. For a linear model the pairs make the mean exact, so one draw at the
    conditional mean is taken. Where the sample correlations are not positive definite they are
    shrunk towards zero, by the intensity of Ledoit and Wolf; ``info["shrinkage"]`` says by how
    much. Columns must be numbers without holes; categories and booleans are refused.

    Parameters
    ----------
    draws : of the hidden features, for each coalition
    """

    draws: int = 256
    margins: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        positive_integer("draws", self.draws)

    def fit(self, model: object, background: Data, rng: Seed = None) -> FittedGaussian:
        """Estimate the distribution and draw from it once."""
        model, table, rng = wrapped(model, background, rng)
        X = _numbers(table.data, table)
        margins = Margins.of(X, table.weights, self.margins)
        correlation, shrinkage = _correlation(margins.scores(X), table.weights)
        half = (
            rng.standard_normal((-(-self.draws // 2), X.shape[1]))
            @ np.linalg.cholesky(correlation).T
        )
        linear = self.margins == "gaussian" and _is_linear(model, X, table)
        draws = np.zeros((1, X.shape[1])) if linear else np.concatenate([half, -half])
        return FittedGaussian(model, table, margins, correlation, draws, shrinkage)


@dataclass(frozen=True)
class Copula(Gaussian):
    """As `Gaussian`, of normal scores by the ranks in the background, turned back by its quantiles.

    Every feature keeps its own distribution, within the range of the background; only the
    dependence is Gaussian.
    """

    margins: ClassVar[str] = "copula"


@dataclass(frozen=True)
class Margins:
    """How features become standard normal scores and back: by mean and scale, or by ranks for a
    copula."""

    mean: FloatArray  # (c,)
    scale: FloatArray  # (c,)
    ranks: tuple[tuple[FloatArray, ...], ...] = ()  # of each column of a copula, see `_ranks`

    @classmethod
    def of(cls, X: FloatArray, weights: FloatArray, kind: str) -> Margins:
        mean = weights @ X
        ranks = tuple(_ranks(x, weights) for x in X.T) if kind == "copula" else ()
        return cls(mean, np.sqrt(weights @ (X - mean) ** 2), ranks)

    def scores(self, X: FloatArray) -> FloatArray:
        if not self.ranks:
            return np.asarray((X - self.mean) / np.where(self.scale > 0, self.scale, 1.0))
        columns = zip(X.T, self.ranks, strict=True)
        return np.stack(
            [special.ndtri(np.interp(x, distinct, mid)) for x, (_, _, distinct, mid) in columns],
            axis=1,
        )

    def features(self, scores: FloatArray) -> FloatArray:
        if not self.ranks:
            return np.asarray(self.mean + self.scale * scores)
        columns = zip(special.ndtr(scores).T, self.ranks, strict=True)
        return np.stack(
            [np.interp(u, share, values) for u, (share, values, _, _) in columns], axis=1
        )


@dataclass(frozen=True, repr=False)
class FittedGaussian(FittedOnTable):
    """The distribution and the draws."""

    margins: Margins
    correlation: FloatArray  # (c, c) of the scores
    draws: FloatArray  # (b, c) scores, common to all rows and coalitions
    shrinkage: float = 0.0  # the share of the identity in `correlation`

    @cached_property
    def info(self) -> Mapping[str, Any]:
        game = "copula" if self.margins.ranks else "gaussian"
        rows = len(self.background)
        return {
            "game": game,
            "background_rows": rows,
            "draws": len(self.draws),
            "shrinkage": self.shrinkage,
        }

    def block(self, rows: Data) -> GaussianBlock:
        X = _numbers(rows, self.background)
        return GaussianBlock(self.background.d, len(rows), self, rows, X, self.margins.scores(X))

    def drawn(self, x: FloatArray, z: FloatArray, known: BoolArray) -> FloatArray:
        """(b, c) rows that share the known columns (c,) with x (c,), whose scores are z; others
        drawn given them."""
        scores = self.draws.copy()
        if known.any() and not known.all():
            gain = np.linalg.solve(
                self.correlation[np.ix_(known, known)], self.correlation[np.ix_(known, ~known)]
            )
            scores[:, ~known] += (z[known] - self.draws[:, known]) @ gain
        return np.where(known, x, self.margins.features(scores))


@dataclass(frozen=True)
class GaussianBlock(Rowwise):
    """Rows whose hidden columns are drawn given the known ones."""

    fitted: FittedGaussian
    rows: Data  # in the background's type
    X: FloatArray  # (n, c)
    Z: FloatArray  # (n, c) their scores

    def row_values(self, r: int, coalitions: BoolArray) -> FloatArray:
        fitted = self.fitted
        table = self.fitted.background
        x = self.X[r]
        z = self.Z[r]
        columns = table.known_columns(coalitions)
        step = max(1, BATCH_BYTES // (8 * fitted.draws.size))
        means = np.empty((len(columns), len(fitted.model.chosen)))
        for cut in batches(len(columns), step):
            rows = np.concatenate([fitted.drawn(x, z, known) for known in columns[cut]])
            # in dtypes of the rows, which hold the known cells exactly and may be wider than the
            # background's
            predictions = fitted.model(table.kind.build(list(rows.T), self.rows, "X"))
            means[cut] = predictions.reshape(-1, len(fitted.draws), means.shape[1]).mean(axis=1)
        return means


def _ranks(x: FloatArray, weights: FloatArray) -> tuple[FloatArray, ...]:
    """The ranks, 0..1, of a column's sorted cells, and these; its distinct values and the mean rank
    of their copies."""
    order = np.argsort(x, kind="stable")
    share = weights[order].cumsum() - weights[order] / 2
    distinct, where, counts = np.unique(x[order], return_inverse=True, return_counts=True)
    return share, x[order], distinct, np.bincount(where, weights=share) / counts


def _numbers(rows: Data, table: Table) -> FloatArray:
    """Rows as floats, or an error that names the column that is no number."""
    columns = [column_of(rows, c) for c in range(len(table.names))]
    names = table.names
    for c, column in enumerate(columns):
        if column.dtype == object or table.kind.is_boolean(table.data, c):
            said = f"Column {names[c]!r} holds categories, which have no Gaussian distribution."
            raise TypeError(
                f"{said} Use the game 'tree_surrogate', or turn the column into numbers."
            )
    X = np.stack(columns, axis=1).astype(np.float64)
    if not np.isfinite(X).all():
        said = (
            f"Column {names[int(np.argwhere(~np.isfinite(X))[0, 1])]!r} has a missing or infinite"
            " value"
        )
        raise ValueError(
            f"{said}, which no Gaussian distribution has. Use the game 'tree_surrogate', or fill"
            " it in."
        )
    refuse_infinite(X, names)
    return X


def _correlation(scores: FloatArray, weights: FloatArray) -> tuple[FloatArray, float]:
    """The correlations of scores (n, c), positive definite, and how much they were shrunk towards
    zero."""
    centred = scores - weights @ scores
    scale = np.sqrt(weights @ centred**2)
    units = centred / np.where(scale > 0, scale, 1.0)
    sample = (units * weights[:, None]).T @ units
    np.fill_diagonal(sample, 1.0)
    if np.linalg.eigvalsh(sample)[0] > LEAST_EIGENVALUE:
        return sample, 0.0
    shrinkage = max(float(covariance.ledoit_wolf_shrinkage(units, assume_centered=True)), 1e-6)
    return (1 - shrinkage) * sample + shrinkage * np.eye(len(sample)), shrinkage


def _is_linear(model: Model, X: FloatArray, table: Table) -> bool:
    """Whether the model says that it is linear, and is, on the background."""
    has = offered(model.original, "coef_", "intercept_")
    if len(has) < 2 or model.space != "value" or model.custom:
        return False
    raw = np.atleast_2d(
        np.asarray(X @ np.asarray(has["coef_"], dtype=np.float64).T + has["intercept_"]).T
    ).T
    f = model(table.kind.build(list(X.T), table.data, "background"))
    near = {"rtol": 1e-9, "atol": 1e-9 * (1 + np.abs(f).max())}
    return raw.shape[1] == model.n_raw and bool(np.allclose(raw[:, list(model.chosen)], f, **near))


def block_exchangeable_contributions(
    x: npt.ArrayLike,
    beta: npt.ArrayLike,
    blocks: Sequence[Sequence[int]],
    correlations: npt.ArrayLike,
) -> Contributions:
    """Theorem 1: the exact Δ of a linear model on block-exchangeable Gaussian features, in O(d²)
    time and memory.

    The model is f(x) = β₀ + xᵀβ, and X ~ N(0, Σ) with unit variances, correlation ρ_m between any
    two features of block m, and none between blocks. For feature i of block m, which has d_m
    features,

        Δ_j(x_i) = 1/C(d−1, j−1) · Σ_k C(d_m−1, k) C(d−d_m, j−1−k) · xᵀ h_{d_m}(i, k+1) β,

    a mean over the number k of features of the same block that are known: hypergeometric, from
    max(0, j−1−(d−d_m)) to min(d_m−1, j−1). With k known, the lemma gives, sums over the block,

        xᵀ h(i, k+1) β = x_i β_i + a_k (d_m−1−k)/(d_m−1) · x_i Σ_{l≠i} β_l − b_k k/(d_m−1) · β_i
        Σ_{l≠i} x_l
                         + (a_k − b_k) k(d_m−1−k)/((d_m−1)(d_m−2)) · Σ_{l≠i} Σ_{l'≠i,l} x_l β_l',
        a_k = ρ/(1 + ρk),   b_k = ρ/(1 − ρ + ρk).

    The theorem as printed lacks the factor C(d_m−1, k) and has other limits of the sum. Fractions
    whose denominator vanishes in blocks of one and two features are zero, as their numerator is.

    Parameters
    ----------
    x, beta : (d,) the row, in standard units, and the coefficients
    blocks : the positions of each block's features; together each of 0..d−1 once
    correlations : one ρ for all blocks, or one for each, in (−1/(d_m−1), 1)

    Examples
    --------
    >>> block_exchangeable_contributions([1.0, 2.0], [1.0, 0.0], [[0, 1]], 0.5).mean
    array([[1., 1.],
           [0., 0.]])
    """
    row = np.asarray(x, dtype=np.float64)
    coefficients = np.asarray(beta, dtype=np.float64)
    if row.ndim != 1 or row.shape != coefficients.shape or not len(row):
        raise ValueError(
            f"`x` and `beta` must both have shape (d,); got {row.shape} and {coefficients.shape}."
        )
    if not (np.isfinite(row).all() and np.isfinite(coefficients).all()):
        raise ValueError("`x` and `beta` must be finite.")
    members = [np.asarray(block, dtype=np.intp).ravel() for block in blocks if len(block)]
    d = len(row)
    if not np.array_equal(listed := np.sort(np.concatenate([[], *members])), np.arange(d)):
        raise ValueError(
            f"`blocks` must hold each of the features 0..{d - 1} once; together they hold {listed}."
        )
    rho = np.broadcast_to(np.asarray(correlations, dtype=np.float64), (len(members),))
    delta = np.empty((d, d))
    for block, r in zip(members, rho.tolist(), strict=True):
        n = len(block)
        drawn = np.arange(d)[:, None]  # j − 1
        known = stats.hypergeom.pmf(np.arange(n), max(d - 1, 1), n - 1, drawn)  # (d, n)
        delta[:, block] = (
            known @ _lemma_factors(n, r) @ _lemma_terms(row[block], coefficients[block])
        )
    return Contributions.known(delta, stopped="exact: Theorem 1")


def _lemma_factors(n: int, rho: float) -> FloatArray:
    """(n, 4) what multiplies each of `_lemma_terms` when k = 0..n−1 others of the block are
    known."""
    least = -1.0 / (n - 1) if n > 1 else -np.inf
    if not least < rho < 1:
        said = (
            f"A block of {n} features with correlation {rho:g} has no positive definite covariance."
        )
        raise ValueError(f"{said} Pass a correlation above {least:g} and below 1.")
    k = np.arange(n, dtype=np.float64)
    a = rho / (1 + rho * k)
    b = rho / (1 - rho + rho * k)
    hidden = (n - 1 - k) / max(n - 1, 1)
    known = k / max(n - 1, 1)
    both = known * (n - 1 - k) / max(n - 2, 1)
    return np.stack([np.ones(n), a * hidden, -b * known, (a - b) * both], axis=1)


def _lemma_terms(x: FloatArray, beta: FloatArray) -> FloatArray:
    """(4, n) the products of x and β in xᵀ h(i, k+1) β, for every feature i of one block."""
    own = x * beta
    others_x = x.sum() - x
    others_beta = beta.sum() - beta
    pairs = others_x * others_beta - (own.sum() - own)
    return np.stack([own, x * others_beta, beta * others_x, pairs])
