"""The paper's datasets, prepared as its appendix describes: twelve tables and the MNIST images.

Files are read from the directory named by the environment variable ``WEIGHTEDSHAP_DATA``, which
also contains ``MANIFEST.json`` with the SHA-256, the task and the columns of every file. Without
the variable they are downloaded from OpenML (`weightedshap_paper.downloads`). The ``gaussian`` data
are drawn at random, not read.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from weightedshap._checks import FloatArray, IntArray, check_choice
from weightedshap_paper import downloads
from weightedshap_paper.downloads import MissingData

REGRESSION = ("abalone", "boston", "airfoil", "whitewine")
CLASSIFICATION = ("gaussian", "fraud", "phoneme", "wind", "cpu", "adult", "2dplanes", "click")
DATASETS = REGRESSION + CLASSIFICATION

VARIABLE = "WEIGHTEDSHAP_DATA"
MAX_ROWS = 10_000
OVERSAMPLED = ("fraud",)


@dataclass(frozen=True)
class RawTable:
    """A dataset as it is stored: features X (n, d) and target y (n,); classes are 0 and 1."""

    task: str
    feature_names: tuple[str, ...]
    X: FloatArray
    y: FloatArray


@dataclass(frozen=True)
class Prepared:
    """A prepared dataset, split into four parts: training, validation, estimation and test.

    Each X is (n, d), each y is (n,). See `prepare`.
    """

    task: str
    feature_names: tuple[str, ...]
    X_train: FloatArray
    y_train: FloatArray
    X_val: FloatArray
    y_val: FloatArray
    X_est: FloatArray
    y_est: FloatArray
    X_test: FloatArray
    y_test: FloatArray


@dataclass(frozen=True)
class Images:
    """The MNIST images: grey values X (n, 28, 28) from 0 to 255, and their digits y (n,)."""

    X_train: NDArray[np.uint8]
    y_train: NDArray[np.uint8]
    X_test: NDArray[np.uint8]
    y_test: NDArray[np.uint8]


def load(name: str) -> RawTable:
    """Load the dataset `name` from the folder in ``WEIGHTEDSHAP_DATA``, or else from OpenML.

    The paper keeps "only the continuous features" and drops rows with a missing value: columns of
    text, such as ``sex`` of abalone, are dropped, and so are rows with a missing number. Raises
    `UnknownNameError`, `MissingData`, or a ValueError if a file is not the one listed in
    ``MANIFEST.json``.
    """
    check_choice("dataset", name, DATASETS)
    if name == "gaussian":
        raise ValueError(
            "'gaussian' is drawn, not stored. Call `gaussian(n, rng)` or `prepare('gaussian',"
            " rng)`."
        )
    task = "regression" if name in REGRESSION else "classification"
    features, y = _read_table(name) if VARIABLE in os.environ else downloads.table(name)
    X = features.to_numpy(dtype=np.float64)
    complete = ~np.isnan(X).any(axis=1)
    names = tuple(str(column) for column in features.columns)
    return RawTable(task, names, X[complete], y[complete])


def mnist() -> Images:
    """Load the MNIST images from the folder in ``WEIGHTEDSHAP_DATA``, or else from OpenML.

    Raises the same errors as `load`.
    """
    if VARIABLE not in os.environ:
        X, y = downloads.mnist()
        return Images(X[:60_000], y[:60_000], X[60_000:], y[60_000:])
    path, _ = _find_file("mnist")
    with np.load(path, allow_pickle=False) as arrays:
        _check_columns(path, ["x_train", "y_train", "x_test", "y_test"], list(arrays))
        return Images(arrays["x_train"], arrays["y_train"], arrays["x_test"], arrays["y_test"])


def gaussian(n: int, rng: np.random.Generator, d: int = 30, rho: float = 0.25) -> RawTable:
    """Draw equicorrelated Gaussian features, and a label from a logistic model of the first ten.

    ``X ~ N(0, Σ)`` with ones on the diagonal of Σ and `rho` elsewhere, ``Y ~ Bern(1 / (1 +
    exp(−Xᵀβ)))``, ``β = (1, 0.98, …, 0.82, 0, …, 0)``.
    """
    beta = np.zeros(d)
    beta[:10] = 1 - 0.02 * np.arange(10)
    common = rng.standard_normal((n, 1))
    X = np.sqrt(rho) * common + np.sqrt(1 - rho) * rng.standard_normal((n, d))
    y = rng.random(n) < 1 / (1 + np.exp(-X @ beta))
    return RawTable("classification", tuple(f"x{i + 1}" for i in range(d)), X, y.astype(np.float64))


def prepare(name: str, rng: np.random.Generator, *, authors_order: bool = False) -> Prepared:
    """Load the dataset `name`, then scale, widen and split it for the paper's experiments.

    1. Draw at most 10,000 rows, in random order.
    2. Scale every column to mean 0 and variance 1, and the target of a regression too: the paper
       speaks of features only, but its mean squared errors (0.53 on airfoil, where the target's
       variance is 47) are in such units.
    3. Add spurious columns until the table is three times as wide (`add_spurious`); not for
       ``gaussian``.
    4. Split the rows into parts of 70 % (training), 10 % (validation), 10 % (estimation: for the
       paper's surrogate) and 10 % (test). The test part has at least 100 rows, taken from
       validation and estimation if the table is small.
    5. For ``fraud``, repeat rows of the rare class until both classes are equally frequent, in the
       training part only: after the split, so that no copy of a training row is in another part.

    Parameters
    ----------
    authors_order : do step 5 before step 2, as the authors' program does: copies of one row are
        then in several parts, and the test part is balanced too
    """
    raw = gaussian(MAX_ROWS, rng) if name == "gaussian" else load(name)
    rows = rng.permutation(len(raw.X))[:MAX_ROWS]
    if authors_order and name in OVERSAMPLED:
        rows = rows[balanced_rows(raw.y[rows], rng)]
    X = standardise(raw.X[rows])
    y = raw.y[rows]
    if raw.task == "regression":
        y = standardise(y)
    names = raw.feature_names
    if name != "gaussian":
        X = add_spurious(X, rng)
        names += tuple(f"spurious_{i + 1}" for i in range(X.shape[1] - len(names)))
    train, val, est, test = _split_rows(len(X))
    X_train = X[train]
    y_train = y[train]
    if name in OVERSAMPLED and not authors_order:
        drawn = balanced_rows(y_train, rng)
        X_train = X_train[drawn]
        y_train = y_train[drawn]
    return Prepared(
        raw.task, names, X_train, y_train, X[val], y[val], X[est], y[est], X[test], y[test]
    )


def standardise(X: FloatArray) -> FloatArray:
    """Scale each column of X (n, d), or a single column (n,), to mean 0 and variance 1.

    A constant column becomes 0.
    """
    deviation = X.std(axis=0)
    return np.asarray((X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))


def add_spurious(X: FloatArray, rng: np.random.Generator, times: int = 3) -> FloatArray:
    """Append spurious columns, mixed from other columns and noise: X (n, d) becomes (n, `times`·d).

    They contain no further information about the target. They are added one at a time, where p is
    the current width::

        X_new = ρ / (1 + ρ(p−1)) · X 1_p + sqrt(1 − ρ² p / (1 + ρ(p−1))) · ε,    ε ~ N(0, 1)

    and ρ is the mean correlation between two different columns of the *original* X. The argument of
    the root is ``(1 − ρ)(1 + ρp) / (1 + ρ(p−1))``: a negative ρ allows the construction only while
    1 + ρp > 0. If it would fail before the last column, ρ = 0 is used throughout and the spurious
    columns are pure noise; the paper does not say what it does then.
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


def mean_correlation(X: FloatArray) -> float:
    """Return the mean correlation between two different columns of X (n, d); 0 if d < 2.

    Constant columns are ignored.
    """
    varying = X[:, X.std(axis=0) > 0]
    d = varying.shape[1]
    if d < 2:
        return 0.0
    return float((np.corrcoef(varying, rowvar=False).sum() - d) / (d * (d - 1)))


def balanced_rows(y: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw row indices in random order, such that both classes of y (n,) are equally frequent.

    Every row occurs at least once; rows of the rarer class are repeated at random.
    """
    positive = np.flatnonzero(y == 1)
    negative = np.flatnonzero(y == 0)
    rare, common = sorted((positive, negative), key=len)
    copies = rng.choice(rare, size=len(common) - len(rare))
    return rng.permutation(np.concatenate([common, rare, copies]))


def _split_rows(n: int) -> tuple[slice, slice, slice, slice]:
    """Return slices for the training, validation, estimation and test part of n shuffled rows."""
    train = int(0.7 * n)
    test = n - max(int(0.1 * n), 100)
    val = (train + test) // 2
    return slice(0, train), slice(train, val), slice(val, test), slice(test, n)


def _read_table(name: str) -> tuple[pd.DataFrame, FloatArray]:
    """Read the numeric features (n, d) and the target (n,) of the stored dataset `name`."""
    path, entry = _find_file(name)
    frame = pd.read_csv(path)
    _check_columns(path, expected=[*entry["features"], "target"], columns=list(frame.columns))
    features = frame[entry["features"]].select_dtypes("number")
    return features, frame["target"].to_numpy(dtype=np.float64)


def _find_file(name: str) -> tuple[Path, dict[str, Any]]:
    """Return the path of the stored dataset `name` and its manifest entry; check its SHA-256."""
    directory = Path(os.environ[VARIABLE])
    manifest = directory / "MANIFEST.json"
    if not manifest.is_file():
        raise MissingData(
            f"{manifest} is missing. Point {VARIABLE} at the directory that holds MANIFEST.json and"
            " the files, or unset it to download the datasets from OpenML."
        )
    entries = json.loads(manifest.read_text(encoding="utf-8"))["datasets"]
    if name not in entries:
        raise MissingData(
            f"{manifest} does not list {name!r}. It lists: {', '.join(sorted(entries))}."
        )
    entry: dict[str, Any] = entries[name]
    path = directory / entry["file"]
    if not path.is_file():
        raise MissingData(
            f"{path} is missing. Copy it there, or unset {VARIABLE} to download it from OpenML."
        )
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    if checksum != entry["sha256"]:
        raise ValueError(
            f"{path} has SHA-256 {checksum}, but MANIFEST.json expects {entry['sha256']}. "
            "The file was changed or is incomplete: fetch it again."
        )
    return path, entry


def _check_columns(path: Path, expected: list[str], columns: list[str]) -> None:
    """Raise an error if the file `path` lacks any of the expected columns."""
    missing = [column for column in expected if column not in columns]
    if missing:
        raise ValueError(
            f"{path} lacks the columns {', '.join(missing)}; it has {', '.join(columns)}. "
            "Fetch the file listed in MANIFEST.json again."
        )
