"""The marginal game: hidden features are averaged over the background, whatever the batches."""

import numpy as np
import pandas as pd
import pytest

from tests.oracles import linear_model, normal_rows, product_model, three_outputs
from weightedshap.coalitions import all_coalitions
from weightedshap.estimators import exact
from weightedshap.games import Marginal
from weightedshap.inputs import as_model, as_table

ROW = np.array([0.5, -1.0, 2.0, 0.1])
BACKGROUND = normal_rows(7)
ALL = all_coalitions(4)


def game(model=product_model, background=BACKGROUND, **choices):
    return Marginal(**choices).fit(model, background).at(ROW)


def test_hidden_features_are_averaged_over_all_background_rows():
    expected = [product_model(np.where(known, ROW, BACKGROUND)).mean() for known in ALL]
    np.testing.assert_allclose(game()(ALL), expected, rtol=1e-12)


def test_hidden_features_are_averaged_with_the_rows_weights():
    weights = np.arange(1.0, 8.0)
    expected = [np.average(product_model(np.where(known, ROW, BACKGROUND)), weights=weights) for known in ALL]
    np.testing.assert_allclose(game(background=as_table(BACKGROUND, weights))(ALL), expected, rtol=1e-12)


def test_several_outputs_are_averaged_apart():
    values = game(three_outputs)(ALL)
    expected = [three_outputs(np.where(known, ROW, BACKGROUND)).mean(axis=0) for known in ALL]
    np.testing.assert_allclose(values, expected, rtol=1e-12)


def test_the_empty_game_is_the_mean_prediction_and_the_whole_game_the_rows():
    fitted = Marginal().fit(product_model, BACKGROUND)
    empty, full = fitted.at(ROW)(np.array([[False] * 4, [True] * 4]))
    assert empty == pytest.approx(product_model(BACKGROUND).mean())
    assert empty == pytest.approx(float(fitted.mean_prediction))
    assert full == pytest.approx(product_model(ROW[None])[0])
    assert full == pytest.approx(fitted.predict(ROW[None])[0])


@pytest.mark.parametrize("model", [product_model, three_outputs])
@pytest.mark.parametrize("n", [7, 300])
@pytest.mark.parametrize("batch_bytes", [32, 100, 8 * 4 * 7, 8 * 4 * 300, 40_000])
def test_values_do_not_depend_on_the_batches_in_any_bit(model, n, batch_bytes):
    small, large = (game(model, normal_rows(n), batch_bytes=size) for size in (batch_bytes, 2**20))
    np.testing.assert_array_equal(small(ALL), large(ALL))


@pytest.mark.parametrize("batch_bytes", [32, 100, 8 * 4 * 7, 1_000])
def test_no_batch_is_larger_than_asked_for(batch_bytes):
    seen = []

    def watched(rows):
        seen.append(rows.nbytes)
        return product_model(rows)

    bound = game(watched, batch_bytes=batch_bytes)
    seen.clear()  # the model was probed on two rows
    bound(ALL)
    assert max(seen) <= batch_bytes
    assert sum(seen) == 16 * BACKGROUND.nbytes


def test_a_frame_gives_the_same_values_as_an_array():
    frame = pd.DataFrame(BACKGROUND, columns=list("abcd"))
    np.testing.assert_array_equal(game(background=frame)(ALL), game()(ALL))
    np.testing.assert_array_equal(game(background=frame, batch_bytes=100)(ALL), game()(ALL))


def test_a_linear_model_has_contributions_by_distance_from_the_mean():
    weights = np.array([1.0, -2.0, 0.5, 0.0])
    delta = exact(game(linear_model(weights))).mean
    np.testing.assert_allclose(delta, np.tile(weights * (ROW - BACKGROUND.mean(axis=0)), (4, 1)), atol=1e-12)


def test_a_column_the_model_does_not_read_contributes_nothing():
    delta = exact(game(lambda rows: rows[:, 0] * rows[:, 1])).mean
    np.testing.assert_allclose(delta[:, 2:], 0, atol=1e-14)


def test_a_group_is_hidden_as_a_whole():
    background = as_table(BACKGROUND, groups=[["x0", "x1"]])
    values = game(background=background)(np.array([[True, False, False]]))
    known = np.array([True, True, False, False])
    np.testing.assert_allclose(values, product_model(np.where(known, ROW, BACKGROUND)).mean())


def test_a_model_that_fails_on_mixed_rows_is_refused():
    broken = lambda rows: np.where(rows[:, 0] == ROW[0], np.nan, 1.0)
    with pytest.raises(ValueError, match=r"The model returned .* NaN or infinite"):
        game(broken)(ALL)


def test_the_model_sees_the_columns_in_the_order_of_the_background():
    frame = pd.DataFrame(BACKGROUND, columns=list("abcd"))
    seen = []

    def watched(rows):
        seen.append(list(rows.columns))
        return product_model(rows)

    fitted = Marginal().fit(watched, frame)
    shuffled = pd.DataFrame([ROW], columns=list("abcd"))[["d", "b", "a", "c"]]
    np.testing.assert_array_equal(fitted.at(shuffled)(ALL), game()(ALL))
    assert all(columns == list("abcd") for columns in seen)


@pytest.mark.filterwarnings("ignore:The set_:PendingDeprecationWarning")  # matplotlib's, from shap's colours
def test_the_shapley_value_agrees_with_shaps_exact_explainer():
    import shap

    masker = shap.maskers.Independent(BACKGROUND, max_samples=len(BACKGROUND))
    theirs = shap.explainers.Exact(product_model, masker)(ROW[None])
    np.testing.assert_allclose(exact(game()).mean.mean(axis=0), theirs.values[0], atol=1e-10)
    assert theirs.base_values[0] == pytest.approx(game()(ALL[:1])[0])


def test_a_wrapped_model_and_table_are_taken_as_they_are():
    table = as_table(BACKGROUND)
    model = as_model(three_outputs, table, outputs=2)
    fitted = Marginal().fit(model, table)
    assert fitted.model is model
    assert fitted.background is table
    assert fitted.info == {"game": "marginal", "background_rows": 7}
