"""Aggregates: sums over rows that can be merged, for results that do not fit into memory.

A run (`weightedshap.jobs`) stores them in its part files, and `weightedshap.report` reads them.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from weightedshap._checks import FloatArray
from weightedshap._lazy import special
from weightedshap.curves import area
from weightedshap.explanation import Explanation

Sums = dict[str, Any]
"""Counts and sums over rows, as an object that JSON can store."""

Curves = Mapping[str, FloatArray]
"""Recovery curves (n, d + 1) by method."""


def curves_by_method(one: Explanation) -> dict[str, FloatArray]:
    """Return the recovery curves (n, d + 1) of "WeightedSHAP", "Shapley", "first" and "last".

    `one` is an Explanation without the axis of outputs.
    """
    curves = {"WeightedSHAP": one.curves}
    for name, curve in one.reference_curves.items():
        curves["Shapley" if name == "shapley" else name] = curve
    return curves


def aggregate(explanation: Explanation) -> Sums:
    """Return the number of rows and, for each output, the sums that `sum_output` returns."""
    outputs = [explanation]
    if explanation.has_outputs:
        outputs = [explanation[..., o] for o in range(explanation.values.shape[2])]
    return {"rows": len(explanation), "outputs": [sum_output(one) for one in outputs]}


def sum_output(one: Explanation) -> Sums:
    """Return sums over rows for one output: |φ*|, |Shapley|, chosen weights, recovery curves.

    `one` is an Explanation without the axis of outputs.
    """
    return {
        "phi": np.abs(one.values).sum(axis=0).tolist(),
        "shapley": np.abs(one.shapley).sum(axis=0).tolist(),
        "weights": dict(Counter(one.weight_labels.tolist())),
        "own": sum_curves(curves_by_method(one)),
    }


def sum_curves(curves: Curves, leading: str = "WeightedSHAP") -> Sums:
    """Return sums over rows of curves, areas, and the area of `leading` minus that of Shapley.

    `leading` is the name of a method. The rows where it is better than Shapley, or equal,
    are counted too.
    """
    areas = {name: area(curve) for name, curve in curves.items()}
    sums: Sums = {
        "rows": len(next(iter(curves.values()))),
        "curves": {name: _moments(curve) for name, curve in curves.items()},
        "areas": {name: _moments(values) for name, values in areas.items()},
    }
    if leading not in areas or "Shapley" not in areas:
        return sums
    difference = areas[leading] - areas["Shapley"]
    tied = np.abs(difference) <= 1e-9 * np.abs(areas["Shapley"])
    sums["change"] = _moments(difference)
    sums["better"] = int(((difference < 0) & ~tied).sum())
    sums["equal"] = int(tied.sum())
    return sums


def _moments(values: FloatArray) -> list[Any]:
    """Return the sums and the sums of squares of values over the rows, as lists."""
    return [values.sum(axis=0).tolist(), (values**2).sum(axis=0).tolist()]


def merge(one: Any, other: Any) -> Any:
    """Add the sums over two sets of rows, number by number; strings must be equal in both."""
    if not one or not other:
        return one or other
    if isinstance(one, dict):
        return {name: merge(one.get(name), other.get(name)) for name in {**one, **other}}
    if isinstance(one, list):
        return [merge(*pair) for pair in zip(one, other, strict=True)]
    return one if isinstance(one, str) else one + other


def interval(moments: list[Any], n: int) -> tuple[FloatArray, FloatArray]:
    """Return the mean over n rows, and half the width of its 95 % interval (Student's t).

    `moments` are the sums and the sums of squares of `_moments`. The width is NaN for a single row.
    """
    sums, squares = map(np.asarray, moments)
    mean = sums / n
    if n < 2:
        return mean, np.full_like(mean, np.nan, dtype=np.float64)
    variance = np.maximum(squares - sums**2 / n, 0) / (n - 1)
    return mean, np.asarray(special.stdtrit(n - 1, 0.975) * np.sqrt(variance / n))
