"""What an experiment is: its cases, one run of a case, and what all runs say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from weightedshap._checks import FloatArray

VERDICTS = ("holds", "holds in part", "does not hold")


@dataclass(frozen=True)
class Settings:
    """What a person may choose. `game` is "" where the experiment's own choice is meant."""

    runs: int = 10
    rows: int = 100
    game: str = ""
    seed: int = 0
    quick: bool = False
    authors_order: bool = False
    authors_stop: bool = False


@dataclass(frozen=True)
class Case:
    """A dataset or model by its name, else the linear-Gaussian setting; and the game that explains
    it, "" for none."""

    name: str = ""
    game: str = ""
    rho: float = 0.0

    @classmethod
    def parsed(cls, text: str) -> Case:
        """The case that is written so."""
        setting, _, game = text.partition("/")
        name, _, rho = setting.partition("rho=")
        return cls(name, game, float(rho or 0))

    def __str__(self) -> str:
        return f"{self.setting}/{self.game}" if self.game else self.setting

    @property
    def setting(self) -> str:
        """All but the game, as text."""
        return self.name or f"rho={self.rho}"

    @property
    def words(self) -> str:
        """The case for readers; the tree surrogate goes without saying."""
        setting = self.name or f"ρ = {self.rho}"
        return (
            setting
            if self.game in ("", "tree_surrogate")
            else f"{setting} ({self.game.replace('_', ' ')})"
        )


Numbers = Mapping[str, Any]
"""What one run gave: numbers and arrays, by their names."""
Runs = Mapping[Case, Sequence[Numbers]]
"""What the runs of each case gave."""


def across(runs: Sequence[Numbers], *keys: str | int) -> FloatArray:
    """(runs, …) what stands in each run at a path of keys."""
    found: Sequence[Any] = runs
    for key in keys:
        found = [value[key] for value in found]
    return np.array(found)


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper, its number, ours, and what was checked."""

    text: str
    paper: str
    ours: str
    checks: Sequence[bool | np.bool_]

    @property
    def verdict(self) -> str:
        """ "holds" if all checks do, "holds in part" if some do, else "does not hold"."""
        return VERDICTS[0 if all(self.checks) else 1 if any(self.checks) else 2]


@dataclass(frozen=True)
class Experiment:
    """One figure, table or number of the paper; `draw`, `claims`, `table` and `headline` are made
    of all runs."""

    title: str
    cases: Callable[[Settings], Sequence[Case]]
    run: Callable[[Case, Settings, np.random.Generator], Numbers]
    draw: Callable[[Runs], Figure] | None = None
    # Lines of RESULTS.md; none where the paper says nothing.
    claims: Callable[[Runs], list[Claim]] = lambda runs: []
    table: Callable[[Runs], list[str]] = lambda runs: []  # further lines of RESULTS.md
    headline: Callable[[Runs], str] = lambda runs: ""  # what the summary says of it in a few words
    # The settings that change the numbers of a run.
    depends: tuple[str, ...] = (
        "seed",
        "rows",
        "quick",
    )
    game: str = ""  # where none is asked for
    most_runs: int | None = None  # runs beyond these are not made, whatever is asked for
    notes: tuple[str, ...] = ()  # what the paper leaves open and what was chosen here

    def resolved(self, settings: Settings) -> Settings:
        """The settings with the experiment's own game and number of runs: one if nothing is drawn
        at random."""
        most = 1 if "seed" not in self.depends else self.most_runs or settings.runs
        return replace(settings, game=settings.game or self.game, runs=min(settings.runs, most))

    def configuration(self, settings: Settings) -> dict[str, Any]:
        """The settings that the numbers depend on."""
        chosen = asdict(self.resolved(settings))
        return {name: chosen[name] for name in self.depends}
