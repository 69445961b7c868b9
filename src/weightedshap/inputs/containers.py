"""Containers of rows: what the package does with arrays, pandas frames and polars frames.

A `Container` has the functions for rows of one type; `container_of` finds it. The container of
arrays is here, those of frames are in `pandas` and `polars`, which are imported only when such rows
come. Games and readers of trees read columns as plain arrays: float64 with NaN for numbers and
booleans, or objects with None for categories. Tables, games, explanations and streams use this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from weightedshap._checks import Array as Array
from weightedshap._checks import (
    BoolArray,
    FloatArray,
    IntArray,
    Positions,
    as_array,
    optional_attrs,
)
from weightedshap._format import quote
from weightedshap._lazy import pd
from weightedshap.inputs.groups import comma_list

Data = Any
"""Rows of the user's data: an array (n, c), a pandas or a polars DataFrame."""
UserModel = Any
"""A model as the user passes it: an estimator or booster of any library, a network, an ONNX
session, a function of rows."""
Column = FloatArray | npt.NDArray[np.object_]
"""A column as a plain array: float64 with NaN (numbers, booleans), or objects with None."""
Dtype = np.dtype[Any]
R = TypeVar("R")

IN_ORDER = "Pass the columns used in training, in the same order."
# From here on float64 cannot represent every integer.
EXACT_LIMIT = 2.0**53


@dataclass(frozen=True)
class Container(Generic[R]):
    """A record of functions that handle one type of rows: arrays, pandas or polars frames.

    In their signatures c is the position of a column, `who` names the rows in error messages, and
    `reference` is the background, which is in the same container as the returned rows.

    The user's numbers are never rounded, so that the explained prediction is that of the user's
    rows: `match_dtypes`, `convert_columns`, `concat` and `mix` return a dtype that can represent
    the numbers of both sides, see `common_dtype`. Only numbers computed by a game (`from_columns`)
    are rounded to the floats of the reference, as the model may accept no others.

    `typed` is False for rows such as a dictionary, whose columns have no dtypes. Their columns get
    the reference's integers and booleans if the values fit; so do rows from another container.
    """

    # (rows) → the column names; None if columns have no names.
    names: Callable[[R], tuple[str, ...] | None]
    # (rows, columns) → the rows with these columns only, in this order.
    select: Callable[[R, Sequence[int] | IntArray], R]
    # (parts) → the rows of all parts; an error if their columns differ.
    concat: Callable[[Sequence[R]], R]
    # (one, other) → whether they are identical, names and dtypes included; NaN equals NaN.
    equal: Callable[[R, R], bool]
    # (rows, c, who) → column c as a plain array; an error if neither numbers nor categories.
    column: Callable[[R, int, str], Column]
    # (rows, c) → column c as it is shown to the user, with any content.
    series: Callable[[R, int], pd.Series[Any]]
    # (rows) → an array of numbers if all columns are numbers, else of objects.
    to_array: Callable[[R], Array]
    # (rows) → the rows as a pandas frame.
    to_pandas: Callable[[R], pd.DataFrame]
    # (rows, c) → whether column c holds only true and false.
    is_boolean: Callable[[R, int], bool]
    # (rows, c) → numpy's dtype of column c; None for objects.
    dtype: Callable[[R, int], Dtype | None]
    # (rows, reference, who, typed) → the rows, in dtypes that also fit the reference's numbers.
    match_dtypes: Callable[[R, R, str, bool], R]
    # (columns, dtypes, reference, who) → the same, from plain arrays of another container.
    convert_columns: Callable[[Sequence[Column], Sequence[Dtype | None], R, str], R]
    # (columns, reference, who) → rows from plain arrays, in the reference's dtypes.
    from_columns: Callable[[Sequence[Column], R, str], R]
    # (rows, which, known, hidden, whose) → mixed rows, see `Table.mix`.
    mix: Callable[[R, Positions, BoolArray, R, Positions], R]


def as_numeric(data: npt.ArrayLike, who: str) -> Array:
    """Return data as a C-contiguous array of numbers; raise an error for anything else.

    `who` names the data in the error.
    """
    array = np.asarray(data)
    reason = str(array.dtype)
    if array.dtype.kind in "mM":
        raise TypeError(
            f"`{who}` holds dates or durations ({reason}). Turn them into numbers first, for"
            " example days: (dates - np.datetime64('2000-01-01')) / np.timedelta64(1, 'D')."
        )
    if array.dtype.kind == "O":
        # Checked before the cast, which would round large integers silently.
        check_exact(integer_magnitudes(array.flat), f"`{who}`")
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            reason = str(error)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"`{who}` holds values that are not numbers ({reason}). Pass a pandas or polars"
            " DataFrame, so that each column keeps its own type."
        )
    if array.dtype.kind in "iu":
        check_exact(np.asarray(array, dtype=np.float64), f"`{who}`")
    return np.ascontiguousarray(array)


def cast_if_lossless(values: Array, dtype: Dtype) -> Array:
    """Return `values` cast to `dtype` if nothing is lost, else unchanged.

    Rounding to a shorter float is no loss. An overflow is one, and so are fractions or missing
    values that are cast to integers.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        cast = values.astype(dtype, copy=False)
    may_round = dtype.kind == "f"
    return cast if is_lossless(np.asarray(cast, dtype=np.float64), values, may_round) else values


def is_lossless(cast: FloatArray, values: FloatArray, may_round: bool) -> bool:
    """Return whether `cast`, the result of casting `values`, still equals `values`.

    With `may_round` the numbers may be rounded to a shorter float, but must not overflow.
    """
    if may_round:
        # Only an overflow, which turns a number into infinity, is a loss then.
        return np.array_equal(np.isfinite(cast), np.isfinite(values))
    return np.array_equal(cast, values, equal_nan=True)


def common_dtype(*dtypes: Dtype) -> Dtype:
    """Return a dtype that can represent the numbers of all `dtypes` exactly.

    It depends on the dtypes alone, so a row gets the same numbers whatever rows it comes with.
    Integers of 2^53 and beyond are refused before (`check_exact`), so that float64 can represent
    the integers of any two dtypes.
    """
    return np.result_type(*dtypes)


def dtype_of_objects(numbers: FloatArray) -> Dtype:
    """Return a dtype for object data: bool if all its numbers are 0, 1 or NaN, else float64."""
    return np.dtype(np.bool_ if is_binary(numbers) else np.float64)


def is_binary(numbers: FloatArray) -> bool:
    """Return whether all numbers are 0, 1 or NaN."""
    return bool((np.isin(numbers, (0, 1)) | np.isnan(numbers)).all())


def integer_magnitudes(values: Iterable[object]) -> FloatArray:
    """Return the absolute values of the integers among `values`, capped at 2^53."""
    sizes = (abs(int(value)) for value in values if isinstance(value, (int, np.integer)))
    return np.array([min(size, int(EXACT_LIMIT)) for size in sizes], dtype=np.float64)


def check_exact(values: FloatArray, where: str) -> None:
    """Raise an error if a number is ±2^53 or beyond, where float64 cannot represent every integer.

    `where` begins the message, such as "Column 'id' of `X`".
    """
    if (np.abs(values) >= EXACT_LIMIT).any():
        raise ValueError(
            f"{where} holds whole numbers of 2^53 and beyond, which floating point cannot tell"
            " apart. Leave out an identifier, turn it into text, or use a coarser unit (seconds"
            " instead of nanoseconds)."
        )


def unseen_category_error(
    value: object, name: str, categories: Iterable[object], who: str, advice: str
) -> ValueError:
    """Return the error for a category that is not in the background's column `name`.

    `value` is the new category, `categories` are the known ones, and `who` names the rows. `advice`
    is the start of a sentence, such as "Set it to null, or add it to the Enum".
    """
    return ValueError(
        f"`{who}` has a category in column {name} that the background never saw: {quote(value)}."
        f" Known: {comma_list([*map(str, categories)])}. {advice} of the background's column if the"
        " model knows it."
    )


def as_numbers(values: Column, name: str, who: str) -> FloatArray:
    """Return a column as floats, NaN where missing; raise an error if it contains text.

    `name` and `who` are the names of the column and of the rows in the error.
    """
    if values.dtype != object:
        return np.asarray(values, dtype=np.float64)
    allowed = (bool, int, float, np.number)
    text = [value for value in values if value is not None and not isinstance(value, allowed)]
    if text:
        raise TypeError(
            f"Column {name} of `{who}` holds {text[0]!r} where the background holds numbers."
        )
    check_exact(integer_magnitudes(values), f"Column {name} of `{who}`")
    return np.array(
        [np.nan if value is None else float(value) for value in values], dtype=np.float64
    )


def as_text(values: Column, name: str, who: str) -> npt.NDArray[np.object_]:
    """Return a text column as objects, None where missing; raise an error if it contains numbers.

    `name` and `who` are the names of the column and of the rows in the error.
    """
    if values.dtype == object:
        return np.asarray(values, dtype=object)
    # A column of missing values alone is read as numbers, but may be one of text.
    if not np.isnan(np.asarray(values, dtype=np.float64)).all():
        raise TypeError(f"Column {name} of `{who}` holds numbers where the background holds text.")
    return np.full(len(values), None, dtype=object)


def equal_arrays(one: Array, other: Array) -> bool:
    """Return whether two arrays are identical: same shape, same dtype, and equal bit for bit."""
    # numpy's dtype of text depends on the longest text, which does not matter here.
    if one.dtype.kind == other.dtype.kind == "U":
        return np.array_equal(one, other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    return np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()


def _match_dtypes(rows: Array, reference: Array, who: str, typed: bool) -> Array:
    """Return an array of rows in a dtype that can also represent the numbers of `reference`.

    `reference` is the background, and `who` names the rows in an error. `typed` matters
    only for frames.
    """
    numbers = as_numeric(rows, who)
    return numbers.astype(common_dtype(numbers.dtype, reference.dtype), copy=False)


def _stack(columns: Sequence[Column], who: str) -> FloatArray:
    """Stack columns into an array of floats (n, c); raise an error if a column contains text.

    `who` names the rows in the error.
    """
    numbers = [as_numbers(column, f"at position {c}", who) for c, column in enumerate(columns)]
    return np.stack(numbers, axis=1)


def _convert_columns(
    columns: Sequence[Column],
    dtypes: Sequence[Dtype | None],
    reference: Array,
    who: str,
) -> Array:
    """Convert the columns of a frame to an array, without rounding.

    `dtypes` are the numpy dtypes of the columns in the frame, None for objects. The dtype of the
    array can also represent the numbers of `reference`.
    `reference` is the background, and `who` names the rows in an error.
    """
    numbers = _stack(columns, who)
    pairs = zip(numbers.T, dtypes, strict=True)
    own = [dtype or dtype_of_objects(column) for column, dtype in pairs]
    common = common_dtype(reference.dtype, *own)
    # Integers of a frame may be missing, those of an array cannot.
    if common.kind != "f" and np.isnan(numbers).any():
        return numbers
    return numbers.astype(common, copy=False)


def _from_columns(columns: Sequence[Column], reference: Array, who: str) -> Array:
    """Build an array from columns computed by a game, in the reference's dtype if they fit.

    `reference` is the background, and `who` names the rows in an error.
    """
    return cast_if_lossless(_stack(columns, who), reference.dtype)


def _mix(rows: Array, which: Positions, known: BoolArray, hidden: Array, whose: Positions) -> Array:
    """Return mixed rows (m, c): cells of ``rows[which]`` where `known`, else of ``hidden[whose]``.

    See `Table.mix`.
    """
    return np.where(known, rows[which], hidden[whose]).reshape(-1, known.shape[-1])


ARRAYS = Container[Array](
    names=lambda rows: None,
    select=lambda rows, columns: rows[:, columns],
    concat=np.concatenate,
    equal=equal_arrays,
    column=lambda rows, c, who: np.asarray(rows[:, c], dtype=np.float64),
    series=lambda rows, c: pd.Series(rows[:, c]),
    to_array=lambda rows: rows,
    to_pandas=lambda rows: pd.DataFrame(rows),
    is_boolean=lambda rows, c: rows.dtype == np.bool_,
    dtype=lambda rows, c: rows.dtype,
    match_dtypes=_match_dtypes,
    convert_columns=_convert_columns,
    from_columns=_from_columns,
    mix=_mix,
)


def pool_indices(
    n: int, which: Positions, known: BoolArray, whose: Positions
) -> Iterator[IntArray]:
    """Yield, for each column, the indices (m,) of the rows that the cells of mixed rows come from.

    The indices count the n rows first and then the hidden rows. A cell is taken from row `which` if
    its column is known, else from hidden row `whose`; see `Table.mix`.
    """
    for column in np.moveaxis(known, -1, 0):
        yield np.where(column, which, n + np.asarray(whose)).ravel()


def is_frame(data: object) -> bool:
    """Return whether `data` is a pandas or polars DataFrame, without importing polars."""
    own = type(data)
    return isinstance(data, pd.DataFrame) or (own.__module__.partition(".")[0], own.__name__) == (
        "polars",
        "DataFrame",
    )


def container_of(rows: Data) -> Container[Any]:
    """Return the `Container` for rows of this type: array, pandas frame or polars frame."""
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
    """Return data as an array (n, c) or a DataFrame.

    Accepts a table, a single row (a 1-D array, a Series or a dictionary), a list of dictionaries,
    or the background data of shap.
    """
    if is_frame(data):
        return data
    library = type(data).__module__.partition(".")[0]
    if library == "shap":
        return _from_shap_masker(data)
    if library == "scipy":
        raise TypeError(
            "A sparse matrix keeps no rows to mix. Pass `.toarray()` of it; for XGBoost, to which"
            " cells that are left out are missing, with NaN in their place."
        )
    if isinstance(data, (list, tuple)) and data and all(isinstance(row, Mapping) for row in data):
        uneven = sorted({str(key) for row in data for key in row.keys() ^ data[0].keys()})
        if uneven:
            raise ValueError(
                f"Some rows lack {comma_list(uneven)}. Give every row the same names, None where"
                " missing."
            )
        return pd.DataFrame(list(data))
    if type(data).__name__ == "LazyFrame":
        raise TypeError("A polars LazyFrame holds no rows yet. Call `.collect()` on it first.")
    if isinstance(data, pd.Series):
        return data.to_frame().T.infer_objects()
    if isinstance(data, Mapping):
        return pd.DataFrame([dict(data)])

    array = as_array("A table", data, None)
    if array.ndim == 1:
        array = array[None, :]
    if array.ndim != 2:
        raise ValueError(f"A table must have two axes, rows and columns; got shape {array.shape}.")
    return array


def _from_shap_masker(masker: Data) -> Data:
    """Return the rows of a shap masker, or of the result of ``shap.kmeans``.

    They are a DataFrame if their columns have names, else an array.
    """
    attributes = optional_attrs(masker, "data", "group_names", "feature_names")
    rows = attributes.get("data")
    labels = attributes.get("feature_names", attributes.get("group_names"))
    if not isinstance(rows, np.ndarray) or rows.ndim != 2:
        raise TypeError(
            f"A {type(masker).__name__} of shap holds no table. Pass the background rows"
            " themselves, or a game made by weightedshap.games.from_shap(model, masker, x)."
        )
    names = [] if labels is None else list(map(str, labels))
    # shap numbers columns that have no names: "0", "1", …
    is_unnamed = names in ([], [str(c) for c in range(rows.shape[1])])
    return rows if is_unnamed else pd.DataFrame(rows, columns=names).infer_objects()


def plain_column(rows: Data, c: int) -> Column:
    """Return column c as floats, or as objects if categorical; missing values are NaN or None."""
    return container_of(rows).column(rows, c, "X")


def take_rows(rows: Data, which: slice | IntArray) -> Data:
    """Return the rows `which` of an array or frame, in the same container."""
    return rows.iloc[which] if isinstance(rows, pd.DataFrame) else rows[which]


def concat_rows(parts: Sequence[Data]) -> Data:
    """Concatenate the rows of all parts, which must have the same type and the same columns."""
    if len({(type(part), np.shape(part)[1:]) for part in parts}) > 1:
        raise ValueError(
            "The rows of the parts must be all arrays, or all frames, with the same columns."
        )
    return container_of(parts[0]).concat(parts)
