"""Bar charts with one or more bars for each feature.

They show WeightedSHAP next to Shapley or another attribution, all outputs stacked, or groups of
rows side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from weightedshap._checks import BoolArray, FloatArray, IntArray, check_positive_integer
from weightedshap._format import number, plural
from weightedshap.explanation import Explanation
from weightedshap.explanation.export import encode_categories, output_index, row_position
from weightedshap.plots import style
from weightedshap.plots.axes import (
    OUTSIDE_LEGEND,
    bar_axes,
    draw_error_lines,
    draw_legend,
    draw_legend_on_top,
    finish_axes,
    limit_ticks,
    write_at_ends,
    write_at_side,
)
from weightedshap.plots.data import (
    Order,
    Output,
    explained_game,
    feature_column,
    feature_position,
    first_features,
    format_cell,
    games_and_weights,
    largest,
    row_name,
    select_output,
)

MAX_PARTS = 10  # outputs, or groups of rows, that a figure can distinguish
MAX_LEVELS_IN_RULE = 3  # levels of a category that a rule names
FAR_VALUE = 1e30  # stands for infinity in the data of a tree, and −1e30 for missing values

FIRST_AND_SECOND: tuple[dict[str, Any], ...] = (
    {"color": style.BLUE},
    {
        "color": style.VERMILION,
        "alpha": 0.75,
        "hatch": "////",
        "edgecolor": "white",
        "linewidth": 0,
    },
)
"""Colours and hatches of two attributions next to each other."""

PARTS: list[dict[str, Any]] = [
    {"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0}
    for hatch, colour in product(("", "////", "...."), style.PALETTE[:-1])
]
"""Colours and hatches of outputs or groups; hatches begin when the colours are used up."""

Bounds = dict[int, tuple[float, float]]
"""The bounds (low, high] of features, by position."""

Attributions = Mapping[str, tuple[FloatArray, FloatArray | None]]
"""Values and standard errors (n, d) of attributions, by name."""

By = str | int | npt.ArrayLike | None
"""How rows are grouped; `cohorts` describes it."""


def bar(
    explanation: Explanation,
    row: int | None = None,
    output: Output | None = None,
    max_display: int = 10,
    order: Order = "importance",
    ax: Axes | None = None,
) -> Axes:
    """Draw WeightedSHAP and Shapley values side by side: mean |values| over all rows, or one `row`.

    The two need not have the same sum, so each bar is drawn as a share of its sum, and the number
    at its end is on the scale of the game. Thin lines are ± one standard error where Δ was sampled.
    If there are several outputs, and neither `output` nor `row` is given, WeightedSHAP of all
    outputs is stacked.
    """
    one, title = select_output(explanation, 0 if output is None else output)
    has_several = explanation.has_outputs and explanation.values.shape[2] > 1
    if output is None and row is None and has_several:
        return _draw_all_outputs(explanation, max_display, order, ax)
    games, _ = games_and_weights(one.family)
    shapley_name = f"Shapley of {games[0]}" if games else "Shapley"
    attributions = {
        "WeightedSHAP": (one.values, one.standard_errors),
        shapley_name: (one.shapley, one.shapley_errors),
    }
    ax, _ = _draw_two_attributions(ax, one, attributions, row, max_display, order)
    return finish_axes(ax, title)


def compare(
    explanation: Explanation,
    other: Any,
    names: tuple[str, str] = ("WeightedSHAP", "other"),
    row: int | None = None,
    output: Output = 0,
    max_display: int = 10,
    order: Order = "importance",
    ax: Axes | None = None,
) -> Axes:
    """Draw two attributions of the same rows next to each other, feature by feature, as in `bar`.

    `other` is an Explanation, a shap.Explanation, or an array (n, d[, k]). If no `row` is given,
    the rank correlation of the two over all rows is written at the right.
    """
    one, title = select_output(explanation, output)
    other_values = _check_other_values(explanation, other, output_index(explanation, output))
    attributions = {names[0]: (one.values, None), names[1]: (other_values, None)}
    ax, top = _draw_two_attributions(ax, one, attributions, row, max_display, order)
    if row is None and len(one) > 2:
        correlations = [_rank_correlation(one.values[:, i], other_values[:, i]) for i in top]
        write_at_side(ax, ax.get_yticks(), correlations)
        ax.set_xlabel(ax.get_xlabel() + "\nat the right: rank correlation r over the rows")
    return finish_axes(ax, title)


def _check_other_values(explanation: Explanation, other: Any, output: int) -> FloatArray:
    """Check another attribution of the same rows; return the values (n, d) of one output."""
    values = np.asarray(getattr(other, "values", other), dtype=np.float64)
    if values.shape == explanation.values.shape and explanation.has_outputs:
        values = values[..., output]
    if values.shape != explanation.values.shape[:2] or not np.isfinite(values).all():
        raise ValueError(
            "`other` must hold finite attributions of the same rows, of shape"
            f" {explanation.values.shape}; got {values.shape}, {np.isnan(values).sum()} of them"
            " NaN."
        )
    names = getattr(other, "feature_names", None)
    if names is not None and tuple(map(str, names)) != explanation.feature_names:
        raise ValueError(
            "`other` has other feature names, or in another order. Select the same features of"
            " both."
        )
    return values


def _rank_correlation(one: FloatArray, other: FloatArray) -> str:
    """Return the rank correlation r of two arrays as text, or a dash if one of them is constant."""
    ranks = np.stack([pd.Series(values).rank() for values in (one, other)])
    if not np.ptp(ranks, axis=1).all():
        return "r –"
    return f"r {number(float(np.corrcoef(ranks)[0, 1]), 2)}"


def _draw_two_attributions(
    ax: Axes | None,
    explanation: Explanation,
    attributions: Attributions,
    row: int | None,
    max_display: int,
    order: Order,
) -> tuple[Axes, IntArray]:
    """Draw two attributions next to each other, feature by feature, each in % of its total.

    Returns the Axes and the positions of the features that are shown.
    """
    ranked_values = explanation.values
    if row is not None:
        row = row_position(explanation, row)
        if order == "importance":
            ranked_values = explanation.values[[row]]
    top, names = first_features(explanation, order, max_display, ranked_values)
    ax, places = bar_axes(ax, names, slot=0.3, head=0.3, total=explanation.values.shape[1])

    bars = []
    legend_names = []
    for (name, (phi, errors)), looks, shift in zip(
        attributions.items(), FIRST_AND_SECOND, (-0.2, 0.2), strict=True
    ):
        spread = np.zeros_like(phi) if errors is None else errors
        if row is None:
            heights = np.abs(phi).mean(axis=0)
            margins = np.sqrt((spread**2).sum(axis=0)) / len(phi)
        else:
            heights = phi[row]
            margins = spread[row]
        total = np.abs(heights).sum()
        share = 100 * heights[top] / (total or 1.0)
        margin = 100 * margins[top] / (total or 1.0)
        bars.append(ax.barh(places + shift, share, height=0.38, **looks))
        if errors is not None:
            draw_error_lines(ax, share, places + shift, margin)
        ends = share + np.sign(share) * np.nan_to_num(margin)
        unknown = np.where(np.isnan(margin), " ±?", "")
        texts = [
            number(height, 3) + suffix
            for height, suffix in zip(heights[top].tolist(), unknown, strict=True)
        ]
        write_at_ends(ax, ends, places + shift, texts)
        legend_names.append(f"{name}, 100 % = {number(float(total), 3)}")

    # Room for the numbers.
    low, high = ax.get_xlim()
    ax.set_xlim(low - 0.13 * (high - low) * (low < 0), high + 0.13 * (high - low))
    ax.vlines(0, *ax.get_ylim(), color="black", linewidth=0.8)
    draw_legend_on_top(ax, bars, legend_names)
    rows = "mean |φ| over the rows" if row is None else f"|φ| of {row_name(explanation, row)}"
    limit_ticks(ax, f"share of all {rows}, %", f"numbers: {explained_game(explanation, row)}")
    return ax, top


def _draw_all_outputs(
    explanation: Explanation, max_display: int, order: Order, ax: Axes | None
) -> Axes:
    """Draw one stacked bar for each feature: its mean absolute attribution for each output.

    The least important outputs are combined in one grey segment.
    """
    means = np.abs(explanation.values).mean(axis=0)  # (d, k)
    d, k = means.shape
    top, labels = first_features(explanation, order, max_display, means.sum(axis=1)[None])
    shown = np.sort(largest(means.sum(axis=0), MAX_PARTS))
    others = np.setdiff1d(np.arange(k), shown)
    parts = [means[top, o] for o in shown]
    names = [explanation.output_names[o] for o in shown]
    if len(others):
        parts.append(means[top][:, others].sum(axis=1))
        names.append(plural(len(others), "other output"))

    ax, places = bar_axes(ax, labels, head=0.1 * len(names), total=d)
    starts = np.zeros(len(top))
    bars = []
    for part, looks in zip(parts, [*PARTS[: len(shown)], {"color": style.GREY}], strict=False):
        bars.append(ax.barh(places, part, left=starts, height=0.7, **looks))
        starts = starts + part
    write_at_ends(ax, starts, places, [number(total, 3) for total in starts.tolist()])
    ax.set_xlim(0, 1.12 * float(starts.max() or 1.0))
    draw_legend(ax, bars, names, title=plural(k, "output"), **OUTSIDE_LEGEND)
    limit_ticks(ax, "mean |φ*| over the rows, summed over the outputs", explained_game(explanation))
    return finish_axes(ax, f"all {k} outputs, stacked")


def cohorts(
    explanation: Explanation,
    by: By = 2,
    output: Output = 0,
    max_display: int = 10,
    order: Order = "importance",
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean absolute attribution of each feature in several groups of rows.

    `by` defines the groups: a label for each row, the name of a column of few categories, or a
    number of groups. In the last case a small decision tree finds the rules on the data that best
    separate the attributions of the rows.
    """
    explanation, title = select_output(explanation, output)
    groups = _group_rows(explanation, by)
    top, names = first_features(explanation, order, max_display)
    slot = 0.12 + 0.11 * len(groups)
    ax, places = bar_axes(
        ax, names, slot=slot, head=0.2 * len(groups), total=explanation.values.shape[1]
    )
    thickness = 0.8 / len(groups)
    bars = []
    for g, (rows, looks) in enumerate(zip(groups.values(), cycle(PARTS))):
        heights = np.abs(explanation.values[rows]).mean(axis=0)[top]
        group_places = places + thickness * (g - (len(groups) - 1) / 2)
        bars.append(ax.barh(group_places, heights, height=0.92 * thickness, **looks))
        texts = [number(height, 3) for height in heights.tolist()]
        write_at_ends(ax, heights, group_places, texts)
    ax.set_xlim(0, 1.13 * (ax.get_xlim()[1] or 1.0))
    limit_ticks(ax, "mean |φ*| over the rows of a group", explained_game(explanation))
    legend_names = [f"{name} ({plural(int(rows.sum()), 'row')})" for name, rows in groups.items()]
    draw_legend(
        ax,
        bars,
        legend_names,
        60,
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        title=title,
        borderaxespad=0.2,
    )
    return finish_axes(ax)


def _group_rows(explanation: Explanation, by: By) -> dict[str, BoolArray]:
    """Group the rows by labels, a column or rules; return a dict of masks (n,) by group name."""
    if isinstance(by, (int, np.integer)) and not isinstance(by, bool):
        return _group_by_rules(explanation, check_positive_integer("by", by))
    if isinstance(by, str):
        labels = feature_column(explanation, feature_position(explanation, by))
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
    texts = np.array([format_cell(label) for label in labels])
    names, counts = np.unique(texts, return_counts=True)
    if len(names) > MAX_PARTS:
        raise ValueError(
            f"`by` makes {len(names)} groups; a figure can distinguish at most {MAX_PARTS}. Cut"
            " numbers into ranges first, as pd.cut does, or pass a number of groups."
        )
    return {names[g]: texts == names[g] for g in np.argsort(-counts, kind="stable")}


def _group_by_rules(explanation: Explanation, n_groups: int) -> dict[str, BoolArray]:
    """Group rows by the leaves of a small tree that predicts their attributions from the data.

    Returns for each group, by its rule in words, a mask (n,) of its rows.
    """
    from sklearn.tree import DecisionTreeRegressor  # a second to load, for this figure alone

    d = explanation.values.shape[1]
    columns = []
    for i in range(d):
        column = feature_column(explanation, i)
        if column is not None:
            columns.append(column)
    if n_groups < 2 or len(explanation) < 2 * n_groups or len(columns) < d:
        raise ValueError(
            f"{n_groups} groups cannot be found by rules: that needs at least two, twice as many"
            " rows, and columns. Pass a label for each row as `by`."
        )
    codes = np.column_stack([encode_categories(column) for column in columns])
    X = np.nan_to_num(codes, nan=-FAR_VALUE).clip(-FAR_VALUE, FAR_VALUE)
    tree = DecisionTreeRegressor(
        max_leaf_nodes=n_groups, min_samples_leaf=max(1, len(X) // 20), random_state=0
    )
    leaves = tree.fit(X, explanation.values).apply(X)
    rules = _leaf_rules(tree.tree_, 0, {}, explanation.feature_names, columns)
    largest_first = sorted(rules, key=lambda leaf: -(leaves == leaf).sum())
    return {rules[leaf]: leaves == leaf for leaf in largest_first}


def _leaf_rules(
    tree: Any, node: int, bounds: Bounds, names: Sequence[str], columns: Sequence[pd.Series[Any]]
) -> dict[int, str]:
    """Return the leaves below a node of a tree, each with the conditions on its path in words.

    `bounds` are the conditions on the path from the root to the node.
    """
    if tree.children_left[node] < 0:
        rules = [_bounds_text(names[i], columns[i], *limits) for i, limits in bounds.items()]
        return {node: " and ".join(rules) or "all rows"}
    i = int(tree.feature[node])
    threshold = float(tree.threshold[node])
    low, high = bounds.get(i, (-np.inf, np.inf))
    left = bounds | {i: (low, threshold)}
    right = bounds | {i: (threshold, high)}
    return {
        **_leaf_rules(tree, tree.children_left[node], left, names, columns),
        **_leaf_rules(tree, tree.children_right[node], right, names, columns),
    }


def _bounds_text(name: str, column: pd.Series[Any], low: float, high: float) -> str:
    """Describe the bounds (low, high] of a column in words: ``18 < age ≤ 40``.

    For categories, the levels within the bounds are listed: ``city: Bonn, Ulm``.
    """
    if not pd.api.types.is_numeric_dtype(column.dtype):
        codes = encode_categories(column)
        inside = column[(codes > low) & (codes <= high)].astype(str).unique().tolist()
        n_more = len(inside) - MAX_LEVELS_IN_RULE
        more = f" and {n_more} more" if n_more > 0 else ""
        return f"{name}: {', '.join(sorted(inside)[:MAX_LEVELS_IN_RULE])}{more}"
    lower = "" if low == -np.inf else f"{number(low, 3)} < "
    upper = "" if high == np.inf else f" ≤ {number(high, 3)}"
    # Missing values count as smaller than all others.
    if not lower and column.isna().any():
        upper += " or missing"
    if lower and not upper:
        return f"{name} > {number(low, 3)}"
    return f"{lower}{name}{upper}"
