"""The prediction models of the paper's experiments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import lightgbm as lgb
import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import LinearRegression, LogisticRegression

from weightedshap._checks import require
from weightedshap_paper.datasets import Images, Prepared

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    Loss = Callable[[Module, Tensor], Tensor]

OBJECTIVES = {"regression": ("regression", "l2"), "classification": ("binary", "binary_logloss")}
FIXED = {
    "num_leaves": 15,
    "num_threads": 0,
    "deterministic": True,
    "force_row_wise": True,
    "verbose": -1,
}
PATIENCE = 25
BATCH = 1_000  # images at once


def boosting(
    data: Prepared,
    *,
    seed: int,
    learning_rate: float = 0.005,
    max_trees: int = 1000,
    authors_stop: bool = False,
) -> lgb.Booster:
    """Boosted trees fitted to the training part, stopped by the loss on the validation part.

    `predict` gives the probability of class 1, or the value. Training ends after 25 trees without a
    lower loss (log loss, or squared error, and no other metric), and the best number of trees is
    kept. The paper gives the rate, the leaves and the patience; `max_trees` is the authors'.

    With `authors_stop` a classifier's training ends as soon as the loss *or* the share of errors
    stalls, as in the authors' program. The share of errors moves in steps, so that few trees are
    left.
    """
    objective, metric = OBJECTIVES[data.task]
    errors = ["binary_error"] if authors_stop and data.task == "classification" else []
    chosen = {
        "objective": objective,
        "metric": [metric, *errors],
        "learning_rate": learning_rate,
        "seed": seed,
    }
    train = lgb.Dataset(data.X_train, data.y_train, feature_name=list(data.feature_names))
    validation = lgb.Dataset(data.X_val, data.y_val, reference=train)
    stop = lgb.early_stopping(PATIENCE, verbose=False)
    return lgb.train(
        chosen | FIXED, train, num_boost_round=max_trees, valid_sets=[validation], callbacks=[stop]
    )


def rate(quick: bool) -> float:
    """The learning rate: the paper's, or ten times that where it has to be quick."""
    return 0.05 if quick else 0.005


def number_of_trees(booster: lgb.Booster) -> int:
    """The trees that early stopping left for predictions."""
    return int(booster.best_iteration or booster.num_trees())


def linear(data: Prepared) -> LinearRegression | LogisticRegression:
    """Least squares, or logistic regression by scikit-learn's defaults, of the training part."""
    model = LinearRegression() if data.task == "regression" else LogisticRegression(max_iter=1000)
    return model.fit(data.X_train, data.y_train)


def mnist_network(images: Images, *, seed: int, epochs: int = 3) -> Module:
    """A convolutional network of the digits: a torch module from images (n, 1, 28, 28) in 0..1 to
    logits (n, 10)."""
    torch = require("torch", "neural")
    X = pixels(images.X_train)
    y = torch.as_tensor(images.y_train.astype(np.int64))

    def loss(network: Module, rows: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(network(X[rows]), y[rows])

    return trained(1, loss, len(X), seed=seed, epochs=epochs)


def trained(channels: int, loss: Loss, n: int, *, seed: int, epochs: int) -> Module:
    """A small convolutional network, `loss(network, rows)` made small over batches of 128 of n
    rows.

    Two convolutions of 3 × 3 with 16 and 32 channels, each halved by max pooling, and a hidden
    layer of 128. Adam, its rate raised and lowered once. The state of torch's generator is left as
    it was.
    """
    torch = require("torch", "neural")
    nn = torch.nn
    steps = epochs * -(-n // 128)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        first = [nn.Conv2d(channels, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        second = [nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        network = nn.Sequential(
            *first, *second, nn.Flatten(), nn.Linear(1568, 128), nn.ReLU(), nn.Linear(128, 10)
        )
        optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=steps)
        for _ in range(epochs):
            for rows in torch.randperm(n).split(128):
                optimiser.zero_grad()
                loss(network, rows).backward()
                optimiser.step()
                schedule.step()
    return network.eval()


def logits(network: Module, images: Tensor) -> Tensor:
    """(n, 10) of images (n, 1, 28, 28), nothing being learned."""
    torch = require("torch", "neural")
    with torch.no_grad():
        return torch.cat([network(some) for some in images.split(BATCH)])


def accuracy(network: Module, X: ArrayLike, y: ArrayLike) -> float:
    """The share of images (n, 28, 28) whose digit (n,) the network tells."""
    return float((logits(network, pixels(X)).argmax(1).numpy() == y).mean())


def pixels(X: ArrayLike) -> Tensor:
    """Images (n, 28, 28) or (n, 784) of 0..255 as a float tensor (n, 1, 28, 28) of 0..1."""
    torch = require("torch", "neural")
    return torch.as_tensor(
        np.asarray(X).reshape(-1, 1, 28, 28) / np.float32(255), dtype=torch.float32
    )
