"""E[f(X) | X_S = x_S] learned by boosted trees on rows with hidden features, read out exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from weightedshap.checks import BoolArray, FloatArray, IntArray
from weightedshap.coalitions import random_coalitions
from weightedshap.games.protocols import ExactFitted
from weightedshap.games.surrogate import Encoding, Split, fit_quality, refuse_other_outputs
from weightedshap.games.wrappers import FittedOnTable, wrapped
from weightedshap.inputs import Data, Model, Table

if TYPE_CHECKING:
    from weightedshap.games.tree_blocks import LeafBlock
    from weightedshap.trees.ensembles import Absent, Ensemble

SMALL = 2_000_000  # cells below which threads cost more than they bring


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
        f, train, test = split.f, split.train, split.test
        X = split.encoding.cross_fitted(split.X, f, table.weights, rng)
        seen = Masked.of(X, table, train, self.masks, self.max_rows, rng)
        held = Masked.of(X, table, test, self.masks // 2, self.max_rows // 10, rng)
        boosters = tuple(self._boost(seen, held, column, table.weights, rng) for column in f.T)
        game = np.stack([booster.predict(held.X) for booster in boosters], axis=1)
        quality = fit_quality(game, f[held.row], held.coalition, f, table.weights)
        return FittedTreeSurrogate(model, table, split.encoding, boosters, quality)

    @classmethod
    def restored(cls, content: Mapping[str, Any], model: Model, background: Table) -> FittedTreeSurrogate:
        """The game that `FittedTreeSurrogate.stored` wrote."""
        import lightgbm

        refuse_other_outputs(len(content["boosters"]), model)
        boosters = tuple(lightgbm.Booster(model_str=text) for text in content["boosters"])
        encoding = Encoding.restored(content["encoding"], background.names)
        return FittedTreeSurrogate(model, background, encoding, boosters, content["quality"])

    def _boost(self, seen: Masked, held: Masked, f: FloatArray, weights: FloatArray, rng: np.random.Generator) -> Any:
        """Boosted trees for one output, stopped by the error on held-out rows."""
        import lightgbm

        parameters = {
            "objective": "regression",
            "metric": "l2",
            "learning_rate": self.rate,
            "num_leaves": self.leaves,
            "max_bin": self.bins,
            "min_data_in_leaf": max(20, seen.masks),
            "bin_construct_sample_cnt": 50_000,
            "enable_bundle": False,
            "seed": int(rng.integers(2**31)),
            "num_threads": self.n_jobs or (1 if seen.X.size < SMALL else 0),
            "deterministic": True,
            "force_row_wise": True,
            "verbose": -1,
        }
        share = weights * len(weights)
        data = lightgbm.Dataset(seen.X, f[seen.row], weight=share[seen.row], params=parameters)
        check = lightgbm.Dataset(held.X, f[held.row], weight=share[held.row], reference=data)
        stop = lightgbm.early_stopping(self.patience, verbose=False)
        return lightgbm.train(parameters, data, self.trees, valid_sets=[check], callbacks=[stop])


@dataclass(frozen=True)
class Masked:
    """Rows with hidden features, each row `masks` times.

    X (N, c) with NaN where hidden, the row each came from (N,), and its coalition of players (N, d).
    """

    X: FloatArray
    row: IntArray
    coalition: BoolArray
    masks: int

    @classmethod
    def of(cls, X: FloatArray, table: Table, rows: IntArray, masks: int, most: int, rng: np.random.Generator) -> Masked:
        """Some rows of X, each `masks` times, or less often where that would be more than `most`."""
        masks = max(1, min(masks, most // len(rows)))
        row = np.repeat(rows, masks)
        coalition = random_coalitions(len(row), table.d, rng)
        shown = X[row]
        shown[~table.known_columns(coalition)] = np.nan
        return cls(shown, row, coalition, masks)


@dataclass(frozen=True)
class FittedTreeSurrogate(FittedOnTable, ExactFitted):
    """The learned ensembles, and how well they fit.

    Attributes
    ----------
    boosters : one `lightgbm.Booster` for each output, on the columns of `encoding`, hidden ones NaN
    encoding : how rows become numbers
    quality : the held-out errors that `fit_quality` describes
    """

    encoding: Encoding = field(repr=False)
    boosters: tuple[Any, ...] = field(repr=False)
    quality: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def info(self) -> Mapping[str, Any]:
        """What was learned and how well, on held-out rows."""
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
    def absent(self) -> tuple[Absent, ...]:
        """The row without any value, as each ensemble sees it."""
        from weightedshap.trees.ensembles import Absent

        return Absent.of(self.ensembles, np.full((1, len(self.background.names)), np.nan), np.ones(1))

    @cached_property
    def coefficients(self) -> FloatArray:
        """The table of K(s, t) that the blocks share."""
        from weightedshap.trees.ensembles import coefficient_table

        return coefficient_table(self.background.d, max(e.widest for e in self.ensembles))

    @cached_property
    def row_bytes(self) -> int:
        """About how much the lists of one row take."""
        return 16 * sum(len(e.value) for e in self.ensembles)

    def ready(self) -> Self:
        """The same game, its trees read and sorted out."""
        _ = [absent.patterns for absent in self.absent], self.coefficients, self.row_bytes
        return super().ready()

    def stored(self) -> dict[str, Any]:
        """The boosters in LightGBM's own text, and what stands around them."""
        texts = [booster.model_to_string() for booster in self.boosters]
        encoding = self.encoding.stored()
        return {"recipe": "TreeSurrogate", "boosters": texts, "encoding": encoding, "quality": dict(self.quality)}

    def masked(self, rows: Data, coalitions: BoolArray) -> FloatArray:
        """(n, k) the game of each row at its own coalition (n, d)."""
        X = np.where(self.background.known_columns(coalitions), self.encoding(rows), np.nan)
        return np.stack([booster.predict(X) for booster in self.boosters], axis=1)

    def block(self, rows: Data) -> LeafBlock:
        """The games of many rows."""
        from weightedshap.games.tree_blocks import LeafBlock

        return LeafBlock.of(self.absent, self.encoding(rows), self.coefficients)
