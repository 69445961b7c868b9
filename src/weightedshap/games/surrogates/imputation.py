"""Linear imputation of hidden columns, as additional inputs of a learned game's trees.

Where many columns have a common cause, a tree whose only inputs are x_S needs many splits to infer
a hidden column from them; with the imputed value it needs one. `Imputer` computes these values, and
`ImputedGame` is a learned game whose trees use them. `TreeSurrogate` fits both if `hints` is
positive, as in the default judge of trees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray, check_array
from weightedshap._lazy import special
from weightedshap.coalitions import prefixes, unique_pairs
from weightedshap.games.base import GameBatch
from weightedshap.games.surrogates.boosting import BINNING, LEARNING, BoostedGame
from weightedshap.games.surrogates.data import Encoding, MaskedRows
from weightedshap.inputs import Data, Model, Table
from weightedshap.inputs.rows import Rows

if TYPE_CHECKING:
    from weightedshap.trees.ensembles import Ensemble

# Columns to impute from: the time grows with the cube of their number.
MAX_PREDICTORS = 40
# Knots of the map from a column to its scores.
KNOTS = 256
# Added to the variances of the scores, which are at most one.
RIDGE = 0.01
# Decimals of scores and covariances.
DECIMALS = 9
# Masked rows whose inputs are in memory at once. More share the overhead of a call, fewer stay in
# the cache. Timed for 256 rows of 20 columns, it makes no difference: half and double are within
# the noise, 6 %.
LANES = 2**14
# The small trees that find the most predictive columns: parameters, number, and training rows.
SMALL_TREES = {
    "num_leaves": 15,
    "learning_rate": 0.15,
    "num_threads": 1,
    "seed": 0,
}
ROUNDS = 40
MAX_ROWS = 10_000


@dataclass(frozen=True)
class Imputer:
    """A linear imputation of the most predictive columns, from the columns that are known.

    Columns are replaced by their normal scores, z = Φ⁻¹ of the share of background rows below, so
    units, long tails and the number for a missing value have no effect. For each of the first K
    `predictors` the imputed value is E[z_q | z_S] as if scores were jointly normal; if q itself is
    known, it is z_q.
    """

    predictors: IntArray  # (H,) columns to impute from; the first K are also imputed
    n_targets: int  # K
    knots: tuple[FloatArray, ...]  # for each predictor: values, ascending
    scores: tuple[FloatArray, ...]  # for each predictor: the scores of these values
    covariance: FloatArray  # (H, H) of the scores
    # For each of the d players, the positions of its columns among the predictors.
    players: tuple[IntArray, ...]

    @classmethod
    def fit(cls, X: FloatArray, table: Table, targets: IntArray) -> Self:
        """Fit the imputation of the columns at positions `targets` to the background X (n, c).

        `targets` (K,) are the positions of K columns.
        """
        transforms = [normal_scores(column, table.weights) for column in X.T]
        scores = [np.interp(column, *knots) for column, knots in zip(X.T, transforms, strict=True)]
        Z = np.stack(scores, axis=1)  # (n, c) each column standard normal

        # Processors add up a matrix product in different orders. Trees split between equal inputs
        # that differ in their last digit, so without rounding another machine would choose other
        # weights.
        covariance = np.atleast_2d(np.cov(Z.T, aweights=table.weights, bias=True))
        covariance = np.round(covariance, DECIMALS)

        # Impute from the targets and from the columns that covary most with them.
        strength = (covariance[:, targets] ** 2).sum(axis=1)  # (c,)
        strength[targets] = np.inf
        strongest_first = np.argsort(-strength, kind="stable")
        n_predictors = max(MAX_PREDICTORS, len(targets))
        others = strongest_first[len(targets) : n_predictors]
        predictors = np.concatenate([targets, others])

        owner = table.player_of_column[predictors]
        return cls(
            predictors=predictors,
            n_targets=len(targets),
            knots=tuple(transforms[c][0] for c in predictors),
            scores=tuple(transforms[c][1] for c in predictors),
            covariance=covariance[np.ix_(predictors, predictors)] + RIDGE * np.eye(len(predictors)),
            players=tuple(np.flatnonzero(owner == player) for player in range(table.d)),
        )

    def to_scores(self, X: FloatArray) -> FloatArray:
        """Return the normal scores of the predictor columns, for encoded rows X (n, c)."""
        maps = zip(X[:, self.predictors].T, self.knots, self.scores, strict=True)
        columns = [np.interp(column, knots, scores) for column, knots, scores in maps]
        return np.stack(columns, axis=1)

    def values_at(self, X: FloatArray, row: IntArray, known: BoolArray) -> FloatArray:
        """Return imputed values of the target columns, for rows with some columns known.

        The result is (N, K) for N rows ``X[row]`` and K target columns; `known` (N, c) marks the
        known columns.
        """
        known_predictors = known[:, self.predictors]
        stop = np.cumsum(known_predictors.sum(axis=1))
        column = np.flatnonzero(known_predictors) % known_predictors.shape[1]
        return self._impute(X, row, column, stop[:, None])[:, 0]

    def along(self, X: FloatArray, orders: IntArray) -> FloatArray:
        """Impute the target columns of rows X, as players become known along orders.

        The result is (n, m, d + 1, K) for rows X (n, c), orders (n, m, d) and K target columns.
        """
        n, m, d = orders.shape
        sizes = np.array([len(columns) for columns in self.players])
        first_of_player = np.cumsum(sizes) - sizes

        # The columns that become known at each step of each order, one after the other.
        n_columns = sizes[orders.ravel()]  # (n·m·d,)
        stop = np.cumsum(n_columns)
        begin = first_of_player[orders.ravel()]
        within = np.repeat(begin - (stop - n_columns), n_columns) + np.arange(n_columns.sum())
        column = np.concatenate(self.players)[within]

        start = np.arange(n * m) * len(self.predictors)
        stops = np.concatenate([start[:, None], stop.reshape(-1, d)], axis=1)  # (n·m, d + 1)
        imputed = self._impute(X, np.repeat(np.arange(n), m), column, stops)
        return imputed.reshape(n, m, d + 1, -1)

    def _impute(self, X: FloatArray, row: IntArray, column: IntArray, stop: IntArray) -> FloatArray:
        """Impute the target columns of rows ``X[row]``, as other columns become known one by one.

        The result is (N, e, K) for N sequences of columns, e steps of each, and K target columns.
        `column` and `stop` (N, e) say which columns are known at each step; see
        `imputation_kernels.impute_along`.
        """
        from weightedshap.games.surrogates import imputation_kernels

        out = np.empty((*stop.shape, self.n_targets))
        imputation_kernels.impute_along(self.to_scores(X), row, column, stop, self.covariance, out)
        return out


def normal_scores(column: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return at most 256 distinct values of a column, ascending, and their normal scores.

    The score is Φ⁻¹ of the weight below a value plus half of its own weight.
    """
    values, place = np.unique(column, return_inverse=True)
    weight = np.bincount(place, weights)
    least = 0.25 / len(column)
    below = np.clip(np.cumsum(weight) - weight / 2, least, 1 - least)
    knots = np.unique(np.linspace(0, len(values) - 1, KNOTS).astype(np.intp))
    return values[knots], np.round(special.ndtri(below[knots]), DECIMALS)


def most_predictive_columns(X: FloatArray, f: FloatArray, weights: FloatArray, n: int) -> IntArray:
    """Return the positions of the n columns of X from which small trees predict f best."""
    import lightgbm

    if n >= X.shape[1]:
        return np.arange(X.shape[1])
    rows = np.unique(np.linspace(0, len(X) - 1, MAX_ROWS).astype(np.intp))
    sd = f.std(axis=0)
    standardised = (f - f.mean(axis=0)) / np.where(sd > 0, sd, 1.0)
    gain = np.zeros(X.shape[1])
    for target in standardised.T:
        data = lightgbm.Dataset(
            X[rows], target[rows], weight=weights[rows] * len(X), params=BINNING
        )
        trees = lightgbm.train({**LEARNING, **BINNING, **SMALL_TREES}, data, ROUNDS)
        gain += trees.feature_importance("gain")
    return np.argsort(-gain, kind="stable")[:n]


@dataclass(frozen=True, repr=False)
class ImputedGame(BoostedGame):
    """A game of trees whose inputs are the columns (NaN if hidden) and imputed values.

    Δ cannot be computed from the trees, since an imputed value depends on many columns.
    """

    label = "tree_surrogate"
    recipe = "TreeSurrogate"
    rows_per_block = 256

    imputer: Imputer = field(kw_only=True)

    @property
    def player_of_input(self) -> IntArray:
        # For the trees all inputs belong to one player that is known: hidden columns are NaN.
        return np.zeros(len(self.background.names) + self.imputer.n_targets, dtype=np.intp)

    def warm_up(self) -> Self:
        _ = self.background.player_of_column
        for ensemble in self.ensembles:
            ensemble.warm_up()
        return self

    def batch(self, rows: Rows) -> ImputedBatch:
        return ImputedBatch(self, rows, self.encoding(rows.data))

    def state(self) -> dict[str, Any]:
        targets = self.imputer.predictors[: self.imputer.n_targets]
        return {**super().state(), "guessed": targets}

    @classmethod
    def from_state(
        cls,
        content: Mapping[str, Any],
        model: Model,
        background: Table,
        extra_columns: int = 0,
        **fields: Any,
    ) -> Self:
        X = Encoding.from_state(content["encoding"], background.names)(background.data)
        targets = check_array("guessed", content["guessed"], (len(content["guessed"]),))
        if not set(targets.tolist()) <= set(range(X.shape[1])):
            raise ValueError("its imputed columns are not among those of the background.")
        imputer = Imputer.fit(X, background, targets.astype(np.intp))
        return super().from_state(
            content, model, background, extra_columns=len(targets), imputer=imputer
        )

    def values_at(self, rows: Data, masked: MaskedRows) -> FloatArray:
        return self._values_of_encoded(self.ensembles, self.encoding(rows), masked)

    def _values_of_encoded(
        self, ensembles: Sequence[Ensemble], X: FloatArray, masked: MaskedRows
    ) -> FloatArray:
        """Return the values (N, k) of tree ensembles at N masked rows, given encoded rows X."""
        from weightedshap.trees.ensembles import values_of_rows

        known = masked.coalition[:, self.background.player_of_column]
        imputed = self.imputer.values_at(X, masked.row, known)
        # The inputs of the trees: columns, NaN where hidden, followed by the imputed values.
        inputs = np.concatenate([np.where(known, X[masked.row], np.nan), imputed], axis=1)
        return values_of_rows(ensembles, inputs)


@dataclass(frozen=True, eq=False)
class ImputedBatch(GameBatch):
    """The games of n rows; a value is the trees' prediction for a row with hidden columns."""

    cost: ClassVar[str | None] = "cheap"

    game: ImputedGame
    X: FloatArray  # (n, c) encoded

    @cached_property
    def ensembles(self) -> tuple[Ensemble, ...]:
        """The tree ensembles, one for each output of this batch."""
        ensembles = self.game.ensembles
        return ensembles if self.outputs is None else tuple(ensembles[o] for o in self.outputs)

    def values(self, coalitions: BoolArray) -> FloatArray:
        m = len(coalitions)
        masked = MaskedRows(np.repeat(np.arange(self.n), m), np.tile(coalitions, (self.n, 1)))
        values = self.game._values_of_encoded(self.ensembles, self.X, masked)
        return values.reshape(self.n, m, -1)

    def along(self, orders: IntArray) -> FloatArray:
        from weightedshap.trees.ensembles import values_of_rows

        game = self.game
        n, m, d = orders.shape
        ensembles = self.ensembles
        out = np.empty((n, m, d + 1, len(ensembles)))
        step = max(1, LANES // (m * (d + 1)))
        for start in range(0, n, step):
            X = self.X[start : start + step]
            some = orders[start : start + step]
            imputed = game.imputer.along(X, some).reshape(-1, game.imputer.n_targets)  # (lanes, K)
            coalitions = prefixes(some.reshape(-1, d)).reshape(-1, d)
            row = np.repeat(np.arange(len(X)), m * (d + 1))
            first, inverse = unique_pairs(row, coalitions)
            known = coalitions[first][:, game.background.player_of_column]
            inputs = np.concatenate(
                [np.where(known, X[row[first]], np.nan), imputed[first]], axis=1
            )
            values = values_of_rows(ensembles, inputs)
            out[start : start + step] = values[inverse].reshape(len(X), m, d + 1, -1)
        return out
