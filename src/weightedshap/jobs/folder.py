"""The folder of a run: finished parts, a manifest that says what they are parts of, and a lock.

A part is written under a hidden name, brought to the disk, and renamed: it is there whole or not at all. Its footer
holds the fingerprint of the run, a hash of the rows it was made of, and its sums; so nothing has to be kept in step.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weightedshap.checks import require
from weightedshap.files.atomic import replaced
from weightedshap.jobs.stops import BUSY, MISMATCH, Stop, reading, writing
from weightedshap.sums import Sums

pa, pq = require("pyarrow", "stream"), require("pyarrow.parquet", "stream")

MANIFEST, SUMMARY, EXPLAINER, SAMPLES, SKIPPED = "manifest.json", "summary.json", "explainer", "samples", "skipped"
OWN = b"weightedshap"  # the key in the footer of a part
Manifest = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """Which rows a part is made of."""

    index: int
    file: str
    first: int  # row of the file
    before: int  # rows of the input before it
    digest: str

    @property
    def name(self) -> str:
        return f"part-{self.index:08d}"  # sorts in row order


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The folder for this process alone; the system lets go of it even if the process is killed."""
    import fcntl  # not on Windows, where this is the only thing that is missing

    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a+")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            said = f"Another process ({lock.read().strip() or 'unknown'}) works on {folder}."
            raise Stop(f"{said} Wait for it, or give another --out.", BUSY) from error
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {os.uname().nodename}")
        lock.flush()
        _sweep(folder)
        try:
            yield
        finally:  # workers that were ended with the run may have left something
            _sweep(folder)


def _sweep(folder: Path) -> None:
    """Remove unfinished parts."""
    for unfinished in folder.rglob(".part-*"):
        with suppress(OSError):  # what cannot be removed does no harm
            unfinished.unlink()


@contextmanager
def durable(path: Path) -> Iterator[Path]:
    """A new file that takes the place of `path` when all of it is on the disk."""
    with writing(path):
        path.parent.mkdir(exist_ok=True)
        with replaced(path) as unfinished:
            yield unfinished
            _sync(unfinished)
        _sync(path.parent)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def write_json(path: Path, *lines: Mapping[str, Any], indent: int | None = 1) -> None:
    """Objects as JSON, whole or not at all; no file for none."""
    if lines:
        with durable(path) as unfinished:
            told = [json.dumps(line, ensure_ascii=False, indent=indent, default=str) + "\n" for line in lines]
            unfinished.write_text("".join(told), encoding="utf-8")


def read_json(path: Path) -> dict[str, Any] | None:
    """What `write_json` wrote; None where nothing was."""
    if not path.exists():
        return None
    with reading(path):
        return dict(json.loads(path.read_text(encoding="utf-8")))


def write_part(folder: Path, part: Part, run: str, table: Any, facts: Sums) -> None:
    """Write a part of the run with the fingerprint `run`."""
    told = {"run": run, "digest": part.digest, "file": part.file, "first": part.first, "facts": facts}
    with durable(folder / f"{part.name}.parquet") as unfinished:
        pq.write_table(table.replace_schema_metadata({OWN: json.dumps(told)}), unfinished, compression="zstd")


def parts_of(folder: Path) -> list[Path]:
    """All parts, in row order."""
    return sorted(folder.glob("part-*.parquet"))


def finished(folder: Path, part: Part, run: str) -> Sums | None:
    """The sums of a part that is there; None for one that is not; a Stop where it was made of other rows."""
    if (told := told_by(folder / f"{part.name}.parquet")) is None:
        return None
    changed = f"was made of other rows than there are now from row {part.first} on of {part.file}: the input changed"
    if (told["run"], told["digest"]) != (run, part.digest):
        why = changed if told["run"] == run else "belongs to another run"
        raise Stop(f"{folder / part.name}.parquet {why}. Give another --out.", MISMATCH)
    return dict(told["facts"])


def told_by(path: Path) -> dict[str, Any] | None:
    """What the footer of a part says; None where it is not there."""
    if not path.exists():
        return None
    with reading(path):
        return dict(json.loads(pq.read_metadata(path).metadata[OWN]))


def read_manifest(folder: Path) -> Manifest | None:
    """What was begun in a folder; None if nothing was."""
    found = read_json(folder / MANIFEST)
    if found is None and any(folder.glob("*.parquet")):
        raise Stop(f"{folder} holds Parquet files that no run of this command wrote. Give another --out.", MISMATCH)
    return found


def check_same(folder: Path, then: Manifest, now: Mapping[str, Any]) -> None:
    """Whether a run that is to be resumed is the one that was begun; else every difference is named."""
    before, after = _flat(then["run"]), _flat(now)
    if differing := [name for name in {**before, **after} if before.get(name) != after.get(name)]:
        lines = [f"  {name}: {before.get(name)!r} then, {after.get(name)!r} now" for name in differing]
        said = f"{folder} holds a run that differs from this one, so it cannot be resumed:"
        raise Stop("\n".join([said, *lines, "Give the same again, or another --out."]), MISMATCH)


def _flat(content: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in content.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found
