"""Every documented format of a model: `weightedshap explain` gives what the same model in memory
gives."""

from __future__ import annotations

import joblib
import lightgbm
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

import weightedshap as ws
from weightedshap.jobs import cli
from weightedshap.jobs import exit_codes as stops
from weightedshap.jobs.model_files import KINDS, PICKLES, as_model_file

RNG = np.random.default_rng(0)
ROWS = pd.DataFrame(RNG.normal(size=(120, 3)).round(3), columns=["a", "b", "c"])
Y = (ROWS["a"] * ROWS["b"] + ROWS["c"]).to_numpy()
TARGETS = {
    "regression": Y,
    "binary": (Y > 0).astype(int),
    "multiclass": np.digitize(Y, [-0.5, 0.5]),
}
FEW = {"n_estimators": 5, "random_state": 0}


def of_lightgbm(folder, suffix, task):
    kind = lightgbm.LGBMRegressor if task == "regression" else lightgbm.LGBMClassifier
    model = kind(**FEW, verbose=-1, n_jobs=1, num_leaves=5).fit(ROWS, TARGETS[task])
    model.booster_.save_model(folder / "m.txt")
    return folder / "m.txt", model


def of_xgboost(folder, suffix, task):
    xgboost = pytest.importorskip("xgboost")
    kind = xgboost.XGBRegressor if task == "regression" else xgboost.XGBClassifier
    model = kind(n_estimators=30, early_stopping_rounds=2, max_depth=2, n_jobs=1)
    model.fit(ROWS, TARGETS[task], eval_set=[(ROWS, TARGETS[task][::-1])], verbose=False)
    model.save_model(folder / f"m{suffix}")
    return folder / f"m{suffix}", model


def of_catboost(folder, suffix, task):
    catboost = pytest.importorskip("catboost")
    kind = catboost.CatBoostRegressor if task == "regression" else catboost.CatBoostClassifier
    model = kind(iterations=5, depth=3, verbose=False, allow_writing_files=False, thread_count=1)
    model.fit(ROWS, TARGETS[task])
    model.save_model(str(folder / "m.cbm"))
    return folder / "m.cbm", model


def of_onnx(folder, suffix, task):
    onnx = pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    graph = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 17]> g (float[N, 3] X) => (float[N, 2] probabilities)'
        " <float[3, 2] W = {1, -2, 0, 3, -1, 1}> { z = MatMul(X, W) probabilities = Softmax(z) }"
    )
    onnx.save(graph, folder / "m.onnx")
    return folder / "m.onnx", onnxruntime.InferenceSession(
        folder / "m.onnx", providers=["CPUExecutionProvider"]
    )


def of_skops(folder, suffix, task):
    """A linear model; skops does not trust trees unless they are named."""
    model = (LinearRegression() if task == "regression" else LogisticRegression()).fit(
        ROWS, TARGETS[task]
    )
    pytest.importorskip("skops.io").dump(model, folder / "m.skops")
    return folder / "m.skops", model


def of_pickle(folder, suffix, task):
    model = RandomForestRegressor(**FEW, max_depth=3, n_jobs=1).fit(ROWS, TARGETS[task])
    joblib.dump(model, folder / f"m{suffix}")
    return folder / f"m{suffix}", model


def product(rows):
    """A model that is a function."""
    return np.asarray(rows)[:, 0] * np.asarray(rows)[:, 1]


def of_function(folder, suffix, task):
    return f"{__name__}:product", product


MAKERS = {
    ".txt": of_lightgbm,
    ".json": of_xgboost,
    ".ubj": of_xgboost,
    ".cbm": of_catboost,
    ".onnx": of_onnx,
    ".skops": of_skops,
    ".pkl": of_pickle,
    ".pickle": of_pickle,
    ".joblib": of_pickle,
    "module:function": of_function,
}
WITH_TASKS = [
    (suffix, task) for suffix in (".txt", ".json", ".ubj", ".cbm", ".skops") for task in TARGETS
]
OTHERS = [
    (".onnx", "binary"),
    *((suffix, "regression") for suffix in (".pkl", ".pickle", ".joblib", "module:function")),
]


def run_command(folder, model, *options):
    """The result of the command for the rows, and the table of what it wrote."""
    ROWS.to_parquet(folder / "background.parquet")
    ROWS.head(4).assign(id=range(4)).to_csv(folder / "rows.csv", index=False)
    given = [
        "--background",
        folder / "background.parquet",
        "--rows",
        folder / "rows.csv",
        "--key",
        "id",
        "--quiet",
    ]
    arguments = ["explain", "--model", model, *given, "--out", folder / "out", *options]
    result = CliRunner().invoke(cli.main, [str(text) for text in arguments], catch_exceptions=False)
    parts = sorted((folder / "out").glob("*.parquet"))
    return result, pq.read_table(parts[0]) if parts else None


@pytest.mark.parametrize(("suffix", "task"), [*WITH_TASKS, *OTHERS])
def test_the_command_gives_the_same_explanation_as_the_model_in_memory(tmp_path, suffix, task):
    path, model = MAKERS[suffix](tmp_path, suffix, task)
    game = {} if suffix in (".txt", ".json", ".ubj", ".cbm", *PICKLES) else {"game": "marginal"}
    trust = ["--trust-pickle"] if suffix in PICKLES else []
    result, table = run_command(tmp_path, path, *trust, *(["--game", "marginal"] if game else []))
    assert result.exit_code == 0, result.output

    own = ws.Explainer(model, ROWS, progress=False, **game)(ROWS.head(4))
    outputs = len(own.output_names) if own.values.ndim == 3 else 1
    assert outputs == (3 if task == "multiclass" else 1)
    for c, feature in enumerate(ROWS.columns):
        found = columns(table, f"phi_{feature}")
        np.testing.assert_allclose(
            found, own.values.reshape(4, 3, outputs)[:, c], rtol=1e-6, atol=1e-9
        )
    np.testing.assert_allclose(
        columns(table, "prediction"), own.predictions.reshape(4, outputs), rtol=1e-6
    )


def columns(table, name):
    """(n, k) one column for each output; a file may not know the names of classes."""
    return np.stack(
        [table[one] for one in table.column_names if one == name or one.startswith(f"{name}_")],
        axis=1,
    )


def test_every_documented_format_is_tried():
    assert {suffix for suffix, _ in [*WITH_TASKS, *OTHERS]} == {*KINDS, *PICKLES, "module:function"}


@pytest.mark.parametrize("task", TARGETS)
def test_a_model_of_catboost_from_a_file_is_explained_in_memory(tmp_path, task):
    """CatBoost says of it that it has no features; of a bare one the margin is explained."""
    catboost = pytest.importorskip("catboost")
    path, model = of_catboost(tmp_path, ".cbm", task)
    own = ws.Explainer(model, ROWS, progress=False)(ROWS.head(4))
    for again in (as_model_file(path).load(), type(model)().load_model(str(path))):
        found = ws.Explainer(again, ROWS, progress=False)(ROWS.head(4))
        np.testing.assert_allclose(found.values, own.values, rtol=1e-6, atol=1e-9)

    bare = ws.Explainer(catboost.CatBoost().load_model(str(path)), ROWS, progress=False)(
        ROWS.head(4)
    )
    raw = model.predict(ROWS.head(4), prediction_type="RawFormulaVal")
    np.testing.assert_allclose(bare.predictions, raw, rtol=1e-6)


@pytest.mark.parametrize("suffix", [".txt", ".json", ".cbm"])
def test_another_number_of_columns_is_refused(tmp_path, suffix):
    path, _ = MAKERS[suffix](tmp_path, suffix, "regression")
    with pytest.raises(ValueError, match="The background has 2 columns but the model expects 3"):
        ws.Explainer(
            as_model_file(path).load(), ROWS.to_numpy()[:, :2], game="marginal", progress=False
        )


def test_a_booster_of_xgboost_refuses_another_number_of_columns_that_xgboost_takes():
    xgboost = pytest.importorskip("xgboost")
    booster = xgboost.train({}, xgboost.DMatrix(ROWS.to_numpy(), Y), 2)
    assert len(booster.predict(xgboost.DMatrix(ROWS.to_numpy()[:, :2]))) == len(ROWS)
    with pytest.raises(ValueError, match="The background has 2 columns but the model expects 3"):
        ws.Explainer(booster, ROWS.to_numpy()[:, :2], game="marginal", progress=False)


@pytest.mark.parametrize("suffix", [".txt", ".json", ".ubj", ".cbm", ".onnx", ".skops"])
def test_a_damaged_model_ends_the_command_with_a_sentence(tmp_path, suffix):
    path, _ = MAKERS[suffix](tmp_path, suffix, "regression")
    path.write_bytes(path.read_bytes()[:-30])
    result, _ = run_command(tmp_path, path)
    assert result.exit_code == stops.INPUT
    assert f"cannot be read as a {suffix} model" in result.output
    assert len(result.output.splitlines()) < 4
