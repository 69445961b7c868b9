"""What a file of an Explanation holds, and whether the fields of a file fit together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weightedshap.explanation import slicing as axes
from weightedshap.files import archive as files
from weightedshap.inputs import is_frame
from weightedshap.selection import REFERENCES
from weightedshap.weights import WeightFamily

__all__ = ["load", "save"]

VERSION = 1


def save(explanation: Any, names: Sequence[str], path: str | os.PathLike[str]) -> None:
    """Write the fields `names` to one file."""
    content = {name: getattr(explanation, name) for name in names}
    content["family"] = {"labels": explanation.family.labels, "vectors": explanation.family.vectors}
    reasons = {reason: code for code, reason in enumerate(dict.fromkeys(explanation.stopped))}
    codes = np.array([reasons[reason] for reason in explanation.stopped], dtype=np.intp)
    content["stopped"] = {"reasons": tuple(reasons), "codes": codes}
    data = explanation.data
    if not (data is None or isinstance(data, np.ndarray) or is_frame(data)):
        raise TypeError(f"`data` is a {type(data).__name__}; only arrays and frames can be saved.")
    files.write(path, "explanation", VERSION, content)


def load(cls: Any, names: Sequence[str], path: str | os.PathLike[str]) -> Any:
    """An Explanation (`cls`) made of the fields `names` of a file, after looking at every one."""
    content = files.read(path, "explanation", VERSION)
    try:
        family, stopped = content["family"], content["stopped"]
        content = {name: content[name] for name in names}
        content["family"] = WeightFamily(family["labels"], family["vectors"])
        content["stopped"] = tuple(stopped["reasons"][code] for code in stopped["codes"])
        explanation = cls(**content)
        wrong = _inconsistencies(explanation)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise files.UnreadableFile(f"{os.fspath(path)!r} cannot be loaded: it is damaged ({error!r}).") from error
    if wrong:
        raise files.UnreadableFile(f"{os.fspath(path)!r} cannot be loaded: {', '.join(wrong)} do not fit together.")
    return explanation


def _inconsistencies(explanation: Any) -> list[str]:
    """Fields whose type or shape does not fit the others."""
    n, d = explanation.values.shape[:2]
    sizes = {"row": n, "feature": d, "size": explanation.family.d, "step": explanation.family.d + 1}
    sizes |= {"weight": len(explanation.family)}
    if explanation.has_outputs:
        sizes["output"] = len(explanation.output_names)
    if explanation.replicates is not None:
        sizes["chain"] = explanation.replicates.shape[1]
    wrong = [name for name in axes.AXES if not _fits(name, getattr(explanation, name), sizes)]
    names = {"feature_names": d, "stopped": n, "output_names": sizes.get("output", len(explanation.output_names))}
    wrong += [name for name, length in names.items() if not _are_names(getattr(explanation, name), length)]
    if not wrong and not (np.sort(np.moveaxis(explanation.orders, 1, -1)) == np.arange(d)).all():
        wrong.append("orders")
    if explanation.data is not None and len(explanation.data) != n:
        wrong.append("data")
    texts = isinstance(explanation.utility, str) and isinstance(explanation.select, str)
    if not (texts and isinstance(explanation.game_info, dict) and _are_names(explanation.notes)):
        wrong.append("notes")
    return wrong


def _fits(name: str, value: Any, sizes: Mapping[str, int]) -> bool:
    if value is None:
        return name in ("contributions", "standard_errors", "replicates")
    if isinstance(value, dict):
        known = {"reference_curves": set(REFERENCES), "endpoint_gaps": {"empty", "full"}}
        return set(value) == known.get(name) and all(_fits(name, array, sizes) for array in value.values())
    kind = {"weight_labels": "U", "orders": "i", "n_evaluations": "i"}.get(name, "f")
    return isinstance(value, np.ndarray) and value.dtype.kind == kind and value.shape == axes.shape_of(name, sizes)


def _are_names(value: Any, length: int | None = None) -> bool:
    right = length is None or (isinstance(value, tuple) and len(value) == length)
    return right and isinstance(value, tuple) and all(isinstance(name, str) for name in value)
