"""Results come back in order and never depend on how the work is spread."""

import os
import sys

import joblib
import numpy as np
import pytest

from weightedshap.config import Choices
from weightedshap.parallel import bar, each_block, row_generator

PARTS = [slice(start, start + 2) for start in range(0, 14, 2)]


def worked(work, n_jobs):
    return list(each_block(work, PARTS, Choices(n_jobs=n_jobs), "working"))


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_results_come_back_in_the_order_of_the_blocks(n_jobs):
    assert worked(lambda part: part.start**2, n_jobs) == [0, 4, 16, 36, 64, 100, 144]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_a_block_reaches_the_caller(n_jobs):
    with pytest.raises(ZeroDivisionError):
        worked(lambda part: 1 // (part.start - 4), n_jobs)


@pytest.mark.filterwarnings("default:A worker stopped")  # would end the thread that minds workers
def test_threads_work_in_this_process_and_processes_elsewhere():
    assert set(worked(lambda part: os.getpid(), 2)) == {os.getpid()}
    with joblib.parallel_config(backend="loky"):
        assert os.getpid() not in worked(lambda part: os.getpid(), 2)


def test_a_row_draws_the_same_numbers_whenever_it_is_asked():
    np.testing.assert_array_equal(row_generator(5, 2).random(4), row_generator(5, 2).random(4))


@pytest.mark.parametrize("other", [(5, 3), (6, 2), (5, "2"), (5, -2), (5, 2 + 2**64)])
def test_other_rows_and_other_seeds_draw_other_numbers(other):
    assert row_generator(5, 2).random() != row_generator(*other).random()


@pytest.mark.parametrize(("progress", "hidden"), [(False, True), ("auto", True), (True, False)])
def test_the_bar_is_hidden_unless_asked_for_or_on_a_terminal(progress, hidden, capsys):
    with bar(3, "explaining", progress) as shown:
        shown.update(3)
    assert (capsys.readouterr().err == "") is hidden


def test_notebooks_see_the_bar_without_asking(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", None)
    with bar(3, "explaining", "auto") as shown:
        assert not shown.disable
