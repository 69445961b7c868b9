"""Models from files, and files that would run code."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pytest
from lightgbm import LGBMRegressor

from tests.people import onnx_linear
from weightedshap.model_files import ModelFile, as_model_file

X = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)
Y = X[:, 0] - 2 * X[:, 1]


def loaded(path, **allowed):
    return as_model_file(path, **allowed).load()


def test_lightgbm(tmp_path):
    model = LGBMRegressor(n_estimators=5, verbose=-1).fit(X, Y)
    model.booster_.save_model(tmp_path / "m.txt")
    assert np.array_equal(loaded(tmp_path / "m.txt").predict(X), model.predict(X))


@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_xgboost(tmp_path, suffix):
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBRegressor(n_estimators=5).fit(X, Y)
    model.save_model(tmp_path / f"m.{suffix}")
    assert np.array_equal(loaded(tmp_path / f"m.{suffix}").predict(xgboost.DMatrix(X)), model.predict(X))


def test_catboost(tmp_path):
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostRegressor(iterations=5, verbose=False, allow_writing_files=False).fit(X, Y)
    model.save_model(str(tmp_path / "m.cbm"))
    assert np.array_equal(loaded(tmp_path / "m.cbm").predict(X), model.predict(X))


def test_onnx(tmp_path):
    onnx = pytest.importorskip("onnx")
    onnx_linear([1.0, -2.0, 0.0])  # skips without the runtime
    graph = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 17]> g (float[N, 3] X) => (float[N, 1] y)'
        " <float[3, 1] W = {1, -2, 0}> { y = MatMul(X, W) }"
    )
    onnx.save(graph, tmp_path / "m.onnx")
    assert np.allclose(loaded(tmp_path / "m.onnx").run(None, {"X": X})[0][:, 0], Y, atol=1e-5)


class Own:
    def predict(self, rows):
        return rows[:, 0]


def test_skops_lists_types_it_does_not_know_and_wants_them_by_name(tmp_path):
    skops = pytest.importorskip("skops.io")
    skops.dump(Own(), tmp_path / "m.skops")
    with pytest.raises(ValueError, match=r"does not trust: tests\.test_model_files\.Own.*--trust-type"):
        loaded(tmp_path / "m.skops")
    assert isinstance(loaded(tmp_path / "m.skops", trusted=("tests.test_model_files.Own",)), Own)


def test_a_function_of_a_module_in_this_folder(tmp_path, monkeypatch):
    (tmp_path / "my_model_of_a_test.py").write_text("def score(rows):\n    return rows[:, 0]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert np.array_equal(loaded("my_model_of_a_test:score")(X), X[:, 0])
    with pytest.raises(ValueError, match="has no 'scores'"):
        loaded("my_model_of_a_test:scores")


@pytest.mark.parametrize("suffix", ["pkl", "pickle", "joblib"])
def test_pickles_only_when_they_are_trusted(tmp_path, suffix):
    joblib.dump(Own(), tmp_path / f"m.{suffix}")
    with pytest.raises(ValueError, match=r"can run any code.*--trust-pickle"):
        loaded(tmp_path / f"m.{suffix}")
    assert isinstance(loaded(tmp_path / f"m.{suffix}", trust_pickle=True), Own)


class Hostile:
    """Leaves a trace when it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return open, (self.trace, "w")


@pytest.mark.parametrize("protocol", [0, pickle.HIGHEST_PROTOCOL])
@pytest.mark.parametrize("suffix", ["txt", "json", "ubj", "cbm", "onnx", "skops", "pkl", "joblib"])
@pytest.mark.parametrize("before", [b"", b"{", b"PK\x03\x04", b"tree\n", b"CBM1", b"\x08"])
def test_a_hostile_file_runs_nothing(tmp_path, suffix, before, protocol):
    if suffix == "skops":
        pytest.importorskip("skops")
    trace = tmp_path / "trace"
    (tmp_path / f"m.{suffix}").write_bytes(before + pickle.dumps(Hostile(str(trace)), protocol))
    with pytest.raises(ValueError, match=rf"m\.{suffix}"):
        loaded(tmp_path / f"m.{suffix}")
    assert not trace.exists()


def test_unknown_and_missing_files(tmp_path):
    (tmp_path / "m.h5").write_bytes(b"")
    with pytest.raises(ValueError, match=r"Known: \.txt"):
        loaded(tmp_path / "m.h5")
    with pytest.raises(FileNotFoundError, match="module:function"):
        loaded(tmp_path / "m.txt")


def test_the_fingerprint_is_of_the_content(tmp_path):
    for name, text in (("a.txt", "tree\n1"), ("b.txt", "tree\n1"), ("c.txt", "tree\n2")):
        (tmp_path / name).write_text(text)
    a, b, c = (as_model_file(tmp_path / f"{name}.txt").fingerprint() for name in "abc")
    assert a == b != c
    assert ModelFile("module:function").fingerprint() == "module:function"
