"""What an experiment is: its cases, one run of a case, and what follows from all runs.

Every module of experiments builds on this one; `runner` runs them, `results` writes them up.
"""

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
    """The options of ``weightedshap reproduce``; without a `game` the experiment chooses it."""

    runs: int = 10
    rows: int = 100
    game: str = ""
    seed: int = 0
    quick: bool = False
    authors_order: bool = False
    authors_stop: bool = False


@dataclass(frozen=True)
class Case:
    """One case of an experiment: a dataset or model, and the name of the game that explains it.

    The game is "" if there is none. Without a name it is the linear-Gaussian setting with
    correlation `rho`.
    """

    name: str = ""
    game: str = ""
    rho: float = 0.0

    @classmethod
    def from_text(cls, text: str) -> Case:
        """Parse a case from the text that ``str(case)`` returned."""
        setting, _, game = text.partition("/")
        name, _, rho = setting.partition("rho=")
        return cls(name, game, float(rho or 0))

    def __str__(self) -> str:
        return f"{self.setting}/{self.game}" if self.game else self.setting

    @property
    def setting(self) -> str:
        """The dataset or model as text, without the game: "airfoil" or "rho=0.6"."""
        return self.name or f"rho={self.rho}"

    @property
    def words(self) -> str:
        """The case as text for readers, such as "airfoil (neural surrogate)".

        The tree surrogate is the usual game and is not named.
        """
        setting = self.name or f"ρ = {self.rho}"
        return (
            setting
            if self.game in ("", "tree_surrogate")
            else f"{setting} ({self.game.replace('_', ' ')})"
        )


Numbers = Mapping[str, Any]
"""The results of one run: numbers and arrays by name."""

Runs = Mapping[Case, Sequence[Numbers]]
"""The results of all runs of each case."""


def across(runs: Sequence[Numbers], *keys: str | int) -> FloatArray:
    """Collect the values at a path of keys from all runs, as an array (runs, …)."""
    values: Sequence[Any] = runs
    for key in keys:
        values = [value[key] for value in values]
    return np.array(values)


@dataclass(frozen=True)
class Claim:
    """A claim of the paper: a sentence, the paper's result, ours, and checks whether it holds."""

    text: str
    paper: str
    ours: str
    checks: Sequence[bool | np.bool_]

    @property
    def verdict(self) -> str:
        """The verdict: "holds", "holds in part" or "does not hold".

        A claim holds if all its checks are true, and in part if some are.
        """
        if all(self.checks):
            return VERDICTS[0]
        return VERDICTS[1] if any(self.checks) else VERDICTS[2]


@dataclass(frozen=True)
class Experiment:
    """One figure, table or number of the paper: how to run it and how to present its results.

    `draw`, `claims`, `table` and `headline` are functions of all runs.
    """

    title: str
    cases: Callable[[Settings], Sequence[Case]]
    run: Callable[[Case, Settings, np.random.Generator], Numbers]
    draw: Callable[[Runs], Figure] | None = None
    # Lines of RESULTS.md; none where the paper says nothing.
    claims: Callable[[Runs], list[Claim]] = lambda runs: []
    table: Callable[[Runs], list[str]] = lambda runs: []  # further lines of RESULTS.md
    headline: Callable[[Runs], str] = lambda runs: ""  # a few words for the summary
    # The settings that change the numbers of a run.
    depends: tuple[str, ...] = ("seed", "rows", "quick")
    game: str = ""  # if the settings name none
    most_runs: int | None = None  # an upper limit, even if the settings ask for more
    notes: tuple[str, ...] = ()  # what the paper leaves open and what was chosen here

    def resolve(self, settings: Settings) -> Settings:
        """Return the settings with the experiment's game filled in and the number of runs limited.

        A game given in the settings is kept. An experiment without random draws has one run.
        """
        most = 1 if "seed" not in self.depends else self.most_runs or settings.runs
        return replace(settings, game=settings.game or self.game, runs=min(settings.runs, most))

    def configuration(self, settings: Settings) -> dict[str, Any]:
        """Return the settings that change the numbers of a run, as a dict by name."""
        chosen = asdict(self.resolve(settings))
        return {name: chosen[name] for name in self.depends}
