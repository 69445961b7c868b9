"""Write files that survive a crash, completely or not at all, and JSON with a checksum."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from weightedshap.files.atomic import atomic_write
from weightedshap.jobs.exit_codes import (
    DAMAGED,
    CommandError,
    report_read_errors,
    report_write_errors,
)
from weightedshap.jobs.model_files import content_hash

CHECKSUM = "checksum"  # the field of a JSON file that contains the hash of all other fields


class DamagedFileError(CommandError):
    """Raised when the content of a file is not what was written."""


def damaged_file_error(path: Path, reason: str) -> DamagedFileError:
    """Build the error to raise for a damaged file, with the reason in its message."""
    return DamagedFileError(f"{path} is damaged: {reason}.", DAMAGED)


@contextmanager
def write_durably(path: Path) -> Iterator[Path]:
    """Yield a temporary path to write to; rename it to `path` once its content is on the disk."""
    with report_write_errors(path):
        path.parent.mkdir(exist_ok=True)
        with atomic_write(path) as unfinished:
            yield unfinished
            fsync(unfinished)
        fsync(path.parent)


def fsync(path: Path) -> None:
    """Flush a file, or the list of names in a folder, to the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def write_json_lines(path: Path, records: list[dict[str, Any]]) -> bool:
    """Write each record as one line of JSON, and return whether there are any records.

    Without records, an old file at `path` is removed.
    """
    if not records:
        with report_write_errors(path):
            path.unlink(missing_ok=True)
        return False

    with write_durably(path) as unfinished:
        lines = [json.dumps(record, ensure_ascii=False, default=str) for record in records]
        unfinished.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return True


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write an object to a JSON file, together with a checksum of the object."""
    plain = json_round_trip(content)
    with write_durably(path) as unfinished:
        text = json.dumps({**plain, CHECKSUM: json_checksum(plain)}, ensure_ascii=False, indent=1)
        unfinished.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path, *names: str) -> dict[str, Any] | None:
    """Return the object that `write_json` wrote to `path`; None if there is no file.

    A file whose checksum does not match, or that lacks a field in `names`, is a `DamagedFileError`.
    """
    if not path.exists():
        return None

    with report_read_errors(path):
        text = path.read_bytes()
    try:
        content = json.loads(text.decode("utf-8"))
        if not isinstance(content, dict):
            kind = type(content).__name__
            raise damaged_file_error(path, f"it holds {kind} where an object belongs")
        checksum = content.pop(CHECKSUM, None)
        if checksum is None:
            raise damaged_file_error(path, "it lacks its checksum")
        if checksum != json_checksum(content):
            raise damaged_file_error(path, "its content does not have its checksum")
    except (ValueError, RecursionError) as error:
        raise damaged_file_error(path, f"it is no JSON ({error})") from error
    for name in names:
        if name not in content:
            raise damaged_file_error(path, f"it lacks {name!r}")
    return content


def json_checksum(content: Mapping[str, Any]) -> str:
    """Return a hash of a JSON object that does not depend on layout or the order of names."""
    return "sha256:" + sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def json_round_trip(content: Mapping[str, Any]) -> dict[str, Any]:
    """Convert an object to JSON and back: tuples become lists, and paths become text."""
    return dict(json.loads(json.dumps(content, default=str)))


def describe_damage(path: Path, checksum: str) -> str | None:
    """Return a sentence on why a file does not match its checksum; None if it matches."""
    try:
        if not path.exists():
            return f"{path} is missing."
        if content_hash(path) != checksum:
            return f"{path} changed since it was written."
    except OSError as error:
        return f"{path} cannot be read: {error}."
    return None
