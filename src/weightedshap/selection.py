"""Algorithm 1: w* = argmax_w T(φ_w), per row or shared by all rows; and the tie rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from weightedshap.checks import FloatArray, IntArray
from weightedshap.curves import order_of, recovery_error
from weightedshap.utilities import Utility, scores_of
from weightedshap.weights import WeightFamily

__all__ = ["SELECTIONS", "Candidates", "Selection", "View", "best_weight", "candidates", "careful_weight", "select"]

REFERENCES = ("shapley", "first", "last")


@dataclass(frozen=True)
class Selection:
    """What Algorithm 1 gives for one row."""

    index: int
    label: str
    weights: FloatArray  # (d,) w*
    phi: FloatArray  # (d,) φ*
    scores: FloatArray  # (m,) T of every weight


def select(delta: FloatArray, family: WeightFamily, score: Any) -> Selection:
    """The weight w* ∈ W whose attribution φ_w has the highest utility T (Algorithm 1).

    1. φ_w(x_i) = Σ_j w_j Δ_j(x_i) for every w ∈ W.
    2. T(φ_w) for every w.
    3. w* = argmax; see `best_weight` for ties.

    Parameters
    ----------
    delta : (d, d) Δ of one row and output
    score : phi (m, d) → (m,), as a utility returns it
    """
    phi = family.phi(delta)
    scores = scores_of(score, phi)
    index = int(best_weight(scores, family))
    return Selection(index, family.labels[index], family.vectors[index], phi[index], scores)


def best_weight(scores: FloatArray, family: WeightFamily) -> IntArray:
    """Index of the chosen weight for scores (…, m).

    The ranking is all that AUP sees, so equal scores are common. Scores within 1e-12·|best| of the best
    are tied; of tied weights the one nearest to uniform in L2 is taken, then the lowest index. (The
    paper's Algorithm 1 keeps the last of them and the authors' program the first.) A weight without a
    score (NaN: it uses a size that was never visited) cannot be chosen.
    """
    usable = np.where(np.isnan(scores), -np.inf, scores)
    best = usable.max(axis=-1, keepdims=True)
    if np.isneginf(best).any():
        raise ValueError("No weight of the family has a score. Raise `evaluations` so that every size is visited.")
    tied = usable >= best - 1e-12 * np.abs(best)
    return np.asarray(np.where(tied, family.nearness, len(family)).argmin(axis=-1))


def shared_weight(scores: FloatArray, family: WeightFamily) -> int:
    """Index of the one weight for all rows of scores (n, m): the highest mean."""
    return int(best_weight(scores.mean(axis=0), family))


def careful_weight(scores: FloatArray, family: WeightFamily) -> int:
    """Index of the weight nearest to uniform whose mean score is within one standard error of the highest.

    The error is that of the paired difference over the rows, so Shapley stays unless another weight is better beyond
    noise. A single row knows no error: the weight nearest to uniform is taken.
    """
    usable = ~np.isnan(scores).any(axis=0)
    best = shared_weight(scores, family)
    behind = scores[:, [best]] - scores  # (n, m)
    n = len(scores)
    error = behind.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(len(family), np.inf)
    near = usable & (behind.mean(axis=0) <= error)
    return int(np.where(near, family.nearness, len(family)).argmin())


SHARED = {"shared": shared_weight, "one_standard_error": careful_weight}
"""Ways to choose one weight for all rows, by name."""

SELECTIONS = ("per_row", *SHARED)


@dataclass(frozen=True)
class Candidates:
    """Everything that each weight gives on a block of n rows, for one output.

    The family stands first; weights needed for the reference curves follow where it lacks them.

    Attributes
    ----------
    phi : (n, M, d) · orders : (n, M, d) · recovery : (n, M, d + 1) · scores : (n, m)
    errors : (n, M, d) standard errors of phi; None where Δ is exact
    reference : positions of the Shapley, first and last weights among the M
    """

    phi: FloatArray
    orders: IntArray
    recovery: FloatArray
    scores: FloatArray
    errors: FloatArray | None
    reference: tuple[int, int, int]

    def __len__(self) -> int:
        return len(self.phi)


def candidates(
    view: View, phi: FloatArray, replicates: FloatArray | None, family: WeightFamily, utility: Utility
) -> Candidates:
    """Attributions, rankings, recovery curves and scores of every weight.

    Parameters
    ----------
    view : the games and predictions of n rows
    phi : (n, M, d) attributions under the weights of `family.with_references`
    replicates : (n, c, d, d) Δ from c independent chains, or None where it is exact
    """
    orders = order_of(np.nan_to_num(phi) if np.isnan(phi).any() else phi)
    recovery = view.recovery(orders)
    recovery = np.where(np.isnan(phi).any(axis=-1, keepdims=True), np.nan, recovery)
    if hasattr(utility, "of_recovery"):
        scores = utility.of_recovery(recovery[:, : len(family)])
    else:
        scores = view.scores(utility, phi[:, : len(family)])
    errors = _errors(family.with_references, phi, replicates)
    return Candidates(phi, orders, recovery, scores, errors, family.reference_positions)


@dataclass(frozen=True)
class View:
    """One output of the games of n rows: a block of them, or a single row (n = 1).

    Attributes
    ----------
    game, f_x : the explained game and its predictions (n,)
    judge, judge_f_x : those that the utility looks at
    """

    game: Any
    f_x: FloatArray
    judge: Any
    judge_f_x: FloatArray

    def recovery(self, orders: IntArray) -> FloatArray:
        """(n, M, d) → (n, M, d + 1) recovery-error curves."""
        if hasattr(self.game, "rows"):
            return recovery_error(self.game, orders, self.f_x)
        return recovery_error(self.game, orders[0], self.f_x[0])[None]

    def scores(self, utility: Utility, phi: FloatArray) -> FloatArray:
        """(n, m, d) → (n, m) utilities."""
        if hasattr(self.judge, "rows"):
            return scores_of(utility(self.judge, self.judge_f_x), phi)
        return scores_of(utility(self.judge, float(self.judge_f_x[0])), phi[0])[None]


def _errors(full: WeightFamily, phi: FloatArray, replicates: FloatArray | None) -> FloatArray | None:
    """(n, M, d) from the spread over the chains that visited all cells a weight uses; NaN with fewer than two.

    Chains count alike. Their walks differ by one at most, so this is at most a little too careful.
    """
    if replicates is None:
        return None
    deviation = np.moveaxis(full.phi(replicates), 1, 0) - phi  # (c, n, M, d)
    usable = ~np.isnan(deviation).any(axis=-1, keepdims=True)
    n = usable.sum(axis=0)  # (n, M, 1)
    centre = deviation.sum(axis=0, where=usable) / np.maximum(n, 1)
    variance = ((deviation - centre) ** 2).sum(axis=0, where=usable) / np.maximum(n * (n - 1), 1)
    return np.where(n > 1, np.sqrt(variance), np.nan)
