"""E[f(X) | X_S = x_S] learned by boosted trees on rows with hidden features, read out exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from weightedshap.checks import BoolArray, FloatArray, IntArray
from weightedshap.games.protocols import ExactFitted
from weightedshap.games.surrogate import Encoding, Masked, Split, fit_quality
from weightedshap.games.wrappers import FittedOnTable, wrapped
from weightedshap.inputs import Data, Model, Table

if TYPE_CHECKING:
    from lightgbm import Booster

    from weightedshap.games.tree_blocks import LeafBlock
    from weightedshap.trees.ensembles import Ensemble

LEARNING = {"objective": "regression", "metric": "l2", "deterministic": True, "force_row_wise": True, "verbose": -1}
BINNING = {"bin_construct_sample_cnt": 50_000, "enable_bundle": False}
SMALL = 2_000_000  # cells below which threads cost more than they bring
Shown = tuple[FloatArray, IntArray]  # rows (N, c) with NaN where hidden, and the background row of each (N,)


@dataclass(frozen=True)
class TreeSurrogate:
    """v(S) ≈ E[f(X) | X_S = x_S], learned by LightGBM; Δ is exact for the learned game.

    Background rows are repeated with random coalitions of known players, sizes uniform on 0..d; the
    columns of hidden players are set to NaN, and the trees are fitted to f(x) by squared error. Rows
    that the trees do not see tell when to stop and how good the game is. At a row every split sends
    "known" and "hidden" one way or the other, so each leaf is an indicator of two small sets of players
    and Δ needs no sampling.

    A missing value in the data is information, not a hidden feature: it is coded as a number below all
    others of its column, and only hidden features are NaN. Categories become ranks by their mean prediction; the trees
    learn the rare ones from ranks of other rows, see `Encoding.cross_fitted`.

    The defaults were found by measuring recipes on the paper's datasets; the study is in the
    documentation, and ``benchmarks/surrogate_recipes.py`` repeats it.

    Parameters
    ----------
    masks : coalitions per row; fewer where the enlarged table would exceed `max_rows`, but never fewer
        than one: background rows are not dropped
    max_rows : rows of the enlarged table, unless the background itself has more
    trees, leaves, rate, bins : of LightGBM
    patience : trees without a lower held-out error before stopping
    held_out : share of the distinct rows that are held out, at least 50 rows where there are 150
    n_jobs : threads of LightGBM; 0 for all cores, or one where the table is small
    """

    masks: int = 32
    max_rows: int = 200_000
    trees: int = 150
    leaves: int = 63
    rate: float = 0.1
    bins: int = 63
    patience: int = 20
    held_out: float = 0.15
    n_jobs: int = 0

    def fit(self, model: Any, background: Data, rng: np.random.Generator | int | None = None) -> FittedTreeSurrogate:
        """Learn one ensemble for each output."""
        model, table, rng = wrapped(model, background, rng)
        return self.fit_split(model, table, Split.of(model, table, self.held_out, rng), rng)

    def fit_split(self, model: Model, table: Table, split: Split, rng: np.random.Generator) -> FittedTreeSurrogate:
        """Learn from rows that are split already."""
        f = split.f
        X = split.encoding.cross_fitted(split.X, f, table.weights, rng)
        seen = Masked.of(split.train, table.d, self.masks, self.max_rows, rng)
        held = Masked.of(split.test, table.d, self.masks // 2, self.max_rows // 10, rng)
        to_learn, to_check = _shown(X, table, seen), _shown(X, table, held)
        boosters = tuple(self._boost(to_learn, to_check, column, table.weights, rng) for column in f.T)
        game = np.stack([booster.predict(to_check[0]) for booster in boosters], axis=1)
        quality = fit_quality(game, f[held.row], held.coalition, f, table.weights)
        return FittedTreeSurrogate(model, table, split.encoding, boosters, quality)

    @classmethod
    def restored(cls, content: Mapping[str, Any], model: Model, background: Table) -> FittedTreeSurrogate:
        """The game that `FittedTreeSurrogate.stored` wrote."""
        import lightgbm

        if len(model.chosen) != (n := len(content["boosters"])):
            raise ValueError(
                f"The saved game has {n} outputs but the model has {len(model.chosen)} to explain. Pass the model, and "
                "the outputs, that it was fitted to."
            )
        boosters = tuple(lightgbm.Booster(model_str=text) for text in content["boosters"])
        encoding = Encoding.restored(content["encoding"], background.names)
        return FittedTreeSurrogate(model, background, encoding, boosters, content["quality"])

    def _boost(self, seen: Shown, held: Shown, f: FloatArray, weights: FloatArray, rng: np.random.Generator) -> Booster:
        """Boosted trees for one output, stopped by the error on held-out rows."""
        import lightgbm

        (X, row), (X_held, row_held), share = seen, held, weights * len(weights)
        masks = int(np.count_nonzero(row == row[0]))
        parameters = {
            **LEARNING,
            **BINNING,
            "learning_rate": self.rate,
            "num_leaves": self.leaves,
            "max_bin": self.bins,
            "min_data_in_leaf": max(20, masks),
            "seed": int(rng.integers(2**31)),
            "num_threads": self.n_jobs or (1 if X.size < SMALL else 0),
        }
        data = lightgbm.Dataset(X, f[row], weight=share[row], params=parameters)
        check = lightgbm.Dataset(X_held, f[row_held], weight=share[row_held], reference=data)
        stop = lightgbm.early_stopping(self.patience, verbose=False)
        return lightgbm.train(parameters, data, self.trees, valid_sets=[check], callbacks=[stop])


def _shown(X: FloatArray, table: Table, masked: Masked) -> Shown:
    shown = X[masked.row]
    shown[~table.known_columns(masked.coalition)] = np.nan  # in place: the table is large
    return shown, masked.row


@dataclass(frozen=True)
class FittedTreeSurrogate(FittedOnTable, ExactFitted):
    """The learned ensembles, and how well they fit."""

    encoding: Encoding = field(repr=False)
    boosters: tuple[Booster, ...] = field(repr=False)  # one for each output; hidden columns are NaN
    quality: Mapping[str, Any] = field(default_factory=dict)  # see `fit_quality`

    @cached_property
    def info(self) -> Mapping[str, Any]:
        return {
            "game": "tree_surrogate",
            "space": self.space,
            "background_rows": len(self.background),
            "trees": sum(len(e.roots) for e in self.ensembles),
            "leaves": sum(len(e.value) for e in self.ensembles),
            **self.quality,
        }

    @cached_property
    def ensembles(self) -> tuple[Ensemble, ...]:
        """The boosters as flat arrays."""
        from weightedshap.trees.readers import lightgbm_ensembles

        owner = self.background.player_of_column
        return tuple(e.of_players(owner) for b in self.boosters for e in lightgbm_ensembles(b.dump_model()))

    @cached_property
    def games(self) -> Callable[[FloatArray], LeafBlock]:
        """Encoded rows (n, c) → their games; hidden features are those of a row without any value."""
        from weightedshap.games.tree_blocks import leaf_games

        nothing = np.full((1, len(self.background.names)), np.nan)
        return leaf_games(self.ensembles, nothing, np.ones(1), self.background.d)

    @cached_property
    def row_bytes(self) -> int:
        return 16 * sum(len(e.value) for e in self.ensembles)

    def ready(self) -> Self:
        _ = self.games, self.row_bytes
        return super().ready()

    def stored(self) -> dict[str, Any]:
        texts = [booster.model_to_string() for booster in self.boosters]
        encoding = self.encoding.stored()
        return {"recipe": "TreeSurrogate", "boosters": texts, "encoding": encoding, "quality": dict(self.quality)}

    def masked(self, rows: Data, coalitions: BoolArray) -> FloatArray:
        """(n, k) the game of each row at its own coalition (n, d)."""
        X = np.where(self.background.known_columns(coalitions), self.encoding(rows), np.nan)
        return np.stack([booster.predict(X) for booster in self.boosters], axis=1)

    def block(self, rows: Data) -> LeafBlock:
        return self.games(self.encoding(rows))
