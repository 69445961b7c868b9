"""The judges: games that are right when all features are known, whatever the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray, Seed, stored_array
from weightedshap.games.base import Fitted
from weightedshap.games.marginal import Marginal
from weightedshap.games.surrogates.correction import FittedAnchored, Footing, fading, restored_game
from weightedshap.games.surrogates.data import Masked, Split, fit_quality, held_out_masks
from weightedshap.games.surrogates.neural import FittedNeuralSurrogate, NeuralSurrogate
from weightedshap.games.surrogates.tree_surrogate import TreeSurrogate
from weightedshap.games.tree_model import FittedPath, read_or_told
from weightedshap.games.user import FittedOnTable, JoinedBlock, wrapped
from weightedshap.inputs import Data, Model, Table

LEAST = 0.1
MOST = (
    0.9  # share of the network in a blend: below the one it is left out, the other it never exceeds
)
USELESS = f"held-out rows give it less than {LEAST:.0%}"
MASKS = (
    28  # of each fit for readable trees: both fits together take 1.8 times as long as a surrogate
)
HELD_MASKS = 8
HELD_ROWS = (
    10_000  # coalitions of each held-out row that a blend is weighed by, and most of them in all
)


def rising(d: int) -> FloatArray:
    """(d + 1,) (s/d)², how much of a network's misfit at [d] is made good when s players are
    known."""
    return np.asarray((np.arange(d + 1) / d) ** 2)


@dataclass(frozen=True)
class AnchoredNetwork:
    """v(S) = N(x_S) + (s/d)²·(f(x) − N(x)): the network's game N, lifted to f(x) when all players
    are known.

    Most of the network's error at x is there already when nearly all players are known. The game
    knows f(x), so it is no function of x_S alone: it scores rankings and never explains.

    Parameters
    ----------
    network : the recipe of N
    """

    network: NeuralSurrogate = field(default_factory=NeuralSurrogate)

    def fit(self, model: Any, background: Data, rng: Seed = None) -> FittedAnchoredNetwork:
        """Learn the network."""
        model, table, rng = wrapped(model, background, rng)
        return self.fit_split(
            model, table, Split.of(model(table.data), table, self.network.held_out, rng), rng
        )

    def fit_split(
        self, model: Model, table: Table, split: Split, rng: np.random.Generator
    ) -> FittedAnchoredNetwork:
        """Learn from rows that are split already."""
        network = self.network.fit_split(model, table, split, rng)
        held = held_out_masks(split.test, table.d, rng)
        fitted = FittedAnchoredNetwork(model, table, network)
        game = fitted.masked(table.take(held.row), held.coalition, split.f[held.row])
        quality = fit_quality(game, split.f[held.row], held.coalition, split.f, table.weights)
        return replace(fitted, quality={**quality, "stopped": network.quality["stopped"]})

    @classmethod
    def restored(
        cls, content: Mapping[str, Any], model: Model, background: Table
    ) -> FittedAnchoredNetwork:
        """The game that `FittedAnchoredNetwork.stored` wrote."""
        network = NeuralSurrogate.restored(content["network"], model, background)
        return FittedAnchoredNetwork(model, background, network, dict(content["quality"]))


@dataclass(frozen=True)
class LiftedBlock(JoinedBlock):
    """Games of n rows, lifted to f(x) by (s/d)² of what they miss at [d]."""

    f_x: FloatArray  # (n, k)

    @cached_property
    def gap(self) -> FloatArray:
        """(n, k) f(x) less the inner game at [d]."""
        return np.asarray(self.f_x - self.parts[0].ends()[:, 1])

    def joined(self, found: Sequence[FloatArray], size: IntArray) -> FloatArray:
        outer = (self.n, *(1,) * (found[0].ndim - 2), -1)
        values = found[0] + rising(self.d)[size, None] * self.gap.reshape(outer)
        # To the bit: networks count in single precision.
        values[..., size == self.d, :] = self.f_x.reshape(outer)
        return values

    def output(self, index: int) -> Self:
        return replace(super().output(index), f_x=self.f_x[:, [index]])


@dataclass(frozen=True, repr=False)
class FittedAnchoredNetwork(FittedOnTable):
    """The network, and how well the game that is lifted from it fits."""

    network: FittedNeuralSurrogate
    # See `fit_quality`, and why training stopped.
    quality: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def info(self) -> Mapping[str, Any]:
        return {**self.network.info, "game": "anchored_network", **self.quality}

    def block(self, rows: Data) -> LiftedBlock:
        return LiftedBlock((self.network.block(rows),), self.model(rows))

    def masked(
        self, rows: Data, coalitions: BoolArray, f_x: FloatArray | None = None
    ) -> FloatArray:
        """(n, k) the game of each row at its own coalition (n, d); `f_x` (n, k) where it is
        known."""
        gap = (self.model(rows) if f_x is None else f_x) - self.network.masked(
            rows, np.ones_like(coalitions)
        )
        lifted = rising(self.background.d)[coalitions.sum(axis=1), None] * gap
        return np.asarray(self.network.masked(rows, coalitions) + lifted)

    def stored(self) -> dict[str, Any]:
        return {
            "recipe": "AnchoredNetwork",
            "network": self.network.stored(),
            "quality": dict(self.quality),
        }


@dataclass(frozen=True)
class Anchored:
    """What the model predicts when only S is known, and f(x) itself when everything is: made to
    score rankings.

    Of a model whose trees can be read it is their path-dependent game with a learned correction
    that is given hints, ``TreeSurrogate(base="tree_path", hints=8)``. Of any other it is a blend of
    two games, each right at [d],

        v(S) = w · [N(x_S) + (s/d)²·(f(x) − N(x))] + (1 − w) · [M(S) + h(s)·c(x_S)],

    of a network (`AnchoredNetwork`) and of trees c that correct the marginal game M over a few
    fixed rows (``TreeSurrogate(base=Marginal(rows=…))``), whose errors have little in common. Both
    learn from the same rows. The share w minimises the squared error of w·N + (1 − w)·[M + h·c] on
    held-out rows with at most half of the players known: beyond that the first bracket would be
    praised for knowing f(x), and get 0.1 to 0.3 too much. The network has at most 0.9, and is left
    out below 0.1.

    ``info["blend"]`` tells the shares, ``info["calls"]`` the calls of the model in fitting and to
    judge one ranking.

    Parameters
    ----------
    fits, hints : of the correction of readable trees (see `TreeSurrogate`); a blend is a mean
        already
    rows : of the marginal game M; 1 is the row of means, and modes of categories; ten gave hardly
        less error
    masks : coalitions per row that a correction is learned from; the model is called `rows` times
        for each. Readable trees take at most 28: two fits see twice as many
    network : the recipe of N
    """

    fits: int = 2
    hints: int = 8
    rows: int = 1
    masks: int = 32
    network: NeuralSurrogate = field(default_factory=NeuralSurrogate)

    def fit(self, model: Any, background: Data, rng: Seed = None) -> Fitted:
        """Read the trees and learn the correction, or learn both halves of the blend and weigh
        them."""
        model, table, rng = wrapped(model, background, rng)
        path = read_or_told(model, table)[0]
        trees = TreeSurrogate(masks=self.masks)
        if path is not None:
            return self.of_trees(path).fit(model, table, rng)
        split = Split.of(model(table.data), table, trees.held_out, rng)
        network = AnchoredNetwork(self.network).fit_split(model, table, split, rng)
        footing = Footing.of(Marginal(rows=self.rows), model, table, rng)
        correction = trees.fit_split(model, table, split, rng, footing)
        corrected = footing.game(model, table, correction, fading(table.d))
        held = Masked.of(split.test, table.d, HELD_MASKS, HELD_ROWS, rng)
        spent = 2 * len(table) + footing.calls(held)
        calls = correction.quality["calls"]
        return FittedBlend.of(
            network, corrected, split, held, {**calls, "fit": spent + calls["fit"]}
        )

    def of_trees(self, path: FittedPath) -> TreeSurrogate:
        """The recipe for trees that have been read."""
        return TreeSurrogate(
            masks=min(self.masks, MASKS), base=path, fits=self.fits, hints=self.hints
        )

    @classmethod
    def restored(cls, content: Mapping[str, Any], model: Model, background: Table) -> FittedBlend:
        """The game that `FittedBlend.stored` wrote."""
        parts = tuple(restored_game(part, model, background) for part in content["parts"])
        shares = stored_array("shares", content["shares"], (len(parts),))
        if (shares < 0).any() or abs(shares.sum() - 1) > 1e-9:
            raise ValueError("`shares` of a blend are negative, or do not sum to one.")
        return FittedBlend(model, background, parts, shares, dict(content["quality"]))


def network_share(
    network: FloatArray, trees: FloatArray, f_x: FloatArray, scale: FloatArray
) -> float:
    """w that minimises Σ (w·N + (1 − w)·trees − f(x))² over rows (N, k), at most 0.9, and 0 below
    0.1.

    Outputs are in units of their spread, `scale` (k,).
    """
    scale = np.where(scale > 0, scale, 1.0)
    apart = (trees - network) / scale
    error = (trees - f_x) / scale
    square = float((apart**2).sum())
    w = float(np.clip((apart * error).sum() / square, 0, MOST)) if square > 0 else 0.5
    return w if w >= LEAST else 0.0


@dataclass(frozen=True)
class BlendBlock(JoinedBlock):
    """Weighted means of the games of n rows."""

    cost: ClassVar[str | None] = None
    shares: FloatArray  # of each part, summing to one

    def joined(self, found: Sequence[FloatArray], size: IntArray) -> FloatArray:
        return np.asarray(
            sum(share * values for share, values in zip(self.shares, found, strict=True))
        )


@dataclass(frozen=True, repr=False)
class FittedBlend(FittedOnTable):
    """Games that are right at [d], and the share of each in their mean."""

    parts: tuple[FittedOnTable, ...]
    shares: FloatArray
    quality: Mapping[str, Any]  # see `fit_quality`, and how the shares came about

    @classmethod
    def of(
        cls,
        network: FittedAnchoredNetwork,
        trees: FittedAnchored,
        split: Split,
        held: Masked,
        calls: dict[str, int],
    ) -> FittedBlend:
        """Both halves, weighed by what they make of held-out rows."""
        table = network.background
        f = split.f
        f_x = split.f[held.row]
        rows = network.background.take(held.row)
        plain = network.network.masked(rows, held.coalition)
        corrected = trees.masked(rows, held.coalition)
        few = 2 * held.coalition.sum(axis=1) <= table.d
        w = network_share(plain[few], corrected[few], f_x[few], f.std(axis=0))
        game = w * network.masked(rows, held.coalition, f_x) + (1 - w) * corrected
        quality = fit_quality(game, f_x, held.coalition, f, table.weights)
        of_network, of_trees = (
            float(((part[few] - f_x[few]) ** 2).mean()) for part in (plain, corrected)
        )
        told = (
            f"{w:.0%} network, {1 - w:.0%} trees that correct the marginal game"
            if w
            else f"no network: {USELESS}"
        )
        facts = {
            "blend": told,
            "network_share": w,
            "network_error": of_network,
            "trees_error": of_trees,
        }
        parts, shares = ((network, trees), [w, 1 - w]) if w else ((trees,), [1.0])
        return cls(
            network.model, table, parts, np.array(shares), {**quality, **facts, "calls": calls}
        )

    @cached_property
    def info(self) -> Mapping[str, Any]:
        return {**super().info, "game": "anchored", "base": "marginal", **self.quality}

    @property
    def inner(self) -> tuple[Fitted, ...]:
        return self.parts

    def block(self, rows: Data) -> BlendBlock:
        return BlendBlock(tuple(part.block(rows) for part in self.parts), self.shares)

    def stored(self) -> dict[str, Any]:
        parts = [part.stored() for part in self.parts]
        return {
            "recipe": "Anchored",
            "parts": parts,
            "shares": self.shares,
            "quality": dict(self.quality),
        }
