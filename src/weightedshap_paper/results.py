"""RESULTS.md: claim by claim the paper's number, ours, and whether it holds; from the runs on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from weightedshap_paper.runner import VERDICTS, Claim, Experiment, Runs, stored_runs, write_atomically

__all__ = ["draw_figure", "write_results"]

HEAD = """# The paper, redone

Written by `weightedshap reproduce` from the runs in this folder; edits are lost. One line for each claim of
Kwon and Zou, "WeightedSHAP: analyzing and improving Shapley based feature attributions" (2022): the paper's number,
ours, and whether it holds.
"""

CHOICES = """## What the paper leaves open, and what was chosen

- **Own and independent game.** The paper scores an attribution on the game that chose its weights (*own*), where
  WeightedSHAP cannot lose to Shapley. Here the training rows are also cut in halves, each half fits a game, and each
  attribution is scored on the game of the other half (*independent*).
- **The MCI** of a single row (`MCI`, the largest |v(S ∪ i) − v(S)| seen) or of all rows (`MCI global`, the largest
  gain in squared error). The claims use the first; the tables of the comparisons show both. Above 10 features it is
  the largest along 100 random orders, so a lower bound.
- **12 or 13 weights.** The paper speaks of 13 and prints 12. Here it is 13, with Beta(32,1); the section `weights`
  shows what the 13th changes.
- **The estimation error's norm** is not given. The section `example` has the norm that gives numbers of the printed
  size, and the Euclidean distance.
- **The rows of the surrogate.** The text says the estimation part, a tenth of the data; the authors' program takes
  the training part, and so do we, each row once.
- **The target of a regression** is in standard units: the paper's mean squared errors make sense in no others.
- **Fraud is balanced** after the split, in the training part only, and boosting stops on the loss alone. The sections
  `stopping` and `fraud-authors` show what the authors' order and rule change.
"""


def draw_figure(folder: Path, name: str, experiment: Experiment) -> None:
    """Draw the figure of all stored runs of an experiment into ``folder/figures``, if it has one."""
    if experiment.draw is None:
        return
    path = folder / "figures" / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    runs, _ = stored_runs(folder, name)
    experiment.draw(runs).savefig(path, dpi=80, metadata={"Software": None})


def write_results(folder: Path, experiments: Mapping[str, Experiment]) -> Path:
    """Write ``folder/RESULTS.md`` with a section for every experiment that has runs on disk."""
    summary, sections = [], []
    for name, experiment in experiments.items():
        runs, configuration = stored_runs(folder, name)
        if runs:
            claims = experiment.claims(runs) if experiment.claims is not None else []
            headline = experiment.headline(runs) if experiment.headline is not None else ""
            summary.append(_summary_line(name, runs, claims, headline))
            chosen = [f"{key} {value}" for key, value in configuration.items() if value is not False]
            sections.append(_section(folder, name, experiment, runs, claims, chosen))
    path = folder / "RESULTS.md"
    write_atomically(path, "\n".join([HEAD, _summary(summary), CHOICES, *sections]))
    return path


def _summary(lines: Sequence[str]) -> str:
    head = ["## Summary", "", f"| | runs | {' | '.join(VERDICTS)} | in short |", "|---|---:|---:|---:|---:|---|"]
    return "\n".join([*head, *lines, ""])


def _summary_line(name: str, runs: Runs, claims: Sequence[Claim], headline: str) -> str:
    counts = Counter(claim.verdict for claim in claims)
    cells = [str(counts[verdict] or "") for verdict in VERDICTS]
    return f"| [{name}](#{name}) | {_count(runs)} | {' | '.join(cells)} | {headline} |"


def _count(runs: Runs) -> str:
    """ "10", or "3–5" where some cases have fewer."""
    counts = sorted({len(of) for of in runs.values()})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"


def _cases(runs: Runs) -> str:
    """ "airfoil, wind (tree_surrogate)": the cases by their game."""
    games: dict[str, list[str]] = {}
    for case in runs:
        name, _, game = case.partition("/")
        games.setdefault(game, []).append(name)
    return "; ".join(", ".join(names) + (f" ({game})" if game else "") for game, names in games.items())


def _section(
    folder: Path, name: str, experiment: Experiment, runs: Runs, claims: Sequence[Claim], chosen: Sequence[str]
) -> str:
    title = experiment.title[0].upper() + experiment.title[1:]
    settings = f"; {', '.join(chosen)}" if chosen else ""
    figure = folder / "figures" / f"{name}.png"
    lines = [f"## {name}", "", f"{title}. Runs: {_cases(runs)}, {_count(runs)} each{settings}.", ""]
    if claims:
        lines += ["| claim | paper | here | |", "|---|---|---|---|"]
        lines += [f"| {claim.text} | {claim.paper} | {claim.ours} | **{claim.verdict}** |" for claim in claims]
        lines += [""]
    lines += [f"{note}\n" for note in experiment.notes]
    lines += [*experiment.table(runs), ""] if experiment.table is not None else []
    lines += [f"![{experiment.title}](figures/{name}.png)", ""] if figure.exists() else []
    return "\n".join(lines)
