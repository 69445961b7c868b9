"""Trees that imitate the model, and their path-dependent game: exact Δ for models whose own trees
cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from weightedshap._checks import FloatArray, IntArray, Seed, check_settings
from weightedshap.coalitions import random_coalitions
from weightedshap.games.surrogates.boosting import Examples, ReadOff, boost
from weightedshap.games.surrogates.data import Split
from weightedshap.games.user import wrapped
from weightedshap.inputs import Data, Model, Table

if TYPE_CHECKING:
    from weightedshap.games.tree_batch import TreeBlock

# Of the rows that are drawn, to be learned as they are: the model is not asked for them again.
WHOLE = 1 / 3
PER_ROW = 50  # rows drawn for each background row: of a small background more say nothing new
MOST_CELLS = 2**25  # of the table that is learned from


@dataclass(frozen=True)
class DistilledTrees:
    """v(S): the path-dependent game of boosted trees t ≈ f, distilled from the model on its own
    scale.

    The trees of LightGBM are fitted to f itself on the background rows and on rows mixed from two
    of them, which have the columns of a random coalition (sizes uniform on 0..d) from the one and
    the others from the other: so the trees follow f on the data and between. Rows that they do not
    learn from, and mixtures of those, tell when to stop. The game follows both sides of every split
    on a hidden feature, weighted by the rows that went there, so Δ is exact, and no row that is
    explained asks the model for more than its prediction.

    With all features known the game gives t(x), not f(x). ``info["distillation_error"]`` is what is
    left, Σ (f − t)² / Σ (f − mean f)² over held-out background rows. A better imitation hardly
    ranks features better.

    Categories and missing values are coded as in `TreeSurrogate`.

    Parameters
    ----------
    rows : drawn to learn from, beside the background itself; two thirds are mixed, for which the
        model is called. At most 50 for each background row, and fewer where the table would have
        more than 2^25 cells
    trees, leaves, rate, bins, least : of LightGBM; `least` is the fewest rows in a leaf
    patience : trees without a lower held-out error before stopping
    held_out : share of the distinct rows that are held out, at least 50 rows where there are 150
    n_jobs : threads of LightGBM; 0 for all cores, or one where the table is small
    """

    rows: int = 30_000
    trees: int = 400
    leaves: int = 31
    rate: float = 0.1
    bins: int = 255
    least: int = 5
    patience: int = 20
    held_out: float = 0.15
    n_jobs: int = 0

    def __post_init__(self) -> None:
        check_settings(self)

    def fit(self, model: Any, background: Data, rng: Seed = None) -> FittedDistilled:
        """Learn one ensemble for each output."""
        model, table, rng = wrapped(model, background, rng)
        split = Split.of(model(table.data), table, self.held_out, rng)
        X = split.encoding.cross_fitted(split.X, split.f, table.weights, rng)
        most = min(self.rows, PER_ROW * len(table), MOST_CELLS // len(table.names))
        draw = partial(mixtures, model, table, replace(split, X=X), most / len(table), rng)
        (seen, calls) = draw(split.train)
        (held, more) = draw(split.test)
        offset = table.weights @ split.f
        boosters = boost(self, seen, held, offset, rng, min_data_in_leaf=self.least)
        t = offset + np.stack([booster.predict(X[split.test]) for booster in boosters], axis=1)
        error = _left(split.f[split.test], t, table.weights[split.test])
        quality = {"distillation_error": error, "calls": {"fit": len(table) + calls + more}}
        return FittedDistilled(model, table, split.encoding, boosters, offset, quality)

    @staticmethod
    def restored(content: Mapping[str, Any], model: Model, background: Table) -> FittedDistilled:
        """The game that `FittedDistilled.stored` wrote."""
        return FittedDistilled.restored(content, model, background)


def mixtures(
    model: Model, table: Table, split: Split, drawn: float, rng: np.random.Generator, rows: IntArray
) -> tuple[Examples, int]:
    """Rows of the background, `drawn` times as many mixed from two of them, drawn by weight; and
    calls of the model."""
    n = int(np.ceil(drawn * len(rows)))
    weights = table.weights[rows]
    chance = weights / weights.sum() if weights.any() else None
    one, other = rng.choice(rows, (2, n), p=chance)
    coalitions = random_coalitions(n, table.d, rng)
    coalitions[rng.random(n) < WHOLE] = True
    known = table.known_columns(coalitions)
    some = coalitions.any(axis=1)
    whole = coalitions.all(axis=1)
    f = split.f[np.where(some, one, other)]
    at = np.flatnonzero(some & ~whole)

    def predicted(part: slice) -> FloatArray:
        t = at[part]
        return model(table.mix_each(table.data, one[t], known[t], table.data, other[t]))

    f[at] = model.in_parts(len(at), predicted)
    X = np.concatenate([split.X[rows], np.where(known, split.X[one], split.X[other])])
    share = np.concatenate(
        [np.ones(len(rows)) if chance is None else chance * len(rows), np.ones(n)]
    )
    return Examples(X, np.concatenate([split.f[rows], f]), share), len(at)


def _left(f: FloatArray, t: FloatArray, weights: FloatArray) -> float:
    """Σ (f − t)² / Σ (f − mean f)² over rows (n, k) and outputs, by weight; 0 where f is
    constant."""
    share = (weights if weights.any() else np.ones(len(f)))[:, None]
    spread = float((share * (f - (share * f).sum(axis=0) / share.sum()) ** 2).sum())
    return float((share * (f - t) ** 2).sum()) / spread if spread > 0 else 0.0


@dataclass(frozen=True, repr=False)
class FittedDistilled(ReadOff):
    """The distilled trees; splits on hidden features are averaged by cover."""

    name: ClassVar[str] = "distilled_trees"
    recipe: ClassVar[str] = "DistilledTrees"

    @cached_property
    def games(self) -> Callable[[FloatArray], TreeBlock]:
        """Encoded rows (n, c) → their games."""
        from weightedshap.games.tree_batch import path_games

        return path_games(self.ensembles, self.background.d)
