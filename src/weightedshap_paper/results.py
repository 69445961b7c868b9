"""The writer of RESULTS.md: claim by claim the paper's number, ours, and whether it holds.

It reads the runs that `runner` stores on disk; only the command ``weightedshap reproduce`` calls
it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from weightedshap.files.atomic import replaced
from weightedshap_paper.experiment import VERDICTS, Case, Claim, Experiment, Runs
from weightedshap_paper.runner import RunFile, read_runs

HEAD = """# The paper, redone

Written by `weightedshap reproduce` from the runs in this folder; edits are lost. One line for each claim of
Kwon and Zou, "WeightedSHAP: analyzing and improving Shapley based feature attributions" (2022): the paper's number,
ours, and whether it holds.
"""  # noqa: E501

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
"""  # noqa: E501


@contextmanager
def report_foreign_runs(path: Path) -> Iterator[None]:
    """Turn errors in the ``with`` block into one that says that the runs in `path` are unusable.

    Such errors occur if the runs are not as the experiment wrote them.
    """
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise ValueError(
            f"{path} holds runs that are not of this experiment ({error!r}). Delete it, and they"
            " are made again; or name another folder with --results."
        ) from error


def draw_figure(folder: Path, name: str, experiment: Experiment) -> None:
    """Draw the figure of all runs of an experiment into ``folder/figures``, if it has one."""
    if experiment.draw is None:
        return
    path = folder / "figures" / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    source = folder / f"{name}.json"
    with report_foreign_runs(source):
        figure = experiment.draw(read_runs(source).runs)
    figure.savefig(path, dpi=80, metadata={"Software": None})


def write_results(folder: Path, experiments: Mapping[str, Experiment]) -> Path:
    """Write ``folder/RESULTS.md`` with a section for every experiment that has runs on disk."""
    summary = [
        "## Summary",
        "",
        f"| | runs | {' | '.join(VERDICTS)} | in short |",
        "|---|---:|---:|---:|---:|---|",
    ]
    sections = []
    for name, experiment in experiments.items():
        file = read_runs(folder / f"{name}.json")
        if file.runs:
            with report_foreign_runs(file.path):
                claims = experiment.claims(file.runs)
                summary.append(_summary_line(name, experiment, file.runs, claims))
                sections += _section(name, experiment, file, claims)
            if (folder / "figures" / f"{name}.png").exists():
                sections += [f"![{experiment.title}](figures/{name}.png)", ""]
    path = folder / "RESULTS.md"
    with replaced(path) as unfinished:
        unfinished.write_text("\n".join([HEAD, *summary, "", CHOICES, *sections]), encoding="utf-8")
    return path


def _summary_line(name: str, experiment: Experiment, runs: Runs, claims: Sequence[Claim]) -> str:
    """Return the line of the summary table for one experiment."""
    counts = Counter(claim.verdict for claim in claims)
    cells = [
        _format_count(runs),
        *(str(counts[verdict] or "") for verdict in VERDICTS),
        experiment.headline(runs),
    ]
    return f"| [{name}](#{name}) | {' | '.join(cells)} |"


def _format_count(runs: Runs) -> str:
    """Format the number of runs per case, as "10", or "3–5" where some cases have fewer."""
    counts = sorted({len(of_case) for of_case in runs.values()})
    return "–".join(map(str, dict.fromkeys((counts[0], counts[-1]))))


def _format_cases(cases: Iterable[Case]) -> str:
    """Format the cases by their game, as "airfoil, wind (tree_surrogate)"."""
    games: dict[str, list[str]] = {}
    for case in cases:
        games.setdefault(case.game, []).append(case.setting)
    return "; ".join(
        ", ".join(settings) + (f" ({game})" if game else "") for game, settings in games.items()
    )


def _section(
    name: str, experiment: Experiment, file: RunFile, claims: Sequence[Claim]
) -> list[str]:
    """Return the lines of RESULTS.md on one experiment, without the figure."""
    title = experiment.title[0].upper() + experiment.title[1:]
    chosen = [f"{key} {value}" for key, value in file.configuration.items() if value is not False]
    settings = f"; {', '.join(chosen)}" if chosen else ""
    lines = [
        f"## {name}",
        "",
        f"{title}. Runs: {_format_cases(file.runs)}, {_format_count(file.runs)} each{settings}.",
        "",
    ]
    if claims:
        lines += ["| claim | paper | here | |", "|---|---|---|---|"]
        lines += [
            f"| {claim.text} | {claim.paper} | {claim.ours} | **{claim.verdict}** |"
            for claim in claims
        ]
        lines += [""]
    lines += [f"{note}\n" for note in experiment.notes]
    table = experiment.table(file.runs)
    return [*lines, *table, ""] if table else lines
