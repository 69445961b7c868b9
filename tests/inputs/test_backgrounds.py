"""Backgrounds and rows in other forms: shap's maskers, sparse matrices, dictionaries."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from scipy import sparse
from sklearn.linear_model import LinearRegression

import weightedshap as ws
from tests.inputs.lightgbm_example import ARRAY, FRAME, MODEL, ON_ARRAY, explain_rows


@pytest.fixture(scope="module")
def shap():
    return pytest.importorskip("shap")


def test_samples_and_maskers_of_shap_are_backgrounds(shap):
    expected = explain_rows(MODEL, FRAME[:90])
    for masker in (shap.maskers.Independent(FRAME[:90]), shap.maskers.Partition(FRAME[:90])):
        found = explain_rows(MODEL, masker)
        assert found.feature_names == tuple("abcd")
        np.testing.assert_allclose(found.values, expected.values)
    assert explain_rows(MODEL, shap.sample(FRAME, 20)).game_info["background_rows"] == 20
    np.testing.assert_array_equal(
        explain_rows(ON_ARRAY, ARRAY, shap.maskers.Independent(ARRAY[:5])).data, ARRAY[:5]
    )


@pytest.mark.parametrize(
    ("model", "table"), [(MODEL, FRAME), (ON_ARRAY, ARRAY)], ids=["frame", "array"]
)
def test_centres_of_kmeans_keep_their_weights(shap, model, table):
    centres = shap.kmeans(table, 7)
    explainer = ws.Explainer(model, centres, game="marginal")
    np.testing.assert_allclose(
        explainer.background.weights, centres.weights / centres.weights.sum()
    )
    assert len(set(explainer.background.weights)) > 1
    rows = pd.DataFrame(centres.data, columns=FRAME.columns) if model is MODEL else centres.data
    values = explainer(table[:3]).base_values
    np.testing.assert_allclose(
        values, (centres.weights / centres.weights.sum()) @ model.predict(rows)
    )
    given = ws.Explainer(model, centres, game="marginal", background_weights=np.ones(7))
    assert len(set(given.background.weights)) == 1


def test_the_error_of_a_masker_without_a_table_says_what_to_pass(shap):
    with pytest.raises(
        TypeError, match=r"Text of shap holds no table. Pass the background rows .*from_shap"
    ):
        ws.Explainer(MODEL, shap.maskers.Text())


def test_sparse_matrices_are_refused_with_what_to_pass():
    with pytest.raises(TypeError, match=r"Pass `\.toarray\(\)` of it; for XGBoost"):
        ws.Explainer(ON_ARRAY, sparse.csr_matrix(ARRAY))
    with pytest.raises(TypeError, match=r"Pass `\.toarray\(\)` of it"):
        explain_rows(ON_ARRAY, ARRAY, sparse.csr_array(ARRAY[:3]))


def test_dicts_are_rows():
    records = FRAME.to_dict("records")
    expected = explain_rows(MODEL, FRAME)
    for found in (explain_rows(MODEL, FRAME, records[:3]), explain_rows(MODEL, records)):
        np.testing.assert_allclose(found.values, expected.values)
    with pytest.raises(ValueError, match=r"Some rows lack 'd'\. Give every row the same names"):
        explain_rows(MODEL, FRAME, [records[0], {"a": 1.0, "b": 1.0, "c": 1.0}])


@pytest.mark.parametrize("kind", [LGBMRegressor, LinearRegression])
def test_a_class_is_no_model(kind):
    with pytest.raises(TypeError, match=rf"{kind.__name__} is a class. Pass a fitted model of it"):
        ws.Explainer(kind, FRAME)
