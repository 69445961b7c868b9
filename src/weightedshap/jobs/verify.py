"""Whether a folder still holds what a run wrote: every file is held against its checksum."""

from dataclasses import dataclass
from pathlib import Path

from weightedshap.jobs import folder as kept
from weightedshap.jobs.durable import Damaged, flaw_of
from weightedshap.jobs.exit_codes import INPUT, Stop


@dataclass(frozen=True)
class Verdict:
    """What became of a run."""

    parts: int  # that are there
    finished: bool  # whether the run wrote its summary
    flaws: tuple[str, ...]  # sentences that name files


def verified(folder: Path) -> Verdict:
    """Hold manifest, explainer, parts, what is beside them, and summary against their checksums."""
    with kept.at_rest(folder):
        there = [part.stem for part in kept.parts_of(folder)]
        flaws = _flaws_of_run(folder)
        expected, more = _expected(folder, there)
        flaws += more
        for name in expected:
            flaws += kept.flaws_of(folder, name)
    finished = (folder / kept.SUMMARY).exists()
    return Verdict(len(there), finished, tuple(flaws))


def _flaws_of_run(folder: Path) -> list[str]:
    """What is wrong with what all parts share."""
    try:
        manifest = kept.read_manifest(folder)
    except Damaged as damage:
        return [str(damage)]
    if manifest is None:
        said = f"holds no run of `weightedshap explain`: there is no {kept.MANIFEST}"
        raise Stop(f"{folder} {said}.", INPUT)
    flaw = flaw_of(folder / kept.EXPLAINER, manifest["explainer"])
    return [] if flaw is None else [flaw]


def _expected(folder: Path, there: list[str]) -> tuple[list[str], list[str]]:
    """The names of the parts there should be, and what is wrong with the summary, which says so."""
    try:
        summary = kept.read_summary(folder)
    except Damaged as damage:
        return there, [str(damage)]
    if summary is None:  # parts of an unfinished run are finished in any order
        return there, []

    names = [kept.name_of(index) for index in range(summary["parts"])]
    flaws = [flaw_of(folder / file, checksum) for file, checksum in summary["files"].items()]
    surplus = sorted(set(there) - set(names))
    flaws += [f"{folder / name}.parquet is none of the {len(names)} parts." for name in surplus]
    return names, [flaw for flaw in flaws if flaw is not None]
