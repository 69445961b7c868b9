"""What the page draws: a head for JSON, and one run of float32 numbers for the rows that can be explored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from weightedshap import __version__
from weightedshap.checks import FloatArray
from weightedshap.curves import area, mean_interval
from weightedshap.evaluation import LARGER_IS_BETTER
from weightedshap.inputs.columns import is_polars
from weightedshap.weights import shapley

if TYPE_CHECKING:
    from weightedshap.explanation import Explanation

__all__ = ["contents"]

EXPLORED_BYTES = 7 * 2**20  # before compression; with plotly.js the page stays below 10 MB
TOP_FEATURES = 12
TOP_SIZES = 8
MOST_WEIGHTS = 20
LONGEST_CELL = 120
MANTISSA_BITS = 16
WORDS = {
    "space": "scale",
    "held_out_error": "held-out squared error",
    "relative_error": "its share of the variance of f",
    "variance": "variance of f",
    "empty_gap": "gap with no feature, v(∅) − E f",
    "full_gap": "gap with all features, root mean square",
}
DRAWN = ("WeightedSHAP", "Shapley", "first", "last", "greedy", "optimum")


def contents(explanation: Explanation, evaluation: Any = None) -> tuple[dict[str, Any], bytes]:
    """The head, which says where each array lies in the numbers, and the numbers."""
    outputs = _by_output(explanation)
    names, columns = _columns(explanation)
    rows = _explored(explanation, columns)
    parts = [_explored_arrays(part, rows) for part in outputs]
    places, numbers = _joined({name: np.stack([part[name] for part in parts], axis=1) for name in parts[0]})
    head = {
        "version": __version__,
        "n": len(explanation),
        "features": list(explanation.feature_names),
        "outputs": list(explanation.output_names[: len(outputs)]) or ["output"],
        "rows": rows,
        "labels": _labels(explanation.data, rows),
        "columns": names,
        "column_of": _column_of(explanation.feature_names, names),
        "cells": [[_text(column[row]) for column in columns] for row in rows],
        "weights": [[str(part.weight_labels[row]) for part in outputs] for row in rows],
        "stopped": _counted(explanation.stopped),
        "utility": explanation.utility,
        "facts": _facts(explanation),
        "notes": [*explanation.notes, *getattr(evaluation, "notes", ())],
        "held_out": _held_out(explanation.game_info),
        "summaries": [_summary(part) for part in outputs],
        "evaluation": None if evaluation is None else _evaluation(evaluation),
        "arrays": places,
    }
    return head, numbers


def _by_output(explanation: Explanation) -> list[Explanation]:
    """One explanation without the axis k for each output."""
    if not explanation.has_outputs:
        return [explanation]
    return [explanation[..., output] for output in range(explanation.values.shape[2])]


def _explored_arrays(part: Explanation, rows: list[int]) -> dict[str, Any]:
    """The arrays that the explorer needs, (r, …) each."""
    arrays: dict[str, Any] = {
        "phi": part.values,
        "shapley": part.shapley,
        "order": part.orders,
        "curve": part.curves,
        "shapley_curve": part.reference_curves["shapley"],
        "base": part.base_values,
        "prediction": part.predictions,
        "gap": part.efficiency_gap,
    }
    if part.standard_errors is not None:
        arrays["error"] = part.standard_errors
    if part.contributions is not None:
        arrays["weight"] = part.weights
    arrays = {name: array[rows] for name, array in arrays.items()}
    if part.contributions is not None:  # (r, t, sizes) of the t leading features; the whole table may be large
        arrays["sizes"] = np.stack([part.contributions[row][:, part.orders[row, :TOP_SIZES]].T for row in rows])
    return arrays


def _labels(data: Any, rows: list[int]) -> list[str] | None:
    """What the rows of a pandas frame are called, unless they are just counted."""
    if not isinstance(data, pd.DataFrame) or data.index.equals(pd.RangeIndex(len(data))):
        return None
    return [_text(data.index[row]) for row in rows]


def _explored(explanation: Explanation, columns: Sequence[Any]) -> list[int]:
    """Positions of the rows to explore: all, or as many as the size allows, evenly spread."""
    n, d = explanation.values.shape[:2]
    sizes, sampled = explanation.family.d, explanation.standard_errors is not None
    kept = 0 if explanation.contributions is None else min(TOP_SIZES, d) + 1
    floats = (3 + sampled) * d + 2 * (sizes + 1) + kept * sizes + 3
    outputs = explanation.values.shape[2] if explanation.has_outputs else 1
    some = np.unique(np.linspace(0, n - 1, 50).astype(np.intp)).tolist()
    text = sum(len(_text(column[row])) + 4 for column in columns for row in some) / len(some)
    room = max(1, int(EXPLORED_BYTES / (4 * floats * outputs + text)))
    return list(range(n)) if n <= room else np.linspace(0, n - 1, room).astype(np.intp).tolist()


def _joined(arrays: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """All arrays one after the other, and for each where it starts and how much belongs to one row and output."""
    places, parts, start = {}, [], 0
    for name, array in arrays.items():
        short = _rounded(array)
        places[name] = [start, int(np.prod(short.shape[2:]))]
        parts.append(short.tobytes())
        start += short.size
    return places, b"".join(parts)


def _rounded(array: Any) -> Any:
    """Little-endian float32 with a short mantissa, five digits right: the zeros compress well."""
    cut = 23 - MANTISSA_BITS
    bits = np.ascontiguousarray(array, dtype="<f4").view("<u4")
    return (bits + np.uint32(1 << (cut - 1))) & np.uint32((0xFFFFFFFF << cut) & 0xFFFFFFFF)


def _columns(explanation: Explanation) -> tuple[list[str], list[Any]]:
    """Names and columns of the data; none where there are no data, or rows that are not flat."""
    data = explanation.data
    if data is None or len(data.shape) != 2:
        return [], []
    if is_polars(data):
        return list(data.columns), data.get_columns()
    if isinstance(data, pd.DataFrame):
        return [_text(name) for name in data.columns], [data.iloc[:, c].array for c in range(data.shape[1])]
    alike = data.shape[1] == len(explanation.feature_names)
    return list(explanation.feature_names) if alike else [f"x{c}" for c in range(data.shape[1])], list(data.T)


def _column_of(features: Sequence[str], columns: list[str]) -> list[int]:
    """The column that a feature is; −1 for a group of several."""
    if len(columns) == len(features):
        return list(range(len(features)))
    return [columns.index(name) if name in columns else -1 for name in features]


def _text(value: Any) -> str:
    """A value as people read it."""
    if value is None or (np.ndim(value) == 0 and pd.isna(value)):
        return "missing"
    if isinstance(value, (float, np.floating)):
        return f"{value:.6g}"
    text = str(value)
    return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…"


def _counted(reasons: Sequence[str]) -> list[list[Any]]:
    """Each reason and its number of rows, the most frequent first."""
    counts = pd.Series(reasons, dtype=object).value_counts()
    return [[str(reason), int(count)] for reason, count in counts.items()]


def _facts(explanation: Explanation) -> list[list[str]]:
    """What was explained and how, as pairs of a name and a text."""
    n, d = explanation.values.shape[:2]
    evaluations = explanation.n_evaluations
    least, most = int(evaluations.min()), int(evaluations.max())
    spread = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    selected = d < explanation.family.d
    facts = {
        "rows": f"{n:,}",
        "features": f"{d:,} of {explanation.family.d:,}" if selected else f"{d:,}",
        "outputs": f"{explanation.values.shape[2]:,}" if explanation.has_outputs else "1",
        "game": _fact(explanation.game_info.get("game", "given")),
        "evaluations for a row": spread if most else "none: read off exactly",
        "utility": explanation.utility,
        "selection": "one weight for all rows" if explanation.select == "shared" else "a weight for each row",
        "weights in the family": f"{len(explanation.family):,}",
    }
    told = {_word(key): _fact(value) for key, value in explanation.game_info.items() if _is_fact(value)}
    return [[name, text] for name, text in (facts | told).items()]


def _word(key: Any) -> str:
    return WORDS.get(key, str(key).replace("_", " "))


def _is_fact(value: Any) -> bool:
    return isinstance(value, (str, bool, int, float, np.bool_, np.integer, np.floating))


def _fact(value: Any) -> str:
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, (int, np.integer)) and not isinstance(value, bool) else str(value)


def _held_out(info: Mapping[str, Any]) -> dict[str, Any] | None:
    """The held-out squared error by size, where the game was learned."""
    errors = info.get("held_out_error_by_size")
    if errors is None:
        return None
    return {"errors": _numbers(errors), "variance": _numbers(info.get("variance", np.nan))}


def _summary(part: Explanation) -> dict[str, Any]:
    """One output, over all rows."""
    curves = {"WeightedSHAP": part.curves, "Shapley": part.reference_curves["shapley"]}
    curves |= {name: part.reference_curves[name] for name in ("first", "last")}
    return {"importance": _importance(part), "weights": _weights(part), "own": _judged(curves)}


def _importance(part: Explanation) -> dict[str, Any]:
    chosen, reference = np.abs(part.values).mean(axis=0), np.abs(part.shapley).mean(axis=0)
    top = np.argsort(-chosen, kind="stable")[:TOP_FEATURES]
    return {"features": top.tolist(), "chosen": _numbers(chosen[top]), "shapley": _numbers(reference[top])}


def _weights(part: Explanation) -> dict[str, Any]:
    """The share of rows that chose each weight, from small coalitions to large; of many weights only the chosen."""
    family = part.family
    share = np.array([(part.weight_labels == label).mean() for label in family.labels])
    uniform = family.index(shapley(family.d).vectors[0])
    worth = np.argsort(-share, kind="stable")[:MOST_WEIGHTS]
    shown = worth[(share[worth] > 0) | (len(family) <= MOST_WEIGHTS)]
    if uniform is not None and uniform not in shown:
        shown = np.append(shown, uniform)
    small_first = shown[np.argsort((family.vectors[shown] @ np.arange(family.d)).round(9), kind="stable")].tolist()
    return {
        "names": [family.labels[index] for index in small_first],
        "share": _numbers(share[small_first]),
        "uniform": small_first.index(uniform) if uniform is not None else -1,
    }


def _judged(curves: Mapping[str, FloatArray]) -> dict[str, Any]:
    """Mean curves and areas with half-widths of 95 % intervals, and the paired comparison with Shapley."""
    areas = {name: area(curve) for name, curve in curves.items()}
    judged: dict[str, Any] = {
        "rows": len(next(iter(curves.values()))),
        "areas": [[name, *map(_numbers, mean_interval(values))] for name, values in areas.items()],
        "curves": [[name, *map(_numbers, mean_interval(curves[name]))] for name in DRAWN if name in curves],
        "change": None,
    }
    if {"WeightedSHAP", "Shapley"} <= set(areas):
        judged["change"] = _change(areas["WeightedSHAP"], areas["Shapley"])
    return judged


def _change(chosen: FloatArray, reference: FloatArray) -> dict[str, Any]:
    """How much smaller the chosen areas are than the reference's, paired by row, relative to its mean."""
    difference = chosen - reference
    mean, margin = mean_interval(difference)
    scale = reference.mean()
    tied = np.abs(difference) <= 1e-9 * np.abs(reference)
    return {
        "mean": _numbers(mean / scale) if scale > 0 else None,
        "margin": _numbers(margin / scale) if scale > 0 else None,
        "better": float(((difference < 0) & ~tied).mean()),
        "equal": float(tied.mean()),
    }


def _evaluation(evaluation: Any) -> dict[str, Any]:
    """Each judge's table and curves; "independent" is the one that counts."""
    judges = {}
    for judge in evaluation.judges:
        curves = evaluation.curves(judge)
        judges[judge] = _judged(curves) | {
            "mean": _numbers(evaluation.mean(judge)),
            "margin": _numbers(evaluation.margin(judge)),
        }
    return {
        "methods": list(evaluation.methods),
        "metrics": list(evaluation.metrics),
        "larger": [metric in LARGER_IS_BETTER for metric in evaluation.metrics],
        "judges": judges,
    }


def _numbers(values: Any) -> Any:
    """Six digits, and None where there is no number: JSON knows no NaN."""
    if np.ndim(values):
        return [_numbers(value) for value in np.asarray(values)]
    return float(f"{values:.6g}") if np.isfinite(values) else None
