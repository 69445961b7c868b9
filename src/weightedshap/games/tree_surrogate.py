"""E[f(X) | X_S = x_S] learned by boosted trees on rows with hidden features, read out exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from weightedshap.checks import BoolArray, FloatArray, IntArray
from weightedshap.games._encoding import Encoding
from weightedshap.games._tree_readers import lightgbm_tree
from weightedshap.games._trees import Coefficients, Ensemble, LeafBlock, RowGame, pack
from weightedshap.games.base import FittedOnTable, wrapped
from weightedshap.tables import Table

__all__ = ["TreeSurrogate"]


@dataclass(frozen=True)
class TreeSurrogate:
    """v(S) ≈ E[f(X) | X_S = x_S], learned by LightGBM; Δ is exact for the learned game.

    Background rows are repeated with random coalitions of known players, sizes uniform on 0..d; the
    columns of hidden players are set to NaN, and the trees are fitted to f(x) by squared error. Rows
    that the trees do not see tell when to stop and how good the game is. At a row every split sends
    "known" and "hidden" one way or the other, so each leaf is an indicator of two small sets of players
    and Δ needs no sampling.

    A missing value in the data is information, not a hidden feature: it is coded as a number below all
    others of its column, and only hidden features are NaN.

    Parameters
    ----------
    masks : coalitions per row; fewer where the table would exceed `max_rows`
    max_rows : most rows of the enlarged table
    trees, leaves, rate, bins : of LightGBM
    patience : trees without a lower held-out error before stopping
    held_out : share of the distinct rows that are held out
    n_jobs : threads of LightGBM; 0 for all cores
    """

    masks: int = 16
    max_rows: int = 200_000
    trees: int = 300
    leaves: int = 31
    rate: float = 0.1
    bins: int = 63
    patience: int = 20
    held_out: float = 0.15
    n_jobs: int = 0

    def fit(self, model: Any, background: Any, rng: np.random.Generator | int | None = None) -> FittedTreeSurrogate:
        """Learn one ensemble for each output."""
        model, table, rng = wrapped(model, background, rng)
        f = model(table.data).reshape(len(table), -1)  # (n, k)
        encoding = Encoding.of(table, f)
        X = encoding(table.data)
        train, test = split_rows(X, self.held_out, rng)
        seen = _masked(X, table, _repeated(train, self.masks, self.max_rows), rng)
        held = _masked(X, table, _repeated(test, self.masks, self.max_rows // 10), rng)
        boosters = tuple(self._boost(seen, held, f[:, o], table.weights, rng) for o in range(f.shape[1]))
        fitted = FittedTreeSurrogate(model, table, encoding, boosters)
        return fitted._scored(held, f)

    def _boost(self, seen: Masked, held: Masked, f: FloatArray, weights: FloatArray, rng: np.random.Generator) -> Any:
        import lightgbm

        parameters = {
            "objective": "regression",
            "metric": "l2",
            "learning_rate": self.rate,
            "num_leaves": self.leaves,
            "max_bin": self.bins,
            "seed": int(rng.integers(2**31)),
            "num_threads": self.n_jobs,
            "deterministic": True,
            "force_row_wise": True,
            "verbose": -1,
        }
        data = lightgbm.Dataset(seen.X, f[seen.row], weight=weights[seen.row], params=parameters)
        check = lightgbm.Dataset(held.X, f[held.row], weight=weights[held.row], reference=data)
        stop = lightgbm.early_stopping(self.patience, verbose=False)
        return lightgbm.train(parameters, data, self.trees, valid_sets=[check], callbacks=[stop])


@dataclass(frozen=True)
class Masked:
    """Rows with hidden features: X (N, c) with NaN, the row each came from, and its coalition (N, d)."""

    X: FloatArray
    row: IntArray
    coalition: BoolArray


def split_rows(X: FloatArray, share: float, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Rows to learn from and rows held out; copies of one row never stand on both sides.

    A single distinct row has to serve for both.
    """
    _, group = np.unique(X, axis=0, return_inverse=True)
    group = group.ravel()
    n_groups = int(group.max()) + 1
    n_held = max(1, round(share * n_groups))
    if n_groups == 1:
        every = np.arange(len(X))
        return every, every
    held = np.isin(group, rng.permutation(n_groups)[:n_held])
    return np.flatnonzero(~held), np.flatnonzero(held)


def random_coalitions(m: int, d: int, rng: np.random.Generator) -> BoolArray:
    """(m, d) coalitions whose size is uniform on 0..d, as the paper's surrogate is trained."""
    size = rng.integers(0, d + 1, size=m)
    rank = rng.random((m, d)).argsort(axis=1).argsort(axis=1)
    return np.asarray(rank < size[:, None])


def _repeated(rows: IntArray, masks: int, most: int) -> IntArray:
    return np.repeat(rows, max(1, min(masks, most // len(rows))))


def _masked(X: FloatArray, table: Table, rows: IntArray, rng: np.random.Generator) -> Masked:
    coalitions = random_coalitions(len(rows), table.d, rng)
    hidden = X[rows]
    hidden[~table.known_columns(coalitions)] = np.nan
    return Masked(hidden, rows, coalitions)


@dataclass(frozen=True)
class FittedTreeSurrogate(FittedOnTable):
    """The learned ensembles, and how well they fit.

    Attributes
    ----------
    boosters : one `lightgbm.Booster` for each output
    """

    encoding: Encoding = field(repr=False)
    boosters: tuple[Any, ...] = field(repr=False)
    fit_quality: Mapping[str, Any] = field(default_factory=dict)

    @property
    def info(self) -> Mapping[str, Any]:
        """What was learned and how well, on held-out rows."""
        return {
            "game": "tree_surrogate",
            "space": self.space,
            "background_rows": len(self.background),
            "trees": sum(len(e.roots) for e in self.ensembles),
            "leaves": sum(e.n_leaves for e in self.ensembles),
            **self.fit_quality,
        }

    @cached_property
    def ensembles(self) -> tuple[Ensemble, ...]:
        """The boosters as flat arrays."""
        return tuple(_read(booster) for booster in self.boosters)

    @cached_property
    def players(self) -> tuple[Any, ...]:
        owner = self.background.player_of_column.astype(np.int32)
        return tuple(owner[e.column] for e in self.ensembles)

    @cached_property
    def hidden(self) -> tuple[BoolArray, ...]:
        """(1, nodes) for each output: whether a hidden feature goes left."""
        nothing = np.full((1, len(self.background.names)), np.nan)
        return tuple(e.directions(nothing) for e in self.ensembles)

    @cached_property
    def coefficients(self) -> Coefficients:
        pairs = zip(self.ensembles, self.players, strict=True)
        return Coefficients.of(self.background.d, max(e.widest(p, self.background.d) for e, p in pairs))

    @property
    def row_bytes(self) -> int:
        """About how much the lists of one row take."""
        return 48 * sum(e.n_leaves for e in self.ensembles)

    def at(self, row: Any) -> RowGame:
        """The game at one row."""
        return RowGame(self.block(self.background.align(row, "row")))

    def block(self, rows: Any) -> LeafBlock:
        """The games of many rows."""
        from weightedshap.games import _tree_kernels as kernels

        X, d = self.encoding(rows), self.background.d
        parts = tuple(
            kernels.list_leaves(
                e.directions(X), hidden, np.ones(1), e.roots, e.left, e.right, player, e.value, d, e.depth
            )
            for e, player, hidden in zip(self.ensembles, self.players, self.hidden, strict=True)
        )
        offsets = tuple(e.offset for e in self.ensembles)
        return LeafBlock(parts, offsets, self.coefficients, d, len(X), self.model.has_axis)

    def _scored(self, held: Masked, f: FloatArray) -> FittedTreeSurrogate:
        """With the held-out errors of the game."""
        from dataclasses import replace

        game = np.stack([booster.predict(held.X) for booster in self.boosters], axis=1)
        return replace(self, fit_quality=fit_quality(game, f[held.row], held.coalition, f, self.background.weights))


def fit_quality(
    game: FloatArray, f_x: FloatArray, coalitions: BoolArray, f: FloatArray, weights: FloatArray
) -> dict[str, Any]:
    """Held-out squared error of a learned game, overall, by coalition size, and relative to Var f.

    Part of the error is not the game's fault: f(x) varies among rows that share x_S.
    """
    error = ((game - f_x) ** 2).mean(axis=1)
    size = coalitions.sum(axis=1)
    d = coalitions.shape[1]
    count = np.bincount(size, minlength=d + 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        by_size = np.bincount(size, weights=error, minlength=d + 1) / count
    variance = float(np.average((f - np.average(f, axis=0, weights=weights)) ** 2, axis=0, weights=weights).mean())
    return {
        "held_out_error": float(error.mean()),
        "held_out_error_by_size": by_size,
        "relative_error": float(error.mean() / variance) if variance > 0 else 0.0,
        "variance": variance,
    }


def _read(booster: Any) -> Ensemble:
    dump = booster.dump_model()
    return pack([lightgbm_tree(tree["tree_structure"]) for tree in dump["tree_info"]])
