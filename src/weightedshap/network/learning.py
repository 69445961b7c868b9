"""How the network learns: two engines that take the same steps of Adam, and two schedules of its rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import expit, log_softmax, softmax

from weightedshap.checks import require
from weightedshap.network.network import Single

__all__ = ["LEARNERS", "RATES", "Batch", "Learner"]

BETA_1, TINY = 0.9, 1e-8  # Adam's β₁ and ε


class Batch(NamedTuple):
    """[x·S, S] (m, p + d), targets (m, k), and weights (m,) that add up to one."""

    inputs: Single
    target: Single
    weights: Single


class Learner(Protocol):
    """Parameters that learn from batches.

    The loss is the weighted mean over rows of the squared error ("identity"), or of the cross entropy of
    probabilities ("sigmoid", "softmax"): the divergence without the part that no network changes.
    """

    def step(self, batch: Batch, rate: float) -> None:
        """One step of Adam."""

    def loss(self, batch: Batch) -> float:
        """The loss."""

    def arrays(self) -> dict[str, Single]:
        """A copy of the parameters."""


class Compiled:
    """By matrix products and compiled loops, on one core. All parameters are views of one vector."""

    def __init__(self, parameters: Mapping[str, Single], link: str, recipe: Any) -> None:
        self.link, self.beta_2, self.steps = link, recipe.beta_2, 0
        self.flat = np.concatenate([array.reshape(-1) for array in parameters.values()])
        self.gradient, self.first, self.second = np.zeros((3, len(self.flat)), np.float32)
        self.parameters, self.gradients = (_views(flat, parameters) for flat in (self.flat, self.gradient))

    def step(self, batch: Batch, rate: float) -> None:
        """One step of Adam."""
        from weightedshap.network import kernels

        self.steps += 1
        self._differentiate(batch)
        small = 1 - BETA_1**self.steps, 1 - self.beta_2**self.steps
        kernels.adam(self.flat, self.gradient, self.first, self.second, rate, BETA_1, self.beta_2, TINY, *small)

    def loss(self, batch: Batch) -> float:
        """The loss."""
        raw, target = self._forward(batch.inputs)[-1].astype(np.float64), batch.target
        if self.link == "identity":
            each = ((raw - target) ** 2).mean(axis=1)
        elif self.link == "sigmoid":
            each = (np.logaddexp(0, raw) - target * raw).mean(axis=1)
        else:
            each = -(target * log_softmax(raw, axis=1)).sum(axis=1)
        return float(each @ batch.weights)

    def arrays(self) -> dict[str, Single]:
        """A copy of the parameters."""
        return {name: array.copy() for name, array in self.parameters.items()}

    def _forward(self, inputs: Single) -> tuple[Single, Single, Single]:
        """Units of both hidden layers, and what the last layer gives."""
        from weightedshap.network import kernels

        p = self.parameters
        first: Single = np.matmul(inputs, p["W1"])
        kernels.elu(first, p["b1"])
        second: Single = np.matmul(first, p["W2"])
        kernels.elu(second, p["b2"])
        return first, second, np.asarray(second @ p["W3"] + p["b3"], dtype=np.float32)

    def _differentiate(self, batch: Batch) -> None:
        """Fill in the gradients, by the chain rule from the last layer to the first; ELU' = 1 + min(ELU, 0)."""
        from weightedshap.network import kernels

        p, g = self.parameters, self.gradients
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
        k = raw.shape[1]
        if self.link == "identity":
            slope = (raw - batch.target) * (2 / k)
        else:
            slope = (expit(raw) - batch.target) / k if self.link == "sigmoid" else softmax(raw, axis=1) - batch.target
        return np.asarray(slope * batch.weights[:, None], dtype=np.float32)


def _views(flat: Single, like: Mapping[str, Single]) -> dict[str, Single]:
    """The parts of a vector as arrays of the shapes of `like`."""
    parts = np.split(flat, np.cumsum([array.size for array in like.values()])[:-1])
    return {name: part.reshape(array.shape) for (name, array), part in zip(like.items(), parts, strict=True)}


class Torch:
    """By torch, on any device."""

    def __init__(self, parameters: Mapping[str, Single], link: str, recipe: Any) -> None:
        self.torch, self.link, self.device = require("torch", "neural"), link, recipe.device
        self.parameters = {name: self._tensor(array).requires_grad_() for name, array in parameters.items()}
        self.optimiser = self.torch.optim.Adam(
            list(self.parameters.values()), lr=1.0, betas=(BETA_1, recipe.beta_2), eps=TINY, fused=True
        )

    def step(self, batch: Batch, rate: float) -> None:
        """One step of Adam."""
        self.optimiser.param_groups[0]["lr"] = rate
        self.optimiser.zero_grad()
        self._loss(batch).backward()
        self.optimiser.step()

    def loss(self, batch: Batch) -> float:
        """The loss."""
        with self.torch.no_grad():
            return float(self._loss(batch))

    def arrays(self) -> dict[str, Single]:
        """A copy of the parameters."""
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in self.parameters.items()}

    def _loss(self, batch: Batch) -> Any:
        inputs, target, weights = map(self._tensor, batch)
        functional, p, units = self.torch.nn.functional, self.parameters, inputs
        for layer in ("1", "2"):
            units = functional.elu_(self.torch.addmm(p["b" + layer], units, p["W" + layer]))
        raw = self.torch.addmm(p["b3"], units, p["W3"])
        if self.link == "identity":
            each = ((raw - target) ** 2).mean(dim=1)
        elif self.link == "sigmoid":
            each = functional.binary_cross_entropy_with_logits(raw, target, reduction="none").mean(dim=1)
        else:
            each = -(target * functional.log_softmax(raw, dim=1)).sum(dim=1)
        return each @ weights

    def _tensor(self, array: Single) -> Any:
        return self.torch.tensor(array, device=self.device)


@dataclass
class Cycle:
    """The rate rises from 1/25 to all of `rate` in the first 30 % of the steps, and falls to nothing, along cosines."""

    recipe: Any
    steps: int
    done: int = 0

    def next(self) -> float:
        """The rate of the next step."""
        share, self.done = self.done / max(self.steps, 1), self.done + 1
        rising = share < 0.3
        part = share / 0.3 if rising else (share - 0.3) / 0.7
        low = 0.04 if rising else 0.0
        height = 0.5 * (1 - np.cos(np.pi * part)) if rising else 0.5 * (1 + np.cos(np.pi * part))
        return float(self.recipe.rate * (low + (1 - low) * height))

    def hear(self, loss: float) -> None:
        """The held-out loss changes nothing."""


@dataclass
class Plateau:
    """The rate is halved when the held-out loss has not fallen by 1e-4 of itself for more than `plateau` looks."""

    recipe: Any
    steps: int
    best: float = np.inf
    waited: int = 0
    factor: float = 1.0

    def next(self) -> float:
        """The rate of the next step."""
        return float(self.recipe.rate * self.factor)

    def hear(self, loss: float) -> None:
        """Take note of the held-out loss."""
        if loss < self.best * (1 - 1e-4):
            self.best, self.waited = loss, 0
        else:
            self.waited += 1
        if self.waited > self.recipe.plateau:
            self.factor, self.waited = self.factor / 2, 0


LEARNERS: Mapping[str, Callable[[Mapping[str, Single], str, Any], Learner]] = {"compiled": Compiled, "torch": Torch}
RATES: Mapping[str, Callable[[Any, int], Any]] = {"cycle": Cycle, "plateau": Plateau}
