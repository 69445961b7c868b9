"""v(S): what the model predicts when only the features in S are known.

A recipe (`Marginal()`) is fitted to a model and a background, and the fitted game is aimed at a
row:

    game = Marginal().fit(model, background, rng).at(x)     # game(coalitions) → values

To add a game, write a recipe class with ``fit(model, background, rng)`` whose result has
``at(row)`` and ``predict(rows)``, and add one line to `GAMES`.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from weightedshap.games.adapters import FunctionGame, from_shap, from_shapiq
from weightedshap.games.base import FittedGame, Game, Recipe
from weightedshap.games.gaussian import Copula, Gaussian, block_exchangeable_contributions
from weightedshap.games.marginal import Baseline, Marginal
from weightedshap.games.surrogates.anchored import Anchored, AnchoredNetwork
from weightedshap.games.surrogates.distilled import DistilledTrees
from weightedshap.games.surrogates.neural import Auto, NeuralSurrogate
from weightedshap.games.surrogates.tree_surrogate import TreeSurrogate
from weightedshap.games.tree_model import TreeModel

__all__ = [
    "GAMES",
    "JUDGES",
    "Anchored",
    "AnchoredNetwork",
    "Auto",
    "Baseline",
    "Copula",
    "DistilledTrees",
]
__all__ += [
    "FittedGame",
    "FunctionGame",
    "Game",
    "Gaussian",
    "Marginal",
    "NeuralSurrogate",
    "Recipe",
    "TreeModel",
]
__all__ += ["TreeSurrogate", "block_exchangeable_contributions", "from_shap", "from_shapiq"]

GAMES: Mapping[str, Callable[[], Recipe]] = {
    "tree_surrogate": TreeSurrogate,
    "neural_surrogate": NeuralSurrogate,
    "surrogate": Auto,
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
"""Games that rankings can be scored on: those that explain, and those that may know the prediction
itself."""

RECIPES: Mapping[str, Any] = {
    recipe.__name__: recipe for recipe in {type(make()) for make in JUDGES.values()}
}
"""Their classes by name, for files."""
