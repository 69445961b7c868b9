"""Models from files, and files that would run code."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import zipfile

import joblib
import numpy as np
import pytest
from lightgbm import LGBMRegressor

import weightedshap as ws
from tests.inputs.onnx_models import onnx_linear
from tests.time_limit import time_limit
from tests.trees import ubjson
from tests.trees.test_lightgbm_text import chain
from weightedshap.jobs import model_files, trial
from weightedshap.jobs.model_files import ModelFile, as_model_file

X = np.random.default_rng(0).normal(size=(80, 3)).astype(np.float32)
Y = X[:, 0] - 2 * X[:, 1]


def load(path, **allowed):
    return as_model_file(path, **allowed).load()


def test_a_model_file_of_lightgbm_is_loaded(tmp_path):
    model = LGBMRegressor(n_estimators=5, verbose=-1).fit(X, Y)
    model.booster_.save_model(tmp_path / "m.txt")
    assert np.array_equal(load(tmp_path / "m.txt").predict(X), model.predict(X))


@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_a_model_file_of_xgboost_is_loaded(tmp_path, suffix):
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBRegressor(n_estimators=5).fit(X, Y)
    model.save_model(tmp_path / f"m.{suffix}")
    assert np.array_equal(load(tmp_path / f"m.{suffix}").predict(X), model.predict(X))
    model.get_booster().save_model(tmp_path / f"m.{suffix}")
    assert np.array_equal(
        load(tmp_path / f"m.{suffix}").predict(xgboost.DMatrix(X)), model.predict(X)
    )


def test_a_model_file_of_catboost_is_loaded(tmp_path):
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostRegressor(iterations=5, verbose=False, allow_writing_files=False).fit(
        X, Y
    )
    model.save_model(str(tmp_path / "m.cbm"))
    assert np.array_equal(load(tmp_path / "m.cbm").predict(X), model.predict(X))


def test_a_model_file_of_onnx_is_loaded(tmp_path):
    onnx = pytest.importorskip("onnx")
    onnx_linear([1.0, -2.0, 0.0])  # skips without the runtime
    graph = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 17]> g (float[N, 3] X) => (float[N, 1] y)'
        " <float[3, 1] W = {1, -2, 0}> { y = MatMul(X, W) }"
    )
    onnx.save(graph, tmp_path / "m.onnx")
    assert np.allclose(load(tmp_path / "m.onnx").run(None, {"X": X})[0][:, 0], Y, atol=1e-5)


HOSTILE_TEXTS = {
    "a circle": chain(4, {"left_child": [-1, 2, 1], "right_child": [-2, -3, -4]}),
    "its own child": chain(4, {"left_child": [0, -2, -3]}),
    "a child beyond the end": chain(4, {"right_child": [1, 2, 10**6]}),
    "a leaf beyond the end": chain(4, {"left_child": [-(10**6), -2, -3]}),
    "a negative feature": chain(4, {"split_feature": [0, -5, 0]}),
    "a feature beyond the end": chain(4, {"split_feature": [0, 10**8, 0]}),
    "stale sizes": chain(4, head={"tree_sizes": 10**9}),
    "no trees in an iteration": chain(4, head={"num_tree_per_iteration": 0}),
    "a chain": chain(20_001),
    "classes": chain(4, head={"num_class": 10**8, "num_tree_per_iteration": 10**8}),
    "classes of the objective": chain(4, head={"objective": "multiclass num_class:100000000"}),
    "no name of the objective": chain(4, head={"objective": ""}),
    "no parameter": chain(4, tail="\nparameters:\n[boosting]\nend of parameters\n"),
}


@pytest.mark.parametrize("name", HOSTILE_TEXTS)
def test_hostile_texts_are_refused_before_lightgbm_sees_them(tmp_path, name):
    (tmp_path / "m.txt").write_text(HOSTILE_TEXTS[name])
    with (
        time_limit(20),
        pytest.raises(ValueError, match=r"m\.txt' cannot be read as a \.txt model"),
    ):
        load(tmp_path / "m.txt")


def hostile_documents():
    documents = pytest.importorskip("tests.trees.test_documents")
    return {
        "a circle": documents.one_tree(left_children=[1, 0, -1, -1, -1]),
        "its own child": documents.one_tree(left_children=[1, 1, -1, -1, -1]),
        "a child beyond the end": documents.one_tree(right_children=[2, 10**8, -1, -1, -1]),
        "a feature beyond the end": documents.one_tree(split_indices=[0, 10**8, 0, 0, 0]),
        "a parent beyond the end": documents.one_tree(parents=[2147483647, 0, 0, 1, 10**8]),
        "an output beyond the end": documents.changed(
            documents.TREE, (*documents.MODEL, "tree_info"), [10**8]
        ),
        "two trees of one number": documents.changed(
            documents.changed(
                documents.TREE, (*documents.MODEL, "trees"), [documents.one_tree()] * 2
            ),
            (*documents.MODEL, "tree_info"),
            [0, 0],
        ),
        "few weights": documents.changed(
            documents.document(documents.booster(booster="gblinear")),
            (*documents.MODEL, "weights"),
            [1.0],
        ),
        "nesting": documents.changed(documents.TREE, ("learner", "x"), nest(300)),
    }


def nest(levels):
    value = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("suffix", ["json", "ubj"])
def test_hostile_documents_are_refused_before_xgboost_sees_them(tmp_path, suffix):
    for content in hostile_documents().values():
        encoded = json.dumps(content).encode() if suffix == "json" else ubjson.encode(content)
        (tmp_path / f"m.{suffix}").write_bytes(encoded)
        with (
            time_limit(20),
            pytest.raises(ValueError, match=rf"m\.{suffix}' cannot be read as a \.{suffix} model"),
        ):
            load(tmp_path / f"m.{suffix}")


def onnx_of(path, text):
    """A graph in ONNX's own words."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    onnx.save(onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]> {text}'), path)
    return path


ENDLESS = """g (float[N, 3] X) => (float[N, 3] y) <int64 n = {9000000000000000000}, bool go = {1}> {
    y = Loop (n, go, X) <body = inner (int64 i, bool before, float[N, 3] a)
            => (bool after, float[N, 3] b) {
        after = Identity(before)
        b = Identity(a)
    }>
}"""
HUGE = """g (float[N, 3] X) => (float[N, 3] y) <int64[2] shape = {200000000000, 3}> {
    z = ConstantOfShape(shape)
    top = ReduceMax <keepdims = 0> (z)
    y = Add(X, top)
}"""


def test_an_onnx_graph_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(model_files, "TRIAL_SECONDS", 10)
    with (
        time_limit(60),
        pytest.raises(ValueError, match="did not load and predict a row of zeros within 10 s"),
    ):
        load(onnx_of(tmp_path / "m.onnx", ENDLESS))


def test_an_onnx_graph_that_takes_any_memory_is_refused(tmp_path):
    """Or runs out of memory on its row; what is left is a sentence of the runtime when it
    predicts."""
    path = onnx_of(tmp_path / "m.onnx", HUGE)
    try:
        model = load(path)
    except ValueError as error:
        assert "cannot be read as a .onnx model" in str(error)  # noqa: PT017
    else:
        with pytest.raises(ValueError, match=r"memory|alloc"):
            ws.Explainer(model, X, game="marginal", progress=False)


@pytest.mark.parametrize("suffix", ["cbm", "onnx"])
def test_a_binary_model_that_ends_its_library_or_hangs_is_refused(tmp_path, monkeypatch, suffix):
    """Other scripts stand for a library that meets such a model."""
    pytest.importorskip(trial.LIBRARIES[f".{suffix}"])
    start, _ = model_files.KINDS[f".{suffix}"]
    (tmp_path / "dies.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    (tmp_path / "hangs.py").write_text("import time\nwhile True:\n    time.sleep(1)\n")
    (tmp_path / f"a.{suffix}").write_bytes(start + b"a")
    (tmp_path / f"b.{suffix}").write_bytes(start + b"b")

    monkeypatch.setattr(trial, "__file__", str(tmp_path / "dies.py"))
    with pytest.raises(ValueError, match=r"ended a process that tried it \(-11\)"):
        load(tmp_path / f"a.{suffix}")

    monkeypatch.setattr(trial, "__file__", str(tmp_path / "hangs.py"))
    monkeypatch.setattr(model_files, "TRIAL_SECONDS", 1)
    with pytest.raises(ValueError, match="within 1 s"):
        load(tmp_path / f"b.{suffix}")


def test_a_binary_model_is_tried_once_in_a_process(tmp_path, monkeypatch):
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostRegressor(iterations=2, verbose=False, allow_writing_files=False).fit(
        X, Y
    )
    model.save_model(str(tmp_path / "m.cbm"))
    load(tmp_path / "m.cbm")
    monkeypatch.setattr(trial, "__file__", str(tmp_path / "nothing there.py"))
    load(tmp_path / "m.cbm")
    model.set_scale_and_bias(2.0, 0.0)
    model.save_model(str(tmp_path / "m.cbm"))
    with pytest.raises(ValueError, match=r"nothing there\.py"):
        load(tmp_path / "m.cbm")


def test_the_trial_passes_on_the_error_of_the_library(tmp_path, capsys):
    catboost = pytest.importorskip("catboost")
    model = catboost.CatBoostRegressor(iterations=2, verbose=False, allow_writing_files=False)
    texts = [["a", "b", "c"][k % 3] for k in range(80)]
    model.fit(
        [[*row, text] for row, text in zip(X.tolist(), texts, strict=True)], Y, cat_features=[3]
    )
    model.save_model(str(tmp_path / "m.cbm"))
    assert trial_of(tmp_path / "m.cbm") == (0, "")
    (tmp_path / "m.cbm").write_bytes(b"CBM1")
    code, message = trial_of(tmp_path / "m.cbm")
    assert code == 1
    assert message


def test_the_trial_has_only_so_much_memory(tmp_path):
    pytest.importorskip("resource")
    (tmp_path / "m.onnx").write_bytes(bytes(100))
    code = (
        "import runpy, sys\n"
        "names = runpy.run_path(sys.argv[1])\n"
        "names['_limit_memory'](sys.argv[2])\n"
        "bytearray(2**28)\n"
        "bytearray(2**33 + 4000)\n"
    )
    command = [sys.executable, "-c", code, trial.__file__, str(tmp_path / "m.onnx")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "line 5" in done.stderr
    assert "MemoryError" in done.stderr


def trial_of(path):
    """The exit code and the last words of the trial, run as `model_files` runs it."""
    command = [sys.executable, "-P", trial.__file__, path.suffix, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""


def test_a_skops_file_that_unpacks_to_much_more_is_refused(tmp_path):
    pytest.importorskip("skops.io")
    with zipfile.ZipFile(tmp_path / "m.skops", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", "{}")
        with archive.open("array.npy", "w") as member:
            for _ in range(300):
                member.write(bytes(2**20))
    assert (tmp_path / "m.skops").stat().st_size < 2**20
    with pytest.raises(ValueError, match=r"unpacks to 314,572,8\d\d bytes, where up to 2"):
        load(tmp_path / "m.skops")


class Own:
    def predict(self, rows):
        return rows[:, 0]


def test_skops_lists_types_it_does_not_know_and_wants_them_by_name(tmp_path):
    skops = pytest.importorskip("skops.io")
    skops.dump(Own(), tmp_path / "m.skops")
    with pytest.raises(
        ValueError, match=r"does not trust: tests\.jobs\.test_model_files\.Own.*--trust-type"
    ):
        load(tmp_path / "m.skops")
    assert isinstance(load(tmp_path / "m.skops", trusted=("tests.jobs.test_model_files.Own",)), Own)


def test_a_function_of_a_module_in_this_folder_is_a_model(tmp_path, monkeypatch):
    (tmp_path / "my_model_of_a_test.py").write_text("def score(rows):\n    return rows[:, 0]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert np.array_equal(load("my_model_of_a_test:score")(X), X[:, 0])
    with pytest.raises(ValueError, match="has no 'scores'"):
        load("my_model_of_a_test:scores")


@pytest.mark.parametrize("suffix", ["pkl", "pickle", "joblib"])
def test_pickles_are_loaded_only_when_they_are_trusted(tmp_path, suffix):
    joblib.dump(Own(), tmp_path / f"m.{suffix}")
    with pytest.raises(ValueError, match=r"can run any code.*--trust-pickle"):
        load(tmp_path / f"m.{suffix}")
    assert isinstance(load(tmp_path / f"m.{suffix}", trust_pickle=True), Own)


@pytest.mark.parametrize("content", [b"", b"\x80\x04", b"\x80\x04K\x01", b"no pickle"])
def test_a_damaged_pickle_is_refused_in_a_sentence(tmp_path, content):
    (tmp_path / "m.pkl").write_bytes(content)
    with pytest.raises(ValueError, match=r"m\.pkl' cannot be read as a \.pkl model: \S"):
        load(tmp_path / "m.pkl", trust_pickle=True)


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
        load(tmp_path / f"m.{suffix}")
    assert not trace.exists()


def test_unknown_and_missing_files_are_refused(tmp_path):
    (tmp_path / "m.h5").write_bytes(b"")
    with pytest.raises(ValueError, match=r"Known: \.txt"):
        load(tmp_path / "m.h5")
    with pytest.raises(FileNotFoundError, match="module:function"):
        load(tmp_path / "m.txt")


@pytest.mark.skipif(
    not hasattr(os, "mkfifo"), reason="on pipes in folders; to run: take Linux or macOS"
)
def test_a_pipe_or_a_folder_is_no_model_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "folder.json").mkdir()
    for name in ("pipe.txt", "folder.json"):
        with (
            time_limit(10),
            pytest.raises(ValueError, match="no file but a folder, a pipe or a device"),
        ):
            load(tmp_path / name)


def test_memory_that_runs_out_is_reported_in_a_sentence(tmp_path, monkeypatch):
    def read(file):
        raise MemoryError

    monkeypatch.setitem(model_files.KINDS, ".txt", (b"tree", read))
    (tmp_path / "m.txt").write_text("tree\n")
    with pytest.raises(
        ValueError,
        match=r"m\.txt' cannot be read as a \.txt model: it needs more memory than there is",
    ):
        load(tmp_path / "m.txt")


def test_of_a_librarys_error_only_the_first_line_is_passed_on(tmp_path):
    """XGBoost goes on with the names of its own functions."""
    pytest.importorskip("xgboost")
    (tmp_path / "m.json").write_text(json.dumps(UNKNOWN_OBJECTIVE))
    with pytest.raises(ValueError, match="Unknown objective function") as caught:
        load(tmp_path / "m.json")
    assert "\n" not in str(caught.value)


UNKNOWN_OBJECTIVE = {
    "learner": {
        "attributes": {},
        "learner_model_param": {"base_score": "0", "num_class": "0", "num_feature": "1"},
        "objective": {"name": "reg:unknown"},
        "gradient_booster": {"name": "gblinear", "model": {"weights": [1.0, 2.0]}},
    },
    "version": [3, 1, 0],
}


def test_the_fingerprint_is_of_the_content(tmp_path):
    for name, text in (("a.txt", "tree\n1"), ("b.txt", "tree\n1"), ("c.txt", "tree\n2")):
        (tmp_path / name).write_text(text)
    a, b, c = (as_model_file(tmp_path / f"{name}.txt").fingerprint() for name in "abc")
    assert a == b != c
    assert ModelFile("module:function").fingerprint() == "module:function"
