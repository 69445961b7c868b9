"""Predictions and columns of any size: units do not matter, up to what cannot be squared."""

import numpy as np
import pytest

from tests.inputs.lightgbm_example import ARRAY, explain_rows
from weightedshap.games import DistilledTrees, TreeSurrogate

GAMES = [TreeSurrogate(trees=20, masks=8), DistilledTrees(), "marginal"]


@pytest.mark.parametrize("game", GAMES, ids=["surrogate", "distilled", "marginal"])
@pytest.mark.parametrize(
    ("scale", "offset"), [(5.0, 1.7e9), (1e20, 0.0), (1e-20, 0.0), (1e20, 1e24)]
)
def test_offsets_and_units_of_predictions_do_not_matter(game, scale, offset):
    plain = explain_rows(lambda X: X[:, 0], ARRAY, ARRAY[:5], game=game)
    far = explain_rows(lambda X: offset + scale * X[:, 0], ARRAY, ARRAY[:5], game=game)
    assert np.abs(plain.values[:, 0]).mean() > 0.3
    np.testing.assert_allclose(far.values / scale, plain.values, atol=1e-3 if offset else 1e-5)


@pytest.mark.parametrize("scale", [1e40, 1e-40])
@pytest.mark.parametrize("game", [*GAMES[:2], "auto"], ids=["surrogate", "distilled", "auto"])
def test_predictions_of_a_size_that_boosted_trees_lose_are_refused(game, scale):
    with pytest.raises(ValueError, match=r"differ by \de[+-](40|41) .* in another unit"):
        explain_rows(lambda X: scale * X[:, 0], ARRAY, game=game)
    plain, far = (
        explain_rows(lambda X, by=by: by * X[:, 0], ARRAY, ARRAY[:5]) for by in (1, scale)
    )  # nothing is learned
    np.testing.assert_allclose(far.values / scale, plain.values)


def test_a_large_offset_leaves_the_default_as_it_is():
    explanation = explain_rows(lambda X: 1.7e9 + 5 * X[:, 0], ARRAY, ARRAY[:5], game="auto")
    np.testing.assert_allclose(explanation.values[:, 0], 5 * ARRAY[:5, 0], atol=0.6)
    assert np.abs(explanation.values[:, 1:]).max() < 0.2


def test_numbers_that_cannot_be_squared_are_refused():
    with pytest.raises(
        ValueError, match=r"returned \de\+\d+, and squares of numbers beyond 1e\+150 overflow"
    ):
        explain_rows(lambda X: 1e300 * X[:, 0], ARRAY)
    with pytest.raises(
        ValueError,
        match=r"Column 'x1' of the background holds numbers beyond 1e\+150.* larger unit",
    ):
        explain_rows(lambda X: X[:, 0], ARRAY * [1.0, 1e300, 1.0, 1.0])
    for game in ("tree_surrogate", "gaussian", "auto"):
        with pytest.raises(ValueError, match="Column 'x1' holds an infinite value, or one beyond"):
            explain_rows(lambda X: X[:, 0], ARRAY, [[0.0, 1e300, 0.0, 0.0]], game=game)
