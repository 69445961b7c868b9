"""T: how good an attribution is. Larger is better.

A utility is a function ``(game, f_x) → (phi[m, d] → score[m])``, called on one output of one row. To add
one, write it and add one line to `UTILITIES`.

Two attributes are optional. ``utility.game = "baseline"`` asks the Explainer for another game than the
one explained; ``utility.of_recovery`` computes the score from recovery curves that are known already. A
utility with ``utility.blocks = True`` also takes a block of rows: phi (n, m, d) → score (n, m).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from weightedshap.checks import FloatArray, look_up
from weightedshap.curves import area, exclusion_error, order_of, recovery_error

__all__ = ["UTILITIES", "Utility", "aup", "exclusion", "masked_inclusion"]

Score = Callable[[FloatArray], FloatArray]
Utility = Callable[[Any, Any], Score]


def aup(game: Any, f_x: Any) -> Score:
    """−AUP = −Σ_{k=1..d} |f(x) − v(top k)| (Equation 4): recover the prediction from few features."""
    return lambda phi: _aup_of_recovery(recovery_error(game, order_of(phi), f_x))


def _aup_of_recovery(recovery: FloatArray) -> FloatArray:
    return -area(recovery)


def exclusion(game: Any, f_x: Any) -> Score:
    """Σ_{k=1..d} |f(x) − v(all but top k)|: lose the prediction by hiding few features."""
    return lambda phi: area(exclusion_error(game, order_of(phi), f_x))


def masked_inclusion(game: Any, f_x: Any) -> Score:
    """−Σ_{k=1..d} |f(x) − f(top k, means elsewhere)|, on the baseline game.

    The paper prints this sum without the minus; its text asks for it to be small.
    """
    return aup(game, f_x)


aup.of_recovery = _aup_of_recovery  # type: ignore[attr-defined]
masked_inclusion.game = "baseline"  # type: ignore[attr-defined]
for _utility in (aup, exclusion, masked_inclusion):
    _utility.blocks = True  # type: ignore[attr-defined]

UTILITIES: Mapping[str, Utility] = {
    "aup": aup,
    "exclusion": exclusion,
    "masked_inclusion": masked_inclusion,
}


def as_utility(utility: Any) -> Utility:
    """A utility from a name or a function."""
    if isinstance(utility, str):
        return look_up("utility", utility, UTILITIES)
    if not callable(utility):
        raise TypeError(
            "`utility` must be a name or a function (game, f_x) → (phi[m, d] → score[m]); "
            f"got {type(utility).__name__}."
        )
    return utility  # type: ignore[no-any-return]


def scores_of(score: Score, phi: FloatArray) -> FloatArray:
    """The scores (…, m) of the attributions `phi` (…, m, d), checked."""
    usable = ~np.isnan(phi).any(axis=-1)
    values = np.asarray(score(phi if usable.all() else np.nan_to_num(phi)), dtype=np.float64)
    if values.shape != phi.shape[:-1]:
        raise ValueError(
            f"The utility must return one score for each attribution, shape {phi.shape[:-1]}; got {values.shape}."
        )
    if not np.isfinite(values[usable]).all():
        raise ValueError(
            "The utility returned NaN or an infinite score. A score must be a finite number, larger for a better "
            "attribution."
        )
    return np.where(usable, values, np.nan)
