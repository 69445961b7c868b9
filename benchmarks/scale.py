"""Rows at scale: speed and memory of `weightedshap explain`, its cost over the bare kernel, kills,
and engines.

    python benchmarks/scale.py speed --rows 1000000     # rows/s, CPU time and peak memory, against
    10,000 rows python benchmarks/scale.py overhead                 # CPU time of the command over
    that of the kernel, per row python benchmarks/scale.py kills                    # twenty kills
    -9 at random moments, and the bytes afterwards python benchmarks/scale.py engines --rows 100000
    # two workers against one on local processes, Dask, Ray, Spark

20 features, LightGBM with 100 trees, the default game and judge; fitted once, which is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import weightedshap as ws
from weightedshap.jobs import run
from weightedshap.jobs.executors import pool
from weightedshap.jobs.stream import StreamOptions

FEATURES = 20
PART = 1_000  # rows of a part on engines
COMMAND = [sys.executable, "-c", "from weightedshap.jobs.cli import main; main()"]
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(Path(ws.__file__).parent.parent),
}


def frame(n, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.normal(size=(n, FEATURES)), columns=[f"f{i}" for i in range(FEATURES)])


def prepare(home):
    """A model and a fitted explainer."""
    X = frame(5_000, 0)
    y = X["f0"] * X["f1"] + X["f2"] + np.sin(2 * X["f3"]) + 0.3 * X["f4"]
    model = lightgbm.LGBMRegressor(n_estimators=100, n_jobs=1, verbose=-1).fit(X, y)
    model.booster_.save_model(home / "model.txt")
    ws.Explainer(
        ws.engines.ModelFile(str(home / "model.txt")).load(), X[:1_000], progress=False
    ).save(home / "explainer")


def rows_of(home, n):
    """A file of n rows, written in pieces."""
    path = home / f"rows-{n}.parquet"
    if not path.exists():
        schema = pa.schema(
            [*((f"f{i}", pa.float64()) for i in range(FEATURES)), ("id", pa.int64())]
        )
        with pq.ParquetWriter(path, schema) as writer:
            for start in range(0, n, 50_000):
                size = min(50_000, n - start)
                piece = frame(size, start + 1).assign(id=np.arange(start, start + size))
                writer.write_table(pa.Table.from_pandas(piece, schema, preserve_index=False))
    return path


def command(home, n, out, *more):
    given = (
        "--model",
        home / "model.txt",
        "--explainer",
        home / "explainer",
        "--rows",
        rows_of(home, n),
        "--key",
        "id",
    )
    return [*COMMAND, "explain", *map(str, given), "--out", str(out), "--json", *map(str, more)]


def memory(pid):
    """Bytes of a process and all that it started, pages that they share counted once."""
    total = 0
    todo = [pid]
    while todo:
        one = todo.pop()
        try:
            todo += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
            rollup = Path(f"/proc/{one}/smaps_rollup").read_text()
            total += next(
                int(line.split()[1]) * 1024
                for line in rollup.splitlines()
                if line.startswith("Pss:")
            )
        except (OSError, StopIteration):
            continue
    return total


def cpu():
    """Seconds of CPU of all that was started and ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(home, n, *more):
    """Seconds and rows from the first finished part to the last, the peak of memory, and CPU time
    in all."""
    out = Path(tempfile.mkdtemp(dir=home)) / "out"
    before = cpu()
    process = subprocess.Popen(
        command(home, n, out, *more), stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    )
    times = []
    rows = []
    peak = 0
    for line in process.stdout:
        event = json.loads(line)
        peak = max(peak, memory(process.pid))
        if event["event"] == "part":
            times.append(time.monotonic())
            rows.append(event["rows"])
        elif event["event"] == "error":
            sys.exit(event["message"])
    process.wait()
    shutil.rmtree(out.parent)
    return times[-1] - times[0], sum(rows[1:]), peak, cpu() - before


def speed(home, arguments):
    small, large = (
        timed(home, n, "--jobs", 2, "--part-rows", 2_000) for n in (10_000, arguments.rows)
    )
    for n, (seconds, rows, peak, _) in zip((10_000, arguments.rows), (small, large)):
        print(
            f"{n:>10,} rows, 2 processes: {rows / seconds:8,.0f} rows/s, peak {peak / 1e6:,.0f} MB"
            " in all"
        )
    each = (large[3] - small[3]) / (arguments.rows - 10_000)
    print(
        f"peak memory differs by {abs(large[2] - small[2]) / 1e6:,.0f} MB; {each * 1e6:,.0f} µs of"
        " CPU for a row"
    )
    print(f"load of the machine at the end: {os.getloadavg()[0]:.1f}, of which this run is 2")


def overhead(home, arguments):
    explainer = ws.Explainer.load(
        home / "explainer", ws.engines.ModelFile(str(home / "model.txt")).load(), progress=False
    )
    X = frame(arguments.rows, 3)
    explainer(X[:300])
    start = time.process_time()
    for i in range(0, len(X), 3_000):
        explainer(X[i : i + 3_000])
    kernel = (time.process_time() - start) / len(X)
    used = []
    for n in (10_000, 10_000 + arguments.rows):
        out = Path(tempfile.mkdtemp(dir=home)) / "out"
        before = cpu()
        subprocess.run(
            command(home, n, out), check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL
        )
        used.append(cpu() - before)
    own = (used[1] - used[0]) / arguments.rows
    print(
        f"kernel {kernel * 1e6:.0f} µs of CPU for a row, command {own * 1e6:.0f} µs:"
        f" {own / kernel - 1:+.0%}"
    )


def contents(out):
    return {
        file.relative_to(out): file.read_bytes()
        for file in sorted(out.rglob("*"))
        if file.is_file() and file.name != ".lock"
    }


def kills(home, arguments):
    """One run of a hundred parts, killed twenty times, each time a random while after a few more
    were finished."""
    rng = np.random.default_rng(arguments.seed)
    out = home / "killed"
    options = ["--part-rows", arguments.rows // 100, "--jobs", 2]
    again = [*command(home, arguments.rows, out, *options), "--resume"]
    for kill in range(20):
        process = subprocess.Popen(again, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True)
        more = int(rng.integers(0, 9))
        for line in process.stdout:
            event = json.loads(line)
            more -= event["event"] == "part" and event["new"]
            if event["event"] != "fitting" and more <= 0:
                break
        time.sleep(rng.uniform(0, 0.5))
        process.kill()
        process.wait()
        # None is half-written.
        parts = [len(pq.read_table(part)) for part in sorted(out.glob("*.parquet"))]
        print(f"kill {kill + 1:>2} with {len(parts):>2} whole parts on the disk", flush=True)
    subprocess.run(again, check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    whole = command(home, arguments.rows, home / "whole", *options)
    subprocess.run(whole, check=True, env=ENVIRONMENT, stdout=subprocess.DEVNULL)
    print(
        "the same bytes as a run that nobody disturbed:", contents(out) == contents(home / "whole")
    )


def of_part(explain, *given):
    """In the worker: a part, and what it took there: begin, end, seconds on a core, seconds of
    waiting for one."""
    stat = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
    began = time.time()
    before = stat.read_text().split()
    found = explain(*given)
    on, off = (
        (int(after) - int(own)) / 1e9 for after, own in zip(stat.read_text().split()[:2], before)
    )
    return found, (began, time.time(), on, off)


class Watched(Executor):
    """An executor that writes down what every part took."""

    def __init__(self, workers, parts):
        self.workers, self.parts = workers, parts

    def submit(self, explain, /, *given):
        found = Future()
        inner = self.workers.submit(of_part, explain, *given)

        def done(future):
            try:
                result, took = future.result()
            except BaseException as error:
                found.set_exception(error)
            else:
                self.parts.append(took)
                found.set_result(result)

        inner.add_done_callback(done)
        return found


def parts(home, arguments):
    """One run on one engine, in a process of its own; `took` of every part as JSON."""
    took = []

    @contextmanager
    def watched(*given):
        with pool(*given) as (workers, many):
            yield Watched(workers, took), many

    run.pool = watched
    fit = run.FitTask(
        model=ws.engines.ModelFile(str(home / "model.txt")),
        explainer=home / "explainer",
        choices={},
    )
    out = Path(tempfile.mkdtemp(dir=home))
    rows = rows_of(home, arguments.rows)
    job = run.Job(
        fit=fit,
        rows=rows,
        out=out / "out",
        options=StreamOptions.build(key="id"),
        engine=arguments.only[0],
        jobs=arguments.jobs,
        part_rows=PART,
    )
    run.run(job, lambda *_, **__: None)
    shutil.rmtree(out)
    print(json.dumps(sorted(took)))


def rates(home, engine, jobs, n):
    """Of the second half of the parts, when all workers are warm: rows/s, CPU of a part, the share
    of its time that it waited for a core, and rows/s without that waiting; then how long the first
    part took."""
    own = "parts", "--home", home, "--rows", n, "--only", engine, "--jobs", jobs
    done = subprocess.run(
        [sys.executable, __file__, *map(str, own)],
        check=True,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        text=True,
    )
    first, *_ = took = np.array(json.loads(done.stdout.splitlines()[-1]))  # (parts, 4)
    began, ended, on, off = took[len(took) // 2 :].T
    span = ended.max() - began.min()
    waiting = off.sum() / (ended - began).sum()
    rate = len(on) * PART / span
    return rate, on.mean(), waiting, rate / (1 - waiting), first[1] - first[0]


def loops():
    """What the machine itself gives two processes over one at the moment: rounds of a bare loop in
    three seconds."""
    code = "import time\nend, n = time.time() + 3, 0\nwhile time.time() < end: n += 1\nprint(n)"
    rounds = []
    for jobs in (1, 2):
        started = [
            subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
            for _ in range(jobs)
        ]
        rounds.append(sum(int(process.communicate()[0]) for process in started))
    return rounds[1] / rounds[0]


def engines(home, arguments):
    for engine in arguments.only or ("local", "dask", "ray", "spark"):
        bare, one, two = loops(), *(rates(home, engine, jobs, arguments.rows) for jobs in (1, 2))
        told = "{:5,.0f} → {:5,.0f} rows/s ({:.2f})"
        print(
            f"{engine:>6}: {told.format(one[0], two[0], two[0] / one[0])};",
            f"{told.format(one[3], two[3], two[3] / one[3])} without waiting for a core,"
            f" {one[2]:.0%} → {two[2]:.0%};",
            f"a part {one[1]:.2f} → {two[1]:.2f} s of CPU, the first {one[4]:.1f} →"
            f" {two[4]:.1f} s;",
            f"bare loops {bare:.2f}; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["speed", "overhead", "kills", "engines", "parts"])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="for `parts`, which `engines` starts")
    parser.add_argument("--only", nargs="+", help="some of the engines")
    parser.add_argument("--home", type=Path, help="where files are kept between runs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as fresh:
        where = arguments.home or Path(fresh)
        where.mkdir(exist_ok=True)
        if not (where / "explainer").exists():
            prepare(where)
        globals()[arguments.what](where, arguments)
