"""People's tables for tests: real ones where `WEIGHTEDSHAP_DATA` points to them, and generated
ones."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


def real(name, rows=400):
    """The first rows of one of the paper's datasets; the test is skipped where the file is not
    there."""
    folder = os.environ.get("WEIGHTEDSHAP_DATA")
    if not folder or not (Path(folder) / f"{name}.csv.gz").exists():
        pytest.skip(
            "on the paper's data; to run: set WEIGHTEDSHAP_DATA to the folder that holds it, see"
            " docs/paper.md"
        )
    return pd.read_csv(Path(folder) / f"{name}.csv.gz", nrows=rows)


def generated(n=120, seed=0):
    """A generated frame, no real data: every type of column that people have, with holes."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "weight": rng.normal(size=n).astype(np.float32),
            "rooms": rng.integers(1, 6, size=n),
            "floor": pd.array(rng.integers(0, 9, size=n), dtype="Int64"),
            "rate": pd.array(rng.random(n), dtype="Float64"),
            "city": rng.choice(["Bonn", "Köln", "Ulm"], size=n),
            "street": pd.array(rng.choice(["A", "B"], size=n), dtype="string"),
            "kind": pd.Categorical(
                rng.choice(["flat", "house"], size=n), categories=["flat", "house", "boat"]
            ),
            "grade": pd.Categorical(rng.choice([1, 2, 3], size=n), ordered=True),
            "new": rng.random(n) < 0.5,
            "lift": pd.array(rng.random(n) < 0.3, dtype="boolean"),
        }
    )
    frame.loc[::9, ["size", "floor", "rate", "city", "street", "kind", "lift"]] = None
    return frame


def scored(rows):
    """A function of `generated` rows of pandas that uses every type of column, holes included."""
    size = rows["size"].fillna(-1.0).to_numpy(float) + rows["weight"].to_numpy(float)
    whole = rows["rooms"].to_numpy(float) + rows["floor"].fillna(-2).to_numpy(float)
    text = rows["city"].map({"Bonn": 1.0, "Köln": 2.0, "Ulm": 3.0}).fillna(0.5).to_numpy(float)
    kind = rows["kind"].isna().to_numpy(float) + 2 * (rows["kind"] == "house").to_numpy(float)
    flags = rows["new"].to_numpy(float) - rows["lift"].fillna(False).to_numpy(float)
    street = (rows["street"] == "A").fillna(False).to_numpy(float)
    return size * text + whole * kind + flags * street + rows["rate"].fillna(0).to_numpy(float)


def onnx_session(nodes, inputs, outputs, constants=()):
    """A small ONNX graph in an onnxruntime session."""
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    tensor = onnx.helper.make_tensor_value_info
    kinds = onnx.TensorProto
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node(*node[:3], **node[3]) for node in nodes],
        "people",
        [tensor(name, getattr(kinds, kind), [None, width]) for name, kind, width in inputs],
        [tensor(name, getattr(kinds, kind), [None, width]) for name, kind, width in outputs],
        [onnx.numpy_helper.from_array(np.asarray(values), name) for name, values in constants],
    )
    opsets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("ai.onnx.ml", 3)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def onnx_linear(coefficients):
    """rows @ coefficients, one input (n, c)."""
    W = np.asarray(coefficients, dtype=np.float32)[:, None]
    nodes = [("MatMul", ["X", "W"], ["y"], {})]
    return onnx_session(nodes, [("X", "FLOAT", len(W))], [("y", "FLOAT", 1)], [("W", W)])


def onnx_columns():
    """Two inputs, text and a number; the probability of "here" is 1 for Ulm, the number for other
    cities."""
    encode = {"domain": "ai.onnx.ml", "cats_strings": ["Ulm"], "zeros": 1}
    nodes = [
        ("OneHotEncoder", ["city"], ["hot"], encode),
        ("Reshape", ["hot", "shape"], ["flat"], {}),
        ("Max", ["flat", "b"], ["probabilities"], {}),
    ]
    inputs = [("city", "STRING", 1), ("b", "FLOAT", 1)]
    shape = np.array([-1, 1], dtype=np.int64)
    return onnx_session(nodes, inputs, [("probabilities", "FLOAT", 1)], [("shape", shape)])


def mixed_rows(table, row, known, hidden):
    """(m·B) rows: known columns (m, c) from `row`, others from each of B `hidden` rows, which come
    together."""
    return table.mix_each(row, 0, known[:, None], hidden, np.arange(len(hidden)))


@contextmanager
def within(seconds):
    """A TimeoutError where what is done takes longer, so that what waits without end fails."""

    def stop(signal_number, stack):
        raise TimeoutError(f"it took longer than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
