"""Find a common type for a column whose type differs between the files of one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from weightedshap._checks import require
from weightedshap.jobs.exit_codes import INPUT, CommandError
from weightedshap.jobs.text_columns import is_text

if TYPE_CHECKING:
    import pyarrow as pa
else:
    pa = require("pyarrow", "stream")

types = pa.types

NUMBERS = (types.is_integer, types.is_floating, types.is_decimal)
# Groups of types; Arrow can promote two types of one group to a common type.
FAMILIES = (*NUMBERS, types.is_timestamp, types.is_duration, types.is_dictionary)


def common_type(
    name: str,
    by_file: Mapping[Path, pa.DataType],
    join: Callable[[pa.DataType, pa.DataType], pa.DataType | None],
) -> pa.DataType:
    """Return the common type of a column, given its type in each file.

    `join` returns the common type of two types, or None. If there is none, the error names two
    files whose types do not agree.
    """
    common = pa.null()
    source = None
    for file, column_type in by_file.items():
        if types.is_null(column_type):
            continue
        wider = column_type if types.is_null(common) else join(common, column_type)
        if wider is None:
            raise CommandError(
                f"Column {name!r} is {common} in {source} and {column_type} in {file}; no one type"
                " holds both as they are. Convert one of the files.",
                INPUT,
            )
        if wider != common:
            source = file
        common = wider
    return common


def join_key_types(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type that can hold all values of both types unchanged; None if there is none."""
    if one == other:
        return one
    if any(is_member(one) and is_member(other) for is_member in FAMILIES):
        # No integer holds both the largest unsigned numbers and negative ones.
        differ_in_sign = types.is_signed_integer(one) != types.is_signed_integer(other)
        if pa.uint64() in (one, other) and differ_in_sign:
            return None
        return _widen(one, other)
    if _holds_text(one) and _holds_text(other):
        return pa.large_string() if pa.large_string() in (one, other) else pa.string()
    return None


def join_feature_types(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return a type for values of both types, or None; integers may become floats."""
    if all(any(is_number(column_type) for is_number in NUMBERS) for column_type in (one, other)):
        return _widen(one, other)
    return join_key_types(one, other)


def _widen(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type to which Arrow promotes both types; None if there is none."""
    schemas = [pa.schema([("column", column_type)]) for column_type in (one, other)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field("column").type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None


def _holds_text(column_type: pa.DataType) -> bool:
    """Return whether a column of this type contains text, plain or as categories."""
    return is_text(column_type.value_type if types.is_dictionary(column_type) else column_type)
