"""Utilities T: scores of how good an attribution is; larger is better.

To users a utility is a function ``(game, f_x) → (phi[m, d] → score[m])`` of one row and output;
inside the library it is a `Utility`, which scores a batch of rows. `weightedshap.method` scores the
attributions of all weights with it, and Algorithm 1 chooses the weight with the highest score.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from weightedshap._checks import FloatArray, as_array, check_above, look_up, name_of, optional_attrs
from weightedshap.curves import area, exclusion_curves, rank_features, recovery_curves
from weightedshap.games.base import Game, GameBatch, RowGame
from weightedshap.games.user import as_batch

__all__ = ["UTILITIES", "Utility", "aup", "exclusion", "masked_inclusion"]

Score = Callable[[FloatArray], FloatArray]
"""phi (m, d) → score (m,), at one row and output."""


@dataclass(frozen=True)
class Utility:
    """A utility T; called with the game of one row, it returns a function that scores attributions.

    >>> from weightedshap.games import FunctionGame
    >>> game = FunctionGame(lambda coalitions: coalitions @ np.array([3.0, 1.0]), d=2)
    >>> aup(game, 4.0)(np.array([[3.0, 1.0], [1.0, 3.0]]))  # the first ranking is right
    array([-1., -3.])
    """

    name: str
    # (batch of n rows, phi (n, m, d, k)) → (n, m, k)
    score: Callable[[GameBatch, FloatArray], FloatArray]
    # The name of the game to score on; None for the judge.
    game: str | None = None
    # recovery curves (n, m, d + 1, k) → (n, m, k), for a utility that depends on them alone
    of_recovery: Callable[[FloatArray], FloatArray] | None = None
    # Whether it is a user's function, which scores one row at a time.
    one_row: bool = False

    def __call__(self, game: Game, f_x: float) -> Score:
        """Return the function that scores attributions (m, d) of one row, for a single output."""
        batch = as_batch(game, check_above("f_x", f_x, -np.inf))

        def score(phi: FloatArray) -> FloatArray:
            array = as_array("phi", phi)
            d = batch.d
            if array.ndim != 2 or array.shape[1] != d:
                raise ValueError(
                    f"`phi` must have shape (m, {d}), a row for each attribution; got"
                    f" {array.shape}."
                )
            return self.score(batch, array[None, ..., None])[0, :, 0]

        return score


def _negative_area(curves: FloatArray) -> FloatArray:
    """Return minus the areas (n, m, k) under curves (n, m, d + 1, k)."""
    # Equation 4: the sum over j = 1..d, not divided by d.
    return np.asarray(-curves[:, :, 1:].sum(axis=2))


def _score_by_recovery(batch: GameBatch, phi: FloatArray) -> FloatArray:
    """Return scores (n, m, k) of attributions (n, m, d, k): minus areas under recovery curves."""
    orders = rank_features(phi, axis=2)
    return _negative_area(recovery_curves(batch, orders, batch.predictions))


def _score_by_exclusion(batch: GameBatch, phi: FloatArray) -> FloatArray:
    """Return scores (n, m, k) of attributions (n, m, d, k): the area under exclusion curves."""
    orders = rank_features(phi, axis=2)
    return area(exclusion_curves(batch, orders, batch.predictions), axis=2)


aup = Utility("aup", _score_by_recovery, of_recovery=_negative_area)
"""−AUP = −Σ_{j=1..d} |f(x) − v(top j)| (Equation 4): recover the prediction from few features."""

exclusion = Utility("exclusion", _score_by_exclusion)
"""Σ_{j=1..d} |f(x) − v(all but top j)|: lose the prediction by hiding few features."""

masked_inclusion = Utility("masked_inclusion", _score_by_recovery, game="baseline")
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
    """Convert a name, a `Utility` or a user's function (game, f_x) to a `Utility`.

    If a function has an attribute `game`, that is the name of the game to score on; else the
    judge is used.
    """
    if isinstance(utility, str):
        return look_up("utility", utility, UTILITIES)
    if isinstance(utility, Utility):
        return utility
    if not callable(utility) or not _accepts_two_arguments(utility):
        expected = "a name or a function (game, f_x) → (phi[m, d] → score[m])"
        argument = type(utility).__name__
        if callable(utility):
            argument = f"{name_of(utility)}, which takes other arguments"
        raise TypeError(f"`utility` must be {expected}; got {argument}.")
    return Utility(
        name_of(utility),
        partial(_score_by_function, utility),
        **optional_attrs(utility, "game"),
        one_row=True,
    )


def _accepts_two_arguments(function: Callable[..., Any]) -> bool:
    """Return whether a function can be called with two arguments, judging by its signature."""
    try:
        signature(function).bind(None, None)
    # Some functions written in C have no signature.
    except ValueError:
        return True
    except TypeError:
        return False
    return True


def _score_by_function(
    utility: Callable[[Game, float], Score], batch: GameBatch, phi: FloatArray
) -> FloatArray:
    """Return scores (1, m, k) of one row's attributions (1, m, d, k) by a user's utility."""
    scores = []
    for o in range(phi.shape[-1]):
        # A user's function may evaluate along orders, whatever the game.
        game = RowGame(batch.output(o), axis=False, walks=True)
        score = utility(game, float(batch.predictions[0, o]))
        if not callable(score):
            raise TypeError(f"The utility must return a function of phi[m, d]; got {score!r}.")
        scores.append(np.asarray(score(phi[0, ..., o]), dtype=np.float64)[None])
    return np.stack(scores, axis=-1)


def checked_scores(utility: Utility, batch: GameBatch, phi: FloatArray) -> FloatArray:
    """Return checked scores (n, m, k) of attributions (n, m, d, k); NaN where they are NaN."""
    usable = ~np.isnan(phi).any(axis=2)  # (n, m, k)
    values = utility.score(batch, phi if usable.all() else np.nan_to_num(phi))
    if values.shape != usable.shape:
        raise ValueError(
            "The utility must return one score for each attribution, shape"
            f" {usable.shape[1:2]}; got {values.shape[1:-1]}."
        )
    if not np.isfinite(values[usable]).all():
        raise ValueError(
            "The utility returned NaN or an infinite score. A score must be a finite number, larger"
            " for a better attribution."
        )
    return np.where(usable, values, np.nan)
