"""What the figures share: colours, Axes, names, legends and error lines."""

import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.font_manager import fontManager
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator

from weightedshap.checks import FloatArray

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, "#E69F00", "#56B4E9", "#000000")
GREY, DARK_GREY = "#D9D9D9", "#8C8C8C"
OF_GAMES = (BLUE, "#E69F00", GREEN, PURPLE, "#56B4E9", "#000000")  # vermilion is Shapley's

WIDTH, HEIGHT = 5.5, 3.6  # inches: one column of a paper
NAME_WIDTH = 26  # letters in a line beside a bar
AT_SIDE: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1, 0.5)}  # a legend to the right of the Axes
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


def bar_axes(
    ax: Axes | None, names: Sequence[str], slot: float = 0.26, head: float = 0, total: int = 0
) -> tuple[Axes, FloatArray]:
    """Axes with names, set in lines, for horizontal bars, the first on top; and where each stands: 0, 1, … if short."""
    texts = [in_lines(name) for name in names]
    room = np.array([max(1.0, 0.62 * (text.count("\n") + 1)) for text in texts])
    places = np.cumsum(room) - room / 2 - 0.5
    ax = axes(ax, head + max(2.2, 1.0 + slot * float(room.sum())))
    ax.set_yticks(places, texts, parse_math=False, fontsize="small")
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(room.sum() - 0.4, -0.6)
    if len(names) < total:
        ax.set_ylabel(f"the first {len(names)} of {total:,} features", fontsize="small")
    return ax, places


def legend_axes(ax: Axes | None, names: Sequence[str]) -> Axes:
    """Axes with room for the names at their side, 0.15 inches for each line."""
    return axes(ax, max(HEIGHT, 0.5 + 0.15 * sum(in_lines(name).count("\n") + 1.4 for name in names)))


def finished(ax: Axes, title: str | None) -> Axes:
    """Without the frame lines that carry no data; with the output's name where there are several, and all fonts."""
    ax.spines[["top", "right"]].set_visible(False)
    if title is not None:
        ax.set_title(in_lines(title, 50), parse_math=False)
    installed = set(fontManager.get_font_names())
    fallback = [name for name in FONTS if name in installed]
    for text in ax.findobj(Text):
        text.set_fontfamily(list(dict.fromkeys([*text.get_fontfamily(), *fallback])))
    return ax


def whole_numbers(ax: Axes, label: str, low: float, high: float) -> None:
    """An x axis with ticks at integers only."""
    ax.set(xlabel=label, xlim=(low, high))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def few_ticks(ax: Axes, label: str) -> None:
    """An x axis with no more ticks than fit beside long names."""
    ax.set_xlabel(label)
    ax.xaxis.set_major_locator(MaxNLocator(5))


def legend_on_top(ax: Axes, handles: Sequence[Any], names: Sequence[str]) -> None:
    """A legend in a strip of its own above the first bar, where it covers no data."""
    bottom, top = ax.get_ylim()
    lines = max(in_lines(name).count("\n") for name in names) + 1
    strip, height = 0.15 + 0.15 * lines, ax.bbox.height / ax.figure.dpi  # inches
    ax.set_ylim(bottom, top - (bottom - top) * strip / max(height - strip, strip))
    legend(ax, handles, names, loc="upper right", ncols=len(names), borderaxespad=0.0, borderpad=0.2)


def legend(ax: Axes, handles: Sequence[Any], names: Sequence[str], **place: Any) -> None:
    """A legend whose names are set as they are, a leading underscore or $ included."""
    made = ax.legend(handles, [""] * len(handles), frameon=False, fontsize="small", title_fontsize="small", **place)
    for text, name in zip(made.get_texts(), names, strict=True):
        text.set(text=in_lines(name), parse_math=False)


def colour_bar(ax: Axes, mappable: ScalarMappable, label: str) -> Colorbar:
    """A narrow colour bar beside `ax`, which keeps its place in the figure."""
    bar = ax.figure.colorbar(mappable, cax=ax.inset_axes((1.03, 0, 0.025, 1)))
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize="small")
    bar.set_label(label, fontsize="small")
    return bar


def error_lines(ax: Axes, ends: FloatArray, places: FloatArray, errors: FloatArray) -> None:
    """± one standard error at the ends of horizontal bars; ``±?`` where it is unknown."""
    ax.errorbar(ends, places, xerr=errors, fmt="none", ecolor="#404040", elinewidth=1)
    unknown = np.isnan(errors)
    for at in zip(ends[unknown], places[unknown], strict=True):
        shift, side = (3, "left") if at[0] >= 0 else (-3, "right")
        text = ax.annotate("±?", at, (shift, 0), textcoords="offset points", ha=side, va="center", fontsize="x-small")
        text.set_in_layout(False)


def in_lines(name: str, width: int = NAME_WIDTH) -> str:
    """A name in lines of at most `width` letters, every letter kept."""
    return "\n".join(textwrap.wrap(name, width)) or name
