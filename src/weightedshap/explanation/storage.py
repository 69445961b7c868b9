"""Storage: the file of an Explanation, which `Explanation.save` writes and `load` reads.

It contains every field; the family is stored as labels and vectors, and each stop reason only once.
The format is that of `weightedshap.files.archive`.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from weightedshap._checks import IntArray
from weightedshap.explanation.slicing import AXES
from weightedshap.files import archive
from weightedshap.inputs import is_frame
from weightedshap.weights import REFERENCES, WeightFamily

VERSION = 2
OPTIONAL = ("contributions", "standard_errors", "shapley_errors", "replicates")
"""Arrays that may be None."""

KEYS = {"reference_curves": set(REFERENCES), "endpoint_gaps": {"empty", "full"}}
"""The keys of fields that are mappings of arrays."""

FINITE = ("values", "weights", "shapley", "predictions", "judge_predictions", "base_values")
NON_NEGATIVE = ("weights", "n_evaluations")
DTYPE_KINDS = {"weight_labels": "U", "game_labels": "U", "orders": "i", "n_evaluations": "i"}
"""The dtype kinds of the arrays that are not floats."""


def save(fields: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the fields of an Explanation to one file."""
    data = fields["data"]
    if not (data is None or isinstance(data, np.ndarray) or is_frame(data)):
        raise TypeError(f"`data` is a {type(data).__name__}; only arrays and frames can be saved.")
    code_of_reason = {reason: code for code, reason in enumerate(dict.fromkeys(fields["stopped"]))}
    codes = np.array([code_of_reason[reason] for reason in fields["stopped"]], dtype=np.intp)
    stopped = {"reasons": tuple(code_of_reason), "codes": codes}
    family = {"labels": fields["family"].labels, "vectors": fields["family"].vectors}
    archive.write(path, "explanation", VERSION, {**fields, "family": family, "stopped": stopped})


def load(path: str | os.PathLike[str], names: Iterable[str]) -> dict[str, Any]:
    """Read the fields `names` of an Explanation; raise a ValueError if they are inconsistent."""
    content = archive.read(path, "explanation", VERSION)
    with archive.report_damage(path):
        fields = {name: content[name] for name in names}
        stopped = fields["stopped"]
        fields["stopped"] = tuple(stopped["reasons"][code] for code in stopped["codes"])
        fields["family"] = WeightFamily(**fields["family"])
        inconsistent = _inconsistent_fields(fields)
    if inconsistent:
        raise archive.inconsistent_fields_error(path, inconsistent)
    return fields


def _inconsistent_fields(fields: Mapping[str, Any]) -> list[str]:
    """Return the names of fields whose type, shape or content is inconsistent with the others."""
    values = fields["values"]
    family = fields["family"]
    output_names = fields["output_names"]
    n, d = values.shape[:2]
    sizes = {"row": n, "feature": d, "size": family.d, "step": family.d + 1, "weight": len(family)}
    if values.ndim == 3:
        sizes["output"] = len(output_names)
    if fields["replicates"] is not None:
        sizes["chain"] = fields["replicates"].shape[1]
    names = [name for name in AXES if not _is_array_of(name, fields[name], sizes)]

    lengths = {
        "feature_names": d,
        "stopped": n,
        "output_names": len(output_names),
        "notes": len(fields["notes"]),
    }
    names += [name for name, length in lengths.items() if not _are_texts(fields[name], length)]
    if not names and not _are_rankings(fields["orders"]):
        names.append("orders")
    if fields["data"] is not None and len(fields["data"]) != n:
        names.append("data")
    if not names:
        names += [name for name in FINITE if not np.isfinite(fields[name]).all()]
        names += [name for name in NON_NEGATIVE if (fields[name] < 0).any()]
    types = {"utility": str, "select": str, "game_info": dict, "judge_info": dict}
    names += [name for name, type_ in types.items() if not isinstance(fields[name], type_)]
    return names


def _is_array_of(name: str, value: object, sizes: Mapping[str, int]) -> bool:
    """Return whether the value of the field `name` is an array of its dtype and shape.

    `sizes` are the lengths of the axes. A mapping is checked array by array, and None is accepted
    for an optional field.
    """
    if isinstance(value, dict):
        return set(value) == KEYS.get(name) and all(
            _is_array_of(name, array, sizes) for array in value.values()
        )
    if not isinstance(value, np.ndarray):
        return value is None and name in OPTIONAL
    shape = tuple(sizes[axis] for axis in AXES[name] if axis in sizes)
    return (value.dtype.kind, value.shape) == (DTYPE_KINDS.get(name, "f"), shape)


def _are_rankings(orders: IntArray) -> bool:
    """Return whether each of the orders (n, d[, k]) contains every feature exactly once."""
    d = orders.shape[1]
    return bool((np.sort(np.moveaxis(orders, 1, -1)) == np.arange(d)).all())


def _are_texts(value: object, length: int) -> bool:
    """Return whether a value is a tuple of `length` strings."""
    return (
        isinstance(value, tuple)
        and len(value) == length
        and all(isinstance(text, str) for text in value)
    )
