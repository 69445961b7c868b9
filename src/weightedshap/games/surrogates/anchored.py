"""Judges: games that equal f(x) when all features are known, for any model.

`AnchoredNetwork` corrects a network to equal f(x). `Anchored` corrects the path-dependent game of
readable trees, and blends two such games for other models; it is the default judge. Its parts come
from `correction`, `neural` and `tree_surrogate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from weightedshap._checks import FloatArray, IntArray, Seed, check_array
from weightedshap.games.base import BaseGame, GameBatch
from weightedshap.games.marginal import Marginal
from weightedshap.games.surrogates.correction import (
    AnchoredGame,
    Base,
    CombinedBatch,
    fading_weights,
    game_from_state,
)
from weightedshap.games.surrogates.data import (
    MaskedRows,
    TrainTestSplit,
    fit_quality,
    held_out_coalitions,
)
from weightedshap.games.surrogates.neural import NeuralGame, NeuralSurrogate
from weightedshap.games.surrogates.tree_surrogate import TreeSurrogate
from weightedshap.games.tree_model import PathTreeGame, try_read_trees
from weightedshap.games.user import as_model_and_table
from weightedshap.inputs import Data, Model, Table
from weightedshap.inputs.rows import Rows

# A network with a smaller share of a blend is left out, and none gets more than the largest.
SMALLEST_SHARE = 0.1
LARGEST_SHARE = 0.9
# Coalitions for each row in each of the two fits for readable trees: together these fits take 1.8
# times as long as a plain surrogate.
MASKS = 28
# Held-out masked rows by whose errors a blend is weighed: coalitions for each row, and rows in all.
VALIDATION_MASKS = 8
MAX_VALIDATION_ROWS = 10_000


def lifting_weights(d: int) -> FloatArray:
    """Return (s/d)² for s = 0, …, d: the share of the network's error added at s players."""
    return np.asarray((np.arange(d + 1) / d) ** 2)


@dataclass(frozen=True)
class AnchoredNetwork:
    """A network's game, corrected to equal f(x) when all d features are known.

    For a coalition S of s players v(S) = N(x_S) + (s/d)²·(f(x) − N(x)), where N is the network's
    game. Most of the network's error at x is already present when nearly all players are known. The
    game depends on f(x), not on x_S alone, so it is used to score rankings and never to explain.

    Parameters
    ----------
    network : the recipe of N
    """

    network: NeuralSurrogate = field(default_factory=NeuralSurrogate)

    def fit(self, model: Any, background: Data, rng: Seed = None) -> AnchoredNetworkGame:
        """Train the network, and measure the held-out error of the corrected game."""
        model, table, rng = as_model_and_table(model, background, rng)
        split = TrainTestSplit.build(model(table.data), table, self.network.held_out, rng)
        return self.fit_split(model, table, split, rng)

    def fit_split(
        self, model: Model, table: Table, split: TrainTestSplit, rng: np.random.Generator
    ) -> AnchoredNetworkGame:
        """Train the network on a given split of the rows into training and test rows."""
        network = self.network.fit_split(model, table, split, rng)
        test = held_out_coalitions(split.test, table.d, rng)
        game = AnchoredNetworkGame(model, table, network)
        values = game.lift(table.data, test, split.f)
        quality = fit_quality(values, split.f[test.row], test.coalition, split.f, table.weights)
        return replace(game, quality={**quality, "stopped": network.quality["stopped"]})

    @classmethod
    def from_state(
        cls, content: Mapping[str, Any], model: Model, background: Table
    ) -> AnchoredNetworkGame:
        """Rebuild the game from the dict that `AnchoredNetworkGame.state` returned."""
        network = NeuralSurrogate.from_state(content["network"], model, background)
        return AnchoredNetworkGame(model, background, network, dict(content["quality"]))


@dataclass(frozen=True, eq=False)
class LiftedBatch(CombinedBatch):
    """The games of n rows given by a network, corrected to equal f(x) at the full coalition.

    With s of d players known, (s/d)² of the network's error at the full coalition is added.
    """

    @cached_property
    def gap(self) -> FloatArray:
        """f(x) minus the network's value when all players are known, (n, k)."""
        return np.asarray(self.predictions - self.parts[0].endpoints()[:, 1])

    def combine(self, read: Callable[[GameBatch], FloatArray], size: IntArray) -> FloatArray:
        inner = read(self.parts[0])
        per_row = (self.n, *(1,) * (inner.ndim - 2), -1)  # (n, …, k)
        lifted = inner + lifting_weights(self.d)[size, None] * self.gap.reshape(per_row)
        # Networks have single precision, so set v([d]) to f(x) to make them equal bit for bit.
        lifted[..., size == self.d, :] = self.predictions.reshape(per_row)
        return lifted


@dataclass(frozen=True, repr=False)
class AnchoredNetworkGame(BaseGame):
    """The game of a network, corrected to equal f(x) when all players are known."""

    label = "anchored_network"

    model: Model
    background: Table
    network: NeuralGame
    # The errors of `fit_quality`, and why training stopped.
    quality: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def info(self) -> Mapping[str, Any]:
        return {**self.network.info, "game": self.label, **self.quality}

    def batch(self, rows: Rows) -> LiftedBatch:
        return LiftedBatch(self, rows, parts=(rows.bind(self.network),))

    def values_at(self, rows: Data, masked: MaskedRows) -> FloatArray:
        return self.lift(rows, masked, self.model(rows))

    def lift(self, rows: Data, masked: MaskedRows, f: FloatArray) -> FloatArray:
        """Return the corrected values (N, k) at N masked rows, given f(x) (n, k) of all n rows."""
        everything = MaskedRows(masked.row, np.ones_like(masked.coalition))
        gap = f[masked.row] - self.network.values_at(rows, everything)
        size = masked.coalition.sum(axis=1)
        lifted = lifting_weights(self.background.d)[size, None] * gap
        return np.asarray(self.network.values_at(rows, masked) + lifted)

    def state(self) -> dict[str, Any]:
        return {
            "recipe": "AnchoredNetwork",
            "network": self.network.state(),
            "quality": dict(self.quality),
        }


@dataclass(frozen=True)
class Anchored:
    """A learned game that equals f(x) when all features are known, used to score rankings.

    For a model with readable trees it is their path-dependent game with a learned correction, whose
    inputs include imputed values, ``TreeSurrogate(base="tree_path", hints=8)``. For any other model
    it is a blend of two games that both equal f(x) at [d],

        v(S) = w · [N(x_S) + (s/d)²·(f(x) − N(x))] + (1 − w) · [M(S) + h(s)·c(x_S)],

    that of a network (`AnchoredNetwork`) and that of trees c, which correct the marginal game M
    over a few fixed rows (``TreeSurrogate(base=Marginal(rows=…))``). Both learn from the same rows,
    but their errors have little in common. The share w minimises the squared error of
    w·N + (1 − w)·[M + h·c] on held-out rows with at most half of the players known: with more
    players the first bracket would gain from f(x) itself, and w would be 0.1 to 0.3 too large. The
    network's share is at most 0.9; if it is below 0.1, the network is left out.

    ``info["blend"]`` contains the shares, ``info["calls"]`` the numbers of model calls, to fit the
    game and to judge one ranking.

    Parameters
    ----------
    fits, hints : parameters of the correction of readable trees, see `TreeSurrogate`; a blend,
        which is already a mean, uses neither
    rows : number of rows of the marginal game M; 1 is the row of means (modes for categories); ten
        gave hardly less error
    masks : coalitions per row that a correction is learned from; the model is called `rows` times
        for each. Readable trees use at most 28, for each of two fits
    network : the recipe of N
    """

    fits: int = 2
    hints: int = 8
    rows: int = 1
    masks: int = 32
    network: NeuralSurrogate = field(default_factory=NeuralSurrogate)

    def fit(self, model: Any, background: Data, rng: Seed = None) -> BaseGame:
        """Fit a correction of the model's trees or, if they cannot be read, the blended game."""
        model, table, rng = as_model_and_table(model, background, rng)
        path, _ = try_read_trees(model, table)
        if path is not None:
            return self.recipe_for_trees(path).fit(model, table, rng)

        trees = TreeSurrogate(masks=self.masks)
        split = TrainTestSplit.build(model(table.data), table, trees.held_out, rng)
        network = AnchoredNetwork(self.network).fit_split(model, table, split, rng)
        base = Base.fit(Marginal(rows=self.rows), model, table, rng)
        correction = trees.fit_split(model, table, split, rng, base)
        corrected = AnchoredGame(
            model, table, base.game, base.link, correction, fading_weights(table.d)
        )

        validation = MaskedRows.draw(
            split.test, table.d, VALIDATION_MASKS, MAX_VALIDATION_ROWS, rng
        )
        calls = correction.quality["calls"]
        n_calls = calls["fit"] + 2 * len(table) + base.n_calls(validation)
        return BlendedGame.build(network, corrected, split, validation, {**calls, "fit": n_calls})

    def recipe_for_trees(self, path: PathTreeGame) -> TreeSurrogate:
        """Return the recipe that corrects `path`, the path-dependent game of the model's trees."""
        return TreeSurrogate(
            masks=min(self.masks, MASKS), base=path, fits=self.fits, hints=self.hints
        )

    @classmethod
    def from_state(cls, content: Mapping[str, Any], model: Model, background: Table) -> BlendedGame:
        """Rebuild the game from the dict that `BlendedGame.state` returned."""
        halves = tuple(game_from_state(half, model, background) for half in content["parts"])
        shares = check_array("shares", content["shares"], (len(halves),))
        if (shares < 0).any() or abs(shares.sum() - 1) > 1e-9:
            raise ValueError("`shares` of a blend are negative, or do not sum to one.")
        return BlendedGame(model, background, halves, shares, dict(content["quality"]))


def blend_weight(
    network: FloatArray, trees: FloatArray, f_x: FloatArray, scale: FloatArray
) -> float:
    """Return the share w in 0..1 with which w·network + (1 − w)·trees is closest to f(x).

    It minimises Σ (w·network + (1 − w)·trees − f(x))² over values (N, k). It is at most 0.9, and 0
    instead of a share below 0.1. Errors of each output are divided by its standard deviation
    `scale` (k,).
    """
    scale = np.where(scale > 0, scale, 1.0)
    difference = (trees - network) / scale
    error = (trees - f_x) / scale
    square = float((difference**2).sum())
    w = 0.5
    if square > 0:
        w = float(np.clip((difference * error).sum() / square, 0, LARGEST_SHARE))
    return w if w >= SMALLEST_SHARE else 0.0


@dataclass(frozen=True, eq=False)
class BlendBatch(CombinedBatch):
    """The games of n rows, each a weighted mean of other games."""

    game: BlendedGame
    cost: ClassVar[str | None] = None

    def combine(self, read: Callable[[GameBatch], FloatArray], size: IntArray) -> FloatArray:
        halves = zip(self.game.shares, self.parts, strict=True)
        return np.asarray(sum(share * read(half) for share, half in halves))


@dataclass(frozen=True, repr=False)
class BlendedGame(BaseGame):
    """The weighted mean of two games that equal f(x) when all players are known."""

    label = "anchored"

    model: Model
    background: Table
    halves: tuple[BaseGame, ...]
    shares: FloatArray  # one for each half; they sum to one
    quality: Mapping[str, Any]  # see `fit_quality`, and the errors behind the shares

    @classmethod
    def build(
        cls,
        network: AnchoredNetworkGame,
        trees: AnchoredGame,
        split: TrainTestSplit,
        validation: MaskedRows,
        calls: dict[str, int],
    ) -> Self:
        """Blend the games of a network and of trees, by their errors on held-out masked rows.

        `calls` are the numbers of model calls, for ``info["calls"]``.
        """
        table = network.background
        f = split.f
        f_x = f[validation.row]
        network_values = network.network.values_at(table.data, validation)
        tree_values = trees.values_at(table.data, validation)

        # With most players known the lifted network is near f(x) by construction, so it is weighed
        # by its error before the lift, with few players known.
        few = 2 * validation.coalition.sum(axis=1) <= table.d
        w = blend_weight(network_values[few], tree_values[few], f_x[few], f.std(axis=0))
        values = w * network.lift(table.data, validation, f) + (1 - w) * tree_values

        if w:
            text = f"{w:.0%} network, {1 - w:.0%} trees that correct the marginal game"
        else:
            text = f"no network: held-out rows give it less than {SMALLEST_SHARE:.0%}"
        quality = {
            **fit_quality(values, f_x, validation.coalition, f, table.weights),
            "blend": text,
            "network_share": w,
            "network_error": float(((network_values[few] - f_x[few]) ** 2).mean()),
            "trees_error": float(((tree_values[few] - f_x[few]) ** 2).mean()),
            "calls": calls,
        }
        if w:
            return cls(network.model, table, (network, trees), np.array([w, 1 - w]), quality)
        return cls(network.model, table, (trees,), np.array([1.0]), quality)

    @cached_property
    def info(self) -> Mapping[str, Any]:
        return {**super().info, "base": "marginal", **self.quality}

    @property
    def parts(self) -> tuple[BaseGame, ...]:
        return self.halves

    def batch(self, rows: Rows) -> BlendBatch:
        return BlendBatch(self, rows, parts=tuple(rows.bind(half) for half in self.halves))

    def state(self) -> dict[str, Any]:
        return {
            "recipe": "Anchored",
            "parts": [half.state() for half in self.halves],
            "shares": self.shares,
            "quality": dict(self.quality),
        }
