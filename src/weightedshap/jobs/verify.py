"""Check, by the checksums of all files, whether a folder still contains what a run wrote."""

from dataclasses import dataclass
from pathlib import Path

from weightedshap.jobs import folder as run_folder
from weightedshap.jobs.durable import DamagedFileError, describe_damage
from weightedshap.jobs.exit_codes import INPUT, CommandError


@dataclass(frozen=True)
class Verdict:
    """The result of verifying a run: the number of part files, whether it finished, and flaws."""

    parts: int  # the number of part files in the folder
    is_finished: bool  # whether the run wrote its summary
    flaws: tuple[str, ...]  # one sentence for each, which names the file


def verify_folder(folder: Path) -> Verdict:
    """Compare all files of a run with their checksums; return all flaws in a `Verdict`."""
    with run_folder.lock_for_reading(folder):
        present = [path.stem for path in run_folder.list_parts(folder)]
        flaws = _find_shared_flaws(folder)
        expected, summary_flaws = _expected_parts(folder, present)
        flaws += summary_flaws
        for name in expected:
            flaws += run_folder.find_part_flaws(folder, name)
    is_finished = (folder / run_folder.SUMMARY).exists()
    return Verdict(len(present), is_finished, tuple(flaws))


def _find_shared_flaws(folder: Path) -> list[str]:
    """Return one sentence for each flaw of a run's manifest and explainer."""
    try:
        manifest = run_folder.read_manifest(folder)
    except DamagedFileError as error:
        return [str(error)]
    if manifest is None:
        raise CommandError(
            f"{folder} holds no run of `weightedshap explain`: there is no {run_folder.MANIFEST}.",
            INPUT,
        )
    flaw = describe_damage(folder / run_folder.EXPLAINER, manifest["explainer"])
    return [] if flaw is None else [flaw]


def _expected_parts(folder: Path, present: list[str]) -> tuple[list[str], list[str]]:
    """Return the names of the part files that a run should have, and the flaws of its summary.

    `present` are the names of the part files in the folder. For an unfinished run these are
    returned, as no others are expected.
    """
    try:
        summary = run_folder.read_summary(folder)
    except DamagedFileError as error:
        return present, [str(error)]
    # The parts of a run are finished in any order, so none is missing before the run ends.
    if summary is None:
        return present, []

    names = [run_folder.part_name(index) for index in range(summary["parts"])]
    flaws = [
        describe_damage(folder / file, checksum) for file, checksum in summary["files"].items()
    ]
    surplus = sorted(set(present) - set(names))
    flaws += [f"{folder / name}.parquet is none of the {len(names)} parts." for name in surplus]
    return names, [flaw for flaw in flaws if flaw is not None]
