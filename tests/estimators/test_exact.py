"""Δ without sampling: each coalition once, in bounded batches, and against shapiq."""

import numpy as np
import pytest

from tests.oracles import CountingGame, additive, moebius, random_game
from weightedshap.coalitions import all_coalitions
from weightedshap.contributions import Contributions
from weightedshap.estimators import exact
from weightedshap.estimators.exact import BATCH, enumerate_game
from weightedshap.games import FunctionGame
from weightedshap.weights import banzhaf, shapley


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_every_coalition_is_evaluated_once(d):
    game = CountingGame(random_game(d))
    table = exact(game)
    assert len(game.asked) == len(set(game.asked)) == table.evaluations == 2**d


def test_the_reason_says_how_many_coalitions_there_were():
    assert exact(random_game(11)).stopped == "exact: all 2,048 coalitions evaluated"


def test_batches_are_bounded():
    lengths = []

    def watched(coalitions):
        lengths.append(len(coalitions))
        return coalitions.sum(axis=1).astype(float)

    table = exact(FunctionGame(watched, 17))
    assert max(lengths) <= BATCH
    assert sum(lengths) == 2**17
    np.testing.assert_allclose(table.mean, 1)


def test_coalitions_are_numbered_by_the_bits_of_their_players():
    assert all_coalitions(3, 4, 7).astype(int).tolist() == [[0, 0, 1], [1, 0, 1], [0, 1, 1]]


def test_a_middling_game_agrees_with_its_oracle():
    oracle = moebius(13, {(0, 5, 12): 2.0, (3,): 1.0, tuple(range(13)): -4.0, (1, 2): 0.5})
    np.testing.assert_allclose(exact(oracle.game).mean, oracle.delta, atol=1e-12)


def test_more_than_twenty_players_are_refused_with_the_alternatives():
    game = CountingGame(additive(np.ones(21)).game)
    with pytest.raises(ValueError, match=r"2\^21 .*\(at most d = 20\).*estimator='permutation'"):
        exact(game)
    assert game.asked == []


def test_a_game_that_knows_its_contributions_is_asked_and_not_evaluated():
    class Knowing(CountingGame):
        def contributions(self):
            return Contributions.from_exact(np.full((30, 30), 7.0))

    game = Knowing(additive(np.ones(30)).game)
    assert (exact(game).mean == 7).all()
    assert game.asked == []


def test_enumeration_does_not_ask_the_game_for_its_contributions():
    class Boasting(CountingGame):
        def contributions(self):
            raise AssertionError

    np.testing.assert_allclose(
        enumerate_game(Boasting(additive([1.0, 2.0]).game)).mean, [[1, 2], [1, 2]]
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("index", "family"), [("SV", shapley), ("BV", banzhaf)])
def test_shapley_and_banzhaf_values_agree_with_shapiq(seed, index, family):
    from shapiq import ExactComputer

    game = random_game(6, seed)
    theirs = ExactComputer(game=game, n_players=6)(index=index, order=1).get_n_order_values(1)
    np.testing.assert_allclose(family(6).phi(exact(game).mean)[0], theirs, atol=1e-12)
