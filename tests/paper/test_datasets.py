"""The paper's tables: stored, prepared, and refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.paper.conftest import NUMBERS, entry, small_table, write_manifest
from weightedshap._checks import UnknownNameError
from weightedshap_paper import datasets
from weightedshap_paper.downloads import MissingData


@pytest.mark.parametrize("name", [name for name in datasets.DATASETS if name != "gaussian"])
def test_columns_of_words_are_left_out(data, name):
    raw = datasets.load(name)
    assert raw.feature_names == NUMBERS
    assert raw.task == ("regression" if name in datasets.REGRESSION else "classification")
    np.testing.assert_allclose(
        raw.X, small_table(name)[list(NUMBERS)], rtol=1e-12
    )  # as CSV is read


def test_rows_with_a_missing_number_are_left_out(data):
    table = small_table("wind")
    table.loc[[3, 5], "b"] = np.nan
    table.to_csv(data / "wind.csv.gz", index=False)
    write_manifest(data, {"wind": entry(data / "wind.csv.gz")})
    raw = datasets.load("wind")
    assert len(raw.X) == len(raw.y) == 598
    assert np.isfinite(raw.X).all()


def test_images_are_read(data):
    images = datasets.mnist()
    assert images.X_train.shape == (600, 28, 28)
    assert images.X_test.dtype == np.uint8
    assert set(images.y_test) == set(range(10))


def test_an_unknown_name_is_refused_with_the_nearest(data):
    with pytest.raises(UnknownNameError, match="Did you mean 'airfoil'"):
        datasets.prepare("airfoill", np.random.default_rng(0))


def test_a_changed_file_is_refused(data):
    with (data / "wind.csv.gz").open("ab") as file:
        file.write(b" ")
    with pytest.raises(ValueError, match=r"SHA-256 .* fetch it again"):
        datasets.load("wind")


def test_a_file_without_its_columns_is_refused(data):
    small_table("wind").drop(columns="b").to_csv(data / "wind.csv.gz", index=False)
    write_manifest(data, {"wind": entry(data / "wind.csv.gz")})
    with pytest.raises(ValueError, match="lacks the columns b; it has a, word, c, d, target"):
        datasets.load("wind")


def test_images_without_an_array_are_refused(data):
    np.savez(data / "mnist.npz", x_train=np.zeros(1))
    write_manifest(data, {"mnist": entry(data / "mnist.npz", "")})
    with pytest.raises(ValueError, match="lacks the columns y_train"):
        datasets.mnist()


def test_the_target_of_a_regression_is_in_standard_units(data):
    prepared = datasets.prepare("airfoil", np.random.default_rng(0))
    y = np.concatenate([getattr(prepared, f"y_{part}") for part in ("train", "val", "est", "test")])
    assert y.mean() == pytest.approx(0, abs=1e-12)
    assert y.std() == pytest.approx(1)


@pytest.mark.parametrize("gone", ["MANIFEST.json", "wind.csv.gz"])
def test_a_missing_file_is_named_with_the_other_way(data, gone):
    (data / gone).unlink()
    with pytest.raises(MissingData, match=rf"{gone} is missing.* OpenML"):
        datasets.load("wind")


def test_a_dataset_that_the_manifest_does_not_list_is_refused(data):
    entries = json.loads((data / "MANIFEST.json").read_text())["datasets"]
    del entries["wind"]
    write_manifest(data, entries)
    with pytest.raises(MissingData, match="does not list 'wind'"):
        datasets.load("wind")


def test_the_drawn_dataset_has_the_papers_distribution():
    raw = datasets.gaussian(20_000, np.random.default_rng(0))
    correlation = np.corrcoef(raw.X, rowvar=False)
    assert raw.X.shape == (20_000, 30)
    np.testing.assert_allclose(correlation[~np.eye(30, dtype=bool)], 0.25, atol=0.04)
    beta = np.zeros(30)
    beta[:10] = [1, 0.98, 0.96, 0.94, 0.92, 0.9, 0.88, 0.86, 0.84, 0.82]
    for low, high in [(-3, -2), (0, 1), (2, 3)]:
        score = raw.X @ beta
        inside = (score > low) & (score < high)
        expected = (1 / (1 + np.exp(-score[inside]))).mean()
        assert abs(raw.y[inside].mean() - expected) < 4 * np.sqrt(0.25 / inside.sum())


@pytest.mark.parametrize("name", ["airfoil", "wind"])
def test_a_table_is_standardised_widened_and_cut(data, name):
    prepared = datasets.prepare(name, np.random.default_rng(0))
    parts = [prepared.X_train, prepared.X_val, prepared.X_est, prepared.X_test]
    assert [part.shape for part in parts] == [(420, 12), (40, 12), (40, 12), (100, 12)]
    original = np.concatenate(parts)[:, :4]
    np.testing.assert_allclose(original.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(original.std(axis=0), 1)
    assert prepared.feature_names == (*NUMBERS, *(f"spurious_{i}" for i in range(1, 9)))


def test_only_the_training_part_of_fraud_is_balanced(data):
    prepared = datasets.prepare("fraud", np.random.default_rng(0))
    assert prepared.y_train.mean() == 0.5
    assert prepared.y_test.mean() < 0.3
    assert shared_rows(prepared) == 0


def test_the_authors_order_leaves_copies_on_both_sides(data):
    prepared = datasets.prepare("fraud", np.random.default_rng(0), authors_order=True)
    assert prepared.y_test.mean() > 0.3
    assert shared_rows(prepared) > 10


def test_the_authors_order_changes_nothing_elsewhere(data):
    ours, authors = (
        datasets.prepare("wind", np.random.default_rng(0), authors_order=order) for order in (0, 1)
    )
    np.testing.assert_array_equal(ours.X_train, authors.X_train)


def shared_rows(prepared):
    """Test rows whose original columns stand in the training part too."""
    seen = {tuple(row) for row in prepared.X_train[:, :4]}
    return sum(tuple(row) in seen for row in prepared.X_test[:, :4])


def test_spurious_columns_keep_the_average_correlation():
    rng = np.random.default_rng(0)
    X = 0.6 * rng.normal(size=(20_000, 1)) + 0.8 * rng.normal(size=(20_000, 4))
    wide = datasets.add_spurious(datasets.standardise(X), rng)
    assert wide.shape == (20_000, 12)
    np.testing.assert_array_equal(wide[:, :4], datasets.standardise(X))
    assert datasets.mean_correlation(wide) == pytest.approx(datasets.mean_correlation(X), abs=0.01)
    np.testing.assert_allclose(wide.std(axis=0), 1, atol=0.02)


def test_spurious_columns_of_a_strongly_negative_table_are_noise():
    rng = np.random.default_rng(0)
    x = rng.normal(size=5000)
    wide = datasets.add_spurious(
        datasets.standardise(np.column_stack([x, 0.1 * rng.normal(size=5000) - x])), rng
    )
    np.testing.assert_allclose(np.corrcoef(wide, rowvar=False)[2:, :2], 0, atol=0.05)


def test_the_same_seed_prepares_the_same_table(data):
    one, other = (datasets.prepare("fraud", np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(one.X_train, other.X_train)
    np.testing.assert_array_equal(one.y_test, other.y_test)
