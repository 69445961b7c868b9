"""What the figures and the report read off an explanation: an output, a row, a column, games, the chosen weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from weightedshap.checks import FloatArray, IntArray, positive_integer
from weightedshap.curves import order_of
from weightedshap.explanation import Explanation
from weightedshap.explanation.export import place_of
from weightedshap.explanation.export import row_position as row_position
from weightedshap.explanation.result import named, scale_of
from weightedshap.explanation.slicing import AXES
from weightedshap.inputs import kind_of
from weightedshap.utilities import UTILITIES
from weightedshap.weights import WeightFamily, shapley

Curves = Mapping[str, FloatArray]
"""(n, d + 1) recovery curves by method."""

SHOW_ALL_WEIGHTS, MOST_WEIGHTS = 20, 30  # a figure holds about 30 bars; beyond 20 only chosen ones are of use


def one_output(explanation: Explanation, output: int | str) -> tuple[Explanation, str | None]:
    """One output without the axis k, and its name; all there is, and None, where that axis is not there."""
    place = place_of(explanation, output)
    if not explanation.has_outputs:
        return explanation, None
    fields = {name: value for name, value in vars(explanation).items() if "output" in AXES.get(name, ())}
    name = explanation.output_names[place]
    return replace(explanation, **_at(place, fields), output_names=(name,)), name


def _at(place: int, fields: Mapping[str, Any]) -> dict[str, Any]:
    """One output of each array, as a view (slicing would copy Δ, which may be large); None stays None."""
    deeper = {name: _at(place, value) for name, value in fields.items() if isinstance(value, Mapping)}
    return deeper | {name: None if a is None else a[..., place] for name, a in fields.items() if name not in deeper}


def largest(values: FloatArray, max_display: int) -> IntArray:
    """Positions of the largest |values|, largest first; the lower index first among equals."""
    return order_of(values)[: positive_integer("max_display", max_display)]


def column(explanation: Explanation, i: int) -> pd.Series[Any] | None:
    """The data of feature i; None where features are not columns (groups, games)."""
    data = explanation.data
    if data is None or len(data.shape) != 2 or data.shape[1] != explanation.values.shape[1]:
        return None
    return kind_of(data).series(data, i)


def game_shown(explanation: Explanation, row: int | None = None, values: str = "WeightedSHAP") -> str:
    """The game behind φ with its scale: of several the one that won the row, or all that won; for Shapley the first."""
    first = games_and_weights(explanation.family)[0][:1]
    won = np.unique(explanation.game_labels if row is None else explanation.game_labels[row])
    return named({**explanation.game_info, "game": " and ".join((values == "Shapley" and first) or won)})


def predicted(explanation: Explanation, row: int) -> dict[str, float]:
    """f(x) of a row by scale: on that of the game, and on that of the judge where it is another."""
    game, judge = (scale_of(info) for info in (explanation.game_info, explanation.judge_info))
    f_x = {game: float(explanation.predictions[row])}
    return f_x if game == judge else f_x | {judge: float(explanation.judge_predictions[row])}


def scored_on(explanation: Explanation) -> str:
    """What weights were chosen by: the utility, and the judge unless a utility looks at another game."""
    utility, said = UTILITIES.get(explanation.utility), f"utility {explanation.utility}"
    if utility is None:  # a function, which may have asked for a game
        return said
    return f"{said}, judged by {utility.game or named(explanation.judge_info)}"


def games_and_weights(family: WeightFamily) -> tuple[tuple[str, ...], WeightFamily]:
    """The games and weights whose pairs a family holds; no game where it holds weights alone."""
    games = tuple(dict.fromkeys(label.partition(" · ")[0] for label in family.labels))
    count = len(family) // len(games)
    labels = tuple(label.partition(" · ")[2] for label in family.labels[:count])
    weights = WeightFamily(labels, family.vectors[:count])
    return (games, weights) if len(games) > 1 and weights.of_games(games).equals(family) else ((), family)


def own_curves(explanation: Explanation) -> dict[str, FloatArray]:
    """Recovery curves of WeightedSHAP, Shapley, first and last."""
    references = explanation.reference_curves.items()
    return {"WeightedSHAP": explanation.curves} | {("Shapley" if n == "shapley" else n): c for n, c in references}


def chosen_shares(explanation: Explanation, output: int | str = 0) -> FloatArray:
    """(m,) share of the rows that chose each weight of the family."""
    labels = np.asarray(one_output(explanation, output)[0].weight_labels)
    return np.array([(labels == label).mean() for label in explanation.family.labels])


def shares_by_game(explanation: Explanation) -> tuple[tuple[str, ...], WeightFamily, FloatArray]:
    """Games, weights, and (G, M) the share of the rows that chose each pair; no game and (1, M) for weights alone."""
    games, weights = games_and_weights(explanation.family)
    return games, weights, chosen_shares(explanation).reshape(-1, len(weights))


def weights_to_show(family: WeightFamily, share: FloatArray) -> tuple[IntArray, int | None]:
    """Positions in the family, from small coalitions to large ones, see `overall.weights`; and which is Shapley's."""
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
