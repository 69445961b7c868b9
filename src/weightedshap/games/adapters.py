"""Games defined elsewhere: by a user's function, a masker of shap, or a game of shapiq.

All become a `FunctionGame`, which samplers, curves and `weightedshap.explain` take like any other
game. `games/user.py` binds a user's own game to rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weightedshap._checks import (
    BoolArray,
    FloatArray,
    as_outputs,
    check_positive_integer,
    optional_attrs,
    require,
)
from weightedshap._lazy import pd
from weightedshap.coalitions import as_coalitions, slices_of

# Masked rows that shap keeps in memory at once.
BATCH_ROWS = 2**14
# Background rows to assume for a masker that does not show how many it has.
ASSUMED_BACKGROUND = 256


@dataclass(frozen=True)
class FunctionGame:
    """A game of d players, given by a function from coalitions (m, d) to values (m,) or (m, k).

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
        check_positive_integer("d", self.d)

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        coalitions = as_coalitions(coalitions, self.d)
        return as_outputs(self.function(coalitions), len(coalitions), "The game")


def from_shap(model: Any, masker: Any, x: Any) -> FunctionGame:
    """Return the game of a model under one of shap's maskers, at the row `x`.

    Its values are predictions averaged over the masker's background. `model` is a function of the
    masker's output (rows, texts, images). `masker` may also be background rows, of which shap's
    `Independent` uses 100. For an Explainer: ``game=lambda row: from_shap(model, masker, row)``.
    """
    shap = require("shap", "shap")
    if not callable(model):
        raise TypeError(
            f"`model` must be a function, such as model.predict; got {type(model).__name__}."
        )
    if not callable(masker):
        masker = shap.maskers.Independent(masker)
    attributes = optional_attrs(masker, "data", "shape", "feature_names")
    if isinstance(x, (list, tuple, pd.Series, pd.DataFrame)):
        x = np.asarray(x)
    is_one_row_table = isinstance(x, np.ndarray) and x.ndim == 2 and x.shape[0] == 1
    # A masker of tables takes a row (c,); others, such as those of images, take x as it is.
    if is_one_row_table and "data" in attributes:
        x = x[0]
    masked_model = shap.utils.MaskedModel(model, masker, shap.links.identity, True, x)
    d = len(masked_model)

    shape = attributes.get("shape")
    n_background = (shape[0] if isinstance(shape, tuple) else None) or ASSUMED_BACKGROUND
    batch_size = max(1, BATCH_ROWS // int(n_background))

    def values(coalitions: BoolArray) -> npt.NDArray[Any]:
        """Return v(S), in batches that limit the memory of masked copies of the background."""
        if len(coalitions) == 0:
            # One value is computed to learn the number of outputs.
            return np.asarray(masked_model(np.ones((1, d), dtype=np.bool_))[:0])
        return np.concatenate(
            [masked_model(coalitions[batch]) for batch in slices_of(len(coalitions), batch_size)]
        )

    names = attributes.get("feature_names")
    if callable(names):
        names = names(x)[0]
    return FunctionGame(values, d, _player_names(names, d))


def _player_names(names: Sequence[object] | None, d: int) -> tuple[str, ...] | None:
    """Return the players' names as text; None unless there are exactly d names."""
    return tuple(map(str, names)) if names is not None and len(names) == d else None


def from_shapiq(game: Any) -> FunctionGame:
    """Wrap a `shapiq.Game` or a shapiq imputer as a `FunctionGame`.

    The constant that shapiq subtracts from its values (`normalization_value`) is added again.
    """
    attributes = optional_attrs(game, "n_players", "player_name_lookup")
    if not callable(game) or "n_players" not in attributes:
        raise TypeError(
            f"A shapiq game is callable and has `n_players`; got {type(game).__name__}."
        )
    d = int(attributes["n_players"])
    # From names to positions.
    position_of = attributes.get("player_name_lookup") or {}

    def values(coalitions: BoolArray) -> FloatArray:
        """Return v(S), without shapiq's normalisation."""
        # shapiq refuses an empty array.
        if len(coalitions) == 0:
            return np.empty(0)
        subtracted = optional_attrs(game, "normalization_value").get("normalization_value", 0.0)
        return np.asarray(game(coalitions)) + float(subtracted)

    names = sorted(position_of, key=position_of.__getitem__)
    return FunctionGame(values, d, _player_names(names, d))
