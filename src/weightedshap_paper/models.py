"""The prediction models of the paper's experiments: boosting, linear models, image networks."""

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
    """Fit boosted trees to the training part, stopped by the loss on the validation part.

    `predict` of the booster returns the probability of class 1, or the value. Training ends after
    25 trees without a lower loss (log loss, or squared error, and no other metric), and the best
    number of trees is kept. The paper gives the rate, the leaves and the patience; `max_trees` is
    the authors'.

    With `authors_stop` a classifier's training ends as soon as the loss *or* the share of errors
    stalls, as in the authors' program. The share of errors moves in steps, so training stops early,
    with few trees.
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
    """Return the learning rate of boosting: the paper's 0.005, or ten times that in a quick run."""
    return 0.05 if quick else 0.005


def number_of_trees(booster: lgb.Booster) -> int:
    """Return the number of trees that a booster uses for predictions, after early stopping."""
    return int(booster.best_iteration or booster.num_trees())


def linear(data: Prepared) -> LinearRegression | LogisticRegression:
    """Fit least squares or scikit-learn's logistic regression to the training part."""
    model = LinearRegression() if data.task == "regression" else LogisticRegression(max_iter=1000)
    return model.fit(data.X_train, data.y_train)


def mnist_network(images: Images, *, seed: int, epochs: int = 3) -> Module:
    """Train a convolutional network that classifies the images by their digits.

    It is a torch module from images (n, 1, 28, 28) in 0..1 to logits (n, 10).
    """
    torch = require("torch", "neural")
    X = pixels(images.X_train)
    y = torch.as_tensor(images.y_train.astype(np.int64))

    def loss(network: Module, rows: Tensor) -> Tensor:
        """Return the cross-entropy of a network on some rows."""
        return torch.nn.functional.cross_entropy(network(X[rows]), y[rows])

    return train(1, loss, len(X), seed=seed, epochs=epochs)


def train(channels: int, loss: Loss, n: int, *, seed: int, epochs: int) -> Module:
    """Train a small convolutional network on n rows to minimise ``loss(network, rows)``.

    Two convolutions of 3 × 3 with 16 and 32 output channels, each followed by max pooling over 2 ×
    2 pixels, and a hidden layer of 128; `channels` is the number of input channels. Batches have
    128 rows. The optimiser is Adam, with a learning rate that rises and falls once. The state of
    torch's generator is left unchanged.
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
    """Return the logits (n, 10) of images (n, 1, 28, 28), without gradients."""
    torch = require("torch", "neural")
    with torch.no_grad():
        return torch.cat([network(batch) for batch in images.split(BATCH)])


def accuracy(network: Module, X: ArrayLike, y: ArrayLike) -> float:
    """Return the share of images X (n, 28, 28) whose digit y (n,) the network predicts."""
    return float((logits(network, pixels(X)).argmax(1).numpy() == y).mean())


def pixels(X: ArrayLike) -> Tensor:
    """Convert images (n, 28, 28) or (n, 784) of 0..255 to a float tensor (n, 1, 28, 28) of 0..1."""
    torch = require("torch", "neural")
    return torch.as_tensor(
        np.asarray(X).reshape(-1, 1, 28, 28) / np.float32(255), dtype=torch.float32
    )
