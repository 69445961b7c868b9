"""The prediction models of the paper's experiments."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import lightgbm as lgb
import numpy as np

from weightedshap.checks import FloatArray, require
from weightedshap_paper.datasets import Images, Prepared

__all__ = ["accuracy", "boosting", "linear", "mnist_network", "number_of_trees", "pixels", "rate", "trained"]

OBJECTIVES = {"regression": ("regression", "l2"), "classification": ("binary", "binary_logloss")}


def boosting(
    data: Prepared,
    *,
    seed: int,
    learning_rate: float = 0.005,
    num_leaves: int = 15,
    patience: int = 25,
    max_trees: int = 1000,
    n_threads: int = 0,
    authors_stop: bool = False,
) -> lgb.Booster:
    """Boosted trees fitted to the training part, stopped by the loss on the validation part.

    `predict` gives the probability of class 1, or the value. Training ends after `patience` trees without a
    lower loss (log loss, or squared error, and no other metric), and the best number of trees is kept. The
    paper gives the rate, the leaves and the patience; `max_trees` is the authors'.

    Parameters
    ----------
    authors_stop : end training of a classifier as soon as the loss *or* the share of errors stalls, as the authors'
        program does. The share of errors moves in steps, so that few trees are left.
    """
    objective, metric = OBJECTIVES[data.task]
    errors = ["binary_error"] if authors_stop and data.task == "classification" else []
    parameters = {
        "objective": objective,
        "metric": [metric, *errors],
        "learning_rate": learning_rate,
        "num_leaves": num_leaves,
        "seed": seed,
        "num_threads": n_threads,
        "deterministic": True,
        "force_row_wise": True,
        "verbose": -1,
    }
    train = lgb.Dataset(data.X_train, data.y_train, feature_name=list(data.feature_names))
    validation = lgb.Dataset(data.X_val, data.y_val, reference=train)
    return lgb.train(
        parameters,
        train,
        num_boost_round=max_trees,
        valid_sets=[validation],
        callbacks=[lgb.early_stopping(patience, verbose=False)],
    )


def rate(quick: bool) -> float:
    """The learning rate: the paper's, or ten times that where it has to be quick."""
    return 0.05 if quick else 0.005


def number_of_trees(booster: lgb.Booster) -> int:
    """The trees that early stopping left for predictions."""
    return int(booster.best_iteration or booster.num_trees())


def linear(data: Prepared) -> Any:
    """Least squares, or logistic regression by scikit-learn's defaults, of the training part."""
    from sklearn.linear_model import LinearRegression, LogisticRegression

    model = LinearRegression() if data.task == "regression" else LogisticRegression(max_iter=1000)
    return model.fit(data.X_train, data.y_train)


def mnist_network(images: Images, *, seed: int, epochs: int = 3) -> Any:
    """A convolutional network of the digits: a torch module from images (n, 1, 28, 28) in 0..1 to logits (n, 10)."""
    torch = require("torch", "neural")
    X, y = pixels(images.X_train), torch.as_tensor(images.y_train.astype(np.int64))

    def loss(network: Any, rows: Any) -> Any:
        return torch.nn.functional.cross_entropy(network(X[rows]), y[rows])

    return trained(1, loss, len(X), seed=seed, epochs=epochs)


def trained(channels: int, loss: Any, n: int, *, seed: int, epochs: int, batch: int = 128, rate: float = 3e-3) -> Any:
    """A small convolutional network, `loss(network, rows)` made small over batches of n rows.

    Two convolutions of 3 × 3 with 16 and 32 channels, each halved by max pooling, and a hidden layer of 128. Adam, its
    rate raised and lowered once. The state of torch's generator is left as it was.
    """
    torch = require("torch", "neural")
    nn, steps = torch.nn, epochs * -(-n // batch)
    with _seeded(torch, seed):
        first = [nn.Conv2d(channels, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        second = [nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        network = nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(1568, 128), nn.ReLU(), nn.Linear(128, 10))
        optimiser = torch.optim.Adam(network.parameters(), lr=rate)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
        for _ in range(epochs):
            for rows in torch.randperm(n).split(batch):
                optimiser.zero_grad()
                loss(network, rows).backward()
                optimiser.step()
                schedule.step()
    return network.eval()


def accuracy(network: Any, X: Any, y: Any) -> float:
    """The share of images (n, 28, 28) whose digit (n,) the network tells."""
    torch = require("torch", "neural")
    with torch.no_grad():
        digits: FloatArray = torch.cat([network(part).argmax(1) for part in pixels(X).split(1000)]).numpy()
    return float((digits == y).mean())


def pixels(X: Any) -> Any:
    """Images (n, 28, 28) of 0..255 as a float tensor (n, 1, 28, 28) of 0..1."""
    torch = require("torch", "neural")
    return torch.as_tensor(np.asarray(X)[:, None] / np.float32(255), dtype=torch.float32)


@contextmanager
def _seeded(torch: Any, seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
