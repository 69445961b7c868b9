"""Draw the pictures of the method's page and of the README; every build of the site runs this.

python docs/pictures.py            # all of them, into docs/images/drawn
python docs/pictures.py readme     # docs/images/recovery.png, which the README shows
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

import weightedshap as ws

HERE = Path(__file__).parent
INK, GREY, BLUE, VERMILION, ORANGE, GREEN = (
    "#404040",
    "#8C8C8C",
    "#0072B2",
    "#D55E00",
    "#E69F00",
    "#009E73",
)


@cache
def explained() -> ws.Explanation:
    """Explain sixty rows of the diabetes data under a boosted model, by the defaults."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = GradientBoostingRegressor(random_state=0).fit(X[:300], y[:300])
    return ws.Explainer(model, X[:300], progress=False)(X[380:440])


@cache
def row() -> int:
    """Return the row whose weight reduces the area under its recovery curve most."""
    shapley, own = (
        curves[:, 1:].sum(axis=1)
        for curves in (explained().reference_curves["shapley"], explained().curves)
    )
    return int(np.argmax(shapley - own))


def recovery() -> Figure:
    """Draw the README's picture: recovery curves, and the weights that rows chose."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    explained().plot.recovery(ax=left)
    explained().plot.weights(ax=right)
    return figure


def sizes() -> Figure:
    """Draw Δ by size for one row."""
    return explained().plot.sizes(row()).figure


def weights() -> Figure:
    """Draw the paper's 13 weights over the sizes of 20 features."""
    figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
    family = ws.weights.paper(20)
    colours = mpl.colormaps["cividis"](np.linspace(0, 0.95, len(family.labels)))
    for label, vector, colour in zip(family.labels, family.vectors, colours, strict=True):
        if label in ("first", "last"):
            continue
        shapley = label in ("Shapley", "Beta(1,1)")
        ax.plot(
            np.arange(1, 21),
            vector,
            color=VERMILION if shapley else colour,
            lw=2.5 if shapley else 1.3,
        )
        j = 0 if vector[0] > vector[-1] else 19
        if label in ("Beta(16,1)", "Beta(1,16)"):
            ax.annotate(
                label,
                (j + 1, vector[j]),
                (12 if j == 0 else -12, -2),
                textcoords="offset points",
                ha="left" if j == 0 else "right",
                color=INK,
            )
    ax.annotate(
        "equal weights: the Shapley value",
        (10.5, 0.05),
        (0, 22),
        textcoords="offset points",
        ha="center",
        color=VERMILION,
    )
    ax.set(
        xlabel="size j of the coalition, the feature included",
        ylabel="weight of $\\Delta_j$",
        xticks=[1, 5, 10, 15, 20],
    )
    return _clean(figure, ax)


def leaf() -> Figure:
    """Draw the path to a leaf, and the coalitions that reach it: they contain A and avoid B."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 4.2), layout="constrained", width_ratios=[1, 1.15]
    )
    _draw_path(left)
    _draw_coalitions(right)
    return figure


def _draw_path(ax: Axes) -> None:
    """Draw three splits on the way to a leaf.

    At two of them the row and the hidden value go different ways.
    """
    nodes = [(0.55, 3, "age > 50 ?"), (0.35, 2, "bmi > 27 ?"), (0.55, 1, "bp > 90 ?")]
    leaf = (0.4, 0)
    steps = [
        ((0.35, 2), "x goes here,\na hidden age would not:\nage ∈ A", BLUE, "left", -0.02),
        ((0.55, 1), "a hidden bmi goes here,\nx would not: bmi ∈ B", VERMILION, "right", 0.02),
        (leaf, "both go here", GREY, "left", -0.02),
    ]
    for (x, y, text), (target, caption, colour, side, shift) in zip(nodes, steps, strict=True):
        ax.plot([x, target[0]], [y, target[1]], color=colour, lw=3, zorder=1)
        other = 2 * x - target[0]
        ax.plot([x, other], [y, y - 0.85], color="#D9D9D9", lw=1.5, zorder=0)
        ax.text(
            x,
            y,
            text,
            ha="center",
            va="center",
            bbox={"boxstyle": "round,pad=.45", "fc": "white", "ec": INK},
        )
        ax.text(
            (x + target[0]) / 2 + shift * 3,
            y - 0.5,
            caption,
            color=colour,
            fontsize=9,
            va="center",
            ha="right" if side == "left" else "left",
        )
    ax.text(
        *leaf,
        "leaf: + c",
        ha="center",
        va="center",
        bbox={"boxstyle": "round,pad=.45", "fc": ORANGE, "ec": INK},
    )
    ax.set(xlim=(-0.1, 1.05), ylim=(-0.4, 3.4), title="on the way to a leaf")
    ax.axis("off")


def _draw_coalitions(ax: Axes) -> None:
    """Draw all coalitions of four features by size, filled if they reach the leaf."""
    names = ["age", "bmi", "bp", "sex"]
    masks = (np.arange(16)[:, None] >> np.arange(4)) & 1  # (16, 4)
    for size in range(5):
        of_size = masks[masks.sum(axis=1) == size]
        for place, mask in enumerate(of_size):
            on = bool(mask[0]) and not mask[1]
            label = "\n".join(name for name, known in zip(names, mask) if known) or "∅"
            box = {
                "boxstyle": "round,pad=.35",
                "fc": ORANGE if on else "white",
                "ec": INK if on else "#D9D9D9",
            }
            y = (len(of_size) - 1) / 2 - place
            ax.text(
                size,
                y,
                label,
                ha="center",
                va="center",
                fontsize=7.5,
                color="black" if on else GREY,
                bbox=box,
            )
    ax.set(
        xlim=(-0.5, 4.5), ylim=(-3.1, 3.1), yticks=[], xticks=range(5), xlabel="features known, |S|"
    )
    ax.set_title("… and the coalitions that reach it: age known, bmi hidden")
    for side in ("left", "top", "right"):
        ax.spines[side].set_visible(False)


def curve() -> Figure:
    """Draw the recovery curve of one row, feature by feature, in two orders."""
    one = explained()[[row()]]
    figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained", sharey=True)
    orders = {"Shapley": ws.curves.order_of(one.shapley[0]), "WeightedSHAP": one.orders[0]}
    curves = {"Shapley": one.reference_curves["shapley"][0], "WeightedSHAP": one.curves[0]}
    for ax, (name, order) in zip(axes, orders.items(), strict=True):
        _draw_curve(ax, name, curves[name], [one.feature_names[i] for i in order])
    axes[0].set(
        ylabel="|f(x) − v(known)|", ylim=(0, 1.3 * max(curve.max() for curve in curves.values()))
    )
    return figure


def _draw_curve(ax: Axes, name: str, curve: np.ndarray, names: list[str]) -> None:
    """Draw a recovery curve, its area, and the feature that becomes known at each step."""
    colour = VERMILION if name == "Shapley" else BLUE
    ks = np.arange(len(curve))
    ax.bar(ks[1:], curve[1:], width=0.86, color=colour, alpha=0.18)
    ax.plot(ks, curve, color=colour, marker="o", ms=5, lw=1.6)
    for k, label in enumerate(["nothing", *(f"+ {name}" for name in names)]):
        ax.annotate(
            label,
            (k, curve[k]),
            (2, 6),
            textcoords="offset points",
            rotation=55,
            fontsize=9,
            color=INK,
        )
    ax.set(xticks=ks, xlabel="features known")
    ax.set_title(f"{name}: area {curve[1:].sum():.0f}", color=colour)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def _clean(figure: Figure, ax: Axes) -> Figure:
    """Hide the frame lines at the top and at the right."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return figure


PICTURES: dict[str, Callable[[], Figure]] = {
    "recovery": recovery,
    "sizes": sizes,
    "weights": weights,
}
PICTURES |= {"leaf": leaf, "curve": curve}


def draw_all(folder: Path) -> None:
    """Write all pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        _write(draw(), folder / f"{name}.png")


def _write(figure: Figure, path: Path) -> None:
    """Write a figure to a file, and close it."""
    figure.savefig(path, dpi=160)
    plt.close(figure)


if __name__ == "__main__":
    if sys.argv[1:] == ["readme"]:
        _write(recovery(), HERE / "images" / "recovery.png")
    else:
        draw_all(HERE / "images" / "drawn")
