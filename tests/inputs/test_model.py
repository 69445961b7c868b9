"""Tests of the user's models: how they are called, which outputs are explained, what is refused."""

import importlib
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingRegressor, IsolationForest, VotingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import weightedshap as ws
from tests.inputs.onnx_models import onnx_columns, onnx_linear, open_onnx_session
from tests.oracles import normal_rows, product_model, three_outputs
from weightedshap.inputs import as_model, as_table

ROWS = normal_rows(30)
NAMES = list("abcd")


def wrapped(model, rows=ROWS, **choices):
    return as_model(model, as_table(rows), **choices)


def answers(model, rows=ROWS):
    """Return the predictions as the user sees them, without the axis of a single output."""
    return model(rows) if model.has_output_axis else model(rows)[:, 0]


def classifier(classes, rows=ROWS):
    """Return a classifier of `classes`, fitted on arrays or on a frame."""
    labels = np.asarray(classes)[
        np.digitize(np.asarray(rows)[:, 0], [-0.5, 0.5][: len(classes) - 1])
    ]
    return LogisticRegression().fit(rows, labels)


def test_a_function_is_called_directly():
    model = wrapped(product_model)
    np.testing.assert_array_equal(answers(model), product_model(ROWS))
    assert (model.space, model.output_names, model.original) == (
        "value",
        ("output",),
        product_model,
    )


def test_a_regressor_is_called_through_predict():
    regressor = LinearRegression().fit(ROWS, product_model(ROWS))
    model = wrapped(regressor)
    np.testing.assert_array_equal(answers(model), regressor.predict(ROWS))
    assert model.space == "value"


def test_a_classifier_of_two_classes_is_explained_by_the_second_ones_probability():
    binary = classifier(["no", "yes"])
    model = wrapped(binary)
    np.testing.assert_array_equal(answers(model), binary.predict_proba(ROWS)[:, 1])
    assert (model.space, model.output_names) == ("probability", ("yes",))


def test_a_classifier_of_three_classes_is_explained_class_by_class():
    model = wrapped(classifier(["a", "b", "c"]))
    assert answers(model).shape == (30, 3)
    assert model.output_names == ("a", "b", "c")


def test_predict_overrides_how_the_model_is_called():
    binary = classifier(["no", "yes"])
    model = wrapped(binary, predict=binary.decision_function)
    np.testing.assert_array_equal(answers(model), binary.decision_function(ROWS))
    assert model.space == "value"


def test_one_column_of_outputs_is_one_output_without_an_axis():
    assert answers(wrapped(lambda rows: rows[:, :1])).shape == (30,)


@pytest.mark.parametrize(("outputs", "k"), [(None, 3), (1, 1), ([1], 1), ([2, 0], 2)])
def test_games_get_the_axis_of_outputs_whatever_results_show(outputs, k):
    model = wrapped(three_outputs, outputs=outputs)
    assert model(ROWS).shape == (30, k)
    assert model.has_output_axis == (outputs != 1)


@pytest.mark.parametrize("output", [1, -2, np.int64(1), "output 1"])
def test_one_output_chosen_by_position_or_name_has_no_axis(output):
    np.testing.assert_array_equal(
        answers(wrapped(three_outputs, outputs=output)), three_outputs(ROWS)[:, 1]
    )


@pytest.mark.parametrize("outputs", [[1], ["output 1"], (1,)])
def test_a_list_of_one_output_keeps_the_axis(outputs):
    np.testing.assert_array_equal(
        answers(wrapped(three_outputs, outputs=outputs)), three_outputs(ROWS)[:, [1]]
    )


def test_a_list_of_outputs_is_explained_in_its_order():
    model = wrapped(three_outputs, outputs=[2, "output 0"])
    np.testing.assert_array_equal(answers(model), three_outputs(ROWS)[:, [2, 0]])
    assert model.output_names == ("output 2", "output 0")


def test_both_classes_of_two_can_be_selected():
    assert answers(wrapped(classifier(["no", "yes"]), outputs=["no", "yes"])).shape == (30, 2)


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
    np.testing.assert_allclose(
        answers(wrapped(regressor, background), background), regressor.predict(fitted_on)
    )


# outputs by name ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("output", "column"), [("no", 0), ("yes", 1), (0, 0), (1, 1), (-1, 1)])
def test_either_class_of_two_can_be_explained(output, column):
    binary = classifier(["no", "yes"])
    model = wrapped(binary, outputs=output)
    np.testing.assert_array_equal(answers(model), binary.predict_proba(ROWS)[:, column])
    assert model.output_names == (["no", "yes"][column],)


def test_a_class_that_is_not_there_is_refused_with_the_known_ones():
    with pytest.raises(
        ValueError,
        match=r"Unknown output 'yess'. Did you mean 'yes'\? Known: 'no', 'yes'. Or a pos",
    ):
        wrapped(classifier(["no", "yes"]), outputs="yess")


def test_classes_that_are_numbers_are_named_by_text_and_placed_by_number():
    three = classifier([3, 7, 9])
    np.testing.assert_array_equal(
        wrapped(three, outputs="7")(ROWS), wrapped(three, outputs=1)(ROWS)
    )
    with pytest.raises(ValueError, match="Unknown output 7"):
        wrapped(three, outputs=7)


def test_an_output_named_twice_is_refused():
    with pytest.raises(ValueError, match="`outputs` names 'output 1' more than once"):
        wrapped(three_outputs, outputs=[1, "output 1"])


def test_a_regressor_of_several_targets_is_explained_target_by_target():
    regressor = LinearRegression().fit(ROWS, three_outputs(ROWS))
    model = wrapped(regressor)
    np.testing.assert_array_equal(answers(model), regressor.predict(ROWS))
    assert model.has_output_axis


def test_a_classifier_of_several_targets_is_refused_with_advice():
    targets = np.stack([ROWS[:, 0] > 0, ROWS[:, 1] > 0], axis=1).astype(int)
    with pytest.raises(ValueError, match="a list of 2 tables, one for each of several targets"):
        wrapped(DecisionTreeClassifier().fit(ROWS, targets))


def test_classifiers_that_answer_with_labels_of_classes_are_refused():
    labels = (ROWS[:, 0] > 0).astype(int)
    voting = VotingClassifier(
        [("tree", DecisionTreeClassifier()), ("line", LogisticRegression())]
    ).fit(ROWS, labels)
    with pytest.raises(
        TypeError, match=r"VotingClassifier answers with labels of classes.*`predict=`"
    ):
        wrapped(voting)
    assert (
        answers(wrapped(voting, predict=lambda rows: voting.predict(rows) == 1)).tolist()
        == labels.tolist()
    )
    xgboost = pytest.importorskip("xgboost")
    matrix = xgboost.DMatrix(ROWS, labels)
    booster = xgboost.train({"objective": "multi:softmax", "num_class": 2, "nthread": 1}, matrix, 2)
    with pytest.raises(TypeError, match="multi:softmax answers with labels"):
        wrapped(booster)


@pytest.mark.parametrize("outputs", [1.5, object(), {"0": 1}])
def test_outputs_must_be_positions_or_names(outputs):
    with pytest.raises(TypeError, match="`outputs` must be a position, a name, or a list of them"):
        wrapped(three_outputs, outputs=outputs)


# scales -------------------------------------------------------------------------------------------


def test_log_odds_are_explained_on_request():
    binary = classifier(["no", "yes"])
    model = wrapped(binary, link="logit")
    np.testing.assert_allclose(answers(model), binary.decision_function(ROWS), rtol=1e-9)
    assert (model.space, model.output_names) == ("margin", ("yes",))


def test_log_odds_of_certainty_are_finite_and_symmetric():
    odds = wrapped(lambda rows: (rows[:, 0] > 0).astype(float), link="logit")(ROWS)
    np.testing.assert_allclose(np.unique(np.abs(odds)), np.log(1e12), rtol=1e-4)


def test_log_odds_of_what_is_no_probability_are_refused():
    with pytest.raises(
        ValueError, match=r"needs probabilities between 0 and 1, but the model returned -?\d"
    ):
        wrapped(lambda rows: 5.0 + rows[:, 0], link="logit")


def test_an_unknown_link_is_refused():
    with pytest.raises(ValueError, match="Did you mean 'logit'"):
        wrapped(product_model, link="logits")


def test_a_classifier_without_probabilities_is_explained_by_its_margin():
    machine = LinearSVC().fit(ROWS, np.where(ROWS[:, 0] > 0, "yes", "no"))
    model = wrapped(machine)
    np.testing.assert_array_equal(answers(model), machine.decision_function(ROWS))
    assert (model.space, model.output_names) == ("margin", ("yes",))


# called as trained --------------------------------------------------------------------------------


def test_a_frame_in_another_order_than_in_training_is_put_in_order():
    frame = pd.DataFrame(ROWS, columns=NAMES)
    regressor = LinearRegression().fit(frame, product_model(ROWS))
    game = ws.games.Marginal().fit(regressor, frame[["d", "b", "a", "c"]], 0)
    assert game.background.names == ("a", "b", "c", "d")
    np.testing.assert_allclose(game.predict(game.background.data), regressor.predict(frame))


def test_a_model_that_writes_into_its_rows_writes_into_a_copy():
    def model(rows):
        rows *= 0.0
        return rows.sum(axis=1)

    X = normal_rows(30)
    before = X.copy()
    ws.Explainer(model, X, game="marginal")(X[:2])
    np.testing.assert_array_equal(X, before)


def test_large_calls_are_cut_into_batches(monkeypatch):
    monkeypatch.setattr("weightedshap.inputs.model.BATCH_BYTES", 8 * 4 * 7)
    seen = []
    model = wrapped(lambda rows: seen.append(len(rows)) or product_model(rows))
    np.testing.assert_array_equal(answers(model), product_model(ROWS))
    assert max(seen) == 7


# torch --------------------------------------------------------------------------------------------


def dropping_network(torch):
    torch.manual_seed(0)
    inner = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.ReLU())
    return torch.nn.Sequential(inner, torch.nn.Linear(8, 1))


def test_a_torch_module_is_called_in_eval_mode_and_left_as_it_was():
    torch = pytest.importorskip("torch")
    module = dropping_network(torch)
    module[1].eval()  # one part in another mode than the rest
    before = [part.training for part in module.modules()]
    model = wrapped(module)
    np.testing.assert_array_equal(model(ROWS), model(ROWS))
    assert [part.training for part in module.modules()] == before
    assert all(p.grad is None for p in module.parameters())


def test_no_thread_meets_a_torch_module_in_training_mode():
    torch = pytest.importorskip("torch")

    class Slow(torch.nn.Module):
        def forward(self, X):
            time.sleep(0.01)
            return X[:, 0] * (0.0 if self.training else 1.0)

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(wrapped(Slow()), [ROWS] * 8))
    np.testing.assert_array_equal(answers, [ROWS[:, :1].astype(np.float32)] * 8)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_a_torch_module_gets_rows_in_its_own_precision(precision):
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, precision)
    module = dropping_network(torch).to(dtype).eval()
    with torch.no_grad():
        expected = module(torch.tensor(ROWS, dtype=dtype))[:, 0].numpy()
    for rows in (ROWS, pd.DataFrame(ROWS, columns=NAMES)):
        np.testing.assert_allclose(answers(wrapped(module, rows), rows), expected, rtol=1e-6)


def test_a_torch_module_that_fails_is_left_as_it_was():
    torch = pytest.importorskip("torch")
    module = dropping_network(torch)
    with pytest.raises(RuntimeError):
        wrapped(module, ROWS[:, :3])
    assert all(part.training for part in module.modules())


def test_text_is_refused_for_a_torch_module():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"Column 'city' of `X` holds 'Ulm' where .* numbers"):
        wrapped(torch.nn.Linear(1, 1), pd.DataFrame({"city": ["Ulm"]}))


# onnx ---------------------------------------------------------------------------------------------


def test_an_onnx_session_takes_one_matrix():
    session = onnx_linear([1.0, 2.0, 3.0, 4.0])
    for rows in (ROWS, pd.DataFrame(ROWS, columns=NAMES)):
        model = wrapped(session, rows)
        np.testing.assert_allclose(answers(model, rows), ROWS @ [1, 2, 3, 4], rtol=1e-5, atol=1e-5)
    assert model.space == "value"


def test_an_onnx_session_takes_columns_by_name_and_probabilities_are_known_by_theirs():
    session = onnx_columns()
    frame = pd.DataFrame({"b": [1.0, 0.0], "city": ["Ulm", "Bonn"]})
    model = wrapped(session, frame)
    np.testing.assert_allclose(answers(model, frame), [1.0, 0.0])
    assert model.space == "probability"


def test_an_onnx_session_of_whole_numbers_is_handed_no_fractions_and_no_holes():
    nodes = [("Cast", ["n"], ["y"], {"to": 1})]
    session = open_onnx_session(nodes, [("n", "INT64", 2)], [("y", "FLOAT", 2)])
    rows = np.array([[1, 2], [4, 4]])
    np.testing.assert_array_equal(wrapped(session, rows)(rows), rows)
    frame = pd.DataFrame(rows, columns=["a", "b"])
    np.testing.assert_array_equal(wrapped(session, frame)(frame), rows)
    for bad in (frame + 0.5, frame.astype(float).where(frame > 1)):
        with pytest.raises(ValueError, match="takes int64 and was handed numbers that are not"):
            wrapped(session, bad)


def test_a_model_of_two_labels_is_not_taken_for_two_classes():
    rows = normal_rows(60)
    labels = np.stack([rows[:, 0] > 0, rows[:, 1] > 0.3], axis=1).astype(int)
    model = OneVsRestClassifier(LogisticRegression()).fit(rows, labels)
    explanation = ws.Explainer(model, rows[:50], game="baseline", progress=False)(rows[50:])
    assert explanation.output_names == ("output 0", "output 1")
    np.testing.assert_allclose(explanation.predictions, model.predict_proba(rows[50:]))


def test_an_outlier_detector_is_explained_by_its_score_not_its_labels():
    rows = normal_rows(60)
    model = IsolationForest(n_estimators=5, random_state=0).fit(rows)
    explanation = ws.Explainer(model, rows[:50], game="baseline", progress=False)(rows[50:])
    np.testing.assert_allclose(explanation.predictions, model.decision_function(rows[50:]))


def test_labels_of_clusters_are_refused():
    rows = normal_rows(60)
    with pytest.raises(TypeError, match="labels of classes or clusters"):
        ws.Explainer(KMeans(3, n_init=1, random_state=0).fit(rows), rows, game="baseline")


def test_a_masked_array_has_holes_where_it_is_masked():
    rows = normal_rows(60)
    masked = np.ma.masked_array(rows, mask=np.random.default_rng(0).random(rows.shape) < 0.2)
    holes = np.ma.filled(masked, np.nan)
    model = HistGradientBoostingRegressor(max_iter=5).fit(holes, rows[:, 0])
    one, other = (
        ws.Explainer(model, table[:50], game="marginal", progress=False)(table[50:])
        for table in (masked, holes)
    )
    assert one.equals(other)
    with pytest.raises(ValueError, match="`background_weights` must be finite"):
        ws.Explainer(model, holes, background_weights=masked[:, 0], game="baseline")


def test_a_masked_answer_of_the_model_is_not_taken_for_a_number():
    rows = normal_rows(20)
    with pytest.raises(ValueError, match="returned 2 NaN or infinite values"):
        ws.Explainer(
            lambda table: np.ma.masked_array(table[:, 0], mask=True), rows, game="baseline"
        )


@pytest.mark.parametrize("library", ["lightgbm", "catboost", "onnxruntime"])
def test_an_error_of_a_library_is_reported_in_one_sentence(library):
    """Their errors are of classes of their own, which no caller knows."""
    pytest.importorskip(library)
    errors = {
        "lightgbm": ("lightgbm.basic", "LightGBMError"),
        "catboost": ("_catboost", "CatBoostError"),
        "onnxruntime": ("onnxruntime.capi.onnxruntime_pybind11_state", "Fail"),
    }
    module, name = errors[library]
    kind = getattr(importlib.import_module(module), name)

    def refusing(rows):
        raise kind("these are too many rows\nin file model.cc")

    with pytest.raises(
        ValueError, match=r"cannot predict these rows: these are too many rows$"
    ) as raised:
        wrapped(refusing)
    assert isinstance(raised.value.__cause__, kind)
