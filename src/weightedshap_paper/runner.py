"""Runs of experiments, stored on disk: a JSON file for each experiment, with a line for each run.

A file is replaced as a whole after each run, so that an interrupted command continues where it
stopped. `results` writes its page from these files.
"""

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
from weightedshap.parallel import progress_bar
from weightedshap_paper.experiment import Case, Experiment, Numbers, Runs, Settings

DIGITS = 6  # significant digits kept in the files


@dataclass(frozen=True)
class RunFile:
    """The recorded runs of one experiment, and the JSON file `path` that stores them.

    `configuration` contains the settings that the numbers depend on. A record is a dict for one
    run: "numbers" are the results, and "version" is the version of the library.
    """

    path: Path
    configuration: Mapping[str, Any]
    records: dict[Case, list[Numbers]]

    @property
    def runs(self) -> Runs:
        """The recorded results of all runs by case, without the "version" field."""
        return {
            case: [record["numbers"] for record in records]
            for case, records in self.records.items()
        }

    @property
    def text(self) -> str:
        """The content of the file: JSON with one line for each run.

        Commas are at the start of lines, so that one more run is one more line in a diff.
        """
        cases = []
        for case in sorted(self.records, key=str):
            lines = "\n,".join(map(json.dumps, self.records[case]))
            cases.append(f"{json.dumps(str(case))}: [\n {lines}\n]")
        head = f'{{"configuration": {json.dumps(self.configuration)}, "cases": {{\n'
        return head + ",\n".join(cases) + "\n}}\n"

    def add(self, case: Case, run: int, numbers: Numbers) -> RunFile:
        """Append the results of one run to the file on disk, and return the updated `RunFile`.

        The file is read again first, because another command may have added runs, even this one.
        """
        latest = read_runs(self.path, self.configuration)
        records = latest.records.setdefault(case, [])
        if run == len(records):
            records.append({"version": __version__, "numbers": plain(numbers)})
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with replaced(self.path) as unfinished:
                unfinished.write_text(latest.text, encoding="utf-8")
        return latest


def read_runs(path: Path, configuration: Mapping[str, Any] | None = None) -> RunFile:
    """Read the recorded runs of an experiment from a file; without the file there are no runs.

    Raise an error if the runs are of another configuration than the given one.
    """
    folder = path.with_suffix("")
    if any(folder.rglob("run-*.json")):
        raise ValueError(
            f"{folder} holds one file for each run, as earlier versions wrote them; they are not"
            " read. Move it away, and the runs are made again; or name another folder with"
            " --results."
        )
    if not path.exists():
        return RunFile(path, configuration or {}, {})
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        records: dict[Case, list[Numbers]] = {}
        for text, runs in content["cases"].items():
            records[Case.from_text(text)] = [
                {key: record[key] for key in ("version", "numbers")} for record in runs
            ]
        file = RunFile(path, dict(content["configuration"]), records)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is not a file of runs ({error}). Delete it, and they are made again."
        ) from error
    if configuration is not None:
        _check_configuration(path, file.configuration, configuration)
    return file


def _check_configuration(path: Path, there: Mapping[str, Any], here: Mapping[str, Any]) -> None:
    """Raise an error that lists the differences between two configurations, if there are any.

    `there` is the configuration of the file `path`, `here` that of the command.
    """
    differences = [
        f"{key} is {there.get(key)!r} there and {here.get(key)!r} here"
        for key in sorted({*there, *here})
        if there.get(key) != here.get(key)
    ]
    if differences:
        raise ValueError(
            f"{path} holds runs of another configuration: {'; '.join(differences)}. Pass the same"
            " options, or another folder with --results."
        )


def generator(seed: int, case: Case, run: int) -> np.random.Generator:
    """Return the random generator for one run (0, 1, …) of a case.

    It is the same for all experiments and games on one dataset, so that they can be compared.
    """
    key = zlib.crc32(case.setting.encode())
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(key, run)))


def run_experiment(
    path: Path, experiment: Experiment, settings: Settings, progress: bool | str = False
) -> Runs:
    """Compute the runs that the file `path` lacks, and return all runs that the settings require.

    Raises the same errors as `read_runs`.
    """
    settings = experiment.resolve(settings)
    cases = experiment.cases(settings)
    every = [(case, run) for case in cases for run in range(settings.runs)]
    file = read_runs(path, experiment.configuration(settings))

    def remaining() -> list[tuple[Case, int]]:
        """Return the runs that are not in the file yet, as pairs of case and run number."""
        return [(case, run) for case, run in every if run >= len(file.records.get(case, ()))]

    with progress_bar(len(every), path.stem, progress, unit="run") as shown:
        while left := remaining():
            shown.update(len(every) - len(left) - shown.n)
            case, run = left[0]
            numbers = experiment.run(case, settings, generator(settings.seed, case, run))
            file = file.add(case, run, numbers)
        shown.update(len(every) - shown.n)
    return {case: file.runs[case][: settings.runs] for case in cases}


def plain(value: Any) -> Any:
    """Convert arrays and numbers to JSON types; floats keep `DIGITS` significant digits."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(inner) for inner in value]
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.{DIGITS}g}")
    return value.item() if isinstance(value, np.generic) else value
