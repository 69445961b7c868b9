"""A finished run that is damaged later: noticed, reported, and repaired where that is possible."""

from __future__ import annotations

import fcntl
import json
import re
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.jobs import example_run
from weightedshap.jobs import exit_codes as stops
from weightedshap.jobs import run as jobs
from weightedshap.jobs.run import load_sample

BAD = {"on-error": "skip"}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Files of a run; one row is bad, and one line is no row."""
    folder = example_run.write_files(tmp_path_factory.mktemp("run"), n=300)
    lines = (folder / "rows.csv").read_text().splitlines()
    lines[1 + 120] = lines[1 + 120].replace(lines[1 + 120].split(",")[0], "much", 1)
    (folder / "rows.csv").write_text("\n".join([*lines, "1,2,3"]) + "\n")
    return folder


@pytest.fixture(scope="module")
def whole(home):
    """A run that nobody disturbed."""
    assert explain(home, home / "whole").exit_code == stops.SKIPPED
    return home / "whole"


@pytest.fixture
def out(whole, tmp_path):
    """A copy of that run, to be damaged."""
    subprocess.run(["cp", "-r", whole, tmp_path / "out"], check=True)
    return tmp_path / "out"


def explain(home, out, **more):
    return example_run.explain(home, out, rows="rows.csv", **BAD, **more)


def command(*arguments):
    texts = [str(text) for text in arguments]
    return example_run.run_command(texts)


def flip_bit(path, at=0.5):
    """One bit of a file, somewhere in it, is another one."""
    content = bytearray(path.read_bytes())
    content[int(at * len(content))] ^= 4
    path.write_bytes(content)


FILES = [
    "part-00000001.parquet",
    "samples/part-00000002.npz",
    "skipped/part-00000001.jsonl",
    "skipped/lines.jsonl",
    "checksums/part-00000000.json",
    "explainer/explainer.npz",
    "manifest.json",
    "summary.json",
]
DAMAGES = {
    "flipped": flip_bit,
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "empty": lambda path: path.write_bytes(b""),
    "gone": lambda path: path.unlink(),
}


def test_an_intact_run_is_reported_as_intact(whole):
    result = command("verify", whole)
    assert result.exit_code == 0
    assert (
        "is intact: manifest, explainer, 3 parts with samples and skipped rows, and summary"
        in result.output
    )


def test_all_kinds_of_files_of_a_run_are_damaged_here(whole):
    kinds = [
        {re.sub(r"\d+", "", name) for name in names}
        for names in (example_run.contents(whole), FILES)
    ]
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", FILES)
def test_whatever_is_damaged_is_noticed_named_and_computed_again(home, whole, out, file, damage):
    DAMAGES[damage](out / file)
    result = command("verify", out)
    if (file, damage) == ("summary.json", "gone"):
        assert result.exit_code == stops.MISMATCH
        assert "is unfinished" in result.output
    else:
        assert result.exit_code == stops.DAMAGED
        assert file.removesuffix("/explainer.npz") in result.output

    result = explain(home, out, resume=True)
    assert result.exit_code == stops.SKIPPED, result.output
    assert example_run.contents(out) == example_run.contents(whole)


def test_parts_that_are_computed_again_are_reported(home, out):
    flip_bit(example_run.parts(out)[1])
    (out / "samples" / "part-00000002.npz").unlink()
    result = explain(home, out, resume=True, json=True)
    events = [json.loads(line) for line in result.stdout.splitlines()]
    damaged = [one for one in events if one["event"] == "damaged"]
    assert [one["part"] for one in damaged] == ["part-00000001.parquet", "part-00000002.parquet"]
    assert "part-00000001.parquet changed since it was written" in damaged[0]["message"]
    assert "samples/part-00000002.npz is missing" in damaged[1]["message"]
    assert [one["new"] for one in events if one["event"] == "part"] == [False, True, True]


def test_parts_that_are_computed_again_are_reported_on_standard_error(home, out):
    flip_bit(example_run.parts(out)[1])
    result = explain(home, out, resume=True)
    assert "part-00000001.parquet is made again" in result.stderr
    flip_bit(example_run.parts(out)[1])
    assert "made again" not in explain(home, out, resume=True, quiet=True).output


def test_all_flaws_are_reported_as_json(out):
    flip_bit(example_run.parts(out)[0])
    example_run.parts(out)[2].unlink()
    result = command("verify", out, "--json")
    event = json.loads(result.stdout.splitlines()[0])
    assert event["event"] == "verified"
    assert [flaw.split("/")[-1] for flaw in event["flaws"]] == [
        "part-00000000.parquet changed since it was written.",
        "part-00000002.parquet is missing.",
    ]


def test_an_unfinished_run_is_not_reported_as_intact(home, out):
    (out / "summary.json").unlink()
    example_run.parts(out)[1].unlink()
    result = command("verify", out)
    assert result.exit_code == stops.MISMATCH
    assert "2 parts are intact so far; go on with --resume" in result.output


def test_an_additional_part_is_reported(out):
    example_run.parts(out)[2].rename(out / "part-00000007.parquet")
    result = command("verify", out)
    assert result.exit_code == stops.DAMAGED
    assert "part-00000007.parquet is none of the 3 parts" in result.output


def test_a_folder_of_something_else_is_no_run(tmp_path):
    result = command("verify", tmp_path)
    assert result.exit_code == stops.INPUT
    assert "holds no run" in result.output


def test_a_folder_that_somebody_works_on_is_not_verified(out):
    with (out / ".lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert command("verify", out).exit_code == stops.BUSY


def test_a_flipped_bit_is_noticed_by_readers_that_check_pages(out):
    part = example_run.parts(out)[0]
    content = bytearray(part.read_bytes())
    column = pq.read_metadata(part).row_group(0).column(3)
    content[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    part.write_bytes(content)
    with pytest.raises(OSError, match="CRC checksum"):
        pq.read_table(part, page_checksum_verification=True)


class Crash(BaseException):
    """The end of a process in the middle of things."""


def renames(monkeypatch, crash_at=None):
    """The names that files get from now on; right before one of them the process ends."""
    names = []

    def watched(whole):
        def renamed(path, target):
            names.append(Path(target).name)
            if len(names) - 1 == crash_at:
                raise Crash
            return whole(path, target)

        return renamed

    for way in ("replace", "rename"):
        monkeypatch.setattr(Path, way, watched(vars(Path)[way]))
    return names


def test_other_files_of_a_part_come_before_its_checksums_and_these_before_the_part(
    home, out, monkeypatch
):
    example_run.parts(out)[1].unlink()
    names = renames(monkeypatch)
    assert explain(home, out, resume=True).exit_code == stops.SKIPPED
    names = [name for name in names if not name.startswith(".")]
    beside = ["part-00000001.jsonl", "part-00000001.npz"]
    assert names[:4] == [*beside, "part-00000001.json", "part-00000001.parquet"]


@pytest.mark.parametrize("crash_at", range(18))
def test_after_a_crash_at_any_rename_the_rest_is_the_same(
    home, whole, tmp_path, monkeypatch, crash_at
):
    with monkeypatch.context() as patched:
        renames(patched, crash_at)
        with pytest.raises(Crash):
            explain(home, tmp_path / "out")
    assert explain(home, tmp_path / "out", resume=True).exit_code == stops.SKIPPED
    assert example_run.contents(tmp_path / "out") == example_run.contents(whole)


@pytest.mark.parametrize("crash_at", range(10))
def test_a_crash_at_any_rename_of_a_repair_is_repaired(home, whole, out, monkeypatch, crash_at):
    for file in (
        "manifest.json",
        "explainer/explainer.npz",
        "part-00000001.parquet",
        "skipped/lines.jsonl",
    ):
        flip_bit(out / file)
    with monkeypatch.context() as patched:
        names = renames(patched, crash_at)
        with pytest.raises(Crash):
            explain(home, out, resume=True)
    if names[-1] != "summary.json":
        assert command("verify", out).exit_code == stops.DAMAGED
    assert explain(home, out, resume=True).exit_code == stops.SKIPPED
    assert example_run.contents(out) == example_run.contents(whole)


def test_a_damaged_part_is_not_computed_again_from_other_rows(home, out, tmp_path):
    other = tmp_path / "home"
    subprocess.run(["cp", "-r", home, other], check=True)
    lines = (home / "rows.csv").read_text().splitlines()
    (other / "rows.csv").write_text("\n".join([lines[0], lines[2], lines[1], *lines[3:]]) + "\n")
    flip_bit(example_run.parts(out)[0])
    before = example_run.contents(out)
    result = explain(other, out, resume=True)
    assert result.exit_code == stops.MISMATCH
    assert "part-00000000.parquet was made of other rows" in result.output
    assert example_run.contents(out) == before


MANIFESTS = [
    "[]",
    "null",
    "{}",
    "3",
    '"text"',
    "{",
    "",
    '{"format": "weightedshap run"',
    "[" * 100_000,
]


@pytest.mark.parametrize("content", MANIFESTS)
def test_a_manifest_of_nonsense_is_reported_and_written_again(home, whole, out, content):
    (out / "manifest.json").write_text(content)
    result = explain(home, out)
    assert result.exit_code == stops.DAMAGED
    assert "manifest.json is damaged" in result.output
    for way in ("show", "report"):
        result = command(way, out, *(["-o", out / "page.html"] if way == "report" else []))
        assert result.exit_code == stops.DAMAGED
        assert "manifest.json is damaged" in result.output
    assert explain(home, out, resume=True).exit_code == stops.SKIPPED
    assert example_run.contents(out) == example_run.contents(whole)


def test_a_manifest_without_the_options_of_the_run_is_reported(home, whole, out):
    content = json.loads((out / "manifest.json").read_text())
    del content["run"]
    (out / "manifest.json").write_text(json.dumps(content))
    assert explain(home, out).exit_code == stops.DAMAGED
    assert explain(home, out, resume=True).exit_code == stops.SKIPPED
    assert example_run.contents(out) == example_run.contents(whole)


@pytest.mark.parametrize("file", ["manifest.json", "explainer/explainer.npz"])
def test_what_is_damaged_is_not_replaced_by_something_else(home, out, file, monkeypatch):
    flip_bit(out / file)
    before = example_run.contents(out)
    if file == "manifest.json":
        result = explain(home, out, resume=True, family="shapley")
    else:
        monkeypatch.setattr(jobs, "REPORT_ROWS", 7)  # as a later version might have it
        result = explain(home, out, resume=True)
    assert result.exit_code == stops.MISMATCH
    assert "cannot be made again" in result.output
    assert example_run.contents(out) == before


def test_a_run_of_an_earlier_version_is_reported(home, out):
    content = json.loads((out / "manifest.json").read_text())
    for name in ("format_version", "checksum"):
        content.pop(name, None)
    (out / "manifest.json").write_text(json.dumps(content))
    for result in (explain(home, out, resume=True), command("verify", out), command("show", out)):
        assert result.exit_code == stops.MISMATCH
        assert "begun by an earlier weightedshap" in result.output


def test_a_report_does_not_leave_out_damaged_samples_in_silence(out):
    (out / "samples" / "part-00000001.npz").unlink()
    with pytest.raises(
        stops.CommandError, match=r"part-00000001\.npz is missing\..*--resume"
    ) as stopped:
        load_sample(out)
    assert stopped.value.code == stops.DAMAGED


def test_a_foreign_parquet_file_is_reported_as_no_part(home):
    result = command("show", home / "rows.parquet")
    assert result.exit_code == stops.INPUT
    assert "is no part of a run" in result.output


def test_lines_that_are_no_longer_skipped_are_no_longer_reported(home, out, tmp_path):
    other = tmp_path / "home"
    subprocess.run(["cp", "-r", home, other], check=True)
    lines = (home / "rows.csv").read_text().splitlines()
    (other / "rows.csv").write_text("\n".join(lines[:-1]) + "\n")
    assert explain(other, out, resume=True).exit_code == stops.SKIPPED
    assert not (out / "skipped" / "lines.jsonl").exists()
    assert json.loads((out / "summary.json").read_text())["skipped"] == 1
    assert command("verify", out).exit_code == 0


def mounted(folder, kilobytes):
    """A small file system of its own, where that is allowed."""
    folder.mkdir()
    given = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", folder]
    if subprocess.run(given, capture_output=True).returncode:
        pytest.skip("on a full disk; to run: be root on Linux, where file systems can be mounted")


@pytest.fixture
def disk(tmp_path):
    yield tmp_path / "disk"
    subprocess.run(["umount", "--lazy", tmp_path / "disk"], capture_output=True)


@pytest.mark.parametrize("kilobytes", [4, 8, 16, 24, 32])
def test_a_disk_that_is_full_from_the_start_is_reported_and_the_run_resumes_with_room(
    home, whole, disk, kilobytes
):
    mounted(disk, kilobytes)
    result = explain(home, disk / "out")
    assert result.exit_code == stops.OUTPUT, result.output
    assert "No space left on device" in result.output
    subprocess.run(["mount", "-o", "remount,size=20m", disk], check=True)
    assert explain(home, disk / "out", resume=True).exit_code == stops.SKIPPED
    assert example_run.contents(disk / "out") == example_run.contents(whole)


def test_fit_reports_a_full_disk(home, disk):
    mounted(disk, 8)
    files = ["--model", home / "model.txt", "--background", home / "background.parquet"]
    rest = ["--target", "price", "--game", "tree_path", "--out", disk / "explainer"]
    result = command("fit", *files, *rest)
    assert result.exit_code == stops.OUTPUT, result.output
    assert "No space left on device" in result.output
    assert not list((disk / "explainer").iterdir())
