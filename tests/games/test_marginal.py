"""The marginal game: hidden features are averaged over the background, whatever the batches."""

import numpy as np
import pandas as pd
import pytest

from tests.games.batches import batch_at
from tests.oracles import linear_model, normal_rows, product_model, three_outputs
from weightedshap.coalitions import all_coalitions
from weightedshap.estimators import exact
from weightedshap.games import Baseline, Marginal
from weightedshap.games.surrogates.data import MaskedRows
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
    expected = [
        np.average(product_model(np.where(known, ROW, BACKGROUND)), weights=weights)
        for known in ALL
    ]
    np.testing.assert_allclose(
        game(background=as_table(BACKGROUND, weights))(ALL), expected, rtol=1e-12
    )


def test_each_of_several_outputs_is_averaged_by_itself():
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
def test_no_batch_is_larger_than_allowed(batch_bytes):
    seen = []

    def watched(rows):
        seen.append(rows.nbytes)
        return product_model(rows)

    bound = game(watched, batch_bytes=batch_bytes)
    bound(ALL[[0, -1]])
    # The model was probed on two rows, and asked for the whole background and for f(x).
    seen.clear()
    bound(ALL)
    assert max(seen) <= batch_bytes
    assert sum(seen) == 14 * BACKGROUND.nbytes  # the ends are known


def test_a_frame_gives_the_same_values_as_an_array():
    frame = pd.DataFrame(BACKGROUND, columns=list("abcd"))
    np.testing.assert_array_equal(game(background=frame)(ALL), game()(ALL))
    np.testing.assert_array_equal(game(background=frame, batch_bytes=100)(ALL), game()(ALL))


def test_a_linear_model_has_contributions_by_distance_from_the_mean():
    weights = np.array([1.0, -2.0, 0.5, 0.0])
    delta = exact(game(linear_model(weights))).mean
    np.testing.assert_allclose(
        delta, np.tile(weights * (ROW - BACKGROUND.mean(axis=0)), (4, 1)), atol=1e-12
    )


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


@pytest.mark.filterwarnings(
    "ignore:The set_:PendingDeprecationWarning"
)  # matplotlib's, from shap's colours
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
    assert fitted.info == {"game": "marginal", "space": "value", "background_rows": 7}


# a few rows ---------------------------------------------------------------------------------------


def few(rows=3, model=product_model, background=BACKGROUND, seed=0):
    return Marginal(rows=rows).fit(model, background, seed)


def test_a_few_rows_stand_for_the_background():
    fitted = few()
    assert len(set(fitted.drawn)) == 3
    assert fitted.info["rows"] == 3
    expected = [
        product_model(np.where(known, ROW, BACKGROUND[list(fitted.drawn)])).mean() for known in ALL
    ]
    np.testing.assert_allclose(fitted.at(ROW)(ALL), expected, rtol=1e-12)


def test_a_few_rows_are_drawn_by_weight_and_count_as_often_as_they_were_drawn():
    fitted = few(4, background=as_table(BACKGROUND, [0, 3, 0, 1, 0, 0, 0]))
    assert sorted(fitted.drawn) == [1, 1, 1, 3]
    expected = 0.75 * product_model(BACKGROUND[[1]]) + 0.25 * product_model(BACKGROUND[[3]])
    np.testing.assert_allclose(fitted.at(ROW)(ALL[:1]), expected)


def test_one_row_is_the_typical_one():
    np.testing.assert_array_equal(
        few(1).at(ROW)(ALL), Baseline().fit(product_model, BACKGROUND).at(ROW)(ALL)
    )


@pytest.mark.parametrize("rows", [7, 8])
def test_as_many_rows_as_there_are_is_all_of_them(rows):
    assert few(rows).drawn is None


@pytest.mark.parametrize("rows", [1, 3, None])
@pytest.mark.parametrize("model", [product_model, three_outputs])
def test_masked_rows_have_the_values_of_their_games(rows, model):
    fitted = few(rows, model)
    X = normal_rows(5, seed=2)
    masked = MaskedRows(np.repeat([3, 0, 4], len(ALL)), np.tile(ALL, (3, 1)))
    expected = np.concatenate([batch_at(fitted, X[[r]]).values(ALL)[0] for r in (3, 0, 4)])
    np.testing.assert_array_equal(fitted.values_at(X, masked), expected)


def test_masked_rows_ask_the_model_only_for_what_is_not_known():
    n_rows = []

    def counted(rows):
        n_rows.append(len(rows))
        return product_model(rows)

    fitted = few(3, counted).warm_up()
    X = normal_rows(5, seed=2)
    _ = fitted.empty_value
    n_rows.clear()
    fitted.values_at(X, MaskedRows(np.arange(5), ALL[:5]))
    assert sum(n_rows) == 4 * 3
    n_rows.clear()
    fitted.mixed_values(
        X, MaskedRows(np.arange(5), ALL[-5:]), lambda row: product_model(X)[row, None]
    )
    assert sum(n_rows) == 4 * 3


def test_the_few_rows_are_kept():
    fitted = few(3, seed=5)
    again = Marginal.from_state(fitted.state(), fitted.model, fitted.background)
    np.testing.assert_array_equal(again.at(ROW)(ALL), fitted.at(ROW)(ALL))
    assert Marginal.from_state(few(None).state(), fitted.model, fitted.background).drawn is None


def test_a_number_of_rows_that_is_no_positive_integer_is_refused():
    with pytest.raises(ValueError, match="`rows` must be an integer"):
        few(0)
