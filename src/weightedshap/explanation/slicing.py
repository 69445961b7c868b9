"""Slicing: which axes every field of an Explanation has, and how a key selects along them.

The table `AXES` describes all arrays. `Explanation`, its files and its concatenation use it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weightedshap._checks import IntArray, Positions, as_array, check_choice
from weightedshap.inputs import Container, container_of, is_frame, take_rows

AXES: Mapping[str, tuple[str, ...]] = {
    "values": ("row", "feature", "output"),
    "shapley": ("row", "feature", "output"),
    "orders": ("row", "feature", "output"),
    "standard_errors": ("row", "feature", "output"),
    "shapley_errors": ("row", "feature", "output"),
    "predictions": ("row", "output"),
    "judge_predictions": ("row", "output"),
    "base_values": ("row", "output"),
    "endpoint_gaps": ("row", "output"),
    "game_labels": ("row", "output"),
    "weight_labels": ("row", "output"),
    "curves": ("row", "step", "output"),
    "reference_curves": ("row", "step", "output"),
    "weights": ("row", "size", "output"),
    "scores": ("row", "weight", "output"),
    "contributions": ("row", "size", "feature", "output"),
    "replicates": ("row", "chain", "size", "feature", "output"),
    "n_evaluations": ("row",),
}
"""The axes of every array; "output" applies only if the explanation has that axis."""


@dataclass(frozen=True)
class Selector:
    """The positions to keep along the axes of rows, features and outputs; None keeps all.

    A single output is an int and loses its axis; rows and features keep theirs.
    """

    rows: IntArray
    features: IntArray | None
    outputs: IntArray | int | None


def parse_key(
    key: object, n: int, features: Sequence[str], outputs: Sequence[str] | None
) -> Selector:
    """Convert the key of ``explanation[key]`` to the positions that it selects on each axis.

    `features` and `outputs` are names; `outputs` is None where there is no axis of outputs.
    """
    axes = ("rows", "features") if outputs is None else ("rows", "features", "outputs")
    parts = _split_key(key, axes)
    rows = parts[0]
    if as_array("rows", rows, None).dtype.kind == "U":
        raise IndexError(
            f"Rows are selected by position. To select a feature, write explanation[:, {rows!r}]."
        )
    row_positions = np.atleast_1d(_positions("row", rows, n))

    feature_positions = _unique_positions("feature", parts[1], features)
    if feature_positions is not None:
        feature_positions = np.atleast_1d(feature_positions)

    output_positions: IntArray | int | None = None
    if outputs is not None:
        output_positions = _unique_positions("output", parts[2], outputs)
        if output_positions is not None and output_positions.ndim == 0:
            output_positions = int(output_positions)
    return Selector(row_positions, feature_positions, output_positions)


def _split_key(key: object, axes: Sequence[str]) -> list[Any]:
    """Split an indexing key into one key for each axis; a missing one becomes ``slice(None)``."""
    parts = list(key) if isinstance(key, tuple) else [key]
    dots = [place for place, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1 or len(parts) - len(dots) > len(axes):
        raise IndexError(
            f"An explanation is sliced as [{', '.join(axes)}]; got {len(parts)} parts."
        )
    gap = dots[0] if dots else len(parts)
    n_missing = len(axes) - len(parts) + len(dots)
    return parts[:gap] + [slice(None)] * n_missing + parts[gap + 1 :]


def _unique_positions(axis: str, key: object, names: Sequence[str]) -> IntArray | None:
    """Return the positions of features or outputs, given by position or name; None for all."""
    if isinstance(key, slice) and key == slice(None):
        return None
    if isinstance(key, str):
        key = names.index(check_choice(axis, key, names))
    elif isinstance(key, (list, tuple)):
        key = [
            names.index(check_choice(axis, name, names)) if isinstance(name, str) else name
            for name in key
        ]
    positions = _positions(axis, key, len(names))
    if positions.size > len(np.unique(positions)):
        raise IndexError(f"Each {axis} can be selected once; got {[names[i] for i in positions]}.")
    return positions


def _positions(axis: str, key: object, n: int) -> IntArray:
    """Turn a position, slice, mask or list of positions into positions 0..n−1.

    A single position becomes an array without an axis.
    """
    array = np.arange(n)[key] if isinstance(key, slice) else as_array(axis, key, None)
    if array.dtype == np.bool_:
        if array.shape != (n,):
            raise IndexError(f"A mask over {n} {axis}s must have shape ({n},); got {array.shape}.")
        array = np.flatnonzero(array)
    if array.shape == (0,):
        raise IndexError(f"Select at least one {axis}.")
    if array.ndim > 1 or not np.issubdtype(array.dtype, np.integer):
        raise IndexError(
            f"Select {axis}s by position, slice, mask or list of positions; got {key!r}."
        )
    outside = array[(array < -n) | (array >= n)]
    if outside.size:
        raise IndexError(f"There is no {axis} {outside[0]}: there are {n}.")
    return np.asarray(array % n, dtype=np.intp)


def slice_fields(fields: Mapping[str, Any], selector: Selector) -> dict[str, Any]:
    """Apply a selector to the fields of an Explanation; return those that change."""
    positions = {"row": selector.rows, "feature": selector.features, "output": selector.outputs}
    sliced = {name: slice_field(fields[name], axes, positions) for name, axes in AXES.items()}
    sliced["stopped"] = tuple(fields["stopped"][row] for row in selector.rows)

    data = fields["data"]
    if data is not None:
        data = take_rows(data, selector.rows)
    sliced["data"] = data

    # The second axis of a ranking is the rank: features are not selected along it, see below.
    orders = slice_field(fields["orders"], ("row", "rank", "output"), positions)
    sliced["orders"] = orders

    features = selector.features
    if features is not None:
        names = fields["feature_names"]
        sliced["feature_names"] = tuple(names[i] for i in features)
        # Rank the selected features among themselves.
        rank_of_feature = np.argsort(orders, axis=1)
        sliced["orders"] = np.argsort(rank_of_feature[:, features], axis=1)
        # Features that are groups of columns keep all columns.
        if data is not None and data.shape[1:] == (len(names),):
            sliced["data"] = container_of(data).select(data, features)

    if selector.outputs is not None:
        outputs = np.atleast_1d(selector.outputs)
        sliced["output_names"] = tuple(fields["output_names"][o] for o in outputs)
    return sliced


def slice_field(
    value: Any, axes: tuple[str, ...], positions: Mapping[str, Positions | None]
) -> Any:
    """Select positions along the axes of one field; return the selected values.

    `positions` maps names of axes to positions; None, or no entry, keeps the whole axis. A single
    output is a view, as Δ may be large.
    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {name: slice_field(array, axes, positions) for name, array in value.items()}
    # From the end: dropping the axis of outputs moves no axis before it.
    for place, axis in reversed(list(enumerate(axes))):
        selected = positions.get(axis)
        if selected is None:
            continue
        if isinstance(selected, int):
            value = value[..., selected]
        else:
            value = np.take(value, selected, axis=place)
    return value


def identical(one: Any, other: Any) -> bool:
    """Return whether two values are equal bit for bit: NaN equals NaN, 0.0 differs from −0.0."""
    kind = _kind_of_value(one)
    if kind != _kind_of_value(other):
        return False
    if kind == "mapping":
        return one.keys() == other.keys() and all(identical(one[key], other[key]) for key in one)
    if kind == "sequence":
        return len(one) == len(other) and all(map(identical, one, other))
    if kind == "float":
        both_nan = bool(np.isnan(one) and np.isnan(other))
        return both_nan or np.float64(one).tobytes() == np.float64(other).tobytes()
    if isinstance(kind, str):
        return bool(one == other)
    return kind.equal(one, other)


def _kind_of_value(value: object) -> str | Container[Any]:
    """Return a string that names the kind of a value, or the `Container` of an array or a frame."""
    if isinstance(value, Mapping):
        return "mapping"
    is_object_array = isinstance(value, np.ndarray) and value.dtype == object
    if is_object_array or isinstance(value, (list, tuple)):
        return "sequence"
    if isinstance(value, np.ndarray) or is_frame(value):
        return container_of(value)
    return "float" if isinstance(value, (float, np.floating)) else "other"
