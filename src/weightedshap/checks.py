"""Shared checks: the checked value is returned, or an error says what was expected, what came, and what to do."""

import difflib
import importlib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from types import ModuleType
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.intp]
Positions = int | IntArray

T = TypeVar("T")


class UnknownName(ValueError, KeyError):
    """A name that no table knows; the message lists the known ones and the nearest."""

    def __str__(self) -> str:
        return str(self.args[0])


def look_up(kind: str, name: str, table: Mapping[str, T]) -> T:
    """Return ``table[name]``, or raise `UnknownName` with the known names and the nearest."""
    if name in table:
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


def as_generator(rng: np.random.Generator | int | None) -> np.random.Generator:
    """A Generator from a Generator, a seed, or None (seed 0: results never depend on the clock)."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None or isinstance(rng, (int, np.integer)):
        return np.random.default_rng(0 if rng is None else int(rng))
    raise TypeError(f"`rng` must be a numpy Generator or an integer seed, not {type(rng).__name__}.")


def as_outputs(values: Any, n: int, who: str) -> FloatArray:
    """What a model or game returned for `n` inputs, as floats of shape (n,) or (n, k), all finite."""
    if np.iscomplexobj(values):
        raise TypeError(f"{who} returned complex numbers. Pass `predict=` a function that returns real ones.")
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        said = f"{who} must return numbers; got {type(values).__name__} that cannot be turned into floats ({error})."
        raise TypeError(f"{said} Pass `predict=` a function that returns probabilities or values.") from error
    if array.ndim not in (1, 2) or array.shape[0] != n:
        wanted = f"one value, or one row of outputs, for each of {n} inputs"
        raise ValueError(f"{who} must return {wanted}; got shape {array.shape}.")
    if bad := int(array.size - np.isfinite(array).sum()):
        said = (
            f"{who} returned {bad} NaN or infinite value{'s' if bad > 1 else ''} out of {array.size}. An explanation of"
        )
        raise ValueError(f"{said} such values would be meaningless; check the model on the rows it was given.")
    return array


def offered(thing: object, *names: str) -> dict[str, Any]:
    """The attributes of these names that an object has which people bring: it may have any, or none."""
    return {name: getattr(thing, name) for name in names if hasattr(thing, name)}


def name_of(thing: object) -> str:
    """The name of a part given by name or as an object."""
    return thing if isinstance(thing, str) else str(offered(thing, "__name__").get("__name__", type(thing).__name__))


def field_values(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, as they are."""
    return {field.name: vars(value)[field.name] for field in fields(value)}


def with_axis(values: FloatArray) -> FloatArray:
    """(n,) or (n, k) numbers of people's models and games → (n, k)."""
    return values if values.ndim == 2 else values[:, None]


def positive_integer(name: str, value: object) -> int:
    """`value` as an int of at least one."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise ValueError(f"`{name}` must be an integer of at least 1; got {value!r}.")
    return int(value)


def output_position(output: int | str, names: tuple[str, ...]) -> int:
    """The position of an output given by position or by name."""
    if isinstance(output, str) and output in names:
        return names.index(output)
    if isinstance(output, (int, np.integer)) and not isinstance(output, bool) and -len(names) <= output < len(names):
        return int(output) % len(names)
    raise ValueError(unknown_sentence("output", output, names) + f" Or a position 0..{len(names) - 1}.")
