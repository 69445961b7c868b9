"""Export: an Explanation as a frame of pandas or polars, and for shap and shapiq.

Plots of shap and shapiq expect base + Σ φ = f(x), so weighted attributions can be normalised.
`to_frame`, `to_shap` and `to_shapiq` are methods of `Explanation`.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from weightedshap._checks import (
    BoolArray,
    FloatArray,
    IntArray,
    check_choice,
    require,
    resolve_output,
)
from weightedshap._format import plural
from weightedshap._lazy import pd
from weightedshap.inputs import Data, container_of, is_frame

if TYPE_CHECKING:
    from weightedshap.explanation.result import Explanation

MIN_FACTOR = 0.1
MAX_FACTOR = 10.0
Z95 = 1.959963984540054

SHAP_ALTERNATIVES = {
    "abs": "The mean of |values| is `importance()`; `to_shap().abs` is shap's.",
    "mean": "The mean of |values| is `importance()`; `values.mean(axis=0)` keeps the signs.",
    "cohorts": (
        "Select rows, explanation[mask], and compare their `importance()`; `to_shap().cohorts` is"
        " shap's."
    ),
    "sum": (
        "What all attributions leave of the prediction is `efficiency_gap`; `values.sum(axis=1)` is"
        " their sum."
    ),
}
"""Advice for attributes that shap's Explanation has and this library's does not have."""


def to_frame(
    explanation: Explanation, kind: str = "tidy", data: bool = False, to: str | None = None
) -> Data:
    """Return the attributions as a DataFrame of pandas or polars.

    `kind` is "tidy" or "wide". "tidy": one row for each explained row, feature and output, with
    value, shapley, rank and weight label; `data` adds the value of the feature. "wide": one row for
    each explained row (and output), one column for each feature; with `data` the columns of the
    explained rows follow, under "data", and the attributions are under "attribution".

    `to` is "pandas", "polars", or "default", the library of `explanation.data`, or else pandas;
    None follows scikit-learn's setting `transform_output`. In pandas, rows keep their index, and
    outputs of "wide" become its second level; in polars rows and outputs are columns, and
    two-level names are joined as in scikit-learn: "data__age".
    """
    check_choice("kind of frame", kind, ("tidy", "wide"))
    if not isinstance(data, bool):
        raise TypeError(
            "`data` must be True or False: whether the frame also holds the data of the explained"
            f" rows; got a {type(data).__name__}."
        )
    rows = explanation.data
    if data and (rows is None or rows.shape[1] != len(explanation.feature_names)):
        raise ValueError(
            "Features are no columns of the rows explained (groups, or a game), so they have no"
            " values."
        )
    build_frame = _polars_frame if frame_library(to, rows) == "polars" else _pandas_frame
    return build_frame(explanation, kind == "wide", rows if data else None)


def frame_library(to: str | None, rows: Data = None) -> str:
    """Return the library of the frame to build, "pandas" or "polars", from the option `to`.

    None follows scikit-learn's setting `transform_output`; "default" is the library of `rows`, or
    else pandas.
    """
    if to is None:
        to = "default"
        # Without an import: where scikit-learn is not loaded, nobody has set its options.
        if "sklearn" in sys.modules:
            to = sys.modules["sklearn"].get_config()["transform_output"]
    library = check_choice("library of frames", to, ("pandas", "polars", "default"))
    if library != "default":
        return library
    return "polars" if is_frame(rows) and not isinstance(rows, pd.DataFrame) else "pandas"


def _pandas_frame(explanation: Explanation, wide: bool, rows: Data) -> pd.DataFrame:
    """Return the attributions as a pandas DataFrame, wide or tidy; add the data `rows` if given."""
    names = list(explanation.feature_names)
    has_index = isinstance(explanation.data, pd.DataFrame)
    index = explanation.data.index if has_index else pd.RangeIndex(len(explanation), name="row")
    cells = None if rows is None else container_of(rows).to_pandas(rows).set_axis(names, axis=1)
    if not wide:
        by_column = None if cells is None else cells.to_numpy(dtype=object).ravel("F")
        columns = _long_format(explanation, by_column)
        return pd.DataFrame(columns, index[columns["row"]] if has_index else None)

    row, output, values = _frame_rows(explanation)
    if explanation.has_outputs:
        index = pd.MultiIndex.from_arrays(
            [index[row], output], names=[index.name or "row", "output"]
        )
    frame = pd.DataFrame(values, index, pd.Index(names, name="feature"))
    if cells is None:
        return frame
    data = cells.iloc[row].set_axis(index)
    return pd.concat({"attribution": frame, "data": data}, axis=1)


def _polars_frame(explanation: Explanation, wide: bool, rows: Data) -> Data:
    """Return the attributions as a polars DataFrame, wide or tidy; add the data `rows` if given."""
    pl = require("polars", "polars")
    names = explanation.feature_names
    cells = rows
    if rows is not None and not isinstance(rows, pl.DataFrame):
        cells = pl.from_pandas(container_of(rows).to_pandas(rows))
    if not wide:
        by_column = None if cells is None else cells.unpivot()["value"]
        return pl.DataFrame(_long_format(explanation, by_column))

    row, output, values = _frame_rows(explanation)
    columns = []
    if explanation.has_outputs:
        columns += [pl.Series("row", row), pl.Series("output", output)]
    if cells is None:
        columns += [pl.Series(name, phi) for name, phi in zip(names, values.T)]
        return pl.DataFrame(columns)
    columns += [pl.Series(f"attribution__{name}", phi) for name, phi in zip(names, values.T)]
    columns += [column.gather(row).alias(f"data__{name}") for name, column in zip(names, cells)]
    return pl.DataFrame(columns)


def _long_format(explanation: Explanation, cells: Data) -> dict[str, Any]:
    """Return the columns of a tidy frame, with an entry for each row, feature and output (n·d·k).

    `cells` (d·n) are the values of the features, column after column, or None.
    """
    n, d, k = (*explanation.values.shape, 1)[:3]
    row, feature, output = (positions.ravel() for positions in np.indices((n, d, k)))
    columns: dict[str, Any] = {
        "row": row,
        "feature": np.asarray(explanation.feature_names)[feature],
    }
    if explanation.has_outputs:
        columns["output"] = np.asarray(explanation.output_names)[output]
    if cells is not None:
        columns["data"] = cells[feature * n + row]
    columns["value"] = explanation.values.ravel()
    columns["shapley"] = explanation.shapley.ravel()
    columns["rank"] = (np.argsort(explanation.orders, axis=1) + 1).ravel()
    if explanation.standard_errors is not None:
        columns["standard_error"] = explanation.standard_errors.ravel()
    columns["weight"] = explanation.weight_labels.reshape(n, k)[row, output]
    return columns


def _frame_rows(explanation: Explanation) -> tuple[IntArray, npt.NDArray[np.str_], FloatArray]:
    """Return the row positions, output names and attributions (n·k, d) for a wide frame."""
    n, d, k = (*explanation.values.shape, 1)[:3]
    row, output = np.divmod(np.arange(n * k), k)
    names = np.asarray(explanation.output_names)[output]
    values = np.moveaxis(explanation.values, 1, -1).reshape(-1, d)
    return row, names, values


def scale_factors(explanation: Explanation) -> FloatArray:
    """Return (f(x) − base) / Σ φ (n[, k]), the factor that makes attributions add up to f(x).

    Factors outside (0.1, 10) are NaN: scaled values would have little to do with φ.
    """
    total = explanation.predictions - explanation.base_values
    sums = explanation.values.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(total == sums, 1.0, total / sums)
    return np.where((factor > MIN_FACTOR) & (factor < MAX_FACTOR), factor, np.nan)


def count_text(marked: BoolArray) -> str:
    """Return the number of marked rows (n,) or attributions (n, k) as text: ``12 of 20 rows``."""
    count = f"{int(marked.sum()):,}"
    rows = plural(len(marked), "row")
    if marked.ndim == 1:
        return f"{count} of {rows}"
    outputs = plural(marked.shape[1], "output")
    return f"{count} of {plural(marked.size, 'attribution')} ({rows} × {outputs})"


def normalise(
    explanation: Explanation, how: str
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.str_]]:
    """Scale or shift the attributions (n, d[, k]) so that base + Σ φ = f(x).

    `how` is "shift" or "scale". "shift" adds the same number to every feature. "scale" multiplies
    by `scale_factors`, which keeps the ranking, and shifts rows without a factor. Returns the
    values, the factor of each row (n[, k]), and "scale" or "shift" for each row.
    """
    check_choice("normalisation", how, ("scale", "shift"))
    d = explanation.values.shape[1]
    n_players = explanation.family.d
    if d != n_players:
        raise ValueError(
            f"Only {d} of {n_players} features are selected, and they cannot make up the whole"
            " prediction. Normalise first, and select from the result."
        )
    factor = scale_factors(explanation)
    can_scale = ~np.isnan(factor) & (how == "scale")
    factor = np.where(can_scale, factor, 1.0)
    values = explanation.values * factor[:, None]
    gap = explanation.predictions - explanation.base_values - values.sum(axis=1)
    return values + (gap / d)[:, None], factor, np.where(can_scale, "scale", "shift")


def to_shap(explanation: Explanation, normalize: str | None = None) -> Any:
    """Convert an explanation to a `shap.Explanation`; `normalize` makes values add up to f(x).

    `normalize` is "scale" or "shift"; None leaves the values unchanged. Standard errors become
    `error_std` and, as 95 % intervals, `lower_bounds` and `upper_bounds`. Columns that are not
    numeric are coded in `data`, and kept in `display_data`; groups and games have no `data`. The
    attribute `normalized_by` (n[, k]), which is lost in shap's slices, is "shift" for rows that
    "scale" had to shift; a warning tells how many.
    """
    shap = require("shap", "shap")
    values = explanation.values
    errors = explanation.standard_errors
    normalized_by = None
    if normalize is not None:
        values, factor, normalized_by = normalise(explanation, normalize)
        if errors is not None:
            errors = errors * factor[:, None]
        shifted = normalized_by == "shift"
        if normalize == "scale" and shifted.any():
            warnings.warn(
                f"{count_text(shifted)} could not be scaled to add up to the prediction and were"
                " shifted instead, see `normalized_by`.",
                stacklevel=2,
            )
    bounds = {}
    if errors is not None:
        bounds["lower_bounds"] = values - Z95 * errors
        bounds["upper_bounds"] = values + Z95 * errors
    data, display_data = _numbers_and_display(explanation)
    exported = shap.Explanation(
        values,
        base_values=explanation.base_values,
        data=data,
        display_data=display_data,
        feature_names=list(explanation.feature_names),
        output_names=list(explanation.output_names) if explanation.has_outputs else None,
        error_std=errors,
        **bounds,
    )
    exported.normalized_by = normalized_by
    return exported


def to_shapiq(
    explanation: Explanation, row: int, output: int | str = 0, normalize: str | None = None
) -> Any:
    """Convert the attributions of one row and output to `shapiq.InteractionValues` of order one.

    Its index is "SV", the closest one that shapiq has.
    """
    shapiq = require("shapiq", "shapiq")
    o = output_index(explanation, output)
    row = row_position(explanation, row)
    values = explanation.values if normalize is None else normalise(explanation, normalize)[0]
    phi = values[row]
    base = explanation.base_values[row]
    if explanation.has_outputs:
        phi = phi[:, o]
        base = base[o]
    sampled = explanation.standard_errors is not None
    place_of_players: dict[tuple[int, ...], int] = {(): 0}
    for i in range(len(phi)):
        place_of_players[(i,)] = i + 1
    return shapiq.InteractionValues(
        np.concatenate([[base], phi]),
        baseline_value=float(base),
        index="SV",
        min_order=0,
        max_order=1,
        n_players=len(phi),
        interaction_lookup=place_of_players,
        estimated=sampled,
        estimation_budget=int(explanation.n_evaluations[row]) if sampled else None,
    )


def output_index(explanation: Explanation, output: int | str) -> int:
    """Return the position of an output, given by its position or name; check that it exists."""
    if not hasattr(explanation, "output_names"):
        raise TypeError(f"An Explanation is needed here; got {type(explanation).__name__}.")
    names = explanation.output_names if explanation.has_outputs else explanation.output_names[:1]
    return resolve_output(output, names or ("output",))


def row_position(explanation: Explanation, row: int) -> int:
    """Check the position of a row, which may be negative; return it as 0..n−1."""
    n = len(explanation)
    if isinstance(row, bool) or not isinstance(row, (int, np.integer)) or not -n <= row < n:
        raise ValueError(
            f"`row` must be a position 0..{n - 1} among the rows explained; got {row!r}."
        )
    return int(row) % n


def _numbers_and_display(explanation: Explanation) -> tuple[FloatArray | None, Any]:
    """Return the data as numbers (n, d), and the original data if some column is not numeric.

    Both are None if the features are not the columns of the data.
    """
    data = explanation.data
    d = explanation.values.shape[1]
    if data is None or data.shape[1:] != (d,):
        return None, None
    frame = container_of(data).to_pandas(data)
    numbers = np.column_stack([encode_categories(frame.iloc[:, c]) for c in range(d)])
    all_numeric = all(map(pd.api.types.is_numeric_dtype, frame.dtypes))
    return numbers, None if all_numeric else frame.to_numpy(dtype=object)


def encode_categories(column: pd.Series[Any]) -> FloatArray:
    """Return a column as floats: categories, dates and text by their sort order; NaN if missing."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    is_sortable = isinstance(column.dtype, pd.CategoricalDtype) or column.dtype.kind in "Mm"
    if not is_sortable:
        column = column.astype("str").where(column.notna())
    codes = pd.Categorical(column).codes
    return np.where(codes < 0, np.nan, codes.astype(np.float64))
