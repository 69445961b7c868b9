"""A game that is right when everything is known, and what it leaves when less is known: v = g(base)
+ h·c."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray, look_up, one_of
from weightedshap.games.base import Anchor, ExactFitted, Fitted, FittedGame, Game, Recipe
from weightedshap.games.surrogates.data import Masked
from weightedshap.games.user import ExactGame, FittedOnTable, JoinedBlock
from weightedshap.inputs import Data, Model, Table
from weightedshap.trees.links import LINKS, SHARED, Link, agree, link_among, link_between

if TYPE_CHECKING:
    from lightgbm import Booster

    from weightedshap.games.surrogates.tree_surrogate import LearnedTrees

POWER = 0.25  # of 1 − s/d
LOOKED_AT = 100  # background rows on which a base is held against the model


def fading(d: int) -> FloatArray:
    """(d + 1,) h(s) = (1 − s/d)^¼, how much of the correction is left when s players are known:
    none of it at [d]."""
    return np.asarray((1 - np.arange(d + 1) / d) ** POWER)


def faded(delta: FloatArray, empty: FloatArray, h: FloatArray) -> FloatArray:
    """Δ of the game h(|S|)·c(S) from Δ (n, d, d, k) of c and c(∅) (n, k).

    With P_j(i) the mean of c over the coalitions of size j that hold i,

        Δ′_j(i) = h_j P_j(i) − h_{j−1} (P_j(i) − Δ_j(i)).

    P follows from Δ. The mean of c over all coalitions of size j is M_j = c(∅) + Σ_{l ≤ j} mean_i
    Δ_l(i), and the mean over those without i is Q_j(i) = P_{j+1}(i) − Δ_{j+1}(i), where d M_j = j
    P_j + (d − j) Q_j. Errors shrink in every step of this recursion upwards from P_1 = c(∅) + Δ_1
    while j ≤ d/2, and downwards from P_d = M_d beyond.
    """
    d = delta.shape[1]
    M = empty[:, None] + np.concatenate(
        [np.zeros_like(delta[:, :1, 0]), delta.mean(axis=2).cumsum(axis=1)], axis=1
    )
    P = np.empty_like(delta)  # [:, j − 1]
    P[:, 0] = empty[:, None] + delta[:, 0]
    for j in range(1, d // 2):
        P[:, j] = (d * M[:, j, None] - j * P[:, j - 1]) / (d - j) + delta[:, j]
    P[:, d - 1] = M[:, d, None]
    for j in range(d - 1, d // 2, -1):
        P[:, j - 1] = (d * M[:, j, None] - (d - j) * (P[:, j] - delta[:, j])) / j
    after, before = (part[None, :, None, None] for part in (h[1:], h[:-1]))
    return np.asarray(before * delta + (after - before) * P)


@dataclass(frozen=True)
class AnchoredBlock(JoinedBlock):
    """The games g(base) + h·c of n rows; the parts are base and c."""

    parts: tuple[Any, Any]
    link: Link
    h: FloatArray  # (d + 1,)
    exact: bool  # whether g is the identity and both parts know their Δ: then so does the sum

    def joined(self, found: Sequence[FloatArray], size: IntArray) -> FloatArray:
        return np.asarray(self.link(found[0]) + self.h[size, None] * found[1])

    def output(self, index: int) -> Self:
        base = self.parts[0]
        link = self.link
        whole = link.shared
        parts = (base if whole else base.output(index), self.parts[1].output(index))
        return replace(
            self,
            parts=parts,
            link=replace(link, picked=link.picked[index : index + 1]) if whole else link,
        )

    def semivalues(self, vectors: FloatArray) -> FloatArray:
        base, c = self.parts
        delta = faded(c.semivalues(np.eye(self.d)), c.ends()[:, 0], self.h)
        return np.asarray(base.semivalues(vectors) + np.einsum("mj,njik->nmik", vectors, delta))

    def alone(self) -> Game:
        return ExactGame(self) if self.exact else super().alone()


@dataclass(frozen=True, repr=False)
class FittedAnchored(FittedOnTable):
    """A base, the link to the game's scale, and the trees learned on what both leave."""

    at_once: ClassVar[int] = ExactFitted.at_once
    base: Anchor
    link: Link
    correction: LearnedTrees
    h: FloatArray  # (d + 1,)

    @property
    def space(self) -> str:
        return self.base.space if self.link.name == "identity" else self.model.space

    @property
    def boosters(self) -> tuple[Booster, ...]:
        """What was learned by LightGBM, one for each output and fit."""
        return self.correction.boosters

    @cached_property
    def info(self) -> Mapping[str, Any]:
        about = {
            "game": "anchored",
            "base": self.base.info["game"],
            "space": self.space,
            "link": self.link.name,
        }
        scale = (
            {"scale": self.base.info["scale"]}
            if self.space == "margin" and "scale" in self.base.info
            else {}
        )
        return {**self.correction.info, **about, **scale}

    def outputs(self, rows: Data) -> tuple[FloatArray, bool]:
        return self.link(self.base.outputs(rows)[0]), self.model.has_axis

    def link_from(self, other: FittedGame) -> Link | None:
        return self.link if other is self.base else None

    @property
    def inner(self) -> tuple[Fitted, ...]:
        return self.base, self.correction

    def stored(self) -> dict[str, Any]:
        anchored = {
            "base": self.base.stored(),
            "link": self.link.name,
            "picked": self.link.picked,
            "h": self.h,
        }
        return {**self.correction.stored(), "anchored": anchored}

    def masked(self, rows: Data, coalitions: BoolArray) -> FloatArray:
        """(n, k) the game of each row at its own coalition (n, d)."""
        start = self.link(self.base.pairs(rows, Masked(np.arange(len(coalitions)), coalitions)))
        return np.asarray(
            start + self.h[coalitions.sum(axis=1), None] * self.correction.masked(rows, coalitions)
        )

    def block(self, rows: Data) -> AnchoredBlock:
        parts = self.base.block(rows), self.correction.block(rows)
        return AnchoredBlock(parts, self.link, self.h, exact=isinstance(self, ExactFitted))


class ExactAnchored(FittedAnchored, ExactFitted):
    """The same where g is the identity and both parts know their Δ."""


@dataclass(frozen=True)
class Footing:
    """What a correction is learned on: a base and the link from its scale to the game's."""

    base: Anchor
    link: Link

    @classmethod
    def of(cls, base: Any, model: Model, table: Table, rng: np.random.Generator) -> Self:
        """Fit `base` (a name, a recipe, or a fitted anchor) and find the link under which it gives
        the model at [d].

        Links are tried on background rows: those of `LINKS`, and for several classes the softmax
        over all of them. Where none agrees, the game stays on the base's own scale.
        """
        base = _fitted(base, model, table, rng)
        rows = table.take(slice(0, LOOKED_AT))
        raw = base.block(rows).ends()[:, 1]
        own = base.outputs(rows)[0]
        f = model(rows)
        if not agree(raw, own):
            said = (
                f"The base {base.info['game']!r} does not give the prediction when all players are"
                " known"
            )
            raise ValueError(f"{said}, so nothing can be anchored to it. Take base='tree_path'.")
        if (link := link_between(raw, f)) is not None:
            return cls(base, link)
        if model.n_raw > 2:
            whole = restored_game(base.stored(), _whole(model), table)
            if (link := link_among(whole.block(rows).ends()[:, 1], f, model.chosen)) is not None:
                return cls(whole, link)
        return cls(base, Link("identity"))

    @classmethod
    def restored(cls, content: Mapping[str, Any], model: Model, table: Table) -> Self:
        """The footing of a game that `FittedAnchored.stored` wrote."""
        link = Link(one_of("link", content["link"], (*SHARED, *LINKS)), tuple(content["picked"]))
        if link.shared and link.picked != model.chosen:
            raise ValueError("`picked` are other classes than those explained.")
        base = restored_game(content["base"], _whole(model) if link.shared else model, table)
        assert isinstance(base, Anchor)
        return cls(base, link)

    def f(self, rows: Data) -> FloatArray:
        """(n, k) predictions on the scale of the game."""
        return self.link(self.base.outputs(rows)[0])

    def start(self, rows: Data, masked: Masked) -> FloatArray:
        """(N, k) g(base) of rows at coalitions."""
        return self.link(self.base.pairs(rows, masked))

    def calls(self, *masked: Masked) -> int:
        """Calls of the model that `start` takes for these; f(x) of whole rows, few of them, is not
        counted."""
        size = np.concatenate([one.coalition.sum(axis=1) for one in masked])
        return self.base.calls * int(
            np.count_nonzero((size > 0) & (size < masked[0].coalition.shape[1]))
        )

    def game(
        self, model: Model, table: Table, correction: LearnedTrees, h: FloatArray
    ) -> FittedAnchored:
        """The game with what was learned."""
        known = all(isinstance(part, ExactFitted) for part in (self.base, correction))
        made = ExactAnchored if known and self.link.name == "identity" else FittedAnchored
        return made(model, table, self.base, self.link, correction, h)


def _fitted(base: Any, model: Model, table: Table, rng: np.random.Generator) -> Anchor:
    from weightedshap.games import GAMES

    found = look_up("base", base, GAMES)() if isinstance(base, str) else base
    found = found.fit(model, table, rng) if isinstance(found, Recipe) else found
    if not isinstance(found, Anchor):
        said = (
            "`base` must be a game that gives the prediction when all players are known:"
            " 'tree_path', "
        )
        raise TypeError(
            f"{said}'tree_interventional', a recipe of such a game, or a fitted one; got {base!r}."
        )
    if found.model.original is not model.original or found.background.d != table.d:
        raise ValueError(
            "The fitted `base` belongs to another model, or to other players. Give its name"
            " instead."
        )
    return found


def restored_game(content: Mapping[str, Any] | None, model: Model, table: Table) -> Any:
    """The fitted game that wrote `content`."""
    from weightedshap.games import RECIPES

    assert content is not None
    return RECIPES[content["recipe"]].restored(content, model, table)


def _whole(model: Model) -> Model:
    """The model with all its outputs."""
    names = tuple(f"output {o}" for o in range(model.n_raw))
    return replace(model, chosen=tuple(range(model.n_raw)), output_names=names, has_axis=True)
