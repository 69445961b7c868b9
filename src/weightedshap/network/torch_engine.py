"""The steps of `training.CompiledLearner` by torch, on any device; imported only where a recipe asks for it."""

from collections.abc import Mapping

import torch
from torch.nn import functional

from weightedshap.network.network import Single
from weightedshap.network.training import BETA_1, EPSILON, Batch


class TorchLearner:
    """Learns by torch."""

    def __init__(self, parameters: Mapping[str, Single], link: str, beta_2: float, device: str) -> None:
        self.link, self.device = link, device
        self.parameters = {name: torch.tensor(p, device=device, requires_grad=True) for name, p in parameters.items()}
        every = list(self.parameters.values())
        self.optimiser = torch.optim.Adam(every, lr=1.0, betas=(BETA_1, beta_2), eps=EPSILON, fused=True)

    def step(self, batch: Batch, rate: float) -> None:
        self.optimiser.param_groups[0]["lr"] = rate
        self.optimiser.zero_grad()
        self._loss(batch).backward()
        self.optimiser.step()

    def loss(self, batch: Batch) -> float:
        with torch.no_grad():
            return float(self._loss(batch))

    def arrays(self) -> dict[str, Single]:
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in self.parameters.items()}

    def _loss(self, batch: Batch) -> torch.Tensor:
        units, target, weights = (torch.tensor(array, device=self.device) for array in batch)
        p = self.parameters
        for layer in ("1", "2"):
            units = functional.elu_(torch.addmm(p["b" + layer], units, p["W" + layer]))
        raw = torch.addmm(p["b3"], units, p["W3"])
        if self.link == "identity":
            each = ((raw - target) ** 2).mean(dim=1)
        elif self.link == "sigmoid":
            each = functional.binary_cross_entropy_with_logits(raw, target, reduction="none").mean(dim=1)
        else:
            each = -(target * functional.log_softmax(raw, dim=1)).sum(dim=1)
        return each @ weights
