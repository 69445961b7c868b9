"""People's models: how they are called, which outputs are explained, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from tests.oracles import normal_rows, product_model, three_outputs
from weightedshap.models import as_model
from weightedshap.tables import as_table

ROWS = normal_rows(30)
NAMES = list("abcd")


def wrapped(model, rows=ROWS, **choices):
    return as_model(model, as_table(rows), **choices)


def classifier(classes, rows=ROWS):
    """A classifier of `classes`, fitted on arrays or on a frame."""
    labels = np.asarray(classes)[np.digitize(np.asarray(rows)[:, 0], [-0.5, 0.5][: len(classes) - 1])]
    return LogisticRegression().fit(rows, labels)


def test_a_function_is_called_directly():
    model = wrapped(product_model)
    np.testing.assert_array_equal(model(ROWS), product_model(ROWS))
    assert (model.space, model.output_names, model.original) == ("value", ("output",), product_model)


def test_a_regressor_is_called_through_predict():
    regressor = LinearRegression().fit(ROWS, product_model(ROWS))
    model = wrapped(regressor)
    np.testing.assert_array_equal(model(ROWS), regressor.predict(ROWS))
    assert model.space == "value"


def test_a_classifier_of_two_classes_is_explained_by_the_second_ones_probability():
    binary = classifier(["no", "yes"])
    model = wrapped(binary)
    np.testing.assert_array_equal(model(ROWS), binary.predict_proba(ROWS)[:, 1])
    assert (model.space, model.output_names) == ("probability", ("yes",))


def test_a_classifier_of_three_classes_is_explained_class_by_class():
    model = wrapped(classifier(["a", "b", "c"]))
    assert model(ROWS).shape == (30, 3)
    assert model.output_names == ("a", "b", "c")


def test_predict_overrides_how_the_model_is_called():
    binary = classifier(["no", "yes"])
    model = wrapped(binary, predict=binary.decision_function)
    np.testing.assert_array_equal(model(ROWS), binary.decision_function(ROWS))
    assert model.space == "value"


def test_one_column_of_outputs_is_one_output_without_an_axis():
    assert wrapped(lambda rows: rows[:, :1])(ROWS).shape == (30,)


@pytest.mark.parametrize("output", [1, -2, np.int64(1), "output 1"])
def test_one_output_chosen_by_position_or_name_has_no_axis(output):
    np.testing.assert_array_equal(wrapped(three_outputs, outputs=output)(ROWS), three_outputs(ROWS)[:, 1])


@pytest.mark.parametrize("outputs", [[1], ["output 1"], (1,)])
def test_a_list_of_one_output_keeps_the_axis(outputs):
    np.testing.assert_array_equal(wrapped(three_outputs, outputs=outputs)(ROWS), three_outputs(ROWS)[:, [1]])


def test_a_list_of_outputs_is_explained_in_its_order():
    model = wrapped(three_outputs, outputs=[2, "output 0"])
    np.testing.assert_array_equal(model(ROWS), three_outputs(ROWS)[:, [2, 0]])
    assert model.output_names == ("output 2", "output 0")


def test_both_classes_of_two_can_be_asked_for():
    assert wrapped(classifier(["no", "yes"]), outputs=["no", "yes"])(ROWS).shape == (30, 2)


@pytest.mark.parametrize("output", [3, -4, "output 7", [0, 3]])
def test_an_output_that_is_not_there_is_refused(output):
    with pytest.raises(ValueError, match=r"Unknown output .* Or a position 0\.\.2"):
        wrapped(three_outputs, outputs=output)


def test_an_empty_list_of_outputs_is_refused():
    with pytest.raises(ValueError, match="`outputs` is an empty list"):
        wrapped(three_outputs, outputs=[])


@pytest.mark.parametrize("model", [None, 3, "model"])
def test_what_cannot_be_called_is_no_model(model):
    with pytest.raises(TypeError, match=r"Cannot call a .* as a model"):
        wrapped(model)


def test_predict_must_be_a_function():
    with pytest.raises(TypeError, match="`predict` must be a function of rows; got str"):
        wrapped(product_model, predict="predict_proba")


def test_a_background_of_another_width_than_the_models_is_refused():
    regressor = LinearRegression().fit(ROWS, product_model(ROWS))
    with pytest.raises(ValueError, match="background has 3 columns but the model expects 4"):
        wrapped(regressor, ROWS[:, :3])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_model_that_returns_no_finite_number_is_refused(bad):
    with pytest.raises(ValueError, match="The model returned 2 NaN or infinite values out of 2"):
        wrapped(lambda rows: np.full(len(rows), bad))


@pytest.mark.parametrize("length", [1, 7])
def test_a_model_that_returns_another_length_is_refused(length):
    with pytest.raises(ValueError, match="for each of 2 inputs"):
        wrapped(lambda rows: np.zeros(length))


def test_a_model_that_changes_its_number_of_outputs_is_refused():
    model = wrapped(lambda rows: np.zeros((len(rows), 2 if len(rows) < 5 else 3)))
    with pytest.raises(ValueError, match="returned 3 outputs where it returned 2 before"):
        model(ROWS)


def test_a_classifier_of_labels_is_refused_with_advice():
    with pytest.raises(TypeError, match="Pass `predict=` a function that returns probabilities"):
        wrapped(lambda rows: np.array(["yes"] * len(rows)))


def test_a_wrapped_model_is_kept_as_it_is():
    model = wrapped(product_model)
    assert wrapped(model) is model


@pytest.mark.parametrize("fitted_on", [ROWS, pd.DataFrame(ROWS, columns=NAMES)])
@pytest.mark.parametrize("background", [ROWS, pd.DataFrame(ROWS, columns=NAMES)])
def test_a_model_is_fed_the_kind_of_rows_it_was_fitted_on(fitted_on, background):
    regressor = LinearRegression().fit(fitted_on, product_model(ROWS))
    np.testing.assert_allclose(wrapped(regressor, background)(background), regressor.predict(fitted_on))
