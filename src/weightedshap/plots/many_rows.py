"""Figures with a dot, line or cell for each row: beeswarm, scatter, heatmap and decision plot."""

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
from weightedshap.explanation.export import encode_categories, row_position
from weightedshap.plots import style
from weightedshap.plots.axes import (
    LOW_TO_HIGH,
    OUTSIDE_LEGEND,
    SIGNED,
    axes_or_new,
    bar_axes,
    draw_colour_bar,
    draw_legend,
    finish_axes,
    format_tick,
    limit_ticks,
    printable,
    wrap_text,
)
from weightedshap.plots.data import (
    Order,
    Output,
    as_numbers,
    category_levels,
    display_factors,
    evenly_spread,
    explained_game,
    feature_column,
    feature_position,
    first_features,
    row_count_text,
    row_name,
    select_output,
)

Levels = tuple[IntArray, list[str]]
"""The codes (n,) of a category in each row, −1 where missing, and the names of its levels."""

MAX_LEVELS = 12  # a column with more is text rather than categories
MAX_COLOURED_LEVELS = 6
MAX_HEATMAP_ROWS = 1_000
MAX_LINES = 200  # rows of a decision plot
MAX_NAMED_ROWS = 20
MIN_PARTNER_ROWS = 20  # with fewer rows, `strongest_partner` finds none
WIDTH_IN_POINTS = 220  # of the Axes, roughly
HALO = withStroke(linewidth=1.5, foreground="white")  # around letters drawn on dots


def beeswarm(
    explanation: Explanation,
    output: Output = 0,
    max_display: int = 10,
    order: Order = "importance",
    ax: Axes | None = None,
) -> Axes:
    """Draw a dot for each row and feature at its attribution, coloured by the feature's value.

    The colour scale runs from the 5 % to the 95 % quantile of the feature. Each level of a category
    has its own colour, and its name is shown where there is room. Grey stands for missing values,
    rare levels, free text, and groups of columns. Dots are drawn as pixels, so that a PDF of many
    rows stays small.
    """
    explanation, title = select_output(explanation, output)
    values = explanation.values  # (n, d)
    top, names = first_features(explanation, order, max_display)
    ax, places = bar_axes(ax, names, slot=0.32, total=values.shape[1])
    low = float(values[:, top].min())
    high = float(values[:, top].max())
    diameter = 3.7 if len(values) <= 500 else 2.2  # points
    coloured_by_number = []
    for place, i in zip(places, top.tolist(), strict=True):
        heights = place + _dot_heights(values[:, i], low, high, diameter)
        column = feature_column(explanation, i)
        dots, levels = _draw_dots(ax, values[:, i], heights, column, diameter)
        if levels is None:
            coloured_by_number.append(dots)
        else:
            _label_levels(ax, place, values[:, i], levels, high - low)
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    limit_ticks(ax, "φ* (below 0: lowers the prediction)", explained_game(explanation))

    has_value = []  # for each feature, which dots have a colour that shows a value
    for dots in coloured_by_number:
        colours: FloatArray = np.ma.filled(np.ma.asarray(dots.get_array()), np.nan)
        has_value.append(np.isfinite(colours))
    if np.any(has_value):
        label = "value of the feature" + ("" if np.all(has_value) else "; grey: unknown")
        bar = draw_colour_bar(ax, coloured_by_number[0], label)
        bar.set_ticks([0, 1], labels=["low", "high"])
    return finish_axes(ax, title)


def _draw_dots(
    ax: Axes, x: FloatArray, y: FloatArray, column: pd.Series[Any] | None, diameter: float
) -> tuple[PathCollection, Levels | None]:
    """Draw dots at x and y (n,), coloured by the values of a column.

    Returns the dots, and the levels of the column if it is categorical, else None. `diameter` is in
    points.
    """
    looks: dict[str, Any] = {"s": diameter**2, "linewidths": 0, "rasterized": True, "zorder": 2}
    numbers = as_numbers(column)
    if column is not None and numbers is None:
        codes, names = category_levels(column)
        if 0 < len(names) <= MAX_LEVELS:
            colour_of_level = _level_colours(codes, names)
            colours = [colour_of_level.get(code, style.UNKNOWN) for code in codes.tolist()]
            return ax.scatter(x, y, color=colours, **looks), (codes, names)
    relative = np.full(len(x), np.nan) if numbers is None else _scale_to_limits(numbers)
    dots = ax.scatter(
        x, y, c=relative, cmap=LOW_TO_HIGH, vmin=0, vmax=1, plotnonfinite=True, **looks
    )
    return dots, None


def _level_colours(codes: IntArray, names: list[str]) -> dict[int, str]:
    """Return a dict of colours by code, for the most frequent levels of a categorical column.

    Rarer levels, and the code −1 of missing values, have no colour of their own.
    """
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    frequent = np.argsort(-counts, kind="stable")[:MAX_COLOURED_LEVELS].tolist()
    colours = dict(zip(sorted(frequent), style.PALETTE))
    return {level: colours[level] for level in frequent}


def _label_levels(ax: Axes, place: float, phi: FloatArray, levels: Levels, width: float) -> None:
    """Write the names of coloured category levels above or below their dots, if there is room.

    Frequent levels come first. `place` is the vertical position of the feature, and `width` the
    range of the x axis.
    """
    codes, names = levels
    labels: list[tuple[float, float, float]] = []  # middle, half width, above or below
    for level, colour in _level_colours(*levels).items():
        middle = float(np.median(phi[codes == level]))
        text = printable(names[level])[:14]
        half = 0.5 * width * len(text) * 3.6 / WIDTH_IN_POINTS  # a letter is 3.6 points wide
        for side, alignment in ((-0.3, "bottom"), (0.3, "top")):
            has_room = all(
                abs(middle - other_middle) > half + other_half
                for other_middle, other_half, other_side in labels
                if other_side == side
            )
            if has_room:
                labels.append((middle, half, side))
                ax.text(
                    middle,
                    place + side,
                    text,
                    path_effects=[HALO],
                    parse_math=False,
                    color=colour,
                    fontsize=6,
                    ha="center",
                    va=alignment,
                    zorder=4,
                )
                break


def _colour_limits(numbers: FloatArray) -> tuple[float, float]:
    """Return the lower and the upper end of the colour scale: the 5 % and 95 % quantiles.

    If these are equal, the ends are the smallest and the largest value. They are NaN if all numbers
    are missing.
    """
    finite = numbers[np.isfinite(numbers)]
    if not finite.size:
        return np.nan, np.nan
    low, high = np.quantile(finite, [0.05, 0.95])
    return (float(low), float(high)) if low < high else (float(finite.min()), float(finite.max()))


def _scale_to_limits(numbers: FloatArray) -> FloatArray:
    """Rescale numbers (n,) to 0..1 between the ends of the colour scale; NaN where missing."""
    low, high = _colour_limits(numbers)
    if low == high:
        return np.where(np.isnan(numbers), np.nan, 0.5)
    return np.asarray(np.clip((numbers - low) / (high - low), 0, 1))


def _dot_heights(values: FloatArray, low: float, high: float, diameter: float) -> FloatArray:
    """Return vertical offsets (n,), around 0, that keep the dots of a feature apart.

    `low` and `high` are the limits of the x axis, and `diameter` is that of a dot in points. Dots
    are stacked in columns as wide as a dot, more closely where there are many.
    """
    n_columns = WIDTH_IN_POINTS / diameter
    step = 0.042 * diameter  # for 24 points from one feature to the next
    columns = np.floor(n_columns * (values - low) / ((high - low) or 1.0))
    rank = pd.Series(columns).groupby(columns).cumcount().to_numpy()  # 0, 1, … within each column
    height = (rank + 1) // 2 * np.where(rank % 2, 1, -1)
    return np.asarray(height * min(step, 0.34 / max(1, np.abs(height).max())))


def scatter(
    explanation: Explanation,
    feature: int | str | None = None,
    color: int | str | None = None,
    output: Output = 0,
    ax: Axes | None = None,
) -> Axes:
    """Plot the attribution φ* of a feature against its value, with a dot for each row.

    Without `feature` it is the most influential one. Dots are coloured by the column `color`, or
    else by the strongest partner: the column that is most correlated with φ* among rows with
    similar values of the feature, if the correlation is beyond chance. Grey bars show how often
    values occur.
    """
    explanation, title = select_output(explanation, output)
    if feature is None:
        (feature,), _ = first_features(explanation, "importance", 1)
        feature = int(feature)
    i = feature_position(explanation, feature)
    name = explanation.feature_names[i]
    column = feature_column(explanation, i)
    phi = explanation.values[:, i]
    if column is None:
        raise ValueError(f"{name!r} is no column of the data: no value to draw φ* against.")
    ax = axes_or_new(ax)
    x = _draw_values_on_x(ax, column)

    if color is None:
        partner = strongest_partner(explanation, i)
    else:
        partner = feature_position(explanation, color)
    remark = None
    if partner is not None:
        label = explanation.feature_names[partner]
        if color is None:
            label += " (strongest partner)"
        _draw_coloured_dots(ax, x, phi, feature_column(explanation, partner), label)
    else:
        ax.scatter(
            x, phi, s=16, color=style.BLUE, linewidths=0, alpha=0.7, rasterized=True, zorder=2
        )
        if len(phi) >= MIN_PARTNER_ROWS:
            remark = "no partner beyond chance"
    ax.axhline(0, color="black", linewidth=0.8, zorder=1)
    ax.set_xlabel(wrap_text(name, 66), parse_math=False, fontsize="medium")
    ax.set_ylabel(f"φ*\n{explained_game(explanation)}")
    ax.yaxis.set_major_formatter(format_tick)
    return finish_axes(ax, title, remark)


def _draw_values_on_x(ax: Axes, column: pd.Series[Any]) -> FloatArray:
    """Set up the x axis for the values of a column, and return their positions (n,) on it.

    For numbers, grey bars show how often they occur; the levels of a category are evenly spaced.
    Missing values are at the left.
    """
    n = len(column)
    numbers = as_numbers(column)
    if numbers is None or isinstance(column.dtype, pd.CategoricalDtype):
        codes, names = category_levels(column)
        ax.set_xticks(
            range(len(names)),
            [wrap_text(name) for name in names],
            rotation=90 if sum(map(len, names)) > 45 else 0,
            parse_math=False,
        )
        # Multiples of the golden section fill the space around a level evenly.
        jitter = 0.5 * ((np.arange(n) * 0.618034) % 1 - 0.5)
        return _place_missing(ax, np.where(codes < 0, np.nan, codes), -1.0) + jitter
    finite = numbers[np.isfinite(numbers)]
    low = float(finite.min()) if finite.size else 0.0
    high = float(finite.max()) if finite.size else 1.0
    counts, edges = np.histogram(finite, bins=min(30, max(1, len(np.unique(finite)))))
    ax.stairs(
        0.12 * counts / max(1, counts.max()),
        edges,
        fill=True,
        color=style.GREY,
        transform=ax.get_xaxis_transform(),
        zorder=0,
    )
    limit_ticks(ax, "")
    return _place_missing(ax, np.clip(numbers, low, high), low - 0.08 * ((high - low) or 1.0))


def _place_missing(ax: Axes, x: FloatArray, place: float) -> FloatArray:
    """Replace missing values in `x` by the position `place`, and label this position."""
    if not np.isnan(x).any():
        return x
    ax.text(
        place, 1.01, "missing", transform=ax.get_xaxis_transform(), ha="center", fontsize="x-small"
    )
    return np.where(np.isnan(x), place, x)


def _draw_coloured_dots(
    ax: Axes, x: FloatArray, phi: FloatArray, column: pd.Series[Any] | None, label: str
) -> None:
    """Draw dots coloured by the values of `column`, with a legend or colour bar titled `label`."""
    dots, levels = _draw_dots(ax, x, phi, column, 4.2)
    numbers = as_numbers(column)
    if levels is not None:
        colours = sorted(_level_colours(*levels).items())
        marks = [Line2D([], [], marker="o", linestyle="", color=colour) for _, colour in colours]
        names = [levels[1][level] for level, _ in colours]
        draw_legend(ax, marks, names, title=wrap_text(label), **OUTSIDE_LEGEND)
    elif numbers is not None:
        limits = [number(limit, 3) for limit in _colour_limits(numbers)]
        draw_colour_bar(ax, dots, label).set_ticks([0, 1], labels=limits)


def strongest_partner(explanation: Explanation, i: int) -> int | None:
    """Return the position of the column that goes most closely with the attribution of feature i.

    It is the column most correlated with φ*_i among rows with similar values of feature i.
    Rows are divided into bins of similar values of feature i, and the bin means are subtracted from
    φ*_i and from the columns; the largest |correlation| of the two wins. By chance, the largest of
    d correlations is about √(2 log d / n); two more standard errors are required, else the result
    is None.
    """
    n, d = explanation.values.shape
    columns = []
    for c in range(d):
        column = feature_column(explanation, c)
        if column is not None:
            columns.append(column)
    if len(columns) < d or n < MIN_PARTNER_ROWS:
        return None
    ranks = pd.DataFrame(
        {c: pd.Series(encode_categories(column)).rank() for c, column in enumerate(columns)}
    ).fillna(0.0)
    bins = np.ceil(ranks[i].rank(pct=True) * min(10, n // 8)).to_numpy()
    both = ranks.assign(phi=explanation.values[:, i])
    residuals = (both - both.groupby(bins).transform("mean")).to_numpy()  # (n, d + 1)
    norms = np.sqrt((residuals**2).sum(axis=0))
    products = np.abs(residuals[:, -1] @ residuals)
    strength = products / np.where(norms > 1e-12, norms, np.inf) / (norms[-1] or 1.0)
    strength[[i, d]] = 0.0
    best = int(strength.argmax())
    return best if strength[best] * np.sqrt(n) > np.sqrt(2 * np.log(d)) + 2 else None


def heatmap(
    explanation: Explanation,
    output: Output = 0,
    max_display: int = 10,
    order: Order = "importance",
    rows: str | npt.ArrayLike = "similarity",
    ax: Axes | None = None,
) -> Axes:
    """Draw the attribution of every row and feature as a colour, rows side by side; f(x) above.

    `rows` is the order of the rows: by "similarity" of their attributions, by "prediction", as in
    the "table", or a list of positions. Without a list at most 1,000 rows are drawn, evenly spread.
    The colour scale ends at the 99 % quantile of |φ*|.
    """
    explanation, title = select_output(explanation, output)
    top, names = first_features(explanation, order, max_display)
    positions, order_text = _order_rows(explanation, rows)
    n = len(positions)
    shown = explanation.values[positions][:, top].T  # (features, rows)
    limit = float(np.quantile(np.abs(shown), 0.99)) or float(np.abs(shown).max()) or 1.0
    ax, places = bar_axes(ax, names, slot=0.28, head=0.9, total=explanation.values.shape[1])
    edges = np.array([-0.5, *(places[1:] + places[:-1]) / 2, ax.get_ylim()[0] - 0.1])
    cells = ax.pcolormesh(
        np.arange(n + 1) - 0.5,
        edges,
        shown,
        rasterized=True,
        cmap=SIGNED,
        vmin=-limit,
        vmax=limit,
    )
    ax.set_ylim(edges[-1], edges[0])
    _draw_predictions_above(ax, explanation.predictions[positions])
    if n <= MAX_NAMED_ROWS:
        texts = [printable(row_name(explanation, row)).removeprefix("row ") for row in positions]
        ax.set_xticks(range(n), texts, rotation=90, parse_math=False, fontsize="small")
    draw_colour_bar(ax, cells, "φ* (orange raises, blue lowers f(x))")
    counts = row_count_text(n, len(explanation))
    ax.set_xlabel(f"{counts}, {order_text}\n{explained_game(explanation)}", fontsize="small")
    finish_axes(ax, title)
    ax.title.set_y(1.2)
    return ax


def _draw_predictions_above(ax: Axes, predictions: FloatArray) -> None:
    """Draw f(x) of the rows as a line above the heatmap."""
    above = ax.inset_axes((0, 1.02, 1, 0.16), sharex=ax)
    above.plot(predictions, color=style.INK, linewidth=1)
    above.set_ylabel("f(x)", rotation=0, ha="right", va="center", fontsize="small")
    above.tick_params(labelbottom=False, bottom=False, labelsize="x-small")
    above.yaxis.set_major_formatter(format_tick)
    above.locator_params(axis="y", nbins=2)
    above.spines[["top", "right", "bottom"]].set_visible(False)


def _order_rows(explanation: Explanation, rows: str | npt.ArrayLike) -> tuple[IntArray, str]:
    """Return the positions of the rows to draw, in order, and a description of the order."""
    if not isinstance(rows, str):
        listed = [row_position(explanation, row) for row in np.asarray(rows).ravel().tolist()]
        return np.array(listed), "as listed"
    descriptions = {
        "similarity": "like ones side by side",
        "prediction": "by f(x)",
        "table": "as in the table",
    }
    description = look_up("order of rows", rows, descriptions)
    positions = evenly_spread(len(explanation), MAX_HEATMAP_ROWS)
    if rows == "prediction":
        positions = positions[np.argsort(explanation.predictions[positions], kind="stable")]
    elif rows == "similarity" and len(positions) > 1:
        from scipy.cluster.hierarchy import leaves_list, linkage

        clusters = linkage(
            explanation.values[positions], "average", optimal_ordering=len(positions) <= 300
        )
        positions = positions[leaves_list(clusters)]
    return positions, description


def decision(
    explanation: Explanation,
    output: Output = 0,
    max_display: int = 10,
    order: Order = "importance",
    rows: npt.ArrayLike | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw for each row a line that rises from the base value to f(x), feature by feature.

    Lines are coloured by f(x). As in `waterfall`, φ* is multiplied by a moderate factor that makes
    it add up; for rows without such a factor, the last step is the part that is not attributed.
    `rows` are the positions of the rows to draw; by default all, or 200 of them, evenly spread.
    """
    explanation, title = select_output(explanation, output)
    top, names = first_features(explanation, order, max_display)
    if rows is None:
        positions = evenly_spread(len(explanation), MAX_LINES)
    else:
        positions, _ = _order_rows(explanation, rows)
    n = len(positions)
    factor = display_factors(explanation)[positions]
    phi = explanation.values[positions] * np.where(np.isnan(factor), 1.0, factor)[:, None]
    base = explanation.base_values[positions]
    f_x = explanation.predictions[positions]

    steps = phi[:, top[::-1]]  # (rows, steps), from the bottom up
    n_others = phi.shape[1] - len(top)
    if n_others:
        steps = np.column_stack([phi.sum(axis=1) - steps.sum(axis=1), steps])
        names.append(f"sum of {plural(n_others, 'other feature')}")
    n_unscaled = int(np.isnan(factor).sum())
    if n_unscaled:
        steps = np.column_stack([steps, f_x - base - phi.sum(axis=1)])
        names.insert(0, "not attributed")

    ax, places = bar_axes(ax, names)
    levels = np.column_stack([base, base[:, None] + np.cumsum(steps, axis=1)])  # (rows, steps + 1)
    between = (places[1:] + places[:-1])[::-1] / 2
    heights = np.concatenate([[places[-1] + 0.5], between, [-0.5]])
    lines = LineCollection(
        [np.column_stack([line, heights]) for line in levels],
        array=f_x,
        alpha=0.8,
        cmap=LOW_TO_HIGH,
        linewidths=1.2 if n <= 30 else 0.7,
    )
    ax.add_collection(lines)
    margin = 0.04 * (float(np.ptp(levels)) or 1.0)
    left = float(levels.min()) - margin
    right = float(levels.max()) + margin
    ax.hlines(heights[1:-1], left, right, color=style.GREY, linewidth=0.6, zorder=0)
    ax.axvline(float(base.mean()), color=style.DARK_GREY, linewidth=0.8, linestyle=":", zorder=1)
    ax.set(xlim=(left, right), ylim=(places[-1] + 0.55, -0.55))
    draw_colour_bar(ax, lines, "f(x)")
    counts = row_count_text(n, len(explanation))
    limit_ticks(ax, f"from the base (below) to f(x) of {counts}", explained_game(explanation))

    n_scaled = int((np.nan_to_num(factor, nan=1.0) != 1).sum())
    remark = ""
    if n_scaled:
        remark = f"φ* of {plural(n_scaled, 'row')} multiplied, so that it adds up"
        if n_unscaled:
            remark += f"; {n_unscaled} cannot be"
    return finish_axes(ax, title, remark)
