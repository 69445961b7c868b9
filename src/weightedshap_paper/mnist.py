"""The paper's images: MNIST digits, explained by 196 superpixels.

The figure shows the images on which WeightedSHAP and Shapley differ most.
"""

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
"""The positions of the 2 × 2 pixels of each of the 196 players, line by line."""


def probability(network: Module, image: Tensor, digit: int, coalitions: BoolArray) -> FloatArray:
    """Return the probability (m,) of `digit` when only the superpixels in each coalition are known.

    Coalitions are (m, 196), the image is (1, 28, 28).
    """
    torch = require("torch", "neural")
    values = []
    with torch.no_grad():
        for known in torch.as_tensor(np.ascontiguousarray(coalitions)).split(models.BATCH):
            masks = _masks(known.float())
            logits = network(torch.cat([image * masks, masks], dim=1))
            values.append(logits.softmax(dim=1)[:, digit])
    return np.asarray(torch.cat(values).numpy(), dtype=np.float64)


@dataclass(frozen=True)
class ImageGame:
    """Games for images (n, 784) of 0..255: v(S) is the probability of the predicted digit.

    `model` predicts the digit, `network` estimates its probability when superpixels are hidden.
    """

    model: Module
    network: Module

    def probabilities(self, rows: ArrayLike) -> FloatArray:
        """Return the model's probabilities (n, 10) of the digits."""
        logits = models.logits(self.model, models.pixels(rows))
        return np.asarray(logits.softmax(dim=1).numpy(), dtype=np.float64)

    def predict(self, rows: ArrayLike) -> FloatArray:
        """Return f(x) (n,): the probability of the digit that the model predicts."""
        return np.asarray(self.probabilities(rows).max(axis=1))

    def at(self, row: ArrayLike) -> FunctionGame:
        """Return the game of one image."""
        digit = int(self.probabilities(row)[0].argmax())
        return FunctionGame(partial(probability, self.network, models.pixels(row)[0], digit), D)


def masked_network(model: Module, X: ArrayLike, *, seed: int, epochs: int) -> Module:
    """Train a network that predicts the digit from an image with hidden superpixels and the mask.

    It estimates E[f(X) | X_S = x_S] for the known superpixels S. It is a module from (n, 2, 28, 28)
    to logits (n, 10). Masks hide superpixels of 2 × 2 pixels; the number of known superpixels is
    uniform on 0..196. The loss is the KL divergence from the model's probabilities.
    """
    torch = require("torch", "neural")
    images = models.pixels(X)
    targets = models.logits(model, images).softmax(dim=1)

    def loss(network: Module, rows: Tensor) -> Tensor:
        """Return the loss of a network on some rows, with random masks."""
        size = torch.randint(0, D + 1, (len(rows), 1))
        rank = torch.rand(len(rows), D).argsort(dim=1).argsort(dim=1)
        masks = _masks((rank < size).float())
        logits = network(torch.cat([images[rows] * masks, masks], dim=1))
        return torch.nn.functional.kl_div(
            logits.log_softmax(dim=1), targets[rows], reduction="batchmean"
        )

    return models.train(2, loss, len(images), seed=seed, epochs=epochs)


def _masks(known: Tensor) -> Tensor:
    """Expand superpixels (m, 196) of 0 and 1 to masks (m, 1, 28, 28) of pixels.

    A superpixel has 2 × 2 pixels.
    """
    return known.reshape(-1, 1, SIDE, SIDE).repeat_interleave(2, dim=2).repeat_interleave(2, dim=3)


def run_mnist(case: Case, settings: Settings, rng: np.random.Generator) -> Numbers:
    """Train a classifier and two surrogates on MNIST, and explain test images with one surrogate.

    Each surrogate learns from half of the training images; the second is the independent judge.
    """
    images = datasets.mnist()
    epochs, surrogate_epochs = (1, 1) if settings.quick else (3, 8)
    if settings.quick:
        images = Images(
            images.X_train[:6000], images.y_train[:6000], images.X_test[:1000], images.y_test[:1000]
        )
    seed = int(rng.integers(2**31))
    model = models.mnist_network(images, seed=seed, epochs=epochs)
    own, other = (
        ImageGame(
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

    phi = {"WeightedSHAP": explanation.values, "Shapley": explanation.shapley}  # (n, 196) each
    areas = {
        "WeightedSHAP": area(explanation.curves),
        "Shapley": area(explanation.reference_curves["shapley"]),
    }
    gap = areas["Shapley"] - areas["WeightedSHAP"]
    digits = own.probabilities(X).argmax(axis=1)
    return {
        "accuracy": models.accuracy(model, images.X_test, images.y_test),
        "areas": {"own": areas, "independent": _areas_on(other, X, phi)},
        "negative": {name: _share_against(values) for name, values in phi.items()},
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


def _areas_on(
    judge: ImageGame, X: NDArray[np.uint8], phi: dict[str, FloatArray]
) -> dict[str, FloatArray]:
    """Return the areas (n,) under each method's recovery curves on the game `judge`, by method.

    `phi` contains the attributions (n, 196) of the images X by method.
    """
    orders = np.stack([order_of(phi[name]) for name in NAMES], axis=1)  # (n, 2, 196)
    f_x = judge.predict(X)
    areas = [area(recovery_error(judge.at(X[[i]]), orders[i], f_x[i])) for i in range(len(X))]
    return dict(zip(NAMES, np.transpose(areas), strict=True))


def _share_against(phi: FloatArray) -> FloatArray:
    """Return the share (n,) of the top 10 % superpixels that count against the digit (φ < 0)."""
    top = order_of(phi)[:, :TOP]
    return np.asarray((np.take_along_axis(phi, top, axis=1) < 0).mean(axis=1))


def claims_mnist(runs: Runs) -> list[Claim]:
    """Return the claims on accuracy, areas, and top superpixels that count against the digit."""
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
    """Draw test images, each next to its top 10 % superpixels by WeightedSHAP and by Shapley.

    They are the images for which the areas under the recovery curves of the two differ most.
    """
    (of,) = runs.values()
    every = [image for run in of for image in run["gallery"]]
    gallery = sorted(every, key=lambda image: -image["gap"])[:SHOWN]
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
