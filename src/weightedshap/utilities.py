"""T: how good an attribution is, larger is better: to people a function ``(game, f_x) → (phi[m, d]
→ score[m])``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from weightedshap._checks import FloatArray, as_numbers_of, look_up, name_of, number_above, offered
from weightedshap.curves import area, order_of, recovery
from weightedshap.curves import exclusion as exclusion_curves
from weightedshap.games.base import Game
from weightedshap.games.rows import View
from weightedshap.games.user import GivenBlock, WalkingGame

__all__ = ["UTILITIES", "Utility", "aup", "exclusion", "masked_inclusion"]

Score = Callable[[FloatArray], FloatArray]
"""phi (m, d) → score (m,), at one row and output."""


@dataclass(frozen=True)
class Utility:
    """T as a value; called as ``utility(game, f_x)`` it scores the attributions of one bound game.

    >>> from weightedshap.games import FunctionGame
    >>> game = FunctionGame(lambda coalitions: coalitions @ np.array([3.0, 1.0]), d=2)
    >>> aup(game, 4.0)(np.array([[3.0, 1.0], [1.0, 3.0]]))  # the first knows what matters
    array([-1., -3.])
    """

    name: str
    # (view of a block of n rows, phi (n, m, d, k)) → (n, m, k).
    score: Callable[[View, FloatArray], FloatArray]
    game: str | None = None  # that it asks for; None for the one that judges
    of_recovery: Callable[[FloatArray], FloatArray] | None = (
        None  # (n, m, d + 1, k) → (n, m, k), where curves suffice
    )
    one_row: bool = False  # a user's function, which sees one row at a time

    def __call__(self, game: Game, f_x: float) -> Score:
        """phi (m, d) → score (m,) on one bound game with one output."""
        view = View(GivenBlock.of(game), np.array([[number_above("f_x", f_x, -np.inf)]]), (0,))

        def score(phi: FloatArray) -> FloatArray:
            given = as_numbers_of("phi", phi)
            d = view.block.d
            if given.ndim != 2 or given.shape[1] != d:
                raise ValueError(
                    f"`phi` must have shape (m, {d}), a row for each attribution; got"
                    f" {given.shape}."
                )
            return self.score(view, given[None, ..., None])[0, :, 0]

        return score


def _small_area(curves: FloatArray) -> FloatArray:
    return -area(curves, axis=2)


def _by_recovery(view: View, phi: FloatArray) -> FloatArray:
    return _small_area(recovery(view, order_of(phi, axis=2)))


def _by_exclusion(view: View, phi: FloatArray) -> FloatArray:
    return area(exclusion_curves(view, order_of(phi, axis=2)), axis=2)


aup = Utility("aup", _by_recovery, of_recovery=_small_area)
"""−AUP = −Σ_{j=1..d} |f(x) − v(top j)| (Equation 4): recover the prediction from few features."""

exclusion = Utility("exclusion", _by_exclusion)
"""Σ_{j=1..d} |f(x) − v(all but top j)|: lose the prediction by hiding few features."""

masked_inclusion = Utility("masked_inclusion", _by_recovery, game="baseline")
"""−Σ_{j=1..d} |f(x) − f(top j, means elsewhere)|, on the baseline game.

The paper prints this sum without the minus; its text asks for it to be small.
"""

UTILITIES: Mapping[str, Utility] = {
    "aup": aup,
    "exclusion": exclusion,
    "masked_inclusion": masked_inclusion,
}
"""Utilities by name, as `weightedshap.Explainer` takes them."""


def as_utility(utility: Any) -> Utility:
    """A utility from a name, a utility, or a function; a function may ask for a game by its
    attribute `game`."""
    if isinstance(utility, str):
        return look_up("utility", utility, UTILITIES)
    if isinstance(utility, Utility):
        return utility
    if not callable(utility) or not _takes_two(utility):
        wanted = "a name or a function (game, f_x) → (phi[m, d] → score[m])"
        got = (
            f"{name_of(utility)}, which takes other arguments"
            if callable(utility)
            else type(utility).__name__
        )
        raise TypeError(f"`utility` must be {wanted}; got {got}.")
    return Utility(
        name_of(utility), partial(_by_function, utility), **offered(utility, "game"), one_row=True
    )


def _takes_two(function: Callable[..., Any]) -> bool:
    """Whether a function takes two arguments, as far as can be told before it is called."""
    try:
        signature(function).bind(None, None)
    except ValueError:  # some that are written in C do not tell
        return True
    except TypeError:
        return False
    return True


def _by_function(
    utility: Callable[[Game, float], Score], view: View, phi: FloatArray
) -> FloatArray:
    """(1, m, k) by a user's function of one row and output."""
    scorers = [utility(WalkingGame(block, axis=False), float(f_x[0])) for block, f_x in view.each()]
    if not all(map(callable, scorers)):
        raise TypeError(f"The utility must return a function of phi[m, d]; got {scorers[0]!r}.")
    scores = [score(phi[0, ..., o]) for o, score in enumerate(scorers)]
    return np.stack([np.asarray(score, dtype=np.float64)[None] for score in scores], axis=-1)


def scored(utility: Utility, view: View, phi: FloatArray) -> FloatArray:
    """(n, m, k) the scores of attributions (n, m, d, k), checked; NaN where an attribution is."""
    usable = ~np.isnan(phi).any(axis=2)
    values = utility.score(view, phi if usable.all() else np.nan_to_num(phi))
    if values.shape != usable.shape:
        shapes = f"shape {usable.shape[1:2]}; got {values.shape[1:-1]}"
        raise ValueError(f"The utility must return one score for each attribution, {shapes}.")
    if not np.isfinite(values[usable]).all():
        wanted = "a finite number, larger for a better attribution"
        raise ValueError(
            f"The utility returned NaN or an infinite score. A score must be {wanted}."
        )
    return np.where(usable, values, np.nan)
