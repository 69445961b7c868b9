"""Imputed values of hidden columns: linear algebra done step by step, and a learned game whose
trees see them."""

import functools

import lightgbm
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weightedshap as ws
from tests.games.batches import batch_at, masked_values
from weightedshap import coalitions
from weightedshap.coalitions import all_coalitions, prefixes
from weightedshap.curves import along
from weightedshap.games import Anchored, FunctionGame, TreeSurrogate
from weightedshap.games.surrogates.imputation import (
    MAX_PREDICTORS,
    RIDGE,
    Imputer,
    most_predictive_columns,
)
from weightedshap.inputs import as_model, as_table

D = 5
small = functools.partial(TreeSurrogate, base="tree_path", hints=3, trees=25, masks=8, n_jobs=1)
LGBM = functools.partial(
    lightgbm.LGBMRegressor, n_estimators=10, verbose=-1, n_jobs=1, min_child_samples=5
)
LGBMC = functools.partial(
    lightgbm.LGBMClassifier, n_estimators=10, verbose=-1, n_jobs=1, min_child_samples=5
)


def rows(n=300, d=D, seed=0, common=1.0):
    """Normal rows with a common part."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + common * rng.normal(size=(n, 1))


def truth(X):
    return X[:, 0] * X[:, 1] + 2 * X[:, 2] + np.sin(X[:, 3])


@functools.cache
def model(kind="value"):
    X = rows(400, seed=9)
    if kind == "value":
        return LGBM().fit(X, truth(X))
    return LGBMC().fit(X, np.digitize(truth(X), [-1, 1] if kind == "three" else [0]))


@functools.cache
def fit_game(kind="value", outputs=None):
    table = as_table(rows())
    return small().fit(as_model(model(kind), table, outputs=outputs), table, 0)


# imputed values
# ------------------------------------------------------------------------------------------------


def by_one_solve(imputer, z, known):
    """Return E[z_q | z_S] (K,) by one solve; `known` (H,) are the known predictors."""
    S = np.flatnonzero(known)
    slopes = (
        np.linalg.solve(
            imputer.covariance[np.ix_(S, S)], imputer.covariance[S, : imputer.n_targets]
        )
        if len(S)
        else 0
    )
    return z[S] @ slopes if len(S) else np.zeros(imputer.n_targets)


@given(d=st.integers(1, 8), n_targets=st.integers(1, 8), seed=st.integers(0, 100))
def test_an_imputed_value_is_the_linear_conditional_mean(d, n_targets, seed):
    X = rows(50, d, seed)
    imputer = Imputer.fit(X, as_table(X), np.random.default_rng(seed).permutation(d)[:n_targets])
    coalitions = all_coalitions(d)
    row = np.full(2**d, 3)
    known = coalitions[:, imputer.predictors]
    z = imputer.to_scores(X)[3]
    expected = [by_one_solve(imputer, z, some) for some in known]
    np.testing.assert_allclose(imputer.values_at(X, row, coalitions), expected, atol=1e-10)


@given(d=st.integers(1, 8), seed=st.integers(0, 100))
def test_imputed_values_along_orders_are_those_of_their_prefixes(d, seed):
    X = rows(50, d, seed)
    rng = np.random.default_rng(seed)
    imputer = Imputer.fit(X, as_table(X), np.arange((d + 1) // 2))
    orders = rng.permuted(np.tile(np.arange(d), (2, 3, 1)), axis=2)
    walks = imputer.along(X[:2], orders)
    for r in range(2):
        coalitions = prefixes(orders[r]).reshape(-1, d)
        expected = imputer.values_at(X, np.full(len(coalitions), r), coalitions)
        np.testing.assert_allclose(walks[r].reshape(len(expected), -1), expected, atol=1e-10)


def test_columns_of_one_player_become_known_together():
    X = rows(60)
    table = as_table(X, groups={"pair": ["x0", "x3"]})
    imputer = Imputer.fit(X, table, np.array([1, 2]))
    walks = imputer.along(X[:1], np.array([[[1, 0, 2, 3]]]))[0, 0]
    known = prefixes(np.array([[1, 0, 2, 3]]))[0][:, table.player_of_column]
    np.testing.assert_allclose(
        walks, imputer.values_at(X, np.zeros(5, dtype=int), known), atol=1e-10
    )


def test_the_imputed_value_of_a_known_column_is_its_own():
    X = rows(60)
    imputer = Imputer.fit(X, as_table(X), np.array([2, 4]))
    everything = np.ones((60, D), dtype=bool)
    np.testing.assert_allclose(
        imputer.values_at(X, np.arange(60), everything), imputer.to_scores(X)[:, :2], atol=1e-10
    )


def test_with_nothing_known_every_imputed_value_is_the_mean():
    X = rows(60)
    nothing = np.zeros((1, D), dtype=bool)
    np.testing.assert_array_equal(
        Imputer.fit(X, as_table(X), np.arange(2)).values_at(X, np.zeros(1, dtype=int), nothing), 0
    )


def test_imputed_values_do_not_depend_on_units_or_tails():
    X = rows(200)
    other = rows(200)
    other[:, 1] = np.exp(3 * other[:, 1])
    other[:, 3] = 1e6 * other[:, 3] - 5
    row = np.zeros(2**D, dtype=int)
    coalitions = all_coalitions(D)
    one, two = (
        Imputer.fit(Z, as_table(Z), np.arange(3)).values_at(Z, row, coalitions) for Z in (X, other)
    )
    np.testing.assert_allclose(one, two, atol=1e-9)


def test_imputed_values_do_not_depend_on_the_order_in_which_a_processor_adds_up_rows():
    X = rows(300)
    X[:, 2] = X[:, 2] > 0  # equal values, between which no tree may split
    orders = [np.random.default_rng(seed).permutation(300) for seed in range(5)]
    row = np.repeat(np.arange(300), 2**D)
    coalitions = np.tile(all_coalitions(D), (300, 1))

    values = [
        Imputer.fit(X[order], as_table(X[order]), np.arange(3)).values_at(X, row, coalitions)
        for order in orders
    ]

    assert all(np.array_equal(values[0], other) for other in values[1:])


def test_a_known_copy_of_a_column_determines_its_imputed_value():
    X = rows(400, common=0)
    X[:, 1] = X[:, 0]
    imputer = Imputer.fit(X, as_table(X), np.array([0]))
    only_the_copy = np.arange(D)[None] == 1
    imputed = imputer.values_at(X, np.arange(400), np.repeat(only_the_copy, 400, axis=0))[:, 0]
    np.testing.assert_allclose(imputed, imputer.to_scores(X)[:, 0] / (1 + RIDGE), atol=0.02)


def test_columns_without_spread_and_rows_without_weight_do_no_harm():
    X = rows(50)
    X[:, 2] = 7.0
    weights = np.r_[np.zeros(25), np.ones(25)]
    imputer = Imputer.fit(X, as_table(X, weights), np.arange(3))
    assert np.isfinite(imputer.values_at(X, np.zeros(2**D, dtype=int), all_coalitions(D))).all()


def test_of_many_columns_those_that_covary_most_are_imputed_from():
    X = rows(300, 60, common=0)
    X[:, 50] = X[:, 3] + 0.1 * X[:, 50]
    imputer = Imputer.fit(X, as_table(X), np.array([3]))
    assert len(imputer.predictors) == MAX_PREDICTORS
    assert imputer.predictors[:2].tolist() == [3, 50]


def test_the_most_predictive_columns_are_those_the_prediction_depends_on():
    X = rows(500, 12)
    f = np.stack([X[:, 5] * X[:, 7], 100 * X[:, 2]], axis=1)
    assert sorted(most_predictive_columns(X, f, np.full(500, 1 / 500), 3).tolist()) == [2, 5, 7]
    assert most_predictive_columns(X, f, np.full(500, 1 / 500), 20).tolist() == list(range(12))


# the game
# -----------------------------------------------------------------------------------------------


def test_a_value_is_what_the_boosters_say_of_the_masked_row_and_its_imputed_values():
    game = fit_game()
    row = rows(1, seed=2)
    coalitions = all_coalitions(D)
    imputed = game.correction.imputer.values_at(row, np.zeros(2**D, dtype=int), coalitions)
    shown = np.hstack([np.where(coalitions, row, np.nan), imputed])
    c = game.boosters[0].predict(shown) + game.correction.offset[0]
    expected = game.base.at(row)(coalitions) + game.h[coalitions.sum(axis=1)] * c
    np.testing.assert_allclose(game.at(row)(coalitions), expected, atol=1e-10)
    np.testing.assert_allclose(
        masked_values(game, np.repeat(row, 2**D, axis=0), coalitions)[:, 0], expected, atol=1e-10
    )


@pytest.mark.parametrize(
    ("kind", "outputs"), [("value", None), ("two", (0, 1)), ("three", None), ("three", (2, 0))]
)
def test_walks_and_batches_agree_with_values(kind, outputs):
    game = fit_game(kind, outputs)
    X = rows(4, seed=3)
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(D), (4, 3, 1)), axis=2)
    walks = batch_at(game, X).along(orders)
    for r in range(4):
        one = batch_at(game, X[r : r + 1])
        expected = along(FunctionGame(lambda s, one=one: one.values(s)[0], D), orders[r])
        np.testing.assert_allclose(walks[r], expected.reshape(walks[r].shape), atol=1e-9)
    for output in range(walks.shape[-1]):
        np.testing.assert_allclose(
            batch_at(game, X).output(output).along(orders)[..., 0], walks[..., output], atol=1e-12
        )


def test_long_walks_are_laid_out_in_parts(monkeypatch):
    X = rows(7, seed=3)
    orders = np.tile(np.arange(D), (7, 2, 1))
    whole = batch_at(fit_game(), X).along(orders)
    monkeypatch.setattr("weightedshap.games.surrogates.imputation.LANES", 30)
    np.testing.assert_array_equal(batch_at(fit_game(), X).along(orders), whole)


@pytest.mark.parametrize(("mixed", "n"), [(coalitions.HASH_FACTOR, 12), (np.uint64(0), 120)])
def test_different_pairs_with_equal_hashes_are_kept_separate(monkeypatch, mixed, n):
    monkeypatch.setattr(coalitions, "HASH_FACTOR", mixed)
    rng = np.random.default_rng(0)
    row = rng.integers(3, size=120)
    sets = rng.random((4, 70))[rng.integers(4, size=120)] < 0.5
    where, back = coalitions.unique_pairs(row, sets)
    assert len(where) == n
    np.testing.assert_array_equal(row[where][back], row)
    np.testing.assert_array_equal(sets[where][back], sets)


def test_with_all_players_known_the_game_is_the_prediction():
    X = rows(9, seed=3)
    np.testing.assert_allclose(
        batch_at(fit_game(), X).endpoints()[:, 1, 0], model().predict(X), atol=1e-9
    )
    assert not fit_game().is_exact
    batch = batch_at(fit_game(), X[:1])
    assert not batch.is_exact
    assert batch.row_game().contributions is None


def test_a_frame_with_words_missing_values_and_groups_is_learned():
    X = pd.DataFrame(rows()[:, :4], columns=list("abcd"))
    X["colour"] = pd.Categorical(
        np.array(["red", "green", "blue"])[np.digitize(rows()[:, 4], [-0.7, 0.7])]
    )
    X.loc[::5, "b"] = np.nan
    trained = LGBM().fit(
        X, X["a"] + X["colour"].map({"red": 2.0, "green": 0.0, "blue": -1.0}).astype(float)
    )
    table = as_table(X, np.linspace(1, 3, len(X)), {"ab": ["a", "b"]})
    game = small().fit(as_model(trained, table), table, 0)
    walks = batch_at(game, X[:3]).along(np.tile(np.arange(4), (3, 1, 1)))
    coalitions = prefixes(np.arange(4)[None])[0]
    np.testing.assert_allclose(walks[:, 0], batch_at(game, X[:3]).values(coalitions), atol=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_hints_bring_the_game_nearer_to_the_truth_where_columns_share_a_cause(seed):
    """f = Σ x_i of equicorrelated normal columns, of which E[f | x_S] is linear in the mean of
    x_S."""
    d = 16  # with eight columns what hints gain is less than what chance does to trees
    X = rows(1000, d, seed)
    new = rows(60, d, seed + 100)
    trained = LGBM(n_estimators=150).fit(X, X.sum(axis=1))

    rng = np.random.default_rng(seed)
    coalitions = rng.random((60, d)) < rng.random((60, 1))
    s = coalitions.sum(axis=1)
    expected = (new @ coalitions.T) * (1 + (d - s) / (1 + s))

    errors = []
    for hints in (0, 8):
        game = TreeSurrogate(base="tree_path", hints=hints, n_jobs=1).fit(trained, X, 0)
        errors.append(
            np.sqrt(((batch_at(game, new).values(coalitions)[..., 0] - expected) ** 2).mean())
        )

    assert errors[1] < 0.95 * errors[0]


def test_a_plain_surrogate_can_have_hints_too():
    plain = TreeSurrogate(hints=3, trees=20, n_jobs=1).fit(truth, rows(), 0)
    assert plain.info["game"] == "tree_surrogate"
    explanation = ws.Explainer(truth, rows(), game=plain, evaluations=200)(rows(2, seed=1))
    assert np.isfinite(explanation.values).all()


@pytest.mark.parametrize("kind", ["value", "three"])
def test_a_saved_game_is_the_same_to_the_bit(tmp_path, kind):
    explainer = ws.Explainer(
        model(kind), rows(), game=small(), judge="game", evaluations=200, progress=False
    )
    explainer.save(tmp_path)
    assert ws.Explainer.load(tmp_path, model(kind))(rows(2, seed=1)).equals(
        explainer(rows(2, seed=1))
    )


def test_the_judge_of_readable_trees_has_hints():
    judge = Anchored(fits=1).fit(model(), rows(), 0)
    assert judge.correction.imputer.n_targets == D
