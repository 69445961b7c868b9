"""Models from files that cannot run code: LightGBM text, XGBoost JSON and UBJ, CatBoost, ONNX, skops; module:function.

A pickle runs whatever its author wrote into it the moment it is opened. So pickles are read only when that is asked
for by name, and every other file must look like what its name says before a library is handed it.
"""

import hashlib
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from weightedshap.checks import require
from weightedshap.inputs.columns import UserModel
from weightedshap.lazily import Lazily

joblib = Lazily("joblib")
FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")  # module:function
PICKLES = (".pkl", ".pickle", ".joblib")
ON_CPU = ["CPUExecutionProvider"]  # where ONNX models run


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
        return self.path if self.is_function else hash_of(Path(self.path))

    def load(self) -> UserModel:
        """The model; a ValueError where the file is not what its name says, or would run code."""
        if self.is_function:
            return _function(self.path)
        path = Path(self.path)
        kind = path.suffix.lower()
        if kind in PICKLES and not self.trust_pickle:
            said = f"{self.path!r} is a pickle, which can run any code when it is opened."
            raise Refused(f"{said} If you made it yourself, pass --trust-pickle (trust_pickle=True).")
        if kind in PICKLES:
            return joblib.load(self.path)
        if kind not in KINDS:
            known = ", ".join((*KINDS, *PICKLES))
            raise ValueError(f"{self.path!r} is no kind of model that is known. Known: {known}, or module:function.")
        begin, read = KINDS[kind]
        with path.open("rb") as file:
            start = file.read(8)
        if not start.startswith(begin):
            like = "like a pickle" if start[:1] == b"\x80" else f"with {start!r}"
            said = f"{self.path!r} does not begin like a {kind} model, so it was not opened."
            raise ValueError(f"{said} It begins {like}.")
        try:
            return read(self)
        except (ImportError, MemoryError, Refused):
            raise
        except Exception as error:  # each library has errors of its own
            raise ValueError(f"{self.path!r} cannot be read as a {kind} model: {error}") from error


def hash_of(path: Path) -> str:
    """A hash of a file, or of all files of a folder."""
    found = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            with file.open("rb") as opened:
                found.update(hashlib.file_digest(opened, "sha256").digest())
    return "sha256:" + found.hexdigest()


class Refused(ValueError):
    """A model that could run code, and was not allowed to."""


def as_model_file(model: str | os.PathLike[str], trust_pickle: bool = False, trusted: Iterable[str] = ()) -> ModelFile:
    """Where a model is, checked to be there; workers in other folders find it too."""
    found = ModelFile(os.fspath(model), trust_pickle, tuple(trusted))
    if not found.is_function and not Path(found.path).exists():
        raise FileNotFoundError(2, "there is no such model; name a file, or module:function", found.path)
    return found if found.is_function else replace(found, path=str(Path(found.path).resolve()))


def _function(reference: str) -> UserModel:
    module, _, name = reference.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # people name modules of the folder they are in
    try:
        found: UserModel = vars(importlib.import_module(module))[name]
    except KeyError as error:
        raise ValueError(f"The module {module!r} has no {name!r}.") from error
    return found


def _xgboost(file: ModelFile) -> UserModel:
    return require("xgboost", "xgboost").Booster(model_file=file.path)


def _lightgbm(file: ModelFile) -> UserModel:
    text = Path(file.path).read_text(encoding="utf-8")
    if "\0" in text or "\nend of trees\n" not in text:  # on some such files LightGBM never comes back
        raise ValueError("it is cut off, or no text.")
    return require("lightgbm", "lightgbm").Booster(model_str=text)


def _skops(file: ModelFile) -> UserModel:
    skops = require("skops.io", "skops")
    if unknown := [name for name in skops.get_untrusted_types(file=file.path) if name not in file.trusted]:
        said = f"{file.path!r} holds types that skops does not trust: {', '.join(unknown)}."
        raise Refused(f"{said} If you know them, allow each by name: --trust-type {unknown[0]}.")
    return skops.load(file.path, trusted=list(file.trusted))


KINDS: Mapping[str, tuple[bytes, Callable[[ModelFile], UserModel]]] = {
    ".txt": (b"tree\n", _lightgbm),
    ".json": (b"{", _xgboost),
    ".ubj": (b"{", _xgboost),
    ".cbm": (b"CBM1", lambda file: require("catboost", "catboost").CatBoost().load_model(file.path, format="cbm")),
    ".onnx": (b"\x08", lambda file: require("onnxruntime", "onnx").InferenceSession(file.path, providers=ON_CPU)),
    ".skops": (b"PK\x03\x04", _skops),
}
"""What the files of each kind begin with, ONNX with its first field, the version of the format; and who reads them."""
