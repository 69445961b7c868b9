"""The baseline game: hidden features take fixed values."""

import numpy as np
import pandas as pd
import pytest

from tests.oracles import linear_model, normal_rows, product_model
from weightedshap.coalitions import all_coalitions
from weightedshap.estimators import exact
from weightedshap.games import Baseline
from weightedshap.inputs import as_table

ROW = np.array([0.5, -1.0, 2.0, 0.1])
FIXED = np.array([1.0, 2.0, 3.0, 4.0])


def test_hidden_features_take_the_given_values():
    game = Baseline(FIXED).fit(product_model, normal_rows(5)).at(ROW)
    rows = np.where(all_coalitions(4), ROW, FIXED)
    np.testing.assert_allclose(game(all_coalitions(4)), product_model(rows), rtol=1e-15)


def test_hidden_features_take_the_means_by_default():
    background = normal_rows(5)
    game = Baseline().fit(product_model, background).at(ROW)
    empty = game(np.zeros((1, 4), dtype=bool))
    np.testing.assert_allclose(empty, product_model(background.mean(axis=0)[None]), rtol=1e-12)


def test_hidden_features_take_weighted_means():
    background = as_table(normal_rows(3), weights=[1, 0, 1])
    game = Baseline().fit(linear_model([1, 0, 0, 0]), background).at(ROW)
    assert game(np.zeros((1, 4), dtype=bool))[0] == pytest.approx(normal_rows(3)[[0, 2], 0].mean())


def test_hidden_categories_take_the_mode():
    frame = pd.DataFrame({"city": ["Ulm", "Bonn", "Ulm"], "n": [1.0, 2.0, 6.0]})
    length = lambda rows: rows["city"].str.len().to_numpy() + 10 * rows["n"].to_numpy()
    game = Baseline().fit(length, frame).at({"city": "Bonn", "n": 0.0})
    np.testing.assert_allclose(game(all_coalitions(2)), [33, 34, 3, 4])


def test_a_linear_model_has_contributions_by_distance_from_the_baseline():
    weights = np.array([1.0, -2.0, 0.5, 0.0])
    delta = exact(Baseline(FIXED).fit(linear_model(weights), normal_rows(5)).at(ROW)).mean
    np.testing.assert_allclose(delta, np.tile(weights * (ROW - FIXED), (4, 1)), atol=1e-12)


def test_a_group_is_hidden_as_a_whole():
    background = as_table(normal_rows(5), groups={"pair": ["x0", "x2"]})
    game = Baseline(FIXED).fit(product_model, background).at(ROW)
    rows = np.array([[ROW[0], 2.0, ROW[2], 4.0]])
    np.testing.assert_allclose(game(np.array([[True, False, False]])), product_model(rows))


@pytest.mark.parametrize("values", [np.zeros((2, 4)), np.zeros(3)])
def test_values_that_are_not_one_row_of_the_background_are_refused(values):
    with pytest.raises(ValueError, match="`values`"):
        Baseline(values).fit(product_model, normal_rows(5))


def test_a_fitted_game_says_what_it_is():
    fitted = Baseline().fit(product_model, normal_rows(5))
    assert fitted.info == {"game": "baseline", "space": "value", "background_rows": 5}
    assert fitted.space == "value"
    np.testing.assert_allclose(fitted.mean_prediction, product_model(normal_rows(5)).mean())
