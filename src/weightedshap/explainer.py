"""The whole method on one page.

model, background ─▶ game ─▶ Δ contributions ─▶ φ = W·Δ ─▶ T utility ─▶ w*, φ*
"""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from weightedshap.checks import look_up, one_of
from weightedshap.estimators import ESTIMATORS, Estimator, as_estimator
from weightedshap.explanation import Explanation, name_of
from weightedshap.files import explainers as saving
from weightedshap.games import GAMES
from weightedshap.games.wrappers import GameFunction, GivenGame, checked
from weightedshap.inputs import Groups, Outputs, Table, as_model, as_table, trained_columns
from weightedshap.rows import Rows, explain_rows
from weightedshap.selection import SELECTIONS
from weightedshap.utilities import Utility, as_utility
from weightedshap.weights import WeightFamily, as_family

__all__ = ["Explainer", "explain"]


class Explainer:
    """WeightedSHAP attributions of a model's predictions.

    The constructor checks every choice and fits the game; calling the explainer only explains.

    Parameters
    ----------
    model : anything with ``predict_proba`` or ``predict``, a torch module, an ONNX session, or a function of rows
    background : rows that the model may see, as an array, a pandas or a polars DataFrame
    game : a name of `GAMES`, a recipe, a fitted game, or a function row → Game
    estimator : a name of `ESTIMATORS`, or a function (game, *, rng) → Contributions
    family : a name of `FAMILIES`, a `WeightFamily`, or a function d → WeightFamily
    utility : a name of `UTILITIES`, or a function (game, f_x) → (phi[m, d] → score[m])
    select : "per_row"; "shared" for one w for all rows of a call; "one_standard_error" for the shared w nearest to
        uniform whose mean utility is within one standard error of the best (Shapley, unless beaten beyond noise)
    evaluations : budget for each row of a sampled game
    predict : overrides how the model is called
    groups : players made of several columns, ``{"address": ["city", "zip"]}``
    outputs : which outputs of a model with several, by position or name; a list keeps the axis k
    link : "logit" explains probabilities as log-odds, with p kept within 1e-12 of 0 and 1
    background_weights : (n,) weights of the background rows
    keep_contributions : whether Δ stays in the result; "auto" up to 1 GiB
    random_state : seed; row r draws from its own child of it
    n_jobs : workers; changes nothing but time
    progress : "auto" shows a bar for long work in a terminal; True, False
    """

    def __init__(
        self,
        model: Any,
        background: Any,
        *,
        game: Any = "tree_surrogate",
        estimator: Any = "auto",
        family: Any = "paper",
        utility: Any = "aup",
        select: str = "per_row",
        evaluations: int | None = None,
        predict: Callable[[Any], Any] | None = None,
        groups: Groups | None = None,
        outputs: Outputs = None,
        link: str = "identity",
        background_weights: Any = None,
        keep_contributions: bool | str = "auto",
        random_state: int = 0,
        n_jobs: int | None = 1,
        progress: bool | str = "auto",
    ) -> None:
        self.choices = {
            "estimator": estimator, "utility": utility, "select": select, "evaluations": evaluations,
            "predict": predict, "outputs": outputs, "link": link, "keep_contributions": keep_contributions,
            "random_state": random_state, "n_jobs": n_jobs, "progress": progress,
        }  # fmt: skip
        self.estimator: Estimator = as_estimator(estimator, evaluations)
        self.in_blocks = estimator in ("auto", "exact", ESTIMATORS["auto"], ESTIMATORS["exact"])
        self.utility = as_utility(utility)
        self.select = one_of("selection", select, SELECTIONS)
        self.keep_contributions = _keeping(keep_contributions)
        self.random_state, self.n_jobs, self.progress = int(random_state), n_jobs, progress
        self.recipe = look_up("game", game, GAMES)() if isinstance(game, str) else game
        self.background = as_table(background, background_weights, groups, trained_columns(model))
        self.family: WeightFamily = as_family(family, self.background.d)
        self.model = as_model(model, self.background, predict, outputs, link) if model is not None else None
        self.game: Any = self._fitted(self.recipe)

    def __call__(self, X: Any) -> Explanation:
        """Explain every row of `X`."""
        rows = self.background.align(X)
        notes = self.background.notes + self.background.unseen(rows)
        call = Rows(self, self.game, rows, self.game.predict(rows))
        return explain_rows(call, rows, self.background.player_names, notes)

    def _fitted(self, recipe: Any) -> Any:
        if hasattr(recipe, "fit"):
            return recipe.fit(self.model, self.background, np.random.default_rng(self.random_state))
        if hasattr(recipe, "at"):
            return recipe
        if callable(recipe):
            return GameFunction(recipe, self.background)
        raise TypeError(
            f"`game` must be a name ({', '.join(map(repr, GAMES))}), a recipe with `fit`, a fitted game with `at`, "
            f"or a function row → Game; got {type(recipe).__name__}."
        )

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write choices, background and learned game to a folder, without pickle; see `load`."""
        saving.save(self, folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], model: Any, **choices: Any) -> Explainer:
        """The explainer that `save` wrote, for the same model: its explanations are the same to the bit.

        Nothing in the folder can run code. `choices` of the constructor replace saved ones; an estimator, utility,
        game or `predict` that was given as a function cannot be saved and has to be passed again.
        """
        return saving.load(cls, folder, model, choices)  # type: ignore[no-any-return]

    def but(self, **choices: Any) -> Explainer:
        """The same explainer with some attributes changed; the fitted game is shared."""
        other = copy(self)
        vars(other).update(choices)
        return other

    def refitted(self, background: Table) -> Explainer:
        """The same choices with the game fitted on other rows."""
        if not hasattr(self.recipe, "fit"):
            raise ValueError(
                "The game was given as a fitted one or as a function, so it cannot be fitted on other rows. Give its "
                "name or a recipe."
            )
        other = self.but(background=background)
        other.game = other._fitted(self.recipe)
        return other

    def judging(self, utility: Utility) -> Any:
        """The fitted game that `utility` looks at: the explained one unless it asks for another."""
        wanted = getattr(utility, "game", None)
        return self.game if wanted is None else self._fitted(GAMES[wanted]())


def explain(
    game: Any,
    *,
    family: Any = "paper",
    utility: Any = "aup",
    estimator: Any = "auto",
    evaluations: int | None = None,
    random_state: int = 0,
) -> Explanation:
    """Explain one bound game: anything with `d` that maps coalitions (m, d) to values (m[, k]).

    f(x) is the game of all players. The result has one row.
    """
    game = checked(game)
    explainer = _GameExplainer(
        GivenGame(game),
        as_estimator(estimator, evaluations),
        as_family(family, game.d),
        as_utility(utility),
        random_state,
    )
    names = getattr(game, "player_names", None) or tuple(f"x{i}" for i in range(game.d))
    rows = np.full((1, game.d), np.nan)
    return explain_rows(Rows(explainer, explainer.game, rows, explainer.game.predict(rows)), None, tuple(names))


@dataclass(frozen=True)
class _GameExplainer:
    """The choices of `explain`, in the place of an Explainer."""

    game: GivenGame
    estimator: Estimator
    family: WeightFamily
    utility: Utility
    random_state: int
    in_blocks: bool = False
    select: str = "per_row"
    keep_contributions: bool | str = "auto"
    n_jobs: int | None = 1
    progress: bool | str = False
    model: Any = None

    def judging(self, utility: Utility) -> Any:
        wanted = getattr(utility, "game", None)
        if wanted is not None:
            raise ValueError(
                f"The utility {name_of(utility)!r} looks at the {wanted} game, which needs a model and a background: "
                "use weightedshap.Explainer."
            )
        return self.game


def _keeping(keep: bool | str) -> bool | str:
    if keep not in (True, False, "auto"):
        raise ValueError(f"`keep_contributions` must be True, False or 'auto'; got {keep!r}.")
    return keep
