"""Files that are on the disk whole or not at all, and JSON that holds its own checksum."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

from weightedshap.files.atomic import replaced
from weightedshap.jobs.exit_codes import DAMAGED, Stop, reading, writing
from weightedshap.jobs.model_files import hash_of

CHECKSUM = "checksum"  # the field of sealed JSON that holds the hash of all others


class Damaged(Stop):
    """A file that is not what was written."""


def damaged(path: Path, why: str) -> Damaged:
    """Return the error for a file that is not what was written."""
    return Damaged(f"{path} is damaged: {why}.", DAMAGED)


@contextmanager
def durable(path: Path) -> Iterator[Path]:
    """Yield a new file that takes the place of `path` when all of it is on the disk."""
    with writing(path):
        path.parent.mkdir(exist_ok=True)
        with replaced(path) as unfinished:
            yield unfinished
            sync(unfinished)
        sync(path.parent)


def sync(path: Path) -> None:
    """Bring a file or the names in a folder to the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def write_lines(path: Path, lines: list[dict[str, Any]]) -> bool:
    """Write one JSON object per line, or remove the file if there is none; return whether it is
    there."""
    if not lines:
        with writing(path):
            path.unlink(missing_ok=True)
        return False

    with durable(path) as unfinished:
        text = "".join(json.dumps(line, ensure_ascii=False, default=str) + "\n" for line in lines)
        unfinished.write_text(text, encoding="utf-8")
    return True


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Write an object as JSON together with a checksum of what it holds."""
    plain = as_read(content)
    with durable(path) as unfinished:
        sealed = {**plain, CHECKSUM: checksum_of(plain)}
        text = json.dumps(sealed, ensure_ascii=False, indent=1)
        unfinished.write_text(text + "\n", encoding="utf-8")


def read_sealed(path: Path, *names: str) -> dict[str, Any] | None:
    """Return what `write_sealed` wrote, with fields of these names; None where there is no file."""
    if not path.exists():
        return None

    with reading(path):
        content = path.read_bytes()
    try:
        found = json.loads(content.decode("utf-8"))
        if not isinstance(found, dict):
            raise damaged(path, f"it holds {type(found).__name__} where an object belongs")
        checksum = found.pop(CHECKSUM, None)
        if checksum is None:
            raise damaged(path, "it lacks its checksum")
        if checksum != checksum_of(found):
            raise damaged(path, "what it holds does not have its checksum")
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"it is no JSON ({error})") from error
    if missing := [name for name in names if name not in found]:
        raise damaged(path, f"it lacks {missing[0]!r}")
    return found


def checksum_of(content: Mapping[str, Any]) -> str:
    """Return a hash of what JSON holds; neither layout nor the order of names matters."""
    return "sha256:" + sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def as_read(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object as it will be read from JSON."""
    return dict(json.loads(json.dumps(content, default=str)))


def flaw_of(path: Path, checksum: str) -> str | None:
    """Say in a sentence why a file is not the one with this checksum; None if it is."""
    try:
        if not path.exists():
            return f"{path} is missing."
        return None if hash_of(path) == checksum else f"{path} changed since it was written."
    except OSError as error:
        return f"{path} cannot be read: {error}."
