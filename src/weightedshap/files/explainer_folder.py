"""A fitted explainer in a folder, without pickle: its choices, its background, and the games that
were learned.

A learned game says itself what has to be kept (`Fitted.stored`), and its recipe reads it back
(`restored`). Every other game is fitted again, which draws the same numbers. The model stays with
the user, and so do parts given as functions; what it predicts for some background rows is kept, so
that no game is shown as that of another model.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from weightedshap._checks import as_path, field_values, stored_array
from weightedshap.config import NEED_A_FIT, Choices, Fits, Setting
from weightedshap.files import archive, version_1
from weightedshap.games import RECIPES
from weightedshap.games.base import Fitted
from weightedshap.inputs import Data, Table, UserModel
from weightedshap.weights import WeightFamily

VERSION = 4
MAIN = "explainer.npz"
PLAIN = (str, int, float, bool, type(None))
MOST_PROBES = 100
CLOSE = 1e-5  # relative: libraries add up in single precision
REFIT = "Pass what they were saved with, or refit=True to fit the games again."
NOT_STORED = object()  # stands for a choice that no file can hold


def save(setting: Setting, fits: Fits, folder: str | os.PathLike[str]) -> None:
    """Write `setting` and what its games learned to `folder`, which is made if need be."""
    judge = None if fits.judge is fits.games[0] else fits.judge.stored()
    learned = {"game": [game.stored() for game in fits.games], "judge": [judge]}
    choices = {
        name: _stored(name, value, setting) for name, value in field_values(setting.choices).items()
    }
    kept = {name: value for name, value in choices.items() if value is not NOT_STORED}
    again = [name for name in choices if name not in kept and None in learned.get(name, [None])]
    content = {
        "choices": kept,
        "again": again,
        "background": field_values(setting.background),
        "learned": learned,
    }
    path = as_path(folder)
    path.mkdir(parents=True, exist_ok=True)
    if setting.model is not None:
        content["fingerprint"] = setting.model(_probes(setting.background))
    archive.write(path / MAIN, "explainer", VERSION, content)


def load(
    folder: str | os.PathLike[str],
    model: UserModel,
    changes: Mapping[str, Any],
    refit: bool = False,
) -> tuple[Setting, Fits]:
    """What `save` was given; `changes` replace saved choices and supply those that are
    functions."""
    path = as_path(folder) / MAIN
    content = archive.read(path, "explainer", VERSION)
    with archive.damage(path):
        if "learned" not in content:
            content = version_1.translated(content, Path(folder))
        if content["learned"] is None or "judge" not in content["learned"]:
            content = _of_one_game(content)
        saved = {name: _restored(value) for name, value in content["choices"].items()}
        choices = Choices(**saved)
        table = Table.restored(content["background"])
        lists = content["again"], content["learned"]["game"], content["learned"]["judge"]
        if not all(isinstance(one, list) for one in lists) or not all(lists[1:]):
            raise ValueError("`again` and `learned` are no lists.")
        if (before := content.get("fingerprint")) is not None:  # early folders have none
            stored_array("fingerprint", before, (len(_probes(table)), *np.shape(before)[1:2]))
    if missing := [name for name in content["again"] if name not in changes]:
        said = (
            f"The explainer in {os.fspath(folder)!r} was made with {', '.join(missing)} of your own"
        )
        again = (
            f"{'it' if len(missing) == 1 else 'them'} again: Explainer.load(folder, model,"
            f" {missing[0]}=…)"
        )
        raise ValueError(f"{said}, which no file can hold. Pass {again}.")
    if fixed := sorted({"background", "groups", "background_weights"} & set(changes)):
        raise ValueError(
            f"`{fixed[0]}` is part of what was saved and cannot be changed. Make a new Explainer"
            " for it."
        )
    setting = Setting.of(model, table, choices.but(**changes))
    if not isinstance(refit, bool):
        raise TypeError(f"`refit` must be True or False; got {refit!r}.")
    if refit:
        return setting, setting.fit()
    _check_fingerprint(before, setting)
    kept = {name: learned for name, learned in content["learned"].items() if name not in changes}
    if any(game is not None for learned in kept.values() for game in learned):
        _check_unchanged(choices, setting.choices, content["again"])
    with archive.damage(path):
        found = {
            name: tuple(_game(one, setting) for one in learned) for name, learned in kept.items()
        }
    for name, games in found.items():
        # It was given as a fitted one: no recipe is known that could be fitted on other rows.
        if name not in saved:
            given = games if len(games) > 1 else games[0]
            setting = replace(setting, choices=setting.choices.but(**{name: given}))
    return setting, setting.fit(**found)


def _probes(table: Table) -> Data:
    """The background rows, or some of many, whose predictions tell models apart."""
    return table.take(np.unique(np.linspace(0, len(table) - 1, MOST_PROBES).astype(np.intp)))


def _check_fingerprint(before: Any, setting: Setting) -> None:
    """An error for a model that does not predict what the saved one did."""
    if before is None or setting.model is None:
        return
    now = setting.model(_probes(setting.background))
    differ = f"another number of outputs than {np.shape(before)[-1]}"
    if now.shape == np.shape(before):
        apart = float(np.abs(now - before).max())
        if apart <= CLOSE * float(np.abs(before).max()):
            return
        differ = f"numbers that differ by up to {apart:.3g} from the saved ones"
    raise ValueError(
        f"The model, with these `outputs`, `link` and `predict`, gives {differ}. {REFIT}"
    )


def _check_unchanged(saved: Choices, now: Choices, again: Iterable[str]) -> None:
    """An error for choices that the learned games depend on and that are others than when they were
    learned."""
    fixed = [name for name in NEED_A_FIT if name not in ("game", "judge", *again)]
    if other := [name for name in fixed if vars(saved)[name] != vars(now)[name]]:
        raise ValueError(f"The saved games were learned under another `{other[0]}`. {REFIT}")


def _game(learned: dict[str, Any] | None, setting: Setting) -> Fitted | None:
    """The game that wrote `learned`; None for one that is fitted again."""
    return (
        None
        if learned is None
        else RECIPES[learned["recipe"]].restored(learned, setting.model, setting.background)
    )


def _of_one_game(content: dict[str, Any]) -> dict[str, Any]:
    """What was written before games and judges were told apart: the game judged itself."""
    choices = {**content["choices"], "judge": "game"}
    if "game" not in content["again"] and choices.get("game", "tree_surrogate") == "auto":
        choices["game"] = "surrogate"
    return {
        **content,
        "choices": choices,
        "learned": {"game": [content["learned"]], "judge": [None]},
    }


def _stored(name: str, value: object, setting: Setting) -> object:
    """A choice as a file holds it: a name, a number, a list of them, a family, or a recipe of this
    library."""
    if name == "family" and not isinstance(value, str):
        return {"labels": setting.method.family.labels, "vectors": setting.method.family.vectors}
    if RECIPES.get(type(value).__name__) is type(value):
        settings = field_values(value)
        return (
            {"recipe": type(value).__name__, "settings": settings}
            if _is_plain(settings.values())
            else NOT_STORED
        )
    return (
        value if _is_plain(value if isinstance(value, (list, tuple)) else [value]) else NOT_STORED
    )


def _is_plain(values: Iterable[object]) -> bool:
    return all(isinstance(value, PLAIN) for value in values)


def _restored(value: object) -> Any:
    if not isinstance(value, dict):
        return value
    return (
        WeightFamily(**value)
        if "vectors" in value
        else RECIPES[value["recipe"]](**value["settings"])
    )
