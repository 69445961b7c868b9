"""Who works on the parts: this process, processes beside it, or a cluster; each as an executor of
tasks.

Retries are the engine's: a task writes one part, whole or not at all, and always the same, so it
may run twice.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from tqdm import tqdm

from weightedshap._checks import require

Task = Callable[[], Any]
RETRIES = 3


class Here(Executor):
    """The work is done as it is handed over."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


def pool(
    engine: str, jobs: int, address: str | None
) -> AbstractContextManager[tuple[Executor, int]]:
    """An executor and how many tasks it works on at once."""
    return {"local": _local, "dask": _dask, "ray": _ray, "spark": _spark}[engine](jobs, address)


@contextmanager
def _local(jobs: int, _: str | None) -> Iterator[tuple[Executor, int]]:
    """This process, or processes of joblib's loky; an interrupt is for their parent, who ends
    them."""
    if jobs == 1:
        yield Here(), 1
        return
    from joblib.externals.loky import ProcessPoolExecutor

    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with _quiet_trackers():
        made = ProcessPoolExecutor(jobs, initializer=_deaf, initargs=(os.getpid(),), env=threads)
        try:
            yield Starting(made), jobs
        except BaseException:
            # `kill_workers` stumbles over a task just handed over.
            for process in list(made._processes.values()):
                process.terminate()
            raise
        finally:
            made.shutdown(wait=True)


@contextmanager
def _quiet_trackers() -> Iterator[None]:
    """Let the processes that clean up semaphores do so without a warning.

    A worker that is ended while it starts leaves some behind. They are removed, but the warning of
    that would come after the sentence that says how to go on.
    """
    before = os.environ.get("PYTHONWARNINGS")
    ours = "ignore:resource_tracker:UserWarning"
    os.environ["PYTHONWARNINGS"] = f"{before},{ours}" if before else ours
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before


@contextmanager
def _interrupts_wait() -> Iterator[None]:
    """Hold an interrupt back until the end; processes started meanwhile never get one.

    A terminal interrupts them with their parent, and before `_deaf` they would tell of it in
    tracebacks.
    """
    if not hasattr(signal, "pthread_sigmask"):  # on Windows
        yield
        return

    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # if it is started later, it lets interrupts through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Starting(Executor):
    """An executor that starts its processes with the first task, out of reach of interrupts."""

    def __init__(self, processes: Executor) -> None:
        self.processes = processes

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        with _interrupts_wait():
            return self.processes.submit(fn, *args, **kwargs)


def _deaf(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The lock of tqdm's own is a semaphore between processes. A worker that is ended leaves it
    # behind, and Python warns of that after the sentence that says how to go on.
    tqdm.set_lock(threading.RLock())

    def not_alone() -> None:
        # One that was killed, perhaps before this began, could not say so.
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=not_alone, daemon=True).start()


@contextmanager
def _dask(jobs: int, address: str | None) -> Iterator[tuple[Executor, int]]:
    distributed = require("distributed", "dask")
    cluster = {"n_workers": jobs, "threads_per_worker": 1} if address is None else {}
    with distributed.Client(address, **cluster) as client:
        yield (
            client.get_executor(retries=RETRIES, pure=False),
            max(1, sum(client.nthreads().values())),
        )


@contextmanager
def _ray(jobs: int, address: str | None) -> Iterator[tuple[Executor, int]]:
    ray = require("ray", "ray")
    ray.init(
        address,
        num_cpus=jobs if address is None else None,
        ignore_reinit_error=True,
        log_to_driver=False,
    )
    many = int(ray.cluster_resources().get("CPU", jobs))
    remote = ray.remote(max_retries=RETRIES)(_call)
    try:
        with Through(2 * many, lambda task: ray.get(remote.remote(task))) as threads:
            yield threads, many
    finally:
        ray.shutdown()


@contextmanager
def _spark(jobs: int, address: str | None) -> Iterator[tuple[Executor, int]]:
    sql = require("pyspark.sql", "spark")
    # Else Spark takes the python3 that it finds first.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = address or f"local[{jobs},{RETRIES + 1}]"
    session = sql.SparkSession.builder.master(master).appName("weightedshap").getOrCreate()
    context = session.sparkContext
    try:
        many = context.defaultParallelism
        with Through(
            2 * many, lambda task: context.parallelize([task], 1).map(_call).collect()[0]
        ) as threads:
            yield threads, many
    finally:
        session.stop()


class Through(ThreadPoolExecutor):
    """Threads that each wait for one task of an engine; at the end nothing is waited for that is no
    longer wanted."""

    def __init__(self, many: int, run: Callable[[Task], Any]) -> None:
        super().__init__(many)
        self.run = run

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return super().submit(self.run, partial(fn, *args, **kwargs))

    def __exit__(self, *error: object) -> None:
        self.shutdown(wait=False, cancel_futures=True)


def _call(task: Task) -> Any:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    return task()
