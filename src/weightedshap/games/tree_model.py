"""The model's own trees as the game: interventional and path-dependent, with exact Δ."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from weightedshap.checks import FloatArray, one_of
from weightedshap.games.protocols import ExactFitted
from weightedshap.games.surrogate import refuse_infinite
from weightedshap.games.wrappers import FittedOnTable, wrapped
from weightedshap.inputs import Data, Model, Table
from weightedshap.trees.ensembles import MOST_PATTERNS, Coefficients, Ensemble, Paths, players_of
from weightedshap.trees.readers import ReadModel, read_model

if TYPE_CHECKING:
    from weightedshap.games.tree_blocks import LeafBlock, PathBlock, TreeBlock


@dataclass(frozen=True)
class TreeModel:
    """v(S) read from the trees of LightGBM, XGBoost, CatBoost or scikit-learn models.

    Parameters
    ----------
    removal : "interventional" averages over background rows z the prediction for (x_S, z_{[d]∖S}), as
        the marginal game does; "path" follows both sides of every split on a hidden feature, weighted
        by the training rows that went there.

    Notes
    -----
    Trees add up on the model's raw scale: the margin (log-odds) of a boosted classifier, the
    probability of a forest, the value of a regression. ``space`` on the fitted game says which, and
    predictions and curves are on that scale.
    """

    removal: str = "interventional"

    def fit(self, model: Any, background: Data, rng: np.random.Generator | int | None = None) -> Any:
        """Read the trees, and for "interventional" sort the background rows by what they pass."""
        one_of("removal", self.removal, ("interventional", "path"))
        model, table, _ = wrapped(model, background, rng)
        read, signs = _chosen_outputs(model, table)
        ensembles = tuple(e.scaled(sign) for e, sign in zip(read.ensembles, signs, strict=True))
        kind = FittedPath if self.removal == "path" else FittedInterventional
        return kind(model, table, read, ensembles, signs)


def _chosen_outputs(model: Model, table: Table) -> tuple[ReadModel, tuple[float, ...]]:
    """The model as read, with only the outputs explained, and the sign of each.

    A boosted classifier of two classes has one margin, that of its second class; the first class has
    the same with the other sign.
    """
    if model.custom:
        raise ValueError(
            "A tree game reads the model's trees and cannot follow `predict=`. Leave `predict` out, or use "
            "game='tree_surrogate', which learns any function."
        )
    read = read_model(model.original, table.take(slice(0, 100)))
    if model.link == "logit" and (read.space != "margin" or len(read.ensembles) > 1):
        raise ValueError(
            f"The trees of this model add up on the scale {read.space!r}, not to log-odds of one class against "
            "the rest. Leave `link` out, or use game='tree_surrogate'."
        )
    if len(read.ensembles) == model.n_raw:
        picked, signs = model.chosen, (1.0,) * len(model.chosen)
    elif len(read.ensembles) == 1 and model.n_raw == 2:
        picked, signs = (0,) * len(model.chosen), tuple(1.0 if output == 1 else -1.0 for output in model.chosen)
    else:
        raise ValueError(
            f"The model predicts {model.n_raw} outputs but its trees give {len(read.ensembles)}; pass the "
            "estimator itself rather than a wrapper of it."
        )
    ensembles = tuple(read.ensembles[p] for p in picked)
    columns = list(picked)
    return ReadModel(ensembles, read.space, lambda rows: read.predict(rows)[:, columns], read.categories), signs


@dataclass(frozen=True)
class FittedTreeModel(FittedOnTable, ExactFitted):
    """Model, background, and the trees of the outputs explained."""

    read: ReadModel = field(repr=False)
    ensembles: tuple[Ensemble, ...] = field(repr=False)
    signs: tuple[float, ...] = ()

    @property
    def space(self) -> str:
        """The scale on which the trees add up."""
        return self.read.space

    @cached_property
    def info(self) -> Mapping[str, Any]:
        return {
            "game": self.name,
            "space": self.space,
            "background_rows": len(self.background),
            "trees": sum(len(e.roots) for e in self.ensembles),
            "leaves": sum(e.n_leaves for e in self.ensembles),
        }

    name = "tree_model"

    def outputs(self, rows: Data) -> tuple[FloatArray, bool]:
        """(n, k) f(x) on the scale of the trees, and whether people see the axis k."""
        return self.read.predict(rows) * np.asarray(self.signs), self.model.has_axis

    @abstractmethod
    def block(self, rows: Data) -> TreeBlock:
        """The games of many rows."""

    @property
    def offsets(self) -> tuple[float, ...]:
        """For each output what is added to the leaves."""
        return tuple(e.offset for e in self.ensembles)

    @cached_property
    def players(self) -> tuple[Any, ...]:
        """For each output, the player that every inner node asks about."""
        return players_of(self.ensembles, self.background.player_of_column)

    @cached_property
    def paths(self) -> tuple[Paths, ...]:
        """For each output, the ways to its leaves."""
        pairs = zip(self.ensembles, self.players, strict=True)
        return tuple(Paths.of(e, player, self.background.d) for e, player in pairs)

    @cached_property
    def coefficients(self) -> Coefficients:
        return Coefficients.of(self.background.d, max(paths.widest for paths in self.paths))

    def _numbers(self, rows: Data) -> FloatArray:
        X = self.read.encode(rows)
        refuse_infinite(X, self.background.names)
        return X


@dataclass(frozen=True)
class FittedPath(FittedTreeModel):
    """Splits on hidden features are averaged by cover."""

    name = "tree_path"

    def block(self, rows: Data) -> PathBlock:
        """The path-dependent games of many rows."""
        from weightedshap.games.tree_blocks import PathBlock

        X = self._numbers(rows)
        lists = tuple((e.directions(X), *p.arrays) for e, p in zip(self.ensembles, self.paths, strict=True))
        return PathBlock(lists, self.offsets, self.coefficients, self.background.d, len(X))

    @cached_property
    def mean_prediction(self) -> FloatArray:
        """game(∅): the mean by cover, over the rows that the trees were grown on."""
        row = self.background.take(slice(0, 1))
        return np.asarray(self.block(row).ends()[0, 0])


@dataclass(frozen=True)
class FittedInterventional(FittedTreeModel):
    """Hidden features take the values of background rows."""

    name = "tree_interventional"

    @cached_property
    def absent(self) -> tuple[Any, ...]:
        """(B, nodes) for each output: whether background rows go left."""
        Z = self._numbers(self.background.data)
        return tuple(e.directions(Z) for e in self.ensembles)

    @cached_property
    def patterns(self) -> tuple[Any, ...]:
        """For each output the background as patterns of passed members; None where that does not pay."""
        return tuple(self._patterns(output) for output in range(len(self.ensembles)))

    def _patterns(self, output: int) -> Any:
        from weightedshap.trees import path_kernels as kernels

        paths = self.paths[output]
        if len(self.background) <= 4 or paths.widest > 64:
            return None
        arrays = paths.start, paths.edge_start, paths.edge
        found = kernels.background_patterns(self.absent[output], self.background.weights, *arrays, MOST_PATTERNS)
        return None if found[0][0] < 0 else found

    @property
    def row_bytes(self) -> int:
        """About how much the lists of one row take."""
        per_leaf = 64 * max(1, min(len(self.background), 16))
        return per_leaf * sum(e.n_leaves for e in self.ensembles)

    def block(self, rows: Data) -> LeafBlock:
        """The interventional games of many rows."""
        from weightedshap.games.tree_blocks import LeafBlock

        X = self._numbers(rows)
        lists = tuple(self._leaves(output, X) for output in range(len(self.ensembles)))
        return LeafBlock(lists, self.offsets, self.coefficients, self.background.d, len(X))

    def _leaves(self, output: int, X: FloatArray) -> Any:
        from weightedshap.trees import leaf_kernels as _tree_kernels
        from weightedshap.trees import path_kernels as _path_kernels

        e, goes, patterns = self.ensembles[output], self.ensembles[output].directions(X), self.patterns[output]
        if patterns is None:
            return _tree_kernels.list_leaves(
                goes, self.absent[output], self.background.weights, e.roots, e.left, e.right,
                self.players[output], e.value, self.background.d, e.depth,
            )  # fmt: skip
        p = self.paths[output]
        return _path_kernels.list_pattern_leaves(goes, p.value, p.start, p.member, p.edge_start, p.edge, *patterns)
