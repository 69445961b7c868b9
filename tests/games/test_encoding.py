"""Categories as ranks by mean prediction; missing, unseen and hidden are three different things."""

import numpy as np
import pandas as pd
import pytest

from weightedshap.games.surrogates.data import Encoding
from weightedshap.inputs import as_table


def fit_encoding(column, f, weights=None):
    """The encoding of one column with predictions f, and the column in it."""
    table = as_table(pd.DataFrame({"a": column}), weights)
    encoding = Encoding.fit(table, np.asarray(f, dtype=float)[:, None])
    return encoding, encoding(table.data)[:, 0]


@pytest.mark.parametrize("dtype", ["str", "string", object, "category"])
def test_categories_are_ranked_by_their_mean_prediction(dtype):
    _, numbers = fit_encoding(pd.Series(["b", "a", "c", "b"], dtype=dtype), [5.0, 1.0, 2.0, 6.0])
    assert numbers.tolist() == [2.0, 0.0, 1.0, 2.0]


def test_polars_categories_are_ranked_as_pandas_ones():
    pl = pytest.importorskip("polars")
    table = as_table(pl.DataFrame({"a": ["b", "a", None, "b"]}))
    encoding = Encoding.fit(table, np.array([[5.0], [1.0], [2.0], [6.0]]))
    assert encoding(table.data)[:, 0].tolist() == [1.0, 0.0, -1.0, 1.0]


def test_ranks_follow_the_weights_of_rows():
    column = ["a", "a", "b"]
    f = [0.0, 10.0, 4.0]
    assert fit_encoding(column, f, [1, 1, 1])[1].tolist() == [1.0, 1.0, 0.0]
    assert fit_encoding(column, f, [9, 1, 1])[1].tolist() == [0.0, 0.0, 1.0]


def test_equal_means_are_ranked_by_text():
    assert fit_encoding(["b", "a", "c"], [1.0, 1.0, 1.0])[1].tolist() == [1.0, 0.0, 2.0]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9])
def test_an_unseen_category_is_ranked_in_the_middle(n):
    encoding, numbers = fit_encoding([f"c{i}" for i in range(n)], np.arange(n))
    unseen = encoding(pd.DataFrame({"a": ["new"]}))[0, 0]
    assert unseen not in numbers
    assert abs((numbers < unseen).sum() - (numbers > unseen).sum()) <= 1


def test_a_missing_value_is_below_all_others_and_no_nan_is_left():
    encoding, numbers = fit_encoding(["a", None, "b"], [1.0, 2.0, 3.0])
    assert numbers[1] < numbers[0] < numbers[2]
    assert encoding(pd.DataFrame({"a": ["new"]}))[0, 0] != numbers[1]


@pytest.mark.parametrize(
    "column", [[True, False, None], pd.array([1, 0, None], dtype="Int64"), [1.0, 0.0, np.nan]]
)
def test_booleans_and_numbers_stay_what_they_are(column):
    assert fit_encoding(column, [1.0, 2.0, 3.0])[1].tolist() == [1.0, 0.0, -1.0]


def cross_fit(column, f, seed=0):
    """The column as ranks, and as the trees learn from it; each row is a row of its own unless its
    number is."""
    table = as_table(pd.DataFrame({"a": column, "row": np.asarray(f, dtype=float)}))
    f = np.asarray(f, dtype=float)[:, None]
    encoding = Encoding.fit(table, f)
    X = encoding(table.data)
    return X[:, 0], encoding.cross_fit(X, f, table.weights, np.random.default_rng(seed))[:, 0]


def test_categories_with_many_rows_keep_their_ranks_to_learn_from():
    rng = np.random.default_rng(0)
    ranks, learned = cross_fit(rng.choice(["a", "b", None], size=200), rng.normal(size=200))
    np.testing.assert_array_equal(learned, ranks)


def test_the_place_of_a_rare_category_says_nothing_about_the_rows_own_prediction():
    rng = np.random.default_rng(0)
    f = rng.normal(size=600)
    ranks, learned = cross_fit(
        [f"c{i % 200}" for i in range(600)], f
    )  # three rows each, and no effect
    assert np.corrcoef(ranks, f)[0, 1] > 0.5
    assert abs(np.corrcoef(learned, f)[0, 1]) < 0.1


def test_a_category_with_one_row_is_learned_from_as_never_seen():
    common = ["a"] * 20 + ["b"] * 20
    ranks, learned = cross_fit([*common, "alone", None], np.arange(42.0))
    assert ranks[-2:].tolist() == [2.0, -2.0]
    assert learned[-2:].tolist() == [1.5, -2.0]  # a missing value is no rare category
    np.testing.assert_array_equal(learned[:40], ranks[:40])


def test_copies_of_one_row_are_one_row():
    common = ["a"] * 20 + ["b"] * 20
    f = np.arange(40.0)
    _, learned = cross_fit([*common, *["alone"] * 30], [*f, *[99.0] * 30])
    assert set(learned[40:]) == {1.5}


def test_a_column_without_any_category_stays_what_it_is():
    ranks, learned = cross_fit([None] * 5, np.arange(5.0))
    np.testing.assert_array_equal(learned, ranks)
