"""An Explanation for shap and shapiq, whose plots want base + Σ φ = f(x): so weighted ones are normalised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from weightedshap.checks import FloatArray, one_of, output_position, require
from weightedshap.inputs import kind_of
from weightedshap.lazily import pd

if TYPE_CHECKING:
    from weightedshap.explanation.result import Explanation

LEAST_FACTOR, LARGEST_FACTOR = 0.1, 10.0
Z95 = 1.959963984540054


def normalized(explanation: Explanation, how: str) -> tuple[FloatArray, FloatArray, npt.NDArray[np.str_]]:
    """Values (n, d[, k]) that add up to f(x), the factor of each row (n[, k]), and what was done: "scale" or "shift".

    "shift" adds the same to every feature. "scale" multiplies by (f(x) − base) / Σ φ, which keeps the ranking, unless
    that is outside (0.1, 10): a tiny, huge or negative factor would tell another story than φ does.
    """
    one_of("normalisation", how, ("scale", "shift"))
    d, whole = explanation.values.shape[1], explanation.family.d
    if d != whole:
        said = f"Only {d} of {whole} features are selected, and they cannot make up the whole prediction."
        raise ValueError(f"{said} Normalise first, and select from the result.")
    total = explanation.predictions - explanation.base_values
    sums = explanation.values.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.asarray(total / sums)
    scaled = (factor > LEAST_FACTOR) & (factor < LARGEST_FACTOR) & (how == "scale")
    factor = np.where(scaled, factor, 1.0)
    values = explanation.values * factor[:, None]
    values = values + ((total - values.sum(axis=1)) / d)[:, None]
    return values, factor, np.where(scaled, "scale", "shift")


def to_shap(explanation: Explanation, normalize: str | None = None) -> Any:
    """A `shap.Explanation` of the values as they are; "scale" and "shift" make them add up, see `normalized`.

    Standard errors become `error_std` and, as 95 % intervals, `lower_bounds` and `upper_bounds`. Columns that are not
    numbers are coded in `data`, and shown by `display_data`; groups and games have no `data`. `normalized_by` (n[, k]),
    which shap's slices do not carry along, flags rows that "scale" had to shift.
    """
    shap = require("shap", "shap")
    values, errors, by = explanation.values, explanation.standard_errors, None
    if normalize is not None:
        values, factor, by = normalized(explanation, normalize)
        errors = None if errors is None else errors * factor[:, None]
    data, display = _columns(explanation)
    outputs = list(explanation.output_names) if explanation.has_outputs else None
    names = {"feature_names": list(explanation.feature_names), "output_names": outputs}
    bounds = {} if errors is None else {"lower_bounds": values - Z95 * errors, "upper_bounds": values + Z95 * errors}
    rows = {"base_values": explanation.base_values, "data": data, "display_data": display}
    exported = shap.Explanation(values, **rows, **names, **bounds, error_std=errors)
    exported.normalized_by = by
    return exported


def to_shapiq(explanation: Explanation, row: int, output: int | str = 0, normalize: str | None = None) -> Any:
    """`shapiq.InteractionValues` of order one for a row and output; "SV" is the nearest index that shapiq knows."""
    shapiq = require("shapiq", "shapiq")
    place, row = place_of(explanation, output), row_position(explanation, row)
    values = explanation.values if normalize is None else normalized(explanation, normalize)[0]
    base = explanation.base_values[row]
    phi, base = (values[row][:, place], base[place]) if explanation.has_outputs else (values[row], base)
    sampled = explanation.standard_errors is not None
    places: dict[tuple[int, ...], int] = {(): 0} | {(i,): i + 1 for i in range(len(phi))}
    kind = {"index": "SV", "min_order": 0, "max_order": 1, "n_players": len(phi), "interaction_lookup": places}
    cost = {"estimated": sampled, "estimation_budget": int(explanation.n_evaluations[row]) if sampled else None}
    return shapiq.InteractionValues(np.concatenate([[base], phi]), baseline_value=float(base), **kind, **cost)


def place_of(explanation: Explanation, output: int | str) -> int:
    """The position of one of the outputs explained, given by position or by name."""
    names = explanation.output_names if explanation.has_outputs else explanation.output_names[:1]
    return output_position(output, names or ("output",))


def row_position(explanation: Explanation, row: int) -> int:
    """The position 0..n−1 of a row."""
    n = len(explanation)
    if isinstance(row, bool) or not isinstance(row, (int, np.integer)) or not -n <= row < n:
        raise ValueError(f"`row` must be a position 0..{n - 1} among the rows explained; got {row!r}.")
    return int(row) % n


def _columns(explanation: Explanation) -> tuple[FloatArray | None, Any]:
    """`data` as numbers (n, d), and as it is where that differs; None where features are not columns."""
    data, d = explanation.data, explanation.values.shape[1]
    if data is None or data.shape[1:] != (d,):
        return None, None
    frame = kind_of(data).to_pandas(data)
    numbers = np.column_stack([_coded(frame.iloc[:, c]) for c in range(d)])
    plain = all(map(pd.api.types.is_numeric_dtype, frame.dtypes))
    return numbers, None if plain else frame.to_numpy(dtype=object)


def _coded(column: pd.Series[Any]) -> FloatArray:
    """A column as numbers: categories, dates and text by their order; NaN where missing."""
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    sortable = isinstance(column.dtype, pd.CategoricalDtype) or column.dtype.kind in "Mm"
    codes = pd.Categorical(column if sortable else column.astype("str").where(column.notna())).codes
    return np.where(codes < 0, np.nan, codes.astype(np.float64))
