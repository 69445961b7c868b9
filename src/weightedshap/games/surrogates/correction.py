"""Games v = g(base) + h·c: a base game mapped by a link g, plus a learned correction c.

The base gives f(x) at [d]; the trees c are fitted to its error at smaller coalitions, and h is zero
at [d]. `TreeSurrogate` with a `base` and the judge `Anchored` build their games here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray, check_choice, look_up
from weightedshap.games.base import BaseGame, GameBatch, Recipe
from weightedshap.games.surrogates.data import MaskedRows
from weightedshap.inputs import Data, Model, Table
from weightedshap.inputs.rows import Rows
from weightedshap.trees.links import LINKS, SHARED, Link, are_close, link_among, link_between

if TYPE_CHECKING:
    from lightgbm import Booster

    from weightedshap.games.surrogates.tree_surrogate import LearnedTrees

# The exponent of 1 − s/d in h(s).
POWER = 0.25
# Background rows on which a base is compared with the model.
PROBED_ROWS = 100


def fading_weights(d: int) -> FloatArray:
    """Return (1 − s/d)^¼, the factor of the correction at s known players, for s = 0, …, d."""
    return np.asarray((1 - np.arange(d + 1) / d) ** POWER)


def fade_contributions(delta: FloatArray, empty: FloatArray, h: FloatArray) -> FloatArray:
    """Return Δ of the game h(|S|)·c(S), given Δ and the empty value of the game c.

    `delta` is Δ of c (n, d, d, k), and `empty` is c(∅) (n, k). With P_j(i) the mean of c over the
    coalitions of size j that contain i,

        Δ′_j(i) = h_j P_j(i) − h_{j−1} (P_j(i) − Δ_j(i)).

    P follows from Δ. The mean of c over all coalitions of size j is M_j = c(∅) + Σ_{l ≤ j} mean_i
    Δ_l(i), and the mean over those without i is Q_j(i) = P_{j+1}(i) − Δ_{j+1}(i), where d M_j = j
    P_j + (d − j) Q_j.
    """
    d = delta.shape[1]

    # M[j]: the mean of c over all coalitions of size j.
    steps = delta.mean(axis=2).cumsum(axis=1)
    M = empty[:, None] + np.concatenate([np.zeros_like(steps[:, :1]), steps], axis=1)

    # P[:, j − 1]: the mean of c over the coalitions of size j that contain i. The recursion runs
    # from both ends to the middle, because rounding errors shrink in that direction and grow in the
    # other.
    P = np.empty_like(delta)
    P[:, 0] = empty[:, None] + delta[:, 0]
    for j in range(1, d // 2):
        P[:, j] = (d * M[:, j, None] - j * P[:, j - 1]) / (d - j) + delta[:, j]
    P[:, d - 1] = M[:, d, None]
    for j in range(d - 1, d // 2, -1):
        without_i = P[:, j] - delta[:, j]
        P[:, j - 1] = (d * M[:, j, None] - (d - j) * without_i) / j

    h_before = h[:-1][None, :, None, None]
    h_after = h[1:][None, :, None, None]
    return np.asarray(h_before * delta + (h_after - h_before) * P)


@dataclass(frozen=True, eq=False)
class CombinedBatch(GameBatch):
    """A batch whose values are computed from the values of other batches for the same rows."""

    cost: ClassVar[str | None] = "cheap"
    parts: tuple[GameBatch, ...] = field(kw_only=True)

    @abstractmethod
    def combine(self, read: Callable[[GameBatch], FloatArray], size: IntArray) -> FloatArray:
        """Compute the values of this batch from those of its `parts`, at m coalitions.

        Values are (n, …, m, k), and `size` (m,) are the sizes of the coalitions. ``read(part)``
        returns the values of one part; the result has their shape.
        """

    def values(self, coalitions: BoolArray) -> FloatArray:
        return self.combine(lambda part: part.values(coalitions), coalitions.sum(axis=1))

    def along(self, orders: IntArray) -> FloatArray:
        size = np.arange(orders.shape[-1] + 1)
        return self.combine(lambda part: part.along(orders), size)

    def endpoints(self) -> FloatArray:
        return self.combine(lambda part: part.endpoints(), np.array([0, self.d]))

    def select(self, outputs: Sequence[int]) -> Self:
        parts = tuple(part.select(outputs) for part in self.parts)
        return replace(super().select(outputs), parts=parts)


@dataclass(frozen=True, eq=False)
class AnchoredBatch(CombinedBatch):
    """The games g(base) + h·c of n rows: a base mapped by a link g, plus a correction c.

    `parts` are the batches of the base and of c.
    """

    game: AnchoredGame
    link: Link  # g, for the outputs of this batch

    def combine(self, read: Callable[[GameBatch], FloatArray], size: IntArray) -> FloatArray:
        base, c = (read(part) for part in self.parts)
        return np.asarray(self.link(base) + self.game.h[size, None] * c)

    def select(self, outputs: Sequence[int]) -> Self:
        if not self.link.shared:
            return super().select(outputs)
        # The softmax of a class depends on all classes, so the base keeps all its outputs.
        base, c = self.parts
        selected = super().select(outputs)
        link = replace(self.link, picked=tuple(self.link.picked[o] for o in outputs))
        return replace(selected, parts=(base, c.select(outputs)), link=link)

    def semivalues(self, vectors: FloatArray) -> FloatArray:
        base, c = self.parts
        c_delta = c.semivalues(np.eye(self.d))
        delta = fade_contributions(c_delta, c.endpoints()[:, 0], self.game.h)
        return np.asarray(base.semivalues(vectors) + np.einsum("mj,njik->nmik", vectors, delta))


@dataclass(frozen=True, repr=False)
class AnchoredGame(BaseGame):
    """A base game mapped by a link g, plus a correction by learned trees c: v = g(base) + h·c."""

    label = "anchored"
    rows_per_block = 256

    model: Model
    background: Table
    base: BaseGame
    link: Link
    correction: LearnedTrees
    h: FloatArray  # (d + 1,)

    @property
    def is_exact(self) -> bool:  # type: ignore[override]
        """Whether Δ is exact: the link is the identity, and base and correction are exact."""
        return self.link.name == "identity" and self.base.is_exact and self.correction.is_exact

    @property
    def asks_by_block(self) -> bool:
        return self.base.asks_by_block

    @property
    def space(self) -> str:
        return self.base.space if self.link.name == "identity" else self.model.space

    @property
    def boosters(self) -> tuple[Booster, ...]:
        """The LightGBM boosters of the correction, one for each output of each fit."""
        return self.correction.boosters

    @property
    def parts(self) -> tuple[BaseGame, ...]:
        return self.base, self.correction

    @cached_property
    def info(self) -> Mapping[str, Any]:
        base = self.base.info
        info = {
            **self.correction.info,
            "game": self.label,
            "base": base["game"],
            "space": self.space,
            "link": self.link.name,
        }
        if self.space == "margin" and "scale" in base:
            info["scale"] = base["scale"]
        return info

    def predictions(self, rows: Rows) -> FloatArray:
        # Ask through the rows, which have cached the predictions if the base is explained too.
        return self.link(rows.ask(self.base))

    def batch(self, rows: Rows) -> AnchoredBatch:
        # Bind through the rows, which return the explained batch if the base is explained too.
        parts = (rows.bind(self.base), rows.bind(self.correction))
        # The sum is exact where g is the identity and both parts are exact.
        is_exact = self.link.name == "identity" and all(part.is_exact for part in parts)
        return AnchoredBatch(self, rows, self.link, parts=parts, is_exact=is_exact)

    def values_at(self, rows: Data, masked: MaskedRows) -> FloatArray:
        start = self.link(self.base.values_at(rows, masked))
        size = masked.coalition.sum(axis=1)
        return np.asarray(start + self.h[size, None] * self.correction.values_at(rows, masked))

    def state(self) -> dict[str, Any]:
        anchored = {
            "base": self.base.state(),
            "link": self.link.name,
            "picked": self.link.picked,
            "h": self.h,
        }
        return {**self.correction.state(), "anchored": anchored}


@dataclass(frozen=True)
class Base:
    """A fitted game to which a correction is added, and the link to the corrected game's scale."""

    game: BaseGame
    link: Link

    @classmethod
    def fit(cls, base: Any, model: Model, table: Table, rng: np.random.Generator) -> Self:
        """Fit `base` (a name, a recipe, or a fitted game), and find its link to the model.

        The link maps v([d]) of the base to the model's prediction. The links of `LINKS`, and for
        several classes the softmax over all of them, are tried on background rows. If none fits,
        the corrected game stays on the base's own scale.
        """
        game = _fit_base_game(base, model, table, rng)
        rows = Rows(table.take(slice(0, PROBED_ROWS)))
        raw = game.batch(rows).endpoints()[:, 1]
        own = rows.ask(game)
        f = model(rows.data)
        if not are_close(raw, own):
            raise ValueError(
                f"The base {game.info['game']!r} does not give the prediction when all players are"
                " known, so nothing can be anchored to it. Take base='tree_path'."
            )
        link = link_between(raw, f)
        if link is not None:
            return cls(game, link)
        if model.n_raw > 2:
            all_outputs = game_from_state(game.state(), _with_all_outputs(model), table)
            link = link_among(all_outputs.batch(rows).endpoints()[:, 1], f, model.output_positions)
            if link is not None:
                return cls(all_outputs, link)
        return cls(game, Link("identity"))

    @classmethod
    def from_state(cls, content: Mapping[str, Any], model: Model, table: Table) -> Self:
        """Rebuild the base from the dict that `AnchoredGame.state` returned under "anchored"."""
        name = check_choice("link", content["link"], (*SHARED, *LINKS))
        link = Link(name, tuple(content["picked"]))
        if link.shared and link.picked != model.output_positions:
            raise ValueError("`picked` are other classes than those explained.")
        own_model = _with_all_outputs(model) if link.shared else model
        game = game_from_state(content["base"], own_model, table)
        if not game.matches_model:
            raise ValueError("`base` is a game that does not give the prediction at [d].")
        return cls(game, link)

    def predict(self, rows: Data) -> FloatArray:
        """Return predictions (n, k) on the scale of the corrected game."""
        return self.link(Rows(rows).ask(self.game))

    def values_at(self, rows: Data, masked: MaskedRows) -> FloatArray:
        """Return the values (N, k) of the base at N masked rows, on the corrected game's scale."""
        return self.link(self.game.values_at(rows, masked))

    def n_calls(self, *masked: MaskedRows) -> int:
        """Return the number of model calls that `values_at` needs for these masked rows.

        The few calls for f(x), of rows whose features are all known, are not counted.
        """
        size = np.concatenate([one.coalition.sum(axis=1) for one in masked])
        d = masked[0].coalition.shape[1]
        n_partly_known = int(np.count_nonzero((size > 0) & (size < d)))
        return self.game.calls_per_value * n_partly_known


def _fit_base_game(base: Any, model: Model, table: Table, rng: np.random.Generator) -> BaseGame:
    """Fit a base given by name or recipe; check that it gives f(x) when all players are known."""
    from weightedshap.games import GAMES

    game = look_up("base", base, GAMES)() if isinstance(base, str) else base
    if isinstance(game, Recipe):
        game = game.fit(model, table, rng)
    if not isinstance(game, BaseGame) or not game.matches_model:
        raise TypeError(
            "`base` must be a game that gives the prediction when all players are known:"
            " 'tree_path', 'tree_interventional', a recipe of such a game, or a fitted one; got"
            f" {base!r}."
        )
    if game.model.original is not model.original or game.background.d != table.d:
        raise ValueError(
            "The fitted `base` belongs to another model, or to other players. Give its name"
            " instead."
        )
    return game


def game_from_state(content: Mapping[str, Any] | None, model: Model, table: Table) -> Any:
    """Rebuild a fitted game from `content`, the dict that its `state` returned."""
    from weightedshap.games import RECIPES

    assert content is not None
    return RECIPES[content["recipe"]].from_state(content, model, table)


def _with_all_outputs(model: Model) -> Model:
    """Return the model with all of its outputs, not only those to be explained."""
    names = tuple(f"output {o}" for o in range(model.n_raw))
    return replace(
        model, output_positions=tuple(range(model.n_raw)), output_names=names, has_output_axis=True
    )
