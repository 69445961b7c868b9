"""What all games share: the user's function as a game, checks and counts, one output of several,
prefixes."""

from typing import ClassVar

import numpy as np
import pytest

from tests.games.batches import batch_at
from tests.oracles import CountingGame, additive, random_game
from weightedshap import curves
from weightedshap.coalitions import prefixes
from weightedshap.estimators import exact
from weightedshap.games import FunctionGame
from weightedshap.games.base import RowGame
from weightedshap.games.user import UserGame, as_base_game, as_batch, check_game
from weightedshap.inputs import as_table

ALL = np.array([[False, False], [True, False], [False, True], [True, True]])


def test_a_function_of_coalitions_is_a_game():
    game = FunctionGame(lambda coalitions: coalitions @ np.array([1.0, 2.0]), 2)
    assert game(ALL).tolist() == [0, 1, 2, 3]


def test_a_game_takes_zeros_and_ones():
    assert additive([1.0, 2.0]).game(np.array([[1, 0], [1, 1]])).tolist() == [1, 3]


@pytest.mark.parametrize("coalitions", [[[True]], [True, False], [[True, False, True]]])
def test_a_function_game_refuses_coalitions_of_another_shape(coalitions):
    with pytest.raises(ValueError, match=r"shape \(m, 2\)"):
        additive([1.0, 2.0]).game(np.array(coalitions))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_game_that_returns_no_finite_number_is_refused(bad):
    with pytest.raises(ValueError, match="The game returned 4 NaN or infinite values out of 4"):
        check_game(FunctionGame(lambda coalitions: np.full(len(coalitions), bad), 2))(ALL)


def test_a_game_that_returns_another_length_is_refused():
    with pytest.raises(ValueError, match="The game must return one value"):
        check_game(CountingGame(FunctionGame(lambda coalitions: np.zeros(3), 2)))(ALL)


def test_a_game_that_changes_its_number_of_outputs_is_refused():
    game = check_game(
        FunctionGame(lambda coalitions: np.zeros((len(coalitions), len(coalitions))), 2)
    )
    game(ALL)
    with pytest.raises(
        ValueError, match=r"outputs of shape \(3,\) where it returned \(4,\) before"
    ):
        game(ALL[:3])


def test_evaluations_are_counted():
    game = check_game(random_game(2))
    game(ALL)
    game(ALL[:3])
    assert game.evaluations == 7


def test_checking_twice_is_checking_once():
    game = check_game(random_game(2))
    assert check_game(game) is game


def test_what_cannot_be_called_is_no_game():
    with pytest.raises(TypeError, match="must be callable on coalitions"):
        check_game(3)


def test_the_error_of_a_bare_function_says_how_it_becomes_a_game():
    with pytest.raises(
        TypeError, match=r"needs an integer attribute `d`.*FunctionGame\(function, d\)"
    ):
        check_game(lambda coalitions: coalitions.sum(axis=1))


@pytest.mark.parametrize("d", [2.0, True, "2"])
def test_a_number_of_players_that_is_no_integer_is_refused(d):
    with pytest.raises(ValueError, match="`d` must be an integer of at least 1"):
        FunctionGame(lambda coalitions: coalitions.sum(axis=1), d)
    with pytest.raises(TypeError, match="integer attribute `d`"):
        check_game(
            type("Own", (), {"d": d, "__call__": lambda self, coalitions: coalitions.sum(axis=1)})()
        )


def test_a_game_without_players_is_refused():
    with pytest.raises(ValueError, match="at least one player"):
        check_game(
            type("Own", (), {"d": 0, "__call__": lambda self, coalitions: coalitions.sum(axis=1)})()
        )


def test_prefixes_grow_one_player_at_a_time():
    grown = prefixes(np.array([[2, 0, 1]]))
    assert grown[0].astype(int).tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1]]


class OwnWalk(CountingGame):
    """A game with its own `along` and `contributions`."""

    def along(self, orders):
        return np.full((*orders.shape[:-1], self.d + 1, 2), [7.0, 8.0])

    def contributions(self):
        return exact(additive([5.0, 5.0]).game)


def test_a_checked_game_keeps_the_games_own_walk_and_contributions():
    game = check_game(OwnWalk(random_game(2)))
    assert (curves.along(game, np.array([[0, 1]]))[..., 0] == 7).all()
    assert (exact(game).mean == 5).all()
    assert game.evaluations == 0


def test_a_checked_game_does_not_invent_what_the_game_lacks():
    game = check_game(random_game(2))
    assert game.along is None
    assert game.contributions is None


def test_one_bound_game_is_a_block_of_one_row_with_the_axis_of_outputs():
    game = random_game(3)
    coalitions = np.eye(3, dtype=bool)
    orders = np.array([[2, 0, 1], [0, 1, 2]])
    block = as_batch(game)
    assert (block.d, block.n) == (3, 1)
    np.testing.assert_array_equal(block.values(coalitions), game(coalitions)[None, :, None])
    np.testing.assert_array_equal(
        block.along(orders[None]), curves.along(game, orders)[None, ..., None]
    )
    np.testing.assert_array_equal(block.endpoints()[0, :, 0], [game.values[0], game.values[-1]])


def test_one_output_of_a_block_is_a_block():
    game = random_game(3, outputs=(2,))
    coalitions = np.eye(3, dtype=bool)
    orders = np.array([[2, 0, 1]])
    block = as_batch(game).output(1)
    np.testing.assert_array_equal(block.values(coalitions)[0], game(coalitions)[:, [1]])
    np.testing.assert_array_equal(
        block.along(orders[None])[0], curves.along(game, orders)[..., [1]]
    )


def test_one_output_of_a_block_keeps_the_games_own_walk():
    block = as_batch(OwnWalk(random_game(2, outputs=(2,)))).output(1)
    assert block.along(np.array([[[0, 1]]])).tolist() == [[[[8], [8], [8]]]]


def test_a_block_of_one_row_is_shown_without_the_axis_where_there_is_one_output():
    game = random_game(3)
    coalitions = np.eye(3, dtype=bool)
    orders = np.array([[2, 0, 1]])
    shown = RowGame(as_batch(game), axis=False, walks=True)
    np.testing.assert_array_equal(shown(coalitions), game(coalitions))
    np.testing.assert_array_equal(shown.along(orders), curves.along(game, orders))


def test_a_given_game_is_the_same_at_every_row_and_predicts_its_whole():
    game = additive([1.0, 2.0]).game
    fitted = UserGame(lambda row: game)
    assert fitted.at(0) is fitted.at(1)
    assert fitted.predict(np.zeros((3, 2))).tolist() == [3, 3, 3]


def test_a_function_of_rows_makes_one_game_for_each_row():
    fitted = as_base_game(lambda row: additive(row).game, as_table(np.zeros((1, 2))))
    rows = np.array([[1.0, 2.0], [10.0, 20.0]])
    assert fitted.predict(rows).tolist() == [3, 30]
    np.testing.assert_array_equal(batch_at(fitted, rows).endpoints(), [[[0], [3]], [[0], [30]]])


def test_a_fitted_game_of_the_users_keeps_its_info_names_and_mean():
    class Mine:
        info: ClassVar = {"game": "mine"}
        output_names = ("price",)
        mean_prediction = 7.0

        def at(self, row):
            return additive(row[0]).game

        def predict(self, rows):
            return rows.sum(axis=1) + 1

    fitted = as_base_game(Mine(), as_table(np.zeros((1, 2))))
    assert (fitted.info, fitted.output_names, fitted.mean_prediction) == (
        {"game": "mine"},
        ("price",),
        7,
    )
    assert fitted.predict(np.array([[1.0, 2.0]])).tolist() == [4]
    assert as_base_game(fitted, as_table(np.zeros((1, 2)))) is fitted


def test_the_error_of_what_is_no_game_says_what_is():
    with pytest.raises(TypeError, match="`game` must be a name, a recipe with `fit`"):
        as_base_game(3, as_table(np.zeros((1, 2))))
