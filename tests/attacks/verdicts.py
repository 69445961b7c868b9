"""What counts as wrong: an error that is not one of ours, and a number that is not the true one."""

from __future__ import annotations

import linecache
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import weightedshap as ws

PACKAGE = Path(ws.__file__).parent
ASKING = ("_predict_checked", "_call_as_trained")  # where the package hands rows to a model
# Where it calls a function that was given: (file, function).
CALLING = (
    ("weights.py", "as_family"),
    ("utilities.py", "_score_by_function"),
    ("adapters.py", "__call__"),
)
PATH_ERRORS = (
    FileNotFoundError,
    FileExistsError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)
KINDS = (
    ValueError,
    TypeError,
    IndexError,
    ImportError,
    OSError,
)  # `UnknownNameError` is a ValueError


def is_ours(error: BaseException) -> bool:
    """Whether the error was raised on purpose, by a line of the package."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    if isinstance(error, PATH_ERRORS):
        return True  # the system's own words about a path
    if any(frame.name in ASKING for frame in traceback.extract_tb(error.__traceback__)):
        return True  # the model's own words about rows that it does not take
    inside = Path(last.filename).is_relative_to(PACKAGE)
    if not inside and any(
        (Path(frame.filename).name, frame.name) in CALLING
        for frame in traceback.extract_tb(error.__traceback__)
    ):
        return True  # a function's own words
    raised = linecache.getline(last.filename, last.lineno).strip().startswith("raise")
    return isinstance(error, KINDS) and inside and raised


def describe_error(error: BaseException) -> str:
    """An error in a line, with the line of the package that it came through."""
    frames = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if Path(f.filename).is_relative_to(PACKAGE)
    ]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "outside"
    return f"{type(error).__name__} at {where}: {str(error)[:200]}"


@dataclass
class Tally:
    """How often a kind of attack was tried, and what went wrong."""

    kind: str
    tried: int = 0
    wrong: list[str] = field(default_factory=list)
    outcomes: Counter = field(default_factory=Counter)

    def count(self, outcome: str, wrong: str | None = None) -> None:
        self.tried += 1
        self.outcomes[outcome] += 1
        if wrong is not None:
            self.wrong.append(wrong)

    def __str__(self) -> str:
        outcomes = ", ".join(f"{n} {what}" for what, n in self.outcomes.most_common(6))
        return f"{self.kind}: {self.tried} tried, {len(self.wrong)} wrong ({outcomes})"
