"""Games of the model's own trees, interventional and path-dependent, with exact Δ.

`TreeModel` is the recipe. The trees are read by `weightedshap.trees.readers` and evaluated by
`tree_batch`; `weightedshap.config` tries the path-dependent game first for every model.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from weightedshap._checks import LARGEST, FloatArray, Seed, look_up
from weightedshap.games.base import BaseGame
from weightedshap.games.surrogates.data import MaskedRows, too_large_error
from weightedshap.games.user import as_model_and_table
from weightedshap.inputs import Data, Model, Table, take_rows
from weightedshap.inputs.rows import Rows
from weightedshap.trees.links import (
    are_close,
    is_monotone,
    link_among,
    link_between,
    raw_scale_name,
)

if TYPE_CHECKING:
    from weightedshap.games.tree_batch import BatchFactory, TreeBatch
    from weightedshap.trees.readers import TreeModelReading


@dataclass(frozen=True)
class TreeModel:
    """A game given by the model's own trees (LightGBM, XGBoost, CatBoost or scikit-learn).

    The trees are also found inside wrappers.

    Parameters
    ----------
    removal : "interventional" averages the prediction for (x_S, z_{[d]∖S}) over background rows z,
        as the marginal game does; "path" follows both sides of splits on hidden features, weighted
        by the number of training rows on each side (cover).

    Notes
    -----
    Predictions and curves are on the scale on which the trees are summed, the fitted game's
    ``space``: the margin (log-odds) of a boosted classifier, the probability of a forest, the value
    of a regression.
    """

    removal: str = "interventional"

    def fit(self, model: Any, background: Data, rng: Seed = None) -> TreeGame:
        """Read the trees of the model; raise an `UnreadableModelError` if that is not possible."""
        games: Mapping[str, type[TreeGame]] = {
            "interventional": InterventionalTreeGame,
            "path": PathTreeGame,
        }
        game = look_up("removal", self.removal, games)
        model, table, _ = as_model_and_table(model, background, rng)
        return game(model, table, *_read_explained_outputs(model, table))

    @classmethod
    def from_state(cls, content: Mapping[str, Any], model: Model, background: Table) -> TreeGame:
        """Rebuild a game from the dict of `TreeGame.state`; the model's trees are read again."""
        return cls(content["removal"]).fit(model, background)


def try_read_trees(model: Model, table: Table) -> tuple[PathTreeGame | None, str]:
    """Return the path-dependent game of the model's trees, or None and why reading them failed.

    The second result, the reason, is "" if the trees were read, or if the model has no trees.
    """
    from weightedshap.trees.readers import UnreadableModelError
    from weightedshap.trees.wrappers import find_trees

    try:
        return PathTreeGame(model, table, *_read_explained_outputs(model, table)), ""
    except UnreadableModelError as error:
        has_trees = find_trees(model.original) is not None
        return None, error.reason if has_trees else ""


def _read_explained_outputs(model: Model, table: Table) -> tuple[TreeModelReading, str]:
    """Read the trees of the explained outputs; return them, and the link to predictions.

    The splits of the trees refer to the players of the table. A model of two classes has one
    margin, that of the second class; the first class has its negative.
    """
    from weightedshap.trees.pipelines import players_of_columns
    from weightedshap.trees.readers import UnreadableModelError, make_probes
    from weightedshap.trees.wrappers import read_through

    if model.is_custom:
        raise UnreadableModelError(
            "A tree game reads the model's trees and cannot follow `predict=`.",
            "Leave `predict` out, or use game='tree_surrogate', which learns any function.",
        )
    rows = take_rows(table.data, slice(0, 100))
    reading = read_through(model.original, rows)
    owner = players_of_columns(reading, rows, table.player_of_column, table.names)

    n_ensembles = len(reading.ensembles)
    if n_ensembles == model.n_raw:
        positions = list(model.output_positions)
        signs = np.ones(len(model.output_positions))
    elif n_ensembles == 1 and model.n_raw == 2:
        positions = [0] * len(model.output_positions)
        signs = np.where(np.array(model.output_positions) == 1, 1.0, -1.0)
    else:
        raise UnreadableModelError(
            f"The model predicts {model.n_raw} outputs but its trees give {n_ensembles}.",
            "Pass the estimator itself rather than a wrapper of it.",
        )

    players = [ensemble.with_players(owner) for ensemble in reading.ensembles]
    ensembles = []
    for position, sign in zip(positions, signs.tolist(), strict=True):
        e = players[position]
        ensembles.append(replace(e, value=e.value * sign, offset=e.offset * sign))
    explained = replace(
        reading,
        ensembles=tuple(ensembles),
        picked=tuple(positions),
        factor=reading.factor * signs,
    )
    return explained, _find_link(model, reading, explained, make_probes(reading, rows))


def _find_link(
    model: Model, reading: TreeModelReading, explained: TreeModelReading, rows: Data
) -> str:
    """Return the name of the link from the sums over trees to the predictions for `rows`.

    It is "unknown" if the predictions only increase or decrease with the sums.
    """
    from weightedshap.trees.readers import UnreadableModelError

    f = model(rows)
    raw = explained.predict(rows)
    if model.link == "logit" and not are_close(raw, f):
        raise UnreadableModelError(
            "The trees of this model do not add up to log-odds of one class against the rest.",
            "Leave `link` out, or use game='tree_surrogate'.",
        )
    link = link_between(raw, f)
    if link is None and len(reading.ensembles) > 1:
        link = link_among(reading.predict(rows), f, model.output_positions)
    if link is not None:
        return link.name
    if is_monotone(raw, f):
        return "unknown"
    raise UnreadableModelError(
        "The trees of this model do not give what the model predicts, by any link."
    )


@dataclass(frozen=True, repr=False)
class TreeGame(BaseGame):
    """A game of the model's own trees; a subclass defines how features are hidden."""

    model: Model
    background: Table
    reading: TreeModelReading
    link: str  # from the scale on which the trees are summed to the model's own

    matches_model = True
    is_exact = True
    # Larger blocks save no time and make the progress bar jump.
    rows_per_block = 256

    @property
    @abstractmethod
    def factory(self) -> BatchFactory:
        """The `BatchFactory` that builds batches of rows."""

    @property
    def asks_by_block(self) -> bool:
        return self.reading.is_single_threaded

    @cached_property
    def bytes_per_row(self) -> int:
        return self.factory.bytes_per_row

    def warm_up(self) -> Self:
        _ = self.factory
        _ = self.bytes_per_row
        return self

    @property
    def space(self) -> str:
        return self.model.space if self.link == "identity" else "margin"

    @cached_property
    def info(self) -> Mapping[str, Any]:
        return {
            "game": self.label,
            "space": self.space,
            **raw_scale_name(self.link),
            "background_rows": len(self.background),
            "trees": sum(len(e.roots) for e in self.reading.ensembles),
            "leaves": sum(len(e.value) for e in self.reading.ensembles),
        }

    def predictions(self, rows: Rows) -> FloatArray:
        return self.reading.predict(rows.data)

    def batch(self, rows: Rows) -> TreeBatch:
        X = self._encode(rows.data)
        return self.factory(self, rows, X)

    def state(self) -> dict[str, Any]:
        return {"recipe": "TreeModel", "removal": self.label.removeprefix("tree_")}

    def _encode(self, rows: Data) -> FloatArray:
        """Encode rows as numbers (n, c), to be compared with the thresholds of splits."""
        X = self.reading.encode(rows)
        if (np.abs(X) > LARGEST).any():
            raise too_large_error(X, self.background.names)
        return X


@dataclass(frozen=True, repr=False)
class InterventionalTreeGame(TreeGame):
    """The tree game in which hidden features take the values of background rows."""

    label = "tree_interventional"
    # All rows of a block share the results for a background pattern, so large blocks are faster.
    rows_per_block = 2048

    @cached_property
    def factory(self) -> BatchFactory:
        from weightedshap.games.tree_batch import background_batches

        background = self.background
        Z = self._encode(background.data)
        return background_batches(self.reading.ensembles, Z, background.weights)


@dataclass(frozen=True, repr=False)
class PathTreeGame(TreeGame):
    """The path-dependent tree game: splits on hidden features are averaged, weighted by cover."""

    label = "tree_path"

    @cached_property
    def factory(self) -> BatchFactory:
        from weightedshap.games.tree_batch import path_dependent_batches

        return path_dependent_batches(self.reading.ensembles)

    def values_at(self, rows: Data, masked: MaskedRows) -> FloatArray:
        X = self._encode(rows)
        values = [e.masked_values(X, *masked) for e in self.reading.ensembles]
        return np.stack(values, axis=-1)

    @cached_property
    def mean_prediction(self) -> FloatArray:
        """The mean output over the rows that the trees were trained on, which is v(∅)."""
        row = Rows(self.background.take(slice(0, 1)))
        return np.asarray(self.batch(row).endpoints()[0, 0])
