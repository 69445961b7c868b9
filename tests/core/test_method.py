"""The method: blocks in place, rows of different kinds in one call, each model asked once."""

import tracemalloc
from unittest import mock

import joblib
import numpy as np
import pytest
from lightgbm import LGBMRegressor

import weightedshap as ws
from tests.inputs.examples import explain
from tests.oracles import normal_rows, random_game
from weightedshap.games import FunctionGame
from weightedshap.inputs import as_model, as_table
from weightedshap.inputs.rows import Rows
from weightedshap.method import by_pair


def peak_bytes(work):
    """Return what `work` gives, and the most bytes that it held beyond those held before."""
    tracemalloc.start()
    try:
        result = work()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# blocks are written into their place --------------------------------------------------------------


def test_a_call_holds_the_contributions_of_many_rows_once():
    # Collecting the blocks first, and joining them at the end, holds them twice.
    X = normal_rows(2_000, 70)
    model = LGBMRegressor(n_estimators=10, n_jobs=1, verbose=-1).fit(X, X[:, 0] * X[:, 1])
    explainer = ws.Explainer(model, X[:100], game="tree_path", progress=False)
    explainer(X[:10])  # compiled from now on

    explanation, peak = peak_bytes(lambda: explainer(X))
    assert explanation.contributions.nbytes == 8 * 2_000 * 70 * 70
    assert peak < 1.6 * explanation.contributions.nbytes


# rows of different kinds --------------------------------------------------------------------------


class ExactGame:
    """A game that knows its own Δ."""

    def __init__(self, game):
        self.game = game
        self.d = game.d

    def __call__(self, coalitions):
        return self.game(coalitions)

    def contributions(self):
        return ws.estimators.exact(self.game)


def test_some_rows_may_be_exact_and_others_sampled():
    d = 8
    games = [random_game(d, seed) for seed in range(4)]

    def game_at(row):
        game = games[int(row[0])]
        return ExactGame(game) if row[0] % 2 == 0 else FunctionGame(game, d)

    X = np.zeros((4, d))
    X[:, 0] = range(4)
    explainer = ws.Explainer(
        None, X, game=game_at, estimator=sample_what_is_not_exact, progress=False
    )
    explanation = explainer(X)

    truth = np.stack([ws.estimators.exact(game).mean for game in games])
    is_exact = np.array([True, False, True, False])
    np.testing.assert_allclose(explanation.contributions[is_exact], truth[is_exact], atol=1e-12)
    assert (explanation.standard_errors[is_exact] == 0).all()
    assert (explanation.standard_errors[~is_exact] > 0).any(axis=1).all()
    assert (explanation.n_evaluations[~is_exact] > 0).all()

    # The chains are there for all rows or for none.
    assert explanation.replicates is None
    for row in range(4):
        alone = explainer(X[[row]], row_ids=[row])
        np.testing.assert_array_equal(alone.values[0], explanation.values[row])
        np.testing.assert_array_equal(alone.contributions[0], explanation.contributions[row])


def sample_what_is_not_exact(game, *, rng):
    """Read Δ off a game that knows it, and walk the others."""
    if game.contributions is not None:
        return game.contributions()
    return ws.estimators.permutation(game, evaluations=300, rng=rng)


def test_a_game_that_competes_may_judge_as_well():
    X = normal_rows(40, 3)

    def model(rows):
        return rows[:, 0] * rows[:, 1] + rows[:, 2]

    # The games average other rows, so that their mean predictions differ.
    first = ws.games.Marginal().fit(model, X)
    second = ws.games.Baseline().fit(model, X)
    explainer = ws.Explainer(model, X, game=[first, second], judge=second, progress=False)
    explanation = explainer(X[:5])

    means = [first.mean_prediction, second.mean_prediction]
    np.testing.assert_array_equal(explainer.problem.mean_predictions[:, 0], means)
    assert explainer.problem.all_games == (first, second)
    assert explanation.judge_info["game"] == second.info["game"]


# each model is asked once -------------------------------------------------------------------------


class CountingModel:
    """A function of rows that counts how many rows it was asked about, and how often."""

    def __init__(self):
        self.calls = []

    def __call__(self, X):
        self.calls.append(len(X))
        return X[:, 0] * X[:, 1]


class Doubled:
    """A predictor on another scale that reaches the model through the rows."""

    def __init__(self, model):
        self.model = model

    def predictions(self, rows):
        return 2 * rows.ask(self.model)


def test_rows_ask_a_model_once_whoever_asks():
    X = normal_rows(6)
    function = CountingModel()
    model = as_model(function, as_table(X))
    function.calls.clear()

    rows = Rows(X)
    f_x = rows.ask(model)
    np.testing.assert_array_equal(rows.ask(Doubled(model)), 2 * f_x)
    assert rows.ask(model) is f_x
    assert function.calls == [6]


def test_some_of_the_rows_keep_the_predictions_of_all():
    X = normal_rows(6)
    function = CountingModel()
    model = as_model(function, as_table(X))
    rows = Rows(X)
    f_x = rows.ask(model)
    function.calls.clear()

    np.testing.assert_array_equal(rows[2:4].ask(model), f_x[2:4])
    np.testing.assert_array_equal(rows[np.array([5, 0])].ask(model), f_x[[5, 0]])
    assert not function.calls


def test_rows_bind_a_game_once():
    X = normal_rows(6)
    game = ws.games.Marginal().fit(CountingModel(), X)
    rows = Rows(X)
    assert rows.bind(game) is rows.bind(game)
    assert rows[:2].bind(game) is not rows.bind(game)


def test_concatenated_rows_keep_the_predictions_that_all_parts_have():
    X = normal_rows(6)
    function = CountingModel()
    model = as_model(function, as_table(X))
    parts = [Rows(X[:2]), Rows(X[2:])]
    asked = [part.ask(model) for part in parts]
    function.calls.clear()

    np.testing.assert_array_equal(Rows.concatenate(parts).ask(model), np.concatenate(asked))
    assert not function.calls
    Rows.concatenate([parts[0], Rows(X[2:])]).ask(model)
    assert function.calls == [6]


@pytest.mark.parametrize("judge", ["game", "marginal"])
def test_a_call_asks_the_model_about_its_rows_once(judge):
    X = normal_rows(6)
    function = CountingModel()
    explainer = ws.Explainer(function, X, game="baseline", judge=judge, progress=False)
    function.calls.clear()
    explainer(X)
    # Mixed rows are asked about by the game: 2^d − 2 coalitions of each row, none of them [d].
    assert function.calls.count(6) == 1


def test_references_are_those_of_the_first_game():
    """Notices the references of the second."""
    first = np.arange(4.0).reshape(1, 4)
    second = np.arange(10.0, 14.0).reshape(1, 4)
    np.testing.assert_array_equal(by_pair([first, second], 3), [[0, 1, 2, 10, 11, 12, 3]])


@pytest.mark.parametrize("game", ["tree_path", "tree_surrogate"])
def test_predictions_made_in_other_processes_are_kept(game):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    model = LGBMRegressor(n_estimators=20, n_jobs=1, verbose=-1).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    alone, threads = (explain(model, X[:200], X, game=game, n_jobs=jobs) for jobs in (1, 2))
    with joblib.parallel_config(backend="loky"):
        processes = explain(model, X[:200], X, game=game, n_jobs=2)
    np.testing.assert_array_equal(alone.predictions, model.predict(X))
    assert threads.equals(alone)
    assert processes.equals(alone)
    assert processes.reweight("wide").equals(alone.reweight("wide"))


def test_lightgbm_predicts_each_row_once_and_on_one_thread():
    X = np.random.default_rng(0).normal(size=(600, 3))
    model = LGBMRegressor(n_estimators=5, verbose=-1).fit(X, X[:, 0] - X[:, 1])
    with mock.patch.object(
        LGBMRegressor, "predict", autospec=True, side_effect=LGBMRegressor.predict
    ) as asked:
        explainer = ws.Explainer(model, X[:100], game="tree_surrogate", progress=False, n_jobs=2)
        asked.reset_mock()
        explained = explainer(X)
    assert sum(len(call.args[1]) for call in asked.call_args_list) == len(X)
    assert all(call.kwargs["num_threads"] == 1 for call in asked.call_args_list)
    np.testing.assert_array_equal(explained.predictions, model.predict(X))
