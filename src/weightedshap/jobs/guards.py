"""Run user code in this process so that it can neither end the process nor print to our output."""

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import NoReturn, TextIO

FAILURE = 1  # the exit code if user code calls os._exit(0) in another thread


@contextmanager
def reserve_stdout() -> Iterator[TextIO]:
    """Yield standard output for this package only; all other prints go to standard error.

    This includes prints of compiled libraries and of child processes, because file descriptor 1 is
    redirected.
    """
    stdout = sys.stdout
    with redirect_stdout(sys.stderr):
        # In a test or a notebook, the streams are not those of the process.
        if (_file_descriptor(stdout), _file_descriptor(sys.stderr)) != (1, 2):
            yield stdout
            return

        stdout.flush()
        own = os.dup(1)
        os.dup2(2, 1)
        encoding = stdout.encoding
        try:
            with open(own, "w", encoding=encoding, errors=stdout.errors, closefd=False) as stream:
                yield stream
        finally:
            # What others printed may wait in buffers: flush them while 1 is still redirected.
            stdout.flush()
            if os.name == "posix":
                ctypes.CDLL(None).fflush(None)
            os.dup2(own, 1)
            os.close(own)


def _file_descriptor(stream: TextIO | None) -> int | None:
    """Return the file descriptor of a stream; None if it has none."""
    try:
        return None if stream is None else stream.fileno()
    except (AttributeError, OSError, ValueError):
        return None


@contextmanager
def forbid_exit() -> Iterator[None]:
    """Make `os._exit` raise SystemExit within the `with` block instead of ending the program.

    Child processes forked meanwhile exit normally. In other threads, where a SystemExit might go
    unnoticed, the program ends with a failure code.
    """
    real_exit = os._exit
    process = os.getpid()

    def refuse(status: int) -> NoReturn:
        if os.getpid() != process:
            real_exit(status)
        if threading.current_thread() is not threading.main_thread():
            real_exit(status or FAILURE)
        raise SystemExit(status)

    vars(os)["_exit"] = refuse
    try:
        yield
    finally:
        vars(os)["_exit"] = real_exit
