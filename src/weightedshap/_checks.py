"""Check arguments, and the values returned by the user's models and games.

A function here returns the checked value, or raises an error that says what was expected, what was
given, and what to do. The array types for annotations are defined here as well. Only numpy is
imported at the top, and every other module may use this one.
"""

import difflib
import hashlib
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
# The square of a larger number would come close to the end of float64 (1.8e308).
LARGEST = 1e150
# A known name is suggested for a misspelt one only if they are at least this similar (0 to 1).
LEAST_SIMILARITY = 0.5


class UnknownNameError(ValueError, KeyError):
    """Raised when a name is not among the possible ones.

    Its message lists the possible names and suggests the most similar one.
    """

    def __str__(self) -> str:
        # A KeyError would print its message in quotation marks.
        return str(self.args[0])


def look_up(kind: str, name: str, table: Mapping[str, T]) -> T:
    """Return ``table[name]``; raise `UnknownNameError` if the table has no such name.

    `kind` says in the error what is looked up, such as "game".
    """
    if isinstance(name, str) and name in table:
        return table[name]
    raise UnknownNameError(unknown_name_message(kind, name, table))


def check_choice(kind: str, value: str, choices: Iterable[str]) -> str:
    """Return `value` if it is one of `choices`, else raise `UnknownNameError`.

    `kind` says in the error what is chosen, such as "link".
    """
    return look_up(kind, value, {name: name for name in choices})


def unknown_name_message(kind: str, name: object, choices: Iterable[object]) -> str:
    """Return the error message ``Unknown game 'margnal'. Did you mean 'marginal'? Known: …``.

    `kind` says what is named, here "game".
    """
    names = [str(choice) for choice in choices]
    similar = difflib.get_close_matches(str(name), names, n=1, cutoff=LEAST_SIMILARITY)
    hint = f" Did you mean {similar[0]!r}?" if similar else ""
    return f"Unknown {kind} {name!r}.{hint} Known: {', '.join(map(repr, names))}."


def require(module: str, extra: str) -> ModuleType:
    """Import and return an optional module; if it is missing, raise an error with the pip command.

    `extra` is the extra of this package that installs the module.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = module.partition(".")[0]
        raise ImportError(
            f"{library} is needed for this and is not installed. Run: pip install"
            f' "weightedshap[{extra}]"'
        ) from error


def as_path(path: Any) -> Path:
    """Convert text or a path-like object to a `Path`; raise a TypeError for anything else.

    An integer is refused because `open` would take it for the number of an open file.
    """
    if isinstance(path, (str, os.PathLike)) and "\0" not in os.fspath(path):
        return Path(path)
    raise TypeError(f"A path must be text or a pathlib.Path; got {path!r}.")


def as_generator(rng: object) -> np.random.Generator:
    """Return a numpy Generator, given one, an integer seed or None.

    None is seed 0, so that results never depend on the clock.
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if not isinstance(rng, (int, np.integer, type(None))):
        raise TypeError(
            f"`rng` must be a numpy Generator or an integer seed, not {type(rng).__name__}."
        )
    seed = int(rng or 0)
    if seed < 0:
        raise ValueError(f"A seed must be an integer of at least 0; got {rng!r}.")
    return np.random.default_rng(seed)


def stream_fingerprint(rng: np.random.Generator) -> frozenset[str]:
    """Return a set with one string that identifies the next random draws of `rng`.

    The string is a hash of the generator's state, which stays unchanged.
    """
    state = repr(rng.bit_generator.state).encode()
    return frozenset([hashlib.blake2b(state, digest_size=12).hexdigest()])


def fill_masked(values: Any) -> Any:
    """Replace the masked entries of a masked array by NaN; return other values unchanged."""
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(np.float64), np.nan)
    return values


def check_array(name: str, array: object, shape: tuple[int, ...]) -> Any:
    """Check that an array read from a file has `shape` and only finite numbers; return it.

    `name` is the name of the array in an error.
    """
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype.kind not in "fiu":
        raise ValueError(f"`{name}` is no array of numbers of shape {shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"`{name}` holds NaN or infinite values.")
    return array


def as_outputs(values: Any, n: int, who: str) -> FloatArray:
    """Check what a model or game returned for `n` inputs; return finite floats (n,) or (n, k).

    `who` names the model or game in an error, such as "The model".
    """
    if np.iscomplexobj(values):
        raise TypeError(
            f"{who} returned complex numbers. Pass `predict=` a function that returns real ones."
        )
    try:
        array = np.asarray(fill_masked(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{who} must return numbers; got {type(values).__name__} that cannot be turned into"
            f" floats ({error}). Pass `predict=` a function that returns probabilities or values."
        ) from error

    # If the array is still the same object, it was float64 before and has no dates.
    if array is not values and _are_times(values):
        raise TypeError(
            f"{who} must return numbers; got dates or durations, in a {type(values).__name__}."
            " Pass `predict=` a function that returns probabilities or values."
        )
    if array.ndim not in (1, 2) or array.shape[0] != n:
        raise ValueError(
            f"{who} must return one value, or one row of outputs, for each of {n} inputs; got"
            f" shape {array.shape}."
        )
    n_invalid = int(array.size - np.isfinite(array).sum())
    if n_invalid:
        raise ValueError(
            f"{who} returned {n_invalid} NaN or infinite value{'s' if n_invalid > 1 else ''} out of"
            f" {array.size}. An explanation of such values would be meaningless; check the model on"
            " the rows it was given."
        )
    if array.size and (largest := np.abs(array).max()) > LARGEST:
        raise ValueError(
            f"{who} returned {largest:.0e}, and squares of numbers beyond {LARGEST:.0e} overflow."
            " Pass `predict=` a function that returns them in a larger unit."
        )
    return array


def _are_times(values: Any) -> bool:
    """Return whether values are dates or durations, which numpy silently turns into numbers."""
    # A pandas series of dates with a time zone becomes an array of objects, so that only its own
    # dtype shows that.
    own_dtype = optional_attrs(values, "dtype").get("dtype")
    own_kind = str(optional_attrs(own_dtype, "kind").get("kind"))
    array_kind = np.asarray(values).dtype.kind
    return "M" in (own_kind.upper(), array_kind.upper())


def optional_attrs(thing: object, *names: str) -> dict[str, Any]:
    """Return the attributes `names` of an object as a dict, without those it does not have.

    For objects of the user or of another library.
    """
    return {name: getattr(thing, name) for name in names if hasattr(thing, name)}


def name_of(thing: object) -> str:
    """Return the name of an option: the string itself, its `__name__`, or the name of its type."""
    if isinstance(thing, str):
        return thing
    return str(optional_attrs(thing, "__name__").get("__name__", type(thing).__name__))


def shallow_asdict(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, without copying or converting their values."""
    return {field.name: vars(value)[field.name] for field in fields(value)}


def as_2d(values: FloatArray) -> FloatArray:
    """Reshape numbers (n,) to (n, 1); return numbers (n, k) unchanged."""
    return values if values.ndim == 2 else values[:, None]


def check_positive_integer(name: str, value: object) -> int:
    """Check that the argument `name` is an integer of at least 1; return it as an int."""
    return check_integer(name, value, 1)


def check_integer(name: str, value: object, least: int) -> int:
    """Check that the argument `name` is an integer of at least `least`; return it as an int."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, np.integer))
        or not least <= value < 2**40
    ):
        raise ValueError(f"`{name}` must be an integer of at least {least}; got {value!r}.")
    return int(value)


def check_above(name: str, value: object, least: float) -> float:
    """Check that the argument `name` is a finite number above `least`; return it as a float."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float, np.number))
        or np.iscomplexobj(value)
    ):
        raise TypeError(f"`{name}` must be a number above {least:g}; got {value!r}.")
    if not (float(value) > least and np.isfinite(value)):
        raise ValueError(f"`{name}` must be a number above {least:g}; got {value!r}.")
    return float(value)


def as_array(name: str, values: Any, dtype: npt.DTypeLike | None = np.float64) -> npt.NDArray[Any]:
    """Convert an argument to an array of `dtype`; None keeps the dtype it has.

    `name` is the name of the argument in an error. A masked array gets NaN where it is masked.
    """
    try:
        return np.asarray(fill_masked(values), dtype=dtype)
    except (TypeError, ValueError) as error:
        raise TypeError(f"`{name}` must be numbers; got {values!r} ({error}).") from error


def check_settings(recipe: Any) -> None:
    """Raise an error if a field of a dataclass of options does not fit its type annotation.

    Only numbers and switches are checked. Integers must be positive, except `n_jobs` and `hints`,
    which may be 0; floats must be positive.
    """
    for field in fields(recipe):
        value = vars(recipe)[field.name]
        is_left_out = value is None and "None" in str(field.type)
        if str(field.type).startswith("int") and not is_left_out:
            least = 0 if field.name in ("n_jobs", "hints") else 1
            check_integer(field.name, value, least)
        elif field.type == "float":
            check_above(field.name, value, 0)
        elif field.type == "bool" and not isinstance(value, bool):
            raise ValueError(f"`{field.name}` must be True or False; got {value!r}.")


def check_workers(n_jobs: object, progress: object) -> None:
    """Raise an error unless `n_jobs` is a number of workers and `progress` a bool or "auto"."""
    is_integer = isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not is_integer or n_jobs == 0):
        raise ValueError(
            "`n_jobs` must be a number of workers, or -1 for as many as there are cores; got"
            f" {n_jobs!r}."
        )
    check_bool_or_auto("progress", progress)


def check_bool_or_auto(name: str, value: object) -> None:
    """Raise an error unless the argument `name` is True, False or "auto"."""
    if not isinstance(value, bool) and not (isinstance(value, str) and value == "auto"):
        raise ValueError(f"`{name}` must be True, False or 'auto'; got {value!r}.")


def resolve_output(output: int | str, names: tuple[str, ...]) -> int:
    """Return the position of an output, given its name or a position that may be negative.

    `names` are the names of all outputs.
    """
    if isinstance(output, str) and output in names:
        return names.index(output)
    if (
        isinstance(output, (int, np.integer))
        and not isinstance(output, bool)
        and -len(names) <= output < len(names)
    ):
        return int(output) % len(names)
    raise ValueError(
        unknown_name_message("output", output, names) + f" Or a position 0..{len(names) - 1}."
    )
