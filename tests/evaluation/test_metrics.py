"""The points behind the inclusion metrics: their mean is the metric, their spread its error."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from weightedshap.evaluation.metrics import auc_points


@pytest.mark.parametrize("levels", [None, 4])
def test_the_mean_of_the_points_is_the_auc(levels):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(60, 3)) if levels is None else rng.integers(levels, size=(60, 3)).astype(float)
    positive = rng.random(60) < 0.3
    expected = [roc_auc_score(positive, scores[:, c]) for c in range(3)]
    np.testing.assert_allclose(auc_points(scores, positive).mean(axis=0), expected, atol=1e-12)


def test_their_variance_is_that_of_delong():
    rng = np.random.default_rng(1)
    scores, positive = rng.normal(size=50), rng.random(50) < 0.4
    wins = (scores[positive][:, None] > scores[~positive]) + 0.5 * (scores[positive][:, None] == scores[~positive])
    by_positive, by_negative = wins.mean(axis=1), wins.mean(axis=0)
    expected = by_positive.var() / len(by_positive) + by_negative.var() / len(by_negative)
    assert auc_points(scores, positive).var() / 50 == pytest.approx(expected)


def test_the_error_of_the_auc_is_the_spread_over_samples():
    rng = np.random.default_rng(2)
    found, errors = [], []
    for _ in range(300):
        positive = rng.random(80) < 0.5
        points = auc_points(rng.normal(size=80) + positive, positive)
        found.append(points.mean())
        errors.append(points.std(ddof=1) / np.sqrt(80))
    assert np.mean(errors) == pytest.approx(np.std(found), rel=0.15)


def test_scores_that_differ_by_rounding_are_ties():
    positive = np.array([True, False, True, False])
    scores = np.array([0.1 + 0.2, 0.3, 0.5, 0.7])  # the first two differ in the last bit
    assert scores[0] != scores[1]
    assert auc_points(scores, positive).mean() == pytest.approx((0.5 + 0 + 1 + 0) / 4)
    assert auc_points(np.zeros(4), positive).mean() == 0.5
