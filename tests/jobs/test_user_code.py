"""Code of users: it may end, print or fail, and no row is lost in silence for it."""

from __future__ import annotations

import json
import os
import re
import signal
import time

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weightedshap as ws
from tests.jobs import example_run
from weightedshap.jobs import exit_codes as stops
from weightedshap.jobs import stream as streaming
from weightedshap.jobs.run import Run, Stream

MODELS = """
import ctypes, os, sys

print("imported")
os.write(1, b"written while it was imported\\n")

def plain(rows):
    return 2 * rows["f0"].to_numpy()

def telling(rows):
    print("asked", flush=True)
    ctypes.CDLL(None).printf(b"asked in C\\n")
    return plain(rows)

def bad(rows):
    return (rows["f0"] > 9).any()

def leaving(rows):
    if bad(rows):
        sys.exit(0)
    return plain(rows)

def ending(rows):
    if bad(rows):
        os._exit(0)
    return plain(rows)

def interrupting(rows):
    if bad(rows):
        raise KeyboardInterrupt
    return plain(rows)

def failing(rows):
    if bad(rows):
        raise ConnectionError("the service is gone")
    return plain(rows)

def never(rows):
    raise ConnectionError("the service is gone")

def never_there(rows):
    sys.exit(0)
"""
BAD_ROW = 217  # in the third part


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Files of a run, and models that are functions; one of the rows is what they do not like."""
    folder = example_run.write_files(tmp_path_factory.mktemp("run"), n=400)
    (folder / "their.py").write_text(MODELS)
    (folder / "leaving_at_once.py").write_text("import sys\nsys.exit(0)\n")
    (folder / "ending_at_once.py").write_text("import os\nos._exit(0)\n")
    rows = pd.read_parquet(folder / "rows.parquet")
    rows.to_parquet(folder / "good.parquet", index=False)
    rows.loc[BAD_ROW, "f0"] = 10.0
    rows.to_parquet(folder / "rows.parquet", index=False)
    background = pq.read_table(folder / "background.parquet").slice(0, 8)
    pq.write_table(background, folder / "background.parquet")
    return folder


@pytest.fixture
def explain(home, tmp_path, monkeypatch):
    """Run the command: explain(model, **options) → its code, and what it printed on standard output
    and error."""
    monkeypatch.chdir(home)
    monkeypatch.syspath_prepend(home)

    def here(model, **more):
        result = example_run.explain(
            home, tmp_path / "out", **{"model": model, "game": "baseline", **more}
        )
        return result.exit_code, result.stdout, result.stderr

    return here


@pytest.fixture
def explain_in_a_process(home, tmp_path):
    """The same in a process of its own, where this one would be ended, or prints in its stead."""

    def run(model, **more):
        given = {"model": model, "game": "baseline", **more}
        process = example_run.start_process(home, tmp_path / "out", home, **given)
        output, errors = process.communicate(timeout=100)
        return process.returncode, output, errors

    return run


@pytest.mark.parametrize(
    "more", [{}, {"jobs": 2}, {"on-error": "skip"}, {"on-error": "skip", "jobs": 2}]
)
def test_a_model_that_exits_fails_the_part_and_its_row_is_named(explain, tmp_path, more):
    code, _, errors = explain("their:leaving", **more)
    assert code == stops.INPUT
    assert (
        f"rows.parquet, row {BAD_ROW} (counted from 0): the model their:leaving ended the program"
        in errors
    )
    assert "exit with 0" in errors
    assert not list((tmp_path / "out").glob("skipped/*"))
    assert not (tmp_path / "out" / "part-00000002.parquet").exists()
    assert not (tmp_path / "out" / "summary.json").exists()


def test_a_model_that_ends_the_process_fails_the_part(explain_in_a_process, tmp_path):
    code, _, errors = explain_in_a_process("their:ending")
    assert code == stops.INPUT
    assert f"row {BAD_ROW} (counted from 0): the model their:ending ended the program" in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "out" / "part-00000002.parquet").exists()


def test_a_model_that_ends_the_process_when_it_is_imported_is_reported(explain_in_a_process):
    code, _, errors = explain_in_a_process("ending_at_once:score")
    assert code == stops.INPUT
    assert "The model ending_at_once:score ended the program (exit with 0)" in errors


def test_a_model_that_ends_a_worker_is_reported(explain, tmp_path):
    code, _, errors = explain("their:ending", jobs=2)
    assert code == stops.OUTPUT
    assert "A worker ended or was killed" in errors
    assert not (tmp_path / "out" / "summary.json").exists()


def test_a_model_that_interrupts_is_no_success(explain):
    code, _, errors = explain("their:interrupting")
    assert code == stops.INTERRUPTED
    assert "--resume" in errors
    code, _, errors = explain("their:interrupting", jobs=2, resume=True)
    assert code == stops.INPUT
    assert "the model their:interrupting raised KeyboardInterrupt" in errors


@pytest.mark.parametrize("model", ["leaving_at_once:score", "their:never_there"])
def test_a_model_that_exits_before_the_first_row_is_reported(explain, tmp_path, model):
    code, _, errors = explain(model)
    assert code == stops.INPUT
    assert f"The model {model} ended the program (exit with 0)" in errors
    assert not example_run.parts(tmp_path / "out")


def test_once_the_model_is_repaired_the_run_resumes(explain, tmp_path):
    assert explain("their:leaving")[0] == stops.INPUT
    before = {part: part.stat().st_ino for part in example_run.parts(tmp_path / "out")}
    assert len(before) >= 2
    code, _, errors = explain("their:leaving", resume=True, rows="good.parquet")
    assert code == 0, errors
    assert example_run.table(tmp_path / "out").num_rows == 400
    assert all(part.stat().st_ino == inode for part, inode in before.items())


def test_an_exit_while_rows_stream_is_an_ordinary_error():
    def leaving(rows):
        if (rows["f0"] > 9).any():
            raise SystemExit(0)
        return rows["f0"].to_numpy()

    rows = example_run.frame(60)
    rows.loc[37, "f0"] = 10.0
    explainer = ws.Explainer(leaving, example_run.frame(9), game="baseline", progress=False)
    with pytest.raises(
        streaming.ModelExitError, match=r"Row 37 \(counted from 0\): the model ended the program"
    ):
        list(explainer.stream(pa.Table.from_pandas(rows.assign(id=range(60))), key="id"))


def test_an_exit_that_no_single_row_causes_is_reported_without_one():
    exits = []

    def leaving(rows):
        if exits and len(rows) > 9:
            raise SystemExit(exits.pop())
        return rows["f0"].to_numpy()

    explainer = ws.Explainer(leaving, example_run.frame(9), game="baseline", progress=False)
    exits.append("too much")
    with pytest.raises(
        streaming.ModelExitError, match=r"^the model ended the program \(exit with 'too much'\)"
    ):
        list(
            explainer.stream(
                pa.Table.from_pandas(example_run.frame(60).assign(id=range(60))), key="id"
            )
        )


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_the_system_in_the_model_names_model_and_error(explain, jobs):
    code, _, errors = explain("their:failing", jobs=jobs, **{"on-error": "skip"})
    assert code == stops.INPUT
    assert "The model their:failing raised ConnectionError: the service is gone." in errors
    assert "--resume" in errors


def test_an_error_of_the_system_while_fitting_names_model_and_error(explain):
    code, _, errors = explain("their:never")
    assert code == stops.INPUT
    assert "The model their:never raised ConnectionError: the service is gone." in errors


def test_a_missing_explainer_is_not_taken_for_the_models_fault(explain, tmp_path):
    (tmp_path / "nothing").mkdir()
    code, _, errors = explain("their:plain", explainer=tmp_path / "nothing")
    assert code == stops.INPUT
    assert f"{tmp_path / 'nothing' / 'explainer.npz'} cannot be read" in errors


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_the_model_prints_goes_to_standard_error(explain_in_a_process, jobs):
    code, output, errors = explain_in_a_process("their:telling", jobs=jobs)
    assert code == 0, errors
    events = [json.loads(line)["event"] for line in output.splitlines()]
    assert events == ["fitting", "started", *["part"] * 4, "finished"]
    for words in ("imported", "written while it was imported", "asked", "asked in C"):
        assert words in errors.splitlines()


def test_what_the_model_prints_is_not_among_the_words_for_people(explain):
    code, output, errors = explain("their:telling")
    assert code == 0, errors
    assert output.startswith("400 rows explained\n")
    assert "asked" not in output
    assert "asked" in errors


def test_a_budget_that_is_too_small_is_no_fault_of_the_rows(explain, tmp_path):
    more = {"estimator": "permutation", "game": "marginal", "evaluations": 3, "on-error": "skip"}
    code, _, errors = explain("their:plain", **more)
    assert code == stops.USAGE
    assert "A budget of 3 evaluations is too small" in errors
    assert "No row is at fault" in errors
    assert not example_run.parts(tmp_path / "out")
    assert not list((tmp_path / "out").glob("skipped/*"))


def test_an_error_of_the_call_is_no_error_of_a_row_while_rows_stream():
    def plain(rows):
        return rows["f0"].to_numpy()

    choices = {"game": "marginal", "estimator": "permutation", "evaluations": 3}
    explainer = ws.Explainer(plain, example_run.frame(9), progress=False, **choices)
    rows = pa.Table.from_pandas(example_run.frame(5).assign(id=range(5)))
    with pytest.raises(streaming.CallError, match=r"^A budget of 3 evaluations is too small"):
        list(explainer.stream(rows, key="id"))


def test_rows_that_are_lost_are_never_a_success(explain, monkeypatch):
    whole = Stream.explain_batch

    def losing(self, batch, *rest):
        return whole(self, batch.slice(1), *rest)

    monkeypatch.setattr(Stream, "explain_batch", losing)
    code, _, errors = explain("their:plain")
    assert code == stops.FAILED
    assert re.search(
        r"rows \d+ to \d+: 100 rows were read, but 99 were explained and 0 skipped", errors
    )


def test_parts_that_are_lost_are_never_a_success(explain, tmp_path, monkeypatch):
    whole = Run.explain

    def forgetting(self, part, batch):
        facts = whole(self, part, batch)
        if part.index == 1:
            (self.folder / f"{part.name}.parquet").unlink()
        return facts

    monkeypatch.setattr(Run, "explain", forgetting)
    code, _, errors = explain("their:plain")
    assert code == stops.FAILED
    assert "400 rows were read, but 300 were explained and 0 skipped" in errors
    assert not (tmp_path / "out" / "summary.json").exists()


def test_an_interrupt_of_two_workers_says_one_sentence(home, tmp_path):
    more = {"model": home / "model.txt", "game": "tree_path", "jobs": 2, "part-rows": 5}
    process = example_run.start_process(
        home, tmp_path / "out", rows="good.parquet", background=home / "background.csv", **more
    )
    parts = 0
    for line in process.stdout:
        parts += json.loads(line)["event"] == "part"
        if parts == 4:  # both have loaded what they need
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == stops.INTERRUPTED
    assert errors.startswith("Error: Stopped. Finished parts are kept; go on with: ")
    assert len(errors.splitlines()) == 1


@pytest.mark.parametrize("delay", [0.1, 0.4, 0.7, 1.0])
def test_an_interrupt_by_a_terminal_while_workers_start_says_one_sentence(home, tmp_path, delay):
    more = {"model": home / "model.txt", "game": "tree_path", "jobs": 2, "part-rows": 5}
    more |= {"rows": "good.parquet", "background": home / "background.csv", "group": True}
    process = example_run.start_process(home, tmp_path / "out", **more)
    for line in process.stdout:
        if json.loads(line)["event"] == "started":
            break
    time.sleep(delay)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == stops.INTERRUPTED
    assert len(errors.splitlines()) == 1, errors


def test_a_reader_that_goes_away_ends_the_run_without_a_traceback(home, tmp_path):
    more = {"model": home / "model.txt", "game": "tree_path", "background": home / "background.csv"}
    with example_run.start_process(home, tmp_path / "out", rows="good.parquet", **more) as process:
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
    assert process.returncode == 1
    assert "Traceback" not in errors
