"""Explanations to draw, and no figure of pyplot left open by another test."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

import weightedshap as ws
from tests.plots.examples import make_explanation

mpl.use("Agg")


@pytest.fixture(scope="module")
def explanation() -> ws.Explanation:
    return make_explanation()


@pytest.fixture(scope="module")
def sampled() -> ws.Explanation:
    return make_explanation(n=4, estimator="permutation")


@pytest.fixture(autouse=True)
def _close_figures():
    plt.close("all")  # of other tests in this process
    yield
    plt.close("all")
