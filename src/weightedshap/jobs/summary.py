"""What is known of all rows without holding them: sums that parts tell and a run adds up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from weightedshap.explanation import Explanation

Facts = dict[str, Any]
"""Counts and sums over rows, as JSON holds them."""


def facts_of(found: Iterable[Explanation], skipped: int) -> Facts:
    """Of the explanations of one part."""
    parts = list(found)
    sums = [np.abs(one.values).sum(axis=0).reshape(len(one.feature_names), -1).sum(axis=1) for one in parts]
    areas = {"area": [one.curves for one in parts], "shapley_area": [one.reference_curves["shapley"] for one in parts]}
    return {
        "rows": sum(map(len, parts)),
        "skipped": skipped,
        "features": list(parts[0].feature_names) if parts else [],
        "phi": np.sum(sums, axis=0).tolist() if parts else [],
        **{name: float(sum(curve[:, 1:].sum() for curve in curves)) for name, curves in areas.items()},
        "weights": dict(Counter(label for one in parts for label in one.weight_labels.ravel().tolist())),
    }


def summed(facts: Iterable[Mapping[str, Any]]) -> Facts:
    """Of all parts, in any order: the sums are exact, and so the same."""
    told = [one for one in facts if one["rows"] or one["skipped"]]
    with_rows = [one for one in told if one["rows"]]
    weights: Counter[str] = Counter()
    for one in with_rows:
        weights.update(one["weights"])
    rows = sum(one["rows"] for one in with_rows)
    outputs = sum(weights.values()) / rows if rows else 1
    names = with_rows[0]["features"] if with_rows else []
    means = [math.fsum(one["phi"][i] for one in with_rows) / (rows * outputs) for i in range(len(names))]
    return {
        "rows": rows,
        "skipped": sum(one["skipped"] for one in told),
        "mean_absolute_phi": dict(sorted(zip(names, means, strict=True), key=lambda pair: (-pair[1], pair[0]))),
        "weights": dict(sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))),
        **{
            f"mean_{name}": math.fsum(one[name] for one in with_rows) / (rows * outputs) if rows else None
            for name in ("area", "shapley_area")
        },
    }


def in_words(summary: Mapping[str, Any], top: int = 10) -> list[str]:
    """The lines that the command prints and the report notes."""
    phi, weights, total = summary["mean_absolute_phi"], summary["weights"], sum(summary["weights"].values())
    skipped = f", {summary['skipped']:,} skipped" if summary["skipped"] else ""
    lines = [f"{summary['rows']:,} rows explained{skipped}"]
    if not total:
        return lines
    shown = ", ".join(f"{name} {mean:.4g}" for name, mean in list(phi.items())[:top])
    chosen = ", ".join(f"{label} {count / total:.0%}" for label, count in list(weights.items())[:5])
    areas = f"{summary['mean_area']:.4g} (Shapley {summary['mean_shapley_area']:.4g})"
    lines += [f"mean |φ*|: {shown}", f"weights chosen: {chosen}"]
    return [*lines, f"area under the recovery-error curve, on the judge that chose: {areas}"]
