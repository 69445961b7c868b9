"""Figures of the method: recovery curves, chosen weights, and how far the ranking can be
trusted."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from weightedshap._checks import FloatArray, IntArray
from weightedshap._format import number, percent, percents, plural
from weightedshap.curves import area, mean_interval, misfit, order_of
from weightedshap.explanation import Explanation
from weightedshap.explanation.aggregates import Curves, own_curves
from weightedshap.explanation.export import place_of
from weightedshap.explanation.summary import named
from weightedshap.plots import axes as drawing
from weightedshap.plots import data as reading
from weightedshap.plots import style
from weightedshap.plots.axes import Canvas
from weightedshap.plots.data import Output

STABILITY_SIZES = (1, 2, 3, 5, 10)
STABILITY_ROWS = 100
STABILITY_FEATURES = 20
LEAST_MISFIT = 0.005  # of the area: less is not told
UNKNOWN = "The standard errors are unknown,\nso nothing can be said about the ranking."
NOTHING_SAMPLED = (
    "Nothing was sampled, so there is no error of sampling to draw. What may change is the judge,"
    " which was learned. Explain the same rows with the judge fitted again, others ="
    " [ws.Explainer(model, background, random_state=s)(X) for s in range(1, 5)], and pass"
    " stability(others=others)."
)


def recovery(
    explanation: Explanation, output: Output = 0, ax: Canvas = None, curves: Curves | None = None
) -> Axes:
    """How fast the prediction is recovered: mean |f(x) − v(top k)| against k = 0..d, v on the
    judge.

    One line each for WeightedSHAP, Shapley, first and last, with 95 % bands over the rows; the
    legend gives the mean areas, k = 1..d. A dot marks where the curves end, when all features are
    known: at 0, or, with a grey line, at what the judge misses by itself. `curves` are those of
    further methods on the same rows, {"greedy": (n, d + 1[, k])}.
    """
    one, title = reading.one_output(explanation, output)
    drawn = own_curves(one)
    drawn |= {
        name: _further(explanation, name, array, output, drawn)
        for name, array in (curves or {}).items()
    }
    ax = drawing.axes(ax)
    d = one.curves.shape[1] - 1
    lines = [
        _draw_curve(ax, name, array, place) for place, (name, array) in enumerate(drawn.items())
    ]
    drawing.whole_numbers(ax, "number of features known, most influential first", 0, d)
    ax.set(ylim=(0, None), ylabel=f"mean |f(x) − v(top k)|\njudged by {named(one.judge_info)}")
    ax.yaxis.set_major_formatter(drawing.numeral)
    _mark_end(ax, d, float(one.curves[:, -1].mean()), misfit(drawn["Shapley"]))
    names = [
        f"{name} {number(float(area(array.mean(axis=0))), 3)}" for name, array in drawn.items()
    ]
    games, _ = reading.games_and_weights(one.family)
    first = f"\n(Shapley, first, last of {games[0]})" if games else ""
    drawing.legend(ax, lines, names, title=f"area under the curve{first}")
    return drawing.finished(ax, title)


def _mark_end(ax: Axes, d: int, level: float, share: float) -> None:
    """Where the curves end when all features are known, and why."""
    if share > LEAST_MISFIT:
        ax.axhline(level, color=style.DARK_GREY, linewidth=1, zorder=1)
        said = (
            f"all known: the judge itself misses {number(level, 3)},\n{percent(share)} of Shapley's"
            " area"
        )
    else:
        said = "all known: the judge gives f(x)"
    ax.plot(d, level, "o", color=style.INK, markersize=5, clip_on=False, zorder=5)
    line = {"arrowstyle": "-", "linewidth": 0.6}
    text = ax.annotate(
        said, (d, level), (-6, 48), textcoords="offset points", ha="right", arrowprops=line
    )
    text.set(
        fontsize="x-small",
        color=style.INK,
        bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 1},
    )


def _further(
    explanation: Explanation, name: str, curves: FloatArray, output: Output, taken: Curves
) -> FloatArray:
    """(n, d + 1) the curves of another method, checked."""
    array = np.asarray(curves, dtype=np.float64)
    whole = explanation.curves.shape
    if name in taken:
        raise ValueError(
            f"`curves` names a method {name!r}, which the explanation draws itself. Name it"
            " otherwise."
        )
    if explanation.has_outputs and array.shape == whole:
        array = array[..., place_of(explanation, output)]
    if array.shape != whole[:2]:
        raise ValueError(
            f"`curves[{name!r}]` must have shape {whole[:2]}, like those explained; got"
            f" {array.shape}."
        )
    if not np.isfinite(array).all():
        raise ValueError(
            f"The curves of {name!r} hold NaN or infinite values, so they have no mean."
        )
    return array


def _draw_curve(ax: Axes, name: str, curves: FloatArray, place: int) -> Line2D:
    colour, dashes, width = style.METHODS.get(name, style.OTHERS[place % len(style.OTHERS)])
    mean, margin = mean_interval(curves)
    k = np.arange(len(mean))
    if not np.isnan(margin).any():
        ax.fill_between(
            k, np.maximum(mean - margin, 0), mean + margin, color=colour, alpha=0.12, linewidth=0
        )
    looks = {"color": colour, "linestyle": drawing.DASHES[dashes], "linewidth": width}
    return ax.plot(k, mean, **looks, zorder=3 if name == "WeightedSHAP" else 2)[0]


def weights(explanation: Explanation, output: Output = 0, ax: Canvas = None) -> Axes:
    """How often each weight was chosen, as a share of the rows; the Shapley weight stands out.

    Weights run from features alone (top) to all others known. Of more than 20 only chosen ones are
    shown, the 30 most frequent at most, and the Shapley weight. Where games compete, a bar has a
    part for each of them.
    """
    explanation, title = reading.one_output(explanation, output)
    games, family, shares = reading.shares_by_game(
        explanation.family, reading.chosen_shares(explanation)
    )
    share = shares.sum(axis=0)
    shown, uniform = reading.weights_to_show(family, share)
    names = [
        family.labels[i] + (" = Shapley" if i == uniform and family.labels[i] != "Shapley" else "")
        for i in shown
    ]
    ax, places = drawing.bar_axes(ax, names, slot=0.2, head=0.3 if games else 0)
    own = [style.VERMILION if i == uniform else style.BLUE for i in shown]
    colours: list[Any] = [*style.OF_GAMES] if games else [own]
    starts = 100 * (shares.cumsum(axis=0) - shares)
    bars = [
        ax.barh(places, 100 * part[shown], left=start[shown], color=colour, height=0.75)
        for part, start, colour in zip(shares, starts, cycle(colours))
    ]
    told = dict(zip(np.flatnonzero(share), percents(share[share > 0])))
    ax.bar_label(bars[-1], [told.get(i, "") for i in shown], padding=3, fontsize="small")
    ax.set(xlim=(0, 112 * max(share.max(), 0.01)))
    drawing.few_ticks(ax, "rows that chose the weight, %", reading.scored_on(explanation))
    if len(shown) > 5:
        ax.set_ylabel("← with all others known       features alone →", fontsize="small")
    if games:
        totals = zip(games, percents(shares.sum(axis=1)))
        drawing.legend_on_top(ax, bars, [f"{game} {total}" for game, total in totals])
    return drawing.finished(ax, title)


def weight_vectors(
    explanation: Explanation, output: Output = 0, max_display: int = 5, ax: Canvas = None
) -> Axes:
    """The `max_display` weight vectors that most rows chose against the size j, from small
    coalitions to large ones.

    Drawn is d·w_j, how many times the weight of Shapley (dashes), on a log scale that leaves out
    what is below 1/50.
    """
    explanation, title = reading.one_output(explanation, output)
    games, family, shares = reading.shares_by_game(
        explanation.family, reading.chosen_shares(explanation)
    )
    share = shares.sum(axis=0)
    frequent = reading.largest(share, max_display)
    shown = reading.by_mean_size(family, frequent[share[frequent] > 0])
    told = dict(zip(np.flatnonzero(share), percents(share[share > 0])))
    words = [f"{family.labels[i]}: {reading.weight_in_words(family.vectors[i])}" for i in shown]
    names = [*(f"{told[i]} {label}" for i, label in zip(shown, words)), "Shapley"]
    ax = drawing.legend_axes(ax, names)
    lines = [_draw_vector(ax, family.vectors[i], share[i] / share.max()) for i in shown]
    lines.append(ax.axhline(1, color="black", linestyle="--", linewidth=1))
    sizes = "size j: alone ← added to j − 1 others → with all others"
    drawing.whole_numbers(ax, f"{sizes}\n{reading.scored_on(explanation)}", 0.5, family.d + 0.5)
    ax.set(yscale="log", ylabel="weight $d \\cdot w_j$ (Shapley: 1)")
    ax.set_ylim(0.02, 1.5 * family.d * family.vectors[shown].max())
    ax.yaxis.set_major_formatter("{x:g}")
    left = int((share > 0).sum()) - len(shown)
    heading = f"rows{' of all games' if games else ''} and their weight" + (
        f"\n({left} more chosen)" if left else ""
    )
    drawing.legend(ax, lines, names, title=heading, **drawing.AT_SIDE)
    return drawing.finished(ax, title)


def _draw_vector(ax: Axes, vector: FloatArray, often: float) -> Line2D:
    """The weights above 0; a weight of one size is a dot."""
    j = np.flatnonzero(vector) + 1
    looks: dict[str, Any] = {
        "linewidth": 1 + 2 * often,
        "alpha": 0.6 + 0.4 * often,
        "markersize": 4 + 3 * often,
    }
    looks["color"] = drawing.LOW_TO_HIGH(float(vector @ np.linspace(0, 1, len(vector))))
    looks["marker"] = "o" if len(vector) <= 15 or len(j) == 1 else None
    return ax.plot(j, len(vector) * vector[j - 1], clip_on=len(j) > 1, **looks)[0]


def stability(
    explanation: Explanation,
    output: Output = 0,
    others: Sequence[Explanation] = (),
    ax: Canvas = None,
) -> Axes:
    """Can the ranking be trusted? How often the first k features of a row are others, or in another
    order, against k.

    With `others`, explanations of the same rows whose judge was fitted again (another
    `random_state`): in what share of rows and fits the order of the first k, and the set of them,
    is not the one of this explanation.

    Without them, where Δ was sampled: the chance that the first k are not in their true order, by
    `Explanation.instability`, which knows the error of sampling only; of at most 100 rows, evenly
    spread, and their 20 most influential features. Rows with unknown standard errors are counted
    apart.
    """
    one, title = reading.one_output(explanation, output)
    if len(others):
        ax = _draw_refits(ax, one, [_same_rows(explanation, other, output) for other in others])
        return drawing.finished(
            ax, title, f"{len(one):,} rows, {plural(len(others), 'further fit')} of the judge"
        )
    if one.standard_errors is None:
        raise ValueError(NOTHING_SAMPLED)
    ax, sizes = _stability_axes(
        ax, one, "chance that the order of the\nfirst k is not the true one, %"
    )
    chance = 100 * _chances(one, sizes)  # (rows, sizes)
    drawn = chance[~np.isnan(chance).any(axis=1)]
    if len(drawn):
        _draw_chances(ax, sizes, drawn)
    else:
        ax.text(0.5, 0.5, UNKNOWN, transform=ax.transAxes, ha="center", va="center")
    if 0 < (unknown := len(chance) - len(drawn)) < len(chance):
        ax.set_xlabel(
            f"{ax.get_xlabel()}\n(standard errors unknown in {unknown} of {len(chance)} rows)"
        )
    return drawing.finished(ax, title, "error of sampling only")


def _stability_axes(ax: Canvas, explanation: Explanation, label: str) -> tuple[Axes, IntArray]:
    """Sets the axes, and tells the sizes k to draw."""
    ax = drawing.axes(ax)
    sizes = np.array([k for k in STABILITY_SIZES if k <= explanation.values.shape[1]])
    on = reading.game_shown(explanation)
    ax.set(
        xticks=sizes,
        xlim=(0.8, sizes[-1] + 0.2),
        xlabel=f"k: how many features, most influential first\n{on}",
    )
    ax.set(ylim=(-2, 102), ylabel=label)
    return ax, sizes


def _same_rows(explanation: Explanation, other: Explanation, output: Output) -> IntArray:
    """(n, d) the order of the features in another explanation, which must be of the same rows."""
    if not isinstance(other, Explanation) or other.orders.shape != explanation.orders.shape:
        raise ValueError(
            "`others` must be explanations of the same rows, features and outputs, by other fits."
        )
    if other.feature_names != explanation.feature_names or not np.allclose(
        other.predictions, explanation.predictions
    ):
        raise ValueError(
            "`others` holds an explanation of other features or predictions. Explain the same rows"
            " again."
        )
    return reading.one_output(other, output)[0].orders


def _draw_refits(ax: Canvas, explanation: Explanation, orders: Sequence[IntArray]) -> Axes:
    """How often the order, and the set, of the first k features changes; a line for the mean, a dot
    for each fit."""
    ax, sizes = _stability_axes(
        ax, explanation, "rows in which the first k change\nwhen the judge is fitted again, %"
    )
    lines = []
    own = explanation.orders
    for of, colour, dashes in ((np.asarray, style.BLUE, "-"), (np.sort, style.VERMILION, "--")):
        changed = [
            [(of(one[:, :k]) != of(own[:, :k])).any(axis=1).mean() for k in sizes] for one in orders
        ]
        share = 100 * np.array(changed)  # (fits, sizes)
        lines += ax.plot(sizes, share.mean(axis=0), color=colour, linestyle=dashes, linewidth=2)
        ax.scatter(
            np.tile(sizes, len(share)), share.ravel(), s=14, color=colour, alpha=0.5, linewidths=0
        )
    drawing.legend(ax, lines, ["another order", "other features"], loc="upper left")
    return ax


def _chances(explanation: Explanation, sizes: IntArray) -> FloatArray:
    """(rows, sizes) instability of some rows, evenly spread; NaN where it is unknown."""
    rows = reading.spread(len(explanation), STABILITY_ROWS)
    values = explanation.values[rows]
    errors = np.asarray(explanation.standard_errors)[rows]
    top = order_of(values)[:, :STABILITY_FEATURES]
    unknown = np.isnan(errors).any(axis=1, keepdims=True)
    errors = np.where(unknown, np.nan, np.take_along_axis(errors, top, axis=1))
    values = np.take_along_axis(values, top, axis=1)
    base = explanation.base_values[rows]
    some = replace(explanation, values=values, standard_errors=errors, base_values=base)
    return np.column_stack([some.instability(k) for k in sizes])


def _draw_chances(ax: Axes, sizes: IntArray, chance: FloatArray) -> None:
    quantiles = np.quantile(chance, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
    middle = ax.plot(sizes, quantiles[2], "o-", color=style.BLUE)[0]
    if len(chance) == 1:
        return
    wide = ax.fill_between(
        sizes, quantiles[0], quantiles[4], color=style.GREY, linewidth=0, alpha=0.7, zorder=0
    )
    half = ax.fill_between(
        sizes, quantiles[1], quantiles[3], color=style.BLUE, linewidth=0, alpha=0.3, zorder=1
    )
    names = ["median of the rows", "middle half", "middle 90 %"]
    drawing.legend(ax, [middle, half, wide], names, title=f"{len(chance)} rows")
