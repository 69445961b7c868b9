"""Games in which hidden features are drawn given the known ones (Gaussian or copula).

`Gaussian` and `Copula` estimate the distribution on the background and average the model's
predictions over draws. They need columns of numbers; `weightedshap.games` lists them by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from weightedshap._checks import (
    LARGEST,
    BoolArray,
    FloatArray,
    Seed,
    check_positive_integer,
    optional_attrs,
)
from weightedshap._lazy import LazyModule, special
from weightedshap.coalitions import slices_of
from weightedshap.games.base import BaseGame, RowwiseBatch
from weightedshap.games.surrogates.data import too_large_error
from weightedshap.games.user import as_model_and_table
from weightedshap.inputs import Data, Model, Table, plain_column
from weightedshap.inputs.rows import Rows

covariance = LazyModule("sklearn.covariance")
# Memory for the rows that are drawn for one call of the model.
BATCH_BYTES = 2**26
# A correlation matrix with a smaller eigenvalue is shrunk.
LEAST_EIGENVALUE = 1e-8


@dataclass(frozen=True)
class Gaussian:
    """v(S) = E[f(X) | X_S = x_S] for X ~ N(μ, Σ), with μ and Σ estimated on the background.

    Hidden features are drawn from their exact conditional distribution by Matheron's rule: from a
    draw Y of all features,

        X_H = Y_H + Σ_HS Σ_SS⁻¹ (x_S − Y_S),

    with the same `draws` of Y, in pairs μ ± e, for every coalition and every row; the model's
    predictions are averaged. For a linear model the mean over a pair is exact, so the only draw is
    the conditional mean. Sample correlations that are not positive definite are shrunk towards
    zero; ``info["shrinkage"]`` is the intensity, that of Ledoit and Wolf. Columns must be numbers
    without missing values; categories and booleans raise an error.

    Parameters
    ----------
    draws : number of draws of the hidden features for each coalition
    """

    draws: int = 256
    margins: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        check_positive_integer("draws", self.draws)

    def fit(self, model: object, background: Data, rng: Seed = None) -> GaussianGame:
        """Estimate the distribution on the background, and draw the samples to average over."""
        model, table, rng = as_model_and_table(model, background, rng)
        X = _as_finite_floats(table.data, table)
        transform = RankTransform.fit(X, table.weights, self.margins)
        correlation, shrinkage = _correlation(transform.to_scores(X), table.weights)

        normal = rng.standard_normal((-(-self.draws // 2), X.shape[1]))
        half = normal @ np.linalg.cholesky(correlation).T
        draws = np.concatenate([half, -half])
        if self.margins == "gaussian" and _is_linear(model, X, table):
            draws = np.zeros((1, X.shape[1]))
        return GaussianGame(model, table, transform, correlation, draws, shrinkage)


@dataclass(frozen=True)
class Copula(Gaussian):
    """Like `Gaussian`, but with a Gaussian copula: features are replaced by normal scores.

    The scores come from the ranks in the background, and draws are mapped back by its quantiles.
    Every feature keeps its own distribution, within the range of the background; only the
    dependence is Gaussian.
    """

    margins: ClassVar[str] = "copula"


@dataclass(frozen=True)
class RankTransform:
    """A map between features and standard normal scores, by mean and sd or by ranks."""

    mean: FloatArray  # (c,)
    scale: FloatArray  # (c,)
    ranks: tuple[tuple[FloatArray, ...], ...] = ()  # for each column of a copula, see `_ranks`

    @classmethod
    def fit(cls, X: FloatArray, weights: FloatArray, kind: str) -> RankTransform:
        """Fit the map to columns X (n, c); `kind` is "gaussian" (mean, sd) or "copula" (ranks)."""
        mean = weights @ X
        scale = np.sqrt(weights @ (X - mean) ** 2)
        ranks = tuple(_ranks(x, weights) for x in X.T) if kind == "copula" else ()
        return cls(mean, scale, ranks)

    def to_scores(self, X: FloatArray) -> FloatArray:
        """Return the normal scores (n, c) of features X (n, c)."""
        if not self.ranks:
            return np.asarray((X - self.mean) / np.where(self.scale > 0, self.scale, 1.0))
        scores = []
        for x, (_, _, distinct, mid_ranks) in zip(X.T, self.ranks, strict=True):
            scores.append(special.ndtri(np.interp(x, distinct, mid_ranks)))
        return np.stack(scores, axis=1)

    def to_features(self, scores: FloatArray) -> FloatArray:
        """Return the features (n, c) that have the given normal scores (n, c)."""
        if not self.ranks:
            return np.asarray(self.mean + self.scale * scores)
        features = []
        for u, (ranks, values, _, _) in zip(special.ndtr(scores).T, self.ranks, strict=True):
            features.append(np.interp(u, ranks, values))
        return np.stack(features, axis=1)


@dataclass(frozen=True, repr=False)
class GaussianGame(BaseGame):
    """A game whose hidden features are drawn from an estimated Gaussian or copula.

    All rows and coalitions share the same draws.
    """

    label = "gaussian"

    model: Model
    background: Table
    transform: RankTransform
    correlation: FloatArray  # (c, c) of the scores
    draws: FloatArray  # (b, c) scores
    shrinkage: float = 0.0  # the share of the identity in `correlation`

    @cached_property
    def info(self) -> Mapping[str, Any]:
        return {
            "game": "copula" if self.transform.ranks else self.label,
            "background_rows": len(self.background),
            "draws": len(self.draws),
            "shrinkage": self.shrinkage,
        }

    def batch(self, rows: Rows) -> GaussianBatch:
        X = _as_finite_floats(rows.data, self.background)
        return GaussianBatch(self, rows, X, self.transform.to_scores(X))

    def conditional_draws(self, x: FloatArray, z: FloatArray, known: BoolArray) -> FloatArray:
        """Draw the hidden columns of a row x (c,) given its known ones; return rows (b, c).

        z (c,) are the normal scores of x.
        """
        scores = self.draws.copy()
        if known.any() and not known.all():
            # Matheron's rule, see `Gaussian`.
            among_known = self.correlation[np.ix_(known, known)]
            with_hidden = self.correlation[np.ix_(known, ~known)]
            gain = np.linalg.solve(among_known, with_hidden)
            scores[:, ~known] += (z[known] - self.draws[:, known]) @ gain
        return np.where(known, x, self.transform.to_features(scores))


@dataclass(frozen=True, eq=False)
class GaussianBatch(RowwiseBatch):
    """The games of n rows, with hidden columns drawn given the known ones."""

    game: GaussianGame
    X: FloatArray  # (n, c)
    Z: FloatArray  # (n, c) the normal scores of X

    def row_values(self, r: int, coalitions: BoolArray) -> FloatArray:
        game = self.game
        table = game.background
        x = self.X[r]
        z = self.Z[r]
        columns = coalitions[:, table.player_of_column]
        step = max(1, BATCH_BYTES // (8 * game.draws.size))
        means = np.empty((len(columns), len(game.model.output_positions)))
        for part in slices_of(len(columns), step):
            drawn = np.concatenate([game.conditional_draws(x, z, known) for known in columns[part]])
            # Use the dtypes of the rows, which represent the known cells exactly and may be wider
            # than the background's.
            mixed = table.container.from_columns(list(drawn.T), self.rows.data, "X")
            predictions = game.model(mixed).reshape(-1, len(game.draws), means.shape[1])
            means[part] = predictions.mean(axis=1)
        return means


def _ranks(x: FloatArray, weights: FloatArray) -> tuple[FloatArray, ...]:
    """Return the ranks and sorted values of a column, then its distinct values and their ranks.

    Ranks and sorted values have shape (n,). The rank (u,) of a distinct value (u,) is the mean rank
    of the cells that contain it.
    """
    order = np.argsort(x, kind="stable")
    ranks = weights[order].cumsum() - weights[order] / 2
    distinct, place, counts = np.unique(x[order], return_inverse=True, return_counts=True)
    return ranks, x[order], distinct, np.bincount(place, weights=ranks) / counts


def _as_finite_floats(rows: Data, table: Table) -> FloatArray:
    """Return rows as floats (n, c); raise an error naming a column without finite numbers."""
    columns = [plain_column(rows, c) for c in range(len(table.names))]
    names = table.names
    for c, column in enumerate(columns):
        if column.dtype == object or table.container.is_boolean(table.data, c):
            raise TypeError(
                f"Column {names[c]!r} holds categories, which have no Gaussian distribution. Use"
                " the game 'tree_surrogate', or turn the column into numbers."
            )
    X = np.stack(columns, axis=1).astype(np.float64)
    if not np.isfinite(X).all():
        name = names[int(np.argwhere(~np.isfinite(X))[0, 1])]
        raise ValueError(
            f"Column {name!r} has a missing or infinite value, which no Gaussian distribution has."
            " Use the game 'tree_surrogate', or fill it in."
        )
    if (np.abs(X) > LARGEST).any():
        raise too_large_error(X, names)
    return X


def _correlation(scores: FloatArray, weights: FloatArray) -> tuple[FloatArray, float]:
    """Estimate the correlations (c, c) of scores (n, c); also return the shrinkage intensity.

    Sample correlations that are not positive definite are shrunk towards zero; for others the
    intensity is 0.
    """
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
    """Return whether the model has coefficients that reproduce its predictions at X (n, c)."""
    coefficients = optional_attrs(model.original, "coef_", "intercept_")
    if len(coefficients) < 2 or model.space != "value" or model.is_custom:
        return False
    slopes = np.asarray(coefficients["coef_"], dtype=np.float64)
    raw = np.atleast_2d(np.asarray(X @ slopes.T + coefficients["intercept_"]).T).T
    f = model(table.container.from_columns(list(X.T), table.data, "background"))
    near = {"rtol": 1e-9, "atol": 1e-9 * (1 + np.abs(f).max())}
    return raw.shape[1] == model.n_raw and bool(
        np.allclose(raw[:, list(model.output_positions)], f, **near)
    )
