"""E[f(X) | X_S = x_S] learned by a network, as in the paper; and the better of it and of the tree
surrogate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from weightedshap._checks import (
    BoolArray,
    FloatArray,
    IntArray,
    Seed,
    check_settings,
    one_of,
    require,
    stored_array,
)
from weightedshap.games.surrogates.data import Encoding, Masked, Split, fit_quality, held_out_masks
from weightedshap.games.surrogates.network.model import Network, Single, Target
from weightedshap.games.surrogates.network.training import (
    CompiledLearner,
    Lessons,
    TorchLearner,
    Training,
    cycle,
    plateau,
)
from weightedshap.games.surrogates.tree_surrogate import LearnedTrees, TreeSurrogate
from weightedshap.games.user import FittedOnTable, Rowwise, WalkingGame, wrapped
from weightedshap.inputs import Data, Model, Table

LOSSES = ("auto", "kl", "squared")
SCHEDULES = ("cycle", "plateau")
ENGINES = ("compiled", "torch")


@dataclass(frozen=True)
class NeuralSurrogate:
    """v(S) ≈ E[f(X) | X_S = x_S], learned by a network with two hidden layers of ELU units on [x·S,
    S].

    Every pass shows each background row with fresh random coalitions, sizes uniform on 0..d. The
    loss is the Kullback–Leibler divergence for probabilities and the squared error for other
    numbers. Held-out rows tell which state is the best, when to stop, and how good the game is. One
    network has all outputs.

    A category is one input for each value; one that the background never saw is none of them. A
    missing value is an input of its own where the background has some, next to a zero, so that it
    differs from a hidden one; else it counts as the column's mean.

    `NeuralSurrogate.paper()` is the paper's recipe. The defaults differ from it where that measured
    better.

    Parameters
    ----------
    units : in each of the two hidden layers · standardise : inputs and targets in standard units
    rate, batch, epochs : of Adam; an epoch shows every row `masks` times, each time with a fresh
        coalition
    beta_2 : how much of the mean of squared gradients Adam keeps at each step; short trainings want
        less than 0.999
    max_rows : rows shown in all epochs together; large backgrounds get fewer epochs, but at least
        ten
    every : epochs between two looks at the held-out loss · patience : epochs without a lower one
        before stopping
    schedule : "cycle" raises the rate to `rate` and lowers it to nothing over all epochs; "plateau"
        starts at `rate` and halves it after `plateau` epochs without a lower held-out loss
    loss : "kl", "squared", or "auto" for "kl" where the model gives probabilities
    held_out : share of the distinct rows that are held out, at least 50 rows where there are 150
    engine : "compiled", on one core, or "torch" (extra ``neural``), on the `device` "cpu" or "cuda"
    """

    units: int = 64
    rate: float = 0.012
    beta_2: float = 0.98
    batch: int = 512
    epochs: int = 120
    max_rows: int | None = 400_000
    masks: int = 1
    every: int = 5
    schedule: str = "cycle"
    plateau: int = 5
    patience: int = 100
    standardise: bool = True
    loss: str = "auto"
    held_out: float = 0.15
    engine: str = "compiled"
    device: str = "cpu"

    def __post_init__(self) -> None:
        one_of("loss", self.loss, LOSSES)
        one_of("schedule", self.schedule, SCHEDULES)
        one_of("engine", self.engine, ENGINES)
        if self.engine == "compiled" and self.device != "cpu":
            raise ValueError(
                "The engine 'compiled' runs on the CPU only. Pass engine='torch' for"
                f" {self.device!r}."
            )
        if not 0 <= self.beta_2 < 1:
            raise ValueError(f"`beta_2` must be at least 0 and below 1; got {self.beta_2!r}.")
        check_settings(self)

    @classmethod
    def paper(cls, device: str = "cpu") -> NeuralSurrogate:
        """The paper's recipe, by torch: Adam at 1e-3, batches of 64, up to 100 epochs, inputs and
        targets as they come.

        It names no figures for when the rate is halved, and when training ends, without a lower
        held-out loss.
        """
        adam = cls(
            units=128,
            rate=1e-3,
            beta_2=0.999,
            batch=64,
            epochs=100,
            max_rows=None,
            every=1,
            standardise=False,
        )
        return replace(
            adam, schedule="plateau", plateau=5, patience=20, engine="torch", device=device
        )

    def fit(self, model: Any, background: Data, rng: Seed = None) -> FittedNeuralSurrogate:
        """Learn one network for all outputs. Ctrl-C keeps the best state so far, and
        ``info["stopped"]`` says so."""
        if self.engine == "torch":
            require("torch", "neural")
        model, table, rng = wrapped(model, background, rng)
        return self.fit_split(
            model, table, Split.of(model(table.data), table, self.held_out, rng), rng
        )

    def fit_split(
        self, model: Model, table: Table, split: Split, rng: np.random.Generator
    ) -> FittedNeuralSurrogate:
        """Learn from rows that are split already."""
        f = split.f
        inputs = Inputs.of(split, table, self.standardise)
        target = Target.of(f, self._link(model, f), self.standardise)
        lessons = Lessons(
            inputs(split.X), target(f), table.weights * len(table), inputs.owner, table.d
        )
        held = held_out_masks(split.test, table.d, rng)
        parameters, stopped = self._train(lessons, target.link, split.train, held, rng)
        network = Network(parameters, inputs.owner, target)
        game = network(lessons.Z[held.row], held.coalition)
        quality = fit_quality(game, f[held.row], held.coalition, f, table.weights)
        return FittedNeuralSurrogate(
            model, table, inputs, network, {**quality, "stopped": stopped}, self
        )

    @classmethod
    def restored(
        cls, content: Mapping[str, Any], model: Model, background: Table
    ) -> FittedNeuralSurrogate:
        """The game that `FittedNeuralSurrogate.stored` wrote. Needs no torch."""
        for what, found in _fitted_to(model, background).items():
            if content[what] != found:
                said = f"The saved game has other {what} than the given model and background"
                raise ValueError(
                    f"{said}: {content[what]} against {found}. Pass those that it was fitted to."
                )
        encoding = Encoding.restored(content["encoding"], background.names)
        inputs = Inputs(encoding, background.player_of_column, **content["inputs"])
        network = Network(content["parameters"], inputs.owner, Target(**content["target"]))
        _check_shapes(inputs, network, background, len(model.chosen))
        quality = dict(content["quality"])
        recipe = cls(**content["settings"])
        return FittedNeuralSurrogate(model, background, inputs, network, quality, recipe)

    def epochs_for(self, n_rows: int) -> int:
        """How many epochs `n_rows` rows to learn from get at most."""
        most = self.epochs if self.max_rows is None else self.max_rows // (n_rows * self.masks)
        return min(self.epochs, max(10, most))

    def _train(
        self, lessons: Lessons, link: str, rows: IntArray, held: Masked, rng: np.random.Generator
    ) -> tuple[dict[str, Single], str]:
        """The best parameters and why training stopped, by the engine and schedule of this
        recipe."""
        start = lessons.first_parameters(self.units, rng), link, self.beta_2
        learner = (
            TorchLearner(*start, self.device) if self.engine == "torch" else CompiledLearner(*start)
        )
        shown = np.repeat(rows, self.masks)
        epochs = self.epochs_for(len(rows))
        steps = epochs * int(np.ceil(len(shown) / self.batch))
        schedule = (
            partial(cycle, steps) if self.schedule == "cycle" else partial(plateau, self.plateau)
        )
        training = Training(
            lessons, learner, self.rate, schedule, self.batch, epochs, self.every, self.patience
        )
        return training.run(shown, held, rng)

    def _link(self, model: Model, f: FloatArray) -> str:
        """How the last layer becomes a prediction: the inverse of what the loss is natural for."""
        if self.loss == "squared" or (self.loss == "auto" and model.space != "probability"):
            return "identity"
        if (f < 0).any() or (f > 1).any():
            said = (
                f"The loss 'kl' is for probabilities, but predictions run from {f.min():g} to"
                f" {f.max():g}."
            )
            raise ValueError(f"{said} Pass loss='squared'.")
        return (
            "softmax" if f.shape[1] > 1 and np.allclose(f.sum(axis=1), 1, atol=1e-4) else "sigmoid"
        )


@dataclass(frozen=True)
class Inputs:
    """How rows become inputs (n, p), float32: a number is one, a category one for each value, and
    one tells holes."""

    encoding: Encoding  # how rows become columns of numbers (n, c)
    player_of_column: IntArray  # (c,)
    centre: FloatArray  # (c,) of numeric columns
    scale: FloatArray  # (c,)
    holes: tuple[int, ...]  # columns with missing values in the background

    @classmethod
    def of(cls, split: Split, table: Table, standardise: bool) -> Inputs:
        """Learn centre, scale and holes on the background."""
        absent = split.encoding.missing == split.X
        centre = np.zeros(len(absent.T))
        scale = np.ones(len(absent.T))
        for c, column in enumerate(split.X.T):
            present = column[~absent[:, c]]
            if standardise and len(present):
                centre[c] = present.mean()
                scale[c] = present.std() or 1.0
        holes = tuple(np.flatnonzero(absent.any(axis=0)).tolist())
        return cls(split.encoding, table.player_of_column, centre, scale, holes)

    @cached_property
    def owner(self) -> IntArray:
        """(p,) the player of each input."""
        return self.player_of_column[[c for c, _ in self._each(np.zeros((1, len(self.centre))))]]

    def __call__(self, rows: Data) -> Single:
        """(n, p) inputs of rows, as people have them or encoded already."""
        return np.stack([values for _, values in self._each(self.encoding(rows))], axis=1).astype(
            np.float32
        )

    def _each(self, X: FloatArray) -> Iterator[tuple[int, FloatArray]]:
        """Each input (n,) of encoded rows X (n, c), with the column it comes from."""
        for c, column in enumerate(X.T):
            absent = column == self.encoding.missing[c]
            if c in self.encoding.ranks:
                yield from (
                    (c, (column == rank).astype(np.float64))
                    for rank in range(len(self.encoding.ranks[c]))
                )
            else:
                yield c, np.where(absent, 0.0, (column - self.centre[c]) / self.scale[c])
            if c in self.holes:
                yield c, absent.astype(np.float64)


@dataclass(frozen=True)
class NetworkBlock(Rowwise):
    """The network at n rows, with what its first layer adds up at each."""

    network: Network
    terms: FloatArray  # (n, d + 1, h)

    def row_values(self, r: int, coalitions: BoolArray) -> FloatArray:
        return self.network.at_coalitions(self.terms[r], coalitions)

    def row_along(self, r: int, orders: IntArray) -> FloatArray:
        return self.network.along_orders(self.terms[r], orders)

    def alone(self) -> WalkingGame:
        return WalkingGame(self, cost="cheap")


@dataclass(frozen=True, repr=False)
class FittedNeuralSurrogate(FittedOnTable):
    """The learned network, and how well it fits."""

    inputs: Inputs
    network: Network
    # The held-out errors that `fit_quality` describes, and why training stopped.
    quality: Mapping[str, Any]
    recipe: NeuralSurrogate

    @cached_property
    def info(self) -> Mapping[str, Any]:
        weights = sum(array.size for array in self.network.parameters.values())
        return {**super().info, "game": "neural_surrogate", "weights": weights, **self.quality}

    def block(self, rows: Data) -> NetworkBlock:
        terms = self.network.terms(self.inputs(rows))
        return NetworkBlock(self.background.d, len(terms), self.network, terms)

    def masked(self, rows: Data, coalitions: BoolArray) -> FloatArray:
        """(n, k) the game of each row at its own coalition (n, d)."""
        return self.network(self.inputs(rows), coalitions)

    def stored(self) -> dict[str, Any]:
        return {
            "recipe": "NeuralSurrogate",
            "settings": asdict(self.recipe),
            **_fitted_to(self.model, self.background),
            "encoding": self.inputs.encoding.stored(),
            "inputs": {name: vars(self.inputs)[name] for name in ("centre", "scale", "holes")},
            "parameters": dict(self.network.parameters),
            "target": asdict(self.network.target),
            "quality": dict(self.quality),
        }


def _check_shapes(inputs: Inputs, network: Network, table: Table, k: int) -> None:
    """An error for a network of a file whose arrays do not fit together: compiled loops would read
    beyond them."""
    c = len(table.names)
    h = len(network.parameters["b1"])
    of = network.parameters
    shapes = {
        "W1": (len(inputs.owner) + table.d, h),
        "b1": (h,),
        "W2": (h, h),
        "b2": (h,),
        "W3": (h, k),
        "b3": (k,),
    }
    for name, shape in shapes.items():
        if stored_array(name, of[name], shape).dtype != np.float32:
            raise ValueError(f"`{name}` of the network is not in single precision.")
    for which, size in ((inputs, c), (network.target, k)):
        stored_array("centre", which.centre, (size,))
        if (stored_array("scale", which.scale, (size,)) <= 0).any():
            raise ValueError("`scale` of the network is not positive.")
    one_of("link", network.target.link, ("identity", "sigmoid", "softmax"))
    if not all(hole in range(c) for hole in inputs.holes):
        raise ValueError("`holes` of the network are in columns that are not there.")


def _fitted_to(model: Model, table: Table) -> dict[str, list[Any]]:
    """What a saved game and the model and background that it is loaded for must share."""
    players = [columns.tolist() for columns in table.players]
    return {"names": list(table.names), "players": players, "outputs": list(model.output_names)}


FittedSurrogate = LearnedTrees | FittedNeuralSurrogate


@dataclass(frozen=True)
class Auto:
    """The tree surrogate, or the network where its held-out error is lower by at least a share
    `gain`.

    Both learn from the same rows and are judged on the same coalitions of the same held-out rows.
    Contributions of the trees are exact while those of the network are sampled, so the network has
    to be clearly better. Where it needs torch and there is none, the trees are taken.
    ``info["auto"]`` says which was taken and by how much the other lost.
    """

    gain: float = 0.1
    tree: TreeSurrogate = field(default_factory=TreeSurrogate)
    network: NeuralSurrogate = field(default_factory=NeuralSurrogate)

    def fit(self, model: object, background: Data, rng: Seed = None) -> FittedSurrogate:
        """Fit both and keep one."""
        model, table, rng = wrapped(model, background, rng)
        learning = np.random.default_rng(int(rng.integers(2**63)))
        split = Split.of(model(table.data), table, self.tree.held_out, learning)
        # As it would learn by itself.
        tree = self.tree.fit_split(model, table, split, deepcopy(learning))
        if self.network.engine == "torch" and find_spec("torch") is None:
            return _with(
                tree,
                auto=(
                    'tree_surrogate; no network without torch (pip install "weightedshap[neural]")'
                ),
            )
        network = replace(self.network, held_out=self.tree.held_out).fit_split(
            model, table, split, learning
        )
        held = held_out_masks(split.test, table.d, rng)
        rows = table.take(held.row)
        f_x = split.f[held.row]
        own, other = (
            float(((game.masked(rows, held.coalition) - f_x) ** 2).mean())
            for game in (tree, network)
        )
        gain = 1 - other / own if own > 0 else 0.0
        facts = {"tree_error": own, "network_error": other}
        verdict = (
            f"the network's held-out error is {abs(gain):.1%} {'lower' if gain >= 0 else 'higher'}"
        )
        if gain >= self.gain:
            return _with(network, auto=f"neural_surrogate; {verdict}", **facts)
        return _with(
            tree, auto=f"tree_surrogate; {verdict}, and must be {self.gain:.0%} lower", **facts
        )


def _with(fitted: FittedSurrogate, **facts: object) -> FittedSurrogate:
    return replace(fitted, quality={**fitted.quality, **facts})
