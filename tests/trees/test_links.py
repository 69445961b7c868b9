"""From the sum of trees to the prediction: a link is found where it fits, and nowhere else."""

import numpy as np
import pytest

from weightedshap.trees.links import LINKS, Link, are_close, is_monotone, link_between

RAW = np.random.default_rng(0).normal(size=(50, 2))


@pytest.mark.parametrize("name", LINKS)
def test_a_link_is_found_from_what_it_gives(name):
    assert link_between(RAW, Link(name)(RAW)) == Link(name)
    assert link_between(RAW, Link(name)(RAW) + 0.1 * np.sin(np.arange(50))[:, None]) is None


def test_tables_agree_up_to_single_precision_and_in_shape():
    large = 1e3 * RAW
    assert are_close(large, large + 1e-3)
    assert not are_close(large, large + 1e-1)
    assert not are_close(RAW, RAW[:, :1])


def test_predictions_are_monotone_where_they_rise_or_stay_with_the_trees():
    assert is_monotone(RAW, np.tanh(RAW))
    assert is_monotone(RAW, np.round(RAW))
    assert is_monotone(RAW, np.ones_like(RAW))
    assert is_monotone(RAW, np.tanh(RAW) + 1e-7 * np.sin(np.arange(50))[:, None])
    assert not is_monotone(RAW, -RAW)
    assert not is_monotone(RAW, RAW[:, ::-1])
    assert not is_monotone(RAW, RAW[:, :1])
