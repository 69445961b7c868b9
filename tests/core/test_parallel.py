"""Tests of running blocks in parallel: results come in order, whatever the number of workers."""

import os
import sys

import joblib
import numpy as np
import pytest

from weightedshap.parallel import Workers, each_block, progress_bar, row_generator

PARTS = [slice(start, start + 2) for start in range(0, 14, 2)]


def run_blocks(work, n_jobs):
    return list(each_block(work, PARTS, Workers(n_jobs, "auto"), "working"))


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
def test_results_come_back_in_the_order_of_the_blocks(n_jobs):
    assert run_blocks(lambda part: part.start**2, n_jobs) == [0, 4, 16, 36, 64, 100, 144]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_a_block_reaches_the_caller(n_jobs):
    with pytest.raises(ZeroDivisionError):
        run_blocks(lambda part: 1 // (part.start - 4), n_jobs)


# As an error, this warning would end the thread that watches the workers.
@pytest.mark.filterwarnings("default:A worker stopped")
def test_threads_work_in_this_process_and_processes_elsewhere():
    assert set(run_blocks(lambda part: os.getpid(), 2)) == {os.getpid()}
    with joblib.parallel_config(backend="loky"):
        assert os.getpid() not in run_blocks(lambda part: os.getpid(), 2)


def test_a_row_draws_the_same_numbers_every_time():
    np.testing.assert_array_equal(row_generator(5, 2).random(4), row_generator(5, 2).random(4))


@pytest.mark.parametrize("other", [(5, 3), (6, 2), (5, "2"), (5, -2), (5, 2 + 2**64)])
def test_other_rows_and_other_seeds_draw_other_numbers(other):
    assert row_generator(5, 2).random() != row_generator(*other).random()


@pytest.mark.parametrize(("progress", "is_hidden"), [(False, True), ("auto", True), (True, False)])
def test_the_bar_is_hidden_unless_requested_or_on_a_terminal(progress, is_hidden, capsys):
    with progress_bar(3, "explaining", progress) as bar:
        bar.update(3)
    assert (capsys.readouterr().err == "") is is_hidden


def test_notebooks_show_the_bar_by_default(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", None)
    with progress_bar(3, "explaining", "auto") as bar:
        assert not bar.disable
