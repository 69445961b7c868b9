"""All figures on small and large tables, with one output and with ten classes, each in a file of
its own.

    python benchmarks/gallery.py folder [--d 5 30 90 500] [--classes 1 10] [--only waterfall …]

Look at them one by one. The tables hold what people bring: categories, missing values, long and
emoji names, an index of their own, and columns of very different size.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lightgbm import LGBMClassifier, LGBMRegressor

import weightedshap as ws

NAMES = [
    "income per year",
    "district",
    "age",
    "größe_der_wohnung_in_quadratmetern_ohne_balkon_und_keller",
    "mood 😀",
]
ROWS = 120
MOST_KEPT = 2**29  # rows explained; bytes of Δ


def table(n: int, d: int, rng: np.random.Generator) -> pd.DataFrame:
    """Rows of d columns: a category, one with missing values, one in hundreds of thousands."""
    X = pd.DataFrame(
        rng.normal(size=(n, d)),
        columns=[*NAMES, *(f"x{i}" if i != 7 else "価格 7" for i in range(5, d))][:d],
    )
    X["income per year"] = (40_000 * np.exp(0.6 * X["income per year"])).round()
    X["district"] = pd.Categorical(
        rng.choice(["Altstadt", "Hafen", "Neustadt", "am Wald"], n, p=[0.4, 0.3, 0.2, 0.1])
    )
    X.loc[rng.random(n) < 0.1, "age"] = np.nan
    return X.set_axis([f"house {i}" for i in range(n)], axis=0)


def price(X: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    """A price that depends on six columns, some of them in pairs."""
    area = X.iloc[:, 3]
    mood = X.iloc[:, 4]
    rest = X.iloc[:, 5:].to_numpy()
    district = (
        X["district"]
        .map({"Altstadt": 90_000, "Hafen": 10_000, "Neustadt": -20_000, "am Wald": 0})
        .astype(float)
    )
    y = (
        1.5 * X["income per year"]
        + district
        + 40_000 * area * (mood > 0)
        + 9_000 * X["age"].fillna(0)
    )
    return (
        200_000 + y + 20_000 * rest[:, :20].sum(axis=1) + rng.normal(size=len(X)) * 5_000
    ).to_numpy()


def explained(d: int, classes: int) -> tuple[ws.Explainer, pd.DataFrame, ws.Explanation]:
    """A boosted model of the table, explained by default; with ten classes, tenths of the price."""
    rng = np.random.default_rng(d)
    X = table(1_500, d, rng)
    y = price(X, rng)
    if classes == 1:
        model = LGBMRegressor(n_estimators=80, n_jobs=1, verbose=-1).fit(X, y)
    else:
        bins = pd.qcut(y, classes, labels=[f"tenth {c + 1}" for c in range(classes)])
        model = LGBMClassifier(n_estimators=8, n_jobs=1, verbose=-1).fit(X, bins.astype(str))
    explainer = ws.Explainer(model, X[:1_000], progress=False)
    rows = X[1_000 : 1_000 + max(12, min(ROWS, MOST_KEPT // (8 * d * d * classes)))]
    return explainer, rows, explainer(rows)


def figures(
    explainer: ws.Explainer, X: pd.DataFrame, found: ws.Explanation
) -> Iterator[tuple[str, Callable[[], object]]]:
    plot = found.plot
    d = found.values.shape[1]
    side = int(np.ceil(np.sqrt(d)))
    segments = np.where(np.arange(side**2) < d, np.arange(side**2), -1).reshape(side, side)
    picture = np.random.default_rng(0).random((side, side))
    gaps = np.abs(found.efficiency_gap)
    worst = int(gaps.reshape(len(found), -1)[:, 0].argmax())
    yield "bar", plot.bar
    yield "bar of a row", lambda: plot.bar(0)
    yield "bar of an output", lambda: plot.bar(output=0)
    yield "beeswarm", plot.beeswarm
    yield "scatter", plot.scatter
    yield "scatter of a category", lambda: plot.scatter("district")
    yield "heatmap", plot.heatmap
    yield "heatmap of a few rows", lambda: found[:10].plot.heatmap(rows="prediction")
    yield "cohorts by rules", lambda: plot.cohorts(3)
    yield "cohorts by a column", lambda: plot.cohorts("district")
    yield "decision", plot.decision
    yield "compare", lambda: plot.compare(found.shapley, names=("WeightedSHAP", "TreeSHAP"))
    yield "waterfall", lambda: plot.waterfall(0)
    yield "waterfall of the largest gap", lambda: plot.waterfall(worst)
    yield "recovery", plot.recovery
    yield "weights", plot.weights
    yield "weight vectors", plot.weight_vectors
    yield "image", lambda: plot.image(0, picture, segments)
    yield "two images", lambda: _two_images(found, picture, segments)
    if found.contributions is not None:
        yield "sizes", lambda: plot.sizes(0)
    if d <= 90:
        yield "stability", lambda: plot.stability(others=_refits(explainer, X))


def _two_images(found: ws.Explanation, picture: np.ndarray, segments: np.ndarray) -> None:
    _, axes = plt.subplots(1, 2, figsize=(7, 4))
    for ax, values in zip(axes, ("WeightedSHAP", "Shapley")):
        found.plot.image(0, picture, segments, values=values, ax=ax)


def _refits(explainer: ws.Explainer, X: pd.DataFrame) -> list[ws.Explanation]:
    setup = explainer.setup
    made = (
        ws.Explainer(setup.model, setup.background.data, random_state=s, progress=False)
        for s in (1, 2, 3)
    )
    return [one(X) for one in made]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--d", type=int, nargs="+", default=[5, 30, 90, 500])
    parser.add_argument("--classes", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--only", nargs="+", help="words that a figure's name must hold one of")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("error")  # also of letters that no font has
    for d in asked.d:
        for classes in asked.classes:
            explainer, X, found = explained(d, classes)
            for name, draw in figures(explainer, X, found):
                if asked.only and not any(word in name for word in asked.only):
                    continue
                draw()
                path = asked.folder / f"{name}, d {d}, {classes} class{'es' * (classes > 1)}.png"
                plt.gcf().savefig(path, dpi=90)
                plt.close("all")
                print(path)


if __name__ == "__main__":
    main()
