"""The content of the report page: the texts and numbers that the page draws.

They are a dict for JSON, and one array of float32 numbers for the rows that can be explored. The
scripts of the page read both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from weightedshap._checks import Array, FloatArray
from weightedshap._format import number
from weightedshap._version import __version__
from weightedshap.evaluation import LARGER_IS_BETTER, METHODS, Evaluation, in_words
from weightedshap.explanation import Explanation
from weightedshap.explanation.aggregates import Sums, interval, sum_curves, sum_output
from weightedshap.explanation.summary import game_title, judge_title, scale_of
from weightedshap.inputs import container_of
from weightedshap.plots.data import (
    display_factors,
    games_and_weights,
    largest,
    select_output,
    shares_by_game,
    utility_in_words,
    weight_in_words,
    weights_to_show,
)

EXPLORED_BYTES = 7 * 2**20  # uncompressed; with plotly.js the page is smaller than 10 MB
TOP_FEATURES = 12
TOP_SIZES = 8  # features whose Δ by size is shown, for each row
MAX_CELL = 120  # characters of a value that the page shows
MANTISSA_BITS = 20  # six digits are exact, and the zero bits after them compress
IN_TITLES = ("game", "space", "scale")  # items of an info that are in the titles of games already
FACT_TYPES = (str, int, float, np.bool_, np.integer, np.floating)
FACT_NAMES = {
    "held_out_error": "held-out squared error",
    "relative_error": "its share of the variance of f",
    "variance": "variance of f",
    "empty_gap": "gap with no feature, v(∅) − E f",
    "full_gap": "gap with all features, root mean square",
}
SELECTIONS = {
    "per_row": "a weight for each row",
    "shared": "one weight for all rows",
    "one_standard_error": (
        "one weight for all rows, the nearest to Shapley within one standard error of the best"
    ),
}
DRAWN = ("WeightedSHAP", "refined", "Shapley", "first", "last", "greedy", "optimum")
"""The methods whose curves are drawn."""


class AllRows(NamedTuple):
    """Sums over all rows, for a page on which only a sample of the rows can be explored.

    Such a page is written for a folder of results.
    """

    outputs: Sequence[Sums]  # for each output, see `weightedshap.explanation.aggregates.sum_output`
    positions: Sequence[int]  # positions of the sampled rows among all rows


def contents(
    explanation: Explanation, evaluation: Evaluation | None = None, whole: AllRows | None = None
) -> tuple[dict[str, Any], bytes]:
    """Return the data of the report page: a dict for JSON, and the bytes of all arrays as float32.

    The dict contains texts and means, and the position of each array in the bytes, counted in
    numbers. `whole` contains the sums over all rows, if `explanation` is a sample of them.
    """
    if evaluation is not None:
        _check_same_data(explanation, evaluation)
    k = explanation.values.shape[2] if explanation.has_outputs else 1
    outputs = [select_output(explanation, o)[0] for o in range(k)]  # without the axis k
    sums_by_output = whole.outputs if whole is not None else [sum_output(one) for one in outputs]
    n = sums_by_output[0]["own"]["rows"]

    column_names, columns = _columns(explanation)
    cells = [column.array for column in columns]
    rows = _interactive_rows(outputs, cells)
    arrays_by_output = [_interactive_arrays(one, rows) for one in outputs]
    arrays: dict[str, Array] = {
        name: np.stack([of_one[name] for of_one in arrays_by_output], axis=1)
        for name in arrays_by_output[0]
    }
    places, numbers = _pack(arrays)

    features = explanation.feature_names
    games, _ = games_and_weights(explanation.family)
    vectors = explanation.family.vectors
    notes = [*explanation.notes, *(() if evaluation is None else evaluation.notes)]
    head = {
        "version": __version__,
        "n": n,
        "features": list(features),
        "outputs": list(explanation.output_names[:k]) or ["output"],
        "rows": rows if whole is None else [whole.positions[row] for row in rows],
        "labels": _row_labels(columns, rows),
        "columns": column_names,
        "column_of": _column_of_feature(features, column_names),
        "cells": [[_text(column[row]) for column in cells] for row in rows],
        "weights": [[str(one.weight_labels[row]) for one in outputs] for row in rows],
        "games": None,
        "words": dict(zip(explanation.family.labels, map(weight_in_words, vectors), strict=True)),
        "game": game_title(explanation.game_info),
        "judge": game_title(explanation.judge_info),
        "scales": [scale_of(explanation.game_info), scale_of(explanation.judge_info)],
        "first": games[0] if games else None,
        "stopped": [list(item) for item in Counter(explanation.stopped).most_common()],
        "utility": explanation.utility,
        "scored": utility_in_words(explanation),
        "facts": _facts(explanation, n),
        "notes": notes,
        "held_out": _held_out_errors(explanation.judge_info),
        "summaries": [
            summary(one, sums) for one, sums in zip(outputs, sums_by_output, strict=True)
        ],
        "evaluation": None if evaluation is None else _evaluation_section(evaluation),
        "arrays": places,
    }
    if games:
        head["games"] = [[str(one.game_labels[row]) for one in outputs] for row in rows]
    return head, numbers


def _check_same_data(explanation: Explanation, evaluation: Evaluation) -> None:
    """Raise an error if an evaluation and an explanation have different features."""
    curves = evaluation.curves(evaluation.judges[0])
    d = next(iter(curves.values())).shape[1] - 1
    missing = [name for name in explanation.feature_names if name not in evaluation.feature_names]
    differs = bool(evaluation.feature_names and missing)
    if d != explanation.family.d or differs:
        without = f" without {missing[0]!r}" if differs else ""
        raise ValueError(
            f"The evaluation is of {d:,} features{without}, the explanation of"
            f" {explanation.family.d:,}: they are of other data. Pass what ws.evaluate(explainer,"
            " X) gives with the explainer of this explanation."
        )


def _row_labels(columns: Sequence[pd.Series[Any]], rows: Sequence[int]) -> list[str] | None:
    """Return the index labels of some rows of the data; None if the index is 0, 1, …."""
    index = columns[0].index if columns else pd.RangeIndex(0)
    if index.equals(pd.RangeIndex(len(index))):
        return None
    return [_text(index[row]) for row in rows]


def _column_of_feature(features: Sequence[str], column_names: Sequence[str]) -> list[int]:
    """Return, for each feature, the position of its column; −1 for a group of columns."""
    if len(column_names) == len(features):
        return list(range(len(features)))
    return [column_names.index(name) if name in column_names else -1 for name in features]


def _held_out_errors(judge_info: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the held-out error of a learned judge at each coalition size, and the variance of f.

    For any other judge return None.
    """
    errors = judge_info.get("held_out_error_by_size")
    if errors is None:
        return None
    return {"errors": _numbers(errors), "variance": _numbers(judge_info.get("variance", np.nan))}


def _interactive_arrays(one: Explanation, rows: Sequence[int]) -> dict[str, Array]:
    """Return the arrays (r, …) of one output that the page needs to show r rows, as a dict."""
    of_all_rows: dict[str, Array] = {
        "phi": one.values,
        "shapley": one.shapley,
        "order": one.orders,
        "curve": one.curves,
        "shapley_curve": one.reference_curves["shapley"],
        "base": one.base_values,
        "prediction": one.predictions,
        "judged": one.judge_predictions,
        "gap": one.efficiency_gap,
    }
    if one.standard_errors is not None:
        of_all_rows["error"] = one.standard_errors
    if one.contributions is not None:
        of_all_rows["weight"] = one.weights
    arrays = {name: array[rows] for name, array in of_all_rows.items()}
    arrays["factor"] = display_factors(one)[rows]
    # Δ of the leading features only, (r, t, sizes): the whole table may be large.
    if one.contributions is not None:
        leading = [one.contributions[row][:, one.orders[row, :TOP_SIZES]].T for row in rows]
        arrays["sizes"] = np.stack(leading)
    return arrays


def _interactive_rows(outputs: Sequence[Explanation], columns: Sequence[Any]) -> list[int]:
    """Return the positions of the rows to show: all, or as many as fit the page, evenly spaced."""
    n = len(outputs[0])
    n_floats = sum(
        array.size for one in outputs for array in _interactive_arrays(one, [0]).values()
    )
    sample = np.unique(np.linspace(0, n - 1, 50).astype(np.intp)).tolist()
    n_letters = sum(len(_text(column[row])) + 4 for column in columns for row in sample)
    bytes_per_row = 4 * n_floats + n_letters / len(sample)
    most = max(1, int(EXPLORED_BYTES / bytes_per_row))
    if n <= most:
        return list(range(n))
    rows: list[int] = np.linspace(0, n - 1, most).astype(np.intp).tolist()
    return rows


def _pack(arrays: Mapping[str, Array]) -> tuple[dict[str, list[int]], bytes]:
    """Pack arrays (r, k, …) of r rows and k outputs one after the other, as float32 numbers.

    Return two values: by name, where each array starts and how many numbers it has for one row and
    output; and the bytes of all numbers, rounded to `MANTISSA_BITS`.
    """
    places = {}
    start = 0
    for name, array in arrays.items():
        places[name] = [start, math.prod(array.shape[2:])]
        start += array.size
    floats = np.concatenate([array.ravel() for array in arrays.values()]).astype("<f4")
    n_cut = 23 - MANTISSA_BITS
    half = np.uint32(1 << (n_cut - 1))
    mask = np.uint32((0xFFFFFFFF << n_cut) & 0xFFFFFFFF)
    return places, ((floats.view("<u4") + half) & mask).tobytes()


def _columns(explanation: Explanation) -> tuple[list[str], list[pd.Series[Any]]]:
    """Return the names of the data columns, and the columns as pandas Series.

    Both are empty if the explanation has no data, or rows that are not flat.
    """
    data = explanation.data
    if data is None or len(data.shape) != 2:
        return [], []
    container = container_of(data)
    columns = [container.series(data, c) for c in range(data.shape[1])]
    features = explanation.feature_names
    counted = [f"x{c}" for c in range(len(columns))]
    names = container.names(data) or (features if len(features) == len(columns) else counted)
    return list(names), columns


def _text(value: Any) -> str:
    """Format a value of the data as text of at most `MAX_CELL` characters."""
    if value is None or (np.ndim(value) == 0 and pd.isna(value)):
        return "missing"
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    text = str(value)
    return text if len(text) <= MAX_CELL else text[: MAX_CELL - 1] + "…"


def _facts(explanation: Explanation, n: int) -> list[list[str]]:
    """Return facts about the explanation and its games, as pairs of a name and a text.

    `n` is the number of all rows.
    """
    d = len(explanation.feature_names)
    n_players = explanation.family.d
    least = explanation.n_evaluations.min()
    most = explanation.n_evaluations.max()
    evaluations = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    games, weights = games_and_weights(explanation.family)
    n_weights = f"{len(weights):,}"
    if games:
        n_weights = f"{len(explanation.family):,} pairs: {n_weights} for each of {len(games)} games"
    facts = {
        "rows": f"{n:,}",
        "features": f"{d:,} of {n_players:,}" if d < n_players else f"{d:,}",
        "outputs": f"{explanation.values.shape[2]:,}" if explanation.has_outputs else "1",
        "explained": game_title(explanation.game_info),
        "judged by": judge_title(explanation),
        "evaluations for a row": evaluations if most else "none: read off exactly",
        "utility": explanation.utility,
        "selection": SELECTIONS.get(explanation.select, explanation.select),
        "weights in the family": n_weights,
    }
    own = explanation.game_info
    if facts["judged by"] == "the same game":
        facts |= _game_facts("", own)
    else:
        infos = own.get("games", {own.get("game", "game"): own})
        for name, info in infos.items():
            facts |= _game_facts(f"{name}: ", info)
        facts |= _game_facts("judge: ", explanation.judge_info)
    return [[name, text] for name, text in facts.items()]


def _game_facts(prefix: str, info: Mapping[str, Any]) -> dict[str, str]:
    """Format the simple values in a game's info as texts; `prefix` starts the name of each."""
    facts = {}
    for key, value in info.items():
        if not isinstance(value, FACT_TYPES) or key in IN_TITLES:
            continue
        name = FACT_NAMES.get(key, str(key).replace("_", " "))
        is_number = not isinstance(value, (str, bool, np.bool_))
        facts[prefix + name] = number(float(value)) if is_number else str(value)
    return facts


def summary(one: Explanation, sums: Sums) -> dict[str, Any]:
    """Summarise one output over all rows, from the sums over the rows; return a dict for JSON.

    It contains importances, shares of the weights, and curves and areas on the judge that chose the
    weights. `one` is the explanation without its axis of outputs.
    """
    n = sums["own"]["rows"]
    chosen = np.array(sums["phi"]) / n
    shapley = np.array(sums["shapley"]) / n
    top = largest(chosen, TOP_FEATURES)
    return {
        "importance": {
            "features": top.tolist(),
            "chosen": _numbers(chosen[top]),
            "shapley": _numbers(shapley[top]),
            "wholes": [_numbers(chosen.sum()), _numbers(shapley.sum())],
        },
        "weights": _weights_section(one, sums),
        "own": _judge_section(sums["own"]),
    }


def _weights_section(one: Explanation, sums: Sums) -> dict[str, Any]:
    """Return the section on weights, a dict: how often each was chosen, by game.

    The weights are sorted from small coalitions to large ones; of a large family only some are
    included, see `weights_to_show`.
    """
    counts = np.array([sums["weights"].get(label, 0) for label in one.family.labels])
    games, family, shares = shares_by_game(one.family, counts / sums["own"]["rows"])
    shown, uniform = weights_to_show(family, shares.sum(axis=0))
    return {
        "names": [family.labels[i] for i in shown],
        "games": list(games),
        "shares": _numbers(shares[:, shown]),
        "uniform": -1 if uniform is None else shown.tolist().index(uniform),
    }


def _leading_methods(methods: Iterable[str]) -> list[str]:
    """Return the methods to put first on the page: "WeightedSHAP", and the names of explainers."""
    return [name for name in methods if name == "WeightedSHAP" or name not in METHODS]


def _judge_section(sums: Sums) -> dict[str, Any]:
    """Return the section on one judge, a dict: mean curves and areas with 95 % half-widths.

    The paired comparison with Shapley is included if Shapley is among the methods.
    """
    n = sums["rows"]
    curves = sums["curves"]
    areas = sums["areas"]
    leading = _leading_methods(areas)
    is_drawn = {name: name in DRAWN or name in leading for name in curves}
    first_curves = next(iter(curves.values()))
    mean = np.array(curves.get("Shapley", first_curves)[0])  # (d + 1,) times n
    return {
        "rows": n,
        "areas": [[name, *map(_numbers, interval(areas[name], n))] for name in areas],
        "curves": [
            [name, *map(_numbers, interval(curves[name], n))] for name in curves if is_drawn[name]
        ],
        "leading": leading,
        "change": _relative_change(sums, areas["Shapley"][0] / n) if "change" in sums else None,
        "misfit": float(mean[-1] / mean[1:].mean()) if mean[1:].any() else 0.0,
    }


def _relative_change(sums: Sums, reference: float) -> dict[str, Any]:
    """Return a dict that compares the leading method's areas with Shapley's, row by row.

    The dict contains the mean of the paired differences and its margin, both divided by
    `reference`, and the shares of the rows with smaller and with equal areas.
    """
    n = sums["rows"]
    mean, margin = interval(sums["change"], n)
    return {
        "mean": _numbers(mean / (reference or np.nan)),
        "margin": _numbers(margin / (reference or np.nan)),
        "better": sums["better"] / n,
        "equal": sums["equal"] / n,
    }


def _evaluation_section(evaluation: Evaluation) -> dict[str, Any]:
    """Return the section on an evaluation, a dict: a table and mean curves for each judge.

    The key "fair" has the name of the first judge that did not choose the weights.
    """
    leading = next(iter(_leading_methods(evaluation.methods)), "")
    judges = {}
    for judge in evaluation.judges:
        judges[judge] = {
            **_judge_section(sum_curves(evaluation.curves(judge), leading)),
            "mean": _numbers(evaluation.mean(judge)),
            "margin": _numbers(evaluation.margin(judge)),
            "told": in_words(judge),
        }
    return {
        "methods": list(evaluation.methods),
        "metrics": list(evaluation.metrics),
        "larger": [metric in LARGER_IS_BETTER for metric in evaluation.metrics],
        "judges": judges,
        "fair": next((judge for judge in evaluation.judges if judge != "own"), None),
    }


def _numbers(values: FloatArray | float) -> object:
    """Round one or many numbers to six significant digits; NaN becomes None, as JSON has no NaN."""
    if np.ndim(values):
        return [_numbers(value) for value in np.asarray(values)]
    return float(f"{values:.6g}") if np.isfinite(values) else None
