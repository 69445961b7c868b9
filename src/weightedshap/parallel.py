"""Map over blocks of rows: threads by default, any joblib backend on request.

Results never depend on how the work is spread: row r always draws from its own child generator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

import joblib
import numpy as np
from threadpoolctl import threadpool_limits
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

    While several workers run, BLAS keeps to one thread in each: its own threads would fight with them.
    Threads are preferred, because the compiled loops release the lock; inside a
    ``joblib.parallel_config(backend=…)`` block the named backend is used instead.
    """
    alone = n_jobs in (None, 1) or len(tasks) == 1
    with bar(sum(sizes), description, progress) as shown, nullcontext() if alone else threadpool_limits(1, "blas"):
        for size, result in zip(sizes, _results(function, tasks, None if alone else n_jobs), strict=True):
            shown.update(size)
            yield result


def _results(function: Callable[[Task], Result], tasks: Sequence[Task], n_jobs: int | None) -> Iterable[Result]:
    if n_jobs is None:
        return map(function, tasks)
    workers = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    return workers(joblib.delayed(function)(task) for task in tasks)  # type: ignore[no-any-return]


def bar(total: int | None, description: str, progress: bool | str, unit: str = "row") -> Any:
    """A progress bar on stderr: ``"auto"`` shows it in a terminal after a second, False never."""
    hidden = progress is False or (progress == "auto" and not sys.stderr.isatty())
    return tqdm(total=total, desc=description, unit=unit, disable=hidden, delay=1.0 if progress == "auto" else 0.0)
