"""Load a binary model and let it predict, in a process of its own: a crash ends only that process.

`weightedshap.jobs.model_files` runs it as a script; it imports a library and nothing of this
package.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

LIBRARIES = {".cbm": "catboost", ".onnx": "onnxruntime"}
MEMORY = 2**33  # bytes that a model may take beside
MEMORY_OF_BYTE = 20  # so many for each byte of its file

DTYPES = {
    "tensor(double)": "f8",
    "tensor(float16)": "f2",
    "tensor(int64)": "i8",
    "tensor(int32)": "i4",
    "tensor(bool)": "?",
}


def _limit_memory(path: str) -> None:
    """Let the system refuse memory beyond what a model of this size should take; not on Windows."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        most = MEMORY + MEMORY_OF_BYTE * Path(path).stat().st_size
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def try_catboost(path: str) -> None:
    """Load a model of CatBoost, predict, and write it as JSON, which is how its trees are read."""
    import catboost

    model = catboost.CatBoost().load_model(path, format="cbm")
    texts = {*model.get_cat_feature_indices(), *model.get_text_feature_indices()}
    columns = range(len(model.feature_names_))
    for number in (0.0, float("nan"), -1e30, 1e30):
        row = ["0" if column in texts else number for column in columns]
        with suppress(Exception):  # that a model refuses such a row is no harm
            model.predict([row], thread_count=1)
    with tempfile.TemporaryDirectory() as folder, suppress(catboost.CatBoostError):
        model.save_model(str(Path(folder) / "model.json"), format="json")


def try_onnx(path: str) -> None:
    """Load an ONNX graph and run it on one row of zeros."""
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    with suppress(Exception):  # that a model refuses such a row is no harm
        rows = {one.name: _zeros(np, one.type, one.shape) for one in session.get_inputs()}
        session.run(None, rows)


def _zeros(np: Any, kind: str, shape: list[Any]) -> Any:
    """Return zeros of an input's type, or empty texts; lengths that are free are 1."""
    lengths = [length if isinstance(length, int) and length > 0 else 1 for length in shape]
    if kind == "tensor(string)":
        return np.full(lengths, "", dtype=object)
    return np.zeros(lengths, DTYPES.get(kind, "f4"))


TRIALS: Mapping[str, Callable[[str], None]] = {".cbm": try_catboost, ".onnx": try_onnx}


def main(suffix: str, path: str) -> int:
    """Try the model; 0 if it loads, and 1 with the library's words on standard error if not."""
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
