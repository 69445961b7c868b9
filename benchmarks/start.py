"""How long a fresh install takes to its first explanation: importing, compiling.

usage: python benchmarks/start.py [--kernels] [tree_path linear function tree_surrogate
tree_interventional]

Every setting runs in a process of its own with an empty cache of compiled loops, and in one more
that finds them there. CPU seconds: ``import`` is that of weightedshap alone, nothing else loaded;
``compiling`` is the first fit and row less the same where loops are found; these, and the same done
again, follow.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

GAMES = {"tree_surrogate": "tree_surrogate", "tree_interventional": "tree_interventional"}
SETTINGS = "tree_path", "linear", "function", *GAMES
ALONE = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"


def in_process(*arguments, cache=None):
    """What a fresh Python prints, on one thread and with an empty cache, or that of a folder."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache or folder, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout


def compiling(setting, *more):
    """What two starts tell that follow each other, as a line and further lines."""
    with tempfile.TemporaryDirectory() as cache:
        told = [
            in_process(__file__, "--first", setting, *more, cache=cache).splitlines()
            for _ in range(2)
        ]
    (once, _), (found, again) = ([float(one) for one in lines[0].split()] for lines in told)
    line = (
        f"{setting:>20}: compiling {once - found:5.2f} s; first row from the cache {found:.2f} s,"
        f" then {again:.3f} s"
    )
    return "\n".join([line, *told[0][1:]])


def seconds(work):
    start = time.process_time()
    work()
    return time.process_time() - start


def model_of(setting, X, y):
    if setting == "function":
        return lambda rows: rows[:, 0] + rows[:, 1] * rows[:, 2]
    if setting == "linear":
        from sklearn.linear_model import LinearRegression

        return LinearRegression().fit(X, y)
    from lightgbm import LGBMRegressor

    return LGBMRegressor(n_estimators=30, verbose=-1, n_jobs=1).fit(X, y)


def first(setting, kernels):
    """Fit and explain one row, twice."""
    import numba.core.event

    import weightedshap as ws

    told = []
    begun = []

    class Listener(numba.core.event.Listener):
        def on_start(self, event):
            begun.append(time.process_time())

        def on_end(self, event):
            function = event.data["dispatcher"].py_func
            told.append(
                (time.process_time() - begun.pop(), f"{function.__module__}.{function.__name__}")
            )

    numba.core.event.register("numba:compile", Listener())
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=300)
    model = model_of(setting, X, y)

    def work():
        ws.Explainer(model, X, game=GAMES.get(setting, "auto"))(X[:1])

    once = seconds(work)
    again = seconds(work)
    print(once, again)
    for took, name in told if kernels else []:
        if "weightedshap" in name:
            print(f"{took:>30.2f} {name}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("settings", nargs="*", choices=[*SETTINGS, []], default=[])
    parser.add_argument(
        "--kernels",
        action="store_true",
        help="tell what each compiled function takes, with its parts",
    )
    parser.add_argument("--first", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.first:
        first(given.settings[0], given.kernels)
        return
    for name in ("numpy", "weightedshap"):
        print(
            f"import {name}:"
            f" {min(float(in_process('-c', ALONE.format(name))) for _ in range(5)):.2f} s",
            flush=True,
        )
    more = ["--kernels"] if given.kernels else []
    for setting in given.settings or SETTINGS:
        print(compiling(setting, *more), flush=True)


if __name__ == "__main__":
    main()
