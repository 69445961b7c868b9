"""Models from files that cannot run code: LightGBM text, XGBoost JSON and UBJ, CatBoost, ONNX, skops; module:function.

A pickle runs whatever its author wrote into it the moment it is opened. So pickles are read only when that is asked
for by name, and every other file must look like what its name says before a library is handed it.
"""

import hashlib
import importlib
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from weightedshap.checks import require
from weightedshap.inputs.columns import UserModel

FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")  # module:function
PICKLES = (".pkl", ".pickle", ".joblib")
STARTS: Mapping[str, tuple[bytes, ...]] = {
    ".txt": (b"tree\n",),
    ".json": (b"{",),
    ".ubj": (b"{",),
    ".cbm": (b"CBM1",),
    ".onnx": (b"\x08",),  # the first field of a model, the version of the format
    ".skops": (b"PK\x03\x04",),
}
"""What the files of each kind begin with."""


@dataclass(frozen=True)
class ModelFile:
    """Where a model is: a file, or ``module:function``; and what its loading is allowed to do."""

    path: str
    trust_pickle: bool = False
    trusted: tuple[str, ...] = ()  # types that a skops file may hold beside those that skops knows

    @property
    def is_function(self) -> bool:
        return FUNCTION.fullmatch(self.path) is not None and not Path(self.path).exists()

    def fingerprint(self) -> str:
        """The hash of the file; of a function its name, as its code cannot be told."""
        if self.is_function:
            return self.path
        return "sha256:" + hashlib.sha256(Path(self.path).read_bytes()).hexdigest()

    def load(self) -> UserModel:
        """The model; a ValueError where the file is not what its name says, or would run code."""
        if self.is_function:
            return _function(self.path)
        path = Path(self.path)
        kind = path.suffix.lower()
        if kind in PICKLES:
            return self._unpickled()
        if kind not in STARTS:
            known = ", ".join((*STARTS, *PICKLES))
            raise ValueError(f"{self.path!r} is no kind of model that is known. Known: {known}, or module:function.")
        with path.open("rb") as file:
            start = file.read(8)
        if not start.startswith(STARTS[kind]):
            raise ValueError(f"{self.path!r} does not begin like a {kind} model, so it was not opened. {_guess(start)}")
        try:
            return self._skops() if kind == ".skops" else LOADERS[kind](self.path)
        except (ImportError, MemoryError, Refused):
            raise
        except Exception as error:  # each library has errors of its own
            raise ValueError(f"{self.path!r} cannot be read as a {kind} model: {error}") from error

    def _unpickled(self) -> UserModel:
        if not self.trust_pickle:
            said = f"{self.path!r} is a pickle, which can run any code when it is opened."
            raise Refused(f"{said} If you made it yourself, pass --trust-pickle (trust_pickle=True).")
        import joblib

        return joblib.load(self.path)

    def _skops(self) -> UserModel:
        skops = require("skops.io", "skops")
        unknown = [name for name in skops.get_untrusted_types(file=self.path) if name not in self.trusted]
        if unknown:
            said = f"{self.path!r} holds types that skops does not trust: {', '.join(unknown)}."
            raise Refused(f"{said} If you know them, allow each by name: --trust-type {unknown[0]}.")
        return skops.load(self.path, trusted=list(self.trusted))


class Refused(ValueError):
    """A model that could run code, and was not allowed to."""


def as_model_file(
    model: str | os.PathLike[str], trust_pickle: bool = False, trusted: tuple[str, ...] = ()
) -> ModelFile:
    """Where a model is, checked to be there; workers in other folders find it too."""
    path = os.fspath(model)
    if Path(path).exists():
        return ModelFile(str(Path(path).resolve()), trust_pickle, trusted)
    if FUNCTION.fullmatch(path):
        return ModelFile(path)
    raise FileNotFoundError(2, "there is no such model; name a file, or module:function", path)


def _function(reference: str) -> UserModel:
    module, _, name = reference.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # people name modules of the folder they are in
    try:
        found: UserModel = vars(importlib.import_module(module))[name]
    except KeyError as error:
        raise ValueError(f"The module {module!r} has no {name!r}.") from error
    return found


def _guess(start: bytes) -> str:
    if start[:1] == b"\x80":
        return "It begins like a pickle."
    return f"It begins with {start!r}."


def _xgboost(path: str) -> UserModel:
    return require("xgboost", "xgboost").Booster(model_file=path)


def _catboost(path: str) -> UserModel:
    return require("catboost", "catboost").CatBoost().load_model(path, format="cbm")


def _onnx(path: str) -> UserModel:
    return require("onnxruntime", "onnx").InferenceSession(path, providers=["CPUExecutionProvider"])


def _lightgbm(path: str) -> UserModel:
    text = Path(path).read_text(encoding="utf-8")
    if "\0" in text or "\nend of trees\n" not in text:  # on some such files LightGBM never comes back
        raise ValueError("it is cut off, or no text.")
    return require("lightgbm", "lightgbm").Booster(model_str=text)


LOADERS: Mapping[str, Callable[[str], UserModel]] = {
    ".txt": _lightgbm,
    ".json": _xgboost,
    ".ubj": _xgboost,
    ".cbm": _catboost,
    ".onnx": _onnx,
}
