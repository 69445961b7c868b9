"""Figures with a dot, line or cell for each row: beeswarm, value against attribution, heatmap,
decision lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from weightedshap._checks import FloatArray, IntArray, look_up
from weightedshap._format import number, plural
from weightedshap.explanation import Explanation
from weightedshap.explanation.export import coded
from weightedshap.plots import axes as drawing
from weightedshap.plots import data as reading
from weightedshap.plots import style
from weightedshap.plots.axes import Canvas
from weightedshap.plots.data import Order, Output

Levels = tuple[IntArray, list[str]]
MOST_LEVELS = 12  # a column with more is text rather than categories
MOST_COLOURED = 6  # levels of a category with a colour of their own
MOST_CELLS = 1_000
MOST_LINES = 200  # rows of a heatmap, and of a decision plot
MOST_NAMED_ROWS = 20
LEAST_ROWS = 20  # for a partner to be looked for
HALO = withStroke(linewidth=1.5, foreground="white")  # around letters that stand on dots


def beeswarm(
    explanation: Explanation,
    output: Output = 0,
    max_display: int = 10,
    order: Order = "importance",
    ax: Canvas = None,
) -> Axes:
    """One dot for each row and feature at its φ*, coloured by the value of the feature.

    Colours run from the 5 % to the 95 % quantile of the feature; the levels of a category have a
    colour each, and their names where there is room. Grey is missing, a rare level, free text, or a
    group of columns. Dots are drawn as pixels, so that a PDF of many rows stays small.
    """
    explanation, title = reading.one_output(explanation, output)
    values = explanation.values  # (n, d)
    top, names = reading.ranked(explanation, order, max_display)
    ax, places = drawing.bar_axes(ax, names, slot=0.32, total=values.shape[1])
    low = float(values[:, top].min())
    high = float(values[:, top].max())
    diameter = 3.7 if len(values) <= 500 else 2.2  # points
    drawn = []  # dots coloured by numbers
    for place, i in zip(places, top.tolist(), strict=True):
        height = place + _stacked(values[:, i], low, high, diameter)
        dots, levels = _dots(ax, values[:, i], height, reading.column(explanation, i), diameter)
        if levels is None:
            drawn.append(dots)
        else:
            _name_levels(ax, place, values[:, i], levels, high - low)
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    drawing.few_ticks(ax, "φ* (below 0: lowers the prediction)", reading.game_shown(explanation))
    known = [np.isfinite(np.ma.filled(np.ma.asarray(dots.get_array()), np.nan)) for dots in drawn]
    if np.any(known):
        label = "value of the feature" + ("" if np.all(known) else "; grey: unknown")
        drawing.colour_bar(ax, drawn[0], label).set_ticks([0, 1], labels=["low", "high"])
    return drawing.finished(ax, title)


def _dots(
    ax: Axes, x: FloatArray, y: FloatArray, column: pd.Series[Any] | None, diameter: float
) -> tuple[PathCollection, Levels | None]:
    """Dots coloured by the values of a column; and its levels, where these are categories."""
    looks: dict[str, Any] = {"s": diameter**2, "linewidths": 0, "rasterized": True, "zorder": 2}
    numbers = reading.as_numbers(column)
    if column is not None and numbers is None:
        codes, names = reading.levels_of(column)
        if 0 < len(names) <= MOST_LEVELS:
            colours = _level_colours(codes, names)
            shades = [colours.get(code, style.UNKNOWN) for code in codes.tolist()]
            return ax.scatter(x, y, color=shades, **looks), (codes, names)
    relative = np.full(len(x), np.nan) if numbers is None else _relative(numbers)
    ends: dict[str, Any] = {
        "cmap": drawing.LOW_TO_HIGH,
        "vmin": 0,
        "vmax": 1,
        "plotnonfinite": True,
    }
    return ax.scatter(x, y, c=relative, **ends, **looks), None


def _level_colours(codes: IntArray, names: list[str]) -> dict[int, str]:
    """The most frequent levels, the first ahead, with a colour each; the others, and −1, which is
    missing, are grey."""
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    frequent = np.argsort(-counts, kind="stable")[:MOST_COLOURED].tolist()
    colours = dict(zip(sorted(frequent), style.PALETTE))
    return {level: colours[level] for level in frequent}


def _name_levels(ax: Axes, place: float, phi: FloatArray, levels: Levels, width: float) -> None:
    """Names of coloured levels above or below their dots, the frequent ones first, where there is
    room."""
    codes, names = levels
    taken: list[tuple[float, float, float]] = []  # middle, half width, above or below
    for level, colour in _level_colours(*levels).items():
        middle = float(np.median(phi[codes == level]))
        text = drawing.drawable(names[level])[:14]
        half = 0.5 * width * len(text) * 3.6 / 220  # the letters are about 3.6 of 220 points wide
        for side, way in ((-0.3, "bottom"), (0.3, "top")):
            if all(abs(middle - at) > half + room for at, room, other in taken if other == side):
                taken.append((middle, half, side))
                looks: dict[str, Any] = {
                    "color": colour,
                    "fontsize": 6,
                    "ha": "center",
                    "va": way,
                    "zorder": 4,
                }
                ax.text(middle, place + side, text, path_effects=[HALO], parse_math=False, **looks)
                break


def _limits(numbers: FloatArray) -> tuple[float, float]:
    """The values between which colours run: the 5 % and 95 % quantiles, or all where most rows are
    alike."""
    finite = numbers[np.isfinite(numbers)]
    if not finite.size:
        return np.nan, np.nan
    low, high = np.quantile(finite, [0.05, 0.95])
    return (float(low), float(high)) if low < high else (float(finite.min()), float(finite.max()))


def _relative(numbers: FloatArray) -> FloatArray:
    """(n,) where each number stands between its limits, 0..1; NaN where it is missing."""
    low, high = _limits(numbers)
    if low == high:
        return np.where(np.isnan(numbers), np.nan, 0.5)
    return np.asarray(np.clip((numbers - low) / (high - low), 0, 1))


def _stacked(values: FloatArray, low: float, high: float, diameter: float) -> FloatArray:
    """(n,) heights around 0 that keep the dots of a column, as wide as a dot, apart; closer where
    they are many."""
    columns = 220 / diameter
    step = 0.042 * diameter  # for about 220 points between low and high, 24 from line to line
    bins = np.floor(columns * (values - low) / ((high - low) or 1.0))
    rank = pd.Series(bins).groupby(bins).cumcount().to_numpy()  # 0, 1, … within each column
    height = (rank + 1) // 2 * np.where(rank % 2, 1, -1)
    return np.asarray(height * min(step, 0.34 / max(1, np.abs(height).max())))


def scatter(
    explanation: Explanation,
    feature: int | str | None = None,
    color: int | str | None = None,
    output: Output = 0,
    ax: Canvas = None,
) -> Axes:
    """The value of a feature against its φ*, a dot for each row; the most influential feature if
    none is named.

    Dots are coloured by the column `color`, or else by the strongest partner: the other column that
    tells apart rows whose values of the feature are alike, if there is one beyond chance. Grey bars
    show how often values occur.
    """
    explanation, title = reading.one_output(explanation, output)
    (first,), _ = reading.ranked(explanation, "importance", 1)
    i = reading.feature_position(explanation, int(first) if feature is None else feature)
    column = reading.column(explanation, i)
    phi = explanation.values[:, i]
    if column is None:
        raise ValueError(
            f"{explanation.feature_names[i]!r} is no column of the data: no value to draw φ*"
            " against."
        )
    ax = drawing.axes(ax)
    x = _across(ax, column)
    partner = (
        strongest_partner(explanation, i)
        if color is None
        else reading.feature_position(explanation, color)
    )
    if partner is None:
        ax.scatter(
            x, phi, s=16, color=style.BLUE, linewidths=0, alpha=0.7, rasterized=True, zorder=2
        )
    else:
        said = explanation.feature_names[partner] + (
            " (strongest partner)" if color is None else ""
        )
        _shaded(ax, x, phi, reading.column(explanation, partner), said)
    ax.axhline(0, color="black", linewidth=0.8, zorder=1)
    ax.set_xlabel(
        drawing.in_lines(explanation.feature_names[i], 66), parse_math=False, fontsize="medium"
    )
    ax.set_ylabel(f"φ*\n{reading.game_shown(explanation)}")
    ax.yaxis.set_major_formatter(drawing.numeral)
    alone = color is None and partner is None and len(phi) >= LEAST_ROWS
    return drawing.finished(ax, title, "no partner beyond chance" if alone else None)


def _across(ax: Axes, column: pd.Series[Any]) -> FloatArray:
    """(n,) places on the x axis: numbers as they are, levels apart from each other, missing values
    at the left."""
    n = len(column)
    numbers = reading.as_numbers(column)
    if numbers is None or isinstance(column.dtype, pd.CategoricalDtype):
        codes, names = reading.levels_of(column)
        turned = 90 if sum(map(len, names)) > 45 else 0
        ax.set_xticks(
            range(len(names)),
            [drawing.in_lines(name) for name in names],
            rotation=turned,
            parse_math=False,
        )
        beside = 0.5 * ((np.arange(n) * 0.618034) % 1 - 0.5)
        return _with_missing(ax, np.where(codes < 0, np.nan, codes), -1.0) + beside
    finite = numbers[np.isfinite(numbers)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    counts, edges = np.histogram(finite, bins=min(30, max(1, len(np.unique(finite)))))
    at = ax.get_xaxis_transform()
    ax.stairs(
        0.12 * counts / max(1, counts.max()),
        edges,
        fill=True,
        color=style.GREY,
        transform=at,
        zorder=0,
    )
    drawing.few_ticks(ax, "")
    return _with_missing(ax, np.clip(numbers, low, high), low - 0.08 * ((high - low) or 1.0))


def _with_missing(ax: Axes, x: FloatArray, place: float) -> FloatArray:
    """`x` with missing values at a place of their own, and its name."""
    if not np.isnan(x).any():
        return x
    ax.text(
        place, 1.01, "missing", transform=ax.get_xaxis_transform(), ha="center", fontsize="x-small"
    )
    return np.where(np.isnan(x), place, x)


def _shaded(
    ax: Axes, x: FloatArray, phi: FloatArray, shade: pd.Series[Any] | None, label: str
) -> None:
    """Dots coloured by another column, and what the colours mean."""
    dots, levels = _dots(ax, x, phi, shade, 4.2)
    numbers = reading.as_numbers(shade)
    if levels is not None:
        colours = sorted(_level_colours(*levels).items())
        marks = [Line2D([], [], marker="o", linestyle="", color=colour) for _, colour in colours]
        names = [levels[1][level] for level, _ in colours]
        drawing.legend(ax, marks, names, title=drawing.in_lines(label), **drawing.AT_SIDE)
    elif numbers is not None:
        ends = [number(limit, 3) for limit in _limits(numbers)]
        drawing.colour_bar(ax, dots, label).set_ticks([0, 1], labels=ends)


def strongest_partner(explanation: Explanation, i: int) -> int | None:
    """The column that goes most with φ* of feature i among rows with like values of i; None if none
    beyond chance.

    Rows are cut into bins of like values. Compared is |correlation| of φ*_i with each column, both
    without the means of their bins. Chance reaches about √(2 log d / n) in the best of d; two
    standard errors more are asked for.
    """
    n, d = explanation.values.shape
    columns = [column for c in range(d) if (column := reading.column(explanation, c)) is not None]
    if len(columns) < d or n < LEAST_ROWS:
        return None
    ranks = pd.DataFrame(
        {c: pd.Series(coded(column)).rank() for c, column in enumerate(columns)}
    ).fillna(0.0)
    bins = np.ceil(ranks[i].rank(pct=True) * min(10, n // 8)).to_numpy()
    both = ranks.assign(phi=explanation.values[:, i])
    rest = (both - both.groupby(bins).transform("mean")).to_numpy()  # (n, d + 1)
    size = np.sqrt((rest**2).sum(axis=0))
    strength = np.abs(rest[:, -1] @ rest) / np.where(size > 1e-12, size, np.inf) / (size[-1] or 1.0)
    strength[[i, d]] = 0.0
    best = int(strength.argmax())
    return best if strength[best] * np.sqrt(n) > np.sqrt(2 * np.log(d)) + 2 else None


def heatmap(
    explanation: Explanation,
    output: Output = 0,
    max_display: int = 10,
    order: Order = "importance",
    rows: str | npt.ArrayLike = "similarity",
    ax: Canvas = None,
) -> Axes:
    """φ* of every row and feature as a colour, rows side by side, with f(x) above.

    `rows` orders them: by "similarity" of their attributions, by "prediction", as in the "table",
    or as listed by position. Of more than 1,000 rows as many are drawn, evenly spread. Colours run
    to the 99 % quantile of |φ*|.
    """
    explanation, title = reading.one_output(explanation, output)
    top, names = reading.ranked(explanation, order, max_display)
    places, ordered = _row_order(explanation, rows)
    shown = explanation.values[places][:, top].T  # (features, rows)
    limit = float(np.quantile(np.abs(shown), 0.99)) or float(np.abs(shown).max()) or 1.0
    ax, slots = drawing.bar_axes(ax, names, slot=0.28, head=0.9, total=explanation.values.shape[1])
    edges = np.array([-0.5, *(slots[1:] + slots[:-1]) / 2, ax.get_ylim()[0] - 0.1])
    colours: dict[str, Any] = {"cmap": drawing.SIGNED, "vmin": -limit, "vmax": limit}
    cells = ax.pcolormesh(
        np.arange(len(places) + 1) - 0.5, edges, shown, rasterized=True, **colours
    )
    ax.set_ylim(edges[-1], edges[0])
    above = ax.inset_axes((0, 1.02, 1, 0.16), sharex=ax)
    above.plot(explanation.predictions[places], color=style.INK, linewidth=1)
    above.set_ylabel("f(x)", rotation=0, ha="right", va="center", fontsize="small")
    above.tick_params(labelbottom=False, bottom=False, labelsize="x-small")
    above.yaxis.set_major_formatter(drawing.numeral)
    above.locator_params(axis="y", nbins=2)
    above.spines[["top", "right", "bottom"]].set_visible(False)
    if len(places) <= MOST_NAMED_ROWS:
        texts = [
            drawing.drawable(reading.row_name(explanation, row)).removeprefix("row ")
            for row in places
        ]
        ax.set_xticks(range(len(places)), texts, rotation=90, parse_math=False, fontsize="small")
    drawing.colour_bar(ax, cells, "φ* (orange raises, blue lowers f(x))")
    said = (
        f"{reading.told_rows(len(places), len(explanation))},"
        f" {ordered}\n{reading.game_shown(explanation)}"
    )
    ax.set_xlabel(said, fontsize="small")
    drawing.finished(ax, title)
    ax.title.set_y(1.2)
    return ax


def _row_order(explanation: Explanation, rows: str | npt.ArrayLike) -> tuple[IntArray, str]:
    """Positions of the rows to draw, and how they are ordered, in words."""
    if not isinstance(rows, str):
        listed = [
            reading.row_position(explanation, row) for row in np.asarray(rows).ravel().tolist()
        ]
        return np.array(listed), "as listed"
    words = {
        "similarity": "like ones side by side",
        "prediction": "by f(x)",
        "table": "as in the table",
    }
    said = look_up("order of rows", rows, words)
    some = reading.spread(len(explanation), MOST_CELLS)
    if rows == "prediction":
        some = some[np.argsort(explanation.predictions[some], kind="stable")]
    elif rows == "similarity" and len(some) > 1:
        from scipy.cluster.hierarchy import leaves_list, linkage

        some = some[
            leaves_list(
                linkage(explanation.values[some], "average", optimal_ordering=len(some) <= 300)
            )
        ]
    return some, said


def decision(
    explanation: Explanation,
    output: Output = 0,
    max_display: int = 10,
    order: Order = "importance",
    rows: npt.ArrayLike | None = None,
    ax: Canvas = None,
) -> Axes:
    """A line for each row from the base, below, to f(x), above, feature by feature, coloured by
    f(x).

    As in `waterfall`, φ* is multiplied so that it adds up where a moderate factor does; of other
    rows the last step is what is not attributed. `rows` are positions; without them all, or 200 of
    more, evenly spread.
    """
    explanation, title = reading.one_output(explanation, output)
    top, names = reading.ranked(explanation, order, max_display)
    places = (
        reading.spread(len(explanation), MOST_LINES)
        if rows is None
        else _row_order(explanation, rows)[0]
    )
    factor = reading.factors(explanation)[places]
    phi = explanation.values[places] * np.where(np.isnan(factor), 1.0, factor)[:, None]
    base = explanation.base_values[places]
    f_x = explanation.predictions[places]
    steps = phi[:, top[::-1]]  # (rows, steps), from below
    if rest := phi.shape[1] - len(top):
        steps = np.column_stack([phi.sum(axis=1) - steps.sum(axis=1), steps])
        names.append(f"sum of {plural(rest, 'other feature')}")
    if apart := int(np.isnan(factor).sum()):
        steps = np.column_stack([steps, f_x - base - phi.sum(axis=1)])
        names.insert(0, "not attributed")
    ax, slots = drawing.bar_axes(ax, names)
    levels = np.column_stack([base, base[:, None] + np.cumsum(steps, axis=1)])  # (rows, steps + 1)
    heights = np.concatenate([[slots[-1] + 0.5], (slots[1:] + slots[:-1])[::-1] / 2, [-0.5]])
    looks: dict[str, Any] = {
        "cmap": drawing.LOW_TO_HIGH,
        "linewidths": 1.2 if len(places) <= 30 else 0.7,
    }
    lines = LineCollection(
        [np.column_stack([line, heights]) for line in levels], array=f_x, alpha=0.8, **looks
    )
    ax.add_collection(lines)
    room = 0.04 * (float(np.ptp(levels)) or 1.0)
    ends = float(levels.min()) - room, float(levels.max()) + room
    ax.hlines(heights[1:-1], *ends, color=style.GREY, linewidth=0.6, zorder=0)
    ax.axvline(float(base.mean()), color=style.DARK_GREY, linewidth=0.8, linestyle=":", zorder=1)
    ax.set(xlim=ends, ylim=(slots[-1] + 0.55, -0.55))
    drawing.colour_bar(ax, lines, "f(x)")
    some = reading.told_rows(len(places), len(explanation))
    drawing.few_ticks(
        ax, f"from the base (below) to f(x) of {some}", reading.game_shown(explanation)
    )
    scaled = int((np.nan_to_num(factor, nan=1.0) != 1).sum())
    said = f"φ* of {plural(scaled, 'row')} multiplied, so that it adds up" if scaled else ""
    return drawing.finished(ax, title, said + (f"; {apart} cannot be" if said and apart else ""))
