"""What the page draws: a head for JSON, and one run of float32 numbers for the rows that can be
explored."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from weightedshap._checks import FloatArray, IntArray
from weightedshap._format import number
from weightedshap._version import __version__
from weightedshap.evaluation import LARGER_IS_BETTER, METHODS, Evaluation, in_words
from weightedshap.explanation import Explanation
from weightedshap.explanation.aggregates import Sums, interval, of_curves, of_output
from weightedshap.explanation.summary import judge_named, named, scale_of
from weightedshap.inputs import kind_of
from weightedshap.plots import data as reading

EXPLORED_BYTES = 7 * 2**20  # before compression; with plotly.js the page stays below 10 MB
TOP_FEATURES = 12
TOP_SIZES = 8
LONGEST_CELL = 120  # letters of a value that the page shows
MANTISSA_BITS = 20  # six digits are right, and the zeros behind them compress
NAMED = ("game", "space", "scale")  # told before
FACTS = (str, int, float, np.bool_, np.integer, np.floating)
WORDS = {
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


class Whole(NamedTuple):
    """What the page tells of all rows, where only a sample of them can be explored, as of a folder
    of results."""

    outputs: Sequence[Sums]  # of all rows, see `weightedshap.explanation.aggregates.of_output`
    positions: Sequence[int]  # of the rows of the sample among all


def contents(
    explanation: Explanation, evaluation: Evaluation | None = None, whole: Whole | None = None
) -> tuple[dict[str, Any], bytes]:
    """The head, which says where each array lies in the numbers, and the numbers."""
    if evaluation is not None:
        _check_same_data(explanation, evaluation)
    k = explanation.values.shape[2] if explanation.has_outputs else 1
    # Without the axis k.
    outputs = [reading.one_output(explanation, output)[0] for output in range(k)]
    games, _ = reading.games_and_weights(explanation.family)
    names, columns = _columns(explanation)
    features = explanation.feature_names
    cells = [column.array for column in columns]
    # The column of each; −1 for a group.
    found = [names.index(name) if name in names else -1 for name in features]
    index = columns[0].index if columns else pd.RangeIndex(0)
    counted = index.equals(pd.RangeIndex(len(index)))  # as arrays are; other rows have names
    judge = explanation.judge_info
    learned = judge.get("held_out_error_by_size")
    variance = judge.get("variance", np.nan)
    rows = _explored(outputs, cells)
    summed = [of_output(one) for one in outputs] if whole is None else whole.outputs
    n = summed[0]["own"]["rows"]
    arrays = [_explored_arrays(one, rows) for one in outputs]
    places, numbers = _joined(
        {name: np.stack([each[name] for each in arrays], axis=1) for name in arrays[0]}
    )
    head = {
        "version": __version__,
        "n": n,
        "features": list(features),
        "outputs": list(explanation.output_names[: len(outputs)]) or ["output"],
        "rows": rows if whole is None else [whole.positions[row] for row in rows],
        "labels": None if counted else [_text(index[row]) for row in rows],
        "columns": names,
        "column_of": list(range(len(features))) if len(names) == len(features) else found,
        "cells": [[_text(column[row]) for column in cells] for row in rows],
        "weights": [[str(one.weight_labels[row]) for one in outputs] for row in rows],
        "games": (
            [[str(one.game_labels[row]) for one in outputs] for row in rows] if games else None
        ),
        "words": dict(
            zip(explanation.family.labels, map(reading.weight_in_words, explanation.family.vectors))
        ),
        "game": named(explanation.game_info),
        "judge": named(judge),
        "scales": [scale_of(explanation.game_info), scale_of(judge)],
        "first": games[0] if games else None,
        "stopped": [
            [reason, count] for reason, count in Counter(explanation.stopped).most_common()
        ],
        "utility": explanation.utility,
        "scored": reading.scored_on(explanation),
        "facts": _facts(explanation, n),
        "notes": [*explanation.notes, *(() if evaluation is None else evaluation.notes)],
        "held_out": (
            None
            if learned is None
            else {"errors": _numbers(learned), "variance": _numbers(variance)}
        ),
        "summaries": [summary(one, sums) for one, sums in zip(outputs, summed, strict=True)],
        "evaluation": None if evaluation is None else _evaluation(evaluation),
        "arrays": places,
    }
    return head, numbers


def _check_same_data(explanation: Explanation, evaluation: Evaluation) -> None:
    """Refuse an evaluation of other features than those explained."""
    d = next(iter(evaluation.curves(evaluation.judges[0]).values())).shape[1] - 1
    strange = [name for name in explanation.feature_names if name not in evaluation.feature_names]
    if d != explanation.family.d or (evaluation.feature_names and strange):
        of = f"of {d:,} features" + (
            f" without {strange[0]!r}" if evaluation.feature_names and strange else ""
        )
        said = (
            f"The evaluation is {of}, the explanation of {explanation.family.d:,}: they are of"
            " other data."
        )
        raise ValueError(
            f"{said} Pass what ws.evaluate(explainer, X) gives with the explainer of this"
            " explanation."
        )


def _explored_arrays(one: Explanation, rows: list[int]) -> dict[str, FloatArray | IntArray]:
    """The arrays of one output that the explorer needs, (r, …) each."""
    delta = one.contributions
    errors = one.standard_errors
    whole: dict[str, FloatArray | IntArray] = {
        "phi": one.values,
        "shapley": one.shapley,
        "order": one.orders,
    }
    whole |= {
        "curve": one.curves,
        "shapley_curve": one.reference_curves["shapley"],
        "base": one.base_values,
    }
    whole |= {
        "prediction": one.predictions,
        "judged": one.judge_predictions,
        "gap": one.efficiency_gap,
    }
    whole |= ({} if errors is None else {"error": errors}) | (
        {} if delta is None else {"weight": one.weights}
    )
    arrays = {name: array[rows] for name, array in whole.items()}
    arrays["factor"] = reading.factors(one)[rows]
    if delta is not None:  # (r, t, sizes) of the t leading features; the whole table may be large
        arrays["sizes"] = np.stack([delta[row][:, one.orders[row, :TOP_SIZES]].T for row in rows])
    return arrays


def _explored(outputs: list[Explanation], columns: Sequence[Any]) -> list[int]:
    """Positions of the rows to explore: all, or as many as the size allows, evenly spread."""
    n = len(outputs[0])
    floats = sum(array.size for one in outputs for array in _explored_arrays(one, [0]).values())
    some = np.unique(np.linspace(0, n - 1, 50).astype(np.intp)).tolist()
    text = sum(len(_text(column[row])) + 4 for column in columns for row in some) / len(some)
    room = max(1, int(EXPLORED_BYTES / (4 * floats + text)))
    return list(range(n)) if n <= room else np.linspace(0, n - 1, room).astype(np.intp).tolist()


def _joined(arrays: Mapping[str, FloatArray]) -> tuple[dict[str, list[int]], bytes]:
    """Where each array starts in the numbers and how much belongs to one row and output; and the
    numbers as bytes."""
    starts = np.cumsum([0, *(array.size for array in arrays.values())]).tolist()
    places = {
        name: [start, math.prod(arrays[name].shape[2:])] for name, start in zip(arrays, starts)
    }
    bits = np.concatenate([array.ravel() for array in arrays.values()]).astype("<f4").view("<u4")
    cut = 23 - MANTISSA_BITS
    return (
        places,
        (
            (bits + np.uint32(1 << (cut - 1))) & np.uint32((0xFFFFFFFF << cut) & 0xFFFFFFFF)
        ).tobytes(),
    )


def _columns(explanation: Explanation) -> tuple[list[str], list[pd.Series[Any]]]:
    """Names and columns of the data; none where there are no data, or rows that are not flat."""
    data = explanation.data
    features = explanation.feature_names
    if data is None or len(data.shape) != 2:
        return [], []
    columns = [kind_of(data).series(data, c) for c in range(data.shape[1])]
    counted = [f"x{c}" for c in range(len(columns))]
    return (
        list(kind_of(data).names(data) or (features if len(features) == len(columns) else counted)),
        columns,
    )


def _text(value: Any) -> str:
    if value is None or (np.ndim(value) == 0 and pd.isna(value)):
        return "missing"
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    text = str(value)
    return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…"


def _facts(explanation: Explanation, n: int) -> list[list[str]]:
    """What was explained and how, as pairs of a name and a text."""
    d = len(explanation.feature_names)
    least = explanation.n_evaluations.min()
    most = explanation.n_evaluations.max()
    spread = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    games, weights = reading.games_and_weights(explanation.family)
    pairs = f"{len(explanation.family):,} pairs: {len(weights):,} for each of {len(games)} games"
    facts = {
        "rows": f"{n:,}",
        "features": f"{d:,} of {explanation.family.d:,}" if d < explanation.family.d else f"{d:,}",
        "outputs": f"{explanation.values.shape[2]:,}" if explanation.has_outputs else "1",
        "explained": named(explanation.game_info),
        "judged by": judge_named(explanation),
        "evaluations for a row": spread if most else "none: read off exactly",
        "utility": explanation.utility,
        "selection": SELECTIONS.get(explanation.select, explanation.select),
        "weights in the family": pairs if games else f"{len(weights):,}",
    }
    own = explanation.game_info
    by_name = {
        f"{name}: ": about
        for name, about in own.get("games", {own.get("game", "game"): own}).items()
    }
    # Told with the name in front, unless they are one.
    apart = by_name | {"judge: ": explanation.judge_info}
    for of, info in ({"": own} if facts["judged by"] == "the same game" else apart).items():
        told = {
            key: value
            for key, value in info.items()
            if isinstance(value, FACTS) and key not in NAMED
        }
        texts = {
            key: str(v) if isinstance(v, (str, bool, np.bool_)) else number(float(v))
            for key, v in told.items()
        }
        facts |= {
            of + WORDS.get(key, str(key).replace("_", " ")): text for key, text in texts.items()
        }
    return [[name, text] for name, text in facts.items()]


def summary(one: Explanation, sums: Sums) -> dict[str, Any]:
    """What the page tells of all rows of one output, without its axis, from their sums."""
    chosen, reference = (np.array(sums[name]) / sums["own"]["rows"] for name in ("phi", "shapley"))
    top = reading.largest(chosen, TOP_FEATURES)
    wholes = {"wholes": [_numbers(each.sum()) for each in (chosen, reference)]}
    importance = {
        "features": top.tolist(),
        "chosen": _numbers(chosen[top]),
        "shapley": _numbers(reference[top]),
    }
    return {
        "importance": importance | wholes,
        "weights": _weights(one, sums),
        "own": _judged(sums["own"]),
    }


def _weights(one: Explanation, sums: Sums) -> dict[str, Any]:
    """Shares of the rows, game by game, that chose each weight, from small coalitions to large; of
    many the chosen."""
    counts = np.array([sums["weights"].get(label, 0) for label in one.family.labels])
    games, family, shares = reading.shares_by_game(one.family, counts / sums["own"]["rows"])
    shown, uniform = reading.weights_to_show(family, shares.sum(axis=0))
    place = -1 if uniform is None else shown.tolist().index(uniform)
    names = [family.labels[i] for i in shown]
    return {
        "names": names,
        "games": list(games),
        "shares": _numbers(shares[:, shown]),
        "uniform": place,
    }


def _leading(methods: Iterable[str]) -> list[str]:
    """WeightedSHAP, or explainers by their names."""
    return [name for name in methods if name == "WeightedSHAP" or name not in METHODS]


def _judged(sums: Sums) -> dict[str, Any]:
    """Mean curves and areas with half-widths of 95 % intervals, and the paired comparison with
    Shapley."""
    n = sums["rows"]
    curves = sums["curves"]
    areas = sums["areas"]
    leading = _leading(areas)
    mean = np.array(curves.get("Shapley", next(iter(curves.values())))[0])  # (d + 1,) times n
    return {
        "rows": n,
        "areas": [[name, *map(_numbers, interval(moments, n))] for name, moments in areas.items()],
        "curves": [
            [name, *map(_numbers, interval(curves[name], n))]
            for name in curves
            if name in (*DRAWN, *leading)
        ],
        "leading": leading,
        "change": _change(sums, areas["Shapley"][0] / n) if "change" in sums else None,
        "misfit": float(mean[-1] / mean[1:].mean()) if mean[1:].any() else 0.0,
    }


def _change(sums: Sums, reference: float) -> dict[str, Any]:
    """How much smaller the leading areas are than the reference's, paired by row, relative to its
    mean."""
    mean, margin = (
        _numbers(each / (reference or np.nan)) for each in interval(sums["change"], sums["rows"])
    )
    return {
        "mean": mean,
        "margin": margin,
        **{name: sums[name] / sums["rows"] for name in ("better", "equal")},
    }


def _evaluation(evaluation: Evaluation) -> dict[str, Any]:
    """Each judge's table and curves; the first that chose nothing is the one that counts."""
    return {
        "methods": list(evaluation.methods),
        "metrics": list(evaluation.metrics),
        "larger": [metric in LARGER_IS_BETTER for metric in evaluation.metrics],
        "judges": {
            judge: (
                _judged(
                    of_curves(
                        evaluation.curves(judge), next(iter(_leading(evaluation.methods)), "")
                    )
                )
                | {
                    "mean": _numbers(evaluation.mean(judge)),
                    "margin": _numbers(evaluation.margin(judge)),
                }
                | {"told": in_words(judge)}
            )
            for judge in evaluation.judges
        },
        "fair": next((judge for judge in evaluation.judges if judge != "own"), None),
    }


def _numbers(values: FloatArray | float) -> object:
    """Six digits, and None where there is no number: JSON knows no NaN."""
    if np.ndim(values):
        return [_numbers(value) for value in np.asarray(values)]
    return float(f"{values:.6g}") if np.isfinite(values) else None
