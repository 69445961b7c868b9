"""Models from files that cannot run code: LightGBM text, XGBoost JSON and UBJ, CatBoost, ONNX,
skops; module:function.

A pickle runs whatever its author wrote into it the moment it is opened. So pickles are read only
when that is asked for by name. Every other file must look like what its name says before a library
is handed it. And as libraries trust what they read, texts and documents are checked first, and
binary models are tried in a process of their own.
"""

import hashlib
import importlib
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from weightedshap._checks import require
from weightedshap._lazy import Lazily
from weightedshap.inputs.containers import UserModel
from weightedshap.jobs import trial
from weightedshap.trees import documents, ubjson
from weightedshap.trees import lightgbm_text as texts

joblib = Lazily("joblib")
FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")  # module:function
PICKLES = (".pkl", ".pickle", ".joblib")
ON_CPU = ["CPUExecutionProvider"]  # where ONNX models run
TRIAL_SECONDS = 60  # for a binary model to load and to predict
UNPACKED = 2**28  # bytes that a skops file may unpack to beside
UNPACKED_OF_BYTE = 20  # so many for each of its bytes


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
            raise Refused(
                f"{said} If you made it yourself, pass --trust-pickle (trust_pickle=True)."
            )
        if kind not in (*KINDS, *PICKLES):
            known = ", ".join((*KINDS, *PICKLES))
            raise ValueError(
                f"{self.path!r} is no kind of model that is known. Known: {known}, or"
                " module:function."
            )
        begin, read = (b"", _pickle) if kind in PICKLES else KINDS[kind]
        with path.open("rb") as file:
            start = file.read(8)
        if not start.startswith(begin):
            like = "like a pickle" if start[:1] == b"\x80" else f"with {start!r}"
            said = f"{self.path!r} does not begin like a {kind} model, so it was not opened."
            raise ValueError(f"{said} It begins {like}.")
        try:
            return read(self)
        except (ImportError, Refused):
            raise
        except Exception as error:  # each library has errors of its own
            lines = str(error).strip().splitlines()  # a stack of C++ may follow the first
            why = lines[0] if lines else type(error).__name__
            why = "it needs more memory than there is." if isinstance(error, MemoryError) else why
            raise ValueError(f"{self.path!r} cannot be read as a {kind} model: {why}") from error


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


def as_model_file(
    model: str | os.PathLike[str], trust_pickle: bool = False, trusted: Iterable[str] = ()
) -> ModelFile:
    """Where a model is, checked to be there; workers in other folders find it too."""
    found = ModelFile(os.fspath(model), trust_pickle, tuple(trusted))
    if found.is_function:
        return found
    path = Path(found.path)
    if not path.exists():
        raise FileNotFoundError(
            2, "there is no such model; name a file, or module:function", found.path
        )
    if not path.is_file():  # a pipe would be waited for without end
        raise ValueError(
            f"{found.path!r} is no file but a folder, a pipe or a device. Name the file of a model."
        )
    return replace(found, path=str(path.resolve()))


def _function(reference: str) -> UserModel:
    module, _, name = reference.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # people name modules of the folder they are in
    try:
        found: UserModel = vars(importlib.import_module(module))[name]
    except KeyError as error:
        raise ValueError(f"The module {module!r} has no {name!r}.") from error
    return found


def _pickle(file: ModelFile) -> UserModel:
    return joblib.load(file.path)


def _lightgbm(file: ModelFile) -> UserModel:
    text = Path(file.path).read_text(encoding="utf-8")
    texts.check_text(text)
    return require("lightgbm", "lightgbm").Booster(model_str=text)


def _xgboost(file: ModelFile) -> UserModel:
    """A booster, or the estimator that wrote the file, which stops at its best iteration."""
    content = Path(file.path).read_bytes()
    is_json = file.path.lower().endswith(".json")
    document = documents.read_json(content) if is_json else ubjson.decode(content)
    facts = documents.check_document(document)
    if is_json:
        content = b"{" + content[1:].lstrip()  # XGBoost tells formats apart by the second letter

    xgboost = require("xgboost", "xgboost")
    estimators = {
        "classifier": xgboost.XGBClassifier,
        "regressor": xgboost.XGBRegressor,
        "ranker": xgboost.XGBRanker,
    }
    model = estimators.get(facts.estimator, xgboost.Booster)()
    model.load_model(bytearray(content))
    return model


def _catboost(file: ModelFile) -> UserModel:
    """A classifier where the model has classes, which is explained by its probabilities; else a
    regressor."""
    catboost = require("catboost", "catboost")
    _try_out(file.path, file.fingerprint())
    has_classes = len(catboost.CatBoost().load_model(file.path, format="cbm").classes_) > 0
    model = catboost.CatBoostClassifier() if has_classes else catboost.CatBoostRegressor()
    return model.load_model(file.path, format="cbm")


def _onnx(file: ModelFile) -> UserModel:
    onnxruntime = require("onnxruntime", "onnx")
    _try_out(file.path, file.fingerprint())
    return onnxruntime.InferenceSession(file.path, providers=ON_CPU)


@lru_cache(maxsize=8)
def _try_out(path: str, fingerprint: str) -> None:
    """Load a binary model in a fresh interpreter and let it predict; a ValueError where that ends
    or hangs.

    What is at `path` is known by its hash, so that one process tries no model twice.
    """
    command = [sys.executable, "-P", trial.__file__, Path(path).suffix.lower(), path]
    # The same packages as here, wherever they are, and no threads for one row.
    packages = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=TRIAL_SECONDS,
            env=os.environ | packages,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ValueError(
            f"it did not load and predict a row of zeros within {TRIAL_SECONDS} s."
        ) from error
    if done.returncode == 0:
        return

    *_, words = done.stderr.decode("utf-8", "replace").strip().splitlines() or [""]
    if done.returncode == 1:  # the library said why
        raise ValueError(words)
    raise ValueError(f"its library ended a process that tried it ({done.returncode}). {words}")


def _skops(file: ModelFile) -> UserModel:
    skops = require("skops.io", "skops")
    with zipfile.ZipFile(file.path) as archive:  # it reads no more of a member than is declared
        unpacked = sum(member.file_size for member in archive.infolist())
    most = UNPACKED + UNPACKED_OF_BYTE * Path(file.path).stat().st_size
    if unpacked > most:
        raise ValueError(
            f"it unpacks to {unpacked:,} bytes, where up to {most:,} are read of a file of its"
            " size."
        )
    if unknown := [
        name for name in skops.get_untrusted_types(file=file.path) if name not in file.trusted
    ]:
        said = f"{file.path!r} holds types that skops does not trust: {', '.join(unknown)}."
        raise Refused(f"{said} If you know them, allow each by name: --trust-type {unknown[0]}.")
    return skops.load(file.path, trusted=list(file.trusted))


KINDS: Mapping[str, tuple[bytes, Callable[[ModelFile], UserModel]]] = {
    ".txt": (b"tree", _lightgbm),
    ".json": (b"{", _xgboost),
    ".ubj": (b"{", _xgboost),
    ".cbm": (b"CBM1", _catboost),
    ".onnx": (b"\x08", _onnx),
    ".skops": (b"PK\x03\x04", _skops),
}
"""What the files of each kind begin with, ONNX with its first field, the version of the format; and
who reads them."""
