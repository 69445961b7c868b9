"""Runs of experiments, kept on disk: a JSON file for each experiment, replaced as a whole, with a
line for each run."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weightedshap._version import __version__
from weightedshap.files.atomic import replaced
from weightedshap.parallel import bar
from weightedshap_paper.experiment import Case, Experiment, Numbers, Runs, Settings

DIGITS = 6  # significant digits kept in the files


@dataclass(frozen=True)
class Stored:
    """The runs of an experiment on disk: the settings they depend on, and "version" and "numbers"
    of each run."""

    path: Path
    configuration: Mapping[str, Any]
    records: dict[Case, list[Numbers]]

    @property
    def runs(self) -> Runs:
        """The numbers alone."""
        return {
            case: [record["numbers"] for record in records]
            for case, records in self.records.items()
        }

    @property
    def text(self) -> str:
        """JSON with a line for each run and commas in front, so that a run more is a line more in a
        diff."""
        cases = [
            f"{json.dumps(str(case))}: [\n "
            + "\n,".join(map(json.dumps, self.records[case]))
            + "\n]"
            for case in sorted(self.records, key=str)
        ]
        return (
            f'{{"configuration": {json.dumps(self.configuration)}, "cases": {{\n'
            + ",\n".join(cases)
            + "\n}}\n"
        )

    def added(self, case: Case, run: int, numbers: Numbers) -> Stored:
        """The file with a run more; read anew before, because another command may have added to
        it."""
        now = stored(self.path, self.configuration)
        records = now.records.setdefault(case, [])
        if run == len(records):
            records.append({"version": __version__, "numbers": plain(numbers)})
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with replaced(self.path) as unfinished:
                unfinished.write_text(now.text, encoding="utf-8")
        return now


def stored(path: Path, wanted: Mapping[str, Any] | None = None) -> Stored:
    """What is on disk of an experiment, be it nothing; refused if it is not of the `wanted`
    configuration."""
    folder = path.with_suffix("")
    if any(folder.rglob("run-*.json")):
        raise ValueError(
            f"{folder} holds one file for each run, as earlier versions wrote them; they are not"
            " read. Move it away, and the runs are made again; or name another folder with"
            " --results."
        )
    if not path.exists():
        return Stored(path, wanted or {}, {})
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        records: dict[Case, list[Numbers]] = {
            Case.parsed(text): [
                {key: record[key] for key in ("version", "numbers")} for record in of
            ]
            for text, of in content["cases"].items()
        }
        found = Stored(path, dict(content["configuration"]), records)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is not a file of runs ({error}). Delete it, and they are made again."
        ) from error
    if wanted is not None:
        _check_configuration(path, found.configuration, wanted)
    return found


def _check_configuration(path: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Refuse runs of another configuration, and name the difference."""
    differ = [key for key in sorted({*found, *wanted}) if found.get(key) != wanted.get(key)]
    told = "; ".join(
        f"{key} is {found.get(key)!r} there and {wanted.get(key)!r} here" for key in differ
    )
    if differ:
        said = f"{path} holds runs of another configuration: {told}."
        raise ValueError(f"{said} Pass the same options, or another folder with --results.")


def generator(seed: int, case: Case, run: int) -> np.random.Generator:
    """The generator of one run: the same for all experiments and games on one dataset, so that they
    compare."""
    key = zlib.crc32(case.setting.encode())
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(key, run)))


def run_experiment(
    path: Path, experiment: Experiment, settings: Settings, progress: bool | str = False
) -> Runs:
    """Run what is not yet stored in the file `path`, and return all runs asked for; raises as
    `stored` does."""
    settings = experiment.resolved(settings)
    cases = experiment.cases(settings)
    todo = [(case, run) for case in cases for run in range(settings.runs)]
    now = stored(path, experiment.configuration(settings))
    with bar(len(todo), path.stem, progress, unit="run") as shown:
        while left := [(case, run) for case, run in todo if run >= len(now.records.get(case, ()))]:
            shown.update(len(todo) - len(left) - shown.n)
            case, run = left[0]
            now = now.added(
                case, run, experiment.run(case, settings, generator(settings.seed, case, run))
            )
        shown.update(len(todo) - shown.n)
    return {case: now.runs[case][: settings.runs] for case in cases}


def plain(value: Any) -> Any:
    """Arrays and numbers as JSON has them, floats cut to `DIGITS` digits."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(inner) for inner in value]
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.{DIGITS}g}")
    return value.item() if isinstance(value, np.generic) else value
