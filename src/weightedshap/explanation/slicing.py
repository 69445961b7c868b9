"""Which axes each field of an Explanation has, and cutting and joining along them.

One table says it all, so that a slice, a join and a file read back keep every array in step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from weightedshap.checks import IntArray, UnknownName, require, unknown_sentence
from weightedshap.inputs.columns import is_polars

__all__ = ["AXES", "Cut", "as_cut", "cut", "joined_data", "same", "shape_of"]

AXES: Mapping[str, tuple[str, ...]] = {
    "values": ("row", "feature", "output"),
    "base_values": ("row", "output"),
    "predictions": ("row", "output"),
    "contributions": ("row", "size", "feature", "output"),
    "shapley": ("row", "feature", "output"),
    "weights": ("row", "size", "output"),
    "weight_labels": ("row", "output"),
    "scores": ("row", "weight", "output"),
    "orders": ("row", "feature", "output"),
    "curves": ("row", "step", "output"),
    "reference_curves": ("row", "step", "output"),
    "standard_errors": ("row", "feature", "output"),
    "n_evaluations": ("row",),
    "endpoint_gaps": ("row", "output"),
    "replicates": ("row", "chain", "size", "feature", "output"),
}
"""The axes of every array; "output" is there only if the explanation has that axis."""


@dataclass(frozen=True)
class Cut:
    """Positions to keep on the axes row, feature and output; None keeps all of them.

    A single output (an int) takes the axis away; rows and features keep theirs.
    """

    rows: IntArray
    features: IntArray | None
    outputs: IntArray | int | None

    def of(self, axis: str) -> IntArray | int | None:
        """The positions on one axis."""
        return {"row": self.rows, "feature": self.features, "output": self.outputs}.get(axis)


def as_cut(key: Any, n: int, features: Sequence[str], outputs: Sequence[str] | None) -> Cut:
    """What ``explanation[key]`` keeps. `outputs` is None where the axis is not there."""
    known = ("rows", "features") if outputs is None else ("rows", "features", "outputs")
    parts = list(key) if isinstance(key, tuple) else [key]
    dots = [place for place, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1 or len(parts) - len(dots) > len(known):
        raise IndexError(f"An explanation is sliced as [{', '.join(known)}]; got {len(parts)} parts.")
    fill = [slice(None)] * (len(known) - len(parts) + len(dots))
    parts = parts[: dots[0]] + fill + parts[dots[0] + 1 :] if dots else parts + fill
    if isinstance(parts[0], str) or _holds_names(parts[0]):
        raise IndexError(f"Rows are selected by position. To select a feature, write explanation[:, {parts[0]!r}].")
    rows = np.atleast_1d(_positions("row", parts[0], n))
    if rows.size == 0:
        raise IndexError("Select at least one row.")
    chosen = None if _is_all(parts[1]) else np.atleast_1d(_distinct("feature", parts[1], features))
    if outputs is None or _is_all(parts[2]):
        return Cut(rows, chosen, None)
    kept = _distinct("output", parts[2], outputs)
    return Cut(rows, chosen, int(kept) if kept.ndim == 0 else kept)


def _is_all(part: Any) -> bool:
    return isinstance(part, slice) and part == slice(None)


def _holds_names(part: Any) -> bool:
    return isinstance(part, (list, tuple)) and any(isinstance(name, str) for name in part)


def _distinct(axis: str, part: Any, names: Sequence[str]) -> IntArray:
    """Positions of features or outputs, given by position or by name, each once."""
    if isinstance(part, str):
        part = _named(axis, part, names)
    elif _holds_names(part):
        part = [_named(axis, name, names) if isinstance(name, str) else name for name in part]
    found = _positions(axis, part, len(names))
    if found.ndim and len(np.unique(found)) < len(found):
        raise IndexError(f"Each {axis} can be selected once; got {[names[i] for i in found]}.")
    if found.size == 0:
        raise IndexError(f"Select at least one {axis}.")
    return found


def _named(axis: str, name: str, names: Sequence[str]) -> int:
    if name not in names:
        raise UnknownName(unknown_sentence(axis, name, names))
    return list(names).index(name)


def _positions(axis: str, part: Any, n: int) -> IntArray:
    """A position, slice, mask or list of positions as positions 0..n−1; a single one has no axis."""
    if isinstance(part, slice):
        return np.arange(n)[part]
    array = np.asarray(part)
    if array.dtype == np.bool_:
        if array.shape != (n,):
            raise IndexError(f"A mask over {n} {axis}s must have shape ({n},); got {array.shape}.")
        return np.flatnonzero(array)
    if array.size == 0 and array.ndim == 1:
        return np.empty(0, dtype=np.intp)
    if array.ndim > 1 or not np.issubdtype(array.dtype, np.integer):
        raise IndexError(f"Select {axis}s by position, slice, mask or list of positions; got {part!r}.")
    outside = array[(array < -n) | (array >= n)] if array.ndim else array.reshape(-1)[~((-n <= array) & (array < n))]
    if outside.size:
        raise IndexError(f"There is no {axis} {outside.reshape(-1)[0]}: there are {n}.")
    return np.asarray(array % n, dtype=np.intp)


def cut(fields: Mapping[str, Any], keep: Cut, has_outputs: bool) -> dict[str, Any]:
    """The fields of an Explanation that a cut changes."""
    d = len(fields["feature_names"])
    made = {name: _cut_field(fields[name], axes, keep, has_outputs) for name, axes in AXES.items() if name != "orders"}
    made["orders"] = _cut_orders(fields["orders"], keep, has_outputs)
    made["data"] = _cut_data(fields["data"], keep, d)
    made["stopped"] = tuple(fields["stopped"][row] for row in keep.rows)
    if keep.features is not None:
        made["feature_names"] = tuple(fields["feature_names"][i] for i in keep.features)
    if keep.outputs is not None:
        made["output_names"] = tuple(fields["output_names"][o] for o in np.atleast_1d(keep.outputs))
    return made


def _cut_field(value: Any, axes: tuple[str, ...], keep: Cut, has_outputs: bool) -> Any:
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {name: _cut_field(array, axes, keep, has_outputs) for name, array in value.items()}
    array = np.asarray(value)
    here = axes if has_outputs else tuple(axis for axis in axes if axis != "output")
    for place, axis in reversed(list(enumerate(here))):
        positions = keep.of(axis)
        if positions is not None:
            array = np.take(array, positions, axis=place)
    return array


def _cut_orders(orders: IntArray, keep: Cut, has_outputs: bool) -> IntArray:
    """The ranking among the kept features: their new positions, in the old order."""
    orders = np.asarray(_cut_field(orders, ("row", "rank", "output"), keep, has_outputs))
    if keep.features is None:
        return orders
    place = np.full(orders.shape[1], -1)
    place[keep.features] = np.arange(len(keep.features))
    ranked = np.moveaxis(place[orders], 1, -1)
    kept = ranked[ranked >= 0].reshape(*ranked.shape[:-1], len(keep.features))
    return np.moveaxis(kept, -1, 1)


def _cut_data(data: Any, keep: Cut, d: int) -> Any:
    """Rows, and columns where each feature is one column; groups of columns stay as they are."""
    if data is None:
        return None
    rows = some_rows(data, keep.rows)
    if keep.features is None or len(rows.shape) != 2 or rows.shape[1] != d:
        return rows
    return rows.iloc[:, keep.features] if isinstance(rows, pd.DataFrame) else rows[:, keep.features.tolist()]


def some_rows(data: Any, rows: IntArray) -> Any:
    """Rows of an array or a frame, by position."""
    return data.iloc[rows] if isinstance(data, pd.DataFrame) else data[rows]


def joined_data(parts: Sequence[Any]) -> Any:
    """The rows of all parts, which must be of one type with the same columns."""
    first = parts[0]
    if all(part is None for part in parts):
        return None
    if all(isinstance(part, pd.DataFrame) for part in parts):
        if not all(part.columns.equals(first.columns) for part in parts):
            raise ValueError("The rows of the parts have different columns.")
        return pd.concat(parts)
    if all(isinstance(part, np.ndarray) for part in parts) and len({part.shape[1:] for part in parts}) == 1:
        return np.concatenate(parts)
    if all(map(is_polars, parts)):
        return require("polars", "polars").concat(parts)
    raise ValueError("The rows of the parts must be all arrays, or all frames, with the same columns.")


def shape_of(name: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of a field, given the length of each axis that is there."""
    return tuple(sizes[axis] for axis in AXES[name] if axis in sizes)


def same(one: Any, other: Any) -> bool:
    """Equal to the bit: NaN equals NaN, and 0.0 differs from −0.0."""
    if is_polars(one) or is_polars(other):
        return is_polars(one) and is_polars(other) and _same_polars(one, other)
    for kind, compare in _SAME:
        if isinstance(one, kind) or isinstance(other, kind):
            return isinstance(one, kind) and isinstance(other, kind) and compare(one, other)
    return bool(one == other)


def _same_mappings(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> bool:
    return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)


def _same_sequences(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(map(same, one, other))


def _same_floats(one: Any, other: Any) -> bool:
    return np.float64(one).tobytes() == np.float64(other).tobytes() or (np.isnan(one) and np.isnan(other))


def _same_arrays(one: Any, other: Any) -> bool:
    if one.shape != other.shape or one.dtype.kind != other.dtype.kind:
        return False
    if one.dtype.kind == "U":
        return bool((one == other).all())
    if one.dtype.kind == "O":
        return _same_sequences(one.ravel().tolist(), other.ravel().tolist())
    return one.dtype == other.dtype and np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()


def _same_polars(one: Any, other: Any) -> bool:
    return bool(one.schema == other.schema and one.equals(other))


def _same_frames(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    if one.shape != other.shape or not (one.index.equals(other.index) and one.columns.equals(other.columns)):
        return False
    if one.index.names != other.index.names or list(one.dtypes) != list(other.dtypes) or not one.equals(other):
        return False
    numbers = [c for c, dtype in enumerate(one.dtypes) if isinstance(dtype, np.dtype) and dtype.kind in "fc"]
    return all(_same_arrays(one.iloc[:, c].to_numpy(), other.iloc[:, c].to_numpy()) for c in numbers)


_SAME: tuple[tuple[Any, Callable[[Any, Any], bool]], ...] = (
    (Mapping, _same_mappings),
    (np.ndarray, _same_arrays),
    (pd.DataFrame, _same_frames),
    ((list, tuple), _same_sequences),
    ((float, np.floating), _same_floats),
)
