"""Summary: an Explanation as text and HTML, and notes on results that could mislead.

`Explanation` shows them; the command line and the report print the names of games and scales.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from weightedshap._checks import FloatArray
from weightedshap._format import format_change, number, percent, plural
from weightedshap._lazy import pd
from weightedshap.explanation.export import count_text, scale_factors
from weightedshap.explanation.slicing import identical
from weightedshap.games.surrogates.data import relative_errors, relative_errors_text
from weightedshap.inputs.groups import comma_list

if TYPE_CHECKING:
    from weightedshap.explanation.result import Explanation

# Games learned from a background of so few rows miss 65 % of sd f and more.
FEW_ROWS = 100
# A game gets a note if its error over sd f, with all features known, is larger.
LARGE_ERROR = 1 / 3
# There is a note if a larger share of the rows cannot be scaled.
MANY_SHIFTED = 0.1
# Features in the table of a notebook.
MAX_FEATURES = 10


def game_title(info: Mapping[str, Any]) -> str:
    """Return the name and scale of a game as text, from the info dict that describes it."""
    name = str(info.get("game", "given"))
    return f"{name} ({scale_of(info)})" if "space" in info else name


def judge_title(explanation: Explanation) -> str:
    """Return the name of the judge with its scale, or "the same game" if it judges itself."""
    judge = dict(explanation.judge_info)
    if identical(dict(explanation.game_info), judge):
        return "the same game"
    return game_title(judge)


def scale_of(info: Mapping[str, Any]) -> str:
    """Return the scale in a game's info, such as "prediction", "probability" or "log-odds"."""
    space = str(info.get("scale", info.get("space", "value")))
    return "prediction" if space == "value" else space


def stop_reasons_text(stopped: Sequence[str]) -> str:
    """Return text with the first reason why sampling stopped and the number of other reasons."""
    first, *others = dict.fromkeys(stopped)
    return f"{first} (and {plural(len(others), 'other reason')})" if others else first


def summary_text(explanation: Explanation) -> str:
    """Return a text summary: game, unexplained remainder, judge, recovery error and notes."""
    n, d = explanation.values.shape[:2]
    outputs = ""
    if explanation.has_outputs:
        outputs = f" × {plural(explanation.values.shape[2], 'output')}"
    area = explanation.curves[:, 1:].sum(1).mean()
    shapley_area = explanation.reference_curves["shapley"][:, 1:].sum(1).mean()
    smaller = f" ({format_change(area / shapley_area - 1)})" if shapley_area > 0 else ""
    errors = relative_errors_text(explanation.judge_info)
    lines = [
        f"Explanation of {plural(n, 'row')} × {plural(d, 'feature')}{outputs}",
        f"  explained: {game_title(explanation.game_info)} ·"
        f" {stop_reasons_text(explanation.stopped)}",
        f"  left over: {unattributed_text(explanation)}",
        f"  judged by: {judge_title(explanation)}{errors}",
        f"  recovery error ({scale_of(explanation.judge_info)}), summed over"
        f" 1..{explanation.family.d} known features: {number(area)}, by Shapley"
        f" {number(shapley_area)}{smaller};",
        "    measured on the judge that chose the weights; ws.evaluate uses another judge",
        *(f"  note: {note}" for note in explanation.notes),
    ]
    return "\n".join(lines)


def summary_html(explanation: Explanation) -> str:
    """Return the summary as HTML for a notebook, with mean recovery curves and top features."""
    table = pd.DataFrame(
        {
            "mean |φ*|": _mean_over_rows(np.abs(explanation.values)),
            "mean |Shapley|": _mean_over_rows(np.abs(explanation.shapley)),
        },
        list(explanation.feature_names),
    )
    first = table.sort_values("mean |φ*|", ascending=False, kind="stable").head(MAX_FEATURES)
    more = f"<p>and {len(table) - MAX_FEATURES} more</p>" if len(table) > MAX_FEATURES else ""
    text = f"<pre>{escape(repr(explanation))}</pre>"
    return f"{text}{_sparkline(explanation)}{first.to_html(float_format=number)}{more}"


def _mean_over_rows(array: FloatArray) -> FloatArray:
    """Return the mean (d,) of an array (n, d[, k]) over rows and outputs."""
    return np.asarray(array.mean(axis=(0, *range(2, array.ndim))))


def _sparkline(explanation: Explanation) -> str:
    """Return HTML with an SVG chart of the mean recovery curves of WeightedSHAP and Shapley."""
    mean = _mean_over_rows(explanation.curves)  # (d + 1,)
    shapley_mean = _mean_over_rows(explanation.reference_curves["shapley"])
    top = max(mean.max(), shapley_mean.max()) or 1.0
    x = np.linspace(2, 238, len(mean))
    lines = []
    for curve, look in (
        (mean, 'stroke="#0072B2"'),
        (shapley_mean, 'stroke="#D55E00" stroke-dasharray="5 3"'),
    ):
        points = " ".join(
            f"{at:.1f},{58 - 56 * y / top:.1f}" for at, y in zip(x, curve, strict=True)
        )
        lines.append(f'<polyline fill="none" stroke-width="2" {look} points="{points}"/>')
    label = "recovery error from no feature known to all: WeightedSHAP (solid) and Shapley (dashed)"
    svg = f'<svg width="240" height="60" role="img" aria-label="{label}">{"".join(lines)}</svg>'
    return f"<div>{svg}<br><small>{label}</small></div>"


def unattributed_text(explanation: Explanation) -> str:
    """Return as text the median share of f(x) − base value that attributions do not explain."""
    if explanation.values.shape[1] < explanation.family.d:
        return "unknown, as only some features are selected"
    total = np.abs(explanation.predictions - explanation.base_values)
    if not total.any():
        return "nothing, as f(x) is the base value"
    share = np.abs(explanation.efficiency_gap)[total > 0] / total[total > 0]
    median = round(float(np.median(share)), 6)
    why = ": weighted attributions do not add up, see efficiency_gap" if median else ""
    middle = "median of rows and outputs" if explanation.has_outputs else "median row"
    return f"{percent(median)} of f(x) − base value in the {middle}{why}"


def notes_of_games(explanation: Explanation) -> Iterator[str]:
    """Yield notes on a background that is too small and on games with large errors."""
    infos = [
        one
        for info in (explanation.game_info, explanation.judge_info)
        for one in info.get("games", {"": info}).values()
    ]
    if any(info.get("background_rows") == 1 for info in infos):
        yield (
            "The background is a single row: every row is compared with it, and no game can learn"
            " from it."
        )
        return
    for info in infos:
        errors = relative_errors(info)
        if errors is None:
            continue
        some_error, full_error = errors
        n = info["background_rows"]
        if n <= FEW_ROWS:
            yield (
                f"The game {info['game']!r} misses {percent(some_error)} of the predictions' sd on"
                f" rows that it did not see: it learned from {n}. Pass several hundred background"
                " rows."
            )
        elif full_error > LARGE_ERROR:
            yield (
                f"The game {info['game']!r} misses {percent(full_error)} of the predictions' sd"
                " even with all features known. Pass more background rows, or judge='anchored'."
            )


def notes_of_rows(explanation: Explanation) -> Iterator[str]:
    """Yield notes on constant predictions, unused features, and rows whose φ cannot be scaled."""
    attributions = explanation.contributions
    if attributions is None:
        attributions = np.stack([explanation.values, explanation.shapley], axis=1)
    used = np.any(attributions, axis=(0, 1, *range(3, attributions.ndim)))  # (d,)
    if not used.any():
        yield "No feature changes the prediction of these rows: all attributions are zero."
        return
    if not used.all():
        unused = comma_list(np.array(explanation.feature_names)[~used].tolist())
        yield f"The model makes no use of {plural(sum(~used), 'feature')} in these rows: {unused}."
    if len(used) == explanation.family.d:
        shifted = np.isnan(scale_factors(explanation))
        if shifted.mean() > MANY_SHIFTED:
            yield (
                f"In {count_text(shifted)} the values add up to next to nothing, or to the wrong"
                " side: there to_shap(normalize='scale') shifts instead of scaling."
            )
