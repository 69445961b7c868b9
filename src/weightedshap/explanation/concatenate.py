"""Concatenation: how the fields of several Explanations are joined into those of one.

`Explanation.concatenate` uses this module.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from weightedshap.explanation.slicing import AXES, identical
from weightedshap.inputs import concat_rows
from weightedshap.method import Source

if TYPE_CHECKING:
    from weightedshap.explanation.result import Explanation

MUST_AGREE = ("feature_names", "output_names", "has_outputs", "utility", "select")
"""Attributes that must be equal in all parts, besides the family."""


def concatenate_fields(parts: Sequence[Explanation]) -> dict[str, Any]:
    """Concatenate explanations; return only the fields that differ from the first explanation."""
    for other in parts[1:]:
        _check_agreement(parts[0], other)
    fields = {name: _concatenate_field(name, parts) for name in AXES}
    fields["stopped"] = tuple(reason for part in parts for reason in part.stopped)
    for name in ("game_info", "judge_info"):
        fields[name] = _common_items([vars(part)[name] for part in parts])

    tables = [part.data for part in parts]
    fields["data"] = None if all(table is None for table in tables) else concat_rows(tables)
    fields["_notes"] = _concatenate_notes(
        parts, fields["game_info"], keeps_delta=fields["contributions"] is not None
    )
    fields["_source"] = Source.concatenate([part._source for part in parts])
    return fields


def _check_agreement(first: Explanation, other: Explanation) -> None:
    """Check that two explanations agree in features, outputs, family, utility and selection."""
    differences = {}
    for name in MUST_AGREE:
        one = getattr(first, name)
        two = getattr(other, name)
        if one != two:
            differences[name] = f": {one!r} and {two!r}"
    if not first.family.equals(other.family):
        differences["family"] = ""
    if differences:
        raise ValueError(
            f"Explanations that differ in {', '.join(differences)} cannot be"
            f" joined{next(iter(differences.values()))}. Explain, reweight or slice them in the"
            " same way first."
        )


def _concatenate_field(name: str, parts: Sequence[Explanation]) -> Any:
    """Concatenate one field of all explanations; None if one of them lacks it or shapes differ."""
    values = [vars(part)[name] for part in parts]
    if isinstance(values[0], Mapping):
        return {key: np.concatenate([value[key] for value in values]) for key in values[0]}
    # A part without sampling has no errors: they are 0 if another part has some.
    if name == "standard_errors" and any(value is not None for value in values):
        values = [
            np.zeros_like(part.values) if value is None else value
            for part, value in zip(parts, values, strict=True)
        ]
    if any(value is None for value in values):
        return None
    # Parts may have different numbers of chains.
    if len({value.shape[1:] for value in values}) > 1:
        return None
    return np.concatenate(values)


def _common_items(infos: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the items (key and value) that are identical in all mappings."""
    first, *others = infos
    # An Ellipsis stands for a missing key, as it is never a value of an info.
    return {
        key: value
        for key, value in first.items()
        if all(identical(value, info.get(key, ...)) for info in others)
    }


def _concatenate_notes(
    parts: Sequence[Explanation], common_info: Mapping[str, Any], keeps_delta: bool
) -> tuple[str, ...]:
    """Return the notes of all explanations, and notes on what is lost in their concatenation."""
    notes = [note for part in parts for note in part._notes]
    differing = {str(key) for part in parts for key in part.game_info if key not in common_info}
    if differing:
        notes.append(f"The parts come from games that differ in {', '.join(sorted(differing))}.")
    if not keeps_delta and any(part.contributions is not None for part in parts):
        notes.append("Δ was not kept because some of the joined parts lack it.")
    select = parts[0].select
    labels = np.concatenate([part.weight_labels for part in parts])
    if select != "per_row" and not (labels == labels[0]).all():
        notes.append(
            f'Each part chose its own shared weight; reweight(select="{select}") chooses one for'
            " all rows."
        )
    return tuple(dict.fromkeys(notes))
