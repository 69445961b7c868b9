"""Kinds of tables, and columns in the plain form: float64 with NaN (numbers, booleans) or objects
with None."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from weightedshap._checks import Array as Array
from weightedshap._checks import BoolArray, FloatArray, IntArray, Positions, as_numbers_of, offered
from weightedshap._format import quoted
from weightedshap._lazy import pd
from weightedshap.inputs.groups import listed

Data = Any
"""Rows of people's data: an array (n, c), a pandas or a polars DataFrame."""
UserModel = Any
"""A model as people bring it: an estimator or booster of any library, a network, a session, a
function of rows."""
Column = FloatArray | npt.NDArray[np.object_]
Dtype = np.dtype[Any]
R = TypeVar("R")

IN_ORDER = "Pass the columns used in training, in the same order."
EXACT = 2.0**53  # from here on a float64 cannot tell neighbouring whole numbers apart


@dataclass(frozen=True)
class Kind(Generic[R]):
    """What is done to rows of one kind. Columns are counted by c; `who` names the rows in an error.

    The user's numbers are never rounded, so that the explained prediction is that of the user's
    rows: `like`, `convert` (of plain columns of another kind), `join` and `mix` give a dtype that
    holds the numbers of both sides, see `common_dtype`. Only numbers that a game makes up (`build`)
    are rounded to the reference's floats, as the model may take no others.

    Rows that are not `typed`, such as a dictionary, say nothing about the dtypes of their columns.
    They take the reference's integers and booleans where these hold them; so do rows of another
    kind.
    """

    # (rows) → column names; None if columns have no names.
    names: Callable[[R], tuple[str, ...] | None]
    # (rows, columns) → some columns, in the given order.
    select: Callable[[R, Sequence[int] | IntArray], R]
    # (parts) → the rows of all parts; an error if their columns differ.
    join: Callable[[Sequence[R]], R]
    # (one, other) → the same to the bit, names and types too; NaN equals NaN.
    equal: Callable[[R, R], bool]
    # (rows, c, who) → plain; an error if neither numbers nor categories.
    column: Callable[[R, int, str], Column]
    # (rows, c) → a column to be shown, whatever it holds.
    series: Callable[[R, int], pd.Series[Any]]
    to_array: Callable[[R], Array]  # (rows) → of numbers if all columns are, else of objects
    to_pandas: Callable[[R], pd.DataFrame]  # (rows) → the rows as a pandas frame
    is_boolean: Callable[[R, int], bool]  # (rows, c) → whether a column holds only true and false
    dtype: Callable[[R, int], Dtype | None]  # (rows, c) → numpy's of a column; None for objects
    # (rows, reference, who, typed) → the rows in dtypes that hold the reference's numbers, too
    like: Callable[[R, R, str, bool], R]
    # (columns, their dtypes, reference, who) → the same out of plain columns of another kind
    convert: Callable[[Sequence[Column], Sequence[Dtype | None], R, str], R]
    build: Callable[[Sequence[Column], R, str], R]  # (columns, reference, who) → in its dtypes
    # (rows, which, known, hidden, whose), see `mix_each`.
    mix: Callable[[R, Positions, BoolArray, R, Positions], R]


def numeric(data: npt.ArrayLike, who: str) -> Array:
    """A C-contiguous array of numbers; an error for anything else."""
    array = np.asarray(data)
    why = str(array.dtype)
    if array.dtype.kind in "mM":
        days = "days: (dates - np.datetime64('2000-01-01')) / np.timedelta64(1, 'D')"
        raise TypeError(
            f"`{who}` holds dates or durations ({why}). Turn them into numbers first, for example"
            f" {days}."
        )
    if array.dtype.kind == "O":
        check_exact(sizes_of_integers(array.flat), f"`{who}`")
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            why = str(error)
    if array.dtype.kind not in "biuf":
        advice = "Pass a pandas or polars DataFrame, so that each column keeps its own type."
        raise TypeError(f"`{who}` holds values that are not numbers ({why}). {advice}")
    if array.dtype.kind in "iu":
        check_exact(np.asarray(array, dtype=np.float64), f"`{who}`")
    return np.ascontiguousarray(array)


def in_dtype(values: Array, dtype: Dtype) -> Array:
    """Return `values` in `dtype`, rounded to its floats; as they are where it cannot hold them.

    That is: numbers that are too large, and fractions or holes among integers.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        cast = values.astype(dtype, copy=False)
    return cast if holds(np.asarray(cast, dtype=np.float64), values, dtype.kind == "f") else values


def holds(cast: FloatArray, values: FloatArray, rounds: bool) -> bool:
    """Whether `cast` holds `values`: exactly, or rounded to a shorter float."""
    if rounds:
        return np.array_equal(np.isfinite(cast), np.isfinite(values))
    return np.array_equal(cast, values, equal_nan=True)


def common_dtype(*dtypes: Dtype) -> Dtype:
    """Return a dtype that holds the numbers of all `dtypes` exactly.

    It depends on no value, so a row gets the same numbers whatever rows it comes with. Whole
    numbers of 2^53 and beyond are refused before (`check_exact`), so float64 holds those of any two
    dtypes.
    """
    return np.result_type(*dtypes)


def dtype_of_objects(numbers: FloatArray) -> Dtype:
    """Return the dtype of `numbers` that came as objects: bool of truth values, else float64."""
    return np.dtype(np.bool_ if is_binary(numbers) else np.float64)


def is_binary(numbers: FloatArray) -> bool:
    """Whether `numbers` are zeros, ones and holes."""
    return bool((np.isin(numbers, (0, 1)) | np.isnan(numbers)).all())


def sizes_of_integers(values: Iterable[object]) -> FloatArray:
    """Return the absolute values, cut at 2^53, of the integers among objects."""
    sizes = (abs(int(value)) for value in values if isinstance(value, (int, np.integer)))
    return np.array([min(size, int(EXACT)) for size in sizes], dtype=np.float64)


def check_exact(values: FloatArray, where: str) -> None:
    """An error for whole numbers that float64 cannot tell apart."""
    if (np.abs(values) >= EXACT).any():
        said = (
            f"{where} holds whole numbers of 2^53 and beyond, which floating point cannot tell"
            " apart."
        )
        coarser = "use a coarser unit (seconds instead of nanoseconds)"
        raise ValueError(f"{said} Leave out an identifier, turn it into text, or {coarser}.")


def unseen(
    value: object, name: str, categories: Iterable[object], who: str, advice: str
) -> ValueError:
    """The error for a category that the background's column cannot hold."""
    said = (
        f"`{who}` has a category in column {name} that the background never saw: {quoted(value)}."
    )
    known = f"Known: {listed([*map(str, categories)])}."
    return ValueError(f"{said} {known} {advice} of the background's column if the model knows it.")


def as_numbers(values: Column, name: str, who: str) -> FloatArray:
    """A plain column as floats; an error if it holds text."""
    if values.dtype != object:
        return np.asarray(values, dtype=np.float64)
    if text := [
        v for v in values if v is not None and not isinstance(v, (bool, int, float, np.number))
    ]:
        raise TypeError(
            f"Column {name} of `{who}` holds {text[0]!r} where the background holds numbers."
        )
    check_exact(sizes_of_integers(values), f"Column {name} of `{who}`")
    return np.array(
        [np.nan if value is None else float(value) for value in values], dtype=np.float64
    )


def as_text(values: Column, name: str, who: str) -> npt.NDArray[np.object_]:
    """A plain column as text with None; an error if it holds numbers."""
    if values.dtype == object:
        return np.asarray(values, dtype=object)
    if not np.isnan(np.asarray(values, dtype=np.float64)).all():
        raise TypeError(f"Column {name} of `{who}` holds numbers where the background holds text.")
    return np.full(len(values), None, dtype=object)


def equal_arrays(one: Array, other: Array) -> bool:
    """Whether two arrays are the same to the bit."""
    if one.dtype.kind == other.dtype.kind == "U":  # however long their longest text is
        return np.array_equal(one, other)
    alike = one.shape == other.shape and one.dtype == other.dtype
    return alike and np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()


def _like(rows: Array, reference: Array, who: str, typed: bool) -> Array:
    own = numeric(rows, who)
    return own.astype(common_dtype(own.dtype, reference.dtype), copy=False)


def _stacked(columns: Sequence[Column], who: str) -> FloatArray:
    """Return plain columns as an array (n, c); an error if one holds text."""
    numbers = [as_numbers(column, f"at position {c}", who) for c, column in enumerate(columns)]
    return np.stack(numbers, axis=1)


def _converted(
    columns: Sequence[Column],
    dtypes: Sequence[Dtype | None],
    reference: Array,
    who: str,
) -> Array:
    numbers = _stacked(columns, who)
    pairs = zip(numbers.T, dtypes, strict=True)
    own = [dtype or dtype_of_objects(column) for column, dtype in pairs]
    common = common_dtype(reference.dtype, *own)
    # integers of a frame may have holes, those of an array cannot
    if common.kind != "f" and np.isnan(numbers).any():
        return numbers
    return numbers.astype(common, copy=False)


def _built(columns: Sequence[Column], reference: Array, who: str) -> Array:
    return in_dtype(_stacked(columns, who), reference.dtype)


def _mixed(
    rows: Array, which: Positions, known: BoolArray, hidden: Array, whose: Positions
) -> Array:
    return np.where(known, rows[which], hidden[whose]).reshape(-1, known.shape[-1])


ARRAYS = Kind[Array](
    names=lambda rows: None,
    select=lambda rows, columns: rows[:, columns],
    join=np.concatenate,
    equal=equal_arrays,
    column=lambda rows, c, who: np.asarray(rows[:, c], dtype=np.float64),
    series=lambda rows, c: pd.Series(rows[:, c]),
    to_array=lambda rows: rows,
    to_pandas=lambda rows: pd.DataFrame(rows),
    is_boolean=lambda rows, c: rows.dtype == np.bool_,
    dtype=lambda rows, c: rows.dtype,
    like=_like,
    convert=_converted,
    build=_built,
    mix=_mixed,
)


def picks(n: int, which: Positions, known: BoolArray, whose: Positions) -> Iterator[IntArray]:
    """For each column of mixed rows, where its cells stand in a pool of n rows that are known, then
    the hidden ones."""
    for column in np.moveaxis(known, -1, 0):
        yield np.where(column, which, n + np.asarray(whose)).ravel()


def is_frame(data: object) -> bool:
    """Whether `data` is a pandas or polars DataFrame, found out without importing polars."""
    own = type(data)
    return isinstance(data, pd.DataFrame) or (own.__module__.partition(".")[0], own.__name__) == (
        "polars",
        "DataFrame",
    )


def kind_of(rows: Data) -> Kind[Any]:
    """The kind of a table."""
    if isinstance(rows, np.ndarray):
        return ARRAYS
    if isinstance(rows, pd.DataFrame):
        from weightedshap.inputs.pandas import PANDAS

        return PANDAS
    if is_frame(rows):
        from weightedshap.inputs.polars import POLARS

        return POLARS
    raise TypeError(
        f"A table must be an array, a pandas or a polars DataFrame; got {type(rows).__name__}."
    )


def as_rows(data: Data) -> Data:
    """A 2-D array or a DataFrame, of a table or of a single row (a 1-D array, a Series or a dict),
    or of dicts."""
    if is_frame(data):
        return data
    library = type(data).__module__.partition(".")[0]
    if library == "shap":
        return _held_by_shap(data)
    if library == "scipy":
        said = (
            "A sparse matrix keeps no rows to mix. Pass `.toarray()` of it; for XGBoost, to which"
        )
        raise TypeError(f"{said} cells that are left out are missing, with NaN in their place.")
    if isinstance(data, (list, tuple)) and data and all(isinstance(row, Mapping) for row in data):
        if uneven := sorted({str(key) for row in data for key in row.keys() ^ data[0].keys()}):
            raise ValueError(
                f"Some rows lack {listed(uneven)}. Give every row the same names, None where"
                " missing."
            )
        return pd.DataFrame(list(data))
    if type(data).__name__ == "LazyFrame":
        raise TypeError("A polars LazyFrame holds no rows yet. Call `.collect()` on it first.")
    if isinstance(data, pd.Series):
        return data.to_frame().T.infer_objects()
    if isinstance(data, Mapping):
        return pd.DataFrame([dict(data)])
    array = as_numbers_of("A table", data, None)
    array = array[None, :] if array.ndim == 1 else array
    if array.ndim != 2:
        raise ValueError(f"A table must have two axes, rows and columns; got shape {array.shape}.")
    return array


def _held_by_shap(held: Data) -> Data:
    """The rows of shap's maskers and of ``shap.kmeans``, in a frame where their columns have
    names."""
    known = offered(held, "data", "group_names", "feature_names")
    rows = known.get("data")
    named = known.get("feature_names", known.get("group_names"))
    if not isinstance(rows, np.ndarray) or rows.ndim != 2:
        said = (
            f"A {type(held).__name__} of shap holds no table. Pass the background rows themselves"
        )
        raise TypeError(
            f"{said}, or a game made by weightedshap.games.from_shap(model, masker, x)."
        )
    names = [] if named is None else list(map(str, named))
    numbered = names in ([], [str(c) for c in range(rows.shape[1])])
    return rows if numbered else pd.DataFrame(rows, columns=names).infer_objects()


def column_of(rows: Data, c: int) -> Column:
    """Column c in the plain form: floats with NaN, or objects with None."""
    return kind_of(rows).column(rows, c, "X")


def part_of(rows: Data, which: slice | IntArray) -> Data:
    """Some rows, in their own kind."""
    return rows.iloc[which] if isinstance(rows, pd.DataFrame) else rows[which]


def join_of(parts: Sequence[Data]) -> Data:
    """The rows of all parts, which must be of one kind with the same columns."""
    if len({(type(part), np.shape(part)[1:]) for part in parts}) > 1:
        raise ValueError(
            "The rows of the parts must be all arrays, or all frames, with the same columns."
        )
    return kind_of(parts[0]).join(parts)
