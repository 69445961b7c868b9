"""From the sum of trees to the prediction: a link is found where it fits, and nowhere else."""

import numpy as np
import pytest

from weightedshap.trees.links import LINKS, Link, agree, follows, link_between

RAW = np.random.default_rng(0).normal(size=(50, 2))


@pytest.mark.parametrize("name", LINKS)
def test_a_link_is_found_from_what_it_gives(name):
    assert link_between(RAW, Link(name)(RAW)) == Link(name)
    assert link_between(RAW, Link(name)(RAW) + 0.1 * np.sin(np.arange(50))[:, None]) is None


def test_tables_agree_up_to_single_precision_and_in_shape():
    large = 1e3 * RAW
    assert agree(large, large + 1e-3)
    assert not agree(large, large + 1e-1)
    assert not agree(RAW, RAW[:, :1])


def test_predictions_that_rise_follow_and_so_do_those_that_stay():
    assert follows(RAW, np.tanh(RAW))
    assert follows(RAW, np.round(RAW))
    assert follows(RAW, np.ones_like(RAW))
    assert follows(RAW, np.tanh(RAW) + 1e-7 * np.sin(np.arange(50))[:, None])
    assert not follows(RAW, -RAW)
    assert not follows(RAW, RAW[:, ::-1])
    assert not follows(RAW, RAW[:, :1])
