"""E[f(X) | X_S = x_S] learned by boosted trees on rows with hidden features, read out exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, check_settings, stored_array
from weightedshap.games.surrogates.boosting import Examples, ReadOff, boost
from weightedshap.games.surrogates.correction import FittedAnchored, Footing, fading
from weightedshap.games.surrogates.data import Masked, Split, fit_quality, split_rows
from weightedshap.games.surrogates.imputation import FittedHinted, Hints, columns_that_matter
from weightedshap.games.user import wrapped
from weightedshap.inputs import Data, Model, Table

if TYPE_CHECKING:
    from lightgbm import Booster

    from weightedshap.games.tree_batch import TreeGames


FAR = 100  # times the range of f: so far from 0 single precision loses digits that matter
Learned = tuple[tuple["Booster", ...], FloatArray, tuple[FloatArray, FloatArray, BoolArray], int]
"""Boosters and offset of each output; the game, f(x) and coalitions of held-out rows; calls of the
model."""


@dataclass(frozen=True)
class TreeSurrogate:
    """v(S) ≈ E[f(X) | X_S = x_S], learned by LightGBM; Δ is exact for the learned game.

    Background rows are repeated with random coalitions of known players, sizes uniform on 0..d;
    hidden columns are NaN, and the trees are fitted to f(x) by squared error. Rows that they do not
    see tell when to stop and how good the game is. At a row every split sends "known" and "hidden"
    one way or the other, so each leaf is an indicator of two small sets of players and Δ needs no
    sampling.

    A missing value is information, not a hidden feature: it is coded as a number below all others
    of its column. Categories become ranks by their mean prediction, rare ones by that of other rows
    (`Encoding.cross_fitted`).

    With a `base` the game is anchored: v(x, S) = g(base(x, S)) + h(|S|)·c(x_S), where the base
    gives the prediction itself when all players are known (the path-dependent game of the model's
    own trees), g is the link from its scale to the model's (see `Footing`), and h(s) = (1 − s/d)^¼
    falls to zero there. The trees learn only c, what the base leaves, by squared error of v: on
    (f(x) − g(base)) / h with weight h². Where g is the identity Δ is exact as before.

    With `hints` the trees see more of x_S than its columns: guesses at the hidden ones, see
    `Hints`. The game is nearer to the truth, and its Δ has to be sampled.

    The defaults were measured on the paper's datasets: see the documentation, and
    ``benchmarks/surrogate_recipes.py``.

    Parameters
    ----------
    base : None, or what the game is anchored to: a name of `GAMES`, a recipe, or a fitted game that
        is exact at [d]
    fits : how many times to learn, each time from other rows and coalitions; the game is the mean
    hints : at how many columns the known ones are made to guess; 0 keeps Δ exact
    masks : coalitions per row; fewer where the table would exceed `max_rows`, but at least one: no
        row is dropped
    max_rows : rows of the enlarged table, unless the background itself has more
    trees, leaves, rate, bins : of LightGBM
    patience : trees without a lower held-out error before stopping
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

    def fit(
        self, model: Any, background: Data, rng: np.random.Generator | int | None = None
    ) -> LearnedTrees | FittedAnchored:
        """Learn one ensemble for each output."""
        model, table, rng = wrapped(model, background, rng)
        footing = None if self.base is None else Footing.of(self.base, model, table, rng)
        f = model(table.data) if footing is None else footing.f(table.data)
        correction = self.fit_split(
            model, table, Split.of(f, table, self.held_out, rng), rng, footing
        )
        if footing is None:
            return correction
        return footing.game(model, table, correction, fading(table.d))

    def fit_split(
        self,
        model: Model,
        table: Table,
        split: Split,
        rng: np.random.Generator,
        footing: Footing | None = None,
    ) -> LearnedTrees:
        """Learn from rows that are split already; with a footing, only what it leaves."""
        hints = None
        if self.hints:
            guessed = columns_that_matter(split.X, split.f, table.weights, self.hints)
            hints = Hints.of(split.X, table, guessed)
        split = replace(split, X=split.encoding.cross_fitted(split.X, split.f, table.weights, rng))
        fits = [self._learn(table, split, rng, footing, hints)]
        for _ in range(1, self.fits):
            train, test = split_rows(split.X, self.held_out, rng)
            fits.append(
                self._learn(table, replace(split, train=train, test=test), rng, footing, hints)
            )
        boosters, offsets, told, calls = zip(*fits, strict=True)
        game, f_x, coalitions = (np.concatenate(parts) for parts in zip(*told, strict=True))
        quality = fit_quality(game, f_x, coalitions, split.f, table.weights)
        offset = np.mean(offsets, axis=0)
        if footing is not None and footing.base.calls:
            quality["calls"] = {"fit": sum(calls), "ranking": footing.base.calls * (table.d - 1)}
        learned = model, table, split.encoding, sum(boosters, ()), offset, quality
        return (
            FittedTreeSurrogate(*learned) if hints is None else FittedHinted(*learned, hints=hints)
        )

    @classmethod
    def restored(
        cls, content: Mapping[str, Any], model: Model, background: Table
    ) -> LearnedTrees | FittedAnchored:
        """The game that `FittedTreeSurrogate.stored` or `FittedAnchored.stored` wrote."""
        made = FittedHinted if "guessed" in content else FittedTreeSurrogate
        learned = made.restored(content, model, background)
        if "anchored" not in content:
            return learned
        footing = Footing.restored(content["anchored"], model, background)
        h = stored_array("h", content["anchored"]["h"], (background.d + 1,))
        return footing.game(model, background, learned, h)

    def _learn(
        self,
        table: Table,
        split: Split,
        rng: np.random.Generator,
        footing: Footing | None,
        hints: Hints | None,
    ) -> Learned:
        """One ensemble for each output, and what the game gives for held-out rows."""
        seen = Masked.of(split.train, table.d, self.masks, self.max_rows, rng)
        held = Masked.of(split.test, table.d, self.masks // 2, self.max_rows // 10, rng)
        least = max(20, len(seen.row) // len(split.train))
        if footing is not None:
            seen = seen.take(np.flatnonzero(~seen.coalition.all(axis=1)))
        lessons = (_lesson(table, split, masked, footing, hints) for masked in (seen, held))
        (to_learn, *_), (to_check, start, h) = lessons
        extra = footing is not None
        mean = np.average(to_learn.target, axis=0, weights=to_learn.share)
        offset = np.where(extra | (np.abs(mean) > FAR * np.ptp(to_learn.target, axis=0)), mean, 0.0)
        boosters = boost(
            self, to_learn, to_check, offset, rng, min_data_in_leaf=least, extra_trees=extra
        )
        c = offset + np.stack([booster.predict(to_check.X) for booster in boosters], axis=1)
        told = start + h * c, split.f[held.row], held.coalition
        return boosters, offset, told, 0 if footing is None else footing.calls(seen, held)


def _lesson(
    table: Table, split: Split, masked: Masked, footing: Footing | None, hints: Hints | None
) -> tuple[Examples, FloatArray, FloatArray]:
    """N masked rows with what c is to give there, and start (N, k) and h (N, 1): the game is to be
    start + h·c.

    Weights are those of the rows times h², as errors of c are h times as large in the game; where h
    is 0, so is c.
    """
    X = split.X[masked.row]
    known = table.known_columns(masked.coalition)
    X[~known] = np.nan  # in place: the table is large
    if hints is not None:
        X = np.concatenate([X, hints.pairs(split.X, masked.row, known)], axis=1)
    f = split.f[masked.row]
    weight = table.weights[masked.row] * len(table)
    if footing is None:
        return Examples(X, f, weight), np.zeros((1, 1)), np.ones((1, 1))
    start = footing.start(table.data, masked)
    h = fading(table.d)[masked.coalition.sum(axis=1), None]
    target = np.divide(f - start, h, out=np.zeros_like(f), where=h > 0)
    return Examples(X, target, weight * h[:, 0] ** 2), start, h


@dataclass(frozen=True, repr=False)
class FittedTreeSurrogate(ReadOff):
    """The learned ensembles, and how well they fit (`fit_quality`); hidden columns are NaN."""

    name: ClassVar[str] = "tree_surrogate"
    recipe: ClassVar[str] = "TreeSurrogate"

    @cached_property
    def games(self) -> TreeGames:
        """Encoded rows (n, c) → their games; hidden features are those of a row without any
        value."""
        from weightedshap.games.tree_batch import leaf_games

        nothing = np.full((1, len(self.background.names)), np.nan)
        return leaf_games(self.ensembles, nothing, np.ones(1), self.background.d)

    @property
    def row_bytes(self) -> int:
        return self.games.row_bytes

    def masked(self, rows: Data, coalitions: BoolArray) -> FloatArray:
        """(n, k) the game of each row at its own coalition (n, d)."""
        X = np.where(self.background.known_columns(coalitions), self.encoding(rows), np.nan)
        c = np.stack([booster.predict(X) for booster in self.boosters], axis=1).reshape(
            len(X), -1, len(self.offset)
        )
        return np.asarray(c.mean(axis=1) + self.offset)


LearnedTrees = FittedTreeSurrogate | FittedHinted
