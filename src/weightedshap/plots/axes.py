"""Axes and their parts, as all figures use them.

Here are new Axes for bars and lines, legends, colour bars, numbers and error lines at bars, and
text wrapped to fit next to them. Colours and dimensions come from `style`. All modules that draw
figures build on this one.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.font_manager import fontManager, get_font
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, MaxNLocator

from weightedshap._checks import FloatArray
from weightedshap._format import number
from weightedshap.plots import style

LOW_TO_HIGH = LinearSegmentedColormap.from_list("low to high", style.LOW_TO_HIGH).with_extremes(
    bad=style.UNKNOWN
)
SIGNED = LinearSegmentedColormap.from_list("signed", style.SIGNED)

OUTSIDE_LEGEND: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1, 0.5)}
"""Options that place a legend to the right of the Axes."""

WORD = r"[^\s_/-]*[\s_/-]?"
"""Matches a word and the space or punctuation after it, where a line may be broken."""

DASHES: dict[str, Any] = {
    "solid": "-",
    "dash": "--",
    "dot": ":",
    "dashdot": "-.",
    "longdash": (0, (8, 2)),
    "longdashdot": (0, (5, 1, 1, 1, 1, 1)),
}
"""The dashes named in `style`, as line styles of matplotlib."""

CHARACTERS_THAT_JOIN = {0xFE0F, 0x200D}
"""Code points that combine other letters and that fonts need not contain."""


def axes_or_new(ax: Axes | None, height: float = style.HEIGHT) -> Axes:
    """Return `ax`, or, if it is None, the Axes of a new figure; `height` is in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    _, new = plt.subplots(figsize=(style.WIDTH, height), layout="constrained")
    return new


def bar_axes(
    ax: Axes | None, names: Sequence[str], slot: float = 0.26, head: float = 0, total: int = 0
) -> tuple[Axes, FloatArray]:
    """Return Axes labelled with the names of horizontal bars, and the positions of the bars.

    The first bar is on top. Bars with names of one line are at 0, 1, …; longer names take more
    room. `slot` is the height of one bar in inches, and `head` that of the space above all bars. If
    the `total` number of features is larger, a label says how many of them are shown.
    """
    texts = [wrap_text(name) for name in names]
    room = np.array([max(1.0, 0.62 * (text.count("\n") + 1)) for text in texts])
    places = np.cumsum(room) - room / 2 - 0.5
    ax = axes_or_new(ax, head + max(2.2, 1.0 + slot * float(room.sum())))
    ax.set_yticks(places, texts, parse_math=False, fontsize="small")
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(room.sum() - 0.4, -0.6)
    if len(names) < total:
        ax.set_ylabel(f"{len(names)} of {total:,} features", fontsize="small")
    return ax, places


def legend_axes(ax: Axes | None, names: Sequence[str]) -> Axes:
    """Return `ax`, or new Axes high enough for a legend of these names beside them."""
    n_lines = sum(wrap_text(name).count("\n") + 1.4 for name in names)
    return axes_or_new(ax, max(style.HEIGHT, 0.5 + 0.15 * n_lines))


def finish_axes(ax: Axes, *titles: str | None) -> Axes:
    """Hide the top and right frame lines, set the title and fallback fonts, and return `ax`.

    Each of the `titles` is one line; empty ones and None are left out.
    """
    ax.spines[["top", "right"]].set_visible(False)
    title = "\n".join(wrap_text(line, 66) for line in titles if line)
    if title:
        ax.set_title(title, parse_math=False, fontsize="medium")
    installed = set(fontManager.get_font_names())
    fallback = [name for name in style.FONTS if name in installed]
    for text in ax.findobj(Text):
        text.set_fontfamily(list(dict.fromkeys([*text.get_fontfamily(), *fallback])))
    return ax


def set_integer_axis(ax: Axes, label: str, low: float, high: float) -> None:
    """Set the label and the limits of the x axis, with ticks at integers only."""
    ax.set(xlabel=label, xlim=(low, high))
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def format_tick(value: float, _: float | None = None) -> str:
    """Format the value of a tick with up to ten significant digits."""
    return number(value, 10)


def limit_ticks(ax: Axes, *lines: str) -> None:
    """Set an x label of one or more `lines`, and only a few ticks on the x axis.

    Few ticks fit even where long names of bars make the Axes narrow.
    """
    ax.set_xlabel(
        "\n".join(wrap_text(line, 58) for line in lines), parse_math=False, fontsize="small"
    )
    ax.xaxis.set_major_locator(MaxNLocator(4, min_n_ticks=3))
    ax.xaxis.set_major_formatter(format_tick)


def draw_legend_on_top(ax: Axes, handles: Sequence[Any], names: Sequence[str]) -> None:
    """Draw a legend above the first bar, where it covers no data.

    Short names are side by side, long ones have a line each.
    """
    bottom, top = ax.get_ylim()
    in_one_line = sum(map(len, names)) <= 40
    columns = len(names) if in_one_line else 1
    n_lines = 1
    if columns == 1:
        n_lines = sum(wrap_text(name, 50).count("\n") + 1 for name in names)
    strip = 0.15 + 0.17 * n_lines
    height = ax.bbox.height / ax.figure.dpi  # inches
    ax.set_ylim(bottom, top - (bottom - top) * strip / max(height - strip, strip))
    draw_legend(
        ax, handles, names, 50, loc="upper right", ncols=columns, borderaxespad=0.0, borderpad=0.2
    )


def draw_legend(
    ax: Axes,
    handles: Sequence[Any],
    names: Sequence[str],
    width: int = style.NAME_WIDTH,
    **place: Any,
) -> None:
    """Draw a legend with its names as plain text, even with a leading underscore or a $.

    Names are wrapped to `width` letters; `place` has further options of `Axes.legend`.
    """
    legend = ax.legend(
        handles,
        [""] * len(handles),
        frameon=False,
        fontsize="small",
        title_fontsize="small",
        **place,
    )
    for text, name in zip(legend.get_texts(), names, strict=True):
        text.set(text=wrap_text(name, width), parse_math=False)


def draw_colour_bar(
    ax: Axes, mappable: ScalarMappable, label: str, below: bool = False
) -> Colorbar:
    """Draw and return a narrow colour bar to the right of `ax`, or `below` it.

    The position and size of `ax` in the figure do not change.
    """
    place = (0.0, -0.07, 1.0, 0.03) if below else (1.03, 0, 0.025, 1)
    orientation = "horizontal" if below else "vertical"
    bar = ax.figure.colorbar(
        mappable,
        cax=ax.inset_axes(place),
        orientation=orientation,
        format=FuncFormatter(format_tick),
    )
    bar.locator = MaxNLocator(3)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize="small")
    bar.set_label(
        "\n".join(wrap_text(line, 40) for line in label.splitlines()),
        fontsize="small",
        parse_math=False,
    )
    return bar


def draw_error_lines(ax: Axes, ends: FloatArray, places: FloatArray, errors: FloatArray) -> None:
    """Draw ± one standard error at the ends of horizontal bars.

    `places` are the vertical positions of the bars. The lines are dark on white, so that they are
    visible on any colour.
    """
    for colour, width in (("white", 3.2), (style.INK, 1.3)):
        ax.errorbar(
            ends, places, xerr=errors, fmt="none", ecolor=colour, elinewidth=width, zorder=3
        )


def write_at_side(ax: Axes, places: Iterable[float], texts: Iterable[str]) -> None:
    """Write a text for each horizontal bar, to the right of the Axes, at the positions `places`."""
    for place, text in zip(places, texts, strict=False):
        ax.text(
            1.02, place, text, transform=ax.get_yaxis_transform(), va="center", fontsize="small"
        )


def write_at_ends(
    ax: Axes, ends: Iterable[float], places: Iterable[float], texts: Iterable[str]
) -> None:
    """Write a text beyond the end of each horizontal bar, on the side to which the bar points.

    `places` are the vertical positions of the bars.
    """
    for end, place, text in zip(ends, places, texts, strict=True):
        points_right = end >= 0
        ax.annotate(
            text,
            (end, place),
            (3 if points_right else -3, 0),
            textcoords="offset points",
            ha="left" if points_right else "right",
            va="center_baseline",
            fontsize="x-small",
        ).set_in_layout(False)


def wrap_text(text: str, width: int = style.NAME_WIDTH) -> str:
    """Break a text into lines of at most `width` letters, after spaces or hyphens if possible.

    Wide East Asian letters count twice.
    """
    lines = [""]
    for word in re.findall(WORD, printable(text)):
        pieces = [word] if _text_width(word) <= width else word
        for piece in pieces:
            if _text_width((lines[-1] + piece).rstrip()) <= width:
                lines[-1] += piece
            else:
                lines.append(piece)
    return "\n".join(line.strip() for line in lines if line.strip()) or text


def _text_width(text: str) -> int:
    """Return the width of a text in letters; wide East Asian letters count twice."""
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)


def printable(text: str) -> str:
    """Replace letters that no installed font can draw by escape sequences.

    The escapes are written as in Python: 価 is \\u4fa1.
    """
    if text.isascii():
        return text
    supported = _supported_characters((*rcParams["font.family"], *style.FONTS))
    return "".join(
        letter if ord(letter) in supported else letter.encode("unicode_escape").decode()
        for letter in text
    )


@lru_cache(maxsize=8)
def _supported_characters(families: tuple[str, ...]) -> frozenset[int]:
    """Return the code points that at least one installed font of these families can draw."""
    supported = set(CHARACTERS_THAT_JOIN)
    for family in families:
        with suppress(ValueError):
            font = get_font(fontManager.findfont(family, fallback_to_default=False))
            supported |= set(font.get_charmap())
    return frozenset(supported)
