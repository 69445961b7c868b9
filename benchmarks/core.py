"""Evaluations of v, seconds, and what the estimators cost on top of the game.

    python benchmarks/core.py

The game is cheap and vectorised, so that the overhead shows. "game alone" is the time spent inside
the game, measured in the same run; the overhead is the rest, divided by the number of coalitions.
Each line is the fastest of at least three runs, in CPU time of the one thread that works, so that
other programs do not blur it. Sampling asks the default rule, the standard error, after every
round, but with a tolerance that it never reaches, so that the whole budget is spent.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from weightedshap._checks import BoolArray, FloatArray
from weightedshap.contributions import Contributions
from weightedshap.estimators import exact, permutation
from weightedshap.estimators.stopping import evaluations, standard_error

RUNS = 3
SECONDS = 0.3
NEVER_CONTENT = standard_error(1e-9) | evaluations(200_000)


class CheapGame:
    """A linear game with one product of two players, which knows how long it was asked."""

    def __init__(self, d: int) -> None:
        self.d, self.seconds = d, 0.0
        self.slopes = np.random.default_rng(0).normal(size=d).astype(np.float32)

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        started = time.thread_time()
        # Not @, whose threads would blur the times.
        linear = np.einsum("md,d->m", coalitions, self.slopes)
        values = linear + (coalitions[:, 0] & coalitions[:, -1])
        self.seconds += time.thread_time() - started
        return np.asarray(values, dtype=np.float64)


@dataclass(frozen=True, order=True)
class Run:
    """Seconds of one run, those spent inside the game, and the coalitions evaluated."""

    seconds: float
    game: float
    evaluations: int

    @property
    def overhead(self) -> float:
        """µs for each coalition above the game's own cost."""
        return 1e6 * (self.seconds - self.game) / self.evaluations


def run(d: int, estimate: Callable[[CheapGame], Contributions]) -> Run:
    """Estimate Δ once."""
    game = CheapGame(d)
    started = time.thread_time()
    contributions = estimate(game)
    return Run(time.thread_time() - started, game.seconds, contributions.evaluations)


def fastest(d: int, estimate: Callable[[CheapGame], Contributions]) -> Run:
    """The fastest of three runs, or of as many as fit into a fraction of a second."""
    runs: list[Run] = []
    while len(runs) < RUNS or sum(one.seconds for one in runs) < SECONDS:
        runs.append(run(d, estimate))
    return min(runs)


def line(name: str, d: int, estimate: Callable[[CheapGame], Contributions]) -> str:
    """One line of the table."""
    best = fastest(d, estimate)
    times = f"{1e3 * best.seconds:>9.2f} | {1e3 * best.game:>13.2f} | {best.overhead:>8.3f}"
    return f"| {name:<11} | {d:>3} | {best.evaluations:>11,} | {times} |"


def main() -> None:
    """Print the table, in Markdown."""
    print(f"numpy {np.__version__}, Python {platform.python_version()}, {platform.machine()}\n")
    print("| estimator   |   d | evaluations |        ms | game alone ms | µs above |")
    print("|-------------|----:|------------:|----------:|--------------:|---------:|")
    for d in (8, 10, 12, 14, 16, 18, 20):
        print(line("exact", d, exact), flush=True)
    for d in (10, 20, 30, 50, 75, 100):
        print(
            line("permutation", d, lambda game: permutation(game, stop=NEVER_CONTENT)), flush=True
        )


if __name__ == "__main__":
    main()
