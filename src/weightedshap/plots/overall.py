"""Figures of the method: recovery curves, chosen weights, and the stability of rankings."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from weightedshap._checks import FloatArray, IntArray
from weightedshap._format import number, percent, percents, plural
from weightedshap.curves import area, judge_error_share, mean_interval, rank_features
from weightedshap.explanation import Explanation
from weightedshap.explanation.aggregates import Curves, curves_by_method
from weightedshap.explanation.export import output_index
from weightedshap.explanation.summary import game_title
from weightedshap.plots import style
from weightedshap.plots.axes import (
    DASHES,
    LOW_TO_HIGH,
    OUTSIDE_LEGEND,
    axes_or_new,
    bar_axes,
    draw_legend,
    draw_legend_on_top,
    finish_axes,
    format_tick,
    legend_axes,
    limit_ticks,
    set_integer_axis,
)
from weightedshap.plots.data import (
    Output,
    chosen_shares,
    evenly_spread,
    explained_game,
    games_and_weights,
    largest,
    select_output,
    shares_by_game,
    sort_by_mean_size,
    utility_in_words,
    weight_in_words,
    weights_to_show,
)

STABILITY_SIZES = (1, 2, 3, 5, 10)
STABILITY_ROWS = 100
STABILITY_FEATURES = 20
MIN_ERROR_SHARE = 0.005  # share of the area; a smaller error of the judge is not mentioned
UNKNOWN_ERRORS = "The standard errors are unknown,\nso nothing can be said about the ranking."
NOTHING_SAMPLED = (
    "Nothing was sampled, so there is no error of sampling to draw. What may change is the judge,"
    " which was learned. Explain the same rows with the judge fitted again, others ="
    " [ws.Explainer(model, background, random_state=s)(X) for s in range(1, 5)], and pass"
    " stability(others=others)."
)


def recovery(
    explanation: Explanation,
    output: Output = 0,
    ax: Axes | None = None,
    curves: Curves | None = None,
) -> Axes:
    """Draw how fast the prediction is recovered: the mean error with the top k features known.

    The error is |f(x) − v(top k)| for k = 0..d; v is the game of the judge. There is one line each
    for WeightedSHAP, Shapley, first and last, with 95 % bands over the rows; the legend gives the
    mean areas under the curves, k = 1..d. A dot marks the end of the curves, where all features are
    known: it is at 0, or, with a grey line, at the error of the judge itself. `curves` are those of
    further methods on the same rows, {"greedy": (n, d + 1[, k])}.
    """
    one, title = select_output(explanation, output)
    own_curves = curves_by_method(one)
    all_curves = dict(own_curves)
    for name, array in (curves or {}).items():
        all_curves[name] = _check_other_curves(explanation, name, array, output, own_curves)
    ax = axes_or_new(ax)
    d = one.curves.shape[1] - 1
    lines = [
        _draw_curve(ax, name, array, place)
        for place, (name, array) in enumerate(all_curves.items())
    ]
    set_integer_axis(ax, "number of features known, most influential first", 0, d)
    judge = game_title(one.judge_info)
    ax.set(ylim=(0, None), ylabel=f"mean |f(x) − v(top k)|\njudged by {judge}")
    ax.yaxis.set_major_formatter(format_tick)
    _mark_end(ax, d, float(one.curves[:, -1].mean()), judge_error_share(all_curves["Shapley"]))
    names = [
        f"{name} {number(float(area(array.mean(axis=0))), 3)}" for name, array in all_curves.items()
    ]
    games, _ = games_and_weights(one.family)
    first_game = f"\n(Shapley, first, last of {games[0]})" if games else ""
    draw_legend(ax, lines, names, title=f"area under the curve{first_game}")
    return finish_axes(ax, title)


def _mark_end(ax: Axes, d: int, level: float, error_share: float) -> None:
    """Mark the end of the recovery curves, where all d features are known, by a dot and a note.

    `level` is the mean error at the end, and `error_share` its share of Shapley's area.
    """
    if error_share > MIN_ERROR_SHARE:
        ax.axhline(level, color=style.DARK_GREY, linewidth=1, zorder=1)
        text = (
            f"all known: the judge itself misses {number(level, 3)},\n{percent(error_share)} of"
            " Shapley's area"
        )
    else:
        text = "all known: the judge gives f(x)"
    ax.plot(d, level, "o", color=style.INK, markersize=5, clip_on=False, zorder=5)
    ax.annotate(
        text,
        (d, level),
        (-6, 48),
        textcoords="offset points",
        ha="right",
        arrowprops={"arrowstyle": "-", "linewidth": 0.6},
        fontsize="x-small",
        color=style.INK,
        bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 1},
    )


def _check_other_curves(
    explanation: Explanation, name: str, curves: FloatArray, output: Output, own_curves: Curves
) -> FloatArray:
    """Check the curves of a further method; return those of one output, (n, d + 1).

    `own_curves` are the curves of the explanation, whose names the method must not have.
    """
    array = np.asarray(curves, dtype=np.float64)
    shape = explanation.curves.shape
    if name in own_curves:
        raise ValueError(
            f"`curves` names a method {name!r}, which the explanation draws itself. Name it"
            " otherwise."
        )
    if explanation.has_outputs and array.shape == shape:
        array = array[..., output_index(explanation, output)]
    if array.shape != shape[:2]:
        raise ValueError(
            f"`curves[{name!r}]` must have shape {shape[:2]}, like those explained; got"
            f" {array.shape}."
        )
    if not np.isfinite(array).all():
        raise ValueError(
            f"The curves of {name!r} hold NaN or infinite values, so they have no mean."
        )
    return array


def _draw_curve(ax: Axes, name: str, curves: FloatArray, place: int) -> Line2D:
    """Draw the mean of the curves (n, d + 1) of one method, with its 95 % band.

    `place` is the position of the method in the figure, by which an unknown method gets a colour.
    """
    colour, dashes, width = style.METHODS.get(name, style.OTHERS[place % len(style.OTHERS)])
    mean, margin = mean_interval(curves)
    k = np.arange(len(mean))
    if not np.isnan(margin).any():
        low = np.maximum(mean - margin, 0)
        ax.fill_between(k, low, mean + margin, color=colour, alpha=0.12, linewidth=0)
    (line,) = ax.plot(
        k,
        mean,
        color=colour,
        linestyle=DASHES[dashes],
        linewidth=width,
        zorder=3 if name == "WeightedSHAP" else 2,
    )
    return line


def weights(explanation: Explanation, output: Output = 0, ax: Axes | None = None) -> Axes:
    """Draw how often each weight was chosen, as a share of the rows.

    Weights are sorted from features alone (top) to all others known (bottom), and the Shapley
    weight has another colour. Of more than 20 weights only those that were chosen are shown, at
    most the 30 most frequent, and the Shapley weight. If several games compete, each bar is divided
    by game.
    """
    explanation, title = select_output(explanation, output)
    games, family, shares = shares_by_game(explanation.family, chosen_shares(explanation))
    share = shares.sum(axis=0)  # of each weight, whatever the game
    shown, uniform = weights_to_show(family, share)
    names = []
    for i in shown:
        label = family.labels[i]
        is_renamed_shapley = i == uniform and label != "Shapley"
        names.append(f"{label} = Shapley" if is_renamed_shapley else label)
    ax, places = bar_axes(ax, names, slot=0.2, head=0.3 if games else 0)

    colours: list[Any] = [[style.VERMILION if i == uniform else style.BLUE for i in shown]]
    if games:
        colours = [*style.OF_GAMES]
    starts = 100 * (shares.cumsum(axis=0) - shares)
    bars = [
        ax.barh(places, 100 * part[shown], left=start[shown], color=colour, height=0.75)
        for part, start, colour in zip(shares, starts, cycle(colours))
    ]
    share_texts = dict(zip(np.flatnonzero(share), percents(share[share > 0]), strict=True))
    ax.bar_label(bars[-1], [share_texts.get(i, "") for i in shown], padding=3, fontsize="small")
    ax.set(xlim=(0, 112 * max(share.max(), 0.01)))
    limit_ticks(ax, "rows that chose the weight, %", utility_in_words(explanation))
    if len(shown) > 5:
        ax.set_ylabel("← with all others known       features alone →", fontsize="small")
    if games:
        totals = percents(shares.sum(axis=1))
        legend_names = [f"{game} {total}" for game, total in zip(games, totals, strict=True)]
        draw_legend_on_top(ax, bars, legend_names)
    return finish_axes(ax, title)


def weight_vectors(
    explanation: Explanation, output: Output = 0, max_display: int = 5, ax: Axes | None = None
) -> Axes:
    """Plot the `max_display` weight vectors chosen most often against the coalition size j.

    They are sorted from small coalitions to large ones. The y axis shows d·w_j, the ratio to the
    Shapley weight (dashed line), on a log scale that begins at 1/50.
    """
    explanation, title = select_output(explanation, output)
    games, family, shares = shares_by_game(explanation.family, chosen_shares(explanation))
    share = shares.sum(axis=0)  # of each weight, whatever the game
    frequent = largest(share, max_display)
    shown = sort_by_mean_size(family, frequent[share[frequent] > 0])
    share_texts = dict(zip(np.flatnonzero(share), percents(share[share > 0]), strict=True))
    names = [
        f"{share_texts[i]} {family.labels[i]}: {weight_in_words(family.vectors[i])}" for i in shown
    ]
    names.append("Shapley")
    ax = legend_axes(ax, names)
    lines = [_draw_vector(ax, family.vectors[i], share[i] / share.max()) for i in shown]
    lines.append(ax.axhline(1, color="black", linestyle="--", linewidth=1))
    sizes = "size j: alone ← added to j − 1 others → with all others"
    set_integer_axis(ax, f"{sizes}\n{utility_in_words(explanation)}", 0.5, family.d + 0.5)
    ax.set(yscale="log", ylabel="weight $d \\cdot w_j$ (Shapley: 1)")
    ax.set_ylim(0.02, 1.5 * family.d * family.vectors[shown].max())
    ax.yaxis.set_major_formatter("{x:g}")
    heading = f"rows{' of all games' if games else ''} and their weight"
    n_more = int((share > 0).sum()) - len(shown)
    if n_more:
        heading += f"\n({n_more} more chosen)"
    draw_legend(ax, lines, names, title=heading, **OUTSIDE_LEGEND)
    return finish_axes(ax, title)


def _draw_vector(ax: Axes, vector: FloatArray, frequency: float) -> Line2D:
    """Plot the positive entries of a weight vector; a higher `frequency` makes a thicker line.

    A vector with a single positive weight is drawn as a dot.
    """
    j = np.flatnonzero(vector) + 1
    (line,) = ax.plot(
        j,
        len(vector) * vector[j - 1],
        clip_on=len(j) > 1,
        color=LOW_TO_HIGH(float(vector @ np.linspace(0, 1, len(vector)))),
        marker="o" if len(vector) <= 15 or len(j) == 1 else None,
        markersize=4 + 3 * frequency,
        linewidth=1 + 2 * frequency,
        alpha=0.6 + 0.4 * frequency,
    )
    return line


def stability(
    explanation: Explanation,
    output: Output = 0,
    others: Sequence[Explanation] = (),
    ax: Axes | None = None,
) -> Axes:
    """Plot how unstable the ranking of the k most influential features is, against k.

    With `others`, explanations of the same rows whose judge was fitted again (another
    `random_state`): the share of rows and fits in which the order of the first k features, or the
    set of them, differs from this explanation.

    Without them, if Δ was sampled: the chance that the first k features are not in their true
    order, by `Explanation.instability`, which accounts for the error of sampling only. It is
    computed for at most 100 rows, evenly spread, and their 20 most influential features. Rows with
    unknown standard errors are counted separately.
    """
    one, title = select_output(explanation, output)
    if len(others):
        ax = _draw_refits(
            ax, one, [_orders_of_refit(explanation, other, output) for other in others]
        )
        return finish_axes(
            ax, title, f"{len(one):,} rows, {plural(len(others), 'further fit')} of the judge"
        )
    if one.standard_errors is None:
        raise ValueError(NOTHING_SAMPLED)
    ax, sizes = _stability_axes(
        ax, one, "chance that the order of the\nfirst k is not the true one, %"
    )
    instability = 100 * _instability_of_rows(one, sizes)  # (rows, sizes)
    is_known = ~np.isnan(instability).any(axis=1)
    n_unknown = int((~is_known).sum())
    if is_known.any():
        _draw_quantiles(ax, sizes, instability[is_known])
        if n_unknown:
            ax.set_xlabel(
                f"{ax.get_xlabel()}\n(standard errors unknown in {n_unknown} of"
                f" {len(instability)} rows)"
            )
    else:
        ax.text(0.5, 0.5, UNKNOWN_ERRORS, transform=ax.transAxes, ha="center", va="center")
    return finish_axes(ax, title, "error of sampling only")


def _stability_axes(ax: Axes | None, explanation: Explanation, label: str) -> tuple[Axes, IntArray]:
    """Return Axes that show a percentage against k, and the numbers k of features to draw."""
    ax = axes_or_new(ax)
    sizes = np.array([k for k in STABILITY_SIZES if k <= explanation.values.shape[1]])
    game = explained_game(explanation)
    ax.set(
        xticks=sizes,
        xlim=(0.8, sizes[-1] + 0.2),
        xlabel=f"k: how many features, most influential first\n{game}",
    )
    ax.set(ylim=(-2, 102), ylabel=label)
    return ax, sizes


def _orders_of_refit(explanation: Explanation, other: Explanation, output: Output) -> IntArray:
    """Check another explanation of the same rows; return its rankings (n, d) of the features."""
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
    one, _ = select_output(other, output)
    return one.orders


def _draw_refits(ax: Axes | None, explanation: Explanation, orders: Sequence[IntArray]) -> Axes:
    """Draw how often the order, and the set, of the first k features change between fits.

    `orders` contains the rankings (n, d) of each further fit. A line shows the mean over the fits,
    and a dot each fit.
    """
    ax, sizes = _stability_axes(
        ax, explanation, "rows in which the first k change\nwhen the judge is fitted again, %"
    )
    lines = []
    own = explanation.orders
    # Sorted, the first k are compared as a set.
    for form, colour, dashes in ((np.asarray, style.BLUE, "-"), (np.sort, style.VERMILION, "--")):
        changed = [
            [(form(other[:, :k]) != form(own[:, :k])).any(axis=1).mean() for k in sizes]
            for other in orders
        ]
        share = 100 * np.array(changed)  # (fits, sizes)
        lines += ax.plot(sizes, share.mean(axis=0), color=colour, linestyle=dashes, linewidth=2)
        ax.scatter(
            np.tile(sizes, len(share)), share.ravel(), s=14, color=colour, alpha=0.5, linewidths=0
        )
    draw_legend(ax, lines, ["another order", "other features"], loc="upper left")
    return ax


def _instability_of_rows(explanation: Explanation, sizes: IntArray) -> FloatArray:
    """Return the instability of the rankings of some rows, evenly spread, as (rows, sizes).

    `sizes` are numbers k of first features. NaN where the standard errors are unknown.
    """
    rows = evenly_spread(len(explanation), STABILITY_ROWS)
    values = explanation.values[rows]
    errors = np.asarray(explanation.standard_errors)[rows]
    is_unknown = np.isnan(errors).any(axis=1, keepdims=True)
    top = rank_features(values)[:, :STABILITY_FEATURES]
    top_errors = np.take_along_axis(errors, top, axis=1)
    sample = replace(
        explanation,
        values=np.take_along_axis(values, top, axis=1),
        standard_errors=np.where(is_unknown, np.nan, top_errors),
        base_values=explanation.base_values[rows],
    )
    return np.column_stack([sample.instability(k) for k in sizes])


def _draw_quantiles(ax: Axes, sizes: IntArray, instability: FloatArray) -> None:
    """Draw the median instability over the rows, with bands for the middle 50 % and 90 %.

    `instability` is (n, sizes), and `sizes` are the numbers k on the x axis. A single row has no
    bands.
    """
    quantiles = np.quantile(instability, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
    (median,) = ax.plot(sizes, quantiles[2], "o-", color=style.BLUE)
    if len(instability) == 1:
        return
    wide = ax.fill_between(
        sizes, quantiles[0], quantiles[4], color=style.GREY, linewidth=0, alpha=0.7, zorder=0
    )
    half = ax.fill_between(
        sizes, quantiles[1], quantiles[3], color=style.BLUE, linewidth=0, alpha=0.3, zorder=1
    )
    names = ["median of the rows", "middle half", "middle 90 %"]
    draw_legend(ax, [median, half, wide], names, title=f"{len(instability)} rows")
