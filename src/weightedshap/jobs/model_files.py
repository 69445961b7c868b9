"""Load models from files that cannot run code.

These are files of LightGBM (text), XGBoost (JSON and UBJ), CatBoost, ONNX and skops, and functions
given as ``module:function``. A pickle can run any code when it is opened, so pickles are read only
if the user allows it. Every other file must begin as its suffix promises before a library opens it.
As libraries trust the files that they read, text and JSON are checked first, and binary models are
tried in a separate process.
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
from weightedshap._lazy import LazyModule
from weightedshap.jobs import trial
from weightedshap.trees import documents, lightgbm_text, ubjson

joblib = LazyModule("joblib")

FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")  # module:function
PICKLES = (".pkl", ".pickle", ".joblib")
ONNX_PROVIDERS = ["CPUExecutionProvider"]
TRIAL_SECONDS = 60  # for a binary model to load and to predict
# The limit on an unpacked skops file: a fixed number of bytes, plus some for each of its bytes.
MAX_UNPACKED_BYTES = 2**28
MAX_UNPACKED_PER_BYTE = 20


class UnsafeModelFileError(ValueError):
    """Raised when a model file could run code and the user has not allowed that."""


@dataclass(frozen=True)
class ModelFile:
    """A model given by its path or as ``module:function``, with permissions for loading it."""

    path: str
    trust_pickle: bool = False
    trusted: tuple[str, ...] = ()  # types allowed in a skops file, besides those that skops trusts

    @property
    def is_function(self) -> bool:
        """Whether the model is given as ``module:function``."""
        return FUNCTION.fullmatch(self.path) is not None and not Path(self.path).exists()

    def fingerprint(self) -> str:
        """Return the hash of the model file; for a ``module:function``, return its name.

        A function has no hash, because its code may be anywhere.
        """
        return self.path if self.is_function else content_hash(Path(self.path))

    def load(self) -> object:
        """Load and return the model; raise a ValueError if the file is invalid or unsafe."""
        if self.is_function:
            return _import_function(self.path)
        path = Path(self.path)
        suffix = path.suffix.lower()
        if suffix in PICKLES and not self.trust_pickle:
            raise UnsafeModelFileError(
                f"{self.path!r} is a pickle, which can run any code when it is opened. If you made"
                " it yourself, pass --trust-pickle (trust_pickle=True)."
            )
        if suffix not in (*KINDS, *PICKLES):
            suffixes = ", ".join((*KINDS, *PICKLES))
            raise ValueError(
                f"Unsupported model file {self.path!r}. Known: {suffixes}, or module:function."
            )
        magic, read = (b"", _read_pickle) if suffix in PICKLES else KINDS[suffix]
        with path.open("rb") as file:
            start = file.read(8)
        if not start.startswith(magic):
            actual = "like a pickle" if start[:1] == b"\x80" else f"with {start!r}"
            raise ValueError(
                f"{self.path!r} does not begin like a {suffix} model, so it was not opened. It"
                f" begins {actual}."
            )
        try:
            return read(self)
        except (ImportError, UnsafeModelFileError):
            raise
        # Each library has errors of its own.
        except Exception as error:
            reason = _first_line(error)
            if isinstance(error, MemoryError):
                reason = "it needs more memory than there is."
            raise ValueError(
                f"{self.path!r} cannot be read as a {suffix} model: {reason}"
            ) from error


def _first_line(error: Exception) -> str:
    """Return the first line of an error message; C++ libraries add a stack trace after it."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def content_hash(path: Path) -> str:
    """Return a SHA-256 hash of a file, or of all files in a folder."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            with file.open("rb") as opened:
                digest.update(hashlib.file_digest(opened, "sha256").digest())
    return "sha256:" + digest.hexdigest()


def as_model_file(
    model: str | os.PathLike[str], trust_pickle: bool = False, trusted: Iterable[str] = ()
) -> ModelFile:
    """Return a `ModelFile` with an absolute path, after checking that the file exists.

    Workers in other folders can load it. A ``module:function`` is not checked.
    """
    model_file = ModelFile(os.fspath(model), trust_pickle, tuple(trusted))
    if model_file.is_function:
        return model_file
    path = Path(model_file.path)
    if not path.exists():
        raise FileNotFoundError(
            2, "there is no such model; name a file, or module:function", model_file.path
        )
    # Opening a pipe could block forever.
    if not path.is_file():
        raise ValueError(
            f"{model_file.path!r} is no file but a folder, a pipe or a device. Name the file of a"
            " model."
        )
    return replace(model_file, path=str(path.resolve()))


def _import_function(reference: str) -> object:
    """Import and return the function that `reference`, a ``module:function``, names."""
    module, _, name = reference.partition(":")
    # Users refer to modules in the current folder.
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        function: object = vars(importlib.import_module(module))[name]
    except KeyError as error:
        raise ValueError(f"The module {module!r} has no {name!r}.") from error
    return function


def _read_pickle(file: ModelFile) -> object:
    """Load the model in a pickle file, which may run any code."""
    model: object = joblib.load(file.path)
    return model


def _read_lightgbm(file: ModelFile) -> object:
    """Load the booster in a LightGBM text file, after checking the text."""
    text = Path(file.path).read_text(encoding="utf-8")
    lightgbm_text.check_text(text)
    return require("lightgbm", "lightgbm").Booster(model_str=text)


def _read_xgboost(file: ModelFile) -> object:
    """Load the booster or scikit-learn estimator in an XGBoost file, after checking the content.

    An estimator is returned if one wrote the file; it predicts with its best iteration.
    """
    content = Path(file.path).read_bytes()
    is_json = file.path.lower().endswith(".json")
    document = documents.read_json(content) if is_json else ubjson.decode(content)
    facts = documents.check_document(document)
    if is_json:
        # XGBoost tells formats apart by the second letter, which must not be a blank.
        content = b"{" + content[1:].lstrip()

    xgboost = require("xgboost", "xgboost")
    estimators = {
        "classifier": xgboost.XGBClassifier,
        "regressor": xgboost.XGBRegressor,
        "ranker": xgboost.XGBRanker,
    }
    model = estimators.get(facts.estimator, xgboost.Booster)()
    model.load_model(bytearray(content))
    return model


def _read_catboost(file: ModelFile) -> object:
    """Load the CatBoost model in a file: a classifier if it has classes, else a regressor.

    The file is tried in a separate process first. A classifier is explained by its probabilities.
    """
    catboost = require("catboost", "catboost")
    _try_in_subprocess(file.path, file.fingerprint())
    has_classes = len(catboost.CatBoost().load_model(file.path, format="cbm").classes_) > 0
    model = catboost.CatBoostClassifier() if has_classes else catboost.CatBoostRegressor()
    return model.load_model(file.path, format="cbm")


def _read_onnx(file: ModelFile) -> object:
    """Load an ONNX file into an ONNX Runtime session, after trying it in a separate process."""
    onnxruntime = require("onnxruntime", "onnx")
    _try_in_subprocess(file.path, file.fingerprint())
    return onnxruntime.InferenceSession(file.path, providers=ONNX_PROVIDERS)


@lru_cache(maxsize=8)
def _try_in_subprocess(path: str, fingerprint: str) -> None:
    """Load a binary model in a separate process and let it predict; raise a ValueError on failure.

    A crash and a timeout are failures, too. `fingerprint` is the hash of the file: a successful
    trial is remembered under it and not repeated.
    """
    command = [sys.executable, "-P", trial.__file__, Path(path).suffix.lower(), path]
    # The same packages as here, wherever they are, and no threads for one row.
    packages = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    try:
        process = subprocess.run(
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
    if process.returncode == 0:
        return

    lines = process.stderr.decode("utf-8", "replace").strip().splitlines()
    last_line = lines[-1] if lines else ""
    # With 1 the trial reports an error of the library; any other code is a crash.
    if process.returncode == 1:
        raise ValueError(last_line)
    raise ValueError(
        f"its library ended a process that tried it ({process.returncode}). {last_line}"
    )


def _read_skops(file: ModelFile) -> object:
    """Load the model in a skops file; raise an error if the file contains untrusted types."""
    skops = require("skops.io", "skops")
    # The declared sizes can be trusted: zipfile reads no more of a member than it declares.
    with zipfile.ZipFile(file.path) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    most = MAX_UNPACKED_BYTES + MAX_UNPACKED_PER_BYTE * Path(file.path).stat().st_size
    if unpacked > most:
        raise ValueError(
            f"it unpacks to {unpacked:,} bytes, where up to {most:,} are read of a file of its"
            " size."
        )
    types = skops.get_untrusted_types(file=file.path)
    unknown = [name for name in types if name not in file.trusted]
    if unknown:
        raise UnsafeModelFileError(
            f"{file.path!r} holds types that skops does not trust: {', '.join(unknown)}. If you"
            f" know them, allow each by name: --trust-type {unknown[0]}."
        )
    model: object = skops.load(file.path, trusted=list(file.trusted))
    return model


KINDS: Mapping[str, tuple[bytes, Callable[[ModelFile], object]]] = {
    ".txt": (b"tree", _read_lightgbm),
    ".json": (b"{", _read_xgboost),
    ".ubj": (b"{", _read_xgboost),
    ".cbm": (b"CBM1", _read_catboost),
    ".onnx": (b"\x08", _read_onnx),  # the first field, which is the version of the format
    ".skops": (b"PK\x03\x04", _read_skops),
}
"""By suffix: the first bytes of such a file, and the function that reads it."""
