"""Theorem 1: Δ of linear models with block-exchangeable Gaussian features, in closed form.

Users call `block_exchangeable_contributions` as part of `weightedshap.games`; the paper's
experiments and the tests compare estimates with it.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from weightedshap._checks import FloatArray
from weightedshap._lazy import LazyModule
from weightedshap.contributions import Contributions

stats = LazyModule("scipy.stats")


def block_exchangeable_contributions(
    x: npt.ArrayLike,
    beta: npt.ArrayLike,
    blocks: Sequence[Sequence[int]],
    correlations: npt.ArrayLike,
) -> Contributions:
    """Compute the exact Δ of a linear model on block-exchangeable Gaussian features (Theorem 1).

    The time and the memory are O(d²). The model is f(x) = β₀ + xᵀβ, and X ~ N(0, Σ) with unit
    variances, correlation ρ_m between any two features of block m, and none between blocks. For
    feature i of block m, which has d_m features,

        Δ_j(x_i) = 1/C(d−1, j−1) · Σ_k C(d_m−1, k) C(d−d_m, j−1−k) · xᵀ h_{d_m}(i, k+1) β,

    a mean over the number k of features of the same block that are known: hypergeometric, from
    max(0, j−1−(d−d_m)) to min(d_m−1, j−1). With k known, the lemma gives, with sums over the block,

        xᵀ h(i, k+1) β = x_i β_i + a_k (d_m−1−k)/(d_m−1) · x_i Σ_{l≠i} β_l − b_k k/(d_m−1) · β_i
        Σ_{l≠i} x_l
                         + (a_k − b_k) k(d_m−1−k)/((d_m−1)(d_m−2)) · Σ_{l≠i} Σ_{l'≠i,l} x_l β_l',
        a_k = ρ/(1 + ρk),   b_k = ρ/(1 − ρ + ρk).

    The theorem as printed lacks the factor C(d_m−1, k) and has other limits of the sum. Fractions
    whose denominator vanishes in blocks of one and two features are zero, as their numerator is.

    Parameters
    ----------
    x, beta : (d,) the row, in standard units, and the coefficients
    blocks : the positions of each block's features; each of 0..d−1 is in exactly one block
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
    features = np.sort(np.concatenate([[], *members]))
    if not np.array_equal(features, np.arange(d)):
        raise ValueError(
            f"`blocks` must hold each of the features 0..{d - 1} once; together they hold"
            f" {features}."
        )
    rho = np.broadcast_to(np.asarray(correlations, dtype=np.float64), (len(members),))
    delta = np.empty((d, d))
    for block, r in zip(members, rho.tolist(), strict=True):
        n = len(block)
        n_known = np.arange(d)[:, None]  # j − 1
        share = stats.hypergeom.pmf(np.arange(n), max(d - 1, 1), n - 1, n_known)  # (d, n)
        delta[:, block] = (
            share @ _lemma_factors(n, r) @ _lemma_terms(row[block], coefficients[block])
        )
    return Contributions.from_exact(delta, stopped="exact: Theorem 1")


def _lemma_factors(n: int, rho: float) -> FloatArray:
    """Return the four factors (n, 4) of the lemma's terms (Theorem 1), for k = 0, …, n − 1."""
    least = -1.0 / (n - 1) if n > 1 else -np.inf
    if not least < rho < 1:
        raise ValueError(
            f"A block of {n} features with correlation {rho:g} has no positive definite covariance."
            f" Pass a correlation above {least:g} and below 1."
        )
    k = np.arange(n, dtype=np.float64)
    a = rho / (1 + rho * k)
    b = rho / (1 - rho + rho * k)
    hidden = (n - 1 - k) / max(n - 1, 1)
    known = k / max(n - 1, 1)
    both = known * (n - 1 - k) / max(n - 2, 1)
    return np.stack([np.ones(n), a * hidden, -b * known, (a - b) * both], axis=1)


def _lemma_terms(x: FloatArray, beta: FloatArray) -> FloatArray:
    """Return the four terms (4, n) of the lemma (Theorem 1) for one block, from x and β."""
    own = x * beta
    others_x = x.sum() - x
    others_beta = beta.sum() - beta
    pairs = others_x * others_beta - (own.sum() - own)
    return np.stack([own, x * others_beta, beta * others_x, pairs])
