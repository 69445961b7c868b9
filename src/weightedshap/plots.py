"""Figures of an Explanation.

Each function takes the explanation and ``ax=None``, draws on `ax` or on a new figure, and returns the
Axes. Nothing is shown, and no setting of matplotlib is changed. Colours are those of Okabe and Ito, which
colour-blind readers can tell apart; lines differ in dashes too, so that a grey print stays readable.

To add a figure, write a function here and one method in `PlotAccessor`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from weightedshap.checks import FloatArray, IntArray, positive_integer
from weightedshap.curves import area, mean_interval
from weightedshap.explanation import Explanation
from weightedshap.export import place_of
from weightedshap.weights import WeightFamily, shapley

__all__ = ["PlotAccessor", "bar", "recovery", "sizes", "weights"]

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, "#E69F00", "#56B4E9", "#000000")
GREY = "#D9D9D9"
STYLES = {
    "WeightedSHAP": (BLUE, "-", 2.2),
    "Shapley": (VERMILION, "--", 1.8),
    "first": (GREEN, ":", 1.5),
    "last": (PURPLE, "-.", 1.5),
}

FIGURE_SIZE = (5.6, 3.6)
NAME_WIDTH = 34
SHOW_ALL_WEIGHTS = 20
MOST_WEIGHTS = 30


class PlotAccessor:
    """The figures of one explanation: ``explanation.plot.recovery()`` is ``recovery(explanation)``."""

    def __init__(self, explanation: Explanation) -> None:
        self.explanation = explanation

    def recovery(self, output: int | str = 0, ax: Axes | None = None) -> Axes:
        """See `weightedshap.plots.recovery`."""
        return recovery(self.explanation, output, ax)

    def weights(self, output: int | str = 0, ax: Axes | None = None) -> Axes:
        """See `weightedshap.plots.weights`."""
        return weights(self.explanation, output, ax)

    def bar(self, row: int | None = None, output: int | str = 0, max_display: int = 10, ax: Axes | None = None) -> Axes:
        """See `weightedshap.plots.bar`."""
        return bar(self.explanation, row, output, max_display, ax)

    def sizes(self, row: int, output: int | str = 0, max_display: int = 6, ax: Axes | None = None) -> Axes:
        """See `weightedshap.plots.sizes`."""
        return sizes(self.explanation, row, output, max_display, ax)


def recovery(explanation: Explanation, output: int | str = 0, ax: Axes | None = None) -> Axes:
    """How fast the prediction is recovered: mean |f(x) − v(top k)| against k = 0..d.

    One line each for WeightedSHAP, Shapley, first and last, with 95 % bands over the rows (none for a
    single row). The legend gives the mean area under each line, k = 1..d.
    """
    every = {"WeightedSHAP": explanation.curves}
    every |= {_title(name): curves for name, curves in explanation.reference_curves.items()}
    drawn = {name: _of_output(explanation, curves, output) for name, curves in every.items()}
    ax = _axes(ax)
    k = np.arange(explanation.curves.shape[1])
    for name, curves in drawn.items():
        _draw_curve(ax, k, name, curves)
    ax.set_xlim(0, k[-1])
    ax.set_ylim(bottom=0)
    ax.set_xlabel("number of features known, most influential first")
    ax.set_ylabel("mean |f(x) − v(top k)|")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    ax.legend(title="area under the curve", frameon=False)
    return _finished(ax, explanation, output)


def _draw_curve(ax: Axes, k: IntArray, name: str, curves: FloatArray) -> None:
    colour, dashes, width = STYLES[name]
    mean, margin = mean_interval(curves)
    label = f"{name} {area(mean):.3g}"
    ax.plot(k, mean, color=colour, linestyle=dashes, linewidth=width, label=label, zorder=3 if dashes == "-" else 2)
    if not np.isnan(margin).any():
        ax.fill_between(k, np.maximum(mean - margin, 0), mean + margin, color=colour, alpha=0.12, linewidth=0)


def weights(explanation: Explanation, output: int | str = 0, ax: Axes | None = None) -> Axes:
    """How often each weight was chosen, as a share of the rows; the Shapley weight stands out.

    Weights run from small coalitions (top) to large ones (bottom). Of a family with more than 20 weights
    only those that were chosen are shown, the 30 most frequent at most, and the Shapley weight.
    """
    family = explanation.family
    share = chosen_shares(explanation, output)
    ax = _axes(ax)
    uniform = family.index(shapley(family.d).vectors[0])
    shown = _weights_to_show(family, share, uniform)
    colours = [VERMILION if index == uniform else BLUE for index in shown]
    bars = ax.barh(np.arange(len(shown)), 100 * share[shown], color=colours, height=0.75)
    ax.bar_label(bars, [f"{100 * s:.0f} %" if s > 0 else "" for s in share[shown]], padding=3, fontsize="small")
    _name_bars(ax, [_weight_name(family, int(index), uniform) for index in shown])
    ax.set_xlim(0, 112 * max(share.max(), 0.01))
    ax.set_xlabel("rows that chose the weight, %")
    ax.set_ylabel("← large coalitions      small coalitions →", fontsize="small")
    return _finished(ax, explanation, output)


def chosen_shares(explanation: Explanation, output: int | str = 0) -> FloatArray:
    """(m,) share of the rows that chose each weight of the family."""
    labels = _of_output(explanation, np.asarray(explanation.weight_labels), output)
    return np.array([(labels == label).mean() for label in explanation.family.labels])


def _weights_to_show(family: WeightFamily, share: FloatArray, uniform: int | None) -> IntArray:
    """Positions in the family, from small coalitions to large ones."""
    shown = np.arange(len(family))
    if len(family) > SHOW_ALL_WEIGHTS:
        frequent = np.argsort(-share, kind="stable")[:MOST_WEIGHTS]
        shown = np.unique([*frequent[share[frequent] > 0], *([] if uniform is None else [uniform])])
    mean_size = family.vectors[shown] @ np.arange(family.d)
    return np.asarray(shown[np.argsort(mean_size.round(9), kind="stable")])


def _weight_name(family: WeightFamily, index: int, uniform: int | None) -> str:
    label = family.labels[index]
    return f"{label} = Shapley" if index == uniform and label != "Shapley" else label


def bar(
    explanation: Explanation,
    row: int | None = None,
    output: int | str = 0,
    max_display: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """WeightedSHAP beside Shapley: mean |φ| over all rows, or the signed values of one `row`.

    Features are ordered by |φ*|. For one row, thin lines show ± one standard error where φ was sampled.
    """
    values = _of_output(explanation, explanation.values, output)
    reference = _of_output(explanation, explanation.shapley, output)
    if row is None:
        heights, others = np.abs(values).mean(axis=0), np.abs(reference).mean(axis=0)
    else:
        heights, others = values[_row(explanation, row)], reference[row]
    top = _top(heights, max_display)
    ax = _axes(ax)
    place = np.arange(len(top))
    errors = None if row is None else _errors(explanation, row, output)
    lines: dict[str, Any] = (
        {} if errors is None else {"xerr": errors[top], "error_kw": {"elinewidth": 1, "ecolor": "#404040"}}
    )
    ax.barh(place - 0.2, heights[top], height=0.4, color=BLUE, label="WeightedSHAP", **lines)
    ax.barh(place + 0.2, others[top], height=0.4, color=VERMILION, label="Shapley", alpha=0.8)
    ax.axvline(0, color="black", linewidth=0.8)
    _name_bars(ax, [explanation.feature_names[i] for i in top])
    ax.set_xlabel("mean |φ| over the rows" if row is None else f"φ of row {row}")
    if len(top) < len(heights):
        ax.set_ylabel(f"the first {len(top)} of {len(heights)} features")
    ax.legend(frameon=False)
    return _finished(ax, explanation, output)


def sizes(
    explanation: Explanation, row: int, output: int | str = 0, max_display: int = 6, ax: Axes | None = None
) -> Axes:
    """Why the weights matter: Δ_j of the most influential features of one row against the size j.

    A flat line is a feature whose contribution does not depend on what else is known. The grey steps at
    the foot show where the chosen weight w* looks (their height is relative to the largest weight).
    """
    if explanation.contributions is None:
        raise ValueError("Δ was not kept, so it cannot be drawn. Explain with keep_contributions=True.")
    row = _row(explanation, row)
    delta = _of_output(explanation, explanation.contributions, output)[row]  # (d, d)
    chosen = _of_output(explanation, explanation.weights, output)[row]  # (d,)
    j = np.arange(1, len(delta) + 1)
    top = _top(_of_output(explanation, explanation.values, output)[row], max_display)
    ax = _axes(ax)
    foot = _draw_weights(ax, j, chosen)
    lines = [_draw_contributions(ax, j, delta[:, i], place) for place, i in enumerate(top)]
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_xlim(0.5, len(delta) + 0.5)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    ax.set_xlabel("size j (the feature is added to j − 1 others)")
    ax.set_ylabel("marginal contribution $\\Delta_j$")
    _name_lines(ax, [*lines, foot], [*(explanation.feature_names[i] for i in top), "chosen weight w*"])
    return _finished(ax, explanation, output)


def _draw_weights(ax: Axes, j: IntArray, chosen: FloatArray) -> Any:
    """w* as grey steps in the lowest quarter of the Axes, whatever the scale of Δ."""
    edges = np.concatenate([[j[0] - 0.5], j + 0.5])
    height = 0.25 * chosen / chosen.max()
    return ax.stairs(height, edges, fill=True, color=GREY, transform=ax.get_xaxis_transform(), zorder=0)


def _draw_contributions(ax: Axes, j: IntArray, delta: FloatArray, place: int) -> Any:
    marker = "o" if len(j) <= 15 else None
    dashes = ("-", "--", ":", "-.")[place // len(PALETTE) % 4]
    return ax.plot(j, delta, color=PALETTE[place % len(PALETTE)], linestyle=dashes, marker=marker, markersize=4)[0]


def _axes(ax: Axes | None) -> Axes:
    """`ax`, or the Axes of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=FIGURE_SIZE, layout="constrained")[1]


def _finished(ax: Axes, explanation: Explanation, output: int | str) -> Axes:
    """Without the frame lines that carry no data; with the output's name where there are several."""
    ax.spines[["top", "right"]].set_visible(False)
    if explanation.has_outputs:
        ax.set_title(explanation.output_names[place_of(explanation, output)], parse_math=False)
    return ax


def _name_bars(ax: Axes, names: Sequence[str]) -> None:
    """Names at horizontal bars, the first on top; long ones are wrapped, never cut."""
    ax.set_yticks(np.arange(len(names)), [_wrapped(name) for name in names], parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(names) - 0.4, -0.6)


def _name_lines(ax: Axes, lines: Sequence[Any], names: Sequence[str]) -> None:
    """A legend to the right of the Axes. Names are set as they are, a leading underscore or $ included."""
    legend = ax.legend(lines, [""] * len(lines), loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set(text=_wrapped(name), parse_math=False)


def _wrapped(name: str) -> str:
    return "\n".join(textwrap.wrap(name, NAME_WIDTH)) or name


def _title(name: str) -> str:
    return "Shapley" if name == "shapley" else name


def _top(values: FloatArray, max_display: int) -> IntArray:
    """Positions of the largest |values|, largest first; the lower index first among equals."""
    return np.argsort(-np.abs(values), kind="stable")[: positive_integer("max_display", max_display)]


def _errors(explanation: Explanation, row: int, output: int | str) -> FloatArray | None:
    if explanation.standard_errors is None:
        return None
    return np.asarray(np.nan_to_num(_of_output(explanation, explanation.standard_errors, output)[row]))


def _row(explanation: Explanation, row: int) -> int:
    n = len(explanation)
    if not isinstance(row, (int, np.integer)) or not -n <= row < n:
        raise ValueError(f"`row` must be a position 0..{n - 1} among the rows explained; got {row!r}.")
    return int(row) % n


def _of_output(explanation: Explanation, array: Any, output: int | str) -> Any:
    """One output of an array whose last axis is k, or the array itself where there is no such axis."""
    position = place_of(explanation, output)
    return array[..., position] if explanation.has_outputs else array
