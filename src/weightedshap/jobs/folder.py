"""The folder of a run: finished parts, a manifest that says what they are parts of, checksums, and
a lock.

A part is written under a hidden name, brought to the disk, and renamed: it is there whole or not at
all. Its footer holds the fingerprint of the run, a hash of the rows it was made of, and its sums;
so nothing has to be kept in step.

The checksums of a part and of the files beside it are in a file of their own, which is on the disk
before the part gets its name. A crash in between leaves checksums without a part, which is made as
if nothing had been there. So a part is never without its checksums, and where they differ it was
changed.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from weightedshap._checks import require
from weightedshap.explanation.aggregates import Sums
from weightedshap.jobs.durable import (
    CHECKSUM,
    Damaged,
    checksum_of,
    damaged,
    durable,
    flaw_of,
    read_sealed,
    sync,
    write_sealed,
)
from weightedshap.jobs.exit_codes import BUSY, DAMAGED, INPUT, MISMATCH, Stop, reading, writing
from weightedshap.jobs.model_files import hash_of

pa = require("pyarrow", "stream")
pq = require("pyarrow.parquet", "stream")

MANIFEST = "manifest.json"
SUMMARY = "summary.json"
EXPLAINER = "explainer"
SAMPLES = "samples"
SKIPPED = "skipped"
CHECKSUMS = "checksums"
LINES = f"{SKIPPED}/lines.jsonl"  # lines of the input that are no rows; no part's
NEW = ".explainer"  # an explainer that was not yet written down in the manifest
OWN = b"weightedshap"  # the key in the footer of a part
FORMAT = "weightedshap run"
VERSION = 2
# The fields of a manifest.
FIELDS = ("run", "rows", "columns", "shared", "part_rows", "sample_every", "explainer")
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
        return name_of(self.index)


def name_of(index: int) -> str:
    """Return the name of a part; names sort in row order."""
    return f"part-{index:08d}"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The folder for this process alone; the system lets go of it even if the process is killed."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a+")
    with lock:
        _claim(lock, folder, "LOCK_EX")
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {os.uname().nodename}")
        lock.flush()
        _sweep(folder)
        try:
            yield
        finally:  # workers that were ended with the run may have left something
            _sweep(folder)


@contextmanager
def at_rest(folder: Path) -> Iterator[None]:
    """The folder while no process works on it; nothing is written, so it may be read-only."""
    path = folder / ".lock"
    if not path.exists():  # a copy, perhaps
        yield
        return

    with reading(path):
        lock = path.open()
    with lock:
        _claim(lock, folder, "LOCK_SH")
        yield


def _claim(lock: IO[str], folder: Path, how: str) -> None:
    """Lock the folder in one of the ways of `flock`, or say who works on it."""
    import fcntl  # not on Windows, where this is the only thing that is missing

    try:
        fcntl.flock(lock, vars(fcntl)[how] | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.seek(0)
        said = f"Another process ({lock.read().strip() or 'unknown'}) works on {folder}."
        raise Stop(f"{said} Wait for it, or give another --out.", BUSY) from error


def _sweep(folder: Path) -> None:
    """Remove unfinished files; what cannot be removed does no harm."""
    shutil.rmtree(folder / NEW, ignore_errors=True)
    for unfinished in folder.rglob(".*.part"):
        with suppress(OSError):
            unfinished.unlink()


def write_part(
    folder: Path, part: Part, run: str, table: Any, facts: Sums, beside: list[str]
) -> None:
    """Write a part of the run with the fingerprint `run`, and checksums of it and the files
    `beside` it."""
    origin = {"run": run, "digest": part.digest}
    footer = {**origin, "file": part.file, "first": part.first, "facts": facts}
    name = f"{part.name}.parquet"
    with durable(folder / name) as unfinished:
        described = table.replace_schema_metadata({OWN: json.dumps(footer)})
        pq.write_table(described, unfinished, compression="zstd", write_page_checksum=True)
        files = {name: hash_of(unfinished), **{file: hash_of(folder / file) for file in beside}}
        # On the disk before the part gets its name, see the top of this module.
        write_sealed(_checksums(folder, part.name), {**origin, "files": files})


def _checksums(folder: Path, name: str) -> Path:
    return folder / CHECKSUMS / f"{name}.json"


def _read_checksums(folder: Path, name: str) -> dict[str, Any]:
    """Return whose part it is, the hash of its rows, and the checksum of each of its files."""
    path = _checksums(folder, name)
    found = read_sealed(path, "run", "digest", "files")
    if found is None:
        raise damaged(path, f"it is missing, so nothing tells whether {name}.parquet is whole")
    return found


def flaws_of(folder: Path, name: str) -> list[str]:
    """Say what is wrong with a part and the files beside it, in sentences; none if nothing is."""
    try:
        checksums = _read_checksums(folder, name)
    except Damaged as damage:
        return [str(damage)]
    found = [flaw_of(folder / file, checksum) for file, checksum in checksums["files"].items()]
    return [flaw for flaw in found if flaw is not None]


def samples_of(folder: Path) -> list[Path]:
    """Return the files of samples, in row order, each held against its checksum."""
    found = []
    for part in parts_of(folder):
        for file, checksum in _read_checksums(folder, part.stem)["files"].items():
            if not file.startswith(f"{SAMPLES}/"):
                continue
            if flaw := flaw_of(folder / file, checksum):
                cure = "The command that made the run, with --resume, makes it again."
                raise Stop(f"{flaw} {cure}", DAMAGED)
            found.append(folder / file)
    return found


def runs_of(folder: Path) -> set[str]:
    """Return the fingerprints of the runs that finished parts belong to, as far as can be read."""
    found = set()
    for part in parts_of(folder):
        with suppress(Damaged):
            found.add(_read_checksums(folder, part.stem)["run"])
    return found


def parts_of(folder: Path) -> list[Path]:
    """All parts, in row order."""
    return sorted(folder.glob("part-*.parquet"))


def check_rows(folder: Path, part: Part, run: str) -> None:
    """Refuse a finished part of another run or of other rows, damaged or not."""
    try:
        then = _read_checksums(folder, part.name)
    except Damaged:  # nothing tells; the part counts as damaged
        return
    if (then["run"], then["digest"]) == (run, part.digest):
        return

    why = "belongs to another run"
    if then["run"] == run:
        now = f"there are now from row {part.first} on of {part.file}"
        why = f"was made of other rows than {now}: the input changed"
    raise Stop(f"{folder / part.name}.parquet {why}. Give another --out.", MISMATCH)


def told_by(path: Path) -> dict[str, Any]:
    """What the footer of a part says, and `rows`, how many there are."""
    with reading(path):
        metadata = pq.read_metadata(path)
        own = (metadata.metadata or {}).get(OWN)
        if own is None:
            said = "is no part of a run: `weightedshap explain` did not write it"
            raise Stop(f"{path} {said}.", INPUT)
        return {**json.loads(own), "rows": metadata.num_rows}


def read_manifest(folder: Path) -> Manifest | None:
    """What was begun in a folder; None if nothing was; `Damaged` if the folder can no longer
    tell."""
    path = folder / MANIFEST
    if not path.exists():
        tables = sorted(folder.glob("*.parquet"))
        foreign = [file for file in tables if not _checksums(folder, file.stem).exists()]
        if foreign:
            said = "holds Parquet files that no run of this command wrote"
            raise Stop(f"{folder} {said}, as {foreign[0].name}. Give another --out.", MISMATCH)
        if parts_of(folder):
            raise damaged(path, "it is missing where there are parts")
        return None

    try:
        found = read_sealed(path, "format", "format_version", *FIELDS)
    except Damaged:
        if _is_of_version_1(path):
            said = "was begun by an earlier weightedshap, which kept no checksums"
            cure = "It cannot be resumed or verified. Explain the rows again, into another --out."
            raise Stop(f"The run in {folder} {said}. {cure}", MISMATCH) from None
        raise
    if found is not None and (found["format"], found["format_version"]) != (FORMAT, VERSION):
        said = f"is of format {found['format']!r}, version {found['format_version']}"
        own = f"this weightedshap reads version {VERSION} of {FORMAT!r}"
        raise Stop(f"{path} {said}; {own}.", MISMATCH)
    return found


def _is_of_version_1(path: Path) -> bool:
    """Whether a manifest was written before there were checksums."""
    with suppress(OSError, ValueError, RecursionError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict) and found.get("format") == FORMAT:
            return CHECKSUM not in found and "format_version" not in found
    return False


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write down what is begun in a folder."""
    write_sealed(folder / MANIFEST, {"format": FORMAT, "format_version": VERSION, **manifest})


def fingerprint_of(manifest: Manifest) -> str:
    """Return what every part of a run bears."""
    # Where the rows lay does not matter: what they hold is compared with every part.
    return checksum_of({name: manifest[name] for name in FIELDS if name != "rows"})


def is_fitted(folder: Path, manifest: Manifest) -> bool:
    """Whether the explainer in the folder is the one that was fitted for the run."""
    return flaw_of(folder / EXPLAINER, manifest["explainer"]) is None


def place_explainer(folder: Path) -> None:
    """Put the new explainer in the place of the old one, if there is one."""
    with writing(folder / EXPLAINER):
        for file in (folder / NEW).iterdir():
            sync(file)
        sync(folder / NEW)
        if (folder / EXPLAINER).exists():
            shutil.rmtree(folder / EXPLAINER)
        (folder / NEW).rename(folder / EXPLAINER)
        sync(folder)


def read_summary(folder: Path) -> dict[str, Any] | None:
    """What was written when all rows were explained; None where they are not."""
    return read_sealed(folder / SUMMARY, "rows", "skipped", "parts", "files")


def check_same(folder: Path, then: Manifest, now: Mapping[str, Any]) -> None:
    """Whether a run that is to be resumed is the one that was begun; else every difference is
    named."""
    before = _flat(then["run"])
    after = _flat(now)
    if differing := [name for name in {**before, **after} if before.get(name) != after.get(name)]:
        lines = [
            f"  {name}: {before.get(name)!r} then, {after.get(name)!r} now" for name in differing
        ]
        said = f"{folder} holds a run that differs from this one, so it cannot be resumed:"
        raise Stop("\n".join([said, *lines, "Give the same again, or another --out."]), MISMATCH)


def _flat(content: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in content.items():
        found |= (
            _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
        )
    return found
