"""The expectation E[f(X) | X_S = x_S], learned by boosted trees from rows with hidden features.

`TreeSurrogate` is the recipe of the learned game, and of corrections that judges add to another
game, their base. The trees are trained by `boosting`, on the masked rows of `data`, and evaluated
by `tree_batch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, Seed, check_array, check_settings
from weightedshap.games.surrogates.boosting import BoostedGame, TrainingExamples, boost
from weightedshap.games.surrogates.correction import AnchoredGame, Base, fading_weights
from weightedshap.games.surrogates.data import (
    MaskedRows,
    TrainTestSplit,
    fit_quality,
    split_rows,
)
from weightedshap.games.surrogates.imputation import (
    ImputedGame,
    Imputer,
    most_predictive_columns,
)
from weightedshap.games.user import as_model_and_table
from weightedshap.inputs import Data, Model, Table
from weightedshap.inputs.rows import Rows

if TYPE_CHECKING:
    from lightgbm import Booster

    from weightedshap.games.tree_batch import BatchFactory, TreeBatch

# Targets further from 0 than this multiple of their range lose digits in single precision.
FAR = 100


@dataclass(frozen=True)
class TreeSurrogate:
    """v(S) ≈ E[f(X) | X_S = x_S], learned by LightGBM; Δ is exact for the learned game.

    Background rows are repeated with random coalitions of known players, sizes uniform on 0..d;
    hidden columns are NaN, and the trees are fitted to f(x) by squared error. Held-out rows decide
    when training stops and measure how good the game is. A row reaches a leaf if a small set of
    players is known and another small set is hidden, so Δ is computed without sampling.

    A missing value is information, not a hidden feature: it is coded as a number below all others
    of its column. Categories become ranks by their mean prediction; for a rare category it is the
    mean over other rows (`Encoding.cross_fit`).

    With a `base` the game is anchored: v(x, S) = g(base(x, S)) + h(|S|)·c(x_S), where the base
    gives the prediction itself when all players are known (the path-dependent game of the model's
    own trees), g is the link from its scale to the model's (see `Base`), and h(s) = (1 − s/d)^¼
    is zero in that case. The trees learn only c, the error of the base, and minimise the squared
    error of v: the targets are (f(x) − g(base)) / h, with weights h². If g is the identity, Δ is
    exact as before.

    With `hints` the inputs of the trees include linear imputations of hidden columns, see
    `Imputer`. The game is nearer to the truth, but its Δ has to be sampled.

    The defaults were measured on the paper's datasets: see the documentation, and
    ``benchmarks/surrogate_recipes.py``.

    Parameters
    ----------
    base : None, or the game to anchor to: a name of `GAMES`, a recipe, or a fitted game; it must
        give f(x) at [d]
    fits : number of fits, each to different rows and coalitions; the game is their mean
    hints : number of columns that are imputed from the known ones; 0 keeps Δ exact
    masks : coalitions per row; fewer where the table would exceed `max_rows`, but at least one: no
        row is dropped
    max_rows : largest number of rows to train on, unless the background itself has more
    trees, leaves, rate, bins : parameters of LightGBM
    patience : trees without a lower held-out error before training stops
    held_out : share of the distinct rows that are held out, at least 50 rows where there are 150
    n_jobs : threads of LightGBM; 0 for all cores, or one where the table is small
    """

    base: Any = None
    fits: int = 1
    hints: int = 0
    masks: int = 32
    max_rows: int = 200_000
    trees: int = 150
    leaves: int = 63
    rate: float = 0.1
    bins: int = 63
    patience: int = 20
    held_out: float = 0.15
    n_jobs: int = 0

    def __post_init__(self) -> None:
        check_settings(self)

    def fit(self, model: Any, background: Data, rng: Seed = None) -> LearnedTrees | AnchoredGame:
        """Train one ensemble for each output, as a complete game or as a correction of `base`."""
        model, table, rng = as_model_and_table(model, background, rng)
        if self.base is None:
            split = TrainTestSplit.build(model(table.data), table, self.held_out, rng)
            return self.fit_split(model, table, split, rng)

        base = Base.fit(self.base, model, table, rng)
        split = TrainTestSplit.build(base.predict(table.data), table, self.held_out, rng)
        correction = self.fit_split(model, table, split, rng, base)
        return AnchoredGame(model, table, base.game, base.link, correction, fading_weights(table.d))

    def fit_split(
        self,
        model: Model,
        table: Table,
        split: TrainTestSplit,
        rng: np.random.Generator,
        base: Base | None = None,
    ) -> LearnedTrees:
        """Train on a given train/test split of rows; with a `base`, train only its correction."""
        imputer = None
        if self.hints:
            targets = most_predictive_columns(split.X, split.f, table.weights, self.hints)
            imputer = Imputer.fit(split.X, table, targets)

        X = split.encoding.cross_fit(split.X, split.f, table.weights, rng)
        split = replace(split, X=X)
        fits = [self._fit_once(table, split, rng, base, imputer)]
        for _ in range(1, self.fits):
            train, test = split_rows(split.X, self.held_out, rng)
            other = replace(split, train=train, test=test)
            fits.append(self._fit_once(table, other, rng, base, imputer))

        boosters = tuple(booster for fit in fits for booster in fit.boosters)
        offset = np.mean([fit.offset for fit in fits], axis=0)
        quality = fit_quality(
            np.concatenate([fit.game for fit in fits]),
            np.concatenate([fit.f_x for fit in fits]),
            np.concatenate([fit.coalitions for fit in fits]),
            split.f,
            table.weights,
        )
        if base is not None and base.game.calls_per_value:
            quality["calls"] = {
                "fit": sum(fit.calls for fit in fits),
                "ranking": base.game.calls_per_value * (table.d - 1),
            }
        learned = (model, table, split.encoding, boosters, offset, quality)
        if imputer is None:
            return TreeSurrogateGame(*learned)
        return ImputedGame(*learned, imputer=imputer)

    @classmethod
    def from_state(
        cls, content: Mapping[str, Any], model: Model, background: Table
    ) -> LearnedTrees | AnchoredGame:
        """Rebuild a game from its saved dict, with or without a base that it corrects.

        The dict is that of `TreeSurrogateGame.state` or `AnchoredGame.state`.
        """
        game = ImputedGame if "guessed" in content else TreeSurrogateGame
        correction = game.from_state(content, model, background)
        if "anchored" not in content:
            return correction
        base = Base.from_state(content["anchored"], model, background)
        h = check_array("h", content["anchored"]["h"], (background.d + 1,))
        return AnchoredGame(model, background, base.game, base.link, correction, h)

    def _fit_once(
        self,
        table: Table,
        split: TrainTestSplit,
        rng: np.random.Generator,
        base: Base | None,
        imputer: Imputer | None,
    ) -> Fit:
        """Train one ensemble for each output, and evaluate the game on held-out rows."""
        train = MaskedRows.draw(split.train, table.d, self.masks, self.max_rows, rng)
        test = MaskedRows.draw(split.test, table.d, self.masks // 2, self.max_rows // 10, rng)
        fewest_in_leaf = max(20, len(train.row) // len(split.train))
        if base is not None:
            # At [d] the base has no error and h is 0, so such rows contain no information on c.
            train = train.take(np.flatnonzero(~train.coalition.all(axis=1)))
        to_train, _, _ = training_examples(table, split, train, base, imputer)
        to_test, start, h = training_examples(table, split, test, base, imputer)

        # A correction always learns its targets less their mean, a surrogate only where they are
        # far from 0.
        mean = np.average(to_train.target, axis=0, weights=to_train.weight)
        is_far = np.abs(mean) > FAR * np.ptp(to_train.target, axis=0)
        is_correction = base is not None
        offset = np.where(is_correction | is_far, mean, 0.0)

        boosters = boost(
            self,
            to_train,
            to_test,
            offset,
            rng,
            min_data_in_leaf=fewest_in_leaf,
            extra_trees=is_correction,
        )
        c = offset + np.stack([booster.predict(to_test.X) for booster in boosters], axis=1)
        return Fit(
            boosters=boosters,
            offset=offset,
            game=start + h * c,
            f_x=split.f[test.row],
            coalitions=test.coalition,
            calls=0 if base is None else base.n_calls(train, test),
        )


@dataclass(frozen=True)
class Fit:
    """The result of training a tree surrogate once: boosters, and their values on held-out rows."""

    boosters: tuple[Booster, ...]  # one for each output
    offset: FloatArray  # (k,)
    game: FloatArray  # (N, k) values of the game
    f_x: FloatArray  # (N, k)
    coalitions: BoolArray  # (N, d)
    calls: int  # number of calls of the model


def training_examples(
    table: Table,
    split: TrainTestSplit,
    masked: MaskedRows,
    base: Base | None,
    imputer: Imputer | None,
) -> tuple[TrainingExamples, FloatArray, FloatArray]:
    """Return the examples to learn a correction from, its starting values, and its factors h.

    The starting values `start` are (N, k) and the factors h (N, 1), for N masked rows. The game is
    v = start + h·c, where `start` are the values of the base, so c is fitted to (f − start) / h. An
    error of c changes v by h times the error, hence the weights h². With all features known h is 0,
    and the target is set to 0. Without a base, start is 0, h is 1, and c is the game itself.
    """
    known = masked.coalition[:, table.player_of_column]
    X = split.X[masked.row]
    # In place: a second copy of the enlarged table would double the peak memory.
    X[~known] = np.nan
    if imputer is not None:
        imputed = imputer.values_at(split.X, masked.row, known)
        X = np.concatenate([X, imputed], axis=1)

    f = split.f[masked.row]
    row_weight = table.weights[masked.row] * len(table.weights)
    if base is None:
        return TrainingExamples(X, f, row_weight), np.zeros((1, 1)), np.ones((1, 1))

    n_known = masked.coalition.sum(axis=1)
    h = fading_weights(table.d)[n_known, None]  # (N, 1)
    start = base.values_at(table.data, masked)  # (N, k)
    target = np.divide(f - start, h, out=np.zeros_like(f), where=h > 0)
    return TrainingExamples(X, target, row_weight * h[:, 0] ** 2), start, h


@dataclass(frozen=True, repr=False)
class TreeSurrogateGame(BoostedGame):
    """A game of learned trees with exact Δ, in which a hidden column is NaN."""

    label = "tree_surrogate"
    recipe = "TreeSurrogate"
    is_exact = True
    rows_per_block = 256

    @cached_property
    def factory(self) -> BatchFactory:
        """The `BatchFactory` that builds batches of rows; hidden features are NaN."""
        from weightedshap.games.tree_batch import background_batches

        empty_row = np.full((1, len(self.background.names)), np.nan)
        return background_batches(self.ensembles, empty_row, np.ones(1))

    @cached_property
    def bytes_per_row(self) -> int:
        return self.factory.bytes_per_row

    def warm_up(self) -> Self:
        _ = self.factory
        return self

    def batch(self, rows: Rows) -> TreeBatch:
        return self.factory(self, rows, self.encoding(rows.data))

    def values_at(self, rows: Data, masked: MaskedRows) -> FloatArray:
        known = masked.coalition[:, self.background.player_of_column]
        X = np.where(known, self.encoding(rows)[masked.row], np.nan)
        by_booster = np.stack([booster.predict(X) for booster in self.boosters], axis=1)
        by_fit = by_booster.reshape(len(X), -1, len(self.offset))  # (N, fits, k)
        return np.asarray(by_fit.mean(axis=1) + self.offset)


LearnedTrees = TreeSurrogateGame | ImputedGame
