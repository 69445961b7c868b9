"""The paper's figures, drawn from numbers.

The colours are the paper's: Δ_1 and WeightedSHAP red, Shapley green, Δ_d and MCI blue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from weightedshap._checks import FloatArray

RED = "#C23B22"
GREEN = "#2E8B57"
BLUE = "#2F5DA8"
COLOURS = {"first": RED, "WeightedSHAP": RED, "Shapley": GREEN, "last": BLUE, "MCI": BLUE}
DASHES = {"Shapley": "--", "last": "-.", "MCI": "-."}


def two_features(
    panels: Mapping[str, tuple[FloatArray, FloatArray]], shares: Mapping[str, Any]
) -> Figure:
    """Draw which of two features has the larger error over a square, and where Shapley is wrong.

    Panels show ℰ(1) − ℰ(2), where the error ℰ(k) remains when only feature k is known, and the last
    one the share of black points by correlation ρ. Points are black where Shapley ranks the worse
    feature first. `panels` contains, by title, the difference and whether a point is black;
    `shares` contains, by model, ρ and the shares.
    """
    figure = Figure(figsize=(13, 2.9), layout="constrained")
    axes = figure.subplots(1, len(panels) + 1, width_ratios=[1] * len(panels) + [1.15])
    limit = max(float(np.abs(difference).max()) for difference, _ in panels.values())
    for ax, (title, (difference, wrong)) in zip(axes, panels.items()):
        cells = round(len(difference) ** 0.5)
        place = {"origin": "lower", "extent": (-2, 2, -2, 2), "interpolation": "nearest"}
        image = ax.imshow(
            difference.reshape(cells, cells), cmap="RdBu_r", vmin=-limit, vmax=limit, **place
        )
        black = np.ma.masked_equal(wrong.reshape(cells, cells), False)
        ax.imshow(black, cmap="gray", vmin=0, vmax=2e9, **place)
        ax.set(title=title, xlabel="$x_1$", ylabel="$x_2$")
    figure.colorbar(image, ax=list(axes[:-1]), label="ℰ(1) − ℰ(2)", shrink=0.9)
    for (name, (rho, share)), style in zip(shares.items(), ("o-", "s--")):
        axes[-1].plot(
            rho, 100 * np.asarray(share), style, label=f"f = {name}", color="black", markersize=4
        )
    axes[-1].set(xlabel="correlation ρ", ylabel="% of the square", title="black area")
    axes[-1].legend(frameon=False)
    return figure


def recovery(cases: Mapping[str, Any], names: Mapping[str, str]) -> Figure:
    """Draw two panels for each case: recovery curves with 95 % bands, and bars of their areas.

    `names` contains the label of each method.
    """
    figure = Figure(figsize=(6.4 * len(cases), 3), layout="constrained")
    axes = figure.subplots(1, 2 * len(cases), width_ratios=[2.2, 1] * len(cases))
    for (case, numbers), left, right in zip(cases.items(), axes[::2], axes[1::2]):
        for method, mean, margin in zip(
            numbers["methods"], numbers["curve"], numbers["curve_margin"]
        ):
            _band(left, method, mean, margin, names[method])
        left.set(xlabel="number of features added", ylabel="prediction recovery error", title=case)
        left.legend(frameon=False)
        _bars(
            right,
            names,
            *([numbers[key][method] for method in names] for key in ("area", "area_margin")),
        )
        right.set(ylabel="area / d")
    return figure


def by_size(cases: Mapping[str, FloatArray]) -> Figure:
    """Draw the relative error of contributions by coalition size j = 1..d, in a panel per case."""
    figure = Figure(figsize=(3.6 * len(cases), 2.8), layout="constrained")
    for ax, (case, curve) in zip(
        np.ravel(figure.subplots(1, len(cases), sharey=True)), cases.items()
    ):
        ax.plot(np.arange(1, len(curve) + 1), curve, color="black")
        ax.set(xlabel="coalition size j", ylabel="relative difference", title=case)
    return figure


def curves(
    panels: Mapping[str, Mapping[str, Any]], methods: Sequence[str], columns: int = 4
) -> Figure:
    """Draw each method's mean curve over 1..d features, with 95 % bands; one panel per dataset."""
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3 * min(columns, len(panels)), 2.4 * rows), layout="constrained")
    axes = np.ravel(figure.subplots(rows, min(columns, len(panels)), squeeze=False))
    for ax, (title, of) in zip(axes, panels.items()):
        for method in methods:
            mean, margin = of[method]
            _band(ax, method, mean[1:], margin[1:], method, start=1)
        heights = np.concatenate([of[method][0][1:] for method in methods])
        # Intervals of few runs are wide, and cut off.
        room = 0.25 * max(float(np.ptp(heights)), 1e-9)
        ax.set_ylim(heights.min() - room, heights.max() + room)
        ax.set_title(title, fontsize="small")
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    figure.supxlabel("number of features", fontsize="medium")
    axes[0].legend(frameon=False, fontsize="small")
    return figure


def _band(
    ax: Axes, method: str, mean: ArrayLike, margin: ArrayLike, label: str, start: int = 0
) -> None:
    """Draw a mean curve over k = start, start + 1, … with its interval mean ± margin shaded."""
    mean = np.asarray(mean)
    margin = np.nan_to_num(np.asarray(margin, dtype=np.float64))
    k = np.arange(start, start + len(mean))
    colour = COLOURS[method]
    ax.plot(k, mean, color=colour, linestyle=DASHES.get(method, "-"), label=label)
    ax.fill_between(k, mean - margin, mean + margin, color=colour, alpha=0.13, linewidth=0)


def _bars(
    ax: Axes, names: Mapping[str, str], values: Sequence[float], margins: Sequence[float]
) -> None:
    """Draw a bar with an error bar for each method; `names` contains the label of each method."""
    ax.bar(
        list(names.values()),
        values,
        yerr=margins,
        color=[COLOURS[name] for name in names],
        capsize=3,
        width=0.6,
    )
    ax.spines[["top", "right"]].set_visible(False)
    for position, (value, margin) in enumerate(zip(values, margins)):
        ax.annotate(
            f"{value:.2f}",
            (position, value + margin),
            (0, 3),
            textcoords="offset points",
            ha="center",
        )
    ax.margins(y=0.15)


def attribution_maps(
    gallery: Sequence[Mapping[str, Any]], names: Sequence[str], top: int
) -> Figure:
    """Draw a row of panels for each image: the image, and the `top` superpixels of each method.

    Red superpixels count for the digit, blue ones against it.
    """
    figure = Figure(figsize=(1.7 * (len(names) + 1), 1.8 * len(gallery)), layout="constrained")
    axes = figure.subplots(len(gallery), len(names) + 1, squeeze=False)
    for line, one in zip(axes, gallery):
        image = np.asarray(one["image"]).reshape(28, 28)
        line[0].imshow(image, cmap="gray_r")
        line[0].set_ylabel(f"seen as {one['digit']}", fontsize="small")
        for ax, name in zip(line[1:], names):
            ax.imshow(image, cmap="gray_r", alpha=0.25)
            ax.imshow(
                _top_map(np.asarray(one["phi"][name]), top, len(image)),
                cmap="RdBu_r",
                vmin=-1,
                vmax=1,
            )
    for ax, title in zip(axes[0], ["image", *names]):
        ax.set_title(title, fontsize="small")
    for ax in axes.ravel():
        ax.set(xticks=[], yticks=[])
    return figure


def _top_map(phi: FloatArray, top: int, pixels: int) -> FloatArray:
    """Return an image (pixels, pixels) of φ at the `top` superpixels, divided by the largest |φ|.

    All other pixels are masked.
    """
    side = round(len(phi) ** 0.5)
    shown = np.full(len(phi), np.nan)
    leading = np.argsort(-np.abs(phi), kind="stable")[:top]
    shown[leading] = phi[leading] / (np.abs(phi[leading]).max() or 1.0)
    enlarged = np.kron(shown.reshape(side, side), np.ones((pixels // side, pixels // side)))
    return np.ma.masked_invalid(enlarged)
