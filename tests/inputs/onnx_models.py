"""Small ONNX graphs in sessions of onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest


def open_onnx_session(nodes, inputs, outputs, constants=()):
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
    return open_onnx_session(nodes, [("X", "FLOAT", len(W))], [("y", "FLOAT", 1)], [("W", W)])


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
    return open_onnx_session(nodes, inputs, [("probabilities", "FLOAT", 1)], [("shape", shape)])
