"""How should boosted trees take categories: as ranks by mean prediction, or by LightGBM's own
splits on sets?

Both learn E[f(X) | X_S = x_S] from the same background with the recommended recipe. The error is
the mean of (f(x) − s(x, S))² over rows that neither the model nor the surrogate has seen, 32 masks
each, sizes uniform on 0..d, as a share of Var f; part of it, Var[f(X) | x_S], cannot be removed by
any surrogate.

    WEIGHTEDSHAP_DATA=… python benchmarks/categories.py [--seeds 2]

Prints a Markdown table. `generated` is invented; the others are the paper's tables with codes taken
as categories.
"""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd

from surrogate_recipes import RECOMMENDED, Floats, draw_masks, tree_surrogate
from surrogate_recipes import Problem as Encoded
from weightedshap.games.surrogates.data import Encoding
from weightedshap.inputs import as_table

MASKS = 32
MOST_NEW = 1000
CATEGORIES = {
    "abalone": ["sex"],
    "adult": ["education_num"],
    "click": ["depth", "position", "advertiser_id", "keyword_id"],
}


@dataclass(frozen=True)
class Problem:
    """A background and new rows, with the model's predictions."""

    background: pd.DataFrame
    f: Floats
    new: pd.DataFrame
    f_new: Floats


def real(name: str, rng: np.random.Generator) -> Problem:
    """One of the paper's tables, and boosted trees fitted to the background rows."""
    table = pd.read_csv(Path(os.environ["WEIGHTEDSHAP_DATA"]) / f"{name}.csv.gz").sample(
        frac=1, random_state=rng
    )
    table = table[:6000].astype(dict.fromkeys(CATEGORIES[name], "str"))
    frame = table.drop(columns="target")
    y = table["target"]
    half = len(frame) // 2
    coded = frame.astype(dict.fromkeys(CATEGORIES[name], "category"))
    kind = lgb.LGBMClassifier if set(y) == {0, 1} else lgb.LGBMRegressor
    model = kind(n_estimators=100, num_leaves=15, verbose=-1, n_jobs=1).fit(coded[:half], y[:half])
    predict = (
        (lambda X: model.predict_proba(X)[:, 1]) if kind is lgb.LGBMClassifier else model.predict
    )
    new = slice(half, half + MOST_NEW)
    return Problem(frame[:half], predict(coded[:half]), frame[new], predict(coded[new]))


def generated(rng: np.random.Generator, jobs: int, n: int = 3000) -> Problem:
    """Invented: jobs of uneven frequency that pay depends on, a region that goes with the job, sex,
    age and hours."""
    share = 1 / np.arange(1, jobs + 1) ** 0.7
    job = rng.choice(jobs, size=n + MOST_NEW, p=share / share.sum())
    pay = rng.normal(size=jobs)
    slope = rng.normal(size=20)
    home = rng.integers(0, 20, size=jobs)
    region = np.where(rng.random(len(job)) < 0.7, home[job], rng.integers(0, 20, size=len(job)))
    age = rng.normal(5 * pay[job], 10)
    hours = rng.normal(size=len(job))
    columns = {
        "job": job.astype(str),
        "region": region.astype(str),
        "sex": rng.choice(["f", "m"], size=len(job)),
    }
    frame = pd.DataFrame({**columns, "age": age, "hours": hours})
    f = (
        pay[job] * (1 + 0.5 * hours)
        + slope[region] * np.tanh(age / 10)
        + 0.5 * (frame["sex"] == "f")
    )
    return Problem(frame[:n], f.to_numpy()[:n], frame[n:], f.to_numpy()[n:])


def text_columns(p: Problem) -> tuple[int, ...]:
    """Positions of the columns that hold categories."""
    return tuple(
        c for c, dtype in enumerate(p.background.dtypes) if not pd.api.types.is_numeric_dtype(dtype)
    )


def ranks(p: Problem) -> tuple[Floats, Floats, tuple[int, ...]]:
    """Background and new rows, categories as ranks by mean prediction; no column is split into
    sets."""
    encoding = Encoding.fit(as_table(p.background), p.f[:, None])
    return encoding(p.background), encoding(p.new), ()


def cross_fitted(p: Problem) -> tuple[Floats, Floats, tuple[int, ...]]:
    """The same, with rare categories of the background ranked by other rows, as `TreeSurrogate`
    learns."""
    encoding = Encoding.fit(as_table(p.background), p.f[:, None])
    equal = np.full(len(p.f), 1 / len(p.f))
    X = encoding.cross_fit(encoding(p.background), p.f[:, None], equal, np.random.default_rng(2))
    return X, encoding(p.new), ()


def sets(p: Problem) -> tuple[Floats, Floats, tuple[int, ...]]:
    """Codes without an order, which LightGBM splits into sets; it can only take an unseen category
    for a hidden one."""
    X, X_new, _ = ranks(p)
    text = list(text_columns(p))
    X_new[:, text] = np.where(X_new[:, text] % 1 == 0, X_new[:, text], np.nan)
    return X, X_new, tuple(text)


WAYS = {"ranks": ranks, "LightGBM's sets": sets, "ranks, rare ones by other rows": cross_fitted}


def error(p: Problem, way: Callable[[Problem], Any], seed: int) -> float:
    """Masked squared error on new rows over Var f."""
    X, X_new, categories = way(p)
    row = np.repeat(np.arange(len(X_new)), MASKS)
    masks = draw_masks(len(row), X.shape[1], np.random.default_rng(100 + seed))
    problem = Encoded("", "regression", X, p.f, X_new[row], p.f_new[row], masks)
    surrogate, _ = tree_surrogate(problem, replace(RECOMMENDED, categories=categories), 1)
    return float(np.mean((surrogate(problem.X_new, masks) - problem.f_new) ** 2) / p.f.var())


def problems(seed: int) -> dict[str, Problem]:
    """All problems by name."""
    rng = np.random.default_rng(seed)
    invented = {f"generated, {jobs} jobs": generated(rng, jobs) for jobs in (10, 50, 300, 1000)}
    return {name: real(name, rng) for name in CATEGORIES} | invented


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=2)
    seeds = range(parser.parse_args().seeds)
    by_seed = [problems(seed) for seed in seeds]
    print("| categories | " + " | ".join(WAYS) + " |\n|---|" + "---:|" * len(WAYS))
    for name in by_seed[0]:
        first = by_seed[0][name]
        levels = [first.background.iloc[:, c].nunique() for c in text_columns(first)]
        cells = (
            " · ".join(f"{error(by_seed[s][name], way, s):.3f}" for s in seeds)
            for way in WAYS.values()
        )
        print(f"| {name} ({', '.join(map(str, levels))}) | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
