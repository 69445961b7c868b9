"""Bars of features: WeightedSHAP beside Shapley or another attribution, groups of rows, all outputs
in one bar."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from weightedshap._checks import BoolArray, FloatArray, IntArray, positive_integer
from weightedshap._format import number, plural
from weightedshap.explanation import Explanation
from weightedshap.explanation.export import coded, place_of
from weightedshap.plots import axes as drawing
from weightedshap.plots import data as reading
from weightedshap.plots import style
from weightedshap.plots.axes import Canvas
from weightedshap.plots.data import Order, Output

MOST_PARTS = 10  # outputs, or groups, that a figure tells apart
MOST_NAMED = 3  # levels of a category that a rule names
LOOKS: tuple[dict[str, Any], ...] = (
    {"color": style.BLUE},
    {
        "color": style.VERMILION,
        "alpha": 0.75,
        "hatch": "////",
        "edgecolor": "white",
        "linewidth": 0,
    },
)
# Of parts that must be told apart: colours, and hatches where these are used up.
PART_LOOKS: list[dict[str, Any]] = [
    {"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0}
    for hatch, colour in product(("", "////", "...."), style.PALETTE[:-1])
]
Path = dict[int, tuple[float, float]]  # bounds (low, high] by feature
# (n, d) values and standard errors by name.
Attributions = Mapping[str, tuple[FloatArray, FloatArray | None]]
By = str | int | npt.ArrayLike | None


def bar(
    explanation: Explanation,
    row: int | None = None,
    output: Output | None = None,
    max_display: int = 10,
    order: Order = "importance",
    ax: Canvas = None,
) -> Axes:
    """WeightedSHAP beside Shapley: mean |φ| over all rows, or signed values of one `row`.

    The two need not have the same sum, so bars are shares of it, and the numbers at their ends are
    on the scale of the game. Thin lines are ± one standard error where Δ was sampled. Of several
    outputs, without `output` (and `row`), all of them are stacked, WeightedSHAP only.
    """
    one, title = reading.one_output(explanation, 0 if output is None else output)
    if (
        output is None
        and row is None
        and explanation.has_outputs
        and explanation.values.shape[2] > 1
    ):
        return _all_outputs(explanation, max_display, order, ax)
    games, _ = reading.games_and_weights(one.family)
    shapley = f"Shapley of {games[0]}" if games else "Shapley"
    phis = {
        "WeightedSHAP": (one.values, one.standard_errors),
        shapley: (one.shapley, one.shapley_errors),
    }
    ax, _ = _beside(ax, one, phis, row, max_display, order)
    return drawing.finished(ax, title)


def compare(
    explanation: Explanation,
    other: Any,
    names: tuple[str, str] = ("WeightedSHAP", "other"),
    row: int | None = None,
    output: Output = 0,
    max_display: int = 10,
    order: Order = "importance",
    ax: Canvas = None,
) -> Axes:
    """Two attributions of the same rows, feature by feature, drawn as in `bar`.

    At the right stands, over all rows, the rank correlation of the two. `other` is an Explanation,
    a shap.Explanation, or an array (n, d[, k]).
    """
    one, title = reading.one_output(explanation, output)
    theirs = _other_values(explanation, other, place_of(explanation, output))
    ax, top = _beside(
        ax, one, {names[0]: (one.values, None), names[1]: (theirs, None)}, row, max_display, order
    )
    if row is None and len(one) > 2:
        drawing.at_side(
            ax, ax.get_yticks(), [_rank_correlation(one.values[:, i], theirs[:, i]) for i in top]
        )
        ax.set_xlabel(ax.get_xlabel() + "\nat the right: rank correlation r over the rows")
    return drawing.finished(ax, title)


def _other_values(explanation: Explanation, other: Any, place: int) -> FloatArray:
    """(n, d) one output of another attribution of the same rows."""
    values = np.asarray(getattr(other, "values", other), dtype=np.float64)
    if values.shape == explanation.values.shape and explanation.has_outputs:
        values = values[..., place]
    if values.shape != explanation.values.shape[:2] or not np.isfinite(values).all():
        wanted = f"finite attributions of the same rows, of shape {explanation.values.shape}"
        raise ValueError(
            f"`other` must hold {wanted}; got {values.shape}, {np.isnan(values).sum()} of them NaN."
        )
    names = getattr(other, "feature_names", None)
    if names is not None and tuple(map(str, names)) != explanation.feature_names:
        raise ValueError(
            "`other` has other feature names, or in another order. Select the same features of"
            " both."
        )
    return values


def _rank_correlation(one: FloatArray, other: FloatArray) -> str:
    ranks = np.stack([pd.Series(values).rank() for values in (one, other)])
    return (
        f"r {number(float(np.corrcoef(ranks)[0, 1]), 2)}" if np.ptp(ranks, axis=1).all() else "r –"
    )


def _beside(
    ax: Canvas,
    explanation: Explanation,
    phis: Attributions,
    row: int | None,
    max_display: int,
    order: Order,
) -> tuple[Axes, IntArray]:
    """Two attributions beside each other, each as shares of its own sum; and the features drawn."""
    row = None if row is None else reading.row_position(explanation, row)
    by = (
        explanation.values[[row]]
        if row is not None and order == "importance"
        else explanation.values
    )
    top, names = reading.ranked(explanation, order, max_display, by)
    ax, places = drawing.bar_axes(ax, names, slot=0.3, head=0.3, total=explanation.values.shape[1])
    bars = []
    told = []
    for (name, (phi, errors)), looks, shift in zip(phis.items(), LOOKS, (-0.2, 0.2), strict=True):
        spread = np.zeros_like(phi) if errors is None else errors
        if row is None:
            heights = np.abs(phi).mean(axis=0)
            margins = np.sqrt((spread**2).sum(axis=0)) / len(phi)
        else:
            heights = phi[row]
            margins = spread[row]
        whole = np.abs(heights).sum()
        share, margin = (100 * each[top] / (whole or 1.0) for each in (heights, margins))
        bars.append(ax.barh(places + shift, share, height=0.38, **looks))
        if errors is not None:
            drawing.error_lines(ax, share, places + shift, margin)
        ends = share + np.sign(share) * np.nan_to_num(margin)
        unknown = np.where(np.isnan(margin), " ±?", "")
        numbers = [number(value, 3) + more for value, more in zip(heights[top].tolist(), unknown)]
        drawing.numbers_at(ax, ends, places + shift, numbers)
        told.append(f"{name}, 100 % = {number(float(whole), 3)}")
    low, high = ax.get_xlim()
    # Room for the numbers.
    ax.set_xlim(low - 0.13 * (high - low) * (low < 0), high + 0.13 * (high - low))
    ax.vlines(0, *ax.get_ylim(), color="black", linewidth=0.8)
    drawing.legend_on_top(ax, bars, told)
    what = (
        "mean |φ| over the rows" if row is None else f"|φ| of {reading.row_name(explanation, row)}"
    )
    drawing.few_ticks(
        ax, f"share of all {what}, %", f"numbers: {reading.game_shown(explanation, row)}"
    )
    return ax, top


def _all_outputs(explanation: Explanation, max_display: int, order: Order, ax: Canvas) -> Axes:
    """Mean |φ*| of each output, in one bar for each feature; the outputs that matter least are one
    grey part."""
    means = np.abs(explanation.values).mean(axis=0)  # (d, k)
    top, labels = reading.ranked(explanation, order, max_display, means.sum(axis=1)[None])
    shown = np.sort(reading.largest(means.sum(axis=0), MOST_PARTS))
    rest = np.setdiff1d(np.arange(means.shape[1]), shown)
    parts = [means[top, o] for o in shown] + (
        [means[top][:, rest].sum(axis=1)] if len(rest) else []
    )
    names = [explanation.output_names[o] for o in shown] + (
        [plural(len(rest), "other output")] if len(rest) else []
    )
    ax, places = drawing.bar_axes(ax, labels, head=0.1 * len(names), total=len(means))
    starts = np.zeros(len(top))
    bars = []
    for part, looks in zip(parts, [*PART_LOOKS[: len(shown)], {"color": style.GREY}]):
        bars.append(ax.barh(places, part, left=starts, height=0.7, **looks))
        starts = starts + part
    drawing.numbers_at(ax, starts, places, [number(total, 3) for total in starts.tolist()])
    ax.set_xlim(0, 1.12 * float(starts.max() or 1.0))
    drawing.legend(ax, bars, names, title=plural(means.shape[1], "output"), **drawing.AT_SIDE)
    drawing.few_ticks(
        ax, "mean |φ*| over the rows, summed over the outputs", reading.game_shown(explanation)
    )
    return drawing.finished(ax, f"all {means.shape[1]} outputs, stacked")


def cohorts(
    explanation: Explanation,
    by: By = 2,
    output: Output = 0,
    max_display: int = 10,
    order: Order = "importance",
    ax: Canvas = None,
) -> Axes:
    """Mean |φ*| in groups of rows: which features matter to whom.

    `by` is a label for each row, the name of a column of few categories, or a number of groups,
    found by the rules of a small tree on the data which tells the attributions of the rows apart
    best.
    """
    explanation, title = reading.one_output(explanation, output)
    groups = _groups(explanation, by)
    top, names = reading.ranked(explanation, order, max_display)
    slot = 0.12 + 0.11 * len(groups)
    ax, places = drawing.bar_axes(
        ax, names, slot=slot, head=0.2 * len(groups), total=explanation.values.shape[1]
    )
    thick = 0.8 / len(groups)
    bars = []
    for g, (rows, looks) in enumerate(zip(groups.values(), cycle(PART_LOOKS))):
        heights = np.abs(explanation.values[rows]).mean(axis=0)[top]
        at = places + thick * (g - (len(groups) - 1) / 2)
        bars.append(ax.barh(at, heights, height=0.92 * thick, **looks))
        drawing.numbers_at(ax, heights, at, [number(height, 3) for height in heights.tolist()])
    ax.set_xlim(0, 1.13 * (ax.get_xlim()[1] or 1.0))
    drawing.few_ticks(ax, "mean |φ*| over the rows of a group", reading.game_shown(explanation))
    told = [f"{name} ({plural(int(rows.sum()), 'row')})" for name, rows in groups.items()]
    drawing.legend(
        ax,
        bars,
        told,
        60,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        title=title,
        borderaxespad=0.2,
    )
    return drawing.finished(ax)


def _groups(explanation: Explanation, by: By) -> dict[str, BoolArray]:
    """Rows of each group by its name."""
    if isinstance(by, (int, np.integer)) and not isinstance(by, bool):
        return _by_rules(explanation, positive_integer("by", by))
    if isinstance(by, str):
        labels = reading.column(explanation, reading.feature_position(explanation, by))
        if labels is None:
            raise ValueError(
                f"The feature {by!r} is a group of columns. Pass a label for each row as `by`."
            )
    else:
        labels = pd.Series(np.asarray(by).ravel())
    if len(labels) != len(explanation):
        raise ValueError(
            f"`by` must have a label for each of {len(explanation)} rows; got {len(labels)}."
        )
    texts = np.array([reading.cell(label) for label in labels])
    found, counts = np.unique(texts, return_counts=True)
    if len(found) > MOST_PARTS:
        said = f"`by` makes {len(found)} groups, more than {MOST_PARTS} that can be told apart."
        raise ValueError(
            f"{said} Cut numbers into ranges first, as pd.cut does, or pass a number of groups."
        )
    return {found[g]: texts == found[g] for g in np.argsort(-counts, kind="stable")}


def _by_rules(explanation: Explanation, count: int) -> dict[str, BoolArray]:
    """Rows by the leaves of a small tree that predicts their attributions from the data."""
    from sklearn.tree import DecisionTreeRegressor  # a second to load, for this figure alone

    found = [reading.column(explanation, i) for i in range(explanation.values.shape[1])]
    columns = [column for column in found if column is not None]
    if count < 2 or len(explanation) < 2 * count or len(columns) < len(found):
        said = (
            f"{count} groups cannot be found by rules: that needs at least two, twice as many rows,"
            " and columns."
        )
        raise ValueError(f"{said} Pass a label for each row as `by`.")
    X = np.nan_to_num(np.column_stack([coded(column) for column in columns]), nan=-1e30).clip(
        -1e30, 1e30
    )
    least = max(1, len(X) // 20)
    tree = DecisionTreeRegressor(max_leaf_nodes=count, min_samples_leaf=least, random_state=0)
    leaves = tree.fit(X, explanation.values).apply(X)
    rules = _rules(tree.tree_, 0, {}, explanation.feature_names, columns)
    return {
        rules[leaf]: leaves == leaf
        for leaf in sorted(rules, key=lambda leaf: -(leaves == leaf).sum())
    }


def _rules(
    tree: Any, at: int, path: Path, names: Sequence[str], columns: Sequence[pd.Series[Any]]
) -> dict[int, str]:
    """The leaves below a node, with the bounds on their way in words."""
    if tree.children_left[at] < 0:
        said = [_bounds(names[i], columns[i], *bounds) for i, bounds in path.items()]
        return {at: " and ".join(said) or "all rows"}
    i = int(tree.feature[at])
    cut = float(tree.threshold[at])
    low, high = path.get(i, (-np.inf, np.inf))
    left = _rules(tree, tree.children_left[at], path | {i: (low, cut)}, names, columns)
    return left | _rules(tree, tree.children_right[at], path | {i: (cut, high)}, names, columns)


def _bounds(name: str, column: pd.Series[Any], low: float, high: float) -> str:
    """``18 < age ≤ 40``, or ``city: Bonn, Ulm``."""
    if not pd.api.types.is_numeric_dtype(column.dtype):
        codes = coded(column)
        inside = column[(codes > low) & (codes <= high)].astype(str).unique().tolist()
        more = f" and {len(inside) - MOST_NAMED} more" if len(inside) > MOST_NAMED else ""
        return f"{name}: {', '.join(sorted(inside)[:MOST_NAMED])}{more}"
    lower = "" if low == -np.inf else f"{number(low, 3)} < "
    upper = "" if high == np.inf else f" ≤ {number(high, 3)}"
    upper += " or missing" if not lower and column.isna().any() else ""
    return f"{name} > {number(low, 3)}" if lower and not upper else f"{lower}{name}{upper}"
