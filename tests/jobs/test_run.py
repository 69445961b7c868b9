"""`weightedshap explain`: parts, what is resumed and what is refused, and rows that cannot be
explained."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lightgbm import Booster

import weightedshap as ws
from tests.jobs import example_run
from weightedshap.jobs import executors as pools
from weightedshap.jobs import exit_codes as stops


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return example_run.write_files(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def whole(home):
    """A run that nobody disturbed."""
    result = example_run.explain(home, home / "whole")
    assert result.exit_code == 0, result.output
    return home / "whole"


def rest(home, out, count=3):
    """A copy of the run as if it had been killed after some parts."""
    subprocess.run(["cp", "-r", home / "whole", out], check=True)
    for part in example_run.parts(out)[count:]:
        part.unlink()
    (out / "summary.json").unlink()
    return out


def test_parts_hold_every_row_once_in_order(home, whole):
    found = example_run.table(whole)
    rows = pd.read_parquet(home / "rows.parquet")
    assert found["id"].to_pylist() == rows["id"].tolist()
    assert [len(pq.read_table(part)) for part in example_run.parts(whole)] == [100] * 6
    background = (
        pd.read_parquet(home / "background.parquet")
        .drop(columns="price")
        .astype({"city": "category"})
    )
    explainer = ws.Explainer(
        Booster(model_file=home / "model.txt"), background, game="tree_path", progress=False
    )
    explanation = explainer(rows.drop(columns="id"))
    assert np.array_equal(found["phi_f0"], explanation.values[:, 0])
    assert (
        found.schema.names
        == explainer.stream_schema(pq.read_schema(home / "rows.parquet"), key="id").names
    )


def test_the_summary_is_that_of_all_rows(whole):
    found = example_run.table(whole)
    summary = json.loads((whole / "summary.json").read_text())
    assert summary["rows"] == 600
    for name, mean in summary["mean_absolute_phi"].items():
        assert mean == pytest.approx(np.abs(found[f"phi_{name}"]).mean())
    assert summary["mean_area"] == pytest.approx(-np.mean(found["score"]))
    assert summary["mean_shapley_area"] == pytest.approx(-np.mean(found["shapley_score"]))
    assert summary["weights"] == pd.Series(found["weight"].to_pylist()).value_counts().to_dict()


@pytest.mark.parametrize(
    "more", [{"jobs": 2}, {"rows": "rows.csv", "background": "background.csv"}]
)
def test_neither_jobs_nor_the_kind_of_file_matter(home, whole, tmp_path, more):
    more = {name: home / value if name == "background" else value for name, value in more.items()}
    result = example_run.explain(home, tmp_path / "out", **more)
    assert result.exit_code == 0, result.output
    assert example_run.table(tmp_path / "out").equals(example_run.table(whole))
    if "jobs" in more:
        assert example_run.contents(tmp_path / "out") == example_run.contents(whole)


def test_resuming_redoes_only_what_is_missing(home, whole, tmp_path):
    out = rest(home, tmp_path / "out")
    before = {part: part.stat().st_ino for part in example_run.parts(out)}
    result = example_run.explain(home, out, resume=True, json=True)
    lines = [json.loads(line) for line in result.output.splitlines()]
    assert [one["new"] for one in lines if one["event"] == "part"] == [False] * 3 + [True] * 3
    assert example_run.contents(out) == example_run.contents(whole)
    assert all(part.stat().st_ino == inode for part, inode in before.items())


def test_resuming_a_new_folder_begins(home, whole, tmp_path):
    assert example_run.explain(home, tmp_path / "out", resume=True).exit_code == 0
    assert example_run.contents(tmp_path / "out") == example_run.contents(whole)


def test_a_folder_in_use_is_not_begun_again(home, whole):
    result = example_run.explain(home, whole)
    assert result.exit_code == stops.MISMATCH
    assert "--resume" in result.output


def test_a_different_run_is_refused_and_the_difference_named(home, whole, tmp_path):
    out = rest(home, tmp_path / "out")
    result = example_run.explain(
        home, out, resume=True, family="wide", background=home / "background.csv"
    )
    assert result.exit_code == stops.MISMATCH
    assert "choices.family: None then, 'wide' now" in result.output
    assert "background: 'sha256:" in result.output
    assert len(example_run.parts(out)) == 3


def changed(home, tmp_path, change):
    """The same run on rows that were changed since."""
    other = tmp_path / "home"
    subprocess.run(["cp", "-r", home, other], check=True)
    rows = change(pd.read_parquet(home / "rows.parquet"))
    rows.to_parquet(other / "rows.parquet", index=False)
    return other


def test_rows_that_changed_are_refused_and_named(home, whole, tmp_path):
    def change(rows):
        rows.loc[250, "f0"] += 1
        return rows

    other = changed(home, tmp_path, change)
    out = rest(home, tmp_path / "out", 4)
    result = example_run.explain(other, out, resume=True)
    assert result.exit_code == stops.MISMATCH
    assert (
        "part-00000002.parquet was made of other rows than there are now from row 200"
        in result.output
    )


def test_missing_rows_are_refused(home, whole, tmp_path):
    other = changed(home, tmp_path, lambda rows: rows[:200])
    out = rest(home, tmp_path / "out")
    result = example_run.explain(other, out, resume=True)
    assert result.exit_code == stops.MISMATCH
    assert "the input shrank" in result.output


def test_a_part_of_another_run_is_refused(home, whole, tmp_path):
    out = rest(home, tmp_path / "out")
    assert example_run.explain(home, tmp_path / "shapley", family="shapley").exit_code == 0
    for file in ("part-00000000.parquet", "checksums/part-00000000.json"):
        (tmp_path / "shapley" / file).replace(out / file)
    result = example_run.explain(home, out, resume=True)
    assert result.exit_code == stops.MISMATCH
    assert "another run" in result.output


def test_the_second_process_on_a_folder_stops(home, whole, tmp_path):
    out = rest(home, tmp_path / "out")
    with (out / ".lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = example_run.explain(home, out, resume=True)
    assert result.exit_code == stops.BUSY
    assert f"Another process (process {os.getpid()}" in result.output


def with_bad_rows(home, tmp_path):
    other = tmp_path / "home"
    subprocess.run(["cp", "-r", home, other], check=True)
    lines = (home / "rows.csv").read_text().splitlines()
    lines[1 + 137] = lines[1 + 137].replace(lines[1 + 137].split(",")[0], "much", 1)
    lines[1 + 420] = ",".join(
        ["Rom" if cell in ("Ulm", "Bonn", "Köln") else cell for cell in lines[1 + 420].split(",")]
    )
    (other / "rows.csv").write_text("\n".join(lines) + "\n")
    return other


def test_a_bad_row_stops_the_run_and_is_named_and_a_corrected_file_resumes(home, whole, tmp_path):
    other = with_bad_rows(home, tmp_path)
    out = tmp_path / "out"
    result = example_run.explain(other, out, rows="rows.csv")
    assert result.exit_code == stops.INPUT
    assert (
        "rows.csv, row 137 (counted from 0): Column 'f0' holds text where the background holds"
        " numbers" in result.output
    )
    assert len(example_run.parts(out)) == 1
    (other / "rows.csv").write_text((home / "rows.csv").read_text())
    assert example_run.explain(other, out, rows="rows.csv", resume=True).exit_code == 0
    assert example_run.table(out).equals(example_run.table(whole))


def test_bad_rows_can_be_skipped_and_are_listed_in_files_of_their_own(home, whole, tmp_path):
    other = with_bad_rows(home, tmp_path)
    out = tmp_path / "out"
    with (other / "rows.csv").open("a") as file:
        file.write("1,2,3\n")
    result = example_run.explain(other, out, rows="rows.csv", **{"on-error": "skip"})
    assert result.exit_code == stops.SKIPPED
    kept = [i for i in range(600) if i not in (137, 420)]
    assert example_run.table(out).equals(example_run.table(whole).take(kept))
    files = sorted((out / "skipped").iterdir())
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert [one.get("row") for one in lines] == [None, 137, 420]
    assert lines[0]["line"] == "1,2,3"
    assert lines[1]["values"]["f0"] == "much"
    assert "never saw" in lines[2]["reason"]
    assert json.loads((out / "summary.json").read_text())["skipped"] == 3


def test_a_part_of_bad_rows_only_is_empty(home, tmp_path):
    other = changed(home, tmp_path, lambda rows: rows.assign(city="Rom")[:150])
    assert (
        example_run.explain(other, tmp_path / "out", **{"on-error": "skip"}).exit_code
        == stops.SKIPPED
    )
    assert len(example_run.table(tmp_path / "out")) == 0
    assert len(example_run.parts(tmp_path / "out")) == 2


def test_a_damaged_row_group_stops_and_a_whole_file_resumes(home, whole, tmp_path):
    other = changed(home, tmp_path, lambda rows: rows)
    out = tmp_path / "out"
    pq.write_table(pq.read_table(home / "rows.parquet"), other / "rows.parquet", row_group_size=200)
    good = (other / "rows.parquet").read_bytes()
    meta = pq.read_metadata(other / "rows.parquet").row_group(1).column(0)
    start = meta.dictionary_page_offset or meta.data_page_offset
    (other / "rows.parquet").write_bytes(good[:start] + b"\xff" * 60 + good[start + 60 :])
    result = example_run.explain(other, out)
    assert result.exit_code == stops.INPUT
    assert "rows.parquet, row group 1 (rows 200 to 399" in result.output
    assert len(example_run.parts(out)) == 2
    (other / "rows.parquet").write_bytes(good)
    assert example_run.explain(other, out, resume=True).exit_code == 0
    assert example_run.table(out).equals(example_run.table(whole))


def test_a_sampled_game_is_the_same_by_any_number_of_workers(home, tmp_path):
    few = pq.read_table(home / "rows.parquet").slice(0, 12)
    subprocess.run(["cp", home / "model.txt", home / "background.parquet", tmp_path], check=True)
    pq.write_table(few, tmp_path / "rows.parquet")
    pq.write_table(
        pq.read_table(home / "background.parquet").slice(0, 6), tmp_path / "background.parquet"
    )
    more = {"game": "marginal", "estimator": "permutation", "evaluations": 60, "part-rows": 5}
    for jobs in (1, 2):
        result = example_run.explain(tmp_path, tmp_path / f"out{jobs}", jobs=jobs, **more)
        assert result.exit_code == 0, result.output
    assert example_run.contents(tmp_path / "out1") == example_run.contents(tmp_path / "out2")
    keyless = example_run.arguments(tmp_path, tmp_path / "out3", **more)
    at = keyless.index("--key")
    result = example_run.CliRunner().invoke(
        example_run.cli.main, ["explain", *keyless[:at], *keyless[at + 2 :]]
    )
    assert result.exit_code == stops.INPUT
    assert "key" in result.output


def wait_for(process, parts):
    """Until so many parts are lines."""
    for line in process.stdout:
        parts -= json.loads(line)["event"] == "part"
        if parts <= 0:
            return


@pytest.mark.parametrize(("parts", "jobs"), [(1, 1), (4, 1), (3, 2)])
def test_after_a_kill_the_rest_is_the_same_to_the_bit(home, whole, tmp_path, parts, jobs):
    out = tmp_path / "out"
    process = example_run.start_process(home, out, jobs=jobs)
    wait_for(process, parts)
    process.kill()
    process.communicate()
    assert all(pq.ParquetFile(part).metadata.num_rows == 100 for part in example_run.parts(out))
    for _ in range(50):  # workers of a killed parent end by themselves
        result = example_run.explain(home, out, resume=True)
        if result.exit_code != stops.BUSY:
            break
        time.sleep(0.2)
    assert result.exit_code == 0, result.output
    assert example_run.contents(out) == example_run.contents(whole)


def test_a_worker_whose_parent_was_killed_before_it_began_ends_by_itself():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    begun = (
        "import time; from weightedshap.jobs import executors;"
        f" executors._ignore_sigint_and_watch_parent({ended.pid}); time.sleep(60)"
    )
    assert subprocess.run([sys.executable, "-c", begun], timeout=50, check=False).returncode == 1


def test_unfinished_files_of_a_killed_run_are_removed(home, whole, tmp_path):
    out = tmp_path / "out"
    example_run.explain(home, out)
    for left in (
        out / ".part-00000007.parquet.1.part",
        out / "samples" / ".part-00000007.npz.1.part",
    ):
        left.write_bytes(b"half")
    assert example_run.explain(home, out, resume=True).exit_code == 0
    assert example_run.contents(out) == example_run.contents(whole)


def test_an_interrupt_stops_cleanly_and_names_the_way_to_resume(home, whole, tmp_path):
    out = tmp_path / "out"
    process = example_run.start_process(home, out, jobs=2, **{"part-rows": 5})
    wait_for(process, 2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == stops.INTERRUPTED
    assert "--resume" in errors
    assert "Traceback" not in errors
    assert not list(out.rglob(".part-*"))


def interrupted(tasks):
    with pools.pool("local", 2, None) as (workers, many):
        workers.submit(time.sleep, 0.01).result()
        tasks.extend(workers.submit(time.sleep, 60) for _ in range(2 * many))
        raise KeyboardInterrupt


def test_tasks_just_handed_over_end_with_their_workers():
    tasks = []
    for _ in range(5):
        with pytest.raises(KeyboardInterrupt):
            interrupted(tasks)
    assert all(
        task.done() for task in tasks
    )  # a traceback in a thread of the executor's fails this test, too


def mounted(folder, options):
    """A file system of its own, where that is allowed."""
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True
    ).returncode:
        pytest.skip(
            "of full and of read-only disks; to run: make test as root, who may mount file systems"
        )


@pytest.fixture
def disk(tmp_path):
    yield tmp_path / "disk"
    subprocess.run(
        ["umount", "--lazy", tmp_path / "disk"], capture_output=True
    )  # pyarrow may still hold a file


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_full_disk_leaves_whole_parts_and_room_resumes(home, whole, disk, jobs):
    mounted(disk, "size=220k")
    result = example_run.explain(home, disk / "out", jobs=jobs)
    assert result.exit_code == stops.OUTPUT
    assert "No space left on device" in result.output
    assert all(len(pq.read_table(part)) == 100 for part in example_run.parts(disk / "out"))
    subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
    assert example_run.explain(home, disk / "out", resume=True).exit_code == 0
    assert example_run.contents(disk / "out") == example_run.contents(whole)


def test_a_read_only_folder_is_named(home, disk):
    mounted(disk, "ro,size=1m")
    result = example_run.explain(home, disk / "out")
    assert result.exit_code == stops.OUTPUT
    assert f"{disk / 'out'} cannot be written: Read-only file system" in result.output


def test_a_worker_that_dies_is_reported_and_the_run_resumes(home, whole, tmp_path, monkeypatch):
    (tmp_path / "dying.py").write_text(
        "import os, pathlib\n"
        "def score(rows):\n"
        "    if len(rows) > 20 and pathlib.Path('die').exists():\n"
        "        os.kill(os.getpid(), 9)\n"
        "    return rows['f0'].to_numpy()\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    background = pq.read_table(home / "background.parquet").slice(0, 10)
    pq.write_table(background, tmp_path / "background.parquet")
    more = {
        "model": "dying:score",
        "game": "baseline",
        "jobs": 2,
        "background": tmp_path / "background.parquet",
    }
    (tmp_path / "die").touch()
    result = example_run.explain(home, tmp_path / "out", **more)
    assert result.exit_code == stops.OUTPUT
    assert "A worker ended or was killed" in result.output
    (tmp_path / "die").unlink()
    assert example_run.explain(home, tmp_path / "out", resume=True, **more).exit_code == 0
    assert len(example_run.table(tmp_path / "out")) == 600


@pytest.mark.parametrize(
    "out", ["rows", "rows/explained", "rows/deep/explained", ".", "linked/explained"]
)
def test_a_folder_inside_of_the_rows_or_around_them_is_refused_at_the_start(home, tmp_path, out):
    (tmp_path / "rows" / "deep").mkdir(parents=True)
    (tmp_path / "linked").symlink_to(tmp_path / "rows")
    pq.write_table(
        pq.read_table(home / "rows.parquet").slice(0, 50), tmp_path / "rows" / "a.parquet"
    )
    result = example_run.explain(home, tmp_path / out, rows=tmp_path / "rows")
    assert result.exit_code == stops.USAGE
    assert "must be separate" in result.output
    assert [file.name for file in tmp_path.rglob("*.parquet")] == ["a.parquet"]
    assert not list(tmp_path.rglob("manifest.json"))


def test_a_folder_inside_of_the_background_is_refused_at_the_start(home, tmp_path):
    (tmp_path / "known").mkdir()
    pq.write_table(pq.read_table(home / "background.parquet"), tmp_path / "known" / "a.parquet")
    result = example_run.explain(home, tmp_path / "known" / "out", background=tmp_path / "known")
    assert result.exit_code == stops.USAGE
    assert "--background" in result.output


def test_foreign_files_are_not_mixed_with_parts(home, tmp_path):
    (tmp_path / "out").mkdir()
    pq.write_table(pa.table({"a": [1]}), tmp_path / "out" / "mine.parquet")
    assert example_run.explain(home, tmp_path / "out").exit_code == stops.MISMATCH
