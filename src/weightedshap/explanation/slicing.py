"""Which axes each field of an Explanation has, and cutting along them: one table keeps every array
in step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weightedshap._checks import IntArray, Positions, as_numbers_of, one_of
from weightedshap.inputs import Kind, is_frame, kind_of, part_of

AXES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("values", "shapley", "orders", "standard_errors", "shapley_errors"),
        ("row", "feature", "output"),
    ),
    **dict.fromkeys(
        ("predictions", "judge_predictions", "base_values", "endpoint_gaps"), ("row", "output")
    ),
    **dict.fromkeys(("game_labels", "weight_labels"), ("row", "output")),
    **dict.fromkeys(("curves", "reference_curves"), ("row", "step", "output")),
    "weights": ("row", "size", "output"),
    "scores": ("row", "weight", "output"),
    "contributions": ("row", "size", "feature", "output"),
    "replicates": ("row", "chain", "size", "feature", "output"),
    "n_evaluations": ("row",),
}
"""The axes of every array; "output" is there only if the explanation has that axis."""


@dataclass(frozen=True)
class Cut:
    """Positions to keep, None for all; a single output (an int) takes its axis away, rows and
    features keep theirs."""

    rows: IntArray
    features: IntArray | None
    outputs: IntArray | int | None


def as_cut(key: object, n: int, features: Sequence[str], outputs: Sequence[str] | None) -> Cut:
    """What ``explanation[key]`` keeps. `outputs` is None where the axis is not there."""
    axes = ("rows", "features", "outputs")[: 2 if outputs is None else 3]
    rows, chosen, kept = (*_by_axis(key, axes), slice(None))[:3]
    if as_numbers_of("rows", rows, None).dtype.kind == "U":
        raise IndexError(
            f"Rows are selected by position. To select a feature, write explanation[:, {rows!r}]."
        )
    places = np.atleast_1d(_positions("row", rows, n))
    columns = _distinct("feature", chosen, features)
    found = _distinct("output", kept, outputs or ())
    columns = None if columns is None else np.atleast_1d(columns)
    return Cut(places, columns, found if found is None or found.ndim else int(found))


def _by_axis(key: object, axes: Sequence[str]) -> list[Any]:
    """What a key says about each axis; all of those that it leaves out or stands for by dots."""
    said = list(key) if isinstance(key, tuple) else [key]
    dots = [place for place, wanted in enumerate(said) if wanted is Ellipsis]
    if len(dots) > 1 or len(said) - len(dots) > len(axes):
        raise IndexError(f"An explanation is sliced as [{', '.join(axes)}]; got {len(said)} parts.")
    at = dots[0] if dots else len(said)
    return said[:at] + [slice(None)] * (len(axes) - len(said) + len(dots)) + said[at + 1 :]


def _distinct(axis: str, wanted: object, names: Sequence[str]) -> IntArray | None:
    """Positions of features or outputs, given by position or by name, each once; None for all of
    them."""
    if isinstance(wanted, slice) and wanted == slice(None):
        return None
    if isinstance(wanted, str):
        wanted = names.index(one_of(axis, wanted, names))
    elif isinstance(wanted, (list, tuple)):
        wanted = [
            names.index(one_of(axis, name, names)) if isinstance(name, str) else name
            for name in wanted
        ]
    found = _positions(axis, wanted, len(names))
    if found.size > len(np.unique(found)):
        raise IndexError(f"Each {axis} can be selected once; got {[names[i] for i in found]}.")
    return found


def _positions(axis: str, wanted: object, n: int) -> IntArray:
    """A position, slice, mask or list of positions as positions 0..n−1; a single one has no
    axis."""
    array = np.arange(n)[wanted] if isinstance(wanted, slice) else as_numbers_of(axis, wanted, None)
    if array.dtype == np.bool_:
        if array.shape != (n,):
            raise IndexError(f"A mask over {n} {axis}s must have shape ({n},); got {array.shape}.")
        array = np.flatnonzero(array)
    if array.shape == (0,):
        raise IndexError(f"Select at least one {axis}.")
    if array.ndim > 1 or not np.issubdtype(array.dtype, np.integer):
        raise IndexError(
            f"Select {axis}s by position, slice, mask or list of positions; got {wanted!r}."
        )
    if (outside := array[(array < -n) | (array >= n)]).size:
        raise IndexError(f"There is no {axis} {outside[0]}: there are {n}.")
    return np.asarray(array % n, dtype=np.intp)


def cut(fields: Mapping[str, Any], keep: Cut) -> dict[str, Any]:
    """The fields of an Explanation that a cut changes."""
    kept = {"row": keep.rows, "feature": keep.features, "output": keep.outputs}
    made = {name: cut_field(fields[name], axes, kept) for name, axes in AXES.items()}
    made["orders"] = cut_field(fields["orders"], ("row", "rank", "output"), kept)
    made["data"] = None if fields["data"] is None else part_of(fields["data"], keep.rows)
    made["stopped"] = tuple(fields["stopped"][row] for row in keep.rows)
    if keep.features is not None:
        ranks = np.argsort(made["orders"], axis=1)
        # Kept features, ranked among themselves.
        made["orders"] = np.argsort(ranks[:, keep.features], axis=1)
        made["feature_names"] = tuple(fields["feature_names"][i] for i in keep.features)
        # Else groups.
        if made["data"] is not None and made["data"].shape[1:] == (len(fields["feature_names"]),):
            made["data"] = kind_of(made["data"]).select(made["data"], keep.features)
    if keep.outputs is not None:
        made["output_names"] = tuple(fields["output_names"][o] for o in np.atleast_1d(keep.outputs))
    return made


def cut_field(value: Any, axes: tuple[str, ...], kept: Mapping[str, Positions | None]) -> Any:
    """A field at the positions kept of its axes; a single output is a view, as Δ may be large."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {name: cut_field(array, axes, kept) for name, array in value.items()}
    for place, axis in reversed(list(enumerate(axes))):
        if (positions := kept.get(axis)) is not None:
            value = (
                value[..., positions]
                if isinstance(positions, int)
                else np.take(value, positions, axis=place)
            )
    return value


def same(one: Any, other: Any) -> bool:
    """Equal to the bit: NaN equals NaN, and 0.0 differs from −0.0."""
    if (form := _form(one)) != _form(other):
        return False
    if form == "mapping":
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if form == "sequence":
        return len(one) == len(other) and all(map(same, one, other))
    if form == "float":
        return (
            bool(np.isnan(one) and np.isnan(other))
            or np.float64(one).tobytes() == np.float64(other).tobytes()
        )
    return bool(one == other) if isinstance(form, str) else form.equal(one, other)


def _form(value: object) -> str | Kind[Any]:
    """How a value is compared; a table by its kind."""
    if isinstance(value, Mapping):
        return "mapping"
    if isinstance(value, (list, tuple)) or (
        isinstance(value, np.ndarray) and value.dtype == object
    ):
        return "sequence"
    if isinstance(value, np.ndarray) or is_frame(value):
        return kind_of(value)
    return "float" if isinstance(value, (float, np.floating)) else "other"
