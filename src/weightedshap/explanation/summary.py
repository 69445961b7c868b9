"""What an explanation says of itself: the lines of its print, and notes where something would
mislead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from weightedshap._format import compared, number, percent, plural
from weightedshap._lazy import pd
from weightedshap.explanation.export import counted, scale_factors
from weightedshap.explanation.slicing import same
from weightedshap.games.surrogates.data import missed, misses
from weightedshap.inputs.groups import listed

if TYPE_CHECKING:
    from weightedshap.explanation.result import Explanation

FEW_ROWS = 100  # of a background: games learned from so few miss 65 % of sd f and more
LARGE_MISS = 1 / 3  # of sd f, with all features known
MANY_SHIFTED = 0.1  # of the rows
MOST_LISTED = 10  # features in a notebook


def named(info: Mapping[str, Any]) -> str:
    """A game by its name and scale."""
    return (
        f"{info.get('game', 'given')} ({scale_of(info)})"
        if "space" in info
        else str(info.get("game", "given"))
    )


def judge_named(explanation: Explanation) -> str:
    """The judge by its name and scale, where it is another game than the explained one."""
    judge = dict(explanation.judge_info)
    return "the same game" if same(dict(explanation.game_info), judge) else named(judge)


def scale_of(info: Mapping[str, Any]) -> str:
    """What the numbers of a game are: a prediction, probability, log-odds, or another margin."""
    space = str(info.get("scale", info.get("space", "value")))
    return "prediction" if space == "value" else space


def reasons_of(stopped: Sequence[str]) -> str:
    """Why sampling stopped: the first reason, and how many others there are."""
    reasons = list(dict.fromkeys(stopped))
    return (
        reasons[0]
        if len(reasons) == 1
        else f"{reasons[0]} (and {plural(len(reasons) - 1, 'other reason')})"
    )


def as_text(explanation: Explanation) -> str:
    """The print: what was explained, what is left, who judged, and what the area is."""
    n, d = explanation.values.shape[:2]
    sizes = explanation.family.d
    outputs = (
        f" × {plural(explanation.values.shape[2], 'output')}" if explanation.has_outputs else ""
    )
    area, shapley = (
        c[:, 1:].sum(1).mean()
        for c in (explanation.curves, explanation.reference_curves["shapley"])
    )
    smaller = f" ({compared(area / shapley - 1)})" if shapley > 0 else ""
    summed = (
        f"recovery error ({scale_of(explanation.judge_info)}), summed over 1..{sizes} known"
        " features"
    )
    lines = [
        f"Explanation of {plural(n, 'row')} × {plural(d, 'feature')}{outputs}",
        f"  explained: {named(explanation.game_info)} · {reasons_of(explanation.stopped)}",
        f"  left over: {unattributed(explanation)}",
        f"  judged by: {judge_named(explanation)}{missed(explanation.judge_info)}",
        f"  {summed}: {number(area)}, by Shapley {number(shapley)}{smaller};",
        "    that is on the judge that chose the weights, ws.evaluate asks another",
        *(f"  note: {note}" for note in explanation.notes),
    ]
    return "\n".join(lines)


def as_html(explanation: Explanation) -> str:
    """For notebooks: the print, the features that matter most, and the mean recovery curve beside
    Shapley's."""
    phi, shapley = (
        np.abs(of).mean(axis=(0, *range(2, of.ndim)))
        for of in (explanation.values, explanation.shapley)
    )
    table = pd.DataFrame(
        {"mean |φ*|": phi, "mean |Shapley|": shapley}, list(explanation.feature_names)
    )
    first = table.sort_values("mean |φ*|", ascending=False, kind="stable").head(MOST_LISTED)
    more = f"<p>and {len(table) - MOST_LISTED} more</p>" if len(table) > MOST_LISTED else ""
    text = f"<pre>{escape(repr(explanation))}</pre>"
    return f"{text}{_sparkline(explanation)}{first.to_html(float_format=number)}{more}"


def _sparkline(explanation: Explanation) -> str:
    """Mean recovery curves of WeightedSHAP and Shapley, from no feature known to all, as SVG."""
    both = explanation.curves, explanation.reference_curves["shapley"]
    means = [curves.mean(axis=(0, *range(2, curves.ndim))) for curves in both]  # (d + 1,) each
    x = np.linspace(2, 238, len(means[0]))
    top = max(map(np.max, means)) or 1.0
    points = [
        " ".join(f"{at:.1f},{58 - 56 * y / top:.1f}" for at, y in zip(x, mean, strict=True))
        for mean in means
    ]
    looks = 'stroke="#0072B2"', 'stroke="#D55E00" stroke-dasharray="5 3"'
    lines = [
        f'<polyline fill="none" stroke-width="2" {look} points="{each}"/>'
        for look, each in zip(looks, points)
    ]
    told = "recovery error from no feature known to all: WeightedSHAP (solid) and Shapley (dashed)"
    svg = f'<svg width="240" height="60" role="img" aria-label="{told}">{"".join(lines)}</svg>'
    return f"<div>{svg}<br><small>{told}</small></div>"


def unattributed(explanation: Explanation) -> str:
    """Return what the attribution leaves of f(x) − base in the median over rows and outputs."""
    if explanation.values.shape[1] < explanation.family.d:
        return "features are selected, so the rest is not told"
    whole = np.abs(explanation.predictions - explanation.base_values)
    if not whole.any():
        return "nothing, as f(x) is the base value"
    median = round(
        float(np.median(np.abs(explanation.efficiency_gap)[whole > 0] / whole[whole > 0])), 6
    )
    why = ": weighted attributions do not add up, see efficiency_gap" if median else ""
    middle = "median of rows and outputs" if explanation.has_outputs else "median row"
    return f"{percent(median)} of f(x) − base value in the {middle}{why}"


def notes_of_games(explanation: Explanation) -> Iterator[str]:
    """Sentences on a background that is too small for what was learned, and on games that miss too
    much."""
    infos = explanation.game_info, explanation.judge_info
    each = [one for info in infos for one in info.get("games", {"": info}).values()]
    if any(info.get("background_rows") == 1 for info in each):
        yield (
            "The background is a single row: every row is compared with it, and no game can learn"
            " from it."
        )
        return
    for info, known in ((info, misses(info)) for info in each):
        if known is None:
            continue
        some, full = (
            f"The game {info['game']!r} misses {percent(share)} of the predictions' sd"
            for share in known
        )
        if (n := info["background_rows"]) <= FEW_ROWS:
            yield (
                f"{some} on rows that it did not see: it learned from {n}. Pass several hundred"
                " background rows."
            )
        elif known[1] > LARGE_MISS:
            yield (
                f"{full} even with all features known. Pass more background rows, or"
                " judge='anchored'."
            )


def notes_of_rows(explanation: Explanation) -> Iterator[str]:
    """Sentences on predictions that are constant, features without use, and rows that cannot be
    scaled to add up."""
    delta = explanation.contributions
    names = np.array(explanation.feature_names)
    known = np.stack([explanation.values, explanation.shapley], axis=1) if delta is None else delta
    used = np.any(known, axis=(0, 1, *range(3, known.ndim)))  # (d,)
    if not used.any():
        yield "No feature changes the prediction of these rows: all attributions are zero."
        return
    if not used.all():
        unused = listed(names[~used].tolist())
        yield f"The model makes no use of {plural(sum(~used), 'feature')} in these rows: {unused}."
    if len(used) == explanation.family.d:
        shifted = np.isnan(scale_factors(explanation))
        if shifted.mean() > MANY_SHIFTED:
            said = "the values add up to next to nothing, or to the wrong side"
            there = "there to_shap(normalize='scale') shifts instead of scaling"
            yield f"In {counted(shifted)} {said}: {there}."
