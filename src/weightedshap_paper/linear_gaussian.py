"""The paper's linear-Gaussian setting, where contributions and recovery curves are known in closed
form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weightedshap._checks import FloatArray, IntArray
from weightedshap.games.gaussian import block_exchangeable_contributions


@dataclass(frozen=True)
class LinearGaussian:
    """f(x) = β₀ + xᵀβ and X ~ N(0, Σ) with correlation ρ between any two of d features."""

    rho: float
    intercept: float
    beta: FloatArray  # (d,)
    X_train: FloatArray  # (n, d) the rows that the model was fitted to
    X: FloatArray  # (m, d) held-out rows to explain

    @classmethod
    def drawn(
        cls, rho: float, rows: int, rng: np.random.Generator, *, n: int = 10_000, d: int = 100
    ) -> LinearGaussian:
        """Y = Xᵀβ* + 2ε with β* = (1, 0.99, …, 0.81, 0, …, 0), the model fitted by least squares to
        n rows."""
        truth = np.zeros(d)
        truth[:20] = (1 - 0.01 * np.arange(20))[:d]
        X = np.sqrt(rho) * rng.standard_normal((n + rows, 1)) + np.sqrt(
            1 - rho
        ) * rng.standard_normal((n + rows, d))
        y = X[:n] @ truth + 2 * rng.standard_normal(n)
        fitted = np.linalg.lstsq(np.column_stack([np.ones(n), X[:n]]), y, rcond=None)[0]
        return cls(rho, float(fitted[0]), fitted[1:], X[:n], X[n:])

    def predict(self, X: FloatArray) -> FloatArray:
        """f of rows (n, d): (n,)."""
        return np.asarray(self.intercept + X @ self.beta)

    def contributions(self) -> FloatArray:
        """The exact Δ of every held-out row: (m, d, d)."""
        return contributions(self.X, self.beta, self.rho)

    def recovery(self, orders: IntArray) -> FloatArray:
        """|f(x) − E[f(X) | first k]| for k = 0..d along orders (m, w, d): (m, w, d + 1).

        v(S) = x_Sᵀβ_S + ρ / (1 − ρ + ρ|S|) · Σ_S x · Σ_{not S} β, from the proof of the lemma.
        """
        x = np.take_along_axis(self.X[:, None, :], orders, axis=2)
        beta = self.beta[orders]
        own, sum_x, sum_beta = (_sums(terms) for terms in (x * beta, x, beta))
        k = np.arange(x.shape[2] + 1)
        others = sum_beta[..., -1:] - sum_beta
        known = own + self.rho / (1 - self.rho + self.rho * k) * sum_x * others
        return np.abs(own[..., -1:] - known)


def contributions(X: FloatArray, beta: FloatArray, rho: float) -> FloatArray:
    """(m, d, d) Δ of rows X (m, d) by Theorem 1, asked for unit vectors in the place of x: Δ is
    bilinear in x and β."""
    d = len(beta)
    of_unit = np.stack(
        [block_exchangeable_contributions(unit, beta, [range(d)], rho).mean for unit in np.eye(d)]
    )
    return np.asarray(np.tensordot(X, of_unit, axes=1))


def _sums(terms: FloatArray) -> FloatArray:
    """Σ of the first k = 0..d terms on the last axis."""
    return np.concatenate([np.zeros_like(terms[..., :1]), terms.cumsum(axis=-1)], axis=-1)
