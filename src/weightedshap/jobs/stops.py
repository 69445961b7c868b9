"""Why a run stops: a sentence for people, and a code for scripts."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

FAILED, USAGE, INPUT, MISMATCH, BUSY, SKIPPED, OUTPUT, INTERRUPTED = 1, 2, 3, 4, 5, 6, 7, 130

EXIT_CODES = {
    0: "done",
    FAILED: "an error that is none of these",
    USAGE: "wrong options",
    INPUT: "model, background or rows cannot be read, or a row cannot be explained",
    MISMATCH: "the folder holds another run, or one to be resumed",
    BUSY: "another process works on the folder",
    SKIPPED: "done, but rows were skipped (--on-error skip)",
    OUTPUT: "the disk is full or read-only, or a worker died; --resume goes on from there",
    INTERRUPTED: "interrupted; --resume goes on from there",
}


class Stop(Exception):
    """Stop with a sentence and an exit code; both are `args`, so that it comes back from any worker."""

    @property
    def code(self) -> int:
        return int(self.args[1])

    def __str__(self) -> str:
        return str(self.args[0])


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say of `path` why it cannot be written."""
    try:
        yield
    except OSError as error:
        what = f"{os.fspath(error.filename or path)} cannot be written: {error.strerror or error}."
        raise Stop(f"{what} Finished parts are intact; when the cause is gone, go on with --resume.", OUTPUT) from error


@contextmanager
def reading(path: str | os.PathLike[str], what: str = "") -> Iterator[None]:
    """Say of `path` why it cannot be read; errors of Arrow are of these kinds."""
    try:
        yield
    except (OSError, ValueError, KeyError, NotImplementedError) as error:
        raise Stop(f"{os.fspath(path)}{what} cannot be read: {error}", INPUT) from error


@contextmanager
def interrupts() -> Iterator[Callable[[], None]]:
    """A function that raises an interrupt again which came and was lost: Python drops one that meets a destructor."""
    came: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        came.append(number)
        signal.default_int_handler(number, frame)

    def check() -> None:
        if came:
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield check  # somebody else listens
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)
