"""Figures of all rows: recovery curves, chosen weights, features, and how far the ranking can be trusted."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from weightedshap.checks import FloatArray, IntArray
from weightedshap.curves import area, mean_interval, misfit, order_of
from weightedshap.explanation import Explanation
from weightedshap.explanation.export import place_of
from weightedshap.explanation.result import named
from weightedshap.plots import drawing, reading
from weightedshap.plots.drawing import BLUE, DARK_GREY, GREEN, GREY, OF_GAMES, PALETTE, PURPLE, VERMILION
from weightedshap.plots.reading import Curves

STYLES: dict[str, tuple[str, Any, float]] = {
    "WeightedSHAP": (BLUE, "-", 2.2),
    "Shapley": (VERMILION, "--", 1.8),
    "first": (GREEN, ":", 1.5),
    "last": (PURPLE, "-.", 1.5),
    "greedy": ("#000000", (0, (5, 1, 1, 1, 1, 1)), 1.3),
    "optimum": ("#595959", (0, (1, 1)), 1.3),
}
OTHER_COLOURS = (*PALETTE[4:6], GREEN, PURPLE)
STABILITY_SIZES, STABILITY_ROWS, STABILITY_FEATURES = (1, 2, 3, 5, 10), 100, 20
EXACT = "Nothing was sampled:\nthe attributions have no sampling error."
LEAST_MISFIT = 0.005  # of the area: less is not told
UNKNOWN = "The standard errors are unknown,\nso nothing can be said about the ranking."


def recovery(
    explanation: Explanation, output: int | str = 0, ax: Axes | None = None, curves: Curves | None = None
) -> Axes:
    """How fast the prediction is recovered: mean |f(x) − v(top k)| against k = 0..d, v on the judge.

    One line each for WeightedSHAP, Shapley, first and last, with 95 % bands over the rows; the legend gives the mean
    areas, k = 1..d. A grey line marks what the judge misses by itself, when all features are known. `curves` are those
    of further methods on the same rows, {"greedy": (n, d + 1[, k])}.
    """
    one, title = reading.one_output(explanation, output)
    drawn = reading.own_curves(one)
    drawn |= {name: _further(explanation, name, array, output, drawn) for name, array in (curves or {}).items()}
    ax = drawing.axes(ax)
    lines = [_draw_curve(ax, name, array, place) for place, (name, array) in enumerate(drawn.items())]
    drawing.whole_numbers(ax, "number of features known, most influential first", 0, one.curves.shape[1] - 1)
    ax.set(ylim=(0, None), ylabel=f"mean |f(x) − v(top k)|\njudged by {named(one.judge_info)}")
    names = [f"{name} {area(array.mean(axis=0)):.3g}" for name, array in drawn.items()]
    if misfit(drawn["Shapley"]) > LEAST_MISFIT:
        level = one.curves[:, -1].mean()
        lines.append(ax.axhline(level, color=DARK_GREY, linewidth=1, zorder=1))
        names.append(f"missed by the judge {level * (one.curves.shape[1] - 1):.3g}")
    games, _ = reading.games_and_weights(one.family)
    first = f"\n(Shapley, first, last of {games[0]})" if games else ""
    drawing.legend(ax, lines, names, title=f"area under the curve{first}")
    return drawing.finished(ax, title)


def _further(explanation: Explanation, name: str, curves: FloatArray, output: int | str, taken: Curves) -> FloatArray:
    """(n, d + 1) the curves of another method, checked."""
    array, whole = np.asarray(curves, dtype=np.float64), explanation.curves.shape
    if name in taken:
        raise ValueError(f"`curves` names a method {name!r}, which the explanation draws itself. Name it otherwise.")
    if explanation.has_outputs and array.shape == whole:
        array = array[..., place_of(explanation, output)]
    if array.shape != whole[:2]:
        raise ValueError(f"`curves[{name!r}]` must have shape {whole[:2]}, like those explained; got {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"The curves of {name!r} hold NaN or infinite values, so they have no mean.")
    return array


def _draw_curve(ax: Axes, name: str, curves: FloatArray, place: int) -> Line2D:
    colour, dashes, width = STYLES.get(name, (OTHER_COLOURS[place % 4], (0, (8, 1 + place % 5)), 1.3))
    mean, margin = mean_interval(curves)
    k = np.arange(len(mean))
    if not np.isnan(margin).any():
        ax.fill_between(k, np.maximum(mean - margin, 0), mean + margin, color=colour, alpha=0.12, linewidth=0)
    return ax.plot(k, mean, color=colour, linestyle=dashes, linewidth=width, zorder=3 if dashes == "-" else 2)[0]


def weights(explanation: Explanation, output: int | str = 0, ax: Axes | None = None) -> Axes:
    """How often each weight was chosen, as a share of the rows; the Shapley weight stands out.

    Weights run from small coalitions (top) to large ones. Of more than 20 weights only chosen ones are shown, the 30
    most frequent at most, and the Shapley weight. Where games compete, a bar has a part for each of them.
    """
    explanation, title = reading.one_output(explanation, output)
    games, family, shares = reading.shares_by_game(explanation)
    share = shares.sum(axis=0)
    shown, uniform = reading.weights_to_show(family, share)
    names = [family.labels[i] + (" = Shapley" if i == uniform and family.labels[i] != "Shapley" else "") for i in shown]
    ax, places = drawing.bar_axes(ax, names, slot=0.2, head=0.3 if games else 0)
    colours: list[Any] = [*OF_GAMES] if games else [[VERMILION if i == uniform else BLUE for i in shown]]
    starts = 100 * (shares.cumsum(axis=0) - shares)
    bars = [
        ax.barh(places, 100 * part[shown], left=start[shown], color=colour, height=0.75)
        for part, start, colour in zip(shares, starts, cycle(colours))
    ]
    ax.bar_label(bars[-1], [f"{100 * s:.0f} %" if s > 0 else "" for s in share[shown]], padding=3, fontsize="small")
    ax.set(xlim=(0, 112 * max(share.max(), 0.01)))
    ax.set_xlabel(f"rows that chose the weight, %\n{reading.scored_on(explanation)}")
    if len(shown) > 5:
        ax.set_ylabel("← large      coalitions      small →", fontsize="small")
    if games:
        totals = zip(games, shares.sum(axis=1))
        drawing.legend_on_top(ax, bars, [f"{game} {100 * total:.0f} %" for game, total in totals])
    return drawing.finished(ax, title)


def weight_vectors(
    explanation: Explanation, output: int | str = 0, max_display: int = 10, ax: Axes | None = None
) -> Axes:
    """The `max_display` weight vectors that most rows chose against the size j, from small coalitions to large ones.

    Drawn is d·w_j, how many times the weight of Shapley (dashes), on a log scale that leaves out what is below 1/50.
    """
    explanation, title = reading.one_output(explanation, output)
    games, family, shares = reading.shares_by_game(explanation)
    share = shares.sum(axis=0)
    frequent = reading.largest(share, max_display)
    shown = reading.by_mean_size(family, frequent[share[frequent] > 0])
    names = [*(f"{family.labels[i]}, {100 * share[i]:.0f} %" for i in shown), "Shapley"]
    ax = drawing.legend_axes(ax, names)
    lines = [_draw_vector(ax, family.vectors[i], share[i] / share.max()) for i in shown]
    lines.append(ax.axhline(1, color="black", linestyle="--", linewidth=1))
    sizes = f"size j (added to j − 1 others)\n{reading.scored_on(explanation)}"
    drawing.whole_numbers(ax, sizes, 0.5, family.d + 0.5)
    ax.set(yscale="log", ylabel="weight $d \\cdot w_j$ (Shapley: 1)")
    ax.set_ylim(0.02, 1.5 * family.d * family.vectors[shown].max())
    ax.yaxis.set_major_formatter("{x:g}")
    left = int((share > 0).sum()) - len(shown)
    heading = f"weight, rows{' of all games' if games else ''}" + (f"\n({left} more chosen)" if left else "")
    drawing.legend(ax, lines, names, title=heading, **drawing.AT_SIDE)
    return drawing.finished(ax, title)


def _draw_vector(ax: Axes, vector: FloatArray, often: float) -> Line2D:
    """The weights above 0; a weight of one size is a dot."""
    j = np.flatnonzero(vector) + 1
    looks: dict[str, Any] = {"linewidth": 1 + 2 * often, "alpha": 0.6 + 0.4 * often, "markersize": 4 + 3 * often}
    looks["color"] = drawing.low_to_high()(float(vector @ np.linspace(0, 1, len(vector))))
    looks["marker"] = "o" if len(vector) <= 15 or len(j) == 1 else None
    return ax.plot(j, len(vector) * vector[j - 1], clip_on=len(j) > 1, **looks)[0]


def bar(
    explanation: Explanation,
    row: int | None = None,
    output: int | str = 0,
    max_display: int = 10,
    ax: Axes | None = None,
) -> Axes:
    """WeightedSHAP beside Shapley: mean |φ| over all rows, or signed values of one `row` with ± one standard error."""
    explanation, title = reading.one_output(explanation, output)
    row = None if row is None else reading.row_position(explanation, row)
    phis = explanation.values, explanation.shapley
    heights, others = (np.abs(phi).mean(axis=0) if row is None else phi[row] for phi in phis)
    top = reading.largest(heights, max_display)
    names = [explanation.feature_names[i] for i in top]
    ax, places = drawing.bar_axes(ax, names, head=0.3, total=len(heights))
    chosen = ax.barh(places - 0.2, heights[top], height=0.4, color=BLUE)
    uniform = ax.barh(places + 0.2, others[top], height=0.4, color=VERMILION, alpha=0.8)
    if row is not None and explanation.standard_errors is not None:
        drawing.error_lines(ax, heights[top], places - 0.2, explanation.standard_errors[row][top])
    ax.vlines(0, *ax.get_ylim(), color="black", linewidth=0.8)
    games, _ = reading.games_and_weights(explanation.family)
    drawing.legend_on_top(ax, [chosen, uniform], ["WeightedSHAP", f"Shapley of {games[0]}" if games else "Shapley"])
    what = "mean |φ| over the rows" if row is None else f"φ of row {row}"
    drawing.few_ticks(ax, f"{what}\n{reading.game_shown(explanation, row)}")
    return drawing.finished(ax, title)


def beeswarm(explanation: Explanation, output: int | str = 0, max_display: int = 10, ax: Axes | None = None) -> Axes:
    """One dot for each row and feature at its φ*, coloured by the value of the feature.

    Features are ordered by mean |φ*|. Colours run from the 5 % to the 95 % quantile of the feature; grey is missing,
    not a number, or a group of columns. Dots are drawn as pixels, so that a PDF of many rows stays small.
    """
    explanation, title = reading.one_output(explanation, output)
    values = explanation.values  # (n, d)
    top = reading.largest(np.abs(values).mean(axis=0), max_display)
    names = [explanation.feature_names[i] for i in top]
    ax, places = drawing.bar_axes(ax, names, slot=0.3, total=values.shape[1])
    colours = [_relative(reading.column(explanation, i), len(values)) for i in top.tolist()]
    low, high = float(values[:, top].min()), float(values[:, top].max())
    diameter = 3.7 if len(values) <= 500 else 2.2  # points
    for place, i, colour in zip(places, top, colours, strict=True):
        height = place + _stacked(values[:, i], low, high, diameter)
        dots = ax.scatter(
            values[:, i], height, s=diameter**2, c=colour, cmap=drawing.low_to_high(), vmin=0, vmax=1,
            plotnonfinite=True, linewidths=0, rasterized=True, zorder=2,
        )  # fmt: skip
    ax.axvline(0, color="black", linewidth=0.8, zorder=1)
    drawing.few_ticks(ax, f"φ* (below 0: lowers the prediction)\n{reading.game_shown(explanation)}")
    grey = np.isnan(colours)
    if not grey.all():
        label = "value of the feature" + (" (grey: not a number)" if grey.any() else "")
        drawing.colour_bar(ax, dots, label).set_ticks([0, 1], labels=["low", "high"])
    return drawing.finished(ax, title)


def _relative(values: pd.Series[Any] | None, n: int) -> FloatArray:
    """(n,) where each value stands between the 5 % and the 95 % quantile, 0..1; NaN where it is not a number."""
    values = None if values is None else values.infer_objects()
    if values is None or not pd.api.types.is_numeric_dtype(values.dtype):
        return np.full(n, np.nan)
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    finite = numbers[np.isfinite(numbers)]
    low, high = np.quantile(finite, [0.05, 0.95]) if finite.size else (np.nan, np.nan)
    if low == high:  # most rows alike: let the others stand out
        low, high = finite.min(), finite.max()
    if low == high:
        return np.where(np.isnan(numbers), np.nan, 0.5)
    return np.asarray(np.clip((numbers - low) / (high - low), 0, 1))


def _stacked(values: FloatArray, low: float, high: float, diameter: float) -> FloatArray:
    """(n,) heights around 0 that keep the dots of a column, as wide as a dot, apart; closer where they are many."""
    columns, step = 220 / diameter, 0.042 * diameter  # for about 220 points between low and high, 24 from line to line
    bins = np.floor(columns * (values - low) / ((high - low) or 1.0))
    rank = pd.Series(bins).groupby(bins).cumcount().to_numpy()  # 0, 1, … within each column
    height = (rank + 1) // 2 * np.where(rank % 2, 1, -1)
    return np.asarray(height * min(step, 0.34 / max(1, np.abs(height).max())))


def stability(explanation: Explanation, output: int | str = 0, ax: Axes | None = None) -> Axes:
    """Can the ranking be trusted? The chance that the first k features of a row are not in their true order, against k.

    The chances are those of `Explanation.instability`, which knows the error of sampling only; of at most 100 rows,
    evenly spread, and their 20 most influential features. Rows with unknown standard errors are counted apart.
    """
    explanation, title = reading.one_output(explanation, output)
    chance = 100 * _chances(explanation)  # (rows, sizes)
    sizes = np.array(STABILITY_SIZES[: chance.shape[1]])
    drawn = chance[~np.isnan(chance).any(axis=1)]
    ax = drawing.axes(ax)
    exact, on = explanation.standard_errors is None, reading.game_shown(explanation)
    if len(drawn):
        _draw_chances(ax, sizes, drawn[:1] if exact else drawn)
    ax.set(xticks=sizes, xlim=(0.8, sizes[-1] + 0.2), xlabel=f"k: how many features, most influential first\n{on}")
    ax.set(ylim=(-2, 102), ylabel="chance that the order of the\nfirst k is not the true one, %")
    if exact or not len(drawn):
        ax.text(0.5, 0.5, EXACT if exact else UNKNOWN, transform=ax.transAxes, ha="center", va="center")
    elif unknown := len(chance) - len(drawn):
        ax.set_xlabel(f"{ax.get_xlabel()}\n(standard errors unknown in {unknown} of {len(chance)} rows)")
    return drawing.finished(ax, title)


def _chances(explanation: Explanation) -> FloatArray:
    """(rows, sizes) instability of some rows, evenly spread; NaN where it is unknown."""
    n, d = explanation.values.shape
    rows = np.unique(np.linspace(0, n - 1, min(n, STABILITY_ROWS)).round().astype(np.intp))
    values, errors = explanation.values[rows], explanation.standard_errors
    top = order_of(values)[:, :STABILITY_FEATURES]
    if errors is not None:
        unknown = np.isnan(errors[rows]).any(axis=1, keepdims=True)
        errors = np.where(unknown, np.nan, np.take_along_axis(errors[rows], top, axis=1))
    values, base = np.take_along_axis(values, top, axis=1), explanation.base_values[rows]
    some = replace(explanation, values=values, standard_errors=errors, base_values=base)
    return np.column_stack([some.instability(k) for k in STABILITY_SIZES if k <= d])


def _draw_chances(ax: Axes, sizes: IntArray, chance: FloatArray) -> None:
    quantiles = np.quantile(chance, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
    middle = ax.plot(sizes, quantiles[2], "o-", color=BLUE)[0]
    if len(chance) == 1:
        return
    wide = ax.fill_between(sizes, quantiles[0], quantiles[4], color=GREY, linewidth=0, alpha=0.7, zorder=0)
    half = ax.fill_between(sizes, quantiles[1], quantiles[3], color=BLUE, linewidth=0, alpha=0.3, zorder=1)
    names = ["median of the rows", "middle half", "middle 90 %"]
    drawing.legend(ax, [middle, half, wide], names, title=f"{len(chance)} rows")
