"""Models of every library are explained on the rows they were fitted on, and nothing is changed."""

import joblib
import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRanker
from sklearn.linear_model import LinearRegression, LogisticRegression

from tests.inputs.examples import SMALL, explain, five_columns, labels, pipeline, target
from tests.inputs.lightgbm_example import FRAME, TARGET, explain_rows
from tests.inputs.onnx_models import onnx_linear


def with_categories():
    frame = five_columns()
    return frame.assign(
        city=frame["city"].replace("Köln", "Hof").astype("category")
    )  # XGBoost 3.2 garbles umlauts


def sklearn_pipeline():
    frame = five_columns()
    model = pipeline(LogisticRegression()).fit(frame, labels(frame))
    return model, frame, lambda X: model.predict_proba(X)[:, 1]


def sklearn_regressor():
    frame = five_columns()
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
    frame = five_columns().assign(
        city=five_columns()["city"].astype(object).fillna("none"),
        kind=five_columns()["kind"].astype(object).fillna("none"),
    )
    settings = {"iterations": 5, "verbose": 0, "thread_count": 1, "allow_writing_files": False}
    model = catboost.CatBoostClassifier(cat_features=["city", "kind"], **settings).fit(
        frame, labels(frame)
    )
    return model, frame, lambda X: model.predict_proba(X)[:, 1]


def torch_module():
    torch = pytest.importorskip("torch")
    frame = five_columns()[["size", "rooms", "new"]].fillna({"size": 0.0})
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
    frame = five_columns()[["size", "rooms", "new"]].fillna({"size": 0.0})
    return (
        onnx_linear([1.0, -2.0, 3.0]),
        frame,
        lambda X: X.to_numpy(dtype=float) @ [1.0, -2.0, 3.0],
    )


def plain_function():
    model = lambda rows: rows["size"].fillna(0.0) * rows["rooms"] + (rows["city"] == "Ulm")
    return model, five_columns(), model


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


def test_rankers_are_explained_by_their_scores():
    labels = (TARGET > 0).astype(int)
    queries = np.full(30, 10)
    ranker = LGBMRanker(n_estimators=8, min_child_samples=5, n_jobs=1, verbose=-1).fit(
        FRAME, labels, group=queries
    )
    explanation = explain_rows(ranker, FRAME, FRAME[:20], game="auto")
    assert explanation.game_info["game"] == "tree_path"
    np.testing.assert_allclose(explanation.predictions, ranker.predict(FRAME[:20]))
    np.testing.assert_allclose(
        explanation.shapley.sum(axis=1), explanation.predictions - explanation.base_values
    )


def test_every_label_of_an_xgboost_classifier_is_an_output():
    xgboost = pytest.importorskip("xgboost")
    labels = np.stack([TARGET > 0, FRAME["a"] > 0, FRAME["b"] > 0], axis=1).astype(int)
    model = xgboost.XGBClassifier(n_estimators=5, n_jobs=1).fit(FRAME, labels)
    explanation = explain_rows(model, FRAME, game="auto")
    margins = model.predict(FRAME[:3], output_margin=True)
    np.testing.assert_allclose(explanation.predictions, margins, rtol=1e-5)
    np.testing.assert_allclose(
        explanation.judge_predictions, model.predict_proba(FRAME[:3]), rtol=1e-5
    )
    assert np.abs(explanation.values[:, 0, 1]).min() > 1  # the second label is that of a
