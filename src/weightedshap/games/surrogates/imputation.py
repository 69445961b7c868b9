"""What known columns say about hidden ones, as further columns of a learned game: c(x_S) with
hints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray, stored_array
from weightedshap._lazy import special
from weightedshap.coalitions import distinct_pairs, ends, prefixes
from weightedshap.games.base import ExactFitted
from weightedshap.games.surrogates.boosting import BINNING, LEARNING, Boosted
from weightedshap.games.surrogates.data import Encoding, Masked
from weightedshap.games.user import WalkingGame
from weightedshap.inputs import Data, Model, Table

if TYPE_CHECKING:
    from weightedshap.trees.ensembles import Ensemble

HELPERS = 40  # columns at most that hints are drawn from
KNOTS = 256  # of the way from a column to its scores
RIDGE = 0.01  # added to variances, which are at most one
DECIMALS = 9  # of scores and covariances
LANES = 2**14  # masked rows laid out at once
# Trees that tell which columns matter.
GROWN = {
    "num_leaves": 15,
    "learning_rate": 0.15,
    "num_threads": 1,
    "seed": 0,
}
ROUNDS = 40
ENOUGH = 10_000  # of them, and rows that they are grown on


@dataclass(frozen=True)
class Hints:
    """x̂_q(x_S), the linear guess at the columns that matter most from the columns that are known.

    Columns are looked at by their normal scores, z = Φ⁻¹ of the share of background rows below, so
    that neither units nor long tails nor the number that stands for a missing value have a say. For
    each of the first K `helpers` the hint is E[z_q | z_S] as if scores were jointly normal; where q
    itself is known it is z_q. A tree that sees only x_S has to find out what a common cause of many
    columns says about a hidden one from one split after the other; with the hint it takes one.
    """

    helpers: IntArray  # (H,) columns that tell of each other, the K that are guessed at first
    most: int  # K
    knots: tuple[FloatArray, ...]  # of each helper, values ascending,
    scores: tuple[FloatArray, ...]  # and their scores
    covariance: FloatArray  # (H, H) of the scores
    # For each of the d players, the positions of its columns among the helpers.
    players: tuple[IntArray, ...]

    @classmethod
    def of(cls, X: FloatArray, table: Table, guessed: IntArray) -> Self:
        """Hints about the columns `guessed` (K,) of the encoded background X (n, c)."""
        ways = [_scores(column, table.weights) for column in X.T]
        Z = np.stack(
            [np.interp(column, *way) for column, way in zip(X.T, ways, strict=True)], axis=1
        )
        # Processors add up a matrix product in different orders. Trees split between equal hints
        # that differ in their last digit, so without rounding another machine would choose other
        # weights.
        covariance = np.round(
            np.atleast_2d(np.cov(Z.T, aweights=table.weights, bias=True)), DECIMALS
        )
        told = (covariance[:, guessed] ** 2).sum(axis=1)
        told[guessed] = np.inf
        others = np.argsort(-told, kind="stable")[len(guessed) : max(HELPERS, len(guessed))]
        helpers = np.concatenate([guessed, others])
        knots, scores = zip(*(ways[c] for c in helpers), strict=True)
        among = covariance[np.ix_(helpers, helpers)] + RIDGE * np.eye(len(helpers))
        owner = table.player_of_column[helpers]
        players = tuple(np.flatnonzero(owner == player) for player in range(table.d))
        return cls(helpers, len(guessed), knots, scores, among, players)

    def scored(self, X: FloatArray) -> FloatArray:
        """(n, H) the scores of the helpers of encoded rows (n, c)."""
        ways = zip(X[:, self.helpers].T, self.knots, self.scores, strict=True)
        return np.stack(
            [np.interp(column, knots, scores) for column, knots, scores in ways], axis=1
        )

    def pairs(self, X: FloatArray, row: IntArray, known: BoolArray) -> FloatArray:
        """(N, K) the hints of row ``X[row[t]]`` of which the columns ``known[t]`` (N, c) are
        known."""
        told = known[:, self.helpers]
        stop = np.cumsum(told.sum(axis=1))
        return self._guessed(X, row, np.flatnonzero(told) % told.shape[1], stop[:, None])[:, 0]

    def along(self, X: FloatArray, orders: IntArray) -> FloatArray:
        """(n, m, d + 1, K) the hints of rows (n, c) when the first 0..d players of orders (n, m, d)
        are known."""
        n, m, d = orders.shape
        sizes = np.array([len(columns) for columns in self.players])
        told = sizes[orders.ravel()]  # (n·m·d,) columns that become known
        stop = np.cumsum(told)
        begin = (np.cumsum(sizes) - sizes)[orders.ravel()]
        column = np.concatenate(self.players)[
            np.repeat(begin - (stop - told), told) + np.arange(told.sum())
        ]
        start = np.arange(n * m) * len(self.helpers)
        stops = np.concatenate([start[:, None], stop.reshape(-1, d)], axis=1)  # (n·m, d + 1)
        return self._guessed(X, np.repeat(np.arange(n), m), column, stops).reshape(n, m, d + 1, -1)

    def _guessed(
        self, X: FloatArray, row: IntArray, column: IntArray, stop: IntArray
    ) -> FloatArray:
        """(N, e, K) the hints after each stop (N, e) of walks along columns, see
        `hint_kernels.guess`."""
        from weightedshap.games.surrogates import imputation_kernels as hint_kernels

        out = np.empty((*stop.shape, self.most))
        hint_kernels.guess(self.scored(X), row, column, stop, self.covariance, out)
        return out


def _scores(column: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Values of a column, ascending and not too many, and Φ⁻¹ of the weight below each and half of
    its own."""
    values, place = np.unique(column, return_inverse=True)
    weight = np.bincount(place, weights)
    below = np.clip(np.cumsum(weight) - weight / 2, 0.25 / len(column), 1 - 0.25 / len(column))
    kept = np.unique(np.linspace(0, len(values) - 1, KNOTS).astype(np.intp))
    return values[kept], np.round(special.ndtri(below[kept]), DECIMALS)


def columns_that_matter(X: FloatArray, f: FloatArray, weights: FloatArray, n: int) -> IntArray:
    """The n columns of X by which small trees learn most of f (n, k)."""
    import lightgbm

    if n >= X.shape[1]:
        return np.arange(X.shape[1])
    rows = np.unique(np.linspace(0, len(X) - 1, ENOUGH).astype(np.intp))
    gain = np.zeros(X.shape[1])
    for target in ((f - f.mean(axis=0)) / np.where((spread := f.std(axis=0)) > 0, spread, 1.0)).T:
        data = lightgbm.Dataset(
            X[rows], target[rows], weight=weights[rows] * len(X), params=BINNING
        )
        gain += lightgbm.train({**LEARNING, **BINNING, **GROWN}, data, ROUNDS).feature_importance(
            "gain"
        )
    return np.argsort(-gain, kind="stable")[:n]


@dataclass(frozen=True, repr=False)
class FittedHinted(Boosted):
    """Learned trees that see the known columns, NaN for hidden ones, and hints; Δ is not read off
    them."""

    name: ClassVar[str] = "tree_surrogate"
    recipe: ClassVar[str] = "TreeSurrogate"
    at_once: ClassVar[int] = ExactFitted.at_once
    hints: Hints = field(kw_only=True)

    @property
    def owner(self) -> IntArray:
        """Everything is known: what is not is NaN."""
        return np.zeros(len(self.background.names) + self.hints.most, dtype=np.intp)

    @cached_property
    def games(self) -> Callable[[FloatArray], HintedBlock]:
        """Encoded rows (n, c) → their games."""
        return partial(HintedBlock, self.ensembles, self.hints, self.background)

    def stored(self) -> dict[str, Any]:
        return {**super().stored(), "guessed": self.hints.helpers[: self.hints.most]}

    @classmethod
    def restored(
        cls,
        content: Mapping[str, Any],
        model: Model,
        background: Table,
        more: int = 0,
        **further: Any,
    ) -> Self:
        X = Encoding.restored(content["encoding"], background.names)(background.data)
        guessed = content["guessed"]
        if not set(stored_array("guessed", guessed, (len(guessed),)).tolist()) <= set(
            range(X.shape[1])
        ):
            raise ValueError("its hints are about columns that are not there.")
        return super().restored(
            content,
            model,
            background,
            more=len(guessed),
            hints=Hints.of(X, background, guessed.astype(np.intp)),
        )

    def masked(self, rows: Data, coalitions: BoolArray) -> FloatArray:
        """(n, k) the game of each row at its own coalition (n, d)."""
        return self.games(self.encoding(rows)).pairs(Masked(np.arange(len(coalitions)), coalitions))


@dataclass(frozen=True)
class HintedBlock:
    """The games of n rows, each value found by laying out its masked row."""

    ensembles: tuple[Ensemble, ...]  # one for each output
    hints: Hints
    table: Table
    X: FloatArray  # (n, c) encoded

    @property
    def d(self) -> int:
        return self.table.d

    @property
    def n(self) -> int:
        return len(self.X)

    def pairs(self, masked: Masked) -> FloatArray:
        """(N, k) the games of rows at coalitions."""
        known = self.table.known_columns(masked.coalition)
        return self._read(self.X[masked.row], known, self.hints.pairs(self.X, masked.row, known))

    def values(self, coalitions: BoolArray) -> FloatArray:
        row = np.repeat(np.arange(self.n), len(coalitions))
        each = np.tile(coalitions, (self.n, 1))
        return self.pairs(Masked(row, each)).reshape(self.n, len(coalitions), -1)

    def along(self, orders: IntArray) -> FloatArray:
        n, m, d = orders.shape
        out = np.empty((n, m, d + 1, len(self.ensembles)))
        step = max(1, LANES // (m * (d + 1)))
        for start in range(0, n, step):
            X = self.X[start : start + step]
            some = orders[start : start + step]
            hints = self.hints.along(X, some).reshape(-1, self.hints.most)  # (lanes, K)
            sets = prefixes(some.reshape(-1, d)).reshape(-1, d)
            row = np.repeat(np.arange(len(X)), m * (d + 1))
            where, back = distinct_pairs(row, sets)
            read = self._read(X[row[where]], self.table.known_columns(sets[where]), hints[where])
            out[start : start + step] = read[back].reshape(len(X), m, d + 1, -1)
        return out

    def ends(self) -> FloatArray:
        return self.values(ends(self.d))

    def output(self, index: int) -> Self:
        return replace(self, ensembles=self.ensembles[index : index + 1])

    def alone(self) -> WalkingGame:
        return WalkingGame(self, cost="cheap")

    def _read(self, X: FloatArray, known: BoolArray, hints: FloatArray) -> FloatArray:
        """(N, k) what the trees give for rows X (N, c) of which some columns are known."""
        shown = np.concatenate([np.where(known, X, np.nan), hints], axis=1)
        everything = np.ones((len(X), 1), dtype=np.bool_)
        return np.stack(
            [e.masked_values(shown, np.arange(len(X)), everything) for e in self.ensembles], axis=1
        )
