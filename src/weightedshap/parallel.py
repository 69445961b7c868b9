"""Map over blocks of rows: threads by default, any joblib backend on request.

Results never depend on how the work is spread: row r always draws from its own child generator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import joblib
import numpy as np
from tqdm import tqdm

__all__ = ["row_generator", "map_blocks", "bar"]

Task = TypeVar("Task")
Result = TypeVar("Result")


def row_generator(seed: int, row: int) -> np.random.Generator:
    """The generator of row `row`: the same whatever the order, batch size or number of workers."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(row,)))


def map_blocks(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    sizes: Sequence[int],
    n_jobs: int | None = 1,
    progress: bool | str = "auto",
    description: str = "explaining",
) -> Iterator[Result]:
    """``function(task)`` for each task, in order; `sizes` are the rows of each, for the bar.

    Threads are preferred, because the compiled loops release the lock; inside a
    ``joblib.parallel_config(backend=…)`` block the named backend is used instead.
    """
    if n_jobs in (None, 1) or len(tasks) == 1:
        results: Iterable[Result] = map(function, tasks)
    else:
        workers = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
        results = workers(joblib.delayed(function)(task) for task in tasks)
    with bar(sum(sizes), description, progress) as shown:
        for size, result in zip(sizes, results, strict=True):
            shown.update(size)
            yield result


def bar(total: int | None, description: str, progress: bool | str, unit: str = "row") -> Any:
    """A progress bar on stderr: ``"auto"`` shows it in a terminal after a second, False never."""
    hidden = progress is False or (progress == "auto" and not sys.stderr.isatty())
    return tqdm(total=total, desc=description, unit=unit, disable=hidden, delay=1.0 if progress == "auto" else 0.0)
