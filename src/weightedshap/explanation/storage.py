"""What a file of an Explanation holds: its fields, the family as labels and vectors, each reason to
stop once."""

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from weightedshap.explanation.slicing import AXES
from weightedshap.files import archive
from weightedshap.inputs import is_frame
from weightedshap.weights import REFERENCES, WeightFamily

VERSION = 2
OPTIONAL = ("contributions", "standard_errors", "shapley_errors", "replicates")
NAMED = {"reference_curves": set(REFERENCES), "endpoint_gaps": {"empty", "full"}}
FINITE = ("values", "weights", "shapley", "predictions", "judge_predictions", "base_values")
# Of dtypes; else floats.
KINDS = {
    "weight_labels": "U",
    "game_labels": "U",
    "orders": "i",
    "n_evaluations": "i",
}


def save(fields: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the fields of an Explanation to one file."""
    family = fields["family"]
    data = fields["data"]
    if not (data is None or isinstance(data, np.ndarray) or is_frame(data)):
        raise TypeError(f"`data` is a {type(data).__name__}; only arrays and frames can be saved.")
    reasons = {reason: code for code, reason in enumerate(dict.fromkeys(fields["stopped"]))}
    codes = np.array([reasons[reason] for reason in fields["stopped"]], dtype=np.intp)
    stopped = {"reasons": tuple(reasons), "codes": codes}
    family = {"labels": family.labels, "vectors": family.vectors}
    archive.write(path, "explanation", VERSION, {**fields, "family": family, "stopped": stopped})


def load(path: str | os.PathLike[str], names: Iterable[str]) -> dict[str, Any]:
    """The fields of these names that `save` was given; a ValueError if they do not fit together."""
    content = archive.read(path, "explanation", VERSION)
    with archive.damage(path):
        stopped = content["stopped"]
        content["stopped"] = tuple(stopped["reasons"][code] for code in stopped["codes"])
        content["family"] = WeightFamily(**content["family"])
        # The first version did not tell apart: the game that explained also judged.
        if "judge_info" not in content:
            f_x = content["predictions"]
            info = content["game_info"]
            sampled = content["standard_errors"] is not None
            content |= {"judge_info": info, "judge_predictions": f_x}
            content["game_labels"] = np.full(f_x.shape, info.get("game", "given"))
            content["shapley_errors"] = (
                np.full_like(content["shapley"], np.nan) if sampled else None
            )
        fields = {name: content[name] for name in names}
        wrong = _unfitting(fields)
    if wrong:
        raise archive.unfitting(path, wrong)
    return fields


def _unfitting(fields: Mapping[str, Any]) -> list[str]:
    """Names of fields whose type or shape does not fit the others."""
    values, family, data, outputs = (
        fields[name] for name in ("values", "family", "data", "output_names")
    )
    n, d = values.shape[:2]
    sizes = {"row": n, "feature": d, "size": family.d, "step": family.d + 1, "weight": len(family)}
    if values.ndim == 3:
        sizes["output"] = len(outputs)
    if fields["replicates"] is not None:
        sizes["chain"] = fields["replicates"].shape[1]
    wrong = [name for name in AXES if not _fits(name, fields[name], sizes)]
    lengths = {
        "feature_names": d,
        "stopped": n,
        "output_names": len(outputs),
        "notes": len(fields["notes"]),
    }
    wrong += [name for name, length in lengths.items() if not _are_names(fields[name], length)]
    if not wrong and not (np.sort(np.moveaxis(fields["orders"], 1, -1)) == np.arange(d)).all():
        wrong.append("orders")
    if data is not None and len(data) != n:
        wrong.append("data")
    if not wrong:
        wrong += [name for name in FINITE if not np.isfinite(fields[name]).all()]
        wrong += [name for name in ("weights", "n_evaluations") if (fields[name] < 0).any()]
    types = {"utility": str, "select": str, "game_info": dict, "judge_info": dict}
    return wrong + [name for name, wanted in types.items() if not isinstance(fields[name], wanted)]


def _fits(name: str, value: object, sizes: Mapping[str, int]) -> bool:
    if isinstance(value, dict):
        return set(value) == NAMED.get(name) and all(
            _fits(name, array, sizes) for array in value.values()
        )
    if not isinstance(value, np.ndarray):
        return value is None and name in OPTIONAL
    shape = tuple(sizes[axis] for axis in AXES[name] if axis in sizes)
    return (value.dtype.kind, value.shape) == (KINDS.get(name, "f"), shape)


def _are_names(value: object, length: int) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == length
        and all(isinstance(name, str) for name in value)
    )
