"""A file that is replaced only when the new one is complete."""

import glob
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from weightedshap._checks import as_path

ABANDONED = 600.0  # seconds without a write after which an unfinished file belongs to nobody


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new file next to `path` to write to: takes the place of `path` at the end, is removed after
    a failure."""
    if not (target := as_path(path)).name:
        raise ValueError(f"A file needs a name; got the path {str(path)!r}.")
    # Left by a process that was killed.
    for part in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        with suppress(FileNotFoundError):
            if time.time() - part.stat().st_mtime > ABANDONED:
                part.unlink()
    unfinished = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        yield unfinished
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
