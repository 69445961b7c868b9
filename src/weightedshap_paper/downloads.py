"""The paper's datasets, downloaded from OpenML and cached by scikit-learn.

The numbers of rows, of columns and of rows of class 1 are checked. `datasets` uses this module if
no folder with the files is set.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from weightedshap._checks import FloatArray, IntArray

SUBSET = 10_000


class MissingData(OSError, ValueError):
    """Raised when a dataset is neither stored nor downloadable; the message says how to get it."""


@dataclass(frozen=True)
class Source:
    """The location of a dataset on OpenML, and its known size, to check after a download."""

    openml: int
    target: str  # name of the target column, whatever its case
    rows: int
    features: int  # columns of numbers
    positive: tuple[str, ...] = ()  # labels of class 1; none for a regression
    positives: int | None = None  # rows of class 1, where known
    # "rare": all of class 1, others up to 10,000 rows, as the authors' fraud; "even": 5,000 of each
    subset: str = ""


SOURCES = {
    "abalone": Source(44956, "rings", 4177, 7),
    "boston": Source(531, "MEDV", 506, 13),
    "airfoil": Source(44957, "sound_pressure", 1503, 5),
    "whitewine": Source(44971, "quality", 4898, 11),
    "fraud": Source(42397, "Class", 284_807, 30, ("1", "1.0"), 492, "rare"),
    "phoneme": Source(1489, "Class", 5404, 5, ("2",), 1586),
    "wind": Source(847, "binaryClass", 6574, 14, ("P",), 3501),
    "cpu": Source(761, "binaryClass", 8192, 21, ("P",), 2477),
    "adult": Source(1590, "class", 48_842, 6, (">50K",), 11_687),
    "2dplanes": Source(727, "binaryClass", 40_768, 10, ("P",), 20_348),
    "click": Source(1218, "click", 1_997_410, 11, ("1", "1.0"), None, "even"),
}
"""OpenML's adult has the 16,281 test rows of the UCI repository too, which the paper leaves out."""

MNIST = Source(554, "class", 70_000, 784)


def table(name: str) -> tuple[pd.DataFrame, FloatArray]:
    """Download a dataset: its numeric features (n, d) and its target (n,), with classes 0 and 1."""
    source = SOURCES[name]
    features, labels = _fetch(name, source)
    if not source.positive:
        return features, labels.astype(str).to_numpy().astype(np.float64)
    y = labels.astype(str).str.strip("' ").isin(source.positive).to_numpy().astype(np.float64)
    if source.positives is not None:
        _check_number(name, source, "rows of class 1", int(y.sum()), source.positives)
    rows = _subset(y, source.subset)
    return features.iloc[rows], y[rows]


def mnist() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Download the MNIST images (70000, 28, 28) and digits (70000,), training images first.

    There are 60,000 images for training and 10,000 for testing.
    """
    features, labels = _fetch("mnist", MNIST)
    images = features.to_numpy().reshape(-1, 28, 28).astype(np.uint8)
    return images, labels.astype(str).to_numpy().astype(np.uint8)


def _fetch(name: str, source: Source) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Download a dataset, check its size, and return its numeric columns and its target column."""
    frame = _fetch_frame(name, source)
    target = [column for column in frame if str(column).lower() == source.target.lower()]
    if not target:
        raise ValueError(
            f"OpenML dataset {source.openml} ({name}) lacks the column {source.target!r}; it has"
            f" {', '.join(map(str, frame))}. Set WEIGHTEDSHAP_DATA to a directory with the stored"
            " files instead."
        )
    features = frame.drop(columns=target).select_dtypes("number")
    _check_number(name, source, "rows", len(frame), source.rows)
    _check_number(name, source, "columns of numbers", features.shape[1], source.features)
    return features, frame[target[0]]


def _fetch_frame(name: str, source: Source) -> pd.DataFrame:
    """Download all columns of a dataset from OpenML as a data frame.

    Column types are left to pandas, because scikit-learn fails on categories that are numbers.
    """
    from sklearn.datasets import fetch_openml

    options = {
        "target_column": None,
        "as_frame": True,
        "parser": "pandas",
        "read_csv_kwargs": {"dtype": None},
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about retries; the last failure is raised
            return pd.DataFrame(fetch_openml(data_id=source.openml, **options).frame)
    except OSError as error:
        raise MissingData(
            f"The dataset {name!r} could not be downloaded from OpenML ({source.openml}): {error}."
            " There are two ways to get it: set WEIGHTEDSHAP_DATA to a directory that holds"
            " MANIFEST.json and the data files, or connect to the network and start again;"
            " downloads are kept in scikit-learn's data home."
        ) from error


def _subset(y: FloatArray, subset: str) -> IntArray:
    """Draw the row indices of a subset of rows with labels y (n,), in ascending order.

    `subset` is "", "rare" or "even", see `Source`. The draw is seeded: every call returns the same
    rows.
    """
    if not subset:
        return np.arange(len(y))
    rng = np.random.default_rng(0)
    positive = np.flatnonzero(y == 1)
    negative = np.flatnonzero(y == 0)
    n = len(positive) if subset == "rare" else SUBSET // 2
    drawn = [
        rng.choice(positive, n, replace=False),
        rng.choice(negative, SUBSET - n, replace=False),
    ]
    return np.sort(np.concatenate(drawn))


def _check_number(name: str, source: Source, what: str, found: int, expected: int) -> None:
    """Raise an error if a dataset does not have the expected number of `what`, such as rows."""
    if found != expected:
        raise ValueError(
            f"OpenML dataset {source.openml} ({name}) has {found:,} {what}, not the {expected:,}"
            " that are known. It was changed there: set WEIGHTEDSHAP_DATA to a directory with the"
            " stored files instead."
        )
