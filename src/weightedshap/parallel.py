"""Map over blocks of rows. Results never depend on how: row r always draws from its own child
generator."""

import hashlib
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Protocol, TypeVar

import numpy as np

Result = TypeVar("Result")


def row_generator(seed: int, row: int | str) -> np.random.Generator:
    """The generator of a row, by its position or id: the same whatever the order, batch size or
    number of workers."""
    if isinstance(row, str) or row < 0:  # a child is numbered from 0 on
        row = int.from_bytes(hashlib.blake2b(str(row).encode(), digest_size=16).digest())
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(row,)))


class Workers(Protocol):
    """Who works, and whether a bar shows it."""

    @property
    def n_jobs(self) -> int | None: ...
    @property
    def progress(self) -> bool | str: ...


def each_block(
    work: Callable[[slice], Result], parts: Sequence[slice], workers: Workers, description: str
) -> Iterator[Result]:
    """``work(part)`` for every block in order, with a bar; several workers keep BLAS to one thread
    each."""
    alone = workers.n_jobs in (None, 1) or len(parts) == 1
    sizes = [part.stop - part.start for part in parts]
    with bar(sum(sizes), description, workers.progress) as shown:
        results = map(work, parts) if alone else _by_several(work, parts, workers.n_jobs)
        for size, result in zip(sizes, results, strict=True):
            shown.update(size)
            yield result


def _by_several(
    work: Callable[[slice], Result], parts: Sequence[slice], n_jobs: int | None
) -> Iterator[Result]:
    """Threads of our own, joined before this ends; or what the user asks joblib for by
    `parallel_config`."""
    import joblib
    from joblib.parallel import ThreadingBackend, get_active_backend

    with one_blas_thread():
        if isinstance(get_active_backend(prefer="threads")[0], ThreadingBackend):
            with ThreadPoolExecutor(joblib.effective_n_jobs(n_jobs)) as threads:
                yield from threads.map(work, parts)
        else:
            pool = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
            yield from pool(joblib.delayed(work)(part) for part in parts)


def one_blas_thread() -> Any:
    """A context in which BLAS keeps to one thread: that is fastest for small ones, and workers
    share the rows."""
    return _libraries(len(sys.modules)).limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> Any:
    """The loaded libraries that have threads of their own: finding them takes as long as twenty
    rows."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def bar(total: int | None, description: str, progress: bool | str, unit: str = "row") -> Any:
    """A progress bar on stderr, or in a notebook: ``"auto"`` shows it after a second to who can see
    it, False never."""
    # It warns of notebooks without ipywidgets, which get the bar as text.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

    seen = sys.stderr.isatty() or "ipykernel" in sys.modules
    hidden = progress is False or (progress == "auto" and not seen)
    return tqdm(
        total=total,
        desc=description,
        unit=unit,
        disable=hidden,
        delay=1.0 if progress == "auto" else 0.0,
    )
