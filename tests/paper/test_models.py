"""The paper's prediction models."""

from __future__ import annotations

import numpy as np
import pytest

from tests.paper.conftest import small_images
from weightedshap_paper import models
from weightedshap_paper.datasets import Images, Prepared, prepare


@pytest.fixture(scope="module")
def gaussian():
    return prepare("gaussian", np.random.default_rng(0))


def test_boosting_stops_on_the_loss_alone(gaussian):
    """The validation loss of one tree fewer or more is not lower."""
    booster = models.boosting(gaussian, seed=0, learning_rate=0.2)
    n = models.number_of_trees(booster)
    losses = [
        log_loss(gaussian.y_val, booster.predict(gaussian.X_val, num_iteration=k))
        for k in range(1, n + 20)
    ]
    assert int(np.argmin(losses)) + 1 == n < 1000


def test_the_authors_rule_leaves_fewer_trees(gaussian):
    ours, authors = (
        models.number_of_trees(
            models.boosting(gaussian, seed=0, learning_rate=0.02, authors_stop=stop)
        )
        for stop in (False, True)
    )
    assert authors < ours


def test_the_authors_rule_changes_nothing_for_a_regression(gaussian):
    data = Prepared(**{**vars(gaussian), "task": "regression"})
    ours, authors = (
        models.boosting(data, seed=0, learning_rate=0.1, authors_stop=stop).predict(data.X_test)
        for stop in (False, True)
    )
    np.testing.assert_array_equal(ours, authors)


def test_boosting_is_repeatable(gaussian):
    one, other = (
        models.boosting(gaussian, seed=3, max_trees=20).predict(gaussian.X_test) for _ in range(2)
    )
    np.testing.assert_array_equal(one, other)


def test_the_logistic_model_finds_the_coefficients(gaussian):
    truth = np.where(np.arange(30) < 10, 1 - 0.02 * np.arange(30), 0)
    np.testing.assert_allclose(models.linear(gaussian).coef_[0], truth, atol=0.25)


def test_the_linear_model_is_least_squares(gaussian):
    data = Prepared(**{**vars(gaussian), "task": "regression"})
    model = models.linear(data)
    left = data.y_train - model.predict(data.X_train)
    np.testing.assert_allclose(data.X_train.T @ left, 0, atol=1e-7)


def test_the_network_learns_digits_and_leaves_torch_alone():
    torch = pytest.importorskip("torch")
    images = Images(*small_images(1500), *small_images(200))
    before = torch.random.get_rng_state()
    networks = [models.mnist_network(images, seed=1, epochs=6) for _ in range(2)]
    assert torch.equal(before, torch.random.get_rng_state())
    assert models.accuracy(networks[0], images.X_test, images.y_test) > 0.95
    X = torch.rand(3, 1, 28, 28)
    assert torch.equal(networks[0](X), networks[1](X))


def log_loss(y, p):
    return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))
