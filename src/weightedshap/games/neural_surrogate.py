"""E[f(X) | X_S = x_S] learned by a network on rows with hidden features: the paper's own surrogate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from weightedshap.checks import BoolArray, FloatArray, IntArray, one_of, positive_integer, require
from weightedshap.games.surrogate import Encoding, fit_quality, refuse_other_outputs, split_rows
from weightedshap.games.wrappers import FittedOnTable, Rowwise, WalkingGame, wrapped
from weightedshap.inputs import Data, Model, Table
from weightedshap.network.learning import LEARNERS, RATES
from weightedshap.network.network import Network, NetworkRow, Single
from weightedshap.network.training import Lessons, Training, held_out_masks

LOSSES = ("auto", "kl", "squared")


@dataclass(frozen=True)
class NeuralSurrogate:
    """v(S) ≈ E[f(X) | X_S = x_S], learned by a network with two hidden layers of ELU units on [x·S, S].

    Every pass shows each background row with fresh random coalitions of known players, sizes uniform on
    0..d. The loss is the Kullback–Leibler divergence for probabilities and the squared error for other
    numbers. Rows that the network does not learn from tell which state is the best, when to stop, and how
    good the game is. One network has all outputs.

    A category is one input for each value (a network has no use for ranks); one that the background never saw is
    known to be none of them. A missing value is an input
    of its own where the background has some, next to a number of zero, so that it differs from a hidden
    one; in a column where the background has none it counts as the column's mean.

    `NeuralSurrogate.paper()` is the paper's recipe. The defaults differ from it where that measured
    better: fewer units, larger batches, a rate that rises and falls once, a shorter memory of squared gradients,
    standard units, compiled loops.

    Parameters
    ----------
    units : in each of the two hidden layers
    rate, batch, epochs : of Adam; an epoch shows every row `masks` times
    beta_2 : how much of the mean of squared gradients Adam keeps at each step; short trainings want less than 0.999
    max_rows : rows shown in all epochs together; large backgrounds get fewer epochs, but at least ten
    masks : fresh coalitions for each row and epoch
    every : epochs between two looks at the held-out loss
    schedule : "cycle" raises the rate to `rate` and lowers it to nothing over all epochs; "plateau" starts
        at `rate` and halves it after `plateau` epochs without a lower held-out loss
    patience : epochs without a lower held-out loss before stopping
    standardise : inputs and targets in standard units
    loss : "kl", "squared", or "auto" for "kl" where the model gives probabilities
    held_out : share of the distinct rows that are held out, at least 50 rows where there are 150
    engine : "compiled" trains by matrix products and compiled loops on one core; "torch" (extra ``neural``) does
        the same by torch, which is slower on small networks but runs on any device
    device : where torch trains, as "cpu" or "cuda"
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
        one_of("schedule", self.schedule, RATES)
        one_of("engine", self.engine, LEARNERS)
        if self.engine != "torch" and self.device != "cpu":
            raise ValueError(
                f"The engine {self.engine!r} runs on the CPU only. Pass engine='torch' for {self.device!r}."
            )
        if not 0 <= self.beta_2 < 1:
            raise ValueError(f"`beta_2` must be at least 0 and below 1; got {self.beta_2!r}.")
        for name in ("units", "batch", "epochs", "masks", "every", "plateau", "patience"):
            positive_integer(name, getattr(self, name))

    @classmethod
    def paper(cls, device: str = "cpu") -> NeuralSurrogate:
        """The paper's recipe, by torch: Adam at 1e-3, batches of 64, up to 100 epochs, one mask per row and epoch.

        The rate is halved when the held-out loss stops falling, and training ends when it has not fallen
        for 20 epochs (the paper names no figures for these two). Inputs and targets are taken as they come.
        """
        return cls(
            units=128,
            rate=1e-3,
            beta_2=0.999,
            batch=64,
            epochs=100,
            max_rows=None,
            masks=1,
            every=1,
            schedule="plateau",
            plateau=5,
            patience=20,
            standardise=False,
            engine="torch",
            device=device,
        )

    def fit(self, model: Any, background: Data, rng: np.random.Generator | int | None = None) -> FittedNeuralSurrogate:
        """Learn one network for all outputs.

        Ctrl-C ends training: the best state so far is kept, and ``info["stopped"]`` says so.
        """
        if self.engine == "torch":
            require("torch", "neural")
        model, table, rng = wrapped(model, background, rng)
        f = model(table.data)  # (n, k)
        encoding = Encoding.of(table, f)
        X = encoding(table.data)
        train, test = split_rows(X, self.held_out, rng)
        inputs = Inputs.of(encoding, X, table, self.standardise)
        target = Target.of(f, self._link(model, f), self.standardise)
        lessons = Lessons(inputs(X), target(f), table.weights * len(table), inputs.owner, table.d)
        held = held_out_masks(test, table.d, rng)
        parameters, stopped = Training(self, lessons, target.link).run(train, held, rng)
        network = Network(parameters, inputs.owner, target.link, target.centre, target.scale)
        quality = fit_quality(
            network(lessons.Z[held.row], held.coalition), f[held.row], held.coalition, f, table.weights
        )
        return FittedNeuralSurrogate(model, table, encoding, inputs, network, {**quality, "stopped": stopped}, self)

    @classmethod
    def restored(cls, content: Mapping[str, Any], model: Model, background: Table) -> FittedNeuralSurrogate:
        """The game that `FittedNeuralSurrogate.stored` wrote. Needs no torch."""
        refuse_other_outputs(len(content["centre"]), model)
        encoding = Encoding.restored(content["encoding"], background.names)
        inputs = Inputs.made(encoding, background, **content["inputs"])
        network = Network(content["parameters"], inputs.owner, content["link"], content["centre"], content["scale"])
        recipe = cls(**content["settings"])
        return FittedNeuralSurrogate(model, background, encoding, inputs, network, content["quality"], recipe)

    def epochs_for(self, n_rows: int) -> int:
        """How many epochs `n_rows` rows to learn from get at most."""
        if self.max_rows is None:
            return self.epochs
        return max(min(self.epochs, 10), min(self.epochs, self.max_rows // (n_rows * self.masks)))

    def _link(self, model: Model, f: FloatArray) -> str:
        """How the last layer becomes a prediction: the inverse of what the loss is natural for."""
        if self.loss == "squared" or (self.loss == "auto" and model.space != "probability"):
            return "identity"
        if (f < 0).any() or (f > 1).any():
            raise ValueError(
                f"The loss 'kl' is for probabilities, but predictions run from {f.min():g} to {f.max():g}. "
                "Pass loss='squared'."
            )
        return "softmax" if f.shape[1] > 1 and np.allclose(f.sum(axis=1), 1, atol=1e-4) else "sigmoid"


@dataclass(frozen=True)
class Inputs:
    """How encoded columns (n, c) become the network's inputs (n, p), float32.

    Attributes
    ----------
    centre, scale : (c,) of numeric columns
    missing : (c,) the number that stands for a missing value
    holes : columns with missing values in the background, which get an indicator
    levels : column → number of categories, for columns that become one input for each
    owner : (p,) the player of each input
    """

    centre: FloatArray
    scale: FloatArray
    missing: FloatArray
    holes: tuple[int, ...]
    levels: Mapping[int, int]
    owner: IntArray

    @classmethod
    def of(cls, encoding: Encoding, X: FloatArray, table: Table, standardise: bool) -> Inputs:
        """Learn centre and scale on the background."""
        absent = encoding.missing == X
        values = np.where(absent, np.nan, X)
        n_columns = X.shape[1]
        centre, scale = np.zeros(n_columns), np.ones(n_columns)
        for c in range(n_columns):
            present = values[~absent[:, c], c]
            if len(present):
                centre[c], scale[c] = present.mean(), present.std() or 1.0
        if not standardise:
            centre[:], scale[:] = 0.0, 1.0
        holes = tuple(int(c) for c in np.flatnonzero(absent.any(axis=0)))
        return cls.made(encoding, table, centre, scale, holes)

    @classmethod
    def made(
        cls, encoding: Encoding, table: Table, centre: FloatArray, scale: FloatArray, holes: tuple[int, ...]
    ) -> Inputs:
        """With levels and owners found out."""
        levels = {c: len(ranks) for c, ranks in encoding.ranks.items()}
        partial = cls(centre, scale, encoding.missing, holes, levels, np.empty(0, dtype=np.intp))
        columns = [c for c, _ in partial._parts(np.zeros((1, len(centre))))]
        return replace(partial, owner=table.player_of_column[columns])

    def __call__(self, X: FloatArray) -> Single:
        """(n, p) inputs."""
        return np.stack([part for _, part in self._parts(X)], axis=1).astype(np.float32)

    def _parts(self, X: FloatArray) -> Iterator[tuple[int, FloatArray]]:
        """Each input with the column it comes from."""
        for c in range(X.shape[1]):
            absent = X[:, c] == self.missing[c]
            if c in self.levels:
                yield from ((c, (X[:, c] == level).astype(np.float64)) for level in range(self.levels[c]))
            else:
                yield c, np.where(absent, 0.0, (X[:, c] - self.centre[c]) / self.scale[c])
            if c in self.holes:
                yield c, absent.astype(np.float64)


@dataclass(frozen=True)
class Target:
    """What the network is to give: f in standard units, or probabilities."""

    link: str
    centre: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, f: FloatArray, link: str, standardise: bool) -> Target:
        """Learn centre and scale on the background."""
        if link != "identity" or not standardise:
            return cls(link, np.zeros(f.shape[1]), np.ones(f.shape[1]))
        spread = f.std(axis=0)
        return cls(link, f.mean(axis=0), np.where(spread > 0, spread, 1.0))

    def __call__(self, f: FloatArray) -> Single:
        return ((f - self.centre) / self.scale).astype(np.float32)


@dataclass(frozen=True)
class NetworkBlock(Rowwise):
    """The network at several rows."""

    rows: tuple[NetworkRow, ...]

    @property
    def d(self) -> int:
        return self.rows[0].d

    @property
    def n(self) -> int:
        return len(self.rows)

    def row_values(self, r: int, coalitions: BoolArray) -> FloatArray:
        return self.rows[r].values(coalitions)

    def row_along(self, r: int, orders: IntArray) -> FloatArray:
        return self.rows[r].along(orders)

    def alone(self) -> WalkingGame:
        return WalkingGame(self, cost="cheap")


@dataclass(frozen=True)
class FittedNeuralSurrogate(FittedOnTable):
    """The learned network, and how well it fits.

    Attributes
    ----------
    network : its weights as plain arrays
    encoding, inputs : how rows become numbers, and numbers inputs
    quality : the held-out errors that `fit_quality` describes, and why training stopped
    recipe : how it was trained
    """

    encoding: Encoding = field(repr=False)
    inputs: Inputs = field(repr=False)
    network: Network = field(repr=False)
    quality: Mapping[str, Any] = field(default_factory=dict)
    recipe: NeuralSurrogate = field(default_factory=NeuralSurrogate)

    @property
    def info(self) -> Mapping[str, Any]:
        """What was learned and how well, on held-out rows."""
        return {
            "game": "neural_surrogate",
            "space": self.space,
            "background_rows": len(self.background),
            "weights": sum(array.size for array in self.network.parameters.values()),
            **self.quality,
        }

    def block(self, rows: Data) -> NetworkBlock:
        """The games of aligned rows."""
        return NetworkBlock(tuple(map(self.network.at, self.inputs(self.encoding(rows)))))

    def masked(self, rows: Data, coalitions: BoolArray) -> FloatArray:
        """(n, k) the game of each row at its own coalition (n, d)."""
        return self.network(self.inputs(self.encoding(rows)), coalitions)

    def stored(self) -> dict[str, Any]:
        """The weights of the network, and what stands around them."""
        inputs = {name: getattr(self.inputs, name) for name in ("centre", "scale", "holes")}
        return {
            "recipe": "NeuralSurrogate",
            "settings": asdict(self.recipe),
            "encoding": self.encoding.stored(),
            "inputs": inputs,
            "parameters": dict(self.network.parameters),
            "link": self.network.link,
            "centre": self.network.centre,
            "scale": self.network.scale,
            "quality": dict(self.quality),
        }
