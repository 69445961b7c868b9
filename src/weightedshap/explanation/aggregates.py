"""What is known of all rows without holding them: sums over rows, which parts of a run tell and the
report reads."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from weightedshap._checks import FloatArray
from weightedshap._lazy import special
from weightedshap.curves import area
from weightedshap.explanation import Explanation

Sums = dict[str, Any]  # counts and sums over rows, as JSON holds them
Curves = Mapping[str, FloatArray]  # (n, d + 1) recovery curves by method


def own_curves(one: Explanation) -> dict[str, FloatArray]:
    """Recovery curves of WeightedSHAP, Shapley, first and last."""
    references = one.reference_curves.items()
    return {"WeightedSHAP": one.curves} | {
        ("Shapley" if n == "shapley" else n): c for n, c in references
    }


def of_rows(explanation: Explanation) -> Sums:
    """How many rows, and for each output the sums of |φ*| and |Shapley|, the weights chosen, and
    `of_curves`."""
    outputs = (
        [explanation[..., o] for o in range(explanation.values.shape[2])]
        if explanation.has_outputs
        else None
    )
    return {
        "rows": len(explanation),
        "outputs": [of_output(one) for one in outputs or [explanation]],
    }


def of_output(one: Explanation) -> Sums:
    """The sums of one output, without its axis."""
    sizes = {
        name: np.abs(values).sum(axis=0).tolist()
        for name, values in (("phi", one.values), ("shapley", one.shapley))
    }
    return sizes | {
        "weights": dict(Counter(one.weight_labels.tolist())),
        "own": of_curves(own_curves(one)),
    }


def of_curves(curves: Curves, leading: str = "WeightedSHAP") -> Sums:
    """Of curves and areas the sums and sums of squares; and of the leading area minus Shapley's,
    with who is better."""
    areas = {name: area(curve) for name, curve in curves.items()}
    told: Sums = {"rows": len(next(iter(curves.values())))}
    told |= {"curves": {name: _moments(curve) for name, curve in curves.items()}}
    told |= {"areas": {name: _moments(values) for name, values in areas.items()}}
    if leading not in areas or "Shapley" not in areas:
        return told
    difference = areas[leading] - areas["Shapley"]
    tied = np.abs(difference) <= 1e-9 * np.abs(areas["Shapley"])
    counts = {"better": int(((difference < 0) & ~tied).sum()), "equal": int(tied.sum())}
    return told | {"change": _moments(difference), **counts}


def _moments(values: FloatArray) -> list[Any]:
    return [values.sum(axis=0).tolist(), (values**2).sum(axis=0).tolist()]


def plus(one: Any, other: Any) -> Any:
    """Both added up, number by number; names are the same in both."""
    if not one or not other:
        return one or other
    if isinstance(one, dict):
        return {name: plus(one.get(name), other.get(name)) for name in {**one, **other}}
    if isinstance(one, list):
        return [plus(*pair) for pair in zip(one, other, strict=True)]
    return one if isinstance(one, str) else one + other


def interval(moments: list[Any], n: int) -> tuple[FloatArray, FloatArray]:
    """The mean over n rows, and half the width of its 95 % interval (Student's t), NaN for a single
    row."""
    first, second = map(np.asarray, moments)
    if n < 2:
        return first / n, np.full_like(first, np.nan, dtype=np.float64)
    variance = np.maximum(second - first**2 / n, 0) / (n - 1)
    return first / n, np.asarray(special.stdtrit(n - 1, 0.975) * np.sqrt(variance / n))
