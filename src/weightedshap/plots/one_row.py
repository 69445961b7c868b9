"""Figures of one row: from the base to the prediction, contributions by size, and maps of
images."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle, product
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from weightedshap._checks import FloatArray, IntArray, look_up, positive_integer
from weightedshap._format import number, percent
from weightedshap.curves import order_of
from weightedshap.explanation import Explanation
from weightedshap.plots import axes as drawing
from weightedshap.plots import data as reading
from weightedshap.plots import style
from weightedshap.plots.axes import Canvas
from weightedshap.plots.data import Output

APART: dict[str, Any] = {"color": "#F0F0F0", "edgecolor": style.DARK_GREY, "hatch": "////"}


@dataclass(frozen=True)
class Step:
    """A bar of the waterfall."""

    name: str
    length: float
    error: float = 0.0  # 0 where there is none to show, NaN where it is unknown
    looks: dict[str, Any] = field(default_factory=dict)

    @property
    def number(self) -> str:
        return number(self.length, 3, sign=True) + (
            "" if self.error == 0 else f" ± {number(self.error, 1)}"
        )


def waterfall(
    explanation: Explanation, row: int, output: Output = 0, max_display: int = 10, ax: Canvas = None
) -> Axes:
    """How the features of one row lead from game(∅), the base, to the prediction f(x).

    A weighted attribution need not add up. Where a moderate factor makes it do so, φ* is drawn
    multiplied by it, and the title says so. Where none does, the bars stand side by side, each from
    0, and what is left over, `efficiency_gap`, is a hatched bar apart. The `max_display` largest
    |φ*| have a bar each, the others one together. Thin lines show ± one standard error of φ* where
    it was sampled.
    """
    row = reading.row_position(explanation, row)
    explanation, title = reading.one_output(explanation, output)
    factor = float(reading.factors(explanation)[row])
    steps = _steps(explanation, row, max_display, factor)
    ends = float(explanation.base_values[row]), float(explanation.predictions[row])
    if math.isnan(factor):
        ax = _side_by_side(ax, steps)
        said = "φ* does not add up to f(x): bars from 0, the rest apart"
    else:
        ax = _running(ax, steps, *ends)
        said = f"φ* × {number(factor, 2)}, so that it adds up to f(x)"
    signs = [Patch(color=style.RAISES), Patch(color=style.LOWERS)]
    drawing.legend_on_top(ax, signs, ["raises the prediction", "lowers it"])
    f_x, *others = (
        f"{scale} {number(value)}" for scale, value in reading.predicted(explanation, row).items()
    )
    base = f"base {number(ends[0])}, f(x) {f_x.split()[-1]}" + "".join(
        f" ({other})" for other in others
    )
    weight = (
        f"{reading.game_shown(explanation, row)}; weight: {reading.chosen_weight(explanation, row)}"
    )
    drawing.few_ticks(ax, f"{reading.row_name(explanation, row)}: {base}", weight)
    return drawing.finished(ax, title, "" if factor == 1 else said)


def _running(ax: Canvas, steps: Sequence[Step], base: float, prediction: float) -> Axes:
    """Bars that each begin where the one before ends."""
    names = ["base, no feature known", *(step.name for step in steps), "prediction f(x)"]
    ax, places = drawing.bar_axes(ax, names, head=0.3)
    levels = base + np.cumsum([0.0, *(step.length for step in steps)])  # before and after each step
    _draw_steps(ax, steps, places[1:-1], levels[:-1])
    ax.vlines(levels, places[:-1], places[1:], color=style.DARK_GREY, linewidth=0.7, zorder=0)
    ax.plot([base, prediction], places[[0, -1]], "D", color="black", markersize=5)
    drawing.at_side(
        ax, places, [number(base), *(step.number for step in steps), number(prediction)]
    )
    return ax


def _side_by_side(ax: Canvas, steps: Sequence[Step]) -> Axes:
    """Bars that all begin at 0, with a line before the last, which is not attributed."""
    ax, places = drawing.bar_axes(ax, [step.name for step in steps], head=0.3)
    _draw_steps(ax, steps, places, np.zeros(len(steps)))
    ax.axhline(places[-2:].mean(), color=style.DARK_GREY, linewidth=0.8, linestyle=":")
    ax.axvline(0, color="black", linewidth=0.8)
    drawing.at_side(ax, places, [step.number for step in steps])
    return ax


def _draw_steps(ax: Axes, steps: Sequence[Step], places: FloatArray, starts: FloatArray) -> None:
    for step, start, place in zip(steps, starts, places, strict=True):
        looks = {"color": style.RAISES if step.length >= 0 else style.LOWERS} | step.looks
        ax.barh(place, step.length, left=start, height=0.62, **looks)
    errors = np.array([step.error for step in steps])
    if errors.any():
        drawing.error_lines(ax, starts + [step.length for step in steps], places, errors)
    ax.use_sticky_edges = False  # bars would stand at the edge


def _steps(explanation: Explanation, row: int, max_display: int, factor: float) -> list[Step]:
    """The largest features and the sum of the others, times the factor; without one, also what is
    not attributed."""
    by = 1.0 if math.isnan(factor) else factor
    phi = by * explanation.values[row]
    errors = (
        np.zeros(len(phi))
        if explanation.standard_errors is None
        else by * explanation.standard_errors[row]
    )
    top, rest = np.split(order_of(phi), [positive_integer("max_display", max_display)])
    steps = [Step(_with_value(explanation, row, i), phi[i], errors[i]) for i in top.tolist()]
    if len(rest):
        name = f"sum of {len(rest):,} other features" if len(rest) > 1 else "1 other feature"
        steps.append(Step(name, float(phi[rest].sum()), looks={"alpha": 0.45}))
    if math.isnan(factor):
        name = "not attributed" + (
            "" if len(phi) == explanation.family.d else ", or to features left out"
        )
        steps.append(Step(name, float(explanation.efficiency_gap[row]), looks=APART))
    return steps


def _with_value(explanation: Explanation, row: int, i: int) -> str:
    """``age = 39``, or the name alone where the feature is not a column."""
    name = explanation.feature_names[i]
    values = reading.column(explanation, i)
    return name if values is None else f"{name} = {reading.cell(values.iloc[row])}"


def sizes(
    explanation: Explanation, row: int, output: Output = 0, max_display: int = 6, ax: Canvas = None
) -> Axes:
    """Why the weights matter: Δ_j of the most influential features of one row, and w* in grey,
    against the size j."""
    row = reading.row_position(explanation, row)
    explanation, title = reading.one_output(explanation, output)
    if explanation.contributions is None:
        raise ValueError(
            "Δ was not kept, so it cannot be drawn. Explain with keep_contributions=True."
        )
    delta = explanation.contributions[row]  # (sizes, d)
    top = reading.largest(explanation.values[row], max_display)
    weight = f"chosen weight w*: {reading.chosen_weight(explanation, row)}"
    names = [*(explanation.feature_names[i] for i in top), weight]
    ax = drawing.legend_axes(ax, names)
    # The lowest quarter of the Axes.
    height = 0.25 * explanation.weights[row] / explanation.weights[row].max()
    j = np.arange(1, len(delta) + 1)
    marker = "o" if len(delta) <= 15 else None
    edges = np.append(0, j) + 0.5
    foot_of = ax.get_xaxis_transform()
    foot = ax.stairs(height, edges, fill=True, color=style.GREY, transform=foot_of, zorder=0)
    lines = [
        ax.plot(j, delta[:, i], color=colour, linestyle=dashes, marker=marker, markersize=4)[0]
        for i, (dashes, colour) in zip(top, cycle(product(("-", "--", ":", "-."), style.PALETTE)))
    ]
    ax.axhline(0, color="black", linewidth=0.8)
    ax.yaxis.set_major_formatter(drawing.numeral)
    known = f"{reading.row_name(explanation, row)}, size j (added to j − 1 others)"
    drawing.whole_numbers(ax, known, 0.5, len(delta) + 0.5)
    ax.set_ylabel(f"marginal contribution $\\Delta_j$\n{reading.game_shown(explanation, row)}")
    drawing.legend(ax, [*lines, foot], names, **drawing.AT_SIDE)
    return drawing.finished(ax, title)


def image(
    explanation: Explanation,
    row: int,
    picture: npt.ArrayLike,
    segments: npt.ArrayLike,
    output: Output = 0,
    values: str = "WeightedSHAP",
    top: float | None = None,
    ax: Canvas = None,
) -> Axes:
    """A map of the attribution of an image whose features are superpixels: orange raises f(x), blue
    lowers it.

    Parameters
    ----------
    picture : (H, W), or (H, W, c) with colours; drawn in grey underneath
    segments : (H, W) the feature that each pixel belongs to, 0..d−1; −1 for pixels of none
    values : "WeightedSHAP" or "Shapley". For both, draw on two Axes.
    top : mark only this share of the features, those with the largest |φ|; 0.1 is the paper's
        figure of MNIST
    """
    row = reading.row_position(explanation, row)
    explanation, title = reading.one_output(explanation, output)
    phi = look_up(
        "kind of values",
        values,
        {"WeightedSHAP": explanation.values, "Shapley": explanation.shapley},
    )[row]
    grey = _grey(picture)
    players = _segments(segments, len(phi))
    if grey.shape != players.shape:
        raise ValueError(
            f"`picture` has {grey.shape} pixels, `segments` {players.shape}: they must be the same."
        )
    strength = np.append(_strength(phi, top), 0.0)[players]
    limit = float(np.abs(phi).max()) or 1.0
    ax = drawing.axes(ax)
    low = float(np.nanmin(grey))
    high = float(np.nanmax(grey))
    span = (high - low) or 1.0  # drawn from mid-grey to light grey, so that colours stand out
    ax.imshow(grey, cmap="gray", vmin=low - 0.9 * span, vmax=high + 0.2 * span)
    attribution = np.append(phi, 0.0)[players]
    colours: dict[str, Any] = {"vmin": -limit, "vmax": limit, "cmap": drawing.SIGNED}
    drawn = ax.imshow(attribution, alpha=strength, interpolation="nearest", **colours)
    shown = f"{values} of {reading.game_shown(explanation, row, values)}"
    under = f"{reading.row_name(explanation, row)}, φ" + (
        "" if top is None else f" of the top {percent(top)}"
    )
    drawing.colour_bar(ax, drawn, f"{under}\n{shown}", below=True)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return drawing.finished(ax, title)


def _grey(picture: npt.ArrayLike) -> FloatArray:
    """(H, W) brightness of a picture."""
    array = np.asarray(picture, dtype=np.float64)
    if array.ndim == 3 and array.shape[2] in (1, 3, 4):
        return np.asarray(array[..., : min(array.shape[2], 3)].mean(axis=2))
    if array.ndim == 2 and array.size:
        return array
    raise ValueError(f"`picture` must have shape (H, W) or (H, W, 1, 3 or 4); got {array.shape}.")


def _segments(segments: npt.ArrayLike, d: int) -> IntArray:
    array = np.asarray(segments)
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.integer):
        raise ValueError(
            f"`segments` must be integers of shape (H, W); got {array.dtype} {array.shape}."
        )
    if array.size and not (array.min() >= -1 and array.max() < d):
        said = (
            f"`segments` must hold the features 0..{d - 1}, or −1 for none; got"
            f" {array.min()}..{array.max()}."
        )
        raise ValueError(f"{said} Superpixels counted from 1 need `segments - 1`.")
    return array.astype(np.intp)


def _strength(phi: FloatArray, top: float | None) -> FloatArray:
    """How much each feature hides of the picture: its share of the largest |φ|, or all of the top
    ones."""
    size = np.abs(phi)
    if top is None:
        return np.asarray(size / (size.max() or 1.0))
    if isinstance(top, bool) or not 0 < top <= 1:
        raise ValueError(
            f"`top` must be a share of the features, above 0 and at most 1; got {top!r}."
        )
    marked = np.isin(np.arange(len(phi)), reading.largest(phi, math.ceil(top * len(phi) - 1e-9)))
    return np.where(marked & (size > 0), 1.0, 0.0)
