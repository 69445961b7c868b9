"""How the network learns: one loop over epochs, steps by compiled loops or by torch, two schedules
of the rate."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any, NamedTuple

import numpy as np

from weightedshap._checks import BoolArray, FloatArray, IntArray
from weightedshap._lazy import Lazily, special
from weightedshap.coalitions import batches, random_coalitions
from weightedshap.games.surrogates.network.model import Single, kernels, masked_inputs
from weightedshap.parallel import one_blas_thread

torch = Lazily("torch")
Masked = tuple[IntArray, BoolArray]  # rows (N,), each with its own coalition (N, d)

BETA_1 = 0.9
EPSILON = 1e-8  # Adam's, as its authors advise
# Held-out masked rows that tell epochs apart, at the price of eight batches; all of them judge the
# result
EXAM = 4096
# Coalitions drawn at once: every call of `random_coalitions` starts by shuffling orders.
COALITION_BYTES = 2**24


class Batch(NamedTuple):
    """[x·S, S] (m, p + d), targets (m, k), and weights (m,) that add up to one."""

    inputs: Single
    target: Single
    weights: Single


@dataclass(frozen=True)
class Lessons:
    """All rows to learn from and to be judged by."""

    Z: Single  # (n, p) inputs
    target: Single  # (n, k)
    weights: FloatArray  # (n,)
    owner: IntArray  # (p,) the player of each input
    d: int  # players

    def batch(self, rows: IntArray, coalitions: BoolArray) -> Batch:
        """Rows (m,), each with its own coalition (m, d)."""
        weights = self.weights[rows].astype(np.float32)
        inputs = masked_inputs(self.Z[rows], coalitions, self.owner)
        # They may all be zero.
        return Batch(inputs, self.target[rows], weights / max(float(weights.sum()), 1e-30))

    def first_parameters(self, units: int, rng: np.random.Generator) -> dict[str, Single]:
        """Weights and biases uniform within ±1/√(inputs of the layer), as torch draws them."""
        widths = len(self.owner) + self.d, units, units, self.target.shape[1]
        parameters = {}
        for layer, (inputs, outputs) in enumerate(pairwise(widths), start=1):
            for name, shape in (("W", (inputs, outputs)), ("b", (outputs,))):
                drawn = rng.uniform(-1, 1, size=shape) / np.sqrt(inputs)
                parameters[f"{name}{layer}"] = drawn.astype(np.float32)
        return parameters


class CompiledLearner:
    """Parameters, views of one vector, that learn by matrix products and compiled loops, on one
    core.

    The loss is the weighted mean of squared errors ("identity"), or of the cross entropy
    ("sigmoid", "softmax"): the divergence without the part that no network changes.
    """

    def __init__(self, parameters: Mapping[str, Single], link: str, beta_2: float) -> None:
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

    def step(self, batch: Batch, rate: float) -> None:
        """One step of Adam."""
        self.steps += 1
        self._differentiate(batch)
        seen = 1 - BETA_1**self.steps, 1 - self.beta_2**self.steps
        kernels.adam(
            self.flat,
            self.gradient,
            self.mean,
            self.square,
            rate,
            BETA_1,
            self.beta_2,
            EPSILON,
            *seen,
        )

    def loss(self, batch: Batch) -> float:
        raw = self._forward(batch.inputs)[-1].astype(np.float64)
        target = batch.target
        if self.link == "identity":
            each = ((raw - target) ** 2).mean(axis=1)
        elif self.link == "sigmoid":
            each = (np.logaddexp(0, raw) - target * raw).mean(axis=1)
        else:
            each = -(target * special.log_softmax(raw, axis=1)).sum(axis=1)
        return float(each @ batch.weights)

    def arrays(self) -> dict[str, Single]:
        return {name: array.copy() for name, array in self.parameters.items()}

    def _forward(self, inputs: Single) -> tuple[Single, Single, Single]:
        """Units of both hidden layers, and what the last layer gives."""
        p = self.parameters
        first: Single = np.matmul(inputs, p["W1"])
        kernels.elu(first, p["b1"], np.float32(0))
        second: Single = np.matmul(first, p["W2"])
        kernels.elu(second, p["b2"], np.float32(0))
        return first, second, np.asarray(second @ p["W3"] + p["b3"], dtype=np.float32)

    def _differentiate(self, batch: Batch) -> None:
        """Fill in the gradients, by the chain rule from the last layer to the first; ELU' = 1 +
        min(ELU, 0)."""
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

    def _slope(self, raw: Single, batch: Batch) -> Single:
        """(m, k) derivative of the loss by what the last layer gives."""
        if self.link == "identity":
            slope = (raw - batch.target) * (2 / raw.shape[1])
        elif self.link == "sigmoid":
            slope = (special.expit(raw) - batch.target) / raw.shape[1]
        else:
            slope = special.softmax(raw, axis=1) - batch.target
        return np.asarray(slope * batch.weights[:, None], dtype=np.float32)


class TorchLearner:
    """The same steps by torch, on any device."""

    def __init__(
        self, parameters: Mapping[str, Single], link: str, beta_2: float, device: str
    ) -> None:
        self.link, self.device = link, device
        self.parameters = {
            name: torch.tensor(p, device=device, requires_grad=True)
            for name, p in parameters.items()
        }
        every = list(self.parameters.values())
        self.optimiser = torch.optim.Adam(
            every, lr=1.0, betas=(BETA_1, beta_2), eps=EPSILON, fused=True
        )

    def step(self, batch: Batch, rate: float) -> None:
        self.optimiser.param_groups[0]["lr"] = rate
        self.optimiser.zero_grad()
        self._loss(batch).backward()
        self.optimiser.step()

    def loss(self, batch: Batch) -> float:
        with torch.no_grad():
            return float(self._loss(batch))

    def arrays(self) -> dict[str, Single]:
        return {
            name: tensor.detach().cpu().numpy().copy() for name, tensor in self.parameters.items()
        }

    def _loss(self, batch: Batch) -> Any:
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
"""The share of the rate at a step, by its number and the held-out losses so far."""


def cycle(steps: int, step: int, losses: Sequence[float]) -> float:
    """From 1/25 to all of the rate in the first 30 % of the steps, and down to nothing, along
    cosines."""
    share = step / steps
    if share < 0.3:
        return float(0.04 + 0.96 * (0.5 * (1 - np.cos(np.pi * (share / 0.3)))))
    return float(0.5 * (1 + np.cos(np.pi * ((share - 0.3) / 0.7))))


def plateau(patience: int, step: int, losses: Sequence[float]) -> float:
    """Half of it whenever the loss has not fallen by 1e-4 of itself for more than `patience`
    looks."""
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
    """One training run. All randomness comes from the given generator; torch's own is left
    alone."""

    lessons: Lessons
    learner: CompiledLearner | TorchLearner
    rate: float
    schedule: Schedule
    batch: int
    epochs: int
    every: int
    patience: int

    def run(
        self, rows: IntArray, held: Masked, rng: np.random.Generator
    ) -> tuple[dict[str, Single], str]:
        """The parameters with the lowest loss on `held`, and why training stopped; each epoch shows
        all of `rows`."""
        lowest = np.inf
        best = 0
        parameters = None
        try:
            with one_blas_thread():
                for epoch, loss in self._losses(rows, held, rng):
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
        self, rows: IntArray, held: Masked, rng: np.random.Generator
    ) -> Iterator[tuple[int, float]]:
        """Learn, epoch after epoch; the epochs after which the held-out loss is looked at, with the
        loss."""
        thin = max(1, len(held[0]) // EXAM)
        exam = self.lessons.batch(held[0][::thin], held[1][::thin])
        losses: list[float] = []
        step = count()
        for epoch, coalitions in enumerate(self._coalitions(len(rows), rng), start=1):
            order = rng.permutation(rows)
            for cut in batches(len(rows), self.batch):
                rate = self.rate * self.schedule(next(step), losses)
                self.learner.step(self.lessons.batch(order[cut], coalitions[cut]), rate)
            if epoch % self.every and epoch < self.epochs:
                continue
            losses.append(loss := self.learner.loss(exam))
            if not np.isfinite(loss):
                said = (
                    f"The network's held-out loss is {loss} after epoch {epoch}: training diverged."
                )
                instead = f"Lower `rate` (now {self.rate:g}), or pass standardise=True"
                raise ValueError(f"{said} {instead} if inputs or predictions are large.")
            yield epoch, loss

    def _coalitions(self, n: int, rng: np.random.Generator) -> Iterator[BoolArray]:
        """(n, d) fresh coalitions for each epoch, drawn for several epochs at once, which is
        faster."""
        left = self.epochs
        d = self.lessons.d
        while left:
            ahead = max(1, min(left, COALITION_BYTES // (n * d)))
            left -= ahead
            yield from random_coalitions(ahead * n, d, rng).reshape(ahead, n, d)
