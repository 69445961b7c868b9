"""Columns of every type from the table to the explanation: words, categories, holes, weights."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import weightedshap as ws
from tests.inputs.examples import NETWORK, SMALL, explain, five_columns
from tests.inputs.tables import housing_frame, housing_score, paper_table


@pytest.mark.filterwarnings(
    "ignore:The behavior of DataFrame concatenation:FutureWarning"
)  # pandas 2, of empty columns
@pytest.mark.parametrize("game", ["marginal", "baseline", SMALL])
def test_a_frame_with_every_type_of_column_is_explained(game):
    frame = housing_frame()
    budget = {} if game is SMALL else {"estimator": "permutation", "evaluations": 400}
    explanation = explain(housing_score, frame[:30], frame[80:83], game=game, **budget)
    np.testing.assert_allclose(explanation.predictions, housing_score(frame[80:83]))
    assert np.isfinite(explanation.values).all()
    assert explanation.feature_names == tuple(frame.columns)


@pytest.mark.parametrize("game", ["marginal", "baseline"])
def test_a_category_never_seen_reaches_the_model_as_it_is(game):
    frame = five_columns()[["rooms", "city"]].fillna({"city": "Bonn"})
    model = lambda rows: rows["rooms"] + 100.0 * (rows["city"] == "Hof")
    explanation = explain(model, frame, {"rooms": 3, "city": "Hof"}, game=game)
    assert explanation.values[0, 1] == pytest.approx(100.0)
    assert explanation.notes == (
        "Column 'city' holds categories that the background never saw: 'Hof'.",
    )


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("game", [SMALL, NETWORK], ids=["trees", "network"])
def test_categories_never_seen_are_one_and_the_same_to_a_learned_game(game, kind):
    frame = five_columns(200)[["rooms", "city"]].fillna({"city": "Bonn"})
    table = frame if kind == "pandas" else pytest.importorskip("polars").from_pandas(frame)
    known = {"Bonn": 0.0, "Köln": 1.0, "Ulm": 2.0}
    model = lambda rows: (
        np.asarray(rows["rooms"]) + np.array([known.get(city, 100.0) for city in rows["city"]])
    )
    explainer = ws.Explainer(model, table, game=game, progress=False)
    new = explainer({"rooms": 3, "city": "Hof"})
    other = explainer({"rooms": 3, "city": "Rom"})
    np.testing.assert_array_equal(new.values, other.values)
    assert np.isfinite(new.values).all()
    assert new.notes[0] == "Column 'city' holds categories that the background never saw: 'Hof'."
    assert new.predictions == [103.0]
    assert (
        new.endpoint_gaps["full"][0] < -90
    )  # the game stays in what it knows, and the gap says so


def test_missing_values_are_information_to_the_surrogate():
    frame = housing_frame(400)[["size", "weight"]]
    frame.loc[::2, "size"] = np.nan
    model = lambda rows: rows["size"].isna().astype(float)
    explanation = explain(model, frame, frame[:2], game=ws.games.TreeSurrogate(trees=60, n_jobs=1))
    assert explanation.values[0, 0] > 0.3
    assert explanation.values[1, 0] < -0.3


def test_weights_of_background_rows_count_as_copies():
    frame = five_columns()[["size", "rooms"]].fillna(0.0)
    model = lambda rows: rows["size"] * rows["rooms"]
    counts = np.arange(10) % 3
    weighted = explain(model, frame[:10], frame[20:22], background_weights=counts)
    copied = explain(model, frame[:10].loc[np.repeat(np.arange(10), counts)], frame[20:22])
    np.testing.assert_allclose(weighted.values, copied.values, atol=1e-12)


def fit_pipeline(frame, answer, last):
    """A pipeline on all columns of a frame of numbers and text."""
    text = make_column_selector(dtype_exclude="number")
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), text), remainder="passthrough"
    )
    return make_pipeline(columns, last).fit(frame, answer)


@pytest.mark.parametrize("game", ["marginal", SMALL])
@pytest.mark.parametrize("dtype", ["str", "category"])
def test_abalone_is_explained_with_its_sex(dtype, game):
    table = paper_table("abalone")
    frame = table.iloc[:, :-1]
    rings = table.iloc[:, -1]
    sex = next(name for name in frame if frame[name].nunique() == 3)
    frame = frame.astype({sex: dtype})
    model = fit_pipeline(frame, rings, LinearRegression())
    explanation = explain(model, frame[:25], frame[100:103], game=game)
    np.testing.assert_allclose(explanation.predictions, model.predict(frame[100:103]))
    assert explanation.feature_names == tuple(frame.columns)
    if game == "marginal":
        scores = pd.Series(
            model.predict(frame[:25].assign(**{c: frame[c].iloc[100] for c in frame if c != sex}))
        )
        expected = model.predict(frame[100:101])[0] - scores.mean()
        assert explanation.contributions[0, -1, list(frame).index(sex)] == pytest.approx(expected)


def test_adult_is_explained_with_all_its_columns():
    table = paper_table("adult", 300)
    frame = table.iloc[:, :-1]
    income = table.iloc[:, -1]
    text = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    frame = frame.astype(dict.fromkeys(text, "category"))
    model = fit_pipeline(frame, income, LogisticRegression(max_iter=3000))
    explanation = explain(model, frame[:200], frame[200:203], game=SMALL)
    np.testing.assert_allclose(explanation.predictions, model.predict_proba(frame[200:203])[:, 1])
    assert explanation.values.shape == (3, frame.shape[1])
