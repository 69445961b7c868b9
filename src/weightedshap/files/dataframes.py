"""Frames column by column, each in its type, as arrays and JSON; text as UTF-8 bytes with the end
of each cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from weightedshap._checks import BoolArray, require
from weightedshap._lazy import pd
from weightedshap.inputs.containers import Array, Data

PLAIN = "biufcMm"
NULLABLE = {
    "boolean",
    "Float32",
    "Float64",
    *(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)),
}
POLARS_NUMBERS = {"Boolean", *NULLABLE} - {"boolean"}
SIMPLE = (type(None), bool, int, float, str, np.bool_, np.integer, np.floating)

Json = Any
"""What JSON can hold: dicts, lists, text, numbers, true, false and null."""
Packed = dict[str, Json]
Put = Callable[[Array, str], Packed]  # (array, name) → what stands for it in the JSON
Get = Callable[[Packed], Array]  # the reverse


def pack(frame: Data, put: Put) -> Packed:
    """A pandas or polars frame as JSON; its arrays are handed to `put`."""
    if isinstance(frame, pd.DataFrame):
        columns = [_pack_column(frame.iloc[:, c], f"{c}", put) for c in range(frame.shape[1])]
        labels = _pack_index(frame.columns, "labels", put)
        index = _pack_index(frame.index, "index", put)
        return {"columns": columns, "labels": labels, "index": index}
    columns = [_pack_polars(column, f"{c}", put) for c, column in enumerate(frame)]
    return {"polars": columns, "names": frame.columns, "rows": len(frame)}


def unpack(packed: Packed, get: Get) -> Data:
    """The reverse of `pack`."""
    if "polars" in packed:
        columns = [_unpack_polars(column, get) for column in packed["polars"]]
        if any(len(column) != packed["rows"] for column in columns):
            raise ValueError("the columns of a frame differ in length")
        return require("polars", "polars").DataFrame(
            dict(zip(packed["names"], columns, strict=True))
        )
    index = _unpack_index(packed["index"], get)
    columns = [pd.Series(_unpack_column(column, get), index=index) for column in packed["columns"]]
    return pd.DataFrame(dict(enumerate(columns)), index=index).set_axis(
        _unpack_index(packed["labels"], get), axis=1
    )


def _pack_index(index: pd.Index[Any], name: str, put: Put) -> Packed:
    names = [_pack_cell(level, "the name of an index") for level in index.names]
    if isinstance(index, pd.RangeIndex):
        return {"names": names, "range": [index.start, index.stop, index.step]}
    levels = [
        pd.Series(index.get_level_values(level), name="index") for level in range(index.nlevels)
    ]
    return {
        "names": names,
        "levels": [_pack_column(level, f"{name}_{i}", put) for i, level in enumerate(levels)],
    }


def _unpack_index(packed: Packed, get: Get) -> pd.Index[Any]:
    names = [_unpack_cell(name) for name in packed["names"]]
    if "range" in packed:
        return pd.RangeIndex(*packed["range"]).rename(names[0])
    levels = [_unpack_column(level, get) for level in packed["levels"]]
    return (
        pd.Index(levels[0], name=names[0])
        if len(levels) == 1
        else pd.MultiIndex.from_arrays(levels, names=names)
    )


def _pack_column(column: pd.Series[Any], name: str, put: Put) -> Packed:
    dtype: Any = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in PLAIN:
        return {"plain": put(column.to_numpy(), name)}
    if isinstance(dtype, pd.CategoricalDtype):
        categories = _pack_column(
            pd.Series(dtype.categories, name=column.name), f"{name}_categories", put
        )
        codes = put(column.cat.codes.to_numpy(), name)
        return {"codes": codes, "categories": categories, "ordered": bool(dtype.ordered)}
    missing = column.isna().to_numpy()
    if isinstance(dtype, pd.StringDtype):
        text = _pack_text(column.to_list(), missing, name, put)
        return {
            "text": text,
            "storage": dtype.storage,
            "missing": "NA" if dtype.na_value is pd.NA else "nan",
        }
    if isinstance(dtype, pd.DatetimeTZDtype):
        utc = column.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy()
        return {"dates": put(utc, name), "zone": str(dtype.tz)}
    if str(dtype) in NULLABLE:
        filled = column.fillna(False if str(dtype) == "boolean" else 0).to_numpy(
            dtype=dtype.numpy_dtype
        )
        return {
            "numbers": put(filled, name),
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
    if "plain" in packed:
        return get(packed["plain"])
    if "codes" in packed:
        dtype = pd.CategoricalDtype(
            pd.Index(_unpack_column(packed["categories"], get)), ordered=packed["ordered"]
        )
        return pd.Categorical.from_codes(get(packed["codes"]), dtype=dtype)
    if "text" in packed:
        missing = pd.NA if packed["missing"] == "NA" else np.nan
        storage: Json = packed["storage"] if find_spec("pyarrow") else "python"
        return pd.array(
            _unpack_text(packed["text"], missing, get),
            dtype=pd.StringDtype(storage, na_value=missing),
        )
    if "dates" in packed:
        return (
            pd.DatetimeIndex(get(packed["dates"]))
            .tz_localize("UTC")
            .tz_convert(packed["zone"])
            .array
        )
    if "numbers" in packed:
        if packed["type"] not in NULLABLE:
            raise ValueError(f"a column has the unknown type {packed['type']!r}")
        numbers = pd.array(get(packed["numbers"]), dtype=packed["type"])
        numbers[np.asarray(get(packed["missing"]), dtype=np.bool_)] = pd.NA
        return numbers
    return np.array([_unpack_cell(cell) for cell in packed["cells"]], dtype=object)


def _pack_polars(column: Any, name: str, put: Put) -> Packed:
    dtype = str(column.dtype)
    missing = column.is_null().to_numpy()
    if dtype in POLARS_NUMBERS:
        filled = column.fill_null(False if dtype == "Boolean" else 0).to_numpy()
        return {
            "numbers": put(filled, name),
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


def _unpack_polars(packed: Packed, get: Get) -> Any:
    polars = require("polars", "polars")
    dtype = packed["type"]
    if "numbers" in packed:
        column = polars.Series(get(packed["numbers"]))
        missing = np.asarray(get(packed["missing"]), dtype=np.bool_)
        if str(column.dtype) != dtype or dtype not in POLARS_NUMBERS:
            raise ValueError(f"a column has the unknown type {dtype!r}")
        return column.set(polars.Series(missing), None) if missing.any() else column
    types = {"String": polars.String, "Categorical": polars.Categorical}
    wanted = polars.Enum(packed["levels"]) if dtype == "Enum" else types[dtype]
    return polars.Series(
        _unpack_text(packed["text"], None, get).tolist(), dtype=polars.String
    ).cast(wanted)


def _pack_text(cells: Sequence[object], missing: BoolArray, name: str, put: Put) -> Packed:
    encoded = [
        b"" if gone else str(cell).encode("utf-8", "surrogatepass")
        for cell, gone in zip(cells, missing)
    ]
    content = np.frombuffer(b"".join(encoded), dtype=np.uint8)
    ends = np.cumsum([len(cell) for cell in encoded], dtype=np.int64)
    pieces: dict[str, Array] = {"bytes": content, "ends": ends, "missing": np.asarray(missing)}
    return {piece: put(array, f"{name}_{piece}") for piece, array in pieces.items()}


def _unpack_text(packed: Packed, missing: object, get: Get) -> Array:
    content = get(packed["bytes"]).tobytes()
    ends = get(packed["ends"])
    gone = get(packed["missing"])
    starts = np.concatenate([[0], ends])[:-1]
    if (
        len(ends) != len(gone)
        or (starts > ends).any()
        or (len(ends) and int(ends[-1]) != len(content))
    ):
        raise ValueError("a column of text is cut at impossible places")
    spans = zip(starts.tolist(), ends.tolist(), gone.tolist(), strict=True)
    cells = [
        missing if none else content[a:b].decode("utf-8", "surrogatepass") for a, b, none in spans
    ]
    return np.array(cells, dtype=object)


def pack_simple(value: object) -> Json:
    """One of the `SIMPLE` values as JSON, which knows neither NaN nor infinity."""
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else {"float": repr(float(value))}
    return value.item() if isinstance(value, (np.bool_, np.integer)) else value


def _pack_cell(cell: object, where: str) -> Json:
    """A cell of a column of mixed ones."""
    if cell is pd.NA or cell is pd.NaT:
        return {"missing": "NA" if cell is pd.NA else "NaT"}
    if isinstance(cell, SIMPLE):
        return pack_simple(cell)
    said = f"There is a {type(cell).__name__} in {where}, which cannot be saved."
    raise TypeError(f"{said} Convert it with astype first.")


def _unpack_cell(cell: Json) -> object:
    if not isinstance(cell, dict):
        return cell
    return (
        {"NA": pd.NA, "NaT": pd.NaT}[cell["missing"]] if "missing" in cell else float(cell["float"])
    )
