"""Distilled trees: they follow the model, their game is path-dependent and exact, and calls of the
model are counted."""

import functools

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import weightedshap as ws
from tests.games.batches import batch_at
from tests.trees.random_ensembles import assert_matches_own_values
from weightedshap.games import DistilledTrees
from weightedshap.games.surrogates.data import TrainTestSplit
from weightedshap.games.surrogates.distilled import mix_rows
from weightedshap.games.user import as_model_and_table
from weightedshap.inputs import as_table

D = 5
small = functools.partial(DistilledTrees, rows=4_000, trees=60, n_jobs=1)


def rows(n=300, d=D, seed=0):
    """Correlated normal rows."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 0.7 * rng.normal(size=(n, 1))


def f(X):
    return X[:, 0] * X[:, 1] + 2 * X[:, 2] + np.sin(X[:, 3])


def two_outputs(X):
    return np.stack([f(X), 1e6 + X[:, 4]], axis=1)


@functools.cache
def fit_game():
    return small().fit(f, rows(), np.random.default_rng(0))


def test_contributions_and_walks_equal_the_games_own_values():
    for row in rows(3, seed=1):
        assert_matches_own_values(fit_game().at(row))


def test_the_trees_follow_the_model_on_rows_they_never_saw():
    X = rows(500, seed=1)
    full = batch_at(fit_game(), X).endpoints()[:, 1, 0]
    error = ((full - f(X)) ** 2).mean() / f(X).var()
    assert error < 0.1
    assert 0 < fit_game().info["distillation_error"] < 0.2


def test_the_trees_follow_the_model_between_the_rows():
    """x0 and x1 are nearly the same in the data, so only mixed rows tell how the model uses
    each."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1))
    X = np.hstack([x, x + 0.01 * rng.normal(size=(400, 1))])
    game = small().fit(lambda rows: rows[:, 0], X, 0).at([1.0, 1.0])
    delta = game.contributions().mean
    assert np.abs(delta[:, 1]).max() < 0.1
    np.testing.assert_allclose(delta[:, 0], 1.0, atol=0.2)


def test_the_game_is_on_the_scale_of_the_model():
    X = rows()
    y = f(rows()) > 0
    probability = small().fit(LogisticRegression().fit(X, y), X, 0)
    assert probability.space == probability.info["space"] == "probability"
    assert small().fit(LinearRegression().fit(X, f(X)), X, 0).space == "value"
    logit = ws.Explainer(
        LogisticRegression().fit(X, y), X, game=small(), link="logit", progress=False
    )
    assert logit.game.space == "margin"


def test_calls_of_the_model_are_counted():
    n_rows = []

    def counted(X):
        n_rows.append(len(X))
        return f(X)

    model, table, _ = as_model_and_table(counted, rows(), None)
    n_rows.clear()  # the model was probed on two rows
    info = small().fit(model, table, 0).info
    assert info["calls"] == {"fit": sum(n_rows)}
    assert sum(n_rows) == pytest.approx(300 + 4_000 * 2 / 3 * 4 / 6, rel=0.05)


def test_a_small_background_draws_fewer_rows():
    assert DistilledTrees(trees=2).fit(f, rows(10), 0).info["calls"]["fit"] <= 10 + 500 + 2


def test_each_output_has_its_own_trees_and_keeps_its_digits():
    game = small().fit(two_outputs, rows(), 0)
    assert len(game.boosters) == 2
    assert_matches_own_values(batch_at(game, rows(1, seed=5)).output(0).row_game(axis=False))
    full = batch_at(game, rows(200, seed=1)).endpoints()[:, 1, 1]
    assert np.std(full - two_outputs(rows(200, seed=1))[:, 1]) < 0.1


def test_frames_with_categories_missing_values_groups_and_weights_are_learned():
    frame = pd.DataFrame(rows(), columns=list("abcde")).assign(
        kind=np.where(rows()[:, 0] > 0, "high", "low")
    )
    frame.loc[::7, "b"] = np.nan
    model = lambda X: X["a"].to_numpy() + 3 * (X["kind"] == "high") + X["b"].isna()
    table = as_table(frame, np.linspace(1, 2, 300), groups={"ab": ["a", "b"]})
    game = small().fit(model, table, 0)
    assert game.info["distillation_error"] < 0.05
    assert game.background.d == 5
    assert_matches_own_values(game.at(frame.iloc[[7]]))


def test_rows_without_weight_are_not_learned():
    X = rows()
    X[150:, 0] += 100
    game = small().fit(f, as_table(X, np.where(np.arange(300) < 150, 1.0, 0.0)), 0)
    assert np.abs(game.mean_prediction - f(X[:150]).mean()) < 1e-9
    assert (
        np.abs(batch_at(game, X[:1]).endpoints()[0, 0, 0]) < 30
    )  # rows of no weight reach into the hundreds


def test_copies_of_a_row_are_never_on_both_sides_of_the_split():
    X = np.repeat(rows(40), 5, axis=0)
    model, table, rng = as_model_and_table(f, X, 0)
    split = TrainTestSplit.build(model(table.data), table, 0.15, rng)
    seen, held = (
        mix_rows(model, table, split.f, split.X, part, 2.0, rng)[0]
        for part in (split.train, split.test)
    )
    for column in range(D):
        assert not set(seen.X[:, column]) & set(held.X[:, column])


def test_mixed_rows_hold_the_models_own_predictions():
    model, table, rng = as_model_and_table(f, rows(), 0)
    split = TrainTestSplit.build(model(table.data), table, 0.15, rng)
    mixed, calls = mix_rows(model, table, split.f, split.X, split.train, 3.0, rng)
    assert len(mixed.X) == 4 * len(split.train)
    np.testing.assert_allclose(mixed.target[:, 0], f(mixed.X), atol=1e-12)
    assert calls == pytest.approx(
        2 * 4 / 6 * len(split.train), rel=0.1
    )  # neither none nor all columns of one


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_smallest_backgrounds_are_learned(n):
    game = small().fit(f, rows(n), 0)
    assert np.isfinite(batch_at(game, rows(2)).endpoints()).all()
    assert np.isfinite(game.info["distillation_error"])


def test_a_constant_model_leaves_nothing():
    game = small().fit(lambda X: np.full(len(X), 3.0), rows(), 0)
    assert game.info["distillation_error"] == 0
    np.testing.assert_allclose(batch_at(game, rows(1)).endpoints(), 3.0)


def test_what_was_learned_is_kept(tmp_path):
    explainer = ws.Explainer(f, rows(), game=small(), progress=False)
    explainer.save(tmp_path)
    loaded = ws.Explainer.load(tmp_path, f)
    assert loaded(rows(4, seed=2)).equals(explainer(rows(4, seed=2)))
    assert loaded.game.info == explainer.game.info


def test_the_same_seed_learns_the_same_trees():
    again = small().fit(f, rows(), np.random.default_rng(0))
    assert again.boosters[0].model_to_string() == fit_game().boosters[0].model_to_string()


def test_a_number_of_rows_that_is_no_positive_integer_is_refused():
    with pytest.raises(ValueError, match="`rows` must be an integer"):
        DistilledTrees(rows=0).fit(f, rows(), 0)
