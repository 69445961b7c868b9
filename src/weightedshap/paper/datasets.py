"""The twelve tabular datasets of the paper, prepared as its appendix on datasets describes.

The files are read from the directory named by the environment variable ``WEIGHTEDSHAP_DATA``, which also holds
``MANIFEST.json`` with the SHA-256, the task and the columns of every file. ``gaussian`` is drawn, not read.
"""

import difflib
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Task = Literal["regression", "classification"]
Floats = NDArray[np.float64]

REGRESSION = ("abalone", "boston", "airfoil", "whitewine")
CLASSIFICATION = ("gaussian", "fraud", "phoneme", "wind", "cpu", "adult", "2dplanes", "click")
DATASETS = REGRESSION + CLASSIFICATION

VARIABLE = "WEIGHTEDSHAP_DATA"
MAX_ROWS = 10_000
OVERSAMPLED = ("fraud",)


@dataclass(frozen=True)
class RawTable:
    """A dataset as it is stored: X (n, d), y (n,), classes as 0 and 1."""

    name: str
    task: Task
    feature_names: tuple[str, ...]
    X: Floats
    y: Floats


@dataclass(frozen=True)
class Prepared:
    """A dataset ready for an experiment, cut into four parts; each X is (n, d), each y is (n,)."""

    name: str
    task: Task
    feature_names: tuple[str, ...]
    X_train: Floats
    y_train: Floats
    X_val: Floats
    y_val: Floats
    X_est: Floats
    y_est: Floats
    X_test: Floats
    y_test: Floats


def load(name: str) -> RawTable:
    """The stored dataset `name`, numeric columns only.

    The paper keeps "only the continuous features": a column of words (``sex`` of abalone) is dropped.

    Raises
    ------
    KeyError
        If no dataset has this name, or the variable ``WEIGHTEDSHAP_DATA`` is not set.
    FileNotFoundError
        If the directory lacks the file.
    ValueError
        If the file is not the one listed in ``MANIFEST.json``, or lacks a column.
    """
    _check_name(name)
    if name == "gaussian":
        raise ValueError("'gaussian' is drawn, not stored. Call `gaussian(n, rng)` or `prepare('gaussian', rng)`.")
    directory = _directory()
    entry = _manifest_entry(directory, name)
    path = directory / f"{name}.csv.gz"
    _check_sha256(path, entry["sha256"])
    frame = pd.read_csv(path, float_precision="round_trip")
    _check_columns(path, expected=[*entry["features"], "target"], found=list(frame.columns))
    features = frame[entry["features"]].select_dtypes("number")
    return RawTable(
        name=name,
        task=entry["task"],
        feature_names=tuple(str(column) for column in features.columns),
        X=features.to_numpy(dtype=np.float64),
        y=frame["target"].to_numpy(dtype=np.float64),
    )


def gaussian(n: int, rng: np.random.Generator, d: int = 30, rho: float = 0.25) -> RawTable:
    """Equicorrelated Gaussian features, and a label drawn from a logistic model of the first ten.

    ``X ~ N(0, Σ)`` with ones on the diagonal of Σ and `rho` elsewhere, ``Y ~ Bern(1 / (1 + exp(−Xᵀβ)))``,
    ``β = (1, 0.98, …, 0.82, 0, …, 0)``.
    """
    beta = np.zeros(d)
    beta[:10] = 1 - 0.02 * np.arange(10)
    common = rng.standard_normal((n, 1))
    X = np.sqrt(rho) * common + np.sqrt(1 - rho) * rng.standard_normal((n, d))
    y = rng.random(n) < 1 / (1 + np.exp(-X @ beta))
    return RawTable("gaussian", "classification", tuple(f"x{i + 1}" for i in range(d)), X, y.astype(np.float64))


def prepare(name: str, rng: np.random.Generator) -> Prepared:
    """The dataset `name` as the paper's experiments use it.

    1. At most 10,000 rows, at random, in random order.
    2. Every column with mean 0 and variance 1.
    3. Spurious columns until the table is three times as wide (`add_spurious`); not for ``gaussian``.
    4. Parts of 70 % (training), 10 % (validation), 10 % (estimation: the paper's surrogate) and 10 % (test). The
       test part has at least 100 rows, taken from validation and estimation if the table is small.
    5. For ``fraud``, rows of the rare class are drawn again until the classes are even, in the training part
       only: after the cut, so that no copy of a training row is in another part.
    """
    _check_name(name)
    raw = gaussian(MAX_ROWS, rng) if name == "gaussian" else load(name)
    rows = rng.permutation(len(raw.X))[:MAX_ROWS]
    X, y = standardise(raw.X[rows]), raw.y[rows]
    names = raw.feature_names
    if name != "gaussian":
        X = add_spurious(X, rng)
        names += tuple(f"spurious_{i + 1}" for i in range(X.shape[1] - len(names)))
    train, val, est, test = _parts(len(X))
    X_train, y_train = X[train], y[train]
    if name in OVERSAMPLED:
        drawn = balanced_rows(y_train, rng)
        X_train, y_train = X_train[drawn], y_train[drawn]
    return Prepared(name, raw.task, names, X_train, y_train, X[val], y[val], X[est], y[est], X[test], y[test])


def standardise(X: Floats) -> Floats:
    """The columns of X (n, d) with mean 0 and variance 1; a constant column becomes 0."""
    deviation = X.std(axis=0)
    scaled: Floats = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    return scaled


def add_spurious(X: Floats, rng: np.random.Generator, times: int = 3) -> Floats:
    """X (n, d) and columns that follow its own but tell nothing more about the target: (n, `times`·d).

    One column at a time, p being the width reached so far::

        X_new = ρ / (1 + ρ(p−1)) · X 1_p + sqrt(1 − ρ² p / (1 + ρ(p−1))) · ε,    ε ~ N(0, 1)

    with ρ the mean correlation between two different columns of the *original* X. The argument of the root is
    ``(1 − ρ)(1 + ρp) / (1 + ρ(p−1))``: a negative ρ allows the construction only while 1 + ρp > 0. Where it
    would fail before the last column, ρ = 0 is used throughout and the spurious columns are pure noise; the
    paper does not say what it does then.
    """
    n, d = X.shape
    width = times * d
    rho = mean_correlation(X)
    if 1 + rho * (width - 1) <= 0:
        rho = 0.0
    wide = np.empty((n, width))
    wide[:, :d] = X
    total = X.sum(axis=1)
    for p in range(d, width):
        scale = 1 + rho * (p - 1)
        noise = np.sqrt(1 - rho**2 * p / scale)
        wide[:, p] = rho / scale * total + noise * rng.standard_normal(n)
        total += wide[:, p]
    return wide


def mean_correlation(X: Floats) -> float:
    """The mean off-diagonal correlation of the columns of X (n, d), constant columns left out; 0 if d < 2."""
    varying = X[:, X.std(axis=0) > 0]
    d = varying.shape[1]
    if d < 2:
        return 0.0
    return float((np.corrcoef(varying, rowvar=False).sum() - d) / (d * (d - 1)))


def balanced_rows(y: Floats, rng: np.random.Generator) -> NDArray[np.intp]:
    """Row numbers in random order: every row once, and rows of the rarer class again until both are even."""
    positive, negative = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    rare, common = sorted((positive, negative), key=len)
    again = rng.choice(rare, size=len(common) - len(rare))
    return rng.permutation(np.concatenate([common, rare, again]))


def _parts(n: int) -> tuple[slice, slice, slice, slice]:
    """Training, validation, estimation and test rows of a table of n rows already in random order."""
    train = int(0.7 * n)
    test = n - max(int(0.1 * n), 100)
    val = (train + test) // 2
    return slice(0, train), slice(train, val), slice(val, test), slice(test, n)


def _check_name(name: str) -> None:
    if name not in DATASETS:
        near = difflib.get_close_matches(name, DATASETS, n=3, cutoff=0.4) or DATASETS
        raise KeyError(f"no dataset is called {name!r}. Did you mean one of: {', '.join(near)}?")


def _directory() -> Path:
    if VARIABLE not in os.environ:
        raise KeyError(
            f"the environment variable {VARIABLE} is not set. "
            "Set it to the directory that holds MANIFEST.json and the files <name>.csv.gz."
        )
    return Path(os.environ[VARIABLE])


def _manifest_entry(directory: Path, name: str) -> dict[str, Any]:
    path = directory / "MANIFEST.json"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing. Point {VARIABLE} at the directory that holds MANIFEST.json.")
    entries: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["datasets"]
    if name not in entries:
        raise KeyError(f"{path} does not list {name!r}. It lists: {', '.join(sorted(entries))}.")
    return entries[name]


def _check_sha256(path: Path, expected: str) -> None:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing. Copy it there, or point {VARIABLE} at another directory.")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != expected:
        raise ValueError(
            f"{path} has SHA-256 {found}, but MANIFEST.json expects {expected}. "
            "The file was changed or is incomplete: fetch it again."
        )


def _check_columns(path: Path, expected: list[str], found: list[str]) -> None:
    missing = [column for column in expected if column not in found]
    if missing:
        raise ValueError(
            f"{path} lacks the columns {', '.join(missing)}; it has {', '.join(found)}. "
            "Fetch the file listed in MANIFEST.json again."
        )
