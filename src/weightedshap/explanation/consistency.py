"""Whether the fields of an Explanation, as a file has them, fit together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from weightedshap.explanation.slicing import AXES, shape_of
from weightedshap.weights import REFERENCES

OPTIONAL = ("contributions", "standard_errors", "replicates")
NAMED = {"reference_curves": set(REFERENCES), "endpoint_gaps": {"empty", "full"}}
KINDS = {"weight_labels": "U", "orders": "i", "n_evaluations": "i"}  # of numpy's dtypes; floats elsewhere


def inconsistencies(fields: Mapping[str, Any]) -> list[str]:
    """Names of fields whose type or shape does not fit the others."""
    values, family, data = fields["values"], fields["family"], fields["data"]
    n, d = values.shape[:2]
    sizes = {"row": n, "feature": d, "size": family.d, "step": family.d + 1, "weight": len(family)}
    if values.ndim == 3:
        sizes["output"] = len(fields["output_names"])
    if fields["replicates"] is not None:
        sizes["chain"] = fields["replicates"].shape[1]
    wrong = [name for name in AXES if not _fits(name, fields[name], sizes)]
    names = {"feature_names": d, "stopped": n, "output_names": sizes.get("output", len(fields["output_names"]))}
    wrong += [name for name, length in names.items() if not _are_names(fields[name], length)]
    if not wrong and not (np.sort(np.moveaxis(fields["orders"], 1, -1)) == np.arange(d)).all():
        wrong.append("orders")
    if data is not None and len(data) != n:
        wrong.append("data")
    texts = isinstance(fields["utility"], str) and isinstance(fields["select"], str)
    if not (texts and isinstance(fields["game_info"], dict) and _are_names(fields["notes"])):
        wrong.append("notes")
    return wrong


def _fits(name: str, value: object, sizes: Mapping[str, int]) -> bool:
    if value is None:
        return name in OPTIONAL
    if isinstance(value, dict):
        return set(value) == NAMED.get(name) and all(_fits(name, array, sizes) for array in value.values())
    if not isinstance(value, np.ndarray):
        return False
    return (value.dtype.kind, value.shape) == (KINDS.get(name, "f"), shape_of(name, sizes))


def _are_names(value: object, length: int | None = None) -> bool:
    if not isinstance(value, tuple) or not all(isinstance(name, str) for name in value):
        return False
    return length is None or len(value) == length
