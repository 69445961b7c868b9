"""The conditional expectation E[f(X) | X_S = x_S], learned by a network, as in the paper.

`NeuralSurrogate` is the recipe: it encodes the rows, trains by `network.training`, and stores a
`network.model.Network`. `Explainer.paper` explains with it, and judges correct it to equal f(x).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from weightedshap._checks import (
    BoolArray,
    FloatArray,
    IntArray,
    Seed,
    check_array,
    check_choice,
    check_settings,
    require,
)
from weightedshap.games.base import BaseGame, RowwiseBatch
from weightedshap.games.surrogates.data import (
    Encoding,
    MaskedRows,
    TrainTestSplit,
    fit_quality,
    held_out_coalitions,
)
from weightedshap.games.surrogates.network.model import Float32Array, Network, OutputScaling
from weightedshap.games.surrogates.network.training import (
    CompiledLearner,
    TorchLearner,
    Training,
    TrainingSet,
    cycle,
    plateau,
)
from weightedshap.games.user import as_model_and_table
from weightedshap.inputs import Data, Model, Table
from weightedshap.inputs.rows import Rows

LOSSES = ("auto", "kl", "squared")
SCHEDULES = ("cycle", "plateau")
ENGINES = ("compiled", "torch")


@dataclass(frozen=True)
class NeuralSurrogate:
    """v(S) ≈ E[f(X) | X_S = x_S], learned by a network with two hidden layers of ELU units.

    The inputs of the network are [x·S, S]. In every epoch each background row gets newly drawn
    coalitions, sizes uniform on 0..d. The loss is the Kullback–Leibler divergence for probabilities
    and the squared error for other numbers. Held-out rows select the best parameters, decide when
    training stops, and measure how good the game is. One network predicts all outputs.

    A column of categories is one input for each category; for a category that is not in the
    background all of them are zero. A column with missing values in the background has one more
    input, which is one for a missing value, so that it differs from a hidden one; in any other
    column a missing value is replaced by the mean.

    `NeuralSurrogate.paper()` is the paper's recipe. The defaults differ from it where measurements
    favoured another value.

    Parameters
    ----------
    units : units in each of the two hidden layers · standardise : whether inputs and targets are
        standardised
    rate, batch, epochs : parameters of Adam; an epoch uses every row `masks` times, each time with
        a newly drawn coalition
    beta_2 : decay of Adam's mean of squared gradients; short trainings need less than 0.999
    max_rows : limit of the rows in all epochs together; large backgrounds get fewer epochs, but at
        least ten
    every : epochs from one held-out loss to the next · patience : epochs without a lower one before
        training stops
    schedule : "cycle" raises the rate to `rate` and lowers it to zero over all epochs; "plateau"
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
        check_choice("loss", self.loss, LOSSES)
        check_choice("schedule", self.schedule, SCHEDULES)
        check_choice("engine", self.engine, ENGINES)
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
        """Return the paper's recipe: Adam at 1e-3, batches of 64, up to 100 epochs, with torch.

        Inputs and targets are not standardised. The paper does not say after how many epochs
        without a lower held-out loss the rate is halved, and training ends: here 5 and 20.
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

    def fit(self, model: Any, background: Data, rng: Seed = None) -> NeuralGame:
        """Train one network for all outputs.

        Ctrl-C stops training and keeps the best parameters so far; ``info["stopped"]`` says so.
        """
        if self.engine == "torch":
            require("torch", "neural")
        model, table, rng = as_model_and_table(model, background, rng)
        split = TrainTestSplit.build(model(table.data), table, self.held_out, rng)
        return self.fit_split(model, table, split, rng)

    def fit_split(
        self, model: Model, table: Table, split: TrainTestSplit, rng: np.random.Generator
    ) -> NeuralGame:
        """Train on a given split of the rows into training and test rows."""
        f = split.f
        inputs = InputEncoding.fit(split, table, self.standardise)
        scaling = OutputScaling.fit(f, self._link(model, f), self.standardise)
        training_set = TrainingSet(
            inputs(split.X), scaling(f), table.weights * len(table), inputs.player_of_input, table.d
        )
        test = held_out_coalitions(split.test, table.d, rng)
        parameters, stopped = self._train(training_set, scaling.link, split.train, test, rng)

        network = Network(parameters, inputs.player_of_input, scaling)
        values = network(training_set.Z[test.row], test.coalition)
        quality = fit_quality(values, f[test.row], test.coalition, f, table.weights)
        return NeuralGame(model, table, inputs, network, {**quality, "stopped": stopped}, self)

    @classmethod
    def from_state(cls, content: Mapping[str, Any], model: Model, background: Table) -> NeuralGame:
        """Rebuild the game from the dict that `NeuralGame.state` returned; torch is not needed."""
        for what, expected in _identity(model, background).items():
            if content[what] != expected:
                raise ValueError(
                    f"The saved game has other {what} than the given model and background:"
                    f" {content[what]} against {expected}. Pass those that it was fitted to."
                )
        encoding = Encoding.from_state(content["encoding"], background.names)
        inputs = InputEncoding(encoding, background.player_of_column, **content["inputs"])
        scaling = OutputScaling(**content["target"])
        network = Network(content["parameters"], inputs.player_of_input, scaling)
        _check_shapes(inputs, network, background, len(model.output_positions))
        quality = dict(content["quality"])
        recipe = cls(**content["settings"])
        return NeuralGame(model, background, inputs, network, quality, recipe)

    def n_epochs(self, n_rows: int) -> int:
        """Return the maximum number of epochs for a training set of `n_rows` rows."""
        most = self.epochs if self.max_rows is None else self.max_rows // (n_rows * self.masks)
        return min(self.epochs, max(10, most))

    def _train(
        self,
        training_set: TrainingSet,
        link: str,
        rows: IntArray,
        test: MaskedRows,
        rng: np.random.Generator,
    ) -> tuple[dict[str, Float32Array], str]:
        """Train a network on `rows`; return its best parameters, and why training stopped."""
        start = training_set.first_parameters(self.units, rng)
        if self.engine == "torch":
            learner: Any = TorchLearner(start, link, self.beta_2, self.device)
        else:
            learner = CompiledLearner(start, link, self.beta_2)

        rows_per_epoch = np.repeat(rows, self.masks)
        epochs = self.n_epochs(len(rows))
        if self.schedule == "cycle":
            steps = epochs * int(np.ceil(len(rows_per_epoch) / self.batch))
            schedule: Any = partial(cycle, steps)
        else:
            schedule = partial(plateau, self.plateau)
        training = Training(
            training_set,
            learner,
            self.rate,
            schedule,
            self.batch,
            epochs,
            self.every,
            self.patience,
        )
        return training.run(rows_per_epoch, test, rng)

    def _link(self, model: Model, f: FloatArray) -> str:
        """Return the link from raw outputs to predictions ("identity", …) that the loss implies.

        The loss "kl" needs predictions f (n, k) that are probabilities; others raise an error.
        """
        if self.loss == "squared" or (self.loss == "auto" and model.space != "probability"):
            return "identity"
        if (f < 0).any() or (f > 1).any():
            raise ValueError(
                f"The loss 'kl' is for probabilities, but predictions run from {f.min():g} to"
                f" {f.max():g}. Pass loss='squared'."
            )
        adds_up_to_one = f.shape[1] > 1 and np.allclose(f.sum(axis=1), 1, atol=1e-4)
        return "softmax" if adds_up_to_one else "sigmoid"


@dataclass(frozen=True)
class InputEncoding:
    """A map from rows to the inputs (n, p) of a network, in float32.

    A column of numbers is one input, a column of categories one for each category; one more input
    marks missing values.
    """

    encoding: Encoding  # from rows to columns of numbers (n, c)
    player_of_column: IntArray  # (c,)
    centre: FloatArray  # (c,) of numeric columns
    scale: FloatArray  # (c,)
    holes: tuple[int, ...]  # columns with missing values in the background

    @classmethod
    def fit(cls, split: TrainTestSplit, table: Table, standardise: bool) -> InputEncoding:
        """Compute centre and scale of the columns, and find those with missing values."""
        is_missing = split.encoding.missing == split.X
        n_columns = split.X.shape[1]
        centre = np.zeros(n_columns)
        scale = np.ones(n_columns)
        for c, column in enumerate(split.X.T):
            present = column[~is_missing[:, c]]
            if standardise and len(present):
                centre[c] = present.mean()
                scale[c] = present.std() or 1.0
        holes = tuple(np.flatnonzero(is_missing.any(axis=0)).tolist())
        return cls(split.encoding, table.player_of_column, centre, scale, holes)

    @cached_property
    def player_of_input(self) -> IntArray:
        """The player that each input of the network belongs to, (p,) for p inputs."""
        columns = [c for c, _ in self._inputs(np.zeros((1, len(self.centre))))]
        return self.player_of_column[columns]

    def __call__(self, rows: Data) -> Float32Array:
        """Return the network inputs (n, p) for rows, in the user's container or already encoded."""
        inputs = [values for _, values in self._inputs(self.encoding(rows))]
        return np.stack(inputs, axis=1).astype(np.float32)

    def _inputs(self, X: FloatArray) -> Iterator[tuple[int, FloatArray]]:
        """Yield each network input as (column, values (n,)), for encoded rows X (n, c)."""
        for c, column in enumerate(X.T):
            is_missing = column == self.encoding.missing[c]
            if c in self.encoding.ranks:
                for rank in range(len(self.encoding.ranks[c])):
                    yield c, (column == rank).astype(np.float64)
            else:
                yield c, np.where(is_missing, 0.0, (column - self.centre[c]) / self.scale[c])
            if c in self.holes:
                yield c, is_missing.astype(np.float64)


@dataclass(frozen=True, repr=False)
class NeuralGame(BaseGame):
    """The game whose values v(S) are the outputs of a trained network."""

    label = "neural_surrogate"

    model: Model
    background: Table
    inputs: InputEncoding
    network: Network
    # The errors of `fit_quality`, and why training stopped.
    quality: Mapping[str, Any]
    recipe: NeuralSurrogate

    @cached_property
    def info(self) -> Mapping[str, Any]:
        weights = sum(array.size for array in self.network.parameters.values())
        return {**super().info, "weights": weights, **self.quality}

    def batch(self, rows: Rows) -> NetworkBatch:
        return NetworkBatch(self, rows, self.network.terms(self.inputs(rows.data)))

    def values_at(self, rows: Data, masked: MaskedRows) -> FloatArray:
        return self.network(self.inputs(rows)[masked.row], masked.coalition)

    def state(self) -> dict[str, Any]:
        return {
            "recipe": "NeuralSurrogate",
            "settings": asdict(self.recipe),
            **_identity(self.model, self.background),
            "encoding": self.inputs.encoding.state(),
            "inputs": {name: vars(self.inputs)[name] for name in ("centre", "scale", "holes")},
            "parameters": dict(self.network.parameters),
            "target": asdict(self.network.scaling),
            "quality": dict(self.quality),
        }


@dataclass(frozen=True, eq=False)
class NetworkBatch(RowwiseBatch):
    """The games of n rows given by a network, with the terms of its first layer for each row."""

    walks: ClassVar[bool] = True
    cost: ClassVar[str | None] = "cheap"

    game: NeuralGame
    terms: FloatArray  # (n, d + 1, h)

    def row_values(self, r: int, coalitions: BoolArray) -> FloatArray:
        return self.game.network.at_coalitions(self.terms[r], coalitions)

    def row_along(self, r: int, orders: IntArray) -> FloatArray:
        return self.game.network.along_orders(self.terms[r], orders)


def _check_shapes(inputs: InputEncoding, network: Network, table: Table, k: int) -> None:
    """Raise an error if the arrays of a saved network do not fit together.

    Compiled loops would read beyond the end of such arrays.
    """
    c = len(table.names)
    parameters = network.parameters
    h = len(parameters["b1"])
    shapes = {
        "W1": (len(inputs.player_of_input) + table.d, h),
        "b1": (h,),
        "W2": (h, h),
        "b2": (h,),
        "W3": (h, k),
        "b3": (k,),
    }
    for name, shape in shapes.items():
        if check_array(name, parameters[name], shape).dtype != np.float32:
            raise ValueError(f"`{name}` of the network is not in single precision.")
    for scaling, size in ((inputs, c), (network.scaling, k)):
        check_array("centre", scaling.centre, (size,))
        if (check_array("scale", scaling.scale, (size,)) <= 0).any():
            raise ValueError("`scale` of the network is not positive.")
    check_choice("link", network.scaling.link, ("identity", "sigmoid", "softmax"))
    if not all(hole in range(c) for hole in inputs.holes):
        raise ValueError("`holes` of the network are in columns that are not there.")


def _identity(model: Model, table: Table) -> dict[str, list[Any]]:
    """Return columns, players and outputs; a saved game is loaded only if they are the same."""
    players = [columns.tolist() for columns in table.players]
    return {"names": list(table.names), "players": players, "outputs": list(model.output_names)}
