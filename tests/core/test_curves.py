"""Predictions along orders, and the errors and areas read off them."""

import numpy as np
import pytest
from hypothesis import given

from tests.axioms.strategies import games, seeds
from tests.oracles import (
    CountingGame,
    additive,
    random_game,
    value,
)
from weightedshap import curves

ORDERS = np.array([[2, 0, 1], [0, 1, 2], [2, 0, 1]])


def test_features_are_ranked_by_size_whatever_the_sign():
    assert curves.order_of(np.array([1.0, -3.0, 2.0])).tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    "phi",
    [
        [1, -3, 2],
        np.array([1, -3, 2]),
        np.float32([1, -3, 2]),
        np.ma.array([1.0, -3.0, 2.0], mask=[0, 0, 0]),
    ],
)
def test_numbers_of_any_kind_are_ranked_and_summed(phi):
    assert curves.order_of(phi).tolist() == [1, 2, 0]
    assert curves.area(phi) == -1


def test_words_are_not_ranked():
    for words in (["a", "b"], np.array(["a", "b"])):
        with pytest.raises(TypeError, match="`phi` must be numbers"):
            curves.order_of(words)


def test_equal_features_keep_the_lower_index_first():
    assert curves.order_of(np.array([1.0, 2.0, -1.0, -2.0, 0.0, -0.0])).tolist() == [
        1,
        3,
        0,
        2,
        4,
        5,
    ]
    many = np.tile([1.0, -2.0, 2.0], 40)
    assert curves.order_of(many).tolist() == [i for i in range(120) if i % 3] + list(
        range(0, 120, 3)
    )


@given(seeds)
def test_ranks_are_those_of_a_stable_sort_also_where_numbers_are_equal(seed):
    rng = np.random.default_rng(seed)
    phi = rng.choice(
        [0.0, 1.0, np.nextafter(1.0, 2.0), 1 + 1e-14, -1.0, np.inf, 3e-308], size=(3, 4, 30)
    )
    phi *= rng.choice([1.0, rng.normal()], size=(3, 4, 1))
    phi[0, rng.random((4, 30)) < 0.05] = np.nan
    for axis in (1, 2):
        expected = np.argsort(-np.abs(phi), axis=axis, kind="stable")
        np.testing.assert_array_equal(curves.order_of(phi, axis=axis), expected)


def test_many_attributions_are_ranked_at_once():
    phi = np.random.default_rng(0).normal(size=(2, 3, 4))
    one_by_one = [[curves.order_of(row).tolist() for row in block] for block in phi]
    assert curves.order_of(phi).tolist() == one_by_one


@given(game=games(1, 5), seed=seeds)
def test_a_walk_is_the_game_on_growing_coalitions(game, seed):
    order = np.random.default_rng(seed).permutation(game.d)
    expected = [value(game, order[:k]) for k in range(game.d + 1)]
    np.testing.assert_array_equal(curves.along(game, order[None])[0], expected)


def test_each_distinct_coalition_is_evaluated_once():
    game = CountingGame(random_game(3))
    curves.along(game, ORDERS)
    assert len(game.asked) == len(set(game.asked)) == 6  # ∅, 2, 02, 012, 0, 01


def test_a_walk_over_many_players_distinguishes_all_coalitions():
    game = additive(np.arange(20.0)).game
    orders = np.array([np.arange(20), np.arange(20)[::-1]])
    expected = np.concatenate([np.zeros((2, 1)), np.cumsum(orders, axis=1)], axis=1)
    np.testing.assert_array_equal(curves.along(game, orders), expected)


def test_several_outputs_are_walked_side_by_side():
    game = random_game(3, outputs=(2,))
    walked = curves.along(game, ORDERS)
    assert walked.shape == (3, 4, 2)
    for o in range(2):
        np.testing.assert_array_equal(
            walked[..., o], curves.along(type(game)(game.values[:, o]), ORDERS)
        )


def test_a_walk_of_the_games_own_is_used():
    class Walking(CountingGame):
        def along(self, orders):
            return np.full((len(orders), 4), 7.0)

    game = Walking(random_game(3))
    assert (curves.along(game, ORDERS) == 7).all()
    assert game.asked == []


def test_recovery_and_exclusion_errors_of_an_additive_game():
    game = additive([1.0, 2.0, 4.0]).game
    assert curves.recovery_error(game, ORDERS[:1], 7.0).tolist() == [[7, 3, 2, 0]]
    assert curves.exclusion_error(game, ORDERS[:1], 7.0).tolist() == [[0, 4, 5, 7]]


@given(game=games(1, 5), seed=seeds)
def test_exclusion_is_the_error_without_the_first_k(game, seed):
    order = np.random.default_rng(seed).permutation(game.d)
    expected = [abs(0.3 - value(game, order[k:])) for k in range(game.d + 1)]
    np.testing.assert_allclose(
        curves.exclusion_error(game, order[None], 0.3)[0], expected, atol=1e-15
    )


def test_the_area_leaves_the_empty_coalition_out_and_divides_by_nothing():
    assert curves.area(np.array([[100.0, 1.0, 2.0], [100.0, 3.0, 4.0]])).tolist() == [3, 7]


def test_the_mean_of_rows_has_students_interval():
    values = np.array([[1.0, 5.0], [3.0, 5.0], [5.0, 5.0]])
    mean, half = curves.mean_interval(values)
    np.testing.assert_allclose(mean, [3, 5])
    np.testing.assert_allclose(half, [4.302653 * 2 / np.sqrt(3), 0], rtol=1e-6)


def test_one_row_has_a_mean_and_no_interval():
    mean, half = curves.mean_interval(np.array([[1.0, 2.0]]))
    assert mean.tolist() == [1, 2]
    assert np.isnan(half).all()


def test_a_game_whose_values_on_a_walk_are_wrong_is_refused():
    with pytest.raises(ValueError, match="NaN or infinite"):
        curves.along(type(random_game(2))(np.array([0.0, 1.0, np.nan, 2.0])), np.array([[1, 0]]))


def test_the_share_of_the_area_that_is_due_to_the_judges_error():
    """Notices any other mean, or another end."""
    assert curves.judge_error_share(np.array([[9.0, 2.0, 1.0], [9.0, 4.0, 1.0]])) == pytest.approx(
        1 / 2
    )
    assert curves.judge_error_share(np.array([[9.0, 0.25, 0.25]])) == 1.0
    assert curves.judge_error_share(np.zeros((2, 3))) == 0.0


def test_two_rows_have_an_interval():
    """Notices an interval that begins with three rows."""
    mean, half = curves.mean_interval(np.array([0.0, 2.0]))
    assert (mean, half) == (1.0, pytest.approx(12.7062047))
    assert np.isnan(curves.mean_interval(np.array([1.0]))[1])


@pytest.mark.parametrize(
    ("shape", "axis"), [((3,), 1), ((3,), -2), ((2, 0), 1), ((2, 3), "x"), ((2, 3), 0.5)]
)
def test_an_axis_that_does_not_exist_is_refused(shape, axis):
    """Notices an axis that is refused only where everything is wrong at once."""
    for function in (curves.order_of, curves.area):
        with pytest.raises(ValueError, match="`axis` must be an axis of"):
            function(np.ones(shape), axis)
