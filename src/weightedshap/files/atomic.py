"""Replace a file only when the new one is complete."""

import glob
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from weightedshap._checks import as_path

# An unfinished file counts as left by a killed process after so many seconds without a write.
ABANDONED_SECONDS = 600.0


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path next to `path` to write to; rename it to `path` at the end.

    After an error the temporary file is removed, and an old file at `path` stays as it was.
    """
    target = as_path(path)
    if not target.name:
        raise ValueError(f"A file needs a name; got the path {str(path)!r}.")

    # Remove temporary files that killed processes left behind.
    for leftover in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        with suppress(FileNotFoundError):
            if time.time() - leftover.stat().st_mtime > ABANDONED_SECONDS:
                leftover.unlink()

    unfinished = target.with_name(f".{target.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        yield unfinished
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


replaced = atomic_write  # the name before; callers outside of files/ and jobs/ still use it
