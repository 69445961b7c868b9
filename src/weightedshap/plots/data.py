"""What the figures and the report read off an explanation: an output, a row, a column, games, the
chosen weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from weightedshap._checks import FloatArray, IntArray, look_up, one_of, positive_integer
from weightedshap._format import number, plural
from weightedshap.curves import order_of
from weightedshap.explanation import Explanation
from weightedshap.explanation.export import place_of, scale_factors
from weightedshap.explanation.export import row_position as row_position
from weightedshap.explanation.slicing import AXES, cut_field
from weightedshap.explanation.summary import named, scale_of
from weightedshap.inputs import kind_of
from weightedshap.utilities import UTILITIES
from weightedshap.weights import WeightFamily, shapley

Output = int | str  # by position or name
Order = str | Sequence[int | str]
"""How features are ordered: by mean |φ*| ("importance"), by max |φ*| ("max"), as in the "table", or
as listed."""

SHOW_ALL_WEIGHTS = 20
MOST_WEIGHTS = 30  # a figure holds about 30 bars; beyond 20 only chosen ones are of use
# Weights in words, by the mean share of the other features that are known.
KNOWN_OTHERS = {
    0.02: "each feature alone",
    0.3: "mostly features alone",
    0.45: "more with few others known",
    0.55: "with about half of the others known",
    0.7: "more with many others known",
    0.98: "mostly with all others known",
    1.0: "with all others known",
}


def one_output(explanation: Explanation, output: Output) -> tuple[Explanation, str | None]:
    """One output without the axis k, and what to call it; all there is where that axis is not
    there."""
    if not isinstance(explanation, Explanation):
        raise TypeError(
            "Figures show an Explanation, as an Explainer returns it; got"
            f" {type(explanation).__name__}."
        )
    place = place_of(explanation, output)
    kind = "class " if scale_of(explanation.judge_info) == "probability" else ""
    name = explanation.output_names[place] if explanation.output_names else "output 0"
    if not explanation.has_outputs:
        return explanation, f"{kind}{name}" if kind and name != "output 0" else None
    fields = {
        field: cut_field(vars(explanation)[field], axes, {"output": place})
        for field, axes in AXES.items()
    }
    k = explanation.values.shape[2]
    title = f"{kind}{name}" + (f", one of {k} outputs" if k > 1 else "")
    return replace(explanation, **fields, output_names=(name,)), title


def largest(values: FloatArray, max_display: int) -> IntArray:
    """Positions of the largest |values|, largest first; the lower index first among equals."""
    return order_of(values)[: positive_integer("max_display", max_display)]


def ranked(
    explanation: Explanation, order: Order, max_display: int, phi: FloatArray | None = None
) -> tuple[IntArray, list[str]]:
    """The first features in an order that was asked for, and their names; of one output, or by
    another φ (n, d)."""
    phi = np.abs(explanation.values if phi is None else phi)
    names = explanation.feature_names
    if isinstance(order, str):
        by = {
            "importance": phi.mean(axis=0),
            "max": phi.max(axis=0),
            "table": np.arange(len(names), 0.0, -1),
        }
        top = largest(look_up("order of features", order, by), max_display)
    else:
        listed = [feature_position(explanation, feature) for feature in order]
        top = np.array(listed[: positive_integer("max_display", max_display)], dtype=np.intp)
    return top, [names[i] for i in top]


def feature_position(explanation: Explanation, feature: int | str) -> int:
    """The position of a feature given by position or name."""
    names = explanation.feature_names
    if isinstance(feature, str):
        return names.index(one_of("feature", feature, names))
    if isinstance(feature, bool) or feature not in range(-len(names), len(names)):
        raise ValueError(f"A feature is a name or a position 0..{len(names) - 1}; got {feature!r}.")
    return int(feature) % len(names)


def column(explanation: Explanation, i: int) -> pd.Series[Any] | None:
    """The data of feature i; None where features are not columns (groups, games)."""
    data = explanation.data
    if data is None or len(data.shape) != 2 or data.shape[1] != explanation.values.shape[1]:
        return None
    return kind_of(data).series(data, i)


def as_numbers(values: pd.Series[Any] | None) -> FloatArray | None:
    """(n,) numbers, flags and ordered categories as floats, NaN where missing; None for anything
    else."""
    values = None if values is None else values.infer_objects()
    if values is None:
        return None
    if isinstance(values.dtype, pd.CategoricalDtype) and values.cat.ordered:
        return np.where(values.cat.codes < 0, np.nan, values.cat.codes.to_numpy(dtype=np.float64))
    if not pd.api.types.is_numeric_dtype(values.dtype):
        return None
    return values.to_numpy(dtype=np.float64, na_value=np.nan)


def levels_of(values: pd.Series[Any]) -> tuple[IntArray, list[str]]:
    """(n,) codes of the values that occur, −1 where missing, and their names: in the order of
    categories, or sorted."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        used = values.cat.remove_unused_categories().cat
        codes = used.codes.to_numpy()
        names = used.categories
    else:
        codes, names = pd.factorize(values.astype("str").where(values.notna(), None), sort=True)
    return codes.astype(np.intp), list(map(str, names))


def cell(value: Any) -> str:
    """A value of the table as text."""
    if pd.isna(value):
        return "missing"
    return number(float(value)) if isinstance(value, (float, np.floating)) else str(value)


def row_name(explanation: Explanation, row: int) -> str:
    """A row by the table's own index; by its position where there is none."""
    data = explanation.data
    if data is None or len(data.shape) != 2 or not data.shape[1]:
        return f"row {row:,}"
    label = kind_of(data).series(data, 0).index[row]
    return label if isinstance(label, str) else f"row {label}"


def weight_in_words(vector: FloatArray) -> str:
    """Whether a weight looks at features alone, or with others known."""
    if np.ptp(vector) < 1e-12:
        return "all sizes alike, as Shapley does"
    share = float(vector @ np.linspace(0, 1, len(vector)))
    return next(words for most, words in KNOWN_OTHERS.items() if share <= most + 1e-9)


def chosen_weight(explanation: Explanation, row: int) -> str:
    """The weight of a row, in words and by its label."""
    label = str(explanation.weight_labels[row]).partition(" · ")
    return f"{weight_in_words(explanation.weights[row])} ({label[2] or label[0]})"


def factors(explanation: Explanation) -> FloatArray:
    """(n,) what φ* of each row is multiplied by to add up to f(x); NaN where that would tell
    another story.

    That is: a factor outside (0.1, 10), features left out, or probabilities whose running totals
    leave [0, 1].
    """
    phi = explanation.values
    base = explanation.base_values
    gap = np.abs(explanation.efficiency_gap)
    adds_up = gap <= 1e-9 * (np.abs(phi).sum(axis=1) + np.abs(explanation.predictions))
    factor = np.where(adds_up, 1.0, scale_factors(explanation))
    fits = adds_up | (phi.shape[1] == explanation.family.d)
    if scale_of(explanation.game_info) == "probability":
        steps = np.take_along_axis(phi, order_of(phi), axis=1) * factor[:, None]
        levels = base[:, None] + np.cumsum(steps, axis=1)
        fits &= ((levels > -1e-6) & (levels < 1 + 1e-6)).all(axis=1)
    return np.where(fits, factor, np.nan)


def game_shown(
    explanation: Explanation, row: int | None = None, values: str = "WeightedSHAP"
) -> str:
    """The game behind φ with its scale: of several the one that won the row, or all that won; for
    Shapley the first."""
    first = games_and_weights(explanation.family)[0][:1]
    won = np.unique(explanation.game_labels if row is None else explanation.game_labels[row])
    return named(
        {**explanation.game_info, "game": " and ".join((values == "Shapley" and first) or won)}
    )


def predicted(explanation: Explanation, row: int) -> dict[str, float]:
    """f(x) of a row by scale: on that of the game, and on that of the judge where it is another."""
    game, judge = (scale_of(info) for info in (explanation.game_info, explanation.judge_info))
    f_x = {game: float(explanation.predictions[row])}
    return f_x if game == judge else f_x | {judge: float(explanation.judge_predictions[row])}


def scored_on(explanation: Explanation) -> str:
    """What weights were chosen by: the utility, and the judge unless a utility looks at another
    game."""
    utility = UTILITIES.get(explanation.utility)
    said = f"utility {explanation.utility}"
    if utility is None:  # a function, which may have asked for a game
        return said
    return f"{said}, judged by {utility.game or named(explanation.judge_info)}"


def games_and_weights(family: WeightFamily) -> tuple[tuple[str, ...], WeightFamily]:
    """The games and weights whose pairs a family holds; no game where it holds weights alone."""
    games = tuple(dict.fromkeys(label.partition(" · ")[0] for label in family.labels))
    count = len(family) // len(games)
    labels = tuple(label.partition(" · ")[2] for label in family.labels[:count])
    weights = WeightFamily(labels, family.vectors[:count])
    return (
        (games, weights)
        if len(games) > 1 and weights.of_games(games).equals(family)
        else ((), family)
    )


def chosen_shares(explanation: Explanation, output: Output = 0) -> FloatArray:
    """(m,) share of the rows that chose each weight of the family."""
    labels = np.asarray(one_output(explanation, output)[0].weight_labels)
    return np.array([(labels == label).mean() for label in explanation.family.labels])


def shares_by_game(
    family: WeightFamily, share: FloatArray
) -> tuple[tuple[str, ...], WeightFamily, FloatArray]:
    """Games, weights, and (G, M) the share of the rows that chose each pair; no game and (1, M) for
    weights alone."""
    games, weights = games_and_weights(family)
    return games, weights, share.reshape(-1, len(weights))


def weights_to_show(family: WeightFamily, share: FloatArray) -> tuple[IntArray, int | None]:
    """Positions in the family, from small coalitions to large ones, see `overall.weights`; and
    which is Shapley's."""
    uniform = family.index(shapley(family.d).vectors[0])
    shown = np.arange(len(family))
    if len(family) > SHOW_ALL_WEIGHTS:
        frequent = largest(share, MOST_WEIGHTS)
        shown = np.unique([*frequent[share[frequent] > 0], *([] if uniform is None else [uniform])])
    return by_mean_size(family, shown), uniform


def by_mean_size(family: WeightFamily, chosen: IntArray) -> IntArray:
    """Positions in the family, from small coalitions to large ones."""
    mean_size = family.vectors[chosen] @ np.arange(family.d)
    return np.asarray(chosen[np.argsort(mean_size.round(9), kind="stable")])


def told_rows(drawn: int, n: int) -> str:
    """``200 rows of 3,000``."""
    return plural(drawn, "row") + (f" of {n:,}" if drawn < n else "")


def spread(n: int, most: int) -> IntArray:
    """Positions of all rows, or of `most` of them, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.intp))
