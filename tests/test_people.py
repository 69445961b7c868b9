"""From people's tables and models to explanations: types kept, names matched, nothing changed.

Real tables come from the folder in `WEIGHTEDSHAP_DATA`; `generated` frames are invented for these
tests.
"""

import re
from functools import partial
from pathlib import Path
from unittest import mock

import joblib
import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import weightedshap as ws
from tests.oracles import normal_rows
from tests.people import generated, onnx_linear, real, scored

SMALL = ws.games.TreeSurrogate(masks=4, trees=10, n_jobs=1)
NETWORK = ws.games.NeuralSurrogate(units=8, epochs=10)
COLUMNS = ["size", "rooms", "city", "kind", "new"]
LABELS = np.array(["no", "yes"])


def explain(model, background, X, game="marginal", **choices):
    return ws.Explainer(model, background, game=game, progress=False, **choices)(X)


def pipeline(last):
    """Holes filled and text one-hot, by column; works on frames of pandas and polars."""
    text = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
    )
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer((numbers, ["size", "rooms", "new"]), (text, ["city", "kind"]))
    return make_pipeline(columns, last)


# the same table in every kind ---------------------------------------------------------------------


def kinds():
    """A table of numbers with holes as array and frames; X with shuffled columns where they have
    names."""
    pl = pytest.importorskip("polars")
    X = normal_rows(60)
    X[::7, 1] = np.nan
    frame = pd.DataFrame(X, columns=list("abcd"))
    shuffled = frame[["c", "a", "d", "b"]]
    return {
        "numpy": (X, X),
        "pandas": (frame, shuffled),
        "polars": (pl.from_pandas(frame), pl.from_pandas(shuffled)),
        "pandas and polars": (frame, pl.from_pandas(shuffled)),
        "polars and numpy": (pl.from_pandas(frame, nan_to_null=False), X),
    }


def of_numbers(rows):
    X = np.nan_to_num(np.asarray(rows, dtype=float), nan=-3.0)
    return X[:, 0] * X[:, 1] + np.sin(X[:, 2]) - X[:, 3] ** 2


@pytest.mark.filterwarnings(
    "ignore:The behavior of DataFrame concatenation:FutureWarning"
)  # pandas 2, of empty columns
@pytest.mark.parametrize("game", ["marginal", "baseline", SMALL])
@pytest.mark.parametrize("kind", ["pandas", "polars", "pandas and polars", "polars and numpy"])
def test_the_same_table_gives_the_same_explanation_in_every_kind(kind, game):
    background, X = kinds()[kind]
    expected = explain(of_numbers, *[part[:20] for part in kinds()["numpy"]], game=game)
    found = explain(of_numbers, background[:20], X[:20], game=game)
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.curves, expected.curves)
    assert found.feature_names == tuple("abcd")


@pytest.mark.parametrize("kind", ["pandas", "polars", "polars and numpy"])
def test_a_tree_game_gives_the_same_explanation_in_every_kind(kind):
    X, _ = kinds()["numpy"]
    background, rows = kinds()[kind]
    model = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5).fit(X, of_numbers(X))
    named = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5).fit(
        kinds()["pandas"][0], of_numbers(X)
    )
    expected = explain(model, X, X[:5], game="tree_interventional")
    for fitted in (model, named):
        found = explain(fitted, background, rows[:5], game="tree_interventional")
        np.testing.assert_allclose(found.values, expected.values, atol=1e-12)


def test_columns_shuffled_in_the_background_follow_the_model():
    frame, shuffled = kinds()["pandas"]
    model = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5).fit(
        frame, of_numbers(frame)
    )
    for game in ("marginal", "tree_interventional"):
        expected = explain(model, frame, frame[:3], game=game)
        found = explain(model, shuffled, shuffled[:3], game=game)
        np.testing.assert_allclose(found.values, expected.values, atol=1e-12)
        assert found.feature_names == tuple("abcd")


def test_columns_of_x_follow_the_names_of_the_model_where_the_background_has_none():
    frame, shuffled = kinds()["pandas"]
    model = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5).fit(
        frame, of_numbers(frame)
    )
    expected = explain(model, frame.to_numpy(), frame[:3])
    np.testing.assert_array_equal(
        explain(model, frame.to_numpy(), shuffled[:3]).values, expected.values
    )
    np.testing.assert_allclose(expected.predictions, model.predict(frame[:3]))
    other = shuffled[:3].set_axis(
        list("wxyz"), axis=1
    )  # names that the model does not know: by position
    np.testing.assert_allclose(
        explain(model, frame.to_numpy(), other).predictions,
        model.predict(other.set_axis(list("abcd"), axis=1)),
    )


# every model library ------------------------------------------------------------------------------


def people(n=80):
    return generated(n)[COLUMNS]


def target(rows):
    return scored(generated(len(rows)))


def labels(rows):
    return LABELS[(target(rows) > np.median(target(rows))).astype(int)]


def with_categories():
    frame = people()
    return frame.assign(
        city=frame["city"].replace("Köln", "Hof").astype("category")
    )  # XGBoost 3.2 garbles umlauts


def sklearn_pipeline():
    frame = people()
    model = pipeline(LogisticRegression()).fit(frame, labels(frame))
    return model, frame, lambda X: model.predict_proba(X)[:, 1]


def sklearn_regressor():
    frame = people()
    model = pipeline(LinearRegression()).fit(frame, target(frame))
    return model, frame, model.predict


def lightgbm_wrapper():
    lightgbm = pytest.importorskip("lightgbm")
    frame = with_categories()
    settings = {"n_estimators": 5, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}
    model = lightgbm.LGBMClassifier(**settings).fit(frame, labels(frame))
    return model, frame, lambda X: model.predict_proba(X)[:, 1]


def lightgbm_booster():
    lightgbm = pytest.importorskip("lightgbm")
    frame = with_categories()
    settings = {"min_data_in_leaf": 5, "num_threads": 1, "verbose": -1}
    model = lightgbm.train(settings, lightgbm.Dataset(frame, target(frame)), 5)
    return model, frame, model.predict


def xgboost_wrapper():
    xgboost = pytest.importorskip("xgboost")
    frame = with_categories()
    model = xgboost.XGBRegressor(n_estimators=5, enable_categorical=True, n_jobs=1).fit(
        frame, target(frame)
    )
    return model, frame, model.predict


def xgboost_booster():
    xgboost = pytest.importorskip("xgboost")
    frame = with_categories()
    matrix = xgboost.DMatrix(frame, (labels(frame) == "yes").astype(float), enable_categorical=True)
    model = xgboost.train({"objective": "binary:logistic", "nthread": 1}, matrix, 5)
    return model, frame, lambda X: model.predict(xgboost.DMatrix(X, enable_categorical=True))


def catboost_classifier():
    catboost = pytest.importorskip("catboost")
    frame = people().assign(
        city=people()["city"].astype(object).fillna("none"),
        kind=people()["kind"].astype(object).fillna("none"),
    )
    settings = {"iterations": 5, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    model = catboost.CatBoostClassifier(cat_features=["city", "kind"], **settings).fit(
        frame, labels(frame)
    )
    return model, frame, lambda X: model.predict_proba(X)[:, 1]


def torch_module():
    torch = pytest.importorskip("torch")
    frame = people()[["size", "rooms", "new"]].fillna({"size": 0.0})
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 4), torch.nn.Dropout(), torch.nn.Tanh(), torch.nn.Linear(4, 1)
    )

    def own(X):
        still = torch.nn.Sequential(*model).eval()
        with torch.no_grad():
            answer = still(torch.tensor(X.to_numpy(dtype=np.float32)))[:, 0].numpy()
        model.train()
        return answer

    return model, frame, own


def onnx_session():
    frame = people()[["size", "rooms", "new"]].fillna({"size": 0.0})
    return (
        onnx_linear([1.0, -2.0, 3.0]),
        frame,
        lambda X: X.to_numpy(dtype=float) @ [1.0, -2.0, 3.0],
    )


def plain_function():
    model = lambda rows: rows["size"].fillna(0.0) * rows["rooms"] + (rows["city"] == "Ulm")
    return model, people(), model


LIBRARIES = [
    sklearn_pipeline,
    sklearn_regressor,
    lightgbm_wrapper,
    lightgbm_booster,
    xgboost_wrapper,
    xgboost_booster,
    catboost_classifier,
    torch_module,
    onnx_session,
    plain_function,
]


def state(model):
    """A fingerprint of a model's state."""
    if hasattr(model, "state_dict"):
        return joblib.hash([{k: v.numpy() for k, v in model.state_dict().items()}, model.training])
    if type(model).__name__ == "InferenceSession" or not hasattr(model, "predict"):
        return None
    return joblib.hash(model)


@pytest.mark.filterwarnings(
    "ignore:The behavior of DataFrame concatenation:FutureWarning"
)  # pandas 2, of empty columns
@pytest.mark.parametrize("game", ["marginal", "baseline", SMALL])
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.__name__)
def test_a_model_of_every_library_is_explained_on_its_own_rows(library, game):
    model, frame, own = library()
    background = frame.iloc[:40]
    X = frame.iloc[40:43]
    before = joblib.hash(background), joblib.hash(X), state(model)
    explanation = explain(model, background, X, game=game)
    assert (joblib.hash(background), joblib.hash(X), state(model)) == before
    np.testing.assert_allclose(explanation.predictions, own(X), rtol=1e-5, atol=1e-6)
    assert explanation.feature_names == tuple(frame.columns)
    full = explanation.predictions + explanation.endpoint_gaps["full"]
    np.testing.assert_allclose(
        explanation.shapley.sum(axis=1), full - explanation.base_values, atol=1e-9
    )
    pd.testing.assert_frame_equal(explanation.data, X)
    if game == "marginal":
        np.testing.assert_allclose(
            explanation.base_values, np.mean(own(background)), rtol=1e-5, atol=1e-6
        )
        assert np.abs(explanation.endpoint_gaps["full"]).max() < 1e-6


def fingerprint(table):
    return (
        joblib.hash(table)
        if not hasattr(table, "hash_rows")
        else (table.hash_rows().sum(), str(table.schema))
    )


@pytest.mark.parametrize("kind", ["numpy", "read-only", "pandas", "polars"])
@pytest.mark.parametrize("game", [*ws.games.GAMES, NETWORK], ids=str)
def test_no_game_changes_the_tables_or_the_model(game, kind):
    lightgbm = pytest.importorskip("lightgbm")
    pl = pytest.importorskip("polars")
    game = (
        SMALL
        if game == "tree_surrogate"
        else NETWORK
        if game in ("neural_surrogate", "surrogate")
        else game
    )
    frame = pd.DataFrame(normal_rows(60), columns=list("abcd")).astype({"d": "float32"})
    model = lightgbm.LGBMRegressor(n_estimators=3, min_child_samples=5, n_jobs=1, verbose=-1).fit(
        frame, frame["a"]
    )
    if kind in ("numpy", "read-only"):
        table = frame.to_numpy(dtype=float)
        table.flags.writeable = kind == "numpy"
    else:
        table = frame if kind == "pandas" else pl.from_pandas(frame)
    X = table[40:42]
    before = (
        fingerprint(table),
        fingerprint(X),
        model.booster_.model_to_string(),
        sorted(vars(model)),
    )
    explanation = explain(model, table, X, game=game, groups=[[0, 2]])
    assert explanation.values.shape == (2, 3)
    assert (
        fingerprint(table),
        fingerprint(X),
        model.booster_.model_to_string(),
        sorted(vars(model)),
    ) == before


@pytest.mark.parametrize(
    "library", [sklearn_regressor, torch_module], ids=lambda library: library.__name__
)
def test_threads_and_processes_give_the_same_explanation(library):
    model, frame, _ = library()
    alone, threads = (explain(model, frame[:10], frame[10:14], n_jobs=jobs) for jobs in (1, 2))
    with joblib.parallel_config(backend="loky"):
        processes = explain(model, frame[:10], frame[10:14], n_jobs=2)
    assert threads.equals(alone)
    assert processes.equals(alone)


@pytest.mark.parametrize("game", ["tree_path", "tree_surrogate"])
def test_predictions_that_other_processes_asked_for_are_known_here(game):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    model = LGBMRegressor(n_estimators=20, n_jobs=1, verbose=-1).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    alone, threads = (explain(model, X[:200], X, game=game, n_jobs=jobs) for jobs in (1, 2))
    with joblib.parallel_config(backend="loky"):
        processes = explain(model, X[:200], X, game=game, n_jobs=2)
    np.testing.assert_array_equal(alone.predictions, model.predict(X))
    assert threads.equals(alone)
    assert processes.equals(alone)
    assert processes.reweight("wide").equals(alone.reweight("wide"))


def test_lightgbm_is_asked_once_about_each_row_and_takes_one_thread():
    X = np.random.default_rng(0).normal(size=(600, 3))
    model = LGBMRegressor(n_estimators=5, verbose=-1).fit(X, X[:, 0] - X[:, 1])
    with mock.patch.object(
        LGBMRegressor, "predict", autospec=True, side_effect=LGBMRegressor.predict
    ) as asked:
        explainer = ws.Explainer(model, X[:100], game="tree_surrogate", progress=False, n_jobs=2)
        asked.reset_mock()
        explained = explainer(X)
    assert sum(len(call.args[1]) for call in asked.call_args_list) == len(X)
    assert all(call.kwargs["num_threads"] == 1 for call in asked.call_args_list)
    np.testing.assert_array_equal(explained.predictions, model.predict(X))


def test_a_pipeline_fitted_on_polars_is_fed_polars():
    pytest.importorskip("sklearn", "1.8")  # passes frames of polars through
    pl = pytest.importorskip("polars")
    frame = people().fillna({"city": "Ulm"}).astype({"kind": str})
    rows = pl.from_pandas(frame)
    seen = set()
    watch = FunctionTransformer(lambda X: seen.add((type(X), str(X.schema))) or X)
    columns = make_column_transformer(
        (OneHotEncoder(), ["city", "kind"]), ("passthrough", ["rooms", "new"])
    )
    model = make_pipeline(watch, columns, LinearRegression()).fit(rows, target(frame))
    explanation = explain(model, rows[:20], rows[20:22])
    np.testing.assert_allclose(explanation.predictions, model.predict(rows[20:22]))
    assert seen == {(pl.DataFrame, str(rows.schema))}
    assert explanation.data.equals(rows[20:22])


@pytest.mark.parametrize("game", ["marginal", SMALL])
@pytest.mark.parametrize(
    "library",
    LIBRARIES[2:-1],  # all but scikit-learn's and the plain function
    ids=lambda library: library.__name__,
)
def test_a_model_trained_on_pandas_is_explained_on_polars(library, game):
    pl = pytest.importorskip("polars")
    model, frame, _ = library()
    rows = pl.from_pandas(frame).with_columns(pl.col(pl.String).cast(pl.Categorical))
    expected, found = (
        explain(model, table[:30], table[40:42], game=game) for table in (frame, rows)
    )
    np.testing.assert_allclose(found.values, expected.values, atol=1e-9)
    assert found.data.schema == rows.schema


# outputs and scales -------------------------------------------------------------------------------


def test_classes_are_explained_by_name_and_one_shape_rule_holds():
    frame = people()
    three = pipeline(LogisticRegression()).fit(frame, np.digitize(target(frame), [0.0, 4.0]))
    every, one, listed = (
        explain(three, frame[:10], frame[:2], outputs=o) for o in (None, "1", ["1"])
    )
    assert every.values.shape == (2, 5, 3)
    assert one.values.shape == (2, 5)
    assert listed.values.shape == (2, 5, 1)
    np.testing.assert_allclose(every.values[..., 1], one.values, atol=1e-12)
    np.testing.assert_array_equal(listed.values[..., 0], one.values)
    assert every.output_names == ("0", "1", "2")


def test_log_odds_of_a_linear_classifier_are_additive():
    frame = people()
    model = pipeline(LogisticRegression()).fit(frame, labels(frame))
    explanation = explain(model, frame[:10], frame[:2], link="logit")
    np.testing.assert_allclose(
        explanation.predictions, model.decision_function(frame[:2]), rtol=1e-8
    )
    assert np.ptp(explanation.contributions, axis=1).max() < 1e-8  # the same at every size


@pytest.mark.parametrize("game", ["tree_interventional", "tree_path"])
def test_tree_games_know_log_odds_of_two_classes_and_refuse_others(game):
    lightgbm = pytest.importorskip("lightgbm")
    X = normal_rows(80)
    fit = partial(lightgbm.LGBMClassifier(n_estimators=4, verbose=-1, n_jobs=1).fit, X)
    binary = fit((X[:, 0] > 0).astype(int))
    odds, margin = (
        explain(binary, X, X[:2], game=game, link=link) for link in ("logit", "identity")
    )
    np.testing.assert_array_equal(odds.values, margin.values)
    with pytest.raises(ValueError, match="not add up to log-odds of one class against the rest"):
        explain(fit(np.digitize(X[:, 0], [-0.5, 0.5])), X, X[:2], game=game, link="logit")


# groups -------------------------------------------------------------------------------------------


def test_a_one_hot_block_as_a_group_equals_the_category_it_came_from():
    frame = people()[["size", "city", "rooms"]].fillna({"size": 0.0, "city": "none"})
    hot = pd.get_dummies(frame, columns=["city"], dtype=float)
    block = [name for name in hot if name.startswith("city_")]
    coefficient = {name: 1.0 + c for c, name in enumerate(block)}

    def of_hot(rows):
        return rows["size"] * sum(rows[name] * coefficient[name] for name in block) + rows["rooms"]

    def of_text(rows):
        return (
            rows["size"] * rows["city"].map(lambda city: coefficient[f"city_{city}"])
            + rows["rooms"]
        )

    grouped = explain(of_hot, hot[:30], hot[30:34], groups={"city": block})
    whole = explain(of_text, frame[:30], frame[30:34])
    order = [grouped.feature_names.index(name) for name in whole.feature_names]
    np.testing.assert_allclose(grouped.values[:, order], whole.values, atol=1e-12)
    np.testing.assert_allclose(grouped.contributions[..., order], whole.contributions, atol=1e-12)
    assert grouped.notes == ("Columns in no group are players of their own: 'size', 'rooms'.",)


def test_patches_of_an_image_are_players_down_to_curves_and_weights():
    rng = np.random.default_rng(0)
    images = rng.random((40, 6, 6))
    cells = np.arange(36).reshape(6, 6)
    patches = {
        f"{r},{c}": cells[r : r + 2, c : c + 2].ravel() for r in (0, 2, 4) for c in (0, 2, 4)
    }
    model = lambda rows: rows.reshape(-1, 6, 6)[:, 2:4, 2:4].mean(axis=(1, 2)) * 10.0
    explanation = explain(model, images.reshape(40, 36), images[:2].reshape(2, 36), groups=patches)
    assert explanation.feature_names == tuple(patches)
    assert explanation.contributions.shape == (2, 9, 9)
    assert explanation.weights.shape == (2, 9)
    assert explanation.curves.shape == (2, 10)
    assert (explanation.orders[:, 0] == list(patches).index("2,2")).all()
    assert np.abs(np.delete(explanation.values, 4, axis=1)).max() < 1e-12
    assert explanation.data.shape == (2, 36)


# generated, with every type of column -------------------------------------------------------------


@pytest.mark.filterwarnings(
    "ignore:The behavior of DataFrame concatenation:FutureWarning"
)  # pandas 2, of empty columns
@pytest.mark.parametrize("game", ["marginal", "baseline", SMALL])
def test_a_generated_frame_of_every_type_goes_round(game):
    frame = generated()
    budget = {} if game is SMALL else {"estimator": "permutation", "evaluations": 400}
    explanation = explain(scored, frame[:30], frame[80:83], game=game, **budget)
    np.testing.assert_allclose(explanation.predictions, scored(frame[80:83]))
    assert np.isfinite(explanation.values).all()
    assert explanation.feature_names == tuple(frame.columns)


@pytest.mark.parametrize("game", ["marginal", "baseline"])
def test_a_category_never_seen_reaches_the_model_as_it_is(game):
    frame = people()[["rooms", "city"]].fillna({"city": "Bonn"})
    model = lambda rows: rows["rooms"] + 100.0 * (rows["city"] == "Hof")
    explanation = explain(model, frame, {"rooms": 3, "city": "Hof"}, game=game)
    assert explanation.values[0, 1] == pytest.approx(100.0)
    assert explanation.notes == (
        "Column 'city' holds categories that the background never saw: 'Hof'.",
    )


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("game", [SMALL, NETWORK, "surrogate"], ids=["trees", "network", "better"])
def test_categories_never_seen_are_one_and_the_same_to_a_learned_game(game, kind):
    frame = people(200)[["rooms", "city"]].fillna({"city": "Bonn"})
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
    frame = generated(400)[["size", "weight"]]
    frame.loc[::2, "size"] = np.nan
    model = lambda rows: rows["size"].isna().astype(float)
    explanation = explain(model, frame, frame[:2], game=ws.games.TreeSurrogate(trees=60, n_jobs=1))
    assert explanation.values[0, 0] > 0.3
    assert explanation.values[1, 0] < -0.3


def test_weights_of_background_rows_count_as_copies():
    frame = people()[["size", "rooms"]].fillna(0.0)
    model = lambda rows: rows["size"] * rows["rooms"]
    counts = np.arange(10) % 3
    weighted = explain(model, frame[:10], frame[20:22], background_weights=counts)
    copied = explain(model, frame[:10].loc[np.repeat(np.arange(10), counts)], frame[20:22])
    np.testing.assert_allclose(weighted.values, copied.values, atol=1e-12)


# the paper's tables -------------------------------------------------------------------------------


def fitted(frame, answer, last):
    """A pipeline on all columns of a frame of numbers and text."""
    text = make_column_selector(dtype_exclude="number")
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), text), remainder="passthrough"
    )
    return make_pipeline(columns, last).fit(frame, answer)


@pytest.mark.parametrize("game", ["marginal", SMALL])
@pytest.mark.parametrize("dtype", ["str", "category"])
def test_abalone_goes_round_with_its_sex(dtype, game):
    table = real("abalone")
    frame = table.iloc[:, :-1]
    rings = table.iloc[:, -1]
    sex = next(name for name in frame if frame[name].nunique() == 3)
    frame = frame.astype({sex: dtype})
    model = fitted(frame, rings, LinearRegression())
    explanation = explain(model, frame[:25], frame[100:103], game=game)
    np.testing.assert_allclose(explanation.predictions, model.predict(frame[100:103]))
    assert explanation.feature_names == tuple(frame.columns)
    if game == "marginal":
        scores = pd.Series(
            model.predict(frame[:25].assign(**{c: frame[c].iloc[100] for c in frame if c != sex}))
        )
        expected = model.predict(frame[100:101])[0] - scores.mean()
        assert explanation.contributions[0, -1, list(frame).index(sex)] == pytest.approx(expected)


def test_adult_goes_round_with_all_its_columns():
    table = real("adult", 300)
    frame = table.iloc[:, :-1]
    income = table.iloc[:, -1]
    text = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    frame = frame.astype(dict.fromkeys(text, "category"))
    model = fitted(frame, income, LogisticRegression(max_iter=3000))
    explanation = explain(model, frame[:200], frame[200:203], game=SMALL)
    np.testing.assert_allclose(explanation.predictions, model.predict_proba(frame[200:203])[:, 1])
    assert explanation.values.shape == (3, frame.shape[1])


# the how-to ---------------------------------------------------------------------------------------


def test_the_how_to_runs_and_says_what_comes_out():
    text = (Path(__file__).parent.parent / "docs" / "data.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S):
        exec(compile(block, "data.md", "exec"), names)
    assert names["explanation"].feature_names == ("rooms", "address", "lift")
    assert names["explanation"].notes == (
        "Columns in no group are players of their own: 'rooms', 'lift'.",
    )
