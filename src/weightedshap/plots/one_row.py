"""Figures of one row: waterfall, contributions by coalition size, and maps of images."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle, product
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from weightedshap._checks import FloatArray, IntArray, check_positive_integer, look_up
from weightedshap._format import number, percent
from weightedshap.curves import rank_features
from weightedshap.explanation import Explanation
from weightedshap.explanation.export import row_position
from weightedshap.plots import style
from weightedshap.plots.axes import (
    OUTSIDE_LEGEND,
    SIGNED,
    axes_or_new,
    bar_axes,
    draw_colour_bar,
    draw_error_lines,
    draw_legend,
    draw_legend_on_top,
    finish_axes,
    format_tick,
    legend_axes,
    limit_ticks,
    set_integer_axis,
    write_at_side,
)
from weightedshap.plots.data import (
    Output,
    chosen_weight_in_words,
    display_factors,
    explained_game,
    feature_column,
    format_cell,
    largest,
    predictions_by_scale,
    row_name,
    select_output,
)

NOT_ATTRIBUTED: dict[str, Any] = {
    "color": "#F0F0F0",
    "edgecolor": style.DARK_GREY,
    "hatch": "////",
}
"""Colours and hatch of the bar for the part of f(x) that is not attributed."""


@dataclass(frozen=True)
class WaterfallStep:
    """One bar of a waterfall plot: its name, signed length, standard error and colours."""

    name: str
    length: float
    error: float = 0.0  # 0 where there is none to show, NaN where it is unknown
    looks: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The signed length of the bar as text, with its standard error."""
        margin = "" if self.error == 0 else f" ± {number(self.error, 1)}"
        return number(self.length, 3, sign=True) + margin


def waterfall(
    explanation: Explanation,
    row: int,
    output: Output = 0,
    max_display: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """Draw how the features of one row lead from the base value v(∅) to the prediction f(x).

    A weighted attribution need not add up. If a moderate factor makes it add up, φ* is drawn
    multiplied by this factor, and the title says so. Otherwise all bars start at 0, and the
    unattributed remainder, `efficiency_gap`, is a hatched bar of its own. The `max_display` largest
    |φ*| have a bar each, and all others share one. Thin lines show ± one standard error of φ* where
    it was sampled.
    """
    row = row_position(explanation, row)
    explanation, title = select_output(explanation, output)
    factor = float(display_factors(explanation)[row])
    steps = _waterfall_steps(explanation, row, max_display, factor)
    base = float(explanation.base_values[row])
    prediction = float(explanation.predictions[row])
    if math.isnan(factor):
        ax = _draw_side_by_side(ax, steps)
        remark = "φ* does not add up to f(x): bars from 0, the rest is hatched"
    else:
        ax = _draw_running_total(ax, steps, base, prediction)
        remark = f"φ* × {number(factor, 2)}, so that it adds up to f(x)"
    signs = [Patch(color=style.RAISES), Patch(color=style.LOWERS)]
    draw_legend_on_top(ax, signs, ["raises the prediction", "lowers it"])

    # f(x) is on the scale of the game, and in parentheses on the judge's scale, with its name.
    own_scale, *other_scales = predictions_by_scale(explanation, row).items()
    ends = f"base {number(base)}, f(x) {number(own_scale[1])}"
    for scale, value in other_scales:
        ends += f" ({scale} {number(value)})"
    weight = chosen_weight_in_words(explanation, row)
    limit_ticks(
        ax,
        f"{row_name(explanation, row)}: {ends}",
        f"{explained_game(explanation, row)}; weight: {weight}",
    )
    return finish_axes(ax, title, "" if factor == 1 else remark)


def _draw_running_total(
    ax: Axes | None, steps: Sequence[WaterfallStep], base: float, prediction: float
) -> Axes:
    """Draw bars from the base to the prediction, each starting where the previous one ends."""
    names = ["base, no feature known", *(step.name for step in steps), "prediction f(x)"]
    ax, places = bar_axes(ax, names, head=0.3)
    levels = base + np.cumsum([0.0, *(step.length for step in steps)])  # before and after each step
    _draw_steps(ax, steps, places[1:-1], levels[:-1])
    ax.vlines(levels, places[:-1], places[1:], color=style.DARK_GREY, linewidth=0.7, zorder=0)
    ax.plot([base, prediction], places[[0, -1]], "D", color="black", markersize=5)
    texts = [number(base), *(step.label for step in steps), number(prediction)]
    write_at_side(ax, places, texts)
    return ax


def _draw_side_by_side(ax: Axes | None, steps: Sequence[WaterfallStep]) -> Axes:
    """Draw bars that all start at 0; a line separates the last one, the unattributed remainder."""
    ax, places = bar_axes(ax, [step.name for step in steps], head=0.3)
    _draw_steps(ax, steps, places, np.zeros(len(steps)))
    ax.axhline(places[-2:].mean(), color=style.DARK_GREY, linewidth=0.8, linestyle=":")
    ax.axvline(0, color="black", linewidth=0.8)
    write_at_side(ax, places, [step.label for step in steps])
    return ax


def _draw_steps(
    ax: Axes, steps: Sequence[WaterfallStep], places: FloatArray, starts: FloatArray
) -> None:
    """Draw a horizontal bar with an error line for each `WaterfallStep`.

    `places` are the vertical positions of the bars, and `starts` the values at which they begin.
    """
    for step, start, place in zip(steps, starts, places, strict=True):
        looks = {"color": style.RAISES if step.length >= 0 else style.LOWERS} | step.looks
        ax.barh(place, step.length, left=start, height=0.62, **looks)
    errors = np.array([step.error for step in steps])
    if errors.any():
        draw_error_lines(ax, starts + [step.length for step in steps], places, errors)
    # With sticky edges, bars would stand at the edge.
    ax.use_sticky_edges = False


def _waterfall_steps(
    explanation: Explanation, row: int, max_display: int, factor: float
) -> list[WaterfallStep]:
    """Return a bar for each of the largest attributions, times `factor`, and one for all others.

    If the factor is NaN, φ* is not multiplied, and a bar for the unattributed part is added.
    """
    scale = 1.0 if math.isnan(factor) else factor
    phi = scale * explanation.values[row]
    errors = np.zeros(len(phi))
    if explanation.standard_errors is not None:
        errors = scale * explanation.standard_errors[row]
    top, others = np.split(rank_features(phi), [check_positive_integer("max_display", max_display)])
    steps = [
        WaterfallStep(_name_with_value(explanation, row, i), phi[i], errors[i])
        for i in top.tolist()
    ]
    if len(others):
        name = f"sum of {len(others):,} other features" if len(others) > 1 else "1 other feature"
        steps.append(WaterfallStep(name, float(phi[others].sum()), looks={"alpha": 0.45}))
    if math.isnan(factor):
        name = "not attributed"
        if len(phi) != explanation.family.d:
            name += ", or to features left out"
        gap = float(explanation.efficiency_gap[row])
        steps.append(WaterfallStep(name, gap, looks=NOT_ATTRIBUTED))
    return steps


def _name_with_value(explanation: Explanation, row: int, i: int) -> str:
    """Return the name and value of a feature, ``age = 39``; only the name if it is not a column."""
    name = explanation.feature_names[i]
    column = feature_column(explanation, i)
    return name if column is None else f"{name} = {format_cell(column.iloc[row])}"


def sizes(
    explanation: Explanation,
    row: int,
    output: Output = 0,
    max_display: int = 6,
    ax: Axes | None = None,
) -> Axes:
    """Plot the contributions of the most influential features of one row by coalition size j.

    This shows why the weights matter. The weight vector w* chosen for the row is drawn below, in
    grey.
    """
    row = row_position(explanation, row)
    explanation, title = select_output(explanation, output)
    if explanation.contributions is None:
        raise ValueError(
            "Δ was not kept, so it cannot be drawn. Explain with keep_contributions=True."
        )
    delta = explanation.contributions[row]  # (sizes, d)
    top = largest(explanation.values[row], max_display)
    weight = f"chosen weight w*: {chosen_weight_in_words(explanation, row)}"
    names = [*(explanation.feature_names[i] for i in top), weight]
    ax = legend_axes(ax, names)

    # The weight fills the lowest quarter of the Axes.
    height = 0.25 * explanation.weights[row] / explanation.weights[row].max()
    j = np.arange(1, len(delta) + 1)
    edges = np.append(0, j) + 0.5
    weight_bars = ax.stairs(
        height,
        edges,
        fill=True,
        color=style.GREY,
        transform=ax.get_xaxis_transform(),
        zorder=0,
    )
    marker = "o" if len(delta) <= 15 else None
    lines = [
        ax.plot(j, delta[:, i], color=colour, linestyle=dashes, marker=marker, markersize=4)[0]
        for i, (dashes, colour) in zip(top, cycle(product(("-", "--", ":", "-."), style.PALETTE)))
    ]
    ax.axhline(0, color="black", linewidth=0.8)
    ax.yaxis.set_major_formatter(format_tick)
    label = f"{row_name(explanation, row)}, size j (added to j − 1 others)"
    set_integer_axis(ax, label, 0.5, len(delta) + 0.5)
    ax.set_ylabel(f"marginal contribution $\\Delta_j$\n{explained_game(explanation, row)}")
    draw_legend(ax, [*lines, weight_bars], names, **OUTSIDE_LEGEND)
    return finish_axes(ax, title)


def image(
    explanation: Explanation,
    row: int,
    picture: npt.ArrayLike,
    segments: npt.ArrayLike,
    output: Output = 0,
    values: str = "WeightedSHAP",
    top: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a map of the attribution of an image whose features are superpixels.

    Orange raises f(x), blue lowers it.

    Parameters
    ----------
    picture : (H, W), or (H, W, c) with colours; drawn in grey underneath
    segments : (H, W) the feature of each pixel, 0..d−1; −1 for pixels that belong to no feature
    values : "WeightedSHAP" or "Shapley". For both, draw on two Axes.
    top : mark only this share of the features, those with the largest |φ|; 0.1 is the paper's
        figure of MNIST
    """
    row = row_position(explanation, row)
    explanation, title = select_output(explanation, output)
    attributions = {"WeightedSHAP": explanation.values, "Shapley": explanation.shapley}
    phi = look_up("kind of values", values, attributions)[row]
    grey = _brightness(picture)
    feature_of_pixel = _check_segments(segments, len(phi))
    if grey.shape != feature_of_pixel.shape:
        raise ValueError(
            f"`picture` has {grey.shape} pixels, `segments` {feature_of_pixel.shape}: they must be"
            " the same."
        )
    # The 0 appended to the features is for pixels without a feature, whose index is −1.
    opacity = np.append(_opacity(phi, top), 0.0)[feature_of_pixel]
    attribution = np.append(phi, 0.0)[feature_of_pixel]
    limit = float(np.abs(phi).max()) or 1.0

    ax = axes_or_new(ax)
    # From mid-grey to light grey, so that colours stand out.
    darkest = float(np.nanmin(grey))
    lightest = float(np.nanmax(grey))
    span = (lightest - darkest) or 1.0
    ax.imshow(grey, cmap="gray", vmin=darkest - 0.9 * span, vmax=lightest + 0.2 * span)
    colours = ax.imshow(
        attribution, alpha=opacity, interpolation="nearest", vmin=-limit, vmax=limit, cmap=SIGNED
    )
    share = "" if top is None else f" of the top {percent(top)}"
    label = (
        f"{row_name(explanation, row)}, φ{share}\n"
        f"{values} of {explained_game(explanation, row, values)}"
    )
    draw_colour_bar(ax, colours, label, below=True)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return finish_axes(ax, title)


def _brightness(picture: npt.ArrayLike) -> FloatArray:
    """Return the brightness (H, W) of a picture, which may have colours."""
    array = np.asarray(picture, dtype=np.float64)
    if array.ndim == 3 and array.shape[2] in (1, 3, 4):
        return np.asarray(array[..., : min(array.shape[2], 3)].mean(axis=2))
    if array.ndim == 2 and array.size:
        return array
    raise ValueError(f"`picture` must have shape (H, W) or (H, W, 1, 3 or 4); got {array.shape}.")


def _check_segments(segments: npt.ArrayLike, d: int) -> IntArray:
    """Check the map of pixels to features −1..d−1; return it as an array of integers (H, W)."""
    array = np.asarray(segments)
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"`segments` must be integers of shape (H, W); got {array.dtype} {array.shape}."
        )
    if array.size and not (array.min() >= -1 and array.max() < d):
        raise ValueError(
            f"`segments` must hold the features 0..{d - 1}, or −1 for none; got"
            f" {array.min()}..{array.max()}. Superpixels counted from 1 need `segments - 1`."
        )
    return array.astype(np.intp)


def _opacity(phi: FloatArray, top: float | None) -> FloatArray:
    """Return the opacity (d,) with which each feature is drawn: |φ| relative to the largest.

    With `top`, a share of the features, those with the largest |φ| are opaque, and all others
    transparent.
    """
    size = np.abs(phi)
    if top is None:
        return np.asarray(size / (size.max() or 1.0))
    if isinstance(top, bool) or not 0 < top <= 1:
        raise ValueError(
            f"`top` must be a share of the features, above 0 and at most 1; got {top!r}."
        )
    n_marked = math.ceil(top * len(phi) - 1e-9)
    is_marked = np.isin(np.arange(len(phi)), largest(phi, n_marked))
    return np.where(is_marked & (size > 0), 1.0, 0.0)
