"""What the figures share: colours, Axes, names, errors, and one output or row of an explanation."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.font_manager import fontManager
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from weightedshap.checks import FloatArray, IntArray, positive_integer
from weightedshap.curves import order_of
from weightedshap.explanation import Explanation
from weightedshap.explanation.export import place_of
from weightedshap.inputs.columns import is_polars

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, "#E69F00", "#56B4E9", "#000000")
GREY, DARK_GREY = "#D9D9D9", "#8C8C8C"

WIDTH, HEIGHT = 5.5, 3.6
NAME_WIDTH = 26
LINE = 0.15  # inches
FONTS = ("DejaVu Sans", "Noto Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "Segoe UI Symbol", "Noto Emoji", "Unifont")
"""Families asked for letters that the reader's own font lacks, where they are installed."""


def low_to_high() -> Colormap:
    """From dark blue to orange; unknown is grey. Without the yellow of plasma, which is lost on white paper."""
    colours = mpl.colormaps["plasma"](np.linspace(0, 0.83, 128))
    return LinearSegmentedColormap.from_list("low to high", colours).with_extremes(bad="#9E9E9E")


def axes(ax: Axes | None, height: float = HEIGHT) -> Axes:
    """`ax`, or the Axes of a new figure of that height in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(WIDTH, height), layout="constrained")[1]


def slots(names: Sequence[str]) -> FloatArray:
    """How much height each bar gets: 1, and more where the name beside it has many lines."""
    return np.array([max(1.0, 0.62 * lines_of(name)) for name in names])


def places(names: Sequence[str]) -> FloatArray:
    """Where each bar stands: 0, 1, … as long as names are short."""
    room = slots(names)
    return np.asarray(np.cumsum(room) - room / 2 - 0.5)


def height_for(names: Sequence[str], slot: float = 0.26) -> float:
    """Inches for a figure with one bar for each name, none of which runs into the next."""
    return max(2.2, 1.0 + slot * float(slots(names).sum()))


def height_for_legend(names: Sequence[str]) -> float:
    """Inches for a figure with the names at its side."""
    return max(HEIGHT, 0.5 + LINE * sum(lines_of(name) + 0.4 for name in names))


def finished(ax: Axes, explanation: Explanation, output: int | str) -> Axes:
    """Without the frame lines that carry no data; with the output's name where there are several, and all fonts."""
    ax.spines[["top", "right"]].set_visible(False)
    if explanation.has_outputs:
        ax.set_title(wrapped(explanation.output_names[place_of(explanation, output)], 50), parse_math=False)
    installed = set(fontManager.get_font_names())
    fallback = [name for name in FONTS if name in installed]
    for text in ax.findobj(Text):
        text.set_fontfamily(list(dict.fromkeys([*text.get_fontfamily(), *fallback])))
    return ax


def whole_numbers(ax: Axes) -> None:
    """Ticks of the x axis at integers only."""
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def few_ticks(ax: Axes) -> None:
    """No more ticks on the x axis than fit beside long names."""
    ax.xaxis.set_major_locator(MaxNLocator(5))


def name_bars(ax: Axes, names: Sequence[str]) -> None:
    """Names at horizontal bars, the first on top; long ones are wrapped, never cut."""
    texts = [wrapped(name) for name in names]
    ax.set_yticks(places(names), texts, parse_math=False, fontsize="small")
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(slots(names).sum() - 0.4, -0.6)


def legend_on_top(ax: Axes, handles: Sequence[Any], names: Sequence[str]) -> None:
    """A legend in a strip of its own above the first bar, where it covers no data."""
    bottom, top = ax.get_ylim()
    strip, height = 0.3, ax.bbox.height / ax.figure.dpi  # inches
    ax.set_ylim(bottom, top - (bottom - top) * strip / max(height - strip, strip))
    place = {"loc": "upper right", "ncols": len(names), "borderaxespad": 0.0, "borderpad": 0.2}
    named_legend(ax, handles, names, **place)


def legend_at_side(ax: Axes, handles: Sequence[Any], names: Sequence[str], title: str | None = None) -> None:
    """A legend to the right of the Axes."""
    named_legend(ax, handles, names, loc="center left", bbox_to_anchor=(1, 0.5), title=title)


def named_legend(ax: Axes, handles: Sequence[Any], names: Sequence[str], **place: Any) -> None:
    """A legend whose names are set as they are, a leading underscore or $ included."""
    legend = ax.legend(handles, [""] * len(handles), frameon=False, fontsize="small", title_fontsize="small", **place)
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set(text=wrapped(name), parse_math=False)


def colour_bar(ax: Axes, mappable: Any, label: str) -> Any:
    """A narrow colour bar beside `ax`, which keeps its place in the figure."""
    bar = ax.figure.colorbar(mappable, cax=ax.inset_axes((1.03, 0, 0.025, 1)))
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize="small")
    bar.set_label(label, fontsize="small")
    return bar


def error_lines(ax: Axes, ends: FloatArray, places: Any, errors: FloatArray | None) -> None:
    """± one standard error at the ends of horizontal bars; ``±?`` where it is unknown."""
    if errors is None:
        return
    ax.errorbar(ends, places, xerr=errors, fmt="none", ecolor="#404040", elinewidth=1)
    for unknown in np.flatnonzero(np.isnan(errors)):
        at, shift = (ends[unknown], places[unknown]), (3 if ends[unknown] >= 0 else -3, 0)
        side = "left" if ends[unknown] >= 0 else "right"
        text = ax.annotate("±?", at, shift, textcoords="offset points", ha=side, va="center", fontsize="x-small")
        text.set_in_layout(False)


def wrapped(name: str, width: int = NAME_WIDTH) -> str:
    """A name in lines of at most `width` letters, every letter kept."""
    return "\n".join(textwrap.wrap(name, width)) or name


def lines_of(name: str) -> int:
    """How many lines a name takes."""
    return wrapped(name).count("\n") + 1


def largest(values: FloatArray, max_display: int) -> IntArray:
    """Positions of the largest |values|, largest first; the lower index first among equals."""
    return order_of(values)[: positive_integer("max_display", max_display)]


def errors_of(explanation: Explanation, row: int, output: int | str) -> FloatArray | None:
    """(d,) standard errors of one row, NaN where unknown; None where nothing was sampled."""
    if explanation.standard_errors is None:
        return None
    return np.asarray(of_output(explanation, explanation.standard_errors, output)[row])


def position(explanation: Explanation, row: int) -> int:
    """The position 0..n−1 of a row."""
    n = len(explanation)
    if isinstance(row, bool) or not isinstance(row, (int, np.integer)) or not -n <= row < n:
        raise ValueError(f"`row` must be a position 0..{n - 1} among the rows explained; got {row!r}.")
    return int(row) % n


def of_output(explanation: Explanation, array: Any, output: int | str) -> Any:
    """One output of an array whose last axis is k, or the array itself where there is no such axis."""
    place = place_of(explanation, output)
    return array[..., place] if explanation.has_outputs else array


def column(explanation: Explanation, i: int) -> pd.Series[Any] | None:
    """The data of feature i; None where features are not columns (groups, games)."""
    data = explanation.data
    if data is None or len(data.shape) != 2 or data.shape[1] != explanation.values.shape[1]:
        return None
    if is_polars(data):
        return pd.Series(data[:, i].to_list())
    return data.iloc[:, i] if isinstance(data, pd.DataFrame) else pd.Series(data[:, i])


def shown(cell: Any) -> str:
    """A value of a feature as people write it."""
    if pd.isna(cell):
        return "missing"
    number = isinstance(cell, (float, np.floating)) and math.isfinite(cell)
    return numeral(cell) if number else str(cell)


def numeral(value: float, form: str = ".4g") -> str:
    """A number with the minus of the axes."""
    return format(value, form).replace("-", "−")
