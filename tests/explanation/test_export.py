"""Explanations in the hands of shap and shapiq: the numbers, and every plot, without a warning."""

import re
import sys
import warnings
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

import weightedshap as ws
from tests.oracles import additive, normal_rows, product_model, random_game, three_outputs
from weightedshap._checks import UnknownNameError
from weightedshap.explanation.export import normalise, to_shap, to_shapiq

with warnings.catch_warnings():  # both set colours by functions that matplotlib will deprecate
    warnings.filterwarnings(
        "ignore", "The set_(bad|over|under) function", PendingDeprecationWarning
    )
    shap = pytest.importorskip("shap")
    shapiq = pytest.importorskip("shapiq")

pytestmark = pytest.mark.filterwarnings("ignore:.*were shifted instead")

N = 8
D = 4
BACKGROUND = normal_rows(9)
X = normal_rows(N, seed=1)


def explain(model=product_model, **choices):
    return ws.Explainer(model, BACKGROUND, **{"game": "marginal", **choices})(X)


def explain_by_sampling():
    return explain(estimator="permutation", evaluations=60)


def frame(n, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.normal(size=n),
            "town": pd.Categorical(rng.choice(["b", "a", "c"], n), categories=["b", "a", "c"]),
            "word": rng.choice(["u", "v"], n),
            "flag": rng.random(n) > 0.5,
        }
    )


def frame_model(rows):
    age = rows["age"].to_numpy()
    return (
        age * rows["flag"].to_numpy()
        + (rows["town"] == "a").to_numpy()
        + 2 * (rows["word"] == "u").to_numpy() * age
    )


def explained_frame():
    return ws.Explainer(frame_model, frame(20, 0), game="marginal")(frame(N, 1))


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")
    plt.rcdefaults()


SOURCES = {
    "scaled": lambda: explain().to_shap("scale"),
    "one of three outputs": lambda: explain(three_outputs).to_shap()[:, :, "output 0"],
    "with standard errors": lambda: explain_by_sampling().to_shap("scale"),
    "a frame": lambda: explained_frame().to_shap("shift"),
}

PLOTS = {
    "bar": lambda e: shap.plots.bar(e, show=False),
    "bar of a row": lambda e: shap.plots.bar(e[0], show=False),
    "beeswarm": lambda e: shap.plots.beeswarm(e, show=False),
    "violin": lambda e: shap.plots.violin(e, show=False),
    "scatter": lambda e: shap.plots.scatter(e[:, e.feature_names[1]], show=False),
    "scatter, coloured": lambda e: shap.plots.scatter(e[:, 0], color=e, show=False),
    "heatmap": lambda e: shap.plots.heatmap(e, show=False),
    "waterfall": lambda e: shap.plots.waterfall(e[0], show=False),
    "force": lambda e: shap.plots.force(e[0], matplotlib=True, show=False),
    "decision": lambda e: shap.plots.decision(
        float(e.base_values[0]),
        e.values,
        features=e.data,
        feature_names=list(e.feature_names),
        show=False,
    ),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_shap_draws_it_without_a_warning(plot, source):
    exported = source()
    assert isinstance(exported, shap.Explanation)
    plot(exported)
    assert plt.get_fignums()
    plt.gcf().canvas.draw()


@pytest.mark.parametrize("plot", ["bar", "waterfall", "force"])
def test_shap_draws_a_game_that_has_no_data(plot):
    exported = ws.explain(random_game(5)).to_shap("shift")
    assert exported.data is None
    PLOTS[plot](exported)


def test_shap_draws_errors_that_are_unknown():
    PLOTS["waterfall"](
        replace(explain_by_sampling(), standard_errors=np.full((N, D), np.nan)).to_shap()
    )


@pytest.mark.parametrize("model", [product_model, three_outputs])
def test_shap_gets_every_number_at_its_place(model):
    explanation = explain(model)
    exported = to_shap(explanation)
    np.testing.assert_array_equal(exported.values, explanation.values)
    np.testing.assert_array_equal(exported.base_values, explanation.base_values)
    np.testing.assert_array_equal(exported.data, X)
    assert list(exported.feature_names) == list(explanation.feature_names)
    assert exported.error_std is None
    assert exported.normalized_by is None
    np.testing.assert_array_equal(exported[3].values, explanation.values[3])
    np.testing.assert_array_equal(exported[:, "x2"].values, explanation.values[:, 2])
    if explanation.has_outputs:
        assert list(exported.output_names) == list(explanation.output_names)
        one = exported[:, :, "output 1"]
        np.testing.assert_array_equal(one.values, explanation.values[..., 1])
        np.testing.assert_array_equal(one.base_values, explanation.base_values[..., 1])


def test_several_outputs_without_data_keep_their_axis():
    explanation = ws.explain(random_game(5, outputs=(2,)))
    exported = explanation.to_shap()
    np.testing.assert_array_equal(exported[0, :, 1].values, explanation.values[0, :, 1])
    assert exported[0, :, 1].base_values == explanation.base_values[0, 1]


def test_standard_errors_become_bounds_that_are_scaled_too():
    explanation = explain_by_sampling()
    exported = explanation.to_shap()
    np.testing.assert_array_equal(exported.error_std, explanation.standard_errors)
    np.testing.assert_allclose(
        exported.upper_bounds - exported.lower_bounds,
        2 * 1.96 * exported.error_std,
        rtol=1e-4,
        atol=1e-12,
    )
    _, factor, _ = normalise(explanation, "scale")
    np.testing.assert_allclose(
        explanation.to_shap("scale").error_std, explanation.standard_errors * factor[:, None]
    )


def test_columns_that_are_no_numbers_are_coded_and_shown_as_they_are():
    explanation = explained_frame()
    exported = explanation.to_shap()
    assert exported.data.dtype == float
    np.testing.assert_array_equal(exported.data[:, 0], explanation.data["age"])
    np.testing.assert_array_equal(exported.data[:, 1], explanation.data["town"].cat.codes)
    np.testing.assert_array_equal(exported.data[:, 2], explanation.data["word"] == "v")
    assert exported.display_data[:, 1].tolist() == explanation.data["town"].tolist()


def test_missing_values_and_dates_are_coded():
    data = pd.DataFrame(
        {
            "town": pd.Categorical(["a", None] * 4),
            "word": ["u", None] * 4,
            "when": pd.to_datetime(["2024-01-02", None, "2024-01-01", None] * 2),
            "count": pd.array([1, None] * 4, dtype="Int64"),
        }
    )
    coded = replace(explain(), data=data).to_shap().data
    np.testing.assert_array_equal(coded[:3], [[0, 0, 1, 1], [np.nan] * 4, [0, 0, 0, 1]])


def test_frames_of_numbers_and_of_polars_are_numbers():
    polars = pytest.importorskip("polars")
    for data in (pd.DataFrame(X, columns=list("abcd")), polars.DataFrame(X, schema=list("abcd"))):
        exported = replace(explain(), data=data).to_shap()
        np.testing.assert_array_equal(exported.data, X)
        assert exported.display_data is None


def test_groups_have_no_single_column_to_show():
    assert explain(groups={"pair": [0, 1]}).to_shap().data is None


@pytest.mark.parametrize("how", ["scale", "shift"])
@pytest.mark.parametrize("model", [product_model, three_outputs])
@pytest.mark.parametrize("family", ["paper", "first", "last", "sizes"])
def test_normalised_values_add_up_to_the_prediction(how, model, family):
    explanation = explain(model, family=family)
    exported = explanation.to_shap(how)
    np.testing.assert_allclose(
        exported.base_values + exported.values.sum(axis=1), explanation.predictions, atol=1e-9
    )
    scaled = exported.normalized_by == "scale"
    ratio = exported.values / np.where(explanation.values == 0, np.nan, explanation.values)
    kept = np.moveaxis(ratio, 1, -1)[scaled]
    assert ((kept > 0.0999) & (kept < 10.001) | np.isnan(kept)).all()
    shift = np.moveaxis(exported.values - explanation.values, 1, -1)[~scaled]
    np.testing.assert_allclose(shift, shift[:, :1] + np.zeros(D), atol=1e-9)
    assert scaled.any() == (how == "scale")


@pytest.mark.parametrize(
    ("predictions", "by"),
    [
        (6.0, "scale"),
        (0.61, "scale"),
        (59.9, "scale"),
        (0.59, "shift"),
        (60.1, "shift"),
        (-6.0, "shift"),
        (0.0, "shift"),
    ],
)
def test_a_row_whose_factor_is_out_of_bounds_is_shifted_and_flagged(predictions, by):
    explanation = ws.explain(additive([1.0, 2.0, 3.0]).game)
    explanation = replace(explanation, predictions=np.array([predictions]))
    exported = explanation.to_shap("scale")
    assert exported.normalized_by.tolist() == [by]
    phi = np.array([1.0, 2.0, 3.0])
    expected = phi * predictions / 6 if by == "scale" else phi + (predictions - 6) / 3
    np.testing.assert_allclose(exported.values[0], expected, atol=1e-12)


def test_values_that_cancel_out_are_shifted():
    explanation = ws.explain(additive([1.0, -1.0]).game)
    exported = replace(explanation, predictions=np.array([5.0])).to_shap("scale")
    assert exported.normalized_by.tolist() == ["shift"]
    np.testing.assert_allclose(exported.values, [[3.5, 1.5]])
    assert ws.explain(additive([0.0, 0.0]).game).to_shap("scale").values.tolist() == [[0.0, 0.0]]


def test_the_rows_that_could_not_be_scaled_are_counted():
    explanation = explain(family="first")
    shifted = int((normalise(explanation, "scale")[2] == "shift").sum())
    assert 0 < shifted < N
    with pytest.warns(
        UserWarning, match=rf"^{shifted} of 8 rows could not be scaled .* were shifted instead"
    ):
        explanation.to_shap("scale")
    assert any(f"In {shifted} of 8 rows" in note for note in explanation.notes) == (
        shifted > 0.1 * N
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explanation.to_shap("shift")  # what was asked for is no surprise


def test_attributions_of_several_outputs_are_not_counted_as_rows():
    explanation = explain(three_outputs, family="last")
    shifted = int((normalise(explanation, "scale")[2] == "shift").sum())
    assert shifted > 0.1 * 3 * N
    count = rf"{shifted} of 24 attributions \(8 rows × 3 outputs\)"
    assert any(re.search(f"^In {count} the values add up", note) for note in explanation.notes)
    with pytest.warns(UserWarning, match=f"^{count} could not be scaled .* were shifted instead"):
        explanation.to_shap("scale")
    assert "of f(x) − base value in the median of rows and outputs" in str(explanation)
    assert "of f(x) − base value in the median row" in str(explanation[..., 0])


def test_some_features_cannot_make_up_the_prediction():
    with pytest.raises(ValueError, match="Only 2 of 4 features are selected"):
        explain()[:, :2].to_shap("scale")
    assert explain()[:, :2].to_shap().shape == (N, 2)


@pytest.mark.parametrize(
    "call", [lambda e: e.to_shap("scael"), lambda e: e.to_shapiq(0, normalize="scael")]
)
def test_an_unknown_normalisation_is_refused(call):
    with pytest.raises(UnknownNameError, match="Did you mean 'scale'"):
        call(explain())


@pytest.mark.parametrize("model", [product_model, three_outputs])
def test_shapiq_gets_every_number_at_its_place(model):
    explanation = explain(model)
    values = explanation.to_shapiq(2)
    assert isinstance(values, shapiq.InteractionValues)
    phi = explanation.values[2, :, 0] if explanation.has_outputs else explanation.values[2]
    assert [values[(i,)] for i in range(D)] == phi.tolist()
    assert values.baseline_value == values[()] == np.ravel(explanation.base_values[2])[0]
    assert values.n_players == D
    assert not values.estimated
    if explanation.has_outputs:
        assert explanation.to_shapiq(-1, "output 2")[(1,)] == explanation.values[-1, 1, 2]
        assert explanation.to_shapiq(0, output=-1)[(1,)] == explanation.values[0, 1, 2]


def test_shapiq_receives_what_was_sampled_and_sums_that_add_up():
    values = explain_by_sampling().to_shapiq(1, normalize="shift")
    assert values.estimated
    assert values.estimation_budget == explain_by_sampling().n_evaluations[1]
    assert values.values.sum() == pytest.approx(explain_by_sampling().predictions[1])


@pytest.mark.parametrize(
    ("row", "output", "message"),
    [(N, 0, "0..7"), ("a", 0, "'a'"), (True, 0, "True"), (0, 1, "output 1"), (0, "x", "'x'")],
)
def test_rows_and_outputs_that_do_not_exist_are_refused(row, output, message):
    with pytest.raises(ValueError, match=message):
        to_shapiq(explain(), row, output)


NAMES = ["age", "bmi", "town", "word"]
SHAPIQ_PLOTS = {
    "force": lambda row, rows: row.plot_force(feature_names=NAMES, show=False),
    "waterfall": lambda row, rows: row.plot_waterfall(feature_names=NAMES, show=False),
    "upset": lambda row, rows: row.plot_upset(feature_names=NAMES, show=False),
    "stacked bar": lambda row, rows: row.plot_stacked_bar(feature_names=NAMES, show=False),
    "graph": lambda row, rows: row.plot_si_graph(feature_names=NAMES, show=False),
    "sentence": lambda row, rows: row.plot_sentence(NAMES, show=False),
    "bar": lambda row, rows: shapiq.plot.bar_plot(rows, feature_names=NAMES, show=False),
    "beeswarm": lambda row, rows: shapiq.plot.beeswarm_plot(
        rows, X, feature_names=NAMES, show=False
    ),
}


@pytest.mark.filterwarnings("ignore:The set_(bad|over|under) function:PendingDeprecationWarning")
@pytest.mark.parametrize("normalize", [None, "scale"])
@pytest.mark.parametrize("plot", SHAPIQ_PLOTS.values(), ids=SHAPIQ_PLOTS)
def test_shapiq_draws_it_without_a_warning(plot, normalize):
    explanation = explain()
    rows = [explanation.to_shapiq(row, normalize=normalize) for row in range(N)]
    plot(rows[0], rows)
    assert plt.get_fignums()
    plt.gcf().canvas.draw()


@pytest.mark.parametrize(
    ("module", "call"),
    [("shap", lambda e: e.to_shap()), ("shapiq", lambda e: e.to_shapiq(0))],
    ids=["shap", "shapiq"],
)
def test_a_missing_library_is_named_with_its_extra(module, call, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"pip install \"weightedshap\[{module}\]\""):
        call(explain())
