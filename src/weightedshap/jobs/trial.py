"""Load a binary model and let it predict in a separate process, so that a crash ends only that.

`weightedshap.jobs.model_files` runs this file as a script. It imports a model's library, and
nothing of this package.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

LIBRARIES = {".cbm": "catboost", ".onnx": "onnxruntime"}
# The memory limit for a model: a fixed number of bytes, plus some for each byte of its file.
MAX_MEMORY = 2**33
MAX_MEMORY_PER_BYTE = 20

DTYPES = {
    "tensor(double)": "f8",
    "tensor(float16)": "f2",
    "tensor(int64)": "i8",
    "tensor(int32)": "i4",
    "tensor(bool)": "?",
}


def _limit_memory(path: str) -> None:
    """Limit the memory of this process, depending on the size of the model file `path`.

    Windows has no such limit.
    """
    with suppress(ImportError, ValueError, OSError):
        import resource

        most = MAX_MEMORY + MAX_MEMORY_PER_BYTE * Path(path).stat().st_size
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def try_catboost(path: str) -> None:
    """Load a CatBoost model, predict with it, and write it as JSON.

    The library reads its trees from JSON.
    """
    import catboost

    model = catboost.CatBoost().load_model(path, format="cbm")
    text_columns = {*model.get_cat_feature_indices(), *model.get_text_feature_indices()}
    columns = range(len(model.feature_names_))
    for number in (0.0, float("nan"), -1e30, 1e30):
        row = ["0" if column in text_columns else number for column in columns]
        # A model may refuse such a row; only a crash counts.
        with suppress(Exception):
            model.predict([row], thread_count=1)
    with tempfile.TemporaryDirectory() as folder, suppress(catboost.CatBoostError):
        model.save_model(str(Path(folder) / "model.json"), format="json")


def try_onnx(path: str) -> None:
    """Load an ONNX model and run it on one row of zeros."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    # A model may refuse such a row; only a crash counts.
    with suppress(Exception):
        rows = {one.name: _zeros(np, one.type, one.shape) for one in session.get_inputs()}
        session.run(None, rows)


def _zeros(np: Any, kind: str, shape: list[Any]) -> Any:
    """Return an array of zeros, or of empty texts, for an input of an ONNX model.

    `np` is numpy, imported late, and `kind` the name of the type, such as "tensor(double)".
    Dimensions of `shape` that are free get length 1.
    """
    lengths = [length if isinstance(length, int) and length > 0 else 1 for length in shape]
    if kind == "tensor(string)":
        return np.full(lengths, "", dtype=object)
    return np.zeros(lengths, DTYPES.get(kind, "f4"))


TRIALS: Mapping[str, Callable[[str], None]] = {".cbm": try_catboost, ".onnx": try_onnx}


def main(suffix: str, path: str) -> int:
    """Try the model file at `path`; return 0 if it loads, and 1 if its library rejects it.

    `suffix` tells which library to use. The error is written to standard error.
    """
    __import__(LIBRARIES[suffix])
    _limit_memory(path)
    try:
        TRIALS[suffix](path)
    except Exception as error:
        sys.stderr.write(f"\n{str(error) or type(error).__name__}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
