"""What a second thread gains: seconds of a call on one thread ÷ on two.

usage: python benchmarks/threads.py [--rows 500 2000 10000] [--repeats 15]

Wall time, the best of several runs in which one and two threads take turns. "loop" is what two
threads gain on a compiled loop that shares nothing: the most that this machine gives at the moment.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import lightgbm
import numba
import numpy as np

import weightedshap as ws
from common import data, row, rule
from weightedshap.parallel import Workers, each_block

SETTINGS = {
    "default": {},
    "tree_path": {"game": "tree_path", "judge": "game"},
    "tree_interventional": {"game": "tree_interventional", "judge": "game"},
    "tree_surrogate": {"game": "tree_surrogate", "judge": "game"},
}
D = 20


@numba.njit(nogil=True)
def _loop(n: int) -> float:
    x = 0.5
    for _ in range(n):
        x = 3.7 * x * (1.0 - x)
    return x


def spin(n_jobs: int) -> None:
    parts = [slice(i, i + 1) for i in range(8)]
    workers = Workers(n_jobs, progress=False)
    list(each_block(lambda part: _loop(20_000_000), parts, workers, "spin"))


def seconds(run: Callable[[int], object], repeats: int) -> dict[int, float]:
    """The best of several runs on one and on two threads, which take turns."""
    best = dict.fromkeys((1, 2), np.inf)
    for _ in range(repeats):
        for n_jobs in best:
            started = time.perf_counter()
            run(n_jobs)
            best[n_jobs] = min(best[n_jobs], time.perf_counter() - started)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[500, 2000, 10_000])
    parser.add_argument("--repeats", type=int, default=15)
    asked = parser.parse_args()
    X, y = data(D, n=max(asked.rows) + 2000)
    model = lightgbm.LGBMRegressor(n_estimators=300, num_leaves=15, verbose=-1).fit(
        X[:2000], y[:2000]
    )
    print(row("game", "rows", "one thread, ms a row", "one ÷ two"), rule(4), sep="\n")
    for name, chosen in SETTINGS.items():
        made = {
            n_jobs: ws.Explainer(model, X[:1000], n_jobs=n_jobs, progress=False, **chosen)
            for n_jobs in (1, 2)
        }
        for n in asked.rows:
            best = seconds(
                lambda n_jobs, n=n, made=made: made[n_jobs](X[2000 : 2000 + n]), asked.repeats
            )
            print(
                row(name, f"{n:,}", f"{1e3 * best[1] / n:.3f}", f"{best[1] / best[2]:.2f}"),
                flush=True,
            )
        spun = seconds(spin, asked.repeats)
        print(row("loop", "", "", f"{spun[1] / spun[2]:.2f}"), flush=True)


if __name__ == "__main__":
    main()
