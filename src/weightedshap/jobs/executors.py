"""Executors that compute the parts of a run: in this process, in other processes, or on a cluster.

A part is a batch of rows whose results go to one file. Retries are left to the engine: a task
writes one part file, completely or not at all, and always with the same content, so it may run
twice. `weightedshap.jobs.run` submits the tasks.
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

Task = Callable[[], object]
RETRIES = 3
# Seconds from one check that the parent still runs to the next.
POLL_SECONDS = 0.5


class SerialExecutor(Executor):
    """An executor that runs each task in this process when it is submitted."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run the function now, and return its result as a finished future."""
        done: Future[Any] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


def pool(
    engine: str, jobs: int, address: str | None
) -> AbstractContextManager[tuple[Executor, int]]:
    """Return a context manager that yields an executor and the number of tasks it runs at once.

    `engine` is "local", "dask", "ray" or "spark". `jobs` is the number of processes to start, if
    there is no cluster at `address`.
    """
    pools = {"local": _local_pool, "dask": _dask_pool, "ray": _ray_pool, "spark": _spark_pool}
    return pools[engine](jobs, address)


@contextmanager
def _local_pool(jobs: int, address: str | None) -> Iterator[tuple[Executor, int]]:
    """Yield an executor that runs tasks here or in `jobs` new processes, and the number `jobs`.

    With one job, tasks run in this process. An interrupt reaches this process alone, which then
    ends the others. `address` is not used.
    """
    if jobs == 1:
        yield SerialExecutor(), 1
        return
    from joblib.externals.loky import ProcessPoolExecutor

    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with _ignore_tracker_warnings():
        processes = ProcessPoolExecutor(
            jobs,
            initializer=_ignore_sigint_and_watch_parent,
            initargs=(os.getpid(),),
            env=threads,
        )
        try:
            yield LateStartExecutor(processes), jobs
        except BaseException:
            # `kill_workers` fails if a task was submitted just before.
            for process in list(processes._processes.values()):
                process.terminate()
            raise
        finally:
            processes.shutdown(wait=True)


@contextmanager
def _ignore_tracker_warnings() -> Iterator[None]:
    """Silence the warnings of Python's resource trackers, the processes that clean up semaphores.

    A worker that is ended while it starts leaves semaphores behind. They are removed, but the
    warning about them would be printed after the message that says how to resume.
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
def _hold_interrupts() -> Iterator[None]:
    """Delay interrupts until the `with` block ends; processes started in it never receive any.

    A terminal interrupts child processes together with their parent. New processes would print
    tracebacks until they begin to ignore interrupts.
    """
    # Windows lacks this function.
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return

    from multiprocessing import resource_tracker

    # If the tracker started later, it would unblock interrupts.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class LateStartExecutor(Executor):
    """An executor whose processes start with the first task and never receive interrupts."""

    def __init__(self, processes: Executor) -> None:
        self.processes = processes

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a task; the processes that start for it never receive interrupts."""
        with _hold_interrupts():
            return self.processes.submit(fn, *args, **kwargs)


def _ignore_sigint_and_watch_parent(parent: int) -> None:
    """Initialise a worker process: ignore Ctrl-C, and exit when the process `parent` ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The default lock of tqdm is a semaphore shared by processes. A worker that is ended leaves it
    # behind, and Python would warn about it after the message that says how to resume.
    tqdm.set_lock(threading.RLock())

    def exit_with_parent() -> None:
        # Poll: a parent that is killed, perhaps before this thread starts, cannot notify anyone.
        while os.getppid() == parent:
            time.sleep(POLL_SECONDS)
        os._exit(1)

    threading.Thread(target=exit_with_parent, daemon=True).start()


@contextmanager
def _dask_pool(jobs: int, address: str | None) -> Iterator[tuple[Executor, int]]:
    """Yield an executor for a Dask cluster, and the number of tasks that it runs at once.

    The cluster is the one at `address`; without an address, `jobs` processes are started here.
    """
    distributed = require("distributed", "dask")
    cluster = {"n_workers": jobs, "threads_per_worker": 1} if address is None else {}
    with distributed.Client(address, **cluster) as client:
        n_tasks = max(1, sum(client.nthreads().values()))
        yield client.get_executor(retries=RETRIES, pure=False), n_tasks


@contextmanager
def _ray_pool(jobs: int, address: str | None) -> Iterator[tuple[Executor, int]]:
    """Yield an executor for a Ray cluster, and the number of tasks that it runs at once.

    The cluster is the one at `address`; without an address, `jobs` processes are started here.
    """
    ray = require("ray", "ray")
    ray.init(
        address,
        num_cpus=jobs if address is None else None,
        ignore_reinit_error=True,
        log_to_driver=False,
    )
    n_tasks = int(ray.cluster_resources().get("CPU", jobs))
    remote = ray.remote(max_retries=RETRIES)(_run_task)

    def run(task: Task) -> object:
        return ray.get(remote.remote(task))

    try:
        with RemoteTaskExecutor(2 * n_tasks, run) as executor:
            yield executor, n_tasks
    finally:
        ray.shutdown()


@contextmanager
def _spark_pool(jobs: int, address: str | None) -> Iterator[tuple[Executor, int]]:
    """Yield an executor for a Spark cluster, and the number of tasks that it runs at once.

    The cluster is the one at `address`; without an address, Spark is started here with `jobs`
    threads.
    """
    sql = require("pyspark.sql", "spark")
    # By default, Spark uses the first python3 that it finds.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    master = address or f"local[{jobs},{RETRIES + 1}]"
    session = sql.SparkSession.builder.master(master).appName("weightedshap").getOrCreate()
    context = session.sparkContext

    def run(task: Task) -> object:
        return context.parallelize([task], 1).map(_run_task).collect()[0]

    try:
        n_tasks = context.defaultParallelism
        with RemoteTaskExecutor(2 * n_tasks, run) as executor:
            yield executor, n_tasks
    finally:
        session.stop()


class RemoteTaskExecutor(ThreadPoolExecutor):
    """An executor whose threads each send a task to an engine and wait for its result.

    On exit, the tasks that have not started yet are cancelled.
    """

    def __init__(self, n_threads: int, run: Callable[[Task], object]) -> None:
        super().__init__(n_threads)
        self.run = run  # runs a task on the engine, and waits for its result

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Let a thread run the task on the engine; return a future of its result."""
        return super().submit(self.run, partial(fn, *args, **kwargs))

    def __exit__(self, *error: object) -> None:
        self.shutdown(wait=False, cancel_futures=True)


def _run_task(task: Task) -> object:
    """Run a task in a worker process of an engine, with one OpenMP thread."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    return task()
