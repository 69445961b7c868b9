"""Code of users in our process: its prints go to standard error, and it cannot end the program."""

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import NoReturn, TextIO

FAILURE = 1  # the exit code where somebody else asks for 0


@contextmanager
def own_output() -> Iterator[TextIO]:
    """Standard output for who asks for it; what all others print goes to standard error.

    That holds for compiled libraries and for processes started meanwhile, too: file 1 of the
    process is another one.
    """
    before = sys.stdout
    with redirect_stdout(sys.stderr):
        # Streams of a test or a notebook are no files of the process.
        if (_number(before), _number(sys.stderr)) != (1, 2):
            yield before
            return

        before.flush()
        number = os.dup(1)
        os.dup2(2, 1)
        coding = before.encoding
        try:
            with open(number, "w", encoding=coding, errors=before.errors, closefd=False) as own:
                yield own
        finally:
            # What others printed may wait in buffers, and leaves them before file 1 is ours again.
            before.flush()
            if os.name == "posix":
                ctypes.CDLL(None).fflush(None)
            os.dup2(number, 1)
            os.close(number)


def _number(stream: TextIO | None) -> int | None:
    """Return the number of the file that a stream writes to; None if there is none."""
    try:
        return None if stream is None else stream.fileno()
    except (AttributeError, OSError, ValueError):
        return None


@contextmanager
def no_exit() -> Iterator[None]:
    """A call of `os._exit` raises SystemExit: else the program would end at once, perhaps with code
    0.

    Processes forked meanwhile end as they like. Other threads, which nobody may wait for, end the
    program as a failure.
    """
    real = os._exit
    process = os.getpid()

    def refuse(status: int) -> NoReturn:
        if os.getpid() != process:
            real(status)
        if threading.current_thread() is not threading.main_thread():
            real(status or FAILURE)
        raise SystemExit(status)

    vars(os)["_exit"] = refuse
    try:
        yield
    finally:
        vars(os)["_exit"] = real
