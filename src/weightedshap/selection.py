"""Algorithm 1: w* = argmax_w T(φ_w), per row or shared by all rows; and the tie rule."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from weightedshap._checks import Array, FloatArray, IntArray
from weightedshap.curves import order_of, recovery
from weightedshap.games.rows import View
from weightedshap.utilities import Utility, scored
from weightedshap.weights import WeightFamily


@dataclass(frozen=True)
class Candidates:
    """Steps 1 and 2 on n rows: the m weights of the family, then those that references need beside
    them, M in all."""

    phi: FloatArray  # (n, M, d, k)
    orders: IntArray  # (n, M, d, k)
    recovery: FloatArray  # (n, M, d + 1, k)
    scores: FloatArray  # (n, m, k)
    errors: FloatArray | None  # (n, M, d, k) standard errors of phi; None where Δ is exact


@dataclass(frozen=True)
class Selection:
    """What Algorithm 1 gives for a block of n rows."""

    index: IntArray  # (n, k) the chosen weight
    weights: FloatArray  # (n, d, k) w*
    scores: FloatArray  # (n, m, k) T of every weight
    values: FloatArray  # (n, d, k) φ*
    orders: IntArray  # (n, d, k)
    curves: FloatArray  # (n, d + 1, k), on the judge
    standard_errors: FloatArray | None  # (n, d, k) of φ*; None where Δ is exact
    shapley: FloatArray  # (n, d, k), of the first game where several compete
    shapley_errors: FloatArray | None  # (n, d, k)
    references: FloatArray  # (n, 3, d + 1, k) curves of the Shapley, first and last weights


def candidates(
    judge: View,
    scorer: View,
    phi: FloatArray,
    errors: FloatArray | None,
    family: WeightFamily,
    utility: Utility,
) -> Candidates:
    """Attributions φ_w of every weight, their rankings and recovery curves, and T(φ_w).

    `phi` and `errors` (n, M, d, k) are those under `family.with_references`. Curves are drawn on
    `judge`; `scorer` is the same, unless the utility asks for a game of its own.
    """
    unknown = np.isnan(phi).any(axis=2, keepdims=True)
    m = len(family)
    read_off = utility.of_recovery
    orders = order_of(np.nan_to_num(phi) if unknown.any() else phi, axis=2)
    curves = (
        np.where(unknown, np.nan, recovery(judge, orders))
        if unknown.any()
        else recovery(judge, orders)
    )
    scores = scored(utility, scorer, phi[:, :m]) if read_off is None else read_off(curves[:, :m])
    return Candidates(phi, orders, curves, scores, errors)


def paired(of_games: Sequence[FloatArray], m: int) -> FloatArray:
    """(n, M, …) of each game → (n, G·m + M − m, …): the m weights of every game, then the
    references of the first."""
    if len(of_games) == 1:
        return of_games[0]
    return np.concatenate([*(one[:, :m] for one in of_games), of_games[0][:, m:]], axis=1)


def select(found: Candidates, family: WeightFamily, index: IntArray | None = None) -> Selection:
    """The weight w* ∈ W whose attribution φ_w has the highest utility T (Algorithm 1), at every row
    and output.

    1. φ_w(x_i) = Σ_j w_j Δ_j(x_i) for every w ∈ W: `Candidates.phi`.
    2. T(φ_w) for every w: `Candidates.scores`.
    3. w* = argmax; see `best_weight` for ties. A weight that all rows share comes as `index` (n,
       k).
    """
    if index is None:
        index = best_weight(np.moveaxis(found.scores, 1, -1), family)
    weights = np.moveaxis(family.vectors[index], -1, 1)
    references = list(family.reference_positions)
    values, orders, curves = (
        _at(array, index) for array in (found.phi, found.orders, found.recovery)
    )
    shapley = found.phi[:, references[0]]
    of_three = found.recovery[:, references]
    errors = found.errors
    own, shapleys = (
        (None, None) if errors is None else (_at(errors, index), errors[:, references[0]])
    )
    return Selection(
        index, weights, found.scores, values, orders, curves, own, shapley, shapleys, of_three
    )


def _at(array: Array, index: IntArray) -> Array:
    """(n, M, …, k) → (n, …, k) at the chosen weights (n, k)."""
    return np.take_along_axis(array, index[:, None, None, :], axis=1)[:, 0]


def best_weight(scores: FloatArray, family: WeightFamily) -> IntArray:
    """Index of the chosen weight for scores (…, m).

    Equal scores are common, as AUP sees the ranking alone. Of weights within 1e-12·|best| of the
    best the one nearest to uniform in L2 is taken, then the lowest index (the paper's Algorithm 1
    keeps the last, the authors' program the first). A weight without a score (NaN: it uses a size
    that was never visited) cannot be chosen.
    """
    usable = np.where(np.isnan(scores), -np.inf, scores)
    best = usable.max(axis=-1, keepdims=True)
    if np.isneginf(best).any():
        raise ValueError(
            "No weight of the family has a score. Raise `evaluations` so that every size is"
            " visited."
        )
    tied = usable >= best - 1e-12 * np.abs(best)
    return np.asarray(np.where(tied, family.nearness, len(family)).argmin(axis=-1))


def shared_weight(scores: FloatArray, family: WeightFamily) -> int:
    """Index of the one weight for all rows of scores (n, m): the highest mean."""
    return int(best_weight(scores.mean(axis=0), family))


def careful_weight(scores: FloatArray, family: WeightFamily) -> int:
    """Index of the weight nearest to uniform whose mean score is within one standard error of the
    best, paired."""
    n = len(scores)
    behind = scores[:, [shared_weight(scores, family)]] - scores  # (n, m)
    error = behind.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.inf
    near = behind.mean(axis=0) <= error  # never where a score is NaN
    return int(np.where(near, family.nearness, len(family)).argmin())


SHARED: Mapping[str, Callable[[FloatArray, WeightFamily], int]] = {
    "shared": shared_weight,
    "one_standard_error": careful_weight,
}
"""Ways to choose one weight for all rows, by name."""

SELECTIONS = ("per_row", *SHARED)


def shared_index(scores: FloatArray, family: WeightFamily, how: str) -> IntArray:
    """(k,) the weight that all rows share, for scores (n, m, k) of all rows."""
    return np.array(
        [SHARED[how](scores[..., o], family) for o in range(scores.shape[-1])], dtype=np.intp
    )
