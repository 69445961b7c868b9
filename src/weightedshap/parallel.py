"""Run work over blocks of rows, in order, on one or several workers and with a progress bar.

Results never depend on the number of workers: every row draws from a generator of its own
(`row_generator`). `weightedshap.method` explains blocks with `each_block`; surrogates, evaluation
and the command line use the bar. Nothing of the package is imported here.
"""

import hashlib
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")


def row_generator(seed: int, row: int | str) -> np.random.Generator:
    """Return the random generator of a row, given the position or the id of the row.

    It is the same whatever the order of the rows, the size of blocks and the number of workers.
    """
    # A spawn key is a number of at least 0, so that other ids are hashed to one.
    if isinstance(row, str) or row < 0:
        row = int.from_bytes(hashlib.blake2b(str(row).encode(), digest_size=16).digest())
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(row,)))


@dataclass(frozen=True)
class Workers:
    """Options for parallel work: the number of workers, and whether a progress bar is shown."""

    # As in joblib: −1 for as many as there are cores; None or 1 to run in the caller's thread.
    n_jobs: int | None = 1
    # True, False or "auto", see `progress_bar`.
    progress: bool | str = False


def each_block(
    work: Callable[[slice], Result], parts: Sequence[slice], workers: Workers, description: str
) -> Iterator[Result]:
    """Yield ``work(part)`` for every block of rows, in order, and show a progress bar.

    `parts` are the blocks, and `description` is the text of the bar.
    """
    runs_here = workers.n_jobs in (None, 1) or len(parts) == 1
    sizes = [part.stop - part.start for part in parts]
    with progress_bar(sum(sizes), description, workers.progress) as progress:
        results = map(work, parts) if runs_here else _run_parallel(work, parts, workers.n_jobs)
        for size, result in zip(sizes, results, strict=True):
            progress.update(size)
            yield result


def _run_parallel(
    work: Callable[[slice], Result], parts: Sequence[slice], n_jobs: int | None
) -> Iterator[Result]:
    """Yield ``work(part)`` for every block in order, computed by several workers.

    The workers are threads, unless the user chose another backend by `joblib.parallel_config`.
    """
    import joblib
    from joblib.parallel import ThreadingBackend, get_active_backend

    with limit_blas_threads():
        if isinstance(get_active_backend(prefer="threads")[0], ThreadingBackend):
            # Not joblib's own threads: these are joined before the generator ends.
            with ThreadPoolExecutor(joblib.effective_n_jobs(n_jobs)) as threads:
                yield from threads.map(work, parts)
        else:
            pool = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
            yield from pool(joblib.delayed(work)(part) for part in parts)


def limit_blas_threads() -> Any:
    """Return a context manager that limits BLAS to a single thread.

    That is fastest for small matrices, and workers already share the cores among rows.
    """
    return _thread_pools(len(sys.modules)).limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _thread_pools(n_modules: int) -> Any:
    """Return threadpoolctl's controller of the thread pools of all loaded libraries, cached.

    To create it takes as long as explaining twenty rows, so it is kept until `n_modules`, the
    number of imported modules, changes.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def progress_bar(
    total: int | None, description: str, progress: bool | str, unit: str = "row"
) -> Any:
    """Return a tqdm progress bar for `total` steps, on stderr or in a notebook.

    `progress` shows it (True), never shows it (False), or shows it after one second where stderr is
    a terminal or a notebook ("auto"). `unit` is the word for one step.
    """
    # tqdm warns of notebooks without ipywidgets, which get the bar as text.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

    is_interactive = sys.stderr.isatty() or "ipykernel" in sys.modules
    is_hidden = progress is False or (progress == "auto" and not is_interactive)
    return tqdm(
        total=total,
        desc=description,
        unit=unit,
        disable=is_hidden,
        delay=1.0 if progress == "auto" else 0.0,
    )
