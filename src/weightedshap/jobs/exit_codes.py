"""Why a run stops: a sentence for people, and a code for scripts."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

FAILED = 1
USAGE = 2
INPUT = 3
MISMATCH = 4
BUSY = 5
SKIPPED = 6
OUTPUT = 7
DAMAGED = 8
INTERRUPTED = 130

EXIT_CODES = {
    0: "done",
    FAILED: "an error that is none of these",
    USAGE: "wrong options",
    INPUT: (
        "model, background or rows cannot be read, a row cannot be explained, or the model fails"
    ),
    MISMATCH: "the folder holds another run, or one to be resumed",
    BUSY: "another process works on the folder",
    SKIPPED: "done, but rows were skipped (--on-error skip)",
    OUTPUT: "the disk is full or read-only, or a worker died; --resume goes on from there",
    DAMAGED: "files of the folder are damaged; --resume makes them again",
    INTERRUPTED: "interrupted; --resume goes on from there",
}


class Stop(Exception):
    """Stop with a sentence and an exit code; both are `args`, so that it comes back from any
    worker."""

    @property
    def code(self) -> int:
        return int(self.args[1])

    def __str__(self) -> str:
        return str(self.args[0])


GO_ON = "Finished parts are intact; when the cause is gone, go on with --resume."


@contextmanager
def writing(path: str | os.PathLike[str], then: str = GO_ON) -> Iterator[None]:
    """Say of `path` why it cannot be written."""
    try:
        yield
    except OSError as error:
        what = f"{os.fspath(error.filename or path)} cannot be written: {error.strerror or error}."
        raise Stop(f"{what} {then}", OUTPUT) from error


@contextmanager
def reading(path: str | os.PathLike[str], what: str = "") -> Iterator[None]:
    """Say of `path` why it cannot be read; errors of Arrow are of these kinds."""
    try:
        yield
    except (OSError, ValueError, KeyError, NotImplementedError) as error:
        raise Stop(f"{os.fspath(path)}{what} cannot be read: {error}", INPUT) from error


@contextmanager
def asking(model: object, then: str = "") -> Iterator[None]:
    """Say of the model that it ended the program, or raised an error of the system.

    Such an error would look like one of ours. Its others are those of a row, or tell enough.
    """
    try:
        yield
    except SystemExit as error:
        raise Stop(f"The model {model} {ended(error.code)}. {then}".rstrip(), INPUT) from error
    except OSError as error:
        said = f"The model {model} raised {type(error).__name__}: {error}."
        raise Stop(f"{said} {then}".rstrip(), INPUT) from error


def ended(code: object) -> str:
    """Say that something ended the program."""
    return f"ended the program (exit with {code!r}) instead of returning numbers"
