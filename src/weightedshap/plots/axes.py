"""What the figures share: Axes, names, legends, numbers at bars and error lines, in the looks of
the style sheet."""

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

Canvas = Axes | None  # what is drawn on; None for a new figure
LOW_TO_HIGH = LinearSegmentedColormap.from_list("low to high", style.LOW_TO_HIGH).with_extremes(
    bad=style.UNKNOWN
)
SIGNED = LinearSegmentedColormap.from_list("signed", style.SIGNED)
# A legend to the right of the Axes.
AT_SIDE: dict[str, Any] = {
    "loc": "center left",
    "bbox_to_anchor": (1, 0.5),
}
BREAKABLE = r"[^\s_/-]*[\s_/-]?"  # a word and the sign behind it
# The dashes of the style sheet, as matplotlib wants them.
DASHES: dict[str, Any] = {
    "solid": "-",
    "dash": "--",
    "dot": ":",
    "dashdot": "-.",
    "longdash": (0, (8, 2)),
    "longdashdot": (0, (5, 1, 1, 1, 1, 1)),
}


def axes(ax: Canvas, height: float = style.HEIGHT) -> Axes:
    """`ax`, or the Axes of a new figure of that height in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(style.WIDTH, height), layout="constrained")[1]


def bar_axes(
    ax: Canvas, names: Sequence[str], slot: float = 0.26, head: float = 0, total: int = 0
) -> tuple[Axes, FloatArray]:
    """Axes with names, set in lines, for horizontal bars, the first on top; and where each stands:
    0, 1, … if short."""
    texts = [in_lines(name) for name in names]
    room = np.array([max(1.0, 0.62 * (text.count("\n") + 1)) for text in texts])
    places = np.cumsum(room) - room / 2 - 0.5
    ax = axes(ax, head + max(2.2, 1.0 + slot * float(room.sum())))
    ax.set_yticks(places, texts, parse_math=False, fontsize="small")
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(room.sum() - 0.4, -0.6)
    if len(names) < total:
        ax.set_ylabel(f"{len(names)} of {total:,} features", fontsize="small")
    return ax, places


def legend_axes(ax: Canvas, names: Sequence[str]) -> Axes:
    """Axes with room for the names at their side, 0.15 inches for each line."""
    return axes(
        ax, max(style.HEIGHT, 0.5 + 0.15 * sum(in_lines(name).count("\n") + 1.4 for name in names))
    )


def finished(ax: Axes, *titles: str | None) -> Axes:
    """Without the frame lines that carry no data; with what stands above, a line each, and all
    fonts."""
    ax.spines[["top", "right"]].set_visible(False)
    said = "\n".join(in_lines(title, 66) for title in titles if title)
    if said:
        ax.set_title(said, parse_math=False, fontsize="medium")
    installed = set(fontManager.get_font_names())
    fallback = [name for name in style.FONTS if name in installed]
    for text in ax.findobj(Text):
        text.set_fontfamily(list(dict.fromkeys([*text.get_fontfamily(), *fallback])))
    return ax


def whole_numbers(ax: Axes, label: str, low: float, high: float) -> None:
    """An x axis with ticks at integers only."""
    ax.set(xlabel=label, xlim=(low, high))
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def numeral(value: float, _: float | None = None) -> str:
    """A number at a tick, in full."""
    return number(value, 10)


def few_ticks(ax: Axes, *lines: str) -> None:
    """An x axis with no more ticks than fit beside long names, and its label, wrapped where it is
    long."""
    ax.set_xlabel(
        "\n".join(in_lines(line, 58) for line in lines), parse_math=False, fontsize="small"
    )
    ax.xaxis.set_major_locator(MaxNLocator(4, min_n_ticks=3))
    ax.xaxis.set_major_formatter(numeral)


def legend_on_top(ax: Axes, handles: Sequence[Any], names: Sequence[str]) -> None:
    """A legend in a strip of its own above the first bar, where it covers no data; long names below
    each other."""
    bottom, top = ax.get_ylim()
    columns = len(names) if sum(map(len, names)) <= 40 else 1
    lines = sum(in_lines(name, 50).count("\n") + 1 for name in names) if columns == 1 else 1
    strip = 0.15 + 0.17 * lines
    height = ax.bbox.height / ax.figure.dpi  # inches
    ax.set_ylim(bottom, top - (bottom - top) * strip / max(height - strip, strip))
    legend(
        ax, handles, names, 50, loc="upper right", ncols=columns, borderaxespad=0.0, borderpad=0.2
    )


def legend(
    ax: Axes,
    handles: Sequence[Any],
    names: Sequence[str],
    width: int = style.NAME_WIDTH,
    **place: Any,
) -> None:
    """A legend whose names are set as they are, a leading underscore or $ included."""
    made = ax.legend(
        handles,
        [""] * len(handles),
        frameon=False,
        fontsize="small",
        title_fontsize="small",
        **place,
    )
    for text, name in zip(made.get_texts(), names, strict=True):
        text.set(text=in_lines(name, width), parse_math=False)


def colour_bar(ax: Axes, mappable: ScalarMappable, label: str, below: bool = False) -> Colorbar:
    """A narrow colour bar beside `ax`, which keeps its place in the figure; or below it and no
    wider, as for images."""
    place = (0.0, -0.07, 1.0, 0.03) if below else (1.03, 0, 0.025, 1)
    way = "horizontal" if below else "vertical"
    bar = ax.figure.colorbar(
        mappable, cax=ax.inset_axes(place), orientation=way, format=FuncFormatter(numeral)
    )
    bar.locator = MaxNLocator(3)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, labelsize="small")
    bar.set_label(
        "\n".join(in_lines(line, 40) for line in label.splitlines()),
        fontsize="small",
        parse_math=False,
    )
    return bar


def error_lines(ax: Axes, ends: FloatArray, places: FloatArray, errors: FloatArray) -> None:
    """± one standard error at the ends of horizontal bars, dark on white so that it is seen on any
    colour."""
    for colour, width in (("white", 3.2), (style.INK, 1.3)):
        ax.errorbar(
            ends, places, xerr=errors, fmt="none", ecolor=colour, elinewidth=width, zorder=3
        )


def at_side(ax: Axes, places: Iterable[float], texts: Iterable[str]) -> None:
    """Texts beside horizontal bars, at the right of the Axes."""
    for place, told in zip(places, texts, strict=False):
        ax.text(
            1.02, place, told, transform=ax.get_yaxis_transform(), va="center", fontsize="small"
        )


def numbers_at(
    ax: Axes, ends: Iterable[float], places: Iterable[float], numbers: Iterable[str]
) -> None:
    """Numbers beyond the ends of horizontal bars, on the side to which they point."""
    for end, place, told in zip(ends, places, numbers, strict=True):
        shift, side = (3, "left") if end >= 0 else (-3, "right")
        at: dict[str, Any] = {
            "textcoords": "offset points",
            "ha": side,
            "va": "center_baseline",
            "fontsize": "x-small",
        }
        ax.annotate(told, (end, place), (shift, 0), **at).set_in_layout(False)


def in_lines(name: str, width: int = style.NAME_WIDTH) -> str:
    """A name in lines of at most `width` letters, cut behind spaces or signs if it can; wide
    letters count twice."""
    lines = [""]
    for word in re.findall(BREAKABLE, drawable(name)):
        for piece in [word] if _breadth(word) <= width else word:
            fits = _breadth((lines[-1] + piece).rstrip()) <= width
            lines[-1:] = [lines[-1] + piece] if fits else [lines[-1], piece]
    return "\n".join(line.strip() for line in lines if line.strip()) or name


def _breadth(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)


def drawable(text: str) -> str:
    """Letters that no installed font has are told by their numbers, as Python does: 価 is
    \\u4fa1."""
    if text.isascii():
        return text
    known = _letters((*rcParams["font.family"], *style.FONTS))
    return "".join(
        each if ord(each) in known else each.encode("unicode_escape").decode() for each in text
    )


@lru_cache(maxsize=8)
def _letters(families: tuple[str, ...]) -> frozenset[int]:
    """The letters that some of the families have, as far as they are installed."""
    found: set[int] = {0xFE0F, 0x200D}  # these join letters
    for family in families:
        with suppress(ValueError):
            found |= set(
                get_font(fontManager.findfont(family, fallback_to_default=False)).get_charmap()
            )
    return frozenset(found)
