"""Shared checks: the checked value is returned, or an error says what was expected, what came, and
what to do."""

import difflib
import importlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]
Positions = int | IntArray
Seed = np.random.Generator | int | None

T = TypeVar("T")
LARGEST = 1e150  # numbers beyond cannot be squared


class UnknownName(ValueError, KeyError):
    """A name that no table knows; the message lists the known ones and the nearest."""

    def __str__(self) -> str:
        return str(self.args[0])


def look_up(kind: str, name: str, table: Mapping[str, T]) -> T:
    """Return ``table[name]``, or raise `UnknownName` with the known names and the nearest."""
    if isinstance(name, str) and name in table:
        return table[name]
    raise UnknownName(unknown_sentence(kind, name, table))


def one_of(kind: str, value: str, known: Iterable[str]) -> str:
    """Return `value` if it is one of `known`, else raise `UnknownName`."""
    return look_up(kind, value, {name: name for name in known})


def unknown_sentence(kind: str, name: object, known: Iterable[object]) -> str:
    """``Unknown game 'margnal'. Did you mean 'marginal'? Known: …``."""
    names = [str(k) for k in known]
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"Unknown {kind} {name!r}.{hint} Known: {', '.join(map(repr, names))}."


def require(module: str, extra: str) -> ModuleType:
    """Import an optional `module`, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        said = f"{module.partition('.')[0]} is needed for this and is not installed."
        raise ImportError(f'{said} Run: pip install "weightedshap[{extra}]"') from error


def as_path(path: Any) -> Path:
    """A path; an integer would be taken for an open file."""
    if isinstance(path, (str, os.PathLike)) and "\0" not in os.fspath(path):
        return Path(path)
    raise TypeError(f"A path must be text or a pathlib.Path; got {path!r}.")


def as_generator(rng: object) -> np.random.Generator:
    """A Generator from a Generator, a seed, or None (seed 0: results never depend on the clock)."""
    if isinstance(rng, np.random.Generator):
        return rng
    if not isinstance(rng, (int, np.integer, type(None))):
        raise TypeError(
            f"`rng` must be a numpy Generator or an integer seed, not {type(rng).__name__}."
        )
    if (seed := int(rng or 0)) < 0:
        raise ValueError(f"A seed must be an integer of at least 0; got {rng!r}.")
    return np.random.default_rng(seed)


def unmasked(values: Any) -> Any:
    """`values`; those that a masked array hides are NaN."""
    return (
        np.ma.filled(values.astype(np.float64), np.nan)
        if isinstance(values, np.ma.MaskedArray)
        else values
    )


def stored_array(name: str, array: object, shape: tuple[int, ...]) -> Any:
    """An array of a file that must hold finite numbers of this shape."""
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype.kind not in "fiu":
        raise ValueError(f"`{name}` is no array of numbers of shape {shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"`{name}` holds NaN or infinite values.")
    return array


def as_outputs(values: Any, n: int, who: str) -> FloatArray:
    """What a model or game returned for `n` inputs, as floats of shape (n,) or (n, k), all
    finite."""
    if np.iscomplexobj(values):
        raise TypeError(
            f"{who} returned complex numbers. Pass `predict=` a function that returns real ones."
        )
    try:
        array = np.asarray(unmasked(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        said = (
            f"{who} must return numbers; got {type(values).__name__} that cannot be turned into"
            f" floats ({error})."
        )
        raise TypeError(
            f"{said} Pass `predict=` a function that returns probabilities or values."
        ) from error
    if array is not values and _are_times(values):
        said = f"{who} must return numbers; got dates or durations, in a {type(values).__name__}."
        raise TypeError(f"{said} Pass `predict=` a function that returns probabilities or values.")
    if array.ndim not in (1, 2) or array.shape[0] != n:
        wanted = f"one value, or one row of outputs, for each of {n} inputs"
        raise ValueError(f"{who} must return {wanted}; got shape {array.shape}.")
    if bad := int(array.size - np.isfinite(array).sum()):
        said = (
            f"{who} returned {bad} NaN or infinite value{'s' if bad > 1 else ''} out of"
            f" {array.size}."
        )
        why = (
            "An explanation of such values would be meaningless; check the model on the rows it was"
            " given."
        )
        raise ValueError(f"{said} {why}")
    if array.size and (largest := np.abs(array).max()) > LARGEST:
        said = (
            f"{who} returned {largest:.0e}, and squares of numbers beyond {LARGEST:.0e} overflow."
        )
        raise ValueError(f"{said} Pass `predict=` a function that returns them in a larger unit.")
    return array


def _are_times(values: Any) -> bool:
    """Return whether values are dates or durations, which numpy turns into numbers without a
    word."""
    # A pandas series of dates with a time zone has a dtype of its own, and objects for numpy.
    own = offered(values, "dtype").get("dtype")
    return "M" in (
        str(offered(own, "kind").get("kind")).upper(),
        np.asarray(values).dtype.kind.upper(),
    )


def offered(thing: object, *names: str) -> dict[str, Any]:
    """The attributes of these names that an object has which people bring: it may have any, or
    none."""
    return {name: getattr(thing, name) for name in names if hasattr(thing, name)}


def name_of(thing: object) -> str:
    """The name of a part given by name or as an object."""
    return (
        thing
        if isinstance(thing, str)
        else str(offered(thing, "__name__").get("__name__", type(thing).__name__))
    )


def field_values(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, as they are."""
    return {field.name: vars(value)[field.name] for field in fields(value)}


def with_axis(values: FloatArray) -> FloatArray:
    """(n,) or (n, k) numbers of people's models and games → (n, k)."""
    return values if values.ndim == 2 else values[:, None]


def positive_integer(name: str, value: object) -> int:
    """`value` as an int of at least one."""
    return whole_number(name, value, 1)


def whole_number(name: str, value: object, least: int) -> int:
    """`value` as an int of at least `least`."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, np.integer))
        or not least <= value < 2**40
    ):
        raise ValueError(f"`{name}` must be an integer of at least {least}; got {value!r}.")
    return int(value)


def number_above(name: str, value: object, least: float) -> float:
    """`value` as a finite number above `least`."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float, np.number))
        or np.iscomplexobj(value)
    ):
        raise TypeError(f"`{name}` must be a number above {least:g}; got {value!r}.")
    if not (float(value) > least and np.isfinite(value)):
        raise ValueError(f"`{name}` must be a number above {least:g}; got {value!r}.")
    return float(value)


def as_numbers_of(
    name: str, values: Any, dtype: npt.DTypeLike | None = np.float64
) -> npt.NDArray[Any]:
    """`values` as an array of floats, or of its own type where `dtype` is None."""
    try:
        return np.asarray(unmasked(values), dtype=dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"`{name}` must be numbers; got {values!r} ({error}).") from error


def check_settings(recipe: Any) -> None:
    """An error for a whole number or a fraction of a recipe that is none; `n_jobs` and `hints` may
    be 0."""
    for field in fields(recipe):
        value = vars(recipe)[field.name]
        if str(field.type).startswith("int") and not (value is None and "None" in str(field.type)):
            whole_number(field.name, value, int(field.name not in ("n_jobs", "hints")))
        elif field.type == "float":
            number_above(field.name, value, 0)
        elif field.type == "bool" and not isinstance(value, bool):
            raise ValueError(f"`{field.name}` must be True or False; got {value!r}.")


def check_workers(n_jobs: object, progress: object) -> None:
    """An error for a number of workers, or a wish for a bar, that means nothing."""
    whole = isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not whole or n_jobs == 0):
        raise ValueError(
            "`n_jobs` must be a number of workers, or -1 for as many as there are cores; got"
            f" {n_jobs!r}."
        )
    check_switch("progress", progress)


def check_switch(name: str, value: object) -> None:
    """An error for what is neither True, False nor "auto"."""
    if not isinstance(value, bool) and not (isinstance(value, str) and value == "auto"):
        raise ValueError(f"`{name}` must be True, False or 'auto'; got {value!r}.")


def output_position(output: int | str, names: tuple[str, ...]) -> int:
    """The position of an output given by position or by name."""
    if isinstance(output, str) and output in names:
        return names.index(output)
    if (
        isinstance(output, (int, np.integer))
        and not isinstance(output, bool)
        and -len(names) <= output < len(names)
    ):
        return int(output) % len(names)
    raise ValueError(
        unknown_sentence("output", output, names) + f" Or a position 0..{len(names) - 1}."
    )
