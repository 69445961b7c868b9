"""The points behind the inclusion metrics: their mean is the metric, their spread its error."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from weightedshap.evaluation.metrics import as_labels, auc_points


@pytest.mark.parametrize("levels", [None, 4])
def test_the_mean_of_the_points_is_the_auc(levels):
    rng = np.random.default_rng(0)
    scores = (
        rng.normal(size=(60, 3))
        if levels is None
        else rng.integers(levels, size=(60, 3)).astype(float)
    )
    positive = rng.random(60) < 0.3
    expected = [roc_auc_score(positive, scores[:, c]) for c in range(3)]
    np.testing.assert_allclose(auc_points(scores, positive).mean(axis=0), expected, atol=1e-12)


def test_their_variance_is_that_of_delong():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=50)
    positive = rng.random(50) < 0.4
    wins = (scores[positive][:, None] > scores[~positive]) + 0.5 * (
        scores[positive][:, None] == scores[~positive]
    )
    by_positive = wins.mean(axis=1)
    by_negative = wins.mean(axis=0)
    expected = by_positive.var() / len(by_positive) + by_negative.var() / len(by_negative)
    assert auc_points(scores, positive).var() / 50 == pytest.approx(expected)


def test_the_error_of_the_auc_is_the_spread_over_samples():
    rng = np.random.default_rng(2)
    found = []
    errors = []
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


@pytest.mark.parametrize(
    ("y", "names", "n_raw", "chosen", "expected"),
    [
        (["b", "a", "b", "c"], ("a", "b"), 3, (0, 1), [[0, 1], [1, 0], [0, 1], [0, 0]]),
        (["no", "yes", "yes"], ("0", "1"), 2, (0, 1), [[1, 0], [0, 1], [0, 1]]),
        (["no", "yes", "yes"], ("1",), 2, (1,), [[0], [1], [1]]),
        (["no", "yes", "yes"], ("margin",), 1, (0,), [[0], [1], [1]]),
        ([0, 1, 2, 2], ("third",), 3, (2,), [[0], [0], [1], [1]]),
        ([0, 2, 2], ("first",), 3, (0,), [[1], [0], [0]]),
        ([1, 2, 2], ("second",), 3, (1,), [[1], [0], [0]]),
    ],
    ids=[
        "by name",
        "two of two",
        "one of two",
        "a margin",
        "by position",
        "two seen of three",
        "not the first seen",
    ],
)
def test_labels_are_compared_with_the_class_of_an_output(y, names, n_raw, chosen, expected):
    model = SimpleNamespace(
        space="probability", output_names=names, n_raw=n_raw, output_positions=chosen
    )
    labels = as_labels(np.array(y), len(y), len(names), model)
    assert labels.kind == "auc"
    np.testing.assert_array_equal(labels.targets, expected)


def test_labels_that_match_no_output_are_refused():
    model = SimpleNamespace(
        space="probability", output_names=("0",), n_raw=3, output_positions=(0,)
    )
    with pytest.raises(ValueError, match="do not match the output '0'"):
        as_labels(np.array(["no", "yes", "perhaps"]), 3, 1, model)


@pytest.mark.parametrize(("apart", "auc"), [(3e-12, 1.0), (3e-13, 0.5)])
def test_scores_are_ties_below_a_billionth_of_a_thousandth_of_the_largest(apart, auc):
    scores = np.array([100.0, 50.0, 50.0 + 100 * apart])
    positive = np.array([False, False, True])
    assert auc_points(scores, positive).mean() == pytest.approx(auc / 2)
