"""The model's own trees as the game: interventional and path-dependent, with exact Δ."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from weightedshap._checks import FloatArray, look_up
from weightedshap.games.base import Anchor, ExactFitted
from weightedshap.games.surrogates.data import Masked, refuse_infinite
from weightedshap.games.user import FittedOnTable, wrapped
from weightedshap.inputs import Data, Model, Table
from weightedshap.trees.links import agree, follows, link_among, link_between, name_of_raw

if TYPE_CHECKING:
    from weightedshap.games.tree_batch import TreeBlock, TreeGames
    from weightedshap.trees.readers import ReadModel


@dataclass(frozen=True)
class TreeModel:
    """v(S) read from the trees of LightGBM, XGBoost, CatBoost or scikit-learn models, also inside
    wrappers.

    Parameters
    ----------
    removal : "interventional" averages the prediction for (x_S, z_{[d]∖S}) over background rows z,
        as the marginal game does; "path" follows both sides of splits on hidden features, weighted
        by the training rows that went there.

    Notes
    -----
    Predictions and curves are on the scale on which trees add up, the fitted game's ``space``: the
    margin (log-odds) of a boosted classifier, the probability of a forest, the value of a
    regression.
    """

    removal: str = "interventional"

    def fit(
        self, model: Any, background: Data, rng: np.random.Generator | int | None = None
    ) -> FittedTrees:
        """Read the trees, and for "interventional" sort the background rows by what they pass."""
        fitted = look_up(
            "removal", self.removal, {"interventional": FittedInterventional, "path": FittedPath}
        )
        model, table, _ = wrapped(model, background, rng)
        return fitted(model, table, *_explained(model, table))

    @classmethod
    def restored(cls, content: Mapping[str, Any], model: Model, background: Table) -> FittedTrees:
        """The game that `FittedTrees.stored` wrote, read from the model again."""
        return cls(content["removal"]).fit(model, background)


def read_or_told(model: Model, table: Table) -> tuple[FittedPath | None, str]:
    """Return the path game of trees that can be read, else None and why, if there are any trees."""
    from weightedshap.trees.readers import UnreadableModel
    from weightedshap.trees.wrappers import find_trees

    try:
        return FittedPath(model, table, *_explained(model, table)), ""
    except UnreadableModel as error:
        return None, error.reason if find_trees(model.original) is not None else ""


def _explained(model: Model, table: Table) -> tuple[ReadModel, str]:
    """The model as read, with only the outputs explained, on the players of the table; and its
    link.

    Two classes share one margin, that of the second; the first class has the other sign.
    """
    from weightedshap.trees.pipelines import players_of_columns
    from weightedshap.trees.readers import UnreadableModel, probes
    from weightedshap.trees.wrappers import read_through

    if model.custom:
        raise UnreadableModel(
            "A tree game reads the model's trees and cannot follow `predict=`.",
            "Leave `predict` out, or use game='tree_surrogate', which learns any function.",
        )
    rows = table.take(slice(0, 100))
    read = read_through(model.original, rows)
    owner = players_of_columns(read, rows, table.player_of_column, table.names)
    if len(read.ensembles) == model.n_raw:
        positions = list(model.chosen)
        signs = np.ones(len(model.chosen))
    elif len(read.ensembles) == 1 and model.n_raw == 2:
        positions = [0] * len(model.chosen)
        signs = np.where(np.array(model.chosen) == 1, 1.0, -1.0)
    else:
        raise UnreadableModel(
            f"The model predicts {model.n_raw} outputs but its trees give {len(read.ensembles)}.",
            "Pass the estimator itself rather than a wrapper of it.",
        )
    players = [e.of_players(owner) for e in read.ensembles]
    chosen = zip((players[p] for p in positions), signs.tolist(), strict=True)
    ensembles = tuple(
        replace(e, value=e.value * sign, offset=e.offset * sign) for e, sign in chosen
    )
    explained = replace(
        read, ensembles=ensembles, picked=tuple(positions), factor=read.factor * signs
    )
    return explained, _link(model, read, explained, probes(read, rows))


def _link(model: Model, read: ReadModel, explained: ReadModel, rows: Data) -> str:
    """The name of the link from the trees of the outputs explained to what the user's estimator
    predicts for `rows`."""
    from weightedshap.trees.readers import UnreadableModel

    f = model(rows)
    raw = explained.predict(rows)
    if model.link == "logit" and not agree(raw, f):
        raise UnreadableModel(
            "The trees of this model do not add up to log-odds of one class against the rest.",
            "Leave `link` out, or use game='tree_surrogate'.",
        )
    if (link := link_between(raw, f)) is not None:
        return link.name
    if len(read.ensembles) > 1:
        link = link_among(read.predict(rows), f, model.chosen)
        if link is not None:
            return link.name
    if follows(raw, f):
        return "unknown"
    raise UnreadableModel(
        "The trees of this model do not give what the model predicts, by any link."
    )


@dataclass(frozen=True, repr=False)
class FittedTrees(FittedOnTable, ExactFitted, Anchor):
    """Model, background, and the trees of the outputs explained."""

    read: ReadModel
    link: str  # from the scale on which trees add up to the model's own
    name: ClassVar[str]

    @property
    @abstractmethod
    def games(self) -> TreeGames:
        """Encoded rows (n, c) → their games."""

    @property
    def one_thread(self) -> bool:
        return self.read.one_thread

    @cached_property
    def row_bytes(self) -> int:
        return self.games.row_bytes

    def ready(self) -> Self:
        _ = self.row_bytes
        return super().ready()

    @property
    def space(self) -> str:
        return self.model.space if self.link == "identity" else "margin"

    @cached_property
    def info(self) -> Mapping[str, Any]:
        return {
            "game": self.name,
            "space": self.space,
            **name_of_raw(self.link),
            "background_rows": len(self.background),
            "trees": sum(len(e.roots) for e in self.read.ensembles),
            "leaves": sum(len(e.value) for e in self.read.ensembles),
        }

    def outputs(self, rows: Data) -> tuple[FloatArray, bool]:
        return self.read.predict(rows), self.model.has_axis

    def stored(self) -> dict[str, Any]:
        return {"recipe": "TreeModel", "removal": self.name.removeprefix("tree_")}

    def block(self, rows: Data) -> TreeBlock:
        return self.games(self._numbers(rows))

    def shapley(self, rows: Data) -> FloatArray:
        """(n, d, k) Shapley values."""
        return self.block(rows).semivalues(self._uniform)[:, 0]

    @cached_property
    def _uniform(self) -> FloatArray:
        """(1, d) the weights of Shapley; one array for all calls, as what is made of weights is
        kept for that array."""
        return np.full((1, self.background.d), 1 / self.background.d)

    def _numbers(self, rows: Data) -> FloatArray:
        X = self.read.encode(rows)
        refuse_infinite(X, self.background.names)
        return X


@dataclass(frozen=True, repr=False)
class FittedInterventional(FittedTrees):
    """Hidden features take the background's values."""

    name = "tree_interventional"
    at_once = 2048  # rows share what is found for a pattern

    @cached_property
    def games(self) -> TreeGames:
        from weightedshap.games.tree_batch import leaf_games

        background = self.background
        return leaf_games(
            self.read.ensembles, self._numbers(background.data), background.weights, background.d
        )

    def shapley(self, rows: Data) -> FloatArray:
        """(n, d, k) Shapley values: pair by pair where trees have more leaves than there are
        background rows."""
        if any(
            len(self.background) * len(e.roots) > len(e.value) or e.widest > 64
            for e in self.read.ensembles
        ):
            return super().shapley(rows)
        pairs = self._numbers(rows), self._numbers(self.background.data), self.background.weights
        return np.stack(
            [e.shapley_values(*pairs, self.background.d) for e in self.read.ensembles], axis=-1
        )


@dataclass(frozen=True, repr=False)
class FittedPath(FittedTrees):
    """Splits on hidden features are averaged by cover."""

    name = "tree_path"

    @cached_property
    def games(self) -> TreeGames:
        from weightedshap.games.tree_batch import path_games

        return path_games(self.read.ensembles, self.background.d)

    def pairs(self, rows: Data, masked: Masked) -> FloatArray:
        """(N, k) the games of aligned rows at masks: row ``masked.row[t]`` when
        ``masked.coalition[t]`` is known."""
        X = self._numbers(rows)
        return np.stack([e.masked_values(X, *masked) for e in self.read.ensembles], axis=-1)

    @cached_property
    def mean_prediction(self) -> FloatArray:
        """game(∅): the mean by cover, over the rows that the trees were grown on."""
        return np.asarray(self.block(self.background.take(slice(0, 1))).ends()[0, 0])
