"""Peak memory of one call on many rows, beside what its result holds: `python benchmarks/memory.py
[rows]`."""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
from lightgbm import LGBMRegressor

import weightedshap as ws

MiB = 2**20


def peak() -> float:
    """MiB that this process has held at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MiB


def size_of(explanation: ws.Explanation) -> float:
    """MiB of all arrays of a result."""
    arrays = [value for value in vars(explanation).values() if isinstance(value, np.ndarray)]
    arrays += [*explanation.reference_curves.values(), *explanation.endpoint_gaps.values()]
    own = {id(array if array.base is None else array.base): array for array in arrays}
    return (
        sum(array.nbytes if array.base is None else array.base.nbytes for array in own.values())
        / MiB
    )


def main(rows: int = 200_000, columns: int = 20) -> None:
    X = np.random.default_rng(0).normal(size=(rows, columns))
    model = LGBMRegressor(n_estimators=20, n_jobs=1, verbose=-1).fit(
        X[:5000], X[:5000, 0] * X[:5000, 1] + X[:5000, 2]
    )
    explainer = ws.Explainer(model, X[:200], game="tree_path", progress=False)
    explainer(X[:2000])  # compiled, and the allocator warm
    before = peak()
    start = time.process_time()
    explanation = explainer(X)
    took = time.process_time() - start
    held = size_of(explanation)
    told = f"peak rose by {peak() - before:.0f} MiB, the result holds {held:.0f} MiB, {took:.0f} s"
    print(f"{rows} rows × {columns}: {told}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
