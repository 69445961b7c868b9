"""Datasets from OpenML, which a server on this machine stands in for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.paper.conftest import StandIn
from weightedshap_paper import datasets, downloads

WORDS = "{x,y}"


def cpu_like(n=40, attributes=None, **kwargs):
    """A stand-in for cpu with two columns of numbers, one of them listed as a category, and one of
    words."""
    attributes = attributes or [
        ("lread", "numeric"),
        ("rad", "{1,2,24}"),
        ("word", WORDS),
        ("binaryClass", "{P,N}"),
    ]
    rows = [(i / 4, [1, 2, 24][i % 3], "xy"[i % 2], "PN"[i % 2]) for i in range(n)]
    return StandIn(downloads.SOURCES["cpu"].openml, attributes, rows, **kwargs)


@pytest.fixture
def small_cpu(monkeypatch):
    """What is known of the stand-in."""
    small = replace(downloads.SOURCES["cpu"], rows=40, features=2, positives=20)
    monkeypatch.setitem(downloads.SOURCES, "cpu", small)


def test_a_download_is_read_and_cached(openml, small_cpu):
    server = openml(cpu_like())
    raw = datasets.load("cpu")
    assert raw.feature_names == ("lread", "rad")
    np.testing.assert_array_equal(raw.X[:3], [[0, 1], [0.25, 2], [0.5, 24]])
    np.testing.assert_array_equal(raw.y[:3], [1, 0, 1])
    asked = len(server.stand_in.requests)
    server.shutdown()
    np.testing.assert_array_equal(datasets.load("cpu").X, raw.X)
    assert len(server.stand_in.requests) == asked == 4


def test_a_file_with_another_checksum_is_refused(openml, small_cpu):
    openml(cpu_like(md5="0" * 32))
    with pytest.raises(ValueError, match="md5 checksum"):
        datasets.load("cpu")


def test_another_number_of_rows_is_refused(openml, small_cpu):
    openml(cpu_like(n=39))
    with pytest.raises(ValueError, match="has 39 rows, not the 40 that are known"):
        datasets.load("cpu")


def test_another_number_of_positive_rows_is_refused(openml, small_cpu, monkeypatch):
    monkeypatch.setitem(downloads.SOURCES, "cpu", replace(downloads.SOURCES["cpu"], positives=21))
    openml(cpu_like())
    with pytest.raises(ValueError, match="has 20 rows of class 1"):
        datasets.load("cpu")


def test_a_missing_column_is_refused(openml, small_cpu):
    openml(
        cpu_like(
            attributes=[
                ("lread", "numeric"),
                ("word", "{1,2,24}"),
                ("w", WORDS),
                ("other", "{P,N}"),
            ]
        )
    )
    with pytest.raises(
        ValueError, match="lacks the column 'binaryClass'; it has lread, word, w, other"
    ):
        datasets.load("cpu")
    assert downloads.SOURCES["cpu"].features == 2


def test_fewer_columns_of_numbers_are_refused(openml, small_cpu, monkeypatch):
    monkeypatch.setitem(downloads.SOURCES, "cpu", replace(downloads.SOURCES["cpu"], features=3))
    openml(cpu_like())
    with pytest.raises(ValueError, match="has 2 columns of numbers, not the 3"):
        datasets.load("cpu")


def test_neither_directory_nor_network_names_both_ways(openml):
    server = openml(cpu_like())
    server.shutdown()
    server.server_close()
    with pytest.raises(
        downloads.MissingData, match=r"two ways.*WEIGHTEDSHAP_DATA.*connect to the network"
    ):
        datasets.load("cpu")


def test_a_regression_target_of_numbers_is_read(openml, monkeypatch):
    monkeypatch.setitem(downloads.SOURCES, "whitewine", downloads.Source(7, "Quality", 3, 1))
    openml(
        StandIn(7, [("alcohol", "numeric"), ("quality", "{5,6,7}")], [(9.5, 6), (10, 5), (11, 7)])
    )
    np.testing.assert_array_equal(datasets.load("whitewine").y, [6, 5, 7])


def test_rare_rows_are_all_kept(openml, monkeypatch):
    source = downloads.Source(7, "Class", 100, 1, ("1",), 7, "rare")
    monkeypatch.setitem(downloads.SOURCES, "fraud", source)
    monkeypatch.setattr(downloads, "SUBSET", 30)
    openml(
        StandIn(7, [("V1", "numeric"), ("Class", "{0,1}")], [(i, int(i < 7)) for i in range(100)])
    )
    raw = datasets.load("fraud")
    assert len(raw.X) == 30
    assert raw.y.sum() == 7
    assert len(set(raw.X[:, 0])) == 30


def test_even_classes_are_drawn(openml, monkeypatch):
    monkeypatch.setitem(
        downloads.SOURCES, "click", downloads.Source(7, "click", 100, 1, ("1", "1.0"), None, "even")
    )
    monkeypatch.setattr(downloads, "SUBSET", 30)
    openml(
        StandIn(
            7,
            [("depth", "numeric"), ("click", "numeric")],
            [(i, int(i % 4 == 0)) for i in range(100)],
        )
    )
    raw = datasets.load("click")
    np.testing.assert_array_equal(np.bincount(raw.y.astype(int)), [15, 15])


def test_images_are_downloaded(openml, monkeypatch):
    monkeypatch.setattr(downloads, "MNIST", replace(downloads.MNIST, rows=4))
    digits = ",".join(map(str, range(10)))
    rows = [[*((i + p) % 256 for p in range(784)), i] for i in range(4)]
    attributes = [*((f"pixel{p + 1}", "numeric") for p in range(784)), ("class", f"{{{digits}}}")]
    openml(StandIn(downloads.MNIST.openml, attributes, rows))
    images = datasets.mnist()
    assert images.X_train.shape == (4, 28, 28)
    assert images.X_train[3, 0, 1] == 4
    assert images.y_train.tolist() == [0, 1, 2, 3]


def test_every_dataset_has_a_source():
    assert set(downloads.SOURCES) == set(datasets.DATASETS) - {"gaussian"}
