"""A fitted explainer in a folder, without pickle: its choices, its background, and the game that was learned.

``explainer.npz`` holds all of it. A learned game says itself what has to be kept (`Fitted.stored`), and its recipe
reads it back (`restored`). Every other game is fitted again when it is loaded, which draws the same numbers. The model
stays with the user, and so do parts that were given as functions.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from weightedshap.checks import field_values
from weightedshap.choices import Choices, Setting
from weightedshap.files import archive, version_1
from weightedshap.games import RECIPES
from weightedshap.games.protocols import Fitted
from weightedshap.inputs import Table, UserModel
from weightedshap.weights import WeightFamily

VERSION = 2
MAIN = "explainer.npz"
PLAIN = (str, int, float, bool, type(None))
NOT_STORED = object()  # stands for a choice that no file can hold


def save(setting: Setting, game: Fitted, folder: str | os.PathLike[str]) -> None:
    """Write `setting` and what `game` learned to `folder`, which is made if need be."""
    learned = game.stored()
    choices = {name: _stored(name, value, setting) for name, value in field_values(setting.choices).items()}
    kept = {name: value for name, value in choices.items() if value is not NOT_STORED}
    again = [name for name in choices if name not in kept and (name != "game" or learned is None)]
    background = field_values(setting.background)
    Path(folder).mkdir(parents=True, exist_ok=True)
    content = {"choices": kept, "again": again, "background": background, "learned": learned}
    archive.write(Path(folder) / MAIN, "explainer", VERSION, content)


def load(folder: str | os.PathLike[str], model: UserModel, changes: Mapping[str, Any]) -> tuple[Setting, Fitted]:
    """What `save` was given; `changes` replace saved choices and supply those that are functions."""
    content = archive.read(Path(folder) / MAIN, "explainer", VERSION)
    if "learned" not in content:
        content = version_1.translated(content, Path(folder))
    if missing := [name for name in content["again"] if name not in changes]:
        said = f"The explainer in {os.fspath(folder)!r} was made with {', '.join(missing)} of your own"
        again = f"{'it' if len(missing) == 1 else 'them'} again: Explainer.load(folder, model, {missing[0]}=…)"
        raise ValueError(f"{said}, which no file can hold. Pass {again}.")
    if fixed := sorted({"background", "groups", "background_weights"} & set(changes)):
        raise ValueError(f"`{fixed[0]}` is part of what was saved and cannot be changed. Make a new Explainer for it.")
    saved = {name: _restored(value) for name, value in content["choices"].items()}
    setting = Setting.of(model, Table(**content["background"]), Choices(**saved).but(**changes))
    learned = content["learned"]
    if learned is None or "game" in changes:
        return setting, setting.fit()
    game = RECIPES[learned["recipe"]].restored(learned, setting.model, setting.background)
    if "game" not in saved:  # it was given as a fitted one: no recipe is known that could be fitted on other rows
        setting = replace(setting, choices=setting.choices.but(game=game))
    return setting, game


def _stored(name: str, value: object, setting: Setting) -> object:
    """A choice as a file holds it: a name, a number, a list of them, a family, or a recipe of this library."""
    if name == "family" and not isinstance(value, str):
        return {"labels": setting.method.family.labels, "vectors": setting.method.family.vectors}
    if RECIPES.get(type(value).__name__) is type(value):
        settings = field_values(value)
        return {"recipe": type(value).__name__, "settings": settings} if _is_plain(settings.values()) else NOT_STORED
    return value if _is_plain(value if isinstance(value, (list, tuple)) else [value]) else NOT_STORED


def _is_plain(values: Iterable[object]) -> bool:
    return all(isinstance(value, PLAIN) for value in values)


def _restored(value: object) -> Any:
    if not isinstance(value, dict):
        return value
    return WeightFamily(**value) if "vectors" in value else RECIPES[value["recipe"]](**value["settings"])
