"""Save a fitted explainer to a folder and load it again, without pickle.

The folder contains the options, the background, and the learned games: such a game returns what it
learned as its `state`, and its recipe restores the game by ``from_state``. All other games are
fitted again on loading, with the same random numbers. The model is not saved, nor are options that
are functions: the user passes them again. The predictions of the model for some background rows are
saved, so that a folder cannot be loaded with another model by mistake.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from weightedshap._checks import as_path, check_array, shallow_asdict
from weightedshap.config import NEED_A_FIT, Config, Setup
from weightedshap.files import archive
from weightedshap.games import RECIPES
from weightedshap.games.base import BaseGame
from weightedshap.inputs import Data, Table
from weightedshap.method import Problem
from weightedshap.weights import WeightFamily

VERSION = 4
MAIN = "explainer.npz"
PLAIN_TYPES = (str, int, float, bool, type(None))
MAX_PROBES = 100
# Relative: predictions of one model may differ by so much if a library uses single precision.
TOLERANCE = 1e-5
REFIT_ADVICE = "Pass what they were saved with, or refit=True to fit the games again."
# Stands for an option that cannot be saved to a file.
NOT_SAVEABLE = object()


def save(setup: Setup, problem: Problem, folder: str | os.PathLike[str]) -> None:
    """Save an explainer's options, background and learned games to `folder`.

    The folder is created if it is missing.
    """
    judges_itself = problem.judge is problem.games[0]
    learned = {
        "game": [game.state() for game in problem.games],
        "judge": [None if judges_itself else problem.judge.state()],
    }
    packed = {
        name: _pack_option(name, value, problem.family)
        for name, value in shallow_asdict(setup.config).items()
    }
    saveable = {name: value for name, value in packed.items() if value is not NOT_SAVEABLE}
    # A learned game is in the file by its state, whether its recipe can be saved or not.
    user_supplied = [
        name for name in packed if name not in saveable and None in learned.get(name, [None])
    ]
    model = setup.model
    content = {
        "choices": saveable,
        "again": user_supplied,
        "background": shallow_asdict(setup.background),
        "learned": learned,
        "fingerprint": None if model is None else model(_select_probes(setup.background)),
    }
    path = as_path(folder)
    path.mkdir(parents=True, exist_ok=True)
    archive.write(path / MAIN, "explainer", VERSION, content)


def load(
    folder: str | os.PathLike[str],
    model: object,
    changes: Mapping[str, Any],
    refit: bool = False,
) -> tuple[Setup, Problem]:
    """Load the options, the background and the fitted games that `save` wrote to `folder`.

    `changes` are options that replace saved ones, or that could not be saved because they are
    functions. A folder of another version raises a ValueError. So does a model whose predictions
    differ from the saved ones, unless `refit` is true: then all games are fitted again.
    """
    path = as_path(folder) / MAIN
    content = archive.read(path, "explainer", VERSION)
    with archive.report_damage(path):
        saved = {name: _unpack_option(value) for name, value in content["choices"].items()}
        config = Config(**saved)
        background = Table.from_state(content["background"])
        learned = _read_learned(content["learned"])
        user_supplied = content["again"]
        if not isinstance(user_supplied, list):
            raise ValueError("`again` is no list.")
        fingerprint = content["fingerprint"]
        if fingerprint is not None:
            n_probes = len(_select_probes(background))
            check_array("fingerprint", fingerprint, (n_probes, *np.shape(fingerprint)[1:2]))

    _check_changes(folder, user_supplied, changes)
    setup = Setup.build(model, background, config.with_options(**changes))
    if not isinstance(refit, bool):
        raise TypeError(f"`refit` must be True or False; got {refit!r}.")
    if refit:
        return setup, setup.fit()

    _check_fingerprint(fingerprint, setup)
    unchanged = {name: states for name, states in learned.items() if name not in changes}
    if any(state is not None for states in unchanged.values() for state in states):
        _check_unchanged(config, setup.config, user_supplied)
    with archive.report_damage(path):
        games = {
            name: tuple(_game_from_state(state, setup) for state in states)
            for name, states in unchanged.items()
        }

    # If the recipe of a learned game is not in the file, the fitted game replaces it as the option:
    # it can be saved again, and is never fitted to other rows as if its recipe were known.
    for name, fitted in games.items():
        if name not in saved:
            option = fitted if len(fitted) > 1 else fitted[0]
            setup = replace(setup, config=setup.config.with_options(**{name: option}))
    return setup, setup.fit(games.get("game", ()), *games.get("judge", ()))


def _read_learned(learned: Any) -> dict[str, list[Any]]:
    """Check the saved states of learned games; return a dict with the keys "game" and "judge".

    Raise a ValueError if either value is not a list with at least one element.
    """
    states = {name: learned[name] for name in ("game", "judge")}
    if not all(isinstance(one, list) and one for one in states.values()):
        raise ValueError("`learned` holds no lists.")
    return states


def _check_changes(
    folder: str | os.PathLike[str], user_supplied: Iterable[str], changes: Mapping[str, Any]
) -> None:
    """Raise an error if `changes` lacks an unsaved option or contains an unchangeable one.

    `user_supplied` names the options that could not be saved, such as functions. The background,
    its weights and the groups cannot be changed.
    """
    missing = [name for name in user_supplied if name not in changes]
    if missing:
        pronoun = "it" if len(missing) == 1 else "them"
        raise ValueError(
            f"The explainer in {os.fspath(folder)!r} was made with {', '.join(missing)} of your"
            f" own, which no file can hold. Pass {pronoun} again: Explainer.load(folder, model,"
            f" {missing[0]}=…)."
        )
    for name in ("background", "background_weights", "groups"):
        if name in changes:
            raise ValueError(
                f"`{name}` is part of what was saved and cannot be changed. Make a new Explainer"
                " for it."
            )


def _select_probes(table: Table) -> Data:
    """Select up to `MAX_PROBES` background rows, evenly spaced, to compare predictions on."""
    places = np.linspace(0, len(table) - 1, MAX_PROBES).astype(np.intp)
    return table.take(np.unique(places))


def _check_fingerprint(saved: Any, setup: Setup) -> None:
    """Raise an error if the model's predictions for the probe rows differ from the saved ones."""
    if saved is None or setup.model is None:
        return
    predictions = setup.model(_select_probes(setup.background))
    difference = f"another number of outputs than {np.shape(saved)[-1]}"
    if predictions.shape == np.shape(saved):
        largest = float(np.abs(predictions - saved).max())
        if largest <= TOLERANCE * float(np.abs(saved).max()):
            return
        difference = f"numbers that differ by up to {largest:.3g} from the saved ones"
    raise ValueError(
        f"The model, with these `outputs`, `link` and `predict`, gives {difference}. {REFIT_ADVICE}"
    )


def _check_unchanged(saved: Config, now: Config, user_supplied: Iterable[str]) -> None:
    """Raise an error if options that affect the fit differ between the configs `saved` and `now`.

    Games, judge and the options `user_supplied`, which could not be saved, are not compared.
    """
    for name in NEED_A_FIT:
        if name in ("game", "judge", *user_supplied):
            continue
        if vars(saved)[name] != vars(now)[name]:
            raise ValueError(f"The saved games were learned under another `{name}`. {REFIT_ADVICE}")


def _game_from_state(state: dict[str, Any] | None, setup: Setup) -> BaseGame | None:
    """Restore a game from its saved state; return None if the state is None.

    A game without a state is fitted again.
    """
    if state is None:
        return None
    game: BaseGame = RECIPES[state["recipe"]].from_state(state, setup.model, setup.background)
    return game


def _pack_option(name: str, value: object, family: WeightFamily) -> object:
    """Convert an option to values that a file can contain; return `NOT_SAVEABLE` if impossible.

    Text, numbers, lists of them, recipes of this library, and any family (as its weight vectors)
    can be saved.
    """
    if name == "family" and not isinstance(value, str):
        return {"labels": family.labels, "vectors": family.vectors}
    if RECIPES.get(type(value).__name__) is type(value):
        settings = shallow_asdict(value)
        if not _are_plain(settings.values()):
            return NOT_SAVEABLE
        return {"recipe": type(value).__name__, "settings": settings}
    items = value if isinstance(value, (list, tuple)) else [value]
    return value if _are_plain(items) else NOT_SAVEABLE


def _are_plain(values: Iterable[object]) -> bool:
    """Return whether all values are text, numbers, booleans or None."""
    return all(isinstance(value, PLAIN_TYPES) for value in values)


def _unpack_option(value: object) -> Any:
    """Convert a saved value back to the option that was passed to `_pack_option`."""
    if not isinstance(value, dict):
        return value
    if "vectors" in value:
        return WeightFamily(**value)
    return RECIPES[value["recipe"]](**value["settings"])
