"""torch modules and ONNX sessions as functions of rows. Both libraries stay optional."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt

from weightedshap.checks import FloatArray, require
from weightedshap.inputs.columns import Array, Data, UserModel, as_numbers, column_of, in_dtype, kind_of

_SWITCHING = threading.RLock()  # a module that must be switched to eval mode serves one thread at a time


def _matrix(rows: Data, dtype: npt.DTypeLike) -> Array:
    """Rows as an array (n, c) of numbers."""
    names = kind_of(rows).names(rows)
    if names is not None:
        rows = np.stack([as_numbers(column_of(rows, c), repr(name), "X") for c, name in enumerate(names)], axis=1)
    return _cast(rows, dtype)


def _cast(values: Array, dtype: npt.DTypeLike) -> Array:
    """`values` in `dtype`; an error where whole numbers are wanted and there are fractions or holes."""
    cast = in_dtype(values, np.dtype(dtype))
    if cast.dtype != dtype:
        raise ValueError(
            f"The network takes {np.dtype(dtype)} and was handed numbers that are not: fractions, missing values or "
            "numbers out of range. Fill the holes, use game='marginal', which makes up no values, or pass `predict=`."
        )
    return cast


@contextmanager
def _evaluating(module: UserModel) -> Iterator[None]:
    """`module` in eval mode; afterwards every module in it is in the mode it was in before."""
    with _SWITCHING:
        training = [inner for inner in module.modules() if inner.training]
        if training:
            module.eval()
            try:
                yield
            finally:
                for inner in training:
                    inner.training = True
            return
    yield


def torch_answer(module: UserModel, rows: Data) -> FloatArray:
    """What a torch module says in eval mode, without gradients, of one tensor (n, c).

    It has the floating dtype and device of the module's parameters, single precision on the processor if it has none.
    """
    torch = require("torch", "neural")
    plain = torch.empty(0, dtype=torch.float32, device="cpu")
    like = next((p for p in module.parameters() if p.is_floating_point()), plain)
    X = torch.from_numpy(_matrix(rows, np.float64)).to(dtype=like.dtype, device=like.device)
    with _evaluating(module), torch.no_grad():
        answer = module(X)
    return np.asarray(answer.detach().to(device="cpu", dtype=torch.float64).numpy())


ONNX_FLOATS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
ONNX_DTYPES = ONNX_FLOATS | {"tensor(int64)": np.int64, "tensor(int32)": np.int32, "tensor(bool)": np.bool_}


def onnx_output(session: UserModel) -> tuple[str, str]:
    """The output of a session to explain, and its scale: one named like probabilities, else the first one of floats."""
    outputs = [(o.name, o.type) for o in session.get_outputs()]
    likely = [name for name, _ in outputs if "prob" in name.lower()]
    chosen = likely or [name for name, held in outputs if held in ONNX_FLOATS]
    if not chosen:
        raise TypeError(f"The ONNX session has no output of floats: {outputs}. Pass `predict=`, a function of rows.")
    return chosen[0], "probability" if likely else "value"


def onnx_answer(session: UserModel, output: str, rows: Data) -> Array:
    """What a session says that takes one matrix, or one input for each column, by name."""
    answer = session.run([output], _onnx_inputs([(i.name, i.type) for i in session.get_inputs()], rows))[0]
    if isinstance(answer, list):  # one dictionary class → probability for each row
        return np.array([list(row.values()) for row in answer])
    return np.asarray(answer)


def _onnx_inputs(wanted: list[tuple[str, str]], rows: Data) -> dict[str, Array]:
    """Rows as the inputs that are wanted, by name and type."""
    if len(wanted) == 1:
        name, held = wanted[0]
        return {name: _matrix(rows, ONNX_DTYPES.get(held, np.float32))}
    if rows.shape[1] != len(wanted):
        raise ValueError(f"The ONNX session has {len(wanted)} inputs but rows have {rows.shape[1]} columns.")
    names = kind_of(rows).names(rows) or (name for name, _ in wanted)
    position = {name: c for c, name in enumerate(names)}
    return {name: _onnx_column(rows, position[name], held) for name, held in wanted}


def _onnx_column(rows: Data, c: int, held: str) -> Array:
    """(n, 1) one column in the type of an ONNX input."""
    column = column_of(rows, c)
    if held == "tensor(string)":
        return np.array(["" if v is None else str(v) for v in column], dtype=object)[:, None]
    return _cast(as_numbers(column, repr(c), "X"), ONNX_DTYPES.get(held, np.float32))[:, None]
