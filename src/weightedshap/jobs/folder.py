"""The folder of a run: part files with results, a manifest of the run, checksums, and a lock.

A part is a batch of rows whose results go to one file. The file is written under a hidden name,
flushed to the disk, and renamed: it is there completely or not at all. Its footer, in the metadata
of the Parquet file, contains the fingerprint of the run, a hash of the rows, and the sums over
them; so no list of finished parts is needed.

The checksums of a part and of its side files (samples and skipped rows) are in a separate file,
which is on the disk before the part gets its name. A crash in between leaves checksums without a
part, which is then made as if nothing had been there. So a part is never without its checksums, and
if they do not match, it was changed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypedDict, cast

from weightedshap._checks import require
from weightedshap.explanation.aggregates import Sums
from weightedshap.jobs.durable import (
    CHECKSUM,
    DamagedFileError,
    damaged_file_error,
    describe_damage,
    fsync,
    json_checksum,
    read_json,
    write_durably,
    write_json,
)
from weightedshap.jobs.exit_codes import (
    BUSY,
    DAMAGED,
    INPUT,
    MISMATCH,
    CommandError,
    report_read_errors,
    report_write_errors,
)
from weightedshap.jobs.model_files import content_hash

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq
else:
    pq = require("pyarrow.parquet", "stream")

MANIFEST = "manifest.json"
SUMMARY = "summary.json"
EXPLAINER = "explainer"
SAMPLES = "samples"
SKIPPED = "skipped"
CHECKSUMS = "checksums"
MALFORMED_LINES = f"{SKIPPED}/lines.jsonl"  # the invalid CSV records of all parts
NEW_EXPLAINER = ".explainer"  # until the manifest of its run is written
FOOTER_KEY = b"weightedshap"  # the key of the footer in the metadata of a Parquet file
FORMAT = "weightedshap run"
VERSION = 2


class Manifest(TypedDict):
    """The options, hashes and sizes that all parts of a run depend on."""

    run: dict[str, Any]  # options and hashes that must be the same when the run is resumed
    rows: str  # the path of the input
    columns: list[str]  # the features
    shared: list[int] | None  # positions of the weights that all rows share, by output
    part_rows: int
    sample_every: int  # one of so many rows is kept for figures
    explainer: str  # the hash of the fitted explainer


FIELDS = tuple(Manifest.__annotations__)


@dataclass(frozen=True)
class PartInfo:
    """Consecutive rows of an input file that are explained together into one part file."""

    index: int
    file: str
    first_row: int  # its position in the file
    rows_before: int  # the number of earlier rows in all input files
    digest: str  # the hash of the rows

    @property
    def name(self) -> str:
        """The name of the part file and its side files, without a suffix."""
        return part_name(self.index)


def part_name(index: int) -> str:
    """Return the file name of part `index` of a run, without a suffix; names sort in row order."""
    return f"part-{index:08d}"


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock the folder of a run for this process; remove unfinished files before and after.

    The folder is created if it is missing. The system releases the lock even if the process is
    killed.
    """
    with report_write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a+")
    with lock:
        _acquire(lock, folder, "LOCK_EX")
        lock.truncate(0)
        lock.write(f"process {os.getpid()} on {os.uname().nodename}")
        lock.flush()
        _remove_temporary(folder)
        try:
            yield
        finally:
            # Workers that were ended with the run may have left unfinished files.
            _remove_temporary(folder)


@contextmanager
def lock_for_reading(folder: Path) -> Iterator[None]:
    """Keep other processes from writing to the folder of a run within the `with` block.

    Nothing is written, so the folder may be read-only.
    """
    path = folder / ".lock"
    # A copy of a run may lack the lock.
    if not path.exists():
        yield
        return

    with report_read_errors(path):
        lock = path.open()
    with lock:
        _acquire(lock, folder, "LOCK_SH")
        yield


def _acquire(lock: IO[str], folder: Path, mode: str) -> None:
    """Lock a folder by its open lock file; raise an error if another process holds the lock.

    `mode` is the `flock` mode, "LOCK_EX" or "LOCK_SH". The error names the other process.
    """
    import fcntl  # missing on Windows, where all else works

    try:
        fcntl.flock(lock, vars(fcntl)[mode] | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.seek(0)
        owner = lock.read().strip() or "unknown"
        raise CommandError(
            f"Another process ({owner}) works on {folder}. Wait for it, or give another --out.",
            BUSY,
        ) from error


def _remove_temporary(folder: Path) -> None:
    """Remove unfinished files from the folder of a run; ignore those that cannot be removed."""
    shutil.rmtree(folder / NEW_EXPLAINER, ignore_errors=True)
    for unfinished in folder.rglob(".*.part"):
        with suppress(OSError):
            unfinished.unlink()


def write_part(
    folder: Path, part: PartInfo, run: str, table: pa.Table, facts: Sums, side_files: list[str]
) -> None:
    """Write the results `table` to a part file, and the checksums of this file and its side files.

    `run` is the fingerprint of the run, and `facts` are the sums over the rows of the part.
    `side_files` names the other files of the part, which are on the disk already.
    """
    origin = {"run": run, "digest": part.digest}
    footer = {**origin, "file": part.file, "first": part.first_row, "facts": facts}
    name = f"{part.name}.parquet"
    with write_durably(folder / name) as unfinished:
        table = table.replace_schema_metadata({FOOTER_KEY: json.dumps(footer)})
        pq.write_table(table, unfinished, compression="zstd", write_page_checksum=True)
        checksums = {name: content_hash(unfinished)}
        checksums |= {file: content_hash(folder / file) for file in side_files}
        # Before the part gets its name: a part is never without its checksums.
        write_json(_checksums_path(folder, part.name), {**origin, "files": checksums})


def _checksums_path(folder: Path, name: str) -> Path:
    """Return the path of the JSON file with the checksums of the part `name` of a run."""
    return folder / CHECKSUMS / f"{name}.json"


def _read_checksums(folder: Path, name: str) -> dict[str, Any]:
    """Read the checksums of the part `name`: a dict in which "files" maps each file to its hash.

    The keys "run" and "digest" give the fingerprint of the run and the hash of the rows of the
    part.
    """
    path = _checksums_path(folder, name)
    checksums = read_json(path, "run", "digest", "files")
    if checksums is None:
        raise damaged_file_error(
            path, f"it is missing, so nothing tells whether {name}.parquet is whole"
        )
    return checksums


def find_part_flaws(folder: Path, name: str) -> list[str]:
    """Return a sentence for each damaged file of the part `name`, including its side files."""
    try:
        checksums = _read_checksums(folder, name)
    except DamagedFileError as error:
        return [str(error)]
    flaws = [
        describe_damage(folder / file, checksum) for file, checksum in checksums["files"].items()
    ]
    return [flaw for flaw in flaws if flaw is not None]


def list_samples(folder: Path) -> list[Path]:
    """Return the paths of the files with the rows sampled for figures, in row order.

    Each file is checked; a damaged one is an error.
    """
    samples = []
    for part in list_parts(folder):
        for file, checksum in _read_checksums(folder, part.stem)["files"].items():
            if not file.startswith(f"{SAMPLES}/"):
                continue
            flaw = describe_damage(folder / file, checksum)
            if flaw is not None:
                raise CommandError(
                    f"{flaw} The command that made the run, with --resume, makes it again.", DAMAGED
                )
            samples.append(folder / file)
    return samples


def list_runs(folder: Path) -> set[str]:
    """Return the fingerprints of the runs to which the finished parts in a folder belong.

    Parts without readable checksums are ignored.
    """
    runs = set()
    for part in list_parts(folder):
        with suppress(DamagedFileError):
            runs.add(_read_checksums(folder, part.stem)["run"])
    return runs


def list_parts(folder: Path) -> list[Path]:
    """Return the paths of all part files in a folder, in row order."""
    return sorted(folder.glob("part-*.parquet"))


def check_origin(folder: Path, part: PartInfo, run: str) -> None:
    """Raise an error if a finished part belongs to another run or was made from other rows.

    `run` is the fingerprint of the present run. A part without readable checksums counts as
    damaged, and passes.
    """
    try:
        origin = _read_checksums(folder, part.name)
    except DamagedFileError:
        # Nothing tells the origin; the part counts as damaged.
        return
    if (origin["run"], origin["digest"]) == (run, part.digest):
        return

    reason = "belongs to another run"
    if origin["run"] == run:
        place = f"from row {part.first_row} on of {part.file}"
        reason = f"was made of other rows than there are now {place}: the input changed"
    raise CommandError(f"{folder / part.name}.parquet {reason}. Give another --out.", MISMATCH)


def read_footer(path: Path) -> dict[str, Any]:
    """Read the footer of a part file as a dict; its key "rows" is the number of rows."""
    with report_read_errors(path):
        metadata = pq.read_metadata(path)
        footer = (metadata.metadata or {}).get(FOOTER_KEY)
        if footer is None:
            raise CommandError(
                f"{path} is no part of a run: `weightedshap explain` did not write it.", INPUT
            )
        return {**json.loads(footer), "rows": metadata.num_rows}


def read_manifest(folder: Path) -> Manifest | None:
    """Read the manifest of the run in a folder; None if no run was begun there.

    A `DamagedFileError` says that a run was begun, but its manifest is damaged or missing.
    """
    path = folder / MANIFEST
    if not path.exists():
        tables = sorted(folder.glob("*.parquet"))
        foreign = [file for file in tables if not _checksums_path(folder, file.stem).exists()]
        if foreign:
            raise CommandError(
                f"{folder} holds Parquet files that no run of this command wrote, as"
                f" {foreign[0].name}. Give another --out.",
                MISMATCH,
            )
        if list_parts(folder):
            raise damaged_file_error(path, "it is missing where there are parts")
        return None

    try:
        manifest = read_json(path, "format", "format_version", *FIELDS)
    except DamagedFileError:
        if _lacks_checksums(path):
            raise CommandError(
                f"The run in {folder} was begun by an earlier weightedshap, which kept no"
                " checksums. It cannot be resumed or verified. Explain the rows again, into another"
                " --out.",
                MISMATCH,
            ) from None
        raise
    if manifest is None:
        return None
    if (manifest["format"], manifest["format_version"]) != (FORMAT, VERSION):
        raise CommandError(
            f"{path} is of format {manifest['format']!r}, version {manifest['format_version']};"
            f" this weightedshap reads version {VERSION} of {FORMAT!r}.",
            MISMATCH,
        )
    return cast(Manifest, manifest)


def _lacks_checksums(path: Path) -> bool:
    """Return whether the manifest file is of the first version, which had no checksums."""
    with suppress(OSError, ValueError, RecursionError):
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, dict) and content.get("format") == FORMAT:
            return CHECKSUM not in content and "format_version" not in content
    return False


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a run; from then on, the run counts as begun."""
    write_json(folder / MANIFEST, {"format": FORMAT, "format_version": VERSION, **manifest})


def run_fingerprint(manifest: Manifest) -> str:
    """Return a hash of the manifest of a run, which identifies the run in its part files."""
    # The path of the rows does not matter: their content is compared for every part.
    fields = {name: value for name, value in manifest.items() if name in FIELDS and name != "rows"}
    return json_checksum(fields)


def is_explainer_intact(folder: Path, manifest: Manifest) -> bool:
    """Return whether the explainer in the folder is still the one fitted for the run."""
    return describe_damage(folder / EXPLAINER, manifest["explainer"]) is None


def place_explainer(folder: Path) -> None:
    """Rename the folder of the newly fitted explainer to its final name; replace an old one."""
    with report_write_errors(folder / EXPLAINER):
        for file in (folder / NEW_EXPLAINER).iterdir():
            fsync(file)
        fsync(folder / NEW_EXPLAINER)
        if (folder / EXPLAINER).exists():
            shutil.rmtree(folder / EXPLAINER)
        (folder / NEW_EXPLAINER).rename(folder / EXPLAINER)
        fsync(folder)


def read_summary(folder: Path) -> dict[str, Any] | None:
    """Read the summary of the run in a folder; None if the run has not finished."""
    return read_json(folder / SUMMARY, "rows", "skipped", "parts", "files")


def check_same_run(folder: Path, begun: Manifest, identity: Mapping[str, Any]) -> None:
    """Raise an error that lists every difference if a run is resumed with other options or files.

    `begun` is the manifest of the run, and `identity` the options and hashes given now.
    """
    before = _flatten(begun["run"])
    after = _flatten(identity)
    differences = [
        f"  {name}: {before.get(name)!r} then, {after.get(name)!r} now"
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    ]
    if differences:
        head = f"{folder} holds a run that differs from this one, so it cannot be resumed:"
        advice = "Give the same again, or another --out."
        raise CommandError("\n".join([head, *differences, advice]), MISMATCH)


def _flatten(content: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested dicts as one dict, with names joined by dots."""
    flat: dict[str, Any] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
