"""Runs of experiments, kept on disk: one small JSON file for each finished run.

A run draws from its own generator, so it gives the same numbers alone, in another order, or after an
interruption. Files are renamed into place when they are complete: what is there is finished.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from weightedshap._version import __version__
from weightedshap.parallel import bar

__all__ = ["Claim", "Experiment", "Runs", "Settings", "run_experiment", "shown_case", "stored_runs", "verdict"]

DIGITS = 6  # significant digits kept in the files

Numbers = Mapping[str, Any]
Runs = Mapping[str, Sequence[Numbers]]
"""What the runs of each case gave."""


@dataclass(frozen=True)
class Settings:
    """What a person may choose. `game` is None where the experiment's own choice is meant."""

    runs: int = 10
    rows: int = 100
    game: str | None = None
    seed: int = 0
    quick: bool = False
    authors_order: bool = False
    authors_stop: bool = False


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper, its number, ours, and whether it holds."""

    text: str
    paper: str
    ours: str
    verdict: str


VERDICTS = ("holds", "holds in part", "does not hold")


def verdict(checks: Sequence[bool]) -> str:
    """ "holds" if all checks do, "holds in part" if some do, else "does not hold"."""
    return VERDICTS[0 if all(checks) else 1 if any(checks) else 2]


def shown_case(case: str) -> str:
    """A dataset or setting and its game in words; the tree surrogate goes without saying."""
    name, _, game = case.replace("rho=", "ρ = ").partition("/")
    return name if game in ("", "tree_surrogate") else f"{name} ({game.replace('_', ' ')})"


@dataclass(frozen=True)
class Experiment:
    """One figure, table or number of the paper.

    Attributes
    ----------
    title : one line
    cases : what is run: a dataset or a setting, and after a slash the game
    run : one run of one case, plain numbers and arrays
    draw : the figure, of all runs; None where there is none
    claims : lines of RESULTS.md, of all runs; None where the paper says nothing
    depends : the settings that change the numbers of a run
    game : the game where none is asked for
    table : further lines of RESULTS.md, of all runs
    headline : what the summary says of it in a few words, of all runs
    most_runs : runs beyond these are not made, whatever is asked for
    notes : what the paper leaves open and what was chosen here
    """

    title: str
    cases: Callable[[Settings], Sequence[str]]
    run: Callable[[str, Settings, np.random.Generator], Numbers]
    draw: Callable[[Runs], Any] | None
    claims: Callable[[Runs], list[Claim]] | None
    depends: tuple[str, ...] = ("seed", "rows", "quick")
    game: str | None = None
    table: Callable[[Runs], list[str]] | None = None
    headline: Callable[[Runs], str] | None = None
    most_runs: int | None = None
    notes: tuple[str, ...] = field(default=())

    def resolved(self, settings: Settings) -> Settings:
        """The settings with the experiment's own game and number of runs: one if nothing is drawn at random."""
        most = 1 if "seed" not in self.depends else self.most_runs or settings.runs
        runs = min(settings.runs, most)
        return replace(settings, game=settings.game or self.game, runs=runs)

    def configuration(self, settings: Settings) -> dict[str, Any]:
        """The settings that the numbers depend on."""
        chosen = asdict(self.resolved(settings))
        return {name: chosen[name] for name in self.depends}


def generator(seed: int, case: str, run: int) -> np.random.Generator:
    """The generator of one run: the same for all experiments and games on one dataset, so that they compare."""
    key = zlib.crc32(case.partition("/")[0].encode())
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(key, run)))


def run_experiment(
    name: str, experiment: Experiment, settings: Settings, folder: Path, progress: bool | str = False
) -> Runs:
    """Run what is not yet stored under ``folder/name``, and return all runs asked for.

    Raises
    ------
    ValueError
        If the folder holds runs of another configuration; nothing is run then.
    """
    settings = experiment.resolved(settings)
    configuration = experiment.configuration(settings)
    cases = experiment.cases(settings)
    todo = [(case, run) for case in cases for run in range(settings.runs)]
    check_configuration(folder / name, configuration)
    left = [(case, run) for case, run in todo if not _path(folder, name, case, run).exists()]
    with bar(len(todo), name, progress, unit="run") as shown:
        shown.update(len(todo) - len(left))
        for case, run in left:
            numbers = experiment.run(case, settings, generator(settings.seed, case, run))
            record = {"configuration": configuration, "version": __version__, "numbers": _plain(numbers)}
            write_atomically(_path(folder, name, case, run), json.dumps(record) + "\n")
            shown.update(1)
    return {case: [_read(_path(folder, name, case, run))["numbers"] for run in range(settings.runs)] for case in cases}


def stored_runs(folder: Path, name: str) -> tuple[Runs, dict[str, Any]]:
    """All runs of an experiment that are on disk, by case, and their configuration; both empty if there are none."""
    runs: dict[str, list[Numbers]] = {}
    configuration: dict[str, Any] = {}
    for path in sorted((folder / name).rglob("run-*.json")):
        record = _read(path)
        case = path.parent.relative_to(folder / name).as_posix()
        runs.setdefault(case, []).append(record["numbers"])
        configuration = record["configuration"]
    return runs, configuration


def check_configuration(folder: Path, wanted: Mapping[str, Any]) -> None:
    """Refuse runs of another configuration, and name the difference."""
    for path in sorted(folder.rglob("run-*.json")):
        found = _read(path)["configuration"]
        differences = [
            f"{key} is {found.get(key)!r} there and {wanted.get(key)!r} here"
            for key in sorted({*found, *wanted})
            if found.get(key) != wanted.get(key)
        ]
        if differences:
            raise ValueError(
                f"{path} holds a run of another configuration: {'; '.join(differences)}. "
                "Pass the same options, or another folder with --results."
            )


def write_atomically(path: Path, text: str) -> None:
    """Write a file that is either not there or complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _path(folder: Path, name: str, case: str, run: int) -> Path:
    return folder / name / case / f"run-{run:03d}.json"


def _read(path: Path) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        record["configuration"], record["numbers"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is not a stored run ({error}). Delete it, and it is run again.") from error
    return record


def _plain(value: Any) -> Any:
    """Arrays and numbers as JSON has them, floats cut to `DIGITS` digits."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(part) for part in value]
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.{DIGITS}g}")
    return value.item() if isinstance(value, np.generic) else value
