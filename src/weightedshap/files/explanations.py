"""What a file of an Explanation holds: its fields, the family as labels and vectors, each reason to stop once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from weightedshap.files import archive
from weightedshap.inputs import is_frame
from weightedshap.weights import WeightFamily

VERSION = 1


def save(fields: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write the fields of an Explanation to one file."""
    family, data = fields["family"], fields["data"]
    if not (data is None or isinstance(data, np.ndarray) or is_frame(data)):
        raise TypeError(f"`data` is a {type(data).__name__}; only arrays and frames can be saved.")
    reasons = {reason: code for code, reason in enumerate(dict.fromkeys(fields["stopped"]))}
    codes = np.array([reasons[reason] for reason in fields["stopped"]], dtype=np.intp)
    content = {
        **fields,
        "family": {"labels": family.labels, "vectors": family.vectors},
        "stopped": {"reasons": tuple(reasons), "codes": codes},
    }
    archive.write(path, "explanation", VERSION, content)


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The fields that `save` was given; whether they fit together is for the caller to see."""
    content = archive.read(path, "explanation", VERSION)
    with archive.damage(path):
        family, stopped = content["family"], content["stopped"]
        reasons = tuple(stopped["reasons"][code] for code in stopped["codes"])
        return {**content, "family": WeightFamily(family["labels"], family["vectors"]), "stopped": reasons}
