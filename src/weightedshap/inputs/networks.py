"""torch modules and ONNX sessions as functions of rows. Both libraries stay optional."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weightedshap.checks import require
from weightedshap.inputs.columns import as_numbers, column_of, in_dtype, kind_of

__all__ = ["TorchCall", "OnnxCall"]

_SWITCHING = threading.RLock()  # a module that must be switched to eval mode serves one thread at a time


def _matrix(rows: Any, dtype: Any) -> Any:
    """Rows as an array (n, c) of numbers."""
    if isinstance(rows, np.ndarray):
        return _cast(rows, dtype)
    names = kind_of(rows).names(rows) or ()
    columns = [as_numbers(column_of(rows, c), repr(name), "X") for c, name in enumerate(names)]
    return _cast(np.stack(columns, axis=1), dtype)


def _cast(values: Any, dtype: Any) -> Any:
    """A copy in `dtype`; an error where whole numbers are wanted and there are fractions or holes."""
    cast = in_dtype(values, np.dtype(dtype))
    if cast.dtype != dtype:
        raise ValueError(
            f"The network takes {np.dtype(dtype)} and was handed numbers that are not: fractions, missing values or "
            "numbers out of range. Fill the holes, use game='marginal', which makes up no values, or pass `predict=`."
        )
    return cast


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """`module` in eval mode; afterwards every part of it is in the mode it was in before."""
    if not any(part.training for part in module.modules()):
        yield
        return
    with _SWITCHING:
        before = [(part, part.training) for part in module.modules()]
        module.eval()
        try:
            yield
        finally:
            for part, training in before:
                part.training = training


@dataclass(frozen=True)
class TorchCall:
    """A torch module, called in eval mode without gradients on one tensor (n, c).

    The tensor has the floating dtype and device of the module's parameters, single precision on the
    processor if it has none.
    """

    module: Any

    def __call__(self, rows: Any) -> Any:
        torch = require("torch", "neural")
        like = next((p for p in self.module.parameters() if p.is_floating_point()), None)
        dtype, device = (torch.float32, None) if like is None else (like.dtype, like.device)
        X = torch.from_numpy(_matrix(rows, np.float64)).to(dtype=dtype, device=device)
        with _evaluating(self.module), torch.no_grad():
            answer = self.module(X)
        return answer.detach().to(device="cpu", dtype=torch.float64).numpy()


ONNX_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}
FLOATS = ("tensor(float)", "tensor(double)", "tensor(float16)")


@dataclass(frozen=True)
class OnnxCall:
    """An onnxruntime session with one matrix as input, or one input for each column, by name.

    The answer is the output named like probabilities, else the first one of floats.
    """

    session: Any
    inputs: tuple[tuple[str, str], ...]  # name and type
    output: str
    is_probability: bool = field(default=False)

    @classmethod
    def of(cls, session: Any) -> OnnxCall:
        """Look at what a session takes and gives."""
        outputs = [(o.name, o.type) for o in session.get_outputs()]
        likely = [(name, kind) for name, kind in outputs if "prob" in name.lower()]
        chosen = likely or [(name, kind) for name, kind in outputs if kind in FLOATS]
        if not chosen:
            raise TypeError(
                f"The ONNX session has no output of floats: {outputs}. Pass `predict=`, a function of rows."
            )
        inputs = tuple((i.name, i.type) for i in session.get_inputs())
        return cls(session, inputs, chosen[0][0], bool(likely))

    def __call__(self, rows: Any) -> Any:
        answer = self.session.run([self.output], self._feed(rows))[0]
        if isinstance(answer, list):  # one dictionary class → probability for each row
            return np.array([list(row.values()) for row in answer])
        return answer

    def _feed(self, rows: Any) -> dict[str, Any]:
        if len(self.inputs) == 1:
            name, kind = self.inputs[0]
            return {name: _matrix(rows, ONNX_DTYPES.get(kind, np.float32))}
        names = kind_of(rows).names(rows)
        if rows.shape[1] != len(self.inputs):
            raise ValueError(f"The ONNX session has {len(self.inputs)} inputs but rows have {rows.shape[1]} columns.")
        order = names if names is not None else tuple(name for name, _ in self.inputs)
        position = {name: c for c, name in enumerate(order)}
        return {name: _onnx_column(rows, position[name], kind) for name, kind in self.inputs}


def _onnx_column(rows: Any, c: int, kind: str) -> Any:
    """(n, 1) one column in the type of an ONNX input."""
    column = column_of(rows, c)
    if kind == "tensor(string)":
        return np.array(["" if v is None else str(v) for v in column], dtype=object)[:, None]
    return _cast(as_numbers(column, repr(c), "X"), ONNX_DTYPES.get(kind, np.float32))[:, None]
