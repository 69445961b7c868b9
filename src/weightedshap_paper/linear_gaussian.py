"""The paper's linear-Gaussian setting: contributions and recovery curves are known in closed form.

The experiments in `closed_form` use it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weightedshap._checks import FloatArray, IntArray
from weightedshap.games.closed_form import block_exchangeable_contributions


@dataclass(frozen=True)
class LinearGaussian:
    """A fitted linear model f(x) = β₀ + xᵀβ, the rows it was fitted to, and held-out rows.

    The d features are X ~ N(0, Σ), with variance 1 and correlation ρ between any two.
    """

    rho: float
    intercept: float
    beta: FloatArray  # (d,)
    X_train: FloatArray  # (n, d) the rows that the model was fitted to
    X: FloatArray  # (m, d) held-out rows to explain

    @classmethod
    def draw(
        cls, rho: float, rows: int, rng: np.random.Generator, *, n: int = 10_000, d: int = 100
    ) -> LinearGaussian:
        """Draw n training rows and `rows` held-out rows, and fit a linear model by least squares.

        The target is Y = Xᵀβ* + 2ε with β* = (1, 0.99, …, 0.81, 0, …, 0) and ε ~ N(0, 1).
        """
        truth = np.zeros(d)
        truth[:20] = (1 - 0.01 * np.arange(20))[:d]

        common = rng.standard_normal((n + rows, 1))
        own = rng.standard_normal((n + rows, d))
        X = np.sqrt(rho) * common + np.sqrt(1 - rho) * own
        y = X[:n] @ truth + 2 * rng.standard_normal(n)

        design = np.column_stack([np.ones(n), X[:n]])
        coefficients = np.linalg.lstsq(design, y, rcond=None)[0]
        return cls(rho, float(coefficients[0]), coefficients[1:], X[:n], X[n:])

    def predict(self, X: FloatArray) -> FloatArray:
        """Return the predictions f (n,) for rows X (n, d)."""
        return np.asarray(self.intercept + X @ self.beta)

    def contributions(self) -> FloatArray:
        """Return the exact contributions Δ (m, d, d) of all m held-out rows."""
        return contributions(self.X, self.beta, self.rho)

    def recovery(self, orders: IntArray) -> FloatArray:
        """Return the prediction errors with the first k = 0..d features of each order known.

        There are w `orders` (m, w, d) for each of the m held-out rows. The result is (m, w, d + 1):
        |f(x) − E[f(X) | first k features]|, with the values
        v(S) = x_Sᵀβ_S + ρ / (1 − ρ + ρ|S|) · Σ_S x · Σ_{not S} β, from the proof of the lemma.
        """
        x = np.take_along_axis(self.X[:, None, :], orders, axis=2)
        beta = self.beta[orders]
        own = _partial_sums(x * beta)
        sum_x = _partial_sums(x)
        sum_beta = _partial_sums(beta)

        k = np.arange(x.shape[2] + 1)
        hidden_beta = sum_beta[..., -1:] - sum_beta
        values = own + self.rho / (1 - self.rho + self.rho * k) * sum_x * hidden_beta
        return np.abs(own[..., -1:] - values)


def contributions(X: FloatArray, beta: FloatArray, rho: float) -> FloatArray:
    """Return the exact contributions Δ (m, d, d) of rows X (m, d), by the paper's Theorem 1.

    The model has coefficients `beta`, and any two features have correlation `rho`. Δ is bilinear in
    x and β, so it is computed for unit vectors x and combined linearly.
    """
    d = len(beta)
    of_unit_vectors = np.stack(
        [block_exchangeable_contributions(unit, beta, [range(d)], rho).mean for unit in np.eye(d)]
    )
    return np.asarray(np.tensordot(X, of_unit_vectors, axes=1))


def _partial_sums(terms: FloatArray) -> FloatArray:
    """Return the sums of the first k terms along the last axis, for k = 0..d."""
    return np.concatenate([np.zeros_like(terms[..., :1]), terms.cumsum(axis=-1)], axis=-1)
