"""A fitted explainer in a folder, without pickle: its choices, its background, and the game that was learned.

``explainer.npz`` holds the choices and the background. A tree surrogate adds LightGBM's own text files, a neural one
safetensors and JSON. Every other game is fitted again when it is loaded, which draws the same numbers. The model stays
with the user, and so do parts that were given as functions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from weightedshap.files import archive as files
from weightedshap.games import GAMES
from weightedshap.games.neural_surrogate import FittedNeuralSurrogate
from weightedshap.games.surrogate import Encoding
from weightedshap.games.tree_surrogate import FittedTreeSurrogate
from weightedshap.inputs import Table, as_model
from weightedshap.weights import WeightFamily

__all__ = ["load", "save"]

VERSION = 1
MAIN, NETWORK = "explainer.npz", "network"
PLAIN = (str, int, float, bool, type(None))
RECIPES = {recipe.__name__: recipe for recipe in {type(make()) for make in GAMES.values()}}


def save(explainer: Any, folder: str | os.PathLike[str]) -> None:
    """Write `explainer` to `folder`, which is made if need be; files of the same names are replaced."""
    recipe, game = _recipe_content(explainer.recipe), _game_content(explainer.game)
    again = [name for name, value in explainer.choices.items() if not _is_plain(value)]
    content = {
        "choices": {name: value if _is_plain(value) else None for name, value in explainer.choices.items()},
        "again": again if recipe or game else [*again, "game"],
        "family": {"labels": explainer.family.labels, "vectors": explainer.family.vectors},
        "background": _table_content(explainer.background),
        "recipe": recipe,
        "game": game,
    }
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(explainer.game, FittedTreeSurrogate):
        for output, booster in enumerate(explainer.game.boosters):
            booster.save_model(folder / f"booster_{output}.txt")
    if isinstance(explainer.game, FittedNeuralSurrogate):
        explainer.game.save(folder / NETWORK)
    files.write(folder / MAIN, "explainer", VERSION, content)


def load(cls: Any, folder: str | os.PathLike[str], model: Any, choices: Mapping[str, Any]) -> Any:
    """The explainer that `save` wrote; `choices` replace saved ones and supply those that are functions."""
    folder = Path(folder)
    content = files.read(folder / MAIN, "explainer", VERSION)
    missing = [name for name in content["again"] if name not in choices]
    if missing:
        raise ValueError(
            f"The explainer in {os.fspath(folder)!r} was made with {', '.join(missing)} of your own, which no file can "
            f"hold. Pass {'it' if len(missing) == 1 else 'them'} again: Explainer.load(folder, model, {missing[0]}=…)."
        )
    fixed = sorted({"background", "groups", "background_weights"} & set(choices))
    if fixed:
        raise ValueError(f"`{fixed[0]}` is part of what was saved and cannot be changed. Make a new Explainer for it.")
    family = WeightFamily(content["family"]["labels"], content["family"]["vectors"])
    background = Table(**content["background"])
    wanted = {"family": family, **content["choices"], **choices}
    recipe = _recipe(content["recipe"])
    if "game" not in choices:
        called = {name: wanted[name] for name in ("predict", "outputs", "link")}
        game = _game(content["game"], folder, lambda: as_model(model, background, **called), background)
        wanted["game"] = recipe if game is None else game
    explainer = cls(model, background, **wanted)
    if "game" not in choices and recipe is not None:
        explainer.recipe = recipe
    return explainer


def _is_plain(value: Any) -> bool:
    """Whether JSON holds it: a name, a number, or a list of them."""
    return isinstance(value, PLAIN) or (isinstance(value, (list, tuple)) and all(isinstance(v, PLAIN) for v in value))


def _table_content(table: Table) -> dict[str, Any]:
    names = ("data", "names", "players", "player_names", "weights", "notes")
    return {name: getattr(table, name) for name in names}


def _recipe_content(recipe: Any) -> dict[str, Any] | None:
    """The name and settings of a recipe of this package; None for any other game."""
    if RECIPES.get(type(recipe).__name__) is not type(recipe) or not is_dataclass(recipe):
        return None
    settings = asdict(recipe)
    return {"name": type(recipe).__name__, "settings": settings} if all(map(_is_plain, settings.values())) else None


def _recipe(content: Mapping[str, Any] | None) -> Any:
    return None if content is None else RECIPES[content["name"]](**content["settings"])


def _game_content(game: Any) -> dict[str, Any] | None:
    """What has to be kept of a learned game; None for a game that is fitted again."""
    if isinstance(game, FittedNeuralSurrogate):
        return {"kind": "neural_surrogate"}
    if not isinstance(game, FittedTreeSurrogate):
        return None
    strange = [v for ranks in game.encoding.ranks.values() for v in ranks if not isinstance(v, PLAIN)]
    if strange:
        raise TypeError(
            f"A column has the category {strange[0]!r}, a {type(strange[0]).__name__}, which cannot be saved. Turn the "
            "column into strings before fitting."
        )
    return {
        "kind": "tree_surrogate",
        "missing": game.encoding.missing,
        "ranks": {column: dict(ranks) for column, ranks in game.encoding.ranks.items()},
        "quality": dict(game.quality),
        "outputs": len(game.boosters),
    }


def _game(content: Mapping[str, Any] | None, folder: Path, model: Any, background: Table) -> Any:
    """The learned game, or None where the recipe has to be fitted again."""
    if content is None:
        return None
    if content["kind"] == "neural_surrogate":
        return FittedNeuralSurrogate.load(folder / NETWORK, model(), background)
    import lightgbm

    paths = [folder / f"booster_{output}.txt" for output in range(content["outputs"])]
    boosters = tuple(lightgbm.Booster(model_file=path) for path in paths)
    wrapped = model()
    if len(wrapped.chosen) != len(boosters):
        raise ValueError(
            f"The saved game has {len(boosters)} outputs but the model has {len(wrapped.chosen)} to explain. Pass the "
            "model, and the outputs, that it was fitted to."
        )
    encoding = Encoding(content["missing"], content["ranks"], background.names)
    return FittedTreeSurrogate(wrapped, background, encoding, boosters, content["quality"])
