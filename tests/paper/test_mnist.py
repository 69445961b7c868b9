"""Digits in superpixels."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from weightedshap_paper import mnist, models
from weightedshap_paper.datasets import mnist as load_mnist
from weightedshap_paper.experiment import Case, Settings
from weightedshap_paper.runner import plain

torch = pytest.importorskip("torch")
QUICK = Settings(rows=3, quick=True)


def test_superpixels_are_squares_of_four_pixels_and_share_none():
    assert sorted(pixel for four in mnist.SUPERPIXELS for pixel in four) == list(range(784))
    lines, columns = np.divmod(np.array(mnist.SUPERPIXELS), 28)
    assert (np.ptp(lines, axis=1) == 1).all()
    assert (np.ptp(columns, axis=1) == 1).all()


def test_masks_know_the_pixels_of_their_superpixels():
    known = np.zeros((1, 196), dtype=np.float32)
    known[0, [3, 100]] = 1
    mask = mnist._masks(torch.as_tensor(known)).numpy().ravel()
    assert sorted(np.flatnonzero(mask)) == sorted(mnist.SUPERPIXELS[3] + mnist.SUPERPIXELS[100])


def test_a_game_looks_at_known_superpixels_only(data):
    images = load_mnist()
    model = models.mnist_network(images, seed=0, epochs=1)
    fitted = mnist.ImageGame(model, mnist.masked_network(model, images.X_train, seed=0, epochs=1))
    row = images.X_test[:1].reshape(1, 784)
    other = row.copy()
    other[0, mnist.SUPERPIXELS[5]] = 255 - other[0, mnist.SUPERPIXELS[5]]
    without = np.ones((1, 196), dtype=bool)
    without[0, 5] = False
    one, two = (
        partial(mnist.probability, fitted.network, models.pixels(x)[0], 0) for x in (row, other)
    )
    np.testing.assert_array_equal(one(without), two(without))
    assert one(~without) != two(~without)


def test_a_run_gives_areas_claims_and_a_figure_and_the_same_numbers_again(data):
    numbers = mnist.run_mnist(Case("mnist"), QUICK, np.random.default_rng(0))
    own = numbers["areas"]["own"]
    assert (own["WeightedSHAP"] <= own["Shapley"] + 1e-12).all()
    assert set(numbers["areas"]) == {"own", "independent"}
    runs = {Case("mnist"): [plain(numbers)]}
    assert len(mnist.claims_mnist(runs)) == 4
    assert len(mnist.draw_mnist(runs).axes) == 9
    again = mnist.run_mnist(Case("mnist"), QUICK, np.random.default_rng(0))
    assert plain(again) == plain(numbers)
