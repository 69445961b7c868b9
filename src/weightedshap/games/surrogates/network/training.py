"""Train the network: a loop over epochs, with Adam in compiled loops or in torch.

`Training` is the loop, `CompiledLearner` or `TorchLearner` performs its steps, and the learning
rate follows the schedule `cycle` or `plateau`. `NeuralSurrogate` runs it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any, NamedTuple

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap._lazy import LazyModule, special
from weightedshap.coalitions import random_coalitions, slices_of
from weightedshap.games.surrogates.network.model import Float32Array, kernels, masked_inputs
from weightedshap.parallel import limit_blas_threads

torch = LazyModule("torch")
Masked = tuple[IntArray, BoolArray]  # rows (N,), each with its own coalition (N, d)

BETA_1 = 0.9
# The value that the authors of Adam recommend.
EPSILON = 1e-8
# Held-out masked rows that compare epochs, in the time of eight batches; the final network is
# measured on all of them.
EXAM = 4096
# Coalitions drawn at once: every call of `random_coalitions` starts by shuffling orders.
COALITION_BYTES = 2**24


class MiniBatch(NamedTuple):
    """A mini-batch of m rows: masked inputs, targets, and weights that add up to one."""

    inputs: Float32Array  # (m, p + d)
    target: Float32Array  # (m, k)
    weights: Float32Array  # (m,)


@dataclass(frozen=True)
class TrainingSet:
    """The inputs, targets and weights of all rows, both for training and for validation."""

    Z: Float32Array  # (n, p) inputs
    target: Float32Array  # (n, k)
    weights: FloatArray  # (n,)
    player_of_input: IntArray  # (p,)
    d: int  # number of players

    def mini_batch(self, rows: IntArray, coalitions: BoolArray) -> MiniBatch:
        """Build the mini-batch of rows (m,), each with its own coalition (m, d)."""
        weights = self.weights[rows].astype(np.float32)
        inputs = masked_inputs(self.Z[rows], coalitions, self.player_of_input)
        # All weights may be zero, so keep their sum above 0.
        return MiniBatch(inputs, self.target[rows], weights / max(float(weights.sum()), 1e-30))

    def first_parameters(self, units: int, rng: np.random.Generator) -> dict[str, Float32Array]:
        """Draw initial weights and biases, uniform within ±1/√(inputs of the layer), like torch."""
        widths = len(self.player_of_input) + self.d, units, units, self.target.shape[1]
        parameters = {}
        for layer, (inputs, outputs) in enumerate(pairwise(widths), start=1):
            for name, shape in (("W", (inputs, outputs)), ("b", (outputs,))):
                drawn = rng.uniform(-1, 1, size=shape) / np.sqrt(inputs)
                parameters[f"{name}{layer}"] = drawn.astype(np.float32)
        return parameters


class CompiledLearner:
    """The optimiser Adam for a network's parameters, in compiled loops on one core.

    The parameters are views of one vector. The loss is the weighted mean of squared errors
    ("identity") or of cross entropies ("sigmoid", "softmax"), which differ from the
    Kullback–Leibler divergence by a constant.
    """

    def __init__(self, parameters: Mapping[str, Float32Array], link: str, beta_2: float) -> None:
        self.link, self.beta_2, self.steps = link, beta_2, 0
        self.flat = np.concatenate([array.reshape(-1) for array in parameters.values()])
        self.gradient, self.mean, self.square = np.zeros((3, len(self.flat)), np.float32)
        ends = np.cumsum([array.size for array in parameters.values()])[:-1]
        self.parameters, self.gradients = (
            {
                name: piece.reshape(parameters[name].shape)
                for name, piece in zip(parameters, np.split(flat, ends))
            }
            for flat in (self.flat, self.gradient)
        )

    def step(self, batch: MiniBatch, rate: float) -> None:
        """Take one step of Adam on a mini-batch, with learning rate `rate`."""
        self.steps += 1
        self._differentiate(batch)
        # They correct the running means, which start at zero.
        weights = 1 - BETA_1**self.steps, 1 - self.beta_2**self.steps
        kernels.adam(
            self.flat,
            self.gradient,
            self.mean,
            self.square,
            rate,
            BETA_1,
            self.beta_2,
            EPSILON,
            *weights,
        )

    def loss(self, batch: MiniBatch) -> float:
        """Return the loss of a mini-batch."""
        raw = self._forward(batch.inputs)[-1].astype(np.float64)
        target = batch.target
        if self.link == "identity":
            each = ((raw - target) ** 2).mean(axis=1)
        elif self.link == "sigmoid":
            each = (np.logaddexp(0, raw) - target * raw).mean(axis=1)
        else:
            each = -(target * special.log_softmax(raw, axis=1)).sum(axis=1)
        return float(each @ batch.weights)

    def arrays(self) -> dict[str, Float32Array]:
        """Return copies of the parameters."""
        return {name: array.copy() for name, array in self.parameters.items()}

    def _forward(self, inputs: Float32Array) -> tuple[Float32Array, Float32Array, Float32Array]:
        """Return the outputs of both hidden layers, and the raw outputs of the last layer."""
        p = self.parameters
        first: Float32Array = np.matmul(inputs, p["W1"])
        kernels.elu(first, p["b1"], np.float32(0))
        second: Float32Array = np.matmul(first, p["W2"])
        kernels.elu(second, p["b2"], np.float32(0))
        return first, second, np.asarray(second @ p["W3"] + p["b3"], dtype=np.float32)

    def _differentiate(self, batch: MiniBatch) -> None:
        """Compute the gradients of the loss by backpropagation, and store them in `self.gradients`.

        The derivative of a unit is ELU' = 1 + min(ELU, 0).
        """
        p = self.parameters
        g = self.gradients
        first, second, raw = self._forward(batch.inputs)
        last = self._slope(raw, batch)
        into_second, into_first = np.empty((2, *second.shape), np.float32)
        kernels.through_last(last, p["W3"], into_second)
        kernels.through_elu(into_second, second, g["b2"])
        np.matmul(into_second, p["W2"].T, out=into_first)
        kernels.through_elu(into_first, first, g["b1"])
        np.sum(last, axis=0, out=g["b3"])
        np.matmul(second.T, last, out=g["W3"])
        np.matmul(first.T, into_second, out=g["W2"])
        np.matmul(batch.inputs.T, into_first, out=g["W1"])

    def _slope(self, raw: Float32Array, batch: MiniBatch) -> Float32Array:
        """Return the derivative (m, k) of the loss with respect to the network's raw outputs."""
        if self.link == "identity":
            slope = (raw - batch.target) * (2 / raw.shape[1])
        elif self.link == "sigmoid":
            slope = (special.expit(raw) - batch.target) / raw.shape[1]
        else:
            slope = special.softmax(raw, axis=1) - batch.target
        return np.asarray(slope * batch.weights[:, None], dtype=np.float32)


class TorchLearner:
    """The optimiser Adam for a network's parameters, in torch on any device."""

    def __init__(
        self, parameters: Mapping[str, Float32Array], link: str, beta_2: float, device: str
    ) -> None:
        self.link, self.device = link, device
        self.parameters = {
            name: torch.tensor(p, device=device, requires_grad=True)
            for name, p in parameters.items()
        }
        tensors = list(self.parameters.values())
        self.optimiser = torch.optim.Adam(
            tensors, lr=1.0, betas=(BETA_1, beta_2), eps=EPSILON, fused=True
        )

    def step(self, batch: MiniBatch, rate: float) -> None:
        """Take one step of Adam on a mini-batch, with learning rate `rate`."""
        self.optimiser.param_groups[0]["lr"] = rate
        self.optimiser.zero_grad()
        self._loss(batch).backward()
        self.optimiser.step()

    def loss(self, batch: MiniBatch) -> float:
        """Return the loss of a mini-batch."""
        with torch.no_grad():
            return float(self._loss(batch))

    def arrays(self) -> dict[str, Float32Array]:
        """Return copies of the parameters."""
        return {
            name: tensor.detach().cpu().numpy().copy() for name, tensor in self.parameters.items()
        }

    def _loss(self, batch: MiniBatch) -> Any:
        """Return the loss of a mini-batch as a torch tensor."""
        units, target, weights = (torch.tensor(array, device=self.device) for array in batch)
        p = self.parameters
        for layer in ("1", "2"):
            units = torch.nn.functional.elu_(torch.addmm(p["b" + layer], units, p["W" + layer]))
        raw = torch.addmm(p["b3"], units, p["W3"])
        if self.link == "identity":
            each = ((raw - target) ** 2).mean(dim=1)
        elif self.link == "sigmoid":
            each = torch.nn.functional.binary_cross_entropy_with_logits(
                raw, target, reduction="none"
            ).mean(dim=1)
        else:
            each = -(target * torch.nn.functional.log_softmax(raw, dim=1)).sum(dim=1)
        return each @ weights


Schedule = Callable[[int, Sequence[float]], float]
"""The signature of a schedule: (step number, held-out losses so far) → factor of the rate."""


def cycle(steps: int, step: int, losses: Sequence[float]) -> float:
    """Return the factor of the learning rate at one step of a one-cycle schedule.

    It rises from 1/25 to 1 in the first 30 % of the steps and then falls to 0, along cosines. The
    losses are not used.
    """
    share = step / steps
    if share < 0.3:
        return float(0.04 + 0.96 * (0.5 * (1 - np.cos(np.pi * (share / 0.3)))))
    return float(0.5 * (1 + np.cos(np.pi * ((share - 0.3) / 0.7))))


def plateau(patience: int, step: int, losses: Sequence[float]) -> float:
    """Return a factor of the learning rate that halves when the held-out loss stops falling.

    That is when more than `patience` losses in a row are not below 1 − 1e-4 times the best.
    """
    best = np.inf
    waited = 0
    share = 1.0
    for loss in losses:
        best, waited = (loss, 0) if loss < best * (1 - 1e-4) else (best, waited + 1)
        if waited > patience:
            share = share / 2
            waited = 0
    return share


@dataclass(frozen=True)
class Training:
    """One training run of a network: its data, learner, learning rate and stopping rule.

    All random numbers come from one numpy generator, none from torch.
    """

    training_set: TrainingSet
    learner: CompiledLearner | TorchLearner
    rate: float
    schedule: Schedule
    batch: int
    epochs: int
    every: int
    patience: int

    def run(
        self, rows: IntArray, test: Masked, rng: np.random.Generator
    ) -> tuple[dict[str, Float32Array], str]:
        """Train; return the parameters with the lowest loss on `test`, and why training stopped.

        Each epoch trains on all of `rows`.
        """
        lowest = np.inf
        best = 0
        parameters = None
        try:
            with limit_blas_threads():
                for epoch, loss in self._losses(rows, test, rng):
                    if loss < lowest:
                        lowest = loss
                        best = epoch
                        parameters = self.learner.arrays()
                    elif epoch - best >= self.patience:
                        stopped = (
                            f"the held-out loss did not fall for {self.patience} epochs after epoch"
                            f" {best}"
                        )
                        break
                else:
                    stopped = f"all {self.epochs} epochs done; the best was epoch {best}"
        except KeyboardInterrupt:
            stopped = f"interrupted; the best state so far was kept, that of epoch {best}"
        if parameters is None:
            raise KeyboardInterrupt(
                "interrupted before the first epoch was over: there is nothing to keep"
            )
        return parameters, stopped

    def _losses(
        self, rows: IntArray, test: Masked, rng: np.random.Generator
    ) -> Iterator[tuple[int, float]]:
        """Train epoch by epoch; yield the epoch and the held-out loss whenever it is computed."""
        thin = max(1, len(test[0]) // EXAM)
        exam = self.training_set.mini_batch(test[0][::thin], test[1][::thin])
        losses: list[float] = []
        step = count()
        for epoch, coalitions in enumerate(self._coalitions(len(rows), rng), start=1):
            order = rng.permutation(rows)
            for cut in slices_of(len(rows), self.batch):
                rate = self.rate * self.schedule(next(step), losses)
                self.learner.step(self.training_set.mini_batch(order[cut], coalitions[cut]), rate)
            if epoch % self.every and epoch < self.epochs:
                continue
            losses.append(loss := self.learner.loss(exam))
            if not np.isfinite(loss):
                raise ValueError(
                    f"The network's held-out loss is {loss} after epoch {epoch}: training diverged."
                    f" Lower `rate` (now {self.rate:g}), or pass standardise=True if inputs or"
                    " predictions are large."
                )
            yield epoch, loss

    def _coalitions(self, n: int, rng: np.random.Generator) -> Iterator[BoolArray]:
        """Yield new random coalitions (n, d) for each epoch.

        They are drawn for several epochs at once, which is faster.
        """
        left = self.epochs
        d = self.training_set.d
        while left:
            ahead = max(1, min(left, COALITION_BYTES // (n * d)))
            left -= ahead
            yield from random_coalitions(ahead * n, d, rng).reshape(ahead, n, d)
