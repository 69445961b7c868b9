"""v(S): what the model predicts when only the features in the coalition S are known.

A recipe (`Marginal()`) is fitted to a model and a background, and the fitted game is bound to a
row:

    game = Marginal().fit(model, background, rng).at(x)     # game(coalitions) → values

To add a game to the library, write a recipe class with ``fit(model, background, rng)`` whose
result is a `BaseGame` with ``batch(rows)`` (see `base`), and add one line to `GAMES`. Users may
pass a recipe of their own, whose result is any object with ``at(row)`` and ``predict(rows)``
(`FittedGame`). The recipes build on `inputs` and `trees`; `weightedshap.config` looks them up by
name in this module.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from weightedshap.games.adapters import FunctionGame, from_shap, from_shapiq
from weightedshap.games.base import FittedGame, Game, Recipe
from weightedshap.games.closed_form import block_exchangeable_contributions
from weightedshap.games.gaussian import Copula, Gaussian
from weightedshap.games.marginal import Baseline, Marginal
from weightedshap.games.surrogates.anchored import Anchored, AnchoredNetwork
from weightedshap.games.surrogates.distilled import DistilledTrees
from weightedshap.games.surrogates.neural import NeuralSurrogate
from weightedshap.games.surrogates.tree_surrogate import TreeSurrogate
from weightedshap.games.tree_model import TreeModel

__all__ = [
    "GAMES",
    "JUDGES",
    "Anchored",
    "AnchoredNetwork",
    "Baseline",
    "Copula",
    "DistilledTrees",
    "FittedGame",
    "FunctionGame",
    "Game",
    "Gaussian",
    "Marginal",
    "NeuralSurrogate",
    "Recipe",
    "TreeModel",
    "TreeSurrogate",
    "block_exchangeable_contributions",
    "from_shap",
    "from_shapiq",
]

GAMES: Mapping[str, Callable[[], Recipe]] = {
    "tree_surrogate": TreeSurrogate,
    "neural_surrogate": NeuralSurrogate,
    "gaussian": Gaussian,
    "copula": Copula,
    "marginal": Marginal,
    "baseline": Baseline,
    "tree_interventional": partial(TreeModel, removal="interventional"),
    "tree_path": partial(TreeModel, removal="path"),
    "distilled_trees": DistilledTrees,
}
"""Recipes of games by name, as `Explainer` takes them."""

JUDGES: Mapping[str, Callable[[], Recipe]] = {
    **GAMES,
    "anchored": Anchored,
    "anchored_network": AnchoredNetwork,
}
"""Recipes of games that rankings can be scored on, by name: those of `GAMES`, and two more whose
games equal the model's prediction when all features are known."""

RECIPES: Mapping[str, Any] = {
    recipe.__name__: recipe for recipe in {type(make()) for make in JUDGES.values()}
}
"""The classes of all recipes by name; a saved game contains the name of its recipe."""
