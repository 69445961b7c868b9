"""One table gives one explanation, as array, pandas or polars frame; columns follow their names."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

import weightedshap as ws
from tests.inputs.examples import NETWORK, SMALL, explain, five_columns, target
from tests.oracles import normal_rows


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
    game = {"tree_surrogate": SMALL, "neural_surrogate": NETWORK}.get(game, game)
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


def test_a_pipeline_fitted_on_polars_is_fed_polars():
    pytest.importorskip("sklearn", "1.8")  # passes frames of polars through
    pl = pytest.importorskip("polars")
    frame = five_columns().fillna({"city": "Ulm"}).astype({"kind": str})
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
