"""The path-dependent game of trees that imitate the model: exact Δ for models without trees.

`DistilledTrees` is one of the two games that explain models without readable trees by default. The
trees are trained by `boosting` and evaluated by `tree_batch`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from weightedshap._checks import FloatArray, IntArray, Seed, check_settings
from weightedshap.coalitions import random_coalitions
from weightedshap.games.surrogates.boosting import BoostedGame, TrainingExamples, boost
from weightedshap.games.surrogates.data import TrainTestSplit
from weightedshap.games.user import as_model_and_table
from weightedshap.inputs import Data, Model, Table
from weightedshap.inputs.rows import Rows

if TYPE_CHECKING:
    from weightedshap.games.tree_batch import BatchFactory, TreeBatch

# The share of training rows that are plain background rows, whose predictions are known.
UNMIXED_SHARE = 1 / 3
# Training rows for each background row: more of a small background add no information.
PER_ROW = 50
# The largest training table, in cells.
MOST_CELLS = 2**25


@dataclass(frozen=True)
class DistilledTrees:
    """The path-dependent game of boosted trees that are trained to imitate the model.

    The trees are fitted to f by LightGBM, on the model's own scale. They learn from the background
    rows and from mixtures of two rows, with the columns of a random coalition (sizes uniform on
    0..d) from the first and the remaining columns from the second, so the trees approximate f on
    the data and in between. The error on held-out rows, and on mixtures of these, decides when
    training stops. The game follows both sides of every split on a hidden feature, weighted by the
    number of training rows on each side. So Δ is exact, and explaining a row takes one model call,
    for its prediction.

    With all features known the game gives t(x), not f(x). ``info["distillation_error"]`` is the
    remaining error, Σ (f − t)² / Σ (f − mean f)² over held-out background rows. Closer imitation
    hardly improves the ranking of features.

    Categories and missing values are coded as in `TreeSurrogate`.

    Parameters
    ----------
    rows : number of rows to draw in addition to the background; two thirds are mixtures, for which
        the model is called. At most 50 for each background row, and fewer where the table would
        have more than 2^25 cells
    trees, leaves, rate, bins, least : parameters of LightGBM; `least` is the fewest rows in a leaf
    patience : trees without a lower held-out error before training stops
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

    def fit(self, model: Any, background: Data, rng: Seed = None) -> DistilledGame:
        """Train one ensemble of trees for each output to imitate the model."""
        model, table, rng = as_model_and_table(model, background, rng)
        split = TrainTestSplit.build(model(table.data), table, self.held_out, rng)
        X = split.encoding.cross_fit(split.X, split.f, table.weights, rng)
        most = min(self.rows, PER_ROW * len(table), MOST_CELLS // len(table.names))
        per_row = most / len(table)
        train, train_calls = mix_rows(model, table, split.f, X, split.train, per_row, rng)
        test, test_calls = mix_rows(model, table, split.f, X, split.test, per_row, rng)

        offset = table.weights @ split.f
        boosters = boost(self, train, test, offset, rng, min_data_in_leaf=self.least)
        t = offset + np.stack([booster.predict(X[split.test]) for booster in boosters], axis=1)
        error = relative_squared_error(split.f[split.test], t, table.weights[split.test])
        quality = {
            "distillation_error": error,
            "calls": {"fit": len(table) + train_calls + test_calls},
        }
        return DistilledGame(model, table, split.encoding, boosters, offset, quality)

    @staticmethod
    def from_state(content: Mapping[str, Any], model: Model, background: Table) -> DistilledGame:
        """Rebuild the game from the dict that `DistilledGame.state` returned."""
        return DistilledGame.from_state(content, model, background)


def mix_rows(
    model: Model,
    table: Table,
    f: FloatArray,
    X: FloatArray,
    rows: IntArray,
    per_row: float,
    rng: np.random.Generator,
) -> tuple[TrainingExamples, int]:
    """Return training examples: background rows and mixtures of two rows; count the model calls.

    `f` (n, k) are predictions of the background and `X` (n, c) its encoded columns; `rows` are the
    positions to use. For each of these rows `per_row` mixtures are drawn, by weight, and the model
    is called once for each mixture.
    """
    n = int(np.ceil(per_row * len(rows)))
    weights = table.weights[rows]
    chance = weights / weights.sum() if weights.any() else None
    first, second = rng.choice(rows, (2, n), p=chance)
    coalitions = random_coalitions(n, table.d, rng)
    coalitions[rng.random(n) < UNMIXED_SHARE] = True
    known = coalitions[:, table.player_of_column]

    # If all columns are from one row, its prediction is known; the model is called for the others.
    takes_first = coalitions.any(axis=1)
    is_whole = coalitions.all(axis=1)
    f_mixed = f[np.where(takes_first, first, second)]
    to_predict = np.flatnonzero(takes_first & ~is_whole)

    def predict(part: slice) -> FloatArray:
        t = to_predict[part]
        return model(table.mix(table.data, first[t], known[t], table.data, second[t]))

    f_mixed[to_predict] = model.predict_in_parts(len(to_predict), predict)
    mixed = np.where(known, X[first], X[second])
    row_weight = np.ones(len(rows)) if chance is None else chance * len(rows)
    examples = TrainingExamples(
        X=np.concatenate([X[rows], mixed]),
        target=np.concatenate([f[rows], f_mixed]),
        weight=np.concatenate([row_weight, np.ones(n)]),
    )
    return examples, len(to_predict)


def relative_squared_error(f: FloatArray, t: FloatArray, weights: FloatArray) -> float:
    """Return Σ (f − t)² / Σ (f − mean f)² of predictions f and their imitations t (n, k).

    The sums and the mean are weighted by row. The error is 0 for constant f.
    """
    share = (weights if weights.any() else np.ones(len(f)))[:, None]
    mean = (share * f).sum(axis=0) / share.sum()
    variation = float((share * (f - mean) ** 2).sum())
    return float((share * (f - t) ** 2).sum()) / variation if variation > 0 else 0.0


@dataclass(frozen=True, repr=False)
class DistilledGame(BoostedGame):
    """The path-dependent game of trees that imitate the model.

    Both sides of a split on a hidden feature are averaged, weighted by cover.
    """

    label = "distilled_trees"
    recipe = "DistilledTrees"
    is_exact = True
    rows_per_block = 256

    @cached_property
    def factory(self) -> BatchFactory:
        """The `BatchFactory` that builds batches of rows."""
        from weightedshap.games.tree_batch import path_dependent_batches

        return path_dependent_batches(self.ensembles)

    def warm_up(self) -> Self:
        _ = self.factory
        return self

    def batch(self, rows: Rows) -> TreeBatch:
        return self.factory(self, rows, self.encoding(rows.data))
