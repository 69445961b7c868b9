"""RESULTS.md: claim by claim the paper's number, ours, and whether it holds; from the runs on disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from weightedshap.paper.runner import Experiment, stored_runs, write_atomically

__all__ = ["draw_figure", "write_results"]

HEAD = """# The paper, redone

Written by `weightedshap reproduce` from the runs in this folder; edits are lost. One line for each claim of
Kwon and Zou, "WeightedSHAP: analyzing and improving Shapley based feature attributions" (2022): the paper's number,
ours, and whether it holds.
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
    sections = [_section(folder, name, experiment) for name, experiment in experiments.items()]
    path = folder / "RESULTS.md"
    write_atomically(path, "\n".join([HEAD, *filter(None, sections)]))
    return path


def _section(folder: Path, name: str, experiment: Experiment) -> str:
    runs, configuration = stored_runs(folder, name)
    if not runs:
        return ""
    claims = experiment.claims(runs)
    title = experiment.title[0].upper() + experiment.title[1:]
    counts = ", ".join(f"{case}: {len(of)}" for case, of in runs.items())
    settings = ", ".join(f"{key} {value}" for key, value in configuration.items())
    lines = [
        f"## {name}",
        "",
        f"{title}. Settings: {settings}. Runs: {counts}.",
        "",
        "| claim | paper | here | |",
        "|---|---|---|---|",
        *(f"| {c.text} | {c.paper} | {c.ours} | **{c.verdict}** |" for c in claims),
        "",
        *(f"{note}\n" for note in experiment.notes),
        *(experiment.table(runs) if experiment.table is not None else ()),
        "",
        f"![{experiment.title}](figures/{name}.png)" if (folder / "figures" / f"{name}.png").exists() else "",
        "",
    ]
    return "\n".join(lines)
