"""One type for a column that has several, in the files of one table."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from weightedshap._checks import require
from weightedshap.jobs.exit_codes import INPUT, Stop
from weightedshap.jobs.text_columns import is_text

pa = require("pyarrow", "stream")
types = pa.types

Type = Any  # a type of Arrow
Joint = Callable[[Type, Type], Type | None]  # the type that holds both, if there is one

NUMBERS = (types.is_integer, types.is_floating, types.is_decimal)
WIDENED = (*NUMBERS, types.is_timestamp, types.is_duration, types.is_dictionary)


def common_type(name: str, by_file: Mapping[Path, Type], joint: Joint) -> Type:
    """Return the type that holds a column of all files; a Stop names two files whose types no type
    holds."""
    common = pa.null()
    source = None
    for file, kind in by_file.items():
        if types.is_null(kind):
            continue
        wider = kind if types.is_null(common) else joint(common, kind)
        if wider is None:
            said = (
                f"Column {name!r} is {common} in {source} and {kind} in {file}; no one type holds"
                " both as they are."
            )
            raise Stop(f"{said} Convert one of the files.", INPUT)
        if wider != common:
            source = file
        common = wider
    return common


def joint_of_keys(one: Type, other: Type) -> Type | None:
    """Return the type that holds every value of both as it is; None if there is none."""
    if one == other:
        return one
    if any(is_alike(one) and is_alike(other) for is_alike in WIDENED):
        # No integer holds all of the largest ones and those below zero.
        uneven = pa.uint64() in (one, other) and types.is_signed_integer(
            one
        ) != types.is_signed_integer(other)
        return None if uneven else _promoted(one, other)
    if _holds_text(one) and _holds_text(other):
        return pa.large_string() if pa.large_string() in (one, other) else pa.string()
    return None


def joint_of_features(one: Type, other: Type) -> Type | None:
    """Return the type that holds the values of both; a number may be rounded to a float."""
    if all(any(is_number(kind) for is_number in NUMBERS) for kind in (one, other)):
        return _promoted(one, other)
    return joint_of_keys(one, other)


def _promoted(one: Type, other: Type) -> Type | None:
    schemas = [pa.schema([("column", kind)]) for kind in (one, other)]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").field("column").type
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None


def _holds_text(kind: Type) -> bool:
    return is_text(kind.value_type if types.is_dictionary(kind) else kind)
