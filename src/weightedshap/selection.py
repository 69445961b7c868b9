"""Algorithm 1: choose the weight w* with the highest utility, for each row or for all rows.

`weightedshap.method` scores the candidates and calls `select`; the evaluation and the streams use
the rules for a shared weight.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from weightedshap._checks import Array, FloatArray, IntArray
from weightedshap.weights import WeightFamily


@dataclass(frozen=True)
class Candidates:
    """The attributions, curves and scores of all weights at n rows, from which w* is chosen.

    The m weights of the family come first, then the references: M in all.
    """

    phi: FloatArray  # (n, M, d, k)
    orders: IntArray  # (n, M, d, k) features by |φ|
    curves: FloatArray  # (n, M, d + 1, k) |f(x) − v(top j)| on the judge
    scores: FloatArray  # (n, m, k) T
    errors: FloatArray | None  # (n, M, d, k) standard errors of φ; None where Δ is exact


@dataclass(frozen=True)
class Selection:
    """The result of Algorithm 1 for n rows: weights w*, attributions φ*, scores and curves."""

    index: IntArray  # (n, k) the chosen weight
    weights: FloatArray  # (n, d, k) w*
    scores: FloatArray  # (n, m, k) T of every weight
    values: FloatArray  # (n, d, k) φ*
    orders: IntArray  # (n, d, k)
    curves: FloatArray  # (n, d + 1, k), on the judge
    standard_errors: FloatArray | None  # (n, d, k) of φ*; None where Δ is exact
    shapley: FloatArray  # (n, d, k), for the first game if several compete
    shapley_errors: FloatArray | None  # (n, d, k)
    references: FloatArray  # (n, 3, d + 1, k) curves of the Shapley, first and last weights


def select(
    candidates: Candidates, family: WeightFamily, index: IntArray | None = None
) -> Selection:
    """Choose the weight w* whose attribution φ_w has the highest utility T (Algorithm 1).

    1. φ_w(x_i) = Σ_j w_j Δ_j(x_i) for every w ∈ W: ``candidates.phi``.
    2. T(φ_w) for every w: ``candidates.scores``.
    3. w* = argmax at every row and output; see `best_weight` for ties.

    `index` (n, k) is the position of a weight that was chosen before, for all rows together.
    """
    if index is None:
        index = best_weight(np.moveaxis(candidates.scores, 1, -1), family)

    shapley, *_ = references = list(family.reference_positions)
    errors = candidates.errors
    return Selection(
        index=index,
        weights=np.moveaxis(family.vectors[index], -1, 1),
        scores=candidates.scores,
        values=_take_weight(candidates.phi, index),
        orders=_take_weight(candidates.orders, index),
        curves=_take_weight(candidates.curves, index),
        standard_errors=None if errors is None else _take_weight(errors, index),
        shapley=candidates.phi[:, shapley],
        shapley_errors=None if errors is None else errors[:, shapley],
        references=candidates.curves[:, references],
    )


def _take_weight(array: Array, index: IntArray) -> Array:
    """Return the entries (n, …, k) of an array (n, M, …, k) at weight positions `index` (n, k)."""
    return np.take_along_axis(array, index[:, None, None, :], axis=1)[:, 0]


def best_weight(scores: FloatArray, family: WeightFamily) -> IntArray:
    """Return the position (…,) of the weight with the highest score, from scores (…, m).

    Equal scores are common, as AUP depends on the ranking alone. Among weights within 1e-12·|best|
    of the best, the one nearest to uniform in L2 is taken, then the lowest position (the paper's
    Algorithm 1 keeps the last, the authors' program the first). A weight without a score (NaN, as
    it uses a size that was never sampled) cannot be chosen.
    """
    usable = np.where(np.isnan(scores), -np.inf, scores)
    best = usable.max(axis=-1, keepdims=True)
    if np.isneginf(best).any():
        raise ValueError(
            "No weight of the family has a score. Raise `evaluations` so that every size is"
            " visited."
        )
    tied = usable >= best - 1e-12 * np.abs(best)
    return np.asarray(np.where(tied, family.rank_from_uniform, len(family.labels)).argmin(axis=-1))


def shared_weight(scores: FloatArray, family: WeightFamily) -> int:
    """Return the position of the weight with the highest mean over rows, from scores (n, m)."""
    return int(best_weight(scores.mean(axis=0), family))


def one_standard_error_weight(scores: FloatArray, family: WeightFamily) -> int:
    """Among weights about as good as the best, return the position of the one closest to uniform.

    About as good: the mean score over the rows is within one standard error of the best. `scores`
    are (n, m), and their differences are paired by row.
    """
    n = len(scores)
    behind = scores[:, [shared_weight(scores, family)]] - scores  # (n, m)
    error = behind.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.inf
    # The comparison is False where a score is NaN.
    near = behind.mean(axis=0) <= error
    return int(np.where(near, family.rank_from_uniform, len(family.labels)).argmin())


SHARED_RULES: Mapping[str, Callable[[FloatArray, WeightFamily], int]] = {
    "shared": shared_weight,
    "one_standard_error": one_standard_error_weight,
}
"""Rules that choose one weight for all rows, by name."""

SELECTIONS = ("per_row", *SHARED_RULES)


def shared_index(scores: FloatArray, family: WeightFamily, rule: str) -> IntArray:
    """Choose one weight per output for all rows, from scores (n, m, k); return positions (k,)."""
    return np.array(
        [SHARED_RULES[rule](scores[..., o], family) for o in range(scores.shape[-1])], dtype=np.intp
    )
