"""Games of one's own and of other libraries as ours: a function, a shap masker with a model, a
shapiq game."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weightedshap._checks import (
    BoolArray,
    FloatArray,
    as_outputs,
    offered,
    positive_integer,
    require,
)
from weightedshap._lazy import pd
from weightedshap.coalitions import as_coalitions, batches

BATCH_ROWS = 2**14  # masked rows that shap holds at once


@dataclass(frozen=True)
class FunctionGame:
    """A user's own function of coalitions (m, d) bool → (m,) or (m, k) as a game of d players.

    Examples
    --------
    >>> import numpy as np
    >>> game = FunctionGame(lambda coalitions: coalitions @ np.array([1.0, 2.0]), d=2)
    >>> game(np.array([[False, True]]))
    array([2.])
    """

    function: Callable[[BoolArray], Any]
    d: int
    player_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(
                "`function` must map coalitions (m, d) to values; got"
                f" {type(self.function).__name__}."
            )
        positive_integer("d", self.d)

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        coalitions = as_coalitions(coalitions, self.d)
        return as_outputs(self.function(coalitions), len(coalitions), "The game")


def from_shap(model: Any, masker: Any, x: Any) -> FunctionGame:
    """The game of a model under one of shap's maskers, at the row `x`: predictions averaged over
    its background.

    The model is a function of what the masker makes (rows, texts, images). The masker may be
    background rows, of which shap's `Independent` takes 100. For an Explainer: ``game=lambda row:
    from_shap(model, masker, row)``.
    """
    shap = require("shap", "shap")
    if not callable(model):
        raise TypeError(
            f"`model` must be a function, such as model.predict; got {type(model).__name__}."
        )
    if not callable(masker):
        masker = shap.maskers.Independent(masker)
    has = offered(masker, "data", "shape", "feature_names")
    if isinstance(x, (list, tuple, pd.Series, pd.DataFrame)):
        x = np.asarray(x)
    if isinstance(x, np.ndarray) and x.ndim == 2 and x.shape[0] == 1 and "data" in has:
        x = x[0]
    masked = shap.utils.MaskedModel(model, masker, shap.links.identity, True, x)
    shape = has.get("shape")
    names = has.get("feature_names")
    step = max(1, BATCH_ROWS // int((shape[0] if isinstance(shape, tuple) else None) or 256))

    def values(coalitions: BoolArray) -> npt.NDArray[Any]:
        """In batches, so that the masked copies of the background stay small."""
        if len(coalitions) == 0:  # the whole tells how many outputs there are
            return np.asarray(masked(np.ones((1, len(masked)), dtype=np.bool_))[:0])
        return np.concatenate(
            [masked(coalitions[batch]) for batch in batches(len(coalitions), step)]
        )

    return FunctionGame(
        values, len(masked), _named(names(x)[0] if callable(names) else names, len(masked))
    )


def _named(names: Sequence[object] | None, d: int) -> tuple[str, ...] | None:
    return tuple(map(str, names)) if names is not None and len(names) == d else None


def from_shapiq(game: Any) -> FunctionGame:
    """A `shapiq.Game` or imputer as our game; what shapiq subtracts (`normalization_value`) is
    added again."""
    has = offered(game, "n_players", "player_name_lookup")
    if not callable(game) or "n_players" not in has:
        raise TypeError(
            f"A shapiq game is callable and has `n_players`; got {type(game).__name__}."
        )
    d = int(has["n_players"])
    places = has.get("player_name_lookup") or {}

    def values(coalitions: BoolArray) -> FloatArray:
        if len(coalitions) == 0:  # shapiq refuses it
            return np.empty(0)
        taken_off = offered(game, "normalization_value").get("normalization_value", 0.0)
        return np.asarray(game(coalitions)) + float(taken_off)

    return FunctionGame(values, d, _named(sorted(places, key=places.__getitem__), d))
