"""The paper's images: digits in 196 superpixels, and those on which WeightedSHAP and Shapley differ
most."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

import weightedshap as ws
from weightedshap._checks import BoolArray, FloatArray, require
from weightedshap.curves import area, mean_interval, order_of, recovery_error
from weightedshap.games import FunctionGame
from weightedshap_paper import datasets, models
from weightedshap_paper.comparison import JUDGES
from weightedshap_paper.datasets import Images
from weightedshap_paper.experiment import Case, Claim, Experiment, Numbers, Runs, Settings, across
from weightedshap_paper.figures import attribution_maps

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

SIDE = 14
D = SIDE * SIDE
TOP = round(0.1 * D)
SHOWN = 4
NAMES = ("WeightedSHAP", "Shapley")
SUPERPIXELS = np.arange(4 * D).reshape(SIDE, 2, SIDE, 2).swapaxes(1, 2).reshape(D, 4).tolist()
"""The pixels of each of the 196 players: 2 × 2 of them, line by line."""


def probability(network: Module, image: Tensor, digit: int, coalitions: BoolArray) -> FloatArray:
    """(m,) the probability of a digit when only the superpixels in S of one image (1, 28, 28) are
    known."""
    torch = require("torch", "neural")
    values = []
    with torch.no_grad():
        for known in torch.as_tensor(np.ascontiguousarray(coalitions)).split(models.BATCH):
            masks = _masks(known.float())
            values.append(
                network(torch.cat([image * masks, masks], dim=1)).softmax(dim=1)[:, digit]
            )
    return np.asarray(torch.cat(values).numpy(), dtype=np.float64)


@dataclass(frozen=True)
class FittedImages:
    """The games of images (n, 784) of 0..255, each of the digit that the model sees in it."""

    model: Module
    network: Module

    def probabilities(self, rows: ArrayLike) -> FloatArray:
        """(n, 10) of the model itself."""
        return np.asarray(
            models.logits(self.model, models.pixels(rows)).softmax(dim=1).numpy(), dtype=np.float64
        )

    def predict(self, rows: ArrayLike) -> FloatArray:
        """(n,) f(x): the probability of the digit that the model sees."""
        return np.asarray(self.probabilities(rows).max(axis=1))

    def at(self, row: ArrayLike) -> FunctionGame:
        """The game at one image."""
        digit = int(self.probabilities(row)[0].argmax())
        return FunctionGame(partial(probability, self.network, models.pixels(row)[0], digit), D)


def masked_network(model: Module, X: ArrayLike, *, seed: int, epochs: int) -> Module:
    """E[f(X) | X_S = x_S] of the masked image and the mask: a module from (n, 2, 28, 28) to logits
    (n, 10).

    Masks hide superpixels of 2 × 2 pixels and know a number uniform on 0..196; the loss is the KL
    divergence.
    """
    torch = require("torch", "neural")
    images = models.pixels(X)
    targets = models.logits(model, images).softmax(dim=1)

    def loss(network: Module, rows: Tensor) -> Tensor:
        size = torch.randint(0, D + 1, (len(rows), 1))
        rank = torch.rand(len(rows), D).argsort(dim=1).argsort(dim=1)
        masks = _masks((rank < size).float())
        logits = network(torch.cat([images[rows] * masks, masks], dim=1))
        return torch.nn.functional.kl_div(
            logits.log_softmax(dim=1), targets[rows], reduction="batchmean"
        )

    return models.trained(2, loss, len(images), seed=seed, epochs=epochs)


def _masks(known: Tensor) -> Tensor:
    """(m, 196) of 0 and 1 → (m, 1, 28, 28), each superpixel 2 × 2 pixels."""
    return known.reshape(-1, 1, SIDE, SIDE).repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)


def run_mnist(case: Case, settings: Settings, rng: np.random.Generator) -> Numbers:
    """Train the model and two surrogates, each on half of the images; explain test images with the
    first."""
    images = datasets.mnist()
    epochs, surrogate_epochs = (1, 1) if settings.quick else (3, 8)
    if settings.quick:
        images = Images(
            images.X_train[:6000], images.y_train[:6000], images.X_test[:1000], images.y_test[:1000]
        )
    seed = int(rng.integers(2**31))
    model = models.mnist_network(images, seed=seed, epochs=epochs)
    own, other = (
        FittedImages(
            model, masked_network(model, images.X_train[half], seed=seed, epochs=surrogate_epochs)
        )
        for half in np.array_split(rng.permutation(len(images.X_train)), 2)
    )
    X = images.X_test[rng.permutation(len(images.X_test))[: settings.rows]].reshape(-1, 4 * D)
    draws = partial(ws.estimators.stratified, evaluations=1_000 if settings.quick else 10_000)
    explainer = ws.Explainer(
        None, X, game=own, groups=SUPERPIXELS, estimator=draws, random_state=seed, progress=False
    )
    explanation = explainer(X)
    phi = dict(zip(NAMES, (explanation.values, explanation.shapley)))  # (n, 196) each
    areas = dict(
        zip(NAMES, map(area, (explanation.curves, explanation.reference_curves["shapley"])))
    )
    gap = areas["Shapley"] - areas["WeightedSHAP"]
    digits = own.probabilities(X).argmax(axis=1)
    return {
        "accuracy": models.accuracy(model, images.X_test, images.y_test),
        "areas": {"own": areas, "independent": _judged(other, X, phi)},
        "negative": {name: _against(values) for name, values in phi.items()},
        "gallery": [
            {
                "image": X[i],
                "digit": digits[i],
                "gap": gap[i],
                "phi": {name: phi[name][i] for name in NAMES},
            }
            for i in np.argsort(-gap, kind="stable")[:SHOWN]
        ],
    }


def _judged(
    fitted: FittedImages, X: NDArray[np.uint8], phi: dict[str, FloatArray]
) -> dict[str, FloatArray]:
    """(n,) the area of each attribution on another game."""
    orders = np.stack([order_of(phi[name]) for name in NAMES], axis=1)  # (n, 2, 196)
    f_x = fitted.predict(X)
    areas = [area(recovery_error(fitted.at(X[[i]]), orders[i], f_x[i])) for i in range(len(X))]
    return dict(zip(NAMES, np.transpose(areas), strict=True))


def _against(phi: FloatArray) -> FloatArray:
    """(n,) the share of the top 10 % superpixels that count against the digit."""
    top = order_of(phi)[:, :TOP]
    return np.asarray((np.take_along_axis(phi, top, axis=1) < 0).mean(axis=1))


def claims_mnist(runs: Runs) -> list[Claim]:
    """The network's accuracy; who recovers the prediction faster; whose leading superpixels count
    against the digit."""
    (of,) = runs.values()
    accuracy = across(of, "accuracy").mean()
    claims = [
        Claim(
            "accuracy of the network on the test images",
            "98.6 %",
            f"{accuracy:.2%}",
            [accuracy >= 0.986],
        )
    ]
    for judge in JUDGES:
        areas = {name: across(of, "areas", judge, name).ravel() for name in NAMES}
        mean, margin = mean_interval(areas["WeightedSHAP"] - areas["Shapley"])
        shown = ", ".join(f"{name} {values.mean():.4g}" for name, values in areas.items())
        text = f"area under the recovery curve, {judge} game, {len(areas['Shapley'])} images"
        ours = f"{shown}; difference {mean:+.3g} ± {margin:.2g}"
        claims.append(
            Claim(text, "lower than Shapley", ours, [bool(mean < 0), bool(mean + margin < 0)])
        )
    negative = {name: across(of, "negative", name).mean() for name in NAMES}
    fewer = [negative["WeightedSHAP"] < negative["Shapley"], negative["WeightedSHAP"] < 0.01]
    text = "share of the top 10 % superpixels that count against the digit"
    shown = ", ".join(f"{name} {share:.1%}" for name, share in negative.items())
    return [*claims, Claim(text, "SHAP noisy, WeightedSHAP none", shown, fewer)]


def draw_mnist(runs: Runs) -> Figure:
    """The images with the largest gap, and the top 10 % superpixels of both attributions."""
    (of,) = runs.values()
    gallery = sorted((one for run in of for one in run["gallery"]), key=lambda one: -one["gap"])[
        :SHOWN
    ]
    return attribution_maps(gallery, NAMES, TOP)


MNIST = Experiment(
    "MNIST: 196 superpixels, convolutional surrogate, the images with the largest gap",
    lambda settings: [Case("mnist")],
    run_mnist,
    draw_mnist,
    claims_mnist,
    most_runs=2,
    notes=(
        (
            "The digit that the model sees is explained, by its probability. Two surrogates are"
            " trained on halves of the training images: the first explains, the second is the"
            " independent judge. 10,000 evaluations for each image."
        ),
    ),
)
