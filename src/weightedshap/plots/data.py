"""Data for figures and the report, taken from an explanation.

Functions here select one output and the first features in an order, read columns and cells of the
data table, and describe games and weights in words. The modules that draw figures and
`weightedshap.report` build on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from weightedshap._checks import FloatArray, IntArray, check_choice, check_positive_integer, look_up
from weightedshap._format import number, plural
from weightedshap.curves import rank_features
from weightedshap.explanation import Explanation
from weightedshap.explanation.export import output_index, scale_factors
from weightedshap.explanation.slicing import AXES, slice_field
from weightedshap.explanation.summary import game_title, scale_of
from weightedshap.inputs import container_of
from weightedshap.utilities import UTILITIES
from weightedshap.weights import WeightFamily, shapley

Output = int | str
"""An output by its position or name."""

Order = str | Sequence[int | str]
"""How features are ordered: by mean |φ*| ("importance"), by max |φ*| ("max"), as in the "table", or
as listed."""

MAX_ALL_WEIGHTS = 20  # in a larger family, only chosen weights are shown
MAX_WEIGHTS = 30  # about as many bars as a figure holds
WEIGHT_DESCRIPTIONS = {
    0.02: "each feature alone",
    0.3: "mostly features alone",
    0.45: "more with few others known",
    0.55: "with about half of the others known",
    0.7: "more with many others known",
    0.98: "mostly with all others known",
    1.0: "with all others known",
}
"""Weights in words, by the largest mean share of the other features that are known."""


def select_output(explanation: Explanation, output: Output) -> tuple[Explanation, str | None]:
    """Return the explanation of one output, without the output axis, and its title (or None).

    An explanation without that axis is returned unchanged; its title is the class, if it has one.
    """
    if not isinstance(explanation, Explanation):
        raise TypeError(
            "Figures show an Explanation, as an Explainer returns it; got"
            f" {type(explanation).__name__}."
        )
    o = output_index(explanation, output)
    prefix = "class " if scale_of(explanation.judge_info) == "probability" else ""
    name = explanation.output_names[o] if explanation.output_names else "output 0"
    if not explanation.has_outputs:
        return explanation, f"{prefix}{name}" if prefix and name != "output 0" else None
    fields = {
        field: slice_field(vars(explanation)[field], axes, {"output": o})
        for field, axes in AXES.items()
    }
    k = explanation.values.shape[2]
    others = f", one of {k} outputs" if k > 1 else ""
    return replace(explanation, **fields, output_names=(name,)), f"{prefix}{name}{others}"


def largest(values: FloatArray, max_display: int) -> IntArray:
    """Return the positions of the `max_display` largest |values|; ties go to the lower position."""
    return rank_features(values)[: check_positive_integer("max_display", max_display)]


def first_features(
    explanation: Explanation, order: Order, max_display: int, phi: FloatArray | None = None
) -> tuple[IntArray, list[str]]:
    """Return the positions and the names of the first `max_display` features in an order.

    The order uses `phi` (n, d) if it is given, else the values of an explanation of one output.
    """
    size = np.abs(explanation.values if phi is None else phi)
    names = explanation.feature_names
    if isinstance(order, str):
        sort_keys = {
            "importance": size.mean(axis=0),
            "max": size.max(axis=0),
            "table": np.arange(len(names), 0.0, -1),
        }
        top = largest(look_up("order of features", order, sort_keys), max_display)
    else:
        listed = [feature_position(explanation, feature) for feature in order]
        top = np.array(listed[: check_positive_integer("max_display", max_display)], dtype=np.intp)
    return top, [names[i] for i in top]


def feature_position(explanation: Explanation, feature: int | str) -> int:
    """Return the position 0..d−1 of a feature that is given by name or by position."""
    names = explanation.feature_names
    if isinstance(feature, str):
        return names.index(check_choice("feature", feature, names))
    if isinstance(feature, bool) or feature not in range(-len(names), len(names)):
        raise ValueError(f"A feature is a name or a position 0..{len(names) - 1}; got {feature!r}.")
    return int(feature) % len(names)


def feature_column(explanation: Explanation, i: int) -> pd.Series[Any] | None:
    """Return the data column of feature i; None if features are not single columns but groups."""
    data = explanation.data
    if data is None or len(data.shape) != 2 or data.shape[1] != explanation.values.shape[1]:
        return None
    return container_of(data).series(data, i)


def as_numbers(values: pd.Series[Any] | None) -> FloatArray | None:
    """Convert numbers, flags and ordered categories to floats (n,), NaN where missing.

    Returns None for values of other types.
    """
    if values is None:
        return None
    values = values.infer_objects()
    if isinstance(values.dtype, pd.CategoricalDtype) and values.cat.ordered:
        return np.where(values.cat.codes < 0, np.nan, values.cat.codes.to_numpy(dtype=np.float64))
    if not pd.api.types.is_numeric_dtype(values.dtype):
        return None
    return values.to_numpy(dtype=np.float64, na_value=np.nan)


def category_levels(values: pd.Series[Any]) -> tuple[IntArray, list[str]]:
    """Return the code (n,) of each value, −1 where missing, and the name of each code.

    Names are in the order of the categories, or sorted; categories that do not occur have no code.
    """
    if isinstance(values.dtype, pd.CategoricalDtype):
        used = values.cat.remove_unused_categories().cat
        codes = used.codes.to_numpy()
        names = used.categories
    else:
        codes, names = pd.factorize(values.astype("str").where(values.notna(), None), sort=True)
    return codes.astype(np.intp), list(map(str, names))


def format_cell(value: Any) -> str:
    """Format one value of the data table as text; a missing value becomes ``missing``."""
    if pd.isna(value):
        return "missing"
    return number(float(value)) if isinstance(value, (float, np.floating)) else str(value)


def row_name(explanation: Explanation, row: int) -> str:
    """Return a name for a row: its label in the index of the data table, or else its position."""
    data = explanation.data
    if data is None or len(data.shape) != 2 or not data.shape[1]:
        return f"row {row:,}"
    label = container_of(data).series(data, 0).index[row]
    return label if isinstance(label, str) else f"row {label}"


def weight_in_words(vector: FloatArray) -> str:
    """Describe a weight vector in words, such as ``mostly features alone``."""
    if np.ptp(vector) < 1e-12:
        return "all sizes equally, as Shapley does"
    share = float(vector @ np.linspace(0, 1, len(vector)))
    return next(words for most, words in WEIGHT_DESCRIPTIONS.items() if share <= most + 1e-9)


def chosen_weight_in_words(explanation: Explanation, row: int) -> str:
    """Describe the weight vector chosen for a row in words, with its label."""
    first, _, second = str(explanation.weight_labels[row]).partition(" · ")
    # Where games compete, the label is that of a pair "game · weight".
    return f"{weight_in_words(explanation.weights[row])} ({second or first})"


def display_factors(explanation: Explanation) -> FloatArray:
    """Return factors (n,) that make each row's attributions φ* add up to f(x) in a figure.

    NaN where the multiplied values would misrepresent φ*: a factor outside (0.1, 10), features left
    out, or probabilities whose running totals leave [0, 1].
    """
    phi = explanation.values
    base = explanation.base_values
    gap = np.abs(explanation.efficiency_gap)
    adds_up = gap <= 1e-9 * (np.abs(phi).sum(axis=1) + np.abs(explanation.predictions))
    factor = np.where(adds_up, 1.0, scale_factors(explanation))
    fits = adds_up | (phi.shape[1] == explanation.family.d)
    if scale_of(explanation.game_info) == "probability":
        steps = np.take_along_axis(phi, rank_features(phi), axis=1) * factor[:, None]
        levels = base[:, None] + np.cumsum(steps, axis=1)
        fits &= ((levels > -1e-6) & (levels < 1 + 1e-6)).all(axis=1)
    return np.where(fits, factor, np.nan)


def explained_game(
    explanation: Explanation, row: int | None = None, values: str = "WeightedSHAP"
) -> str:
    """Return the title of the game from which attributions were computed, with its scale.

    If several games competed, it is the one chosen for the `row`, or all that were chosen for some
    row. If `values` is "Shapley", it is the first game.
    """
    games, _ = games_and_weights(explanation.family)
    labels = explanation.game_labels
    names = np.unique(labels if row is None else labels[row]).tolist()
    if values == "Shapley" and games:
        names = [games[0]]
    return game_title({**explanation.game_info, "game": " and ".join(names)})


def predictions_by_scale(explanation: Explanation, row: int) -> dict[str, float]:
    """Return a row's prediction on the scales of the game and of the judge, as a dict by scale.

    If both have the same scale, there is one value.
    """
    game_scale = scale_of(explanation.game_info)
    judge_scale = scale_of(explanation.judge_info)
    predictions = {game_scale: float(explanation.predictions[row])}
    if judge_scale != game_scale:
        predictions[judge_scale] = float(explanation.judge_predictions[row])
    return predictions


def utility_in_words(explanation: Explanation) -> str:
    """Describe in words the utility that chose the weights, and the game used to compute it."""
    utility = UTILITIES.get(explanation.utility)
    text = f"utility {explanation.utility}"
    # A user's function may score on any game.
    if utility is None:
        return text
    return f"{text}, judged by {utility.game or game_title(explanation.judge_info)}"


def games_and_weights(family: WeightFamily) -> tuple[tuple[str, ...], WeightFamily]:
    """Split a family of (game, weight) pairs into its games and its weights.

    A family of weights alone is returned unchanged, with an empty tuple of games.
    """
    games = tuple(dict.fromkeys(label.partition(" · ")[0] for label in family.labels))
    count = len(family) // len(games)
    labels = tuple(label.partition(" · ")[2] for label in family.labels[:count])
    weights = WeightFamily(labels, family.vectors[:count])
    holds_pairs = len(games) > 1 and weights.pairs_with(games).equals(family)
    return (games, weights) if holds_pairs else ((), family)


def chosen_shares(explanation: Explanation, output: Output = 0) -> FloatArray:
    """Return the share of the rows for which each of the m weight vectors was chosen, as (m,)."""
    one, _ = select_output(explanation, output)
    chosen = np.asarray(one.weight_labels)
    return np.array([(chosen == label).mean() for label in explanation.family.labels])


def shares_by_game(
    family: WeightFamily, share: FloatArray
) -> tuple[tuple[str, ...], WeightFamily, FloatArray]:
    """Split a family of (game, weight) pairs, and the share of the rows for each pair, by game.

    Returns the games, the weights, and the shares (G, m) by game and weight. For a family of
    weights alone there is no game, and the shares are (1, m).
    """
    games, weights = games_and_weights(family)
    return games, weights, share.reshape(-1, len(weights))


def weights_to_show(family: WeightFamily, share: FloatArray) -> tuple[IntArray, int | None]:
    """Return the positions of the weights to draw, and the position of the Shapley weight.

    The weights are sorted from small coalitions to large ones. In a large family only the weights
    chosen most often, by their `share` of the rows, and the Shapley weight are drawn. Its position
    is None if the family does not contain it.
    """
    uniform = family.index(shapley(family.d).vectors[0])
    shown = np.arange(len(family))
    if len(family) > MAX_ALL_WEIGHTS:
        frequent = largest(share, MAX_WEIGHTS)
        always = [] if uniform is None else [uniform]
        shown = np.unique([*frequent[share[frequent] > 0], *always])
    return sort_by_mean_size(family, shown), uniform


def sort_by_mean_size(family: WeightFamily, positions: IntArray) -> IntArray:
    """Sort the weight vectors at `positions` by the mean coalition size that they favour."""
    mean_size = family.vectors[positions] @ np.arange(family.d)
    return np.asarray(positions[np.argsort(mean_size.round(9), kind="stable")])


def row_count_text(n_drawn: int, n: int) -> str:
    """Format how many of n rows are drawn: ``200 rows of 3,000``."""
    return plural(n_drawn, "row") + (f" of {n:,}" if n_drawn < n else "")


def evenly_spread(n: int, most: int) -> IntArray:
    """Return the positions of at most `most` of n rows, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.intp))
