"""Errors of the commands: a message for people, and an exit code for scripts.

The modules of `weightedshap.jobs` raise `CommandError`; `weightedshap.jobs.commands` prints its
message and exits with its code.
"""

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
    FAILED: "any other error",
    USAGE: "wrong options",
    INPUT: (
        "model, background or rows cannot be read, a row cannot be explained, or the model fails"
    ),
    MISMATCH: "the folder holds another run, or one that can be resumed",
    BUSY: "another process is working on the folder",
    SKIPPED: "done, but rows were skipped (--on-error skip)",
    OUTPUT: "the disk is full or read-only, or a worker died; --resume continues from there",
    DAMAGED: "files of the folder are damaged; --resume makes them again",
    INTERRUPTED: "interrupted; --resume continues from there",
}

RESUME_ADVICE = "Finished parts are intact; when the cause is gone, go on with --resume."


class CommandError(Exception):
    """Raised to end a command with a message and an exit code.

    Both are in `args`, so that the error can be pickled and sent back from a worker.
    """

    @property
    def code(self) -> int:
        """The exit code of the command."""
        return int(self.args[1])

    def __str__(self) -> str:
        return str(self.args[0])


@contextmanager
def report_write_errors(
    path: str | os.PathLike[str], advice: str = RESUME_ADVICE
) -> Iterator[None]:
    """Turn an OSError in the `with` block, which writes `path`, into a `CommandError`.

    The message names the file and ends with `advice`.
    """
    try:
        yield
    except OSError as error:
        file = os.fspath(error.filename or path)
        message = f"{file} cannot be written: {error.strerror or error}. {advice}"
        raise CommandError(message, OUTPUT) from error


@contextmanager
def report_read_errors(path: str | os.PathLike[str], place: str = "") -> Iterator[None]:
    """Turn an error in the `with` block, which reads `path`, into a `CommandError`.

    The message names the path and, if given, the `place` in the file.
    """
    try:
        yield
    # Arrow raises errors of these types, too.
    except (OSError, ValueError, KeyError, NotImplementedError) as error:
        raise CommandError(f"{os.fspath(path)}{place} cannot be read: {error}", INPUT) from error


@contextmanager
def report_model_errors(model: object, advice: str = "") -> Iterator[None]:
    """Turn SystemExit or OSError, raised by `model` in the `with` block, into a `CommandError`.

    The message names the model, else the error would seem to come from this package, and ends with
    `advice`. Other errors of the model concern a single row, or are clear without the name.
    """
    try:
        yield
    except SystemExit as error:
        message = f"The model {model} {exit_text(error.code)}. {advice}"
        raise CommandError(message.rstrip(), INPUT) from error
    except OSError as error:
        message = f"The model {model} raised {type(error).__name__}: {error}. {advice}"
        raise CommandError(message.rstrip(), INPUT) from error


def exit_text(code: object) -> str:
    """Return a phrase which says that user code ended the program with the exit code `code`."""
    return f"ended the program (exit with {code!r}) instead of returning numbers"
