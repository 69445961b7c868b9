"""Results come back in order and never depend on how the work is spread."""

import numpy as np
import pytest

from weightedshap.parallel import bar, map_blocks, row_generator


def squares(n_jobs, tasks=range(7)):
    return list(map_blocks(lambda task: task**2, list(tasks), [1] * len(tasks), n_jobs))


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_results_come_back_in_the_order_of_the_tasks(n_jobs):
    assert squares(n_jobs) == [0, 1, 4, 9, 16, 25, 36]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_a_task_reaches_the_caller(n_jobs):
    with pytest.raises(ZeroDivisionError):
        list(map_blocks(lambda task: 1 // task, [1, 0, 1], [1, 1, 1], n_jobs))


def test_a_row_draws_the_same_numbers_whenever_it_is_asked():
    np.testing.assert_array_equal(row_generator(5, 2).random(4), row_generator(5, 2).random(4))


@pytest.mark.parametrize("other", [(5, 3), (6, 2)])
def test_other_rows_and_other_seeds_draw_other_numbers(other):
    assert row_generator(5, 2).random() != row_generator(*other).random()


@pytest.mark.parametrize(("progress", "hidden"), [(False, True), ("auto", True), (True, False)])
def test_the_bar_is_hidden_unless_asked_for_or_on_a_terminal(progress, hidden, capsys):
    with bar(3, "explaining", progress) as shown:
        shown.update(3)
    assert (capsys.readouterr().err == "") is hidden
