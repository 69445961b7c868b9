"""Convert data frames to arrays and JSON and back, column by column, with their types.

Text is stored as UTF-8 bytes, with the position where each cell ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from weightedshap._checks import BoolArray, require
from weightedshap._lazy import pd
from weightedshap.inputs.containers import Array, Data

PLAIN_KINDS = "biufcMm"  # kinds of numpy dtypes whose columns are written as they are
NULLABLE_TYPES = {
    "boolean",
    "Float32",
    "Float64",
    *(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)),
}
POLARS_NUMBERS = {"Boolean", *NULLABLE_TYPES} - {"boolean"}
SIMPLE_TYPES = (type(None), bool, int, float, str, np.bool_, np.integer, np.floating)

# A value of JSON: a dict, list, text, number, true, false or null. The content of a file can have
# any type until it is inspected; any mistake in it is reported as an `UnreadableFile`.
Json = Any
Packed = dict[str, Json]
Put = Callable[[Array, str], Packed]  # (array, name) → the JSON that refers to it
Get = Callable[[Packed], Array]  # the JSON that `Put` returned → the array


def pack(frame: Data, put: Put) -> Packed:
    """Convert a pandas or polars data frame to JSON; store its arrays with `put`.

    `put` takes an array and a name, and returns the JSON that refers to the array.
    """
    if isinstance(frame, pd.DataFrame):
        columns = [_pack_column(frame.iloc[:, c], f"{c}", put) for c in range(frame.shape[1])]
        labels = _pack_index(frame.columns, "labels", put)
        index = _pack_index(frame.index, "index", put)
        return {"columns": columns, "labels": labels, "index": index}
    columns = [_pack_polars_column(column, f"{c}", put) for c, column in enumerate(frame)]
    return {"polars": columns, "names": frame.columns, "rows": len(frame)}


def unpack(packed: Packed, get: Get) -> Data:
    """Convert the JSON that `pack` returned back to a data frame.

    `get` returns the array that a piece of JSON refers to.
    """
    if "polars" in packed:
        columns = [_unpack_polars_column(column, get) for column in packed["polars"]]
        if any(len(column) != packed["rows"] for column in columns):
            raise ValueError("the columns of a frame differ in length")
        named = dict(zip(packed["names"], columns, strict=True))
        return require("polars", "polars").DataFrame(named)

    index = _unpack_index(packed["index"], get)
    columns = [pd.Series(_unpack_column(column, get), index=index) for column in packed["columns"]]
    # Labels may repeat, so that columns are counted first and named afterwards.
    frame = pd.DataFrame(dict(enumerate(columns)), index=index)
    return frame.set_axis(_unpack_index(packed["labels"], get), axis=1)


def _pack_index(index: pd.Index[Any], name: str, put: Put) -> Packed:
    """Convert a pandas index (row or column labels) to JSON; store its arrays with `put`."""
    names = [_pack_cell(level, "the name of an index") for level in index.names]
    if isinstance(index, pd.RangeIndex):
        return {"names": names, "range": [index.start, index.stop, index.step]}
    levels = [
        pd.Series(index.get_level_values(level), name="index") for level in range(index.nlevels)
    ]
    packed = [_pack_column(level, f"{name}_{i}", put) for i, level in enumerate(levels)]
    return {"names": names, "levels": packed}


def _unpack_index(packed: Packed, get: Get) -> pd.Index[Any]:
    """Convert the JSON that `_pack_index` returned back to a pandas index."""
    names = [_unpack_cell(name) for name in packed["names"]]
    if "range" in packed:
        return pd.RangeIndex(*packed["range"]).rename(names[0])
    levels = [_unpack_column(level, get) for level in packed["levels"]]
    if len(levels) == 1:
        index: pd.Index[Any] = pd.Index(levels[0], name=names[0])
        return index
    return pd.MultiIndex.from_arrays(levels, names=names)


def _pack_column(column: pd.Series[Any], name: str, put: Put) -> Packed:
    """Convert a pandas column to JSON; raise an error for a type that would need pickle."""
    dtype: Any = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in PLAIN_KINDS:
        return {"plain": put(column.to_numpy(), name)}
    if isinstance(dtype, pd.CategoricalDtype):
        categories = pd.Series(dtype.categories, name=column.name)
        packed_categories = _pack_column(categories, f"{name}_categories", put)
        return {
            "codes": put(column.cat.codes.to_numpy(), name),
            "categories": packed_categories,
            "ordered": bool(dtype.ordered),
        }
    missing = column.isna().to_numpy()
    if isinstance(dtype, pd.StringDtype):
        return {
            "text": _pack_text(column.to_list(), missing, name, put),
            "storage": dtype.storage,
            "missing": "NA" if dtype.na_value is pd.NA else "nan",
        }
    if isinstance(dtype, pd.DatetimeTZDtype):
        utc = column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
        return {"dates": put(utc, name), "zone": str(dtype.tz)}
    if str(dtype) in NULLABLE_TYPES:
        fill = False if str(dtype) == "boolean" else 0
        numbers = column.fillna(fill).to_numpy(dtype=dtype.numpy_dtype)
        return {
            "numbers": put(numbers, name),
            "missing": put(missing, f"{name}_missing"),
            "type": str(dtype),
        }
    if pd.api.types.is_object_dtype(dtype):
        return {"cells": [_pack_cell(cell, f"column {column.name!r}") for cell in column]}
    raise TypeError(
        f"Column {column.name!r} has type {dtype}, which cannot be saved. Convert it with astype"
        " first."
    )


def _unpack_column(packed: Packed, get: Get) -> Any:
    """Convert the JSON that `_pack_column` returned back to a numpy or pandas array."""
    if "plain" in packed:
        return get(packed["plain"])
    if "codes" in packed:
        categories = pd.Index(_unpack_column(packed["categories"], get))
        dtype = pd.CategoricalDtype(categories, ordered=packed["ordered"])
        return pd.Categorical.from_codes(get(packed["codes"]), dtype=dtype)
    if "text" in packed:
        missing = pd.NA if packed["missing"] == "NA" else np.nan
        storage: Json = packed["storage"] if find_spec("pyarrow") else "python"
        text = _unpack_text(packed["text"], missing, get)
        return pd.array(text, dtype=pd.StringDtype(storage, na_value=missing))
    if "dates" in packed:
        utc = pd.DatetimeIndex(get(packed["dates"])).tz_localize("UTC")
        return utc.tz_convert(packed["zone"]).array
    if "numbers" in packed:
        if packed["type"] not in NULLABLE_TYPES:
            raise ValueError(f"a column has the unknown type {packed['type']!r}")
        numbers = pd.array(get(packed["numbers"]), dtype=packed["type"])
        numbers[np.asarray(get(packed["missing"]), dtype=np.bool_)] = pd.NA
        return numbers
    return np.array([_unpack_cell(cell) for cell in packed["cells"]], dtype=object)


def _pack_polars_column(column: Any, name: str, put: Put) -> Packed:
    """Convert a polars Series to JSON; only numbers, text and categories can be saved."""
    dtype = str(column.dtype)
    missing = column.is_null().to_numpy()
    if dtype in POLARS_NUMBERS:
        numbers = column.fill_null(False if dtype == "Boolean" else 0).to_numpy()
        return {
            "numbers": put(numbers, name),
            "missing": put(missing, f"{name}_missing"),
            "type": dtype,
        }
    family = dtype.partition("(")[0]
    if family in ("String", "Categorical", "Enum"):
        levels = column.dtype.categories.to_list() if family == "Enum" else None
        return {
            "text": _pack_text(column.to_list(), missing, name, put),
            "type": family,
            "levels": levels,
        }
    raise TypeError(
        f"Column {column.name!r} has type {dtype}, which cannot be saved. Cast it first."
    )


def _unpack_polars_column(packed: Packed, get: Get) -> Any:
    """Convert the JSON that `_pack_polars_column` returned back to a polars Series."""
    polars = require("polars", "polars")
    dtype = packed["type"]
    if "numbers" in packed:
        column = polars.Series(get(packed["numbers"]))
        missing = np.asarray(get(packed["missing"]), dtype=np.bool_)
        if str(column.dtype) != dtype or dtype not in POLARS_NUMBERS:
            raise ValueError(f"a column has the unknown type {dtype!r}")
        return column.set(polars.Series(missing), None) if missing.any() else column
    types = {"String": polars.String, "Categorical": polars.Categorical}
    polars_type = polars.Enum(packed["levels"]) if dtype == "Enum" else types[dtype]
    text = _unpack_text(packed["text"], None, get).tolist()
    return polars.Series(text, dtype=polars.String).cast(polars_type)


def _pack_text(cells: Sequence[object], missing: BoolArray, name: str, put: Put) -> Packed:
    """Convert a text column to JSON; store its bytes, cell ends and missing cells with `put`."""
    encoded = [
        b"" if is_missing else str(cell).encode("utf-8", "surrogatepass")
        for cell, is_missing in zip(cells, missing)
    ]
    pieces: dict[str, Array] = {
        "bytes": np.frombuffer(b"".join(encoded), dtype=np.uint8),
        "ends": np.cumsum([len(cell) for cell in encoded], dtype=np.int64),
        "missing": np.asarray(missing),
    }
    return {piece: put(array, f"{name}_{piece}") for piece, array in pieces.items()}


def _unpack_text(packed: Packed, missing_value: object, get: Get) -> Array:
    """Convert the JSON that `_pack_text` returned back to text cells, as an array of objects.

    Missing cells become `missing_value`.
    """
    content = get(packed["bytes"]).tobytes()
    ends = get(packed["ends"])
    missing = get(packed["missing"])
    starts = np.concatenate([[0], ends])[:-1]
    covers_content = not len(ends) or int(ends[-1]) == len(content)
    if len(ends) != len(missing) or (starts > ends).any() or not covers_content:
        raise ValueError("a column of text is cut at impossible places")
    spans = zip(starts.tolist(), ends.tolist(), missing.tolist(), strict=True)
    cells = [
        missing_value if is_missing else content[start:end].decode("utf-8", "surrogatepass")
        for start, end, is_missing in spans
    ]
    return np.array(cells, dtype=object)


def pack_simple(value: object) -> Json:
    """Convert None, a boolean, a number or text to JSON; NaN and infinity are stored as text."""
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else {"float": repr(float(value))}
    return value.item() if isinstance(value, (np.bool_, np.integer)) else value


def _pack_cell(cell: object, place: str) -> Json:
    """Convert one cell of an object column to JSON; `place` names the column in an error."""
    if cell is pd.NA or cell is pd.NaT:
        return {"missing": "NA" if cell is pd.NA else "NaT"}
    if isinstance(cell, SIMPLE_TYPES):
        return pack_simple(cell)
    raise TypeError(
        f"There is a {type(cell).__name__} in {place}, which cannot be saved. Convert it with"
        " astype first."
    )


def _unpack_cell(cell: Json) -> object:
    """Convert the JSON that `_pack_cell` returned back to the cell."""
    if not isinstance(cell, dict):
        return cell
    if "missing" in cell:
        return {"NA": pd.NA, "NaT": pd.NaT}[cell["missing"]]
    return float(cell["float"])
