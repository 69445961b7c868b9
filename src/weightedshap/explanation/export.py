"""An Explanation for shap and shapiq, whose plots want base + Σ φ = f(x): so weighted ones are
normalised."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from weightedshap._checks import BoolArray, FloatArray, IntArray, one_of, output_position, require
from weightedshap._format import plural
from weightedshap._lazy import pd
from weightedshap.inputs import Data, is_frame, kind_of

if TYPE_CHECKING:
    from weightedshap.explanation.result import Explanation

LEAST_FACTOR = 0.1
LARGEST_FACTOR = 10.0
Z95 = 1.959963984540054

INSTEAD = {
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
"""For names that shap's Explanation has and ours has not."""


def to_frame(
    explanation: Explanation, kind: str = "tidy", data: bool = False, to: str | None = None
) -> Data:
    """The values as a DataFrame of pandas or polars.

    "tidy": one row for each explained row, feature and output: value, shapley, rank, weight label;
    `data` adds what the feature is there. "wide": one row for each explained row (and output), one
    column for each feature; with `data` they stand beside the columns of the rows, as "attribution"
    and "data".

    `to` is "pandas", "polars", or "default": what `explanation.data` is, or else pandas; None is
    what scikit-learn's `transform_output` is set to. In pandas rows keep their index, which outputs
    of "wide" join; in polars, which has none, these are columns, and what stands side by side is
    named as scikit-learn does: "data__age".
    """
    one_of("kind of frame", kind, ("tidy", "wide"))
    if not isinstance(data, bool):
        said = (
            "`data` must be True or False: whether the rows explained are to stand beside their"
            " values"
        )
        raise TypeError(f"{said}; got a {type(data).__name__}.")
    rows = explanation.data
    if data and (rows is None or rows.shape[1] != len(explanation.feature_names)):
        raise ValueError(
            "Features are no columns of the rows explained (groups, or a game), so they have no"
            " values."
        )
    made = _in_polars if frame_library(to, rows) == "polars" else _in_pandas
    return made(explanation, kind == "wide", rows if data else None)


def frame_library(to: str | None, rows: Data = None) -> str:
    """The library of a frame: `to`, for None scikit-learn's `transform_output`, for "default" the
    one of `rows`."""
    if to is None:  # what is not loaded was not set either
        to = (
            sys.modules["sklearn"].get_config()["transform_output"]
            if "sklearn" in sys.modules
            else "default"
        )
    if (found := one_of("library of frames", to, ("pandas", "polars", "default"))) != "default":
        return found
    return "polars" if is_frame(rows) and not isinstance(rows, pd.DataFrame) else "pandas"


def _in_pandas(explanation: Explanation, wide: bool, rows: Data) -> pd.DataFrame:
    names = list(explanation.feature_names)
    indexed = isinstance(explanation.data, pd.DataFrame)
    own = explanation.data.index if indexed else pd.RangeIndex(len(explanation), name="row")
    cells = None if rows is None else kind_of(rows).to_pandas(rows).set_axis(names, axis=1)
    if not wide:
        columns = _tidy(
            explanation, None if cells is None else cells.to_numpy(dtype=object).ravel("F")
        )
        return pd.DataFrame(columns, own[columns["row"]] if indexed else None)
    row, output, values = _lines(explanation)
    if explanation.has_outputs:
        own = pd.MultiIndex.from_arrays([own[row], output], names=[own.name or "row", "output"])
    frame = pd.DataFrame(values, own, pd.Index(names, name="feature"))
    beside = {} if cells is None else {"attribution": frame, "data": cells.iloc[row].set_axis(own)}
    return pd.concat(beside, axis=1) if beside else frame


def _in_polars(explanation: Explanation, wide: bool, rows: Data) -> Data:
    pl = require("polars", "polars")
    names = explanation.feature_names
    cells = (
        rows
        if rows is None or isinstance(rows, pl.DataFrame)
        else pl.from_pandas(kind_of(rows).to_pandas(rows))
    )
    if not wide:
        return pl.DataFrame(_tidy(explanation, None if cells is None else cells.unpivot()["value"]))
    row, output, values = _lines(explanation)
    columns = (
        [pl.Series("row", row), pl.Series("output", output)] if explanation.has_outputs else []
    )
    beside = (
        []
        if cells is None
        else [own.gather(row).alias(f"data__{name}") for name, own in zip(names, cells)]
    )
    columns += [
        pl.Series("attribution__" * bool(beside) + name, own) for name, own in zip(names, values.T)
    ]
    return pl.DataFrame(columns + beside)


def _tidy(explanation: Explanation, cells: Data) -> dict[str, Any]:
    """Columns of n·d·k cells; `cells` (d·n) are what the features are, column after column, or
    None."""
    n, d, k = (*explanation.values.shape, 1)[:3]
    row, feature, output = (a.ravel() for a in np.indices((n, d, k)))
    columns: dict[str, Any] = {
        "row": row,
        "feature": np.asarray(explanation.feature_names)[feature],
    }
    if explanation.has_outputs:
        columns["output"] = np.asarray(explanation.output_names)[output]
    if cells is not None:
        columns["data"] = cells[feature * n + row]
    columns |= {"value": explanation.values.ravel(), "shapley": explanation.shapley.ravel()}
    columns["rank"] = (np.argsort(explanation.orders, axis=1) + 1).ravel()
    if explanation.standard_errors is not None:
        columns["standard_error"] = explanation.standard_errors.ravel()
    return columns | {"weight": explanation.weight_labels.reshape(n, k)[row, output]}


def _lines(explanation: Explanation) -> tuple[IntArray, npt.NDArray[np.str_], FloatArray]:
    """Of the n·k lines of a wide frame: the row, the output, and the values (n·k, d)."""
    n, d, k = (*explanation.values.shape, 1)[:3]
    row, output = np.divmod(np.arange(n * k), k)
    return (
        row,
        np.asarray(explanation.output_names)[output],
        np.moveaxis(explanation.values, 1, -1).reshape(-1, d),
    )


def scale_factors(explanation: Explanation) -> FloatArray:
    """(n[, k]) (f(x) − base) / Σ φ; NaN outside (0.1, 10): such a factor would tell another story
    than φ does."""
    total = explanation.predictions - explanation.base_values
    sums = explanation.values.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(total == sums, 1.0, total / sums)
    return np.where((factor > LEAST_FACTOR) & (factor < LARGEST_FACTOR), factor, np.nan)


def counted(marked: BoolArray) -> str:
    """Return how many are marked: ``12 of 20 rows`` (n,), or of attributions to outputs (n, k)."""
    count = f"{int(marked.sum()):,}"
    rows = plural(len(marked), "row")
    if marked.ndim == 1:
        return f"{count} of {rows}"
    outputs = plural(marked.shape[1], "output")
    return f"{count} of {plural(marked.size, 'attribution')} ({rows} × {outputs})"


def normalized(
    explanation: Explanation, how: str
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.str_]]:
    """Values (n, d[, k]) that add up to f(x), the factor of each row (n[, k]), and what was done:
    "scale" or "shift".

    "shift" adds the same to every feature. "scale" multiplies by `scale_factors`, which keeps the
    ranking, and shifts rows without one.
    """
    one_of("normalisation", how, ("scale", "shift"))
    d = explanation.values.shape[1]
    whole = explanation.family.d
    if d != whole:
        said = (
            f"Only {d} of {whole} features are selected, and they cannot make up the whole"
            " prediction."
        )
        raise ValueError(f"{said} Normalise first, and select from the result.")
    factor = scale_factors(explanation)
    scaled = ~np.isnan(factor) & (how == "scale")
    factor = np.where(scaled, factor, 1.0)
    values = explanation.values * factor[:, None]
    gap = explanation.predictions - explanation.base_values - values.sum(axis=1)
    return values + (gap / d)[:, None], factor, np.where(scaled, "scale", "shift")


def to_shap(explanation: Explanation, normalize: str | None = None) -> Any:
    """A `shap.Explanation` of the values as they are; "scale" and "shift" make them add up, see
    `normalized`.

    Standard errors become `error_std` and, as 95 % intervals, `lower_bounds` and `upper_bounds`.
    Columns that are not numbers are coded in `data`, and shown by `display_data`; groups and games
    have no `data`. `normalized_by` (n[, k]), which shap's slices do not carry along, flags rows
    that "scale" had to shift; a warning tells how many.
    """
    shap = require("shap", "shap")
    values = explanation.values
    errors = explanation.standard_errors
    by = None
    if normalize is not None:
        values, factor, by = normalized(explanation, normalize)
        errors = None if errors is None else errors * factor[:, None]
        shifted = by == "shift"
        if normalize == "scale" and shifted.any():
            said = f"{counted(shifted)} could not be scaled to add up to the prediction and"
            warnings.warn(f"{said} were shifted instead, see `normalized_by`.", stacklevel=2)
    data, display = _columns(explanation)
    outputs = list(explanation.output_names) if explanation.has_outputs else None
    names = {"feature_names": list(explanation.feature_names), "output_names": outputs}
    bounds = (
        {}
        if errors is None
        else {"lower_bounds": values - Z95 * errors, "upper_bounds": values + Z95 * errors}
    )
    rows = {"base_values": explanation.base_values, "data": data, "display_data": display}
    exported = shap.Explanation(values, **rows, **names, **bounds, error_std=errors)
    exported.normalized_by = by
    return exported


def to_shapiq(
    explanation: Explanation, row: int, output: int | str = 0, normalize: str | None = None
) -> Any:
    """`shapiq.InteractionValues` of order one for a row and output; "SV" is the nearest index that
    shapiq knows."""
    shapiq = require("shapiq", "shapiq")
    place = place_of(explanation, output)
    row = row_position(explanation, row)
    values = explanation.values if normalize is None else normalized(explanation, normalize)[0]
    base = explanation.base_values[row]
    phi, base = (
        (values[row][:, place], base[place]) if explanation.has_outputs else (values[row], base)
    )
    sampled = explanation.standard_errors is not None
    places: dict[tuple[int, ...], int] = {(): 0} | {(i,): i + 1 for i in range(len(phi))}
    kind = {
        "index": "SV",
        "min_order": 0,
        "max_order": 1,
        "n_players": len(phi),
        "interaction_lookup": places,
    }
    cost = {
        "estimated": sampled,
        "estimation_budget": int(explanation.n_evaluations[row]) if sampled else None,
    }
    return shapiq.InteractionValues(
        np.concatenate([[base], phi]), baseline_value=float(base), **kind, **cost
    )


def place_of(explanation: Explanation, output: int | str) -> int:
    """The position of one of the outputs explained, given by position or by name."""
    if not hasattr(explanation, "output_names"):
        raise TypeError(f"An Explanation is needed here; got {type(explanation).__name__}.")
    names = explanation.output_names if explanation.has_outputs else explanation.output_names[:1]
    return output_position(output, names or ("output",))


def row_position(explanation: Explanation, row: int) -> int:
    """The position 0..n−1 of a row."""
    n = len(explanation)
    if isinstance(row, bool) or not isinstance(row, (int, np.integer)) or not -n <= row < n:
        raise ValueError(
            f"`row` must be a position 0..{n - 1} among the rows explained; got {row!r}."
        )
    return int(row) % n


def _columns(explanation: Explanation) -> tuple[FloatArray | None, Any]:
    """`data` as numbers (n, d), and as it is where that differs; None where features are not
    columns."""
    data = explanation.data
    d = explanation.values.shape[1]
    if data is None or data.shape[1:] != (d,):
        return None, None
    frame = kind_of(data).to_pandas(data)
    numbers = np.column_stack([coded(frame.iloc[:, c]) for c in range(d)])
    plain = all(map(pd.api.types.is_numeric_dtype, frame.dtypes))
    return numbers, None if plain else frame.to_numpy(dtype=object)


def coded(column: pd.Series[Any]) -> FloatArray:
    """A column as numbers: categories, dates and text by their order; NaN where missing."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    sortable = isinstance(column.dtype, pd.CategoricalDtype) or column.dtype.kind in "Mm"
    codes = pd.Categorical(column if sortable else column.astype("str").where(column.notna())).codes
    return np.where(codes < 0, np.nan, codes.astype(np.float64))
