"""Put 400 faults into a copy of the library, one by one, and run the tests of the file until one of
them notices.

``python -m tests.mutants.run [--only weights,curves] [--minutes 60] [--again]`` goes on where it
stopped; what it found is kept in found.json by file, line and change, so that edits elsewhere lose
nothing. A fault that changes no result is listed in equivalent.json with the reason. mutmut and
cosmic-ray start an interpreter for each fault and know nothing of compiled loops; here a process
that has imported everything but the library is forked, which saves half of the time.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.mutants.faults import Fault, faults

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
COPY = ROOT / "build" / "mutants"
FOUND = HERE / "found.json"
EQUIVALENT = HERE / "equivalent.json"
SEED = "0"
BROKEN = 99  # the exit code of a runner that failed
PATIENCE = (
    3,
    60,
    # The tests of a fault may take so many times as long as without one, and seconds: loops compile
    # anew
)
MANY = {"utilities": 29, "trees": 71}  # of the others 50: utilities have no more
COMMON = (
    "lightgbm",
    "matplotlib.pyplot",
    "numba",
    "pandas",
    "scipy.stats",
    "sklearn.ensemble",
)
GROUPS: dict[
    str, tuple[list[str], list[str]]
] = {  # files, and tests from the nearest to the farthest
    "weights": (
        ["weights.py"],
        [
            "core/test_weights.py",
            "core/test_weight_vectors.py",
            "axioms/test_families.py",
            "core/test_selection.py",
        ],
    ),
    "contributions": (
        ["contributions.py"],
        [
            "core/test_contributions.py",
            "estimators/test_permutation.py",
            "estimators/test_stratified.py",
            "estimators/test_noise_variance.py",
        ],
    ),
    "selection": (
        ["selection.py"],
        ["core/test_selection.py", "core/test_competing_games.py", "core/test_explainer.py"],
    ),
    "curves": (
        ["curves.py"],
        [
            "core/test_curves.py",
            "core/test_utilities.py",
            "core/test_selection.py",
            "evaluation/test_metrics.py",
        ],
    ),
    "utilities": (
        ["utilities.py"],
        [
            "core/test_utilities.py",
            "axioms/test_utilities.py",
            "core/test_selection.py",
            "core/test_explainer.py",
        ],
    ),
    "trees": (
        ["trees/"],
        [
            "trees/test_kernels.py",
            "trees/test_ensembles.py",
            "trees/test_background.py",
            "trees/test_path_dependent.py",
            "trees/test_quadrature.py",
            "trees/test_many_players.py",
            "trees/test_lightgbm_text.py",
            "trees/test_documents.py",
            "trees/test_links.py",
            "trees/test_readers.py",
            "games/test_tree_model.py",
            "games/test_tree_model_limits.py",
            "trees/test_pipelines.py",
            "trees/test_wrappers.py",
            "axioms/test_games.py",
        ],
    ),
    "estimators": (["estimators/"], ["estimators/", "axioms/test_estimators.py"]),
    "evaluation": (["evaluation/"], ["evaluation/"]),
}


def draw_faults(group: str) -> list[Fault]:
    """A sample of the faults of a group: those whose keys hash lowest, so that it hardly changes
    with the code."""
    package = ROOT / "src" / "weightedshap"
    files = [
        file
        for name in GROUPS[group][0]
        for file in sorted(package.glob(f"{name}*.py" if name[-1] == "/" else name))
    ]
    every = [
        one
        for file in files
        for one in faults(str(file.relative_to(ROOT)), file.read_text(encoding="utf-8"))
    ]
    return sorted(every, key=lambda one: hashlib.sha256((SEED + one.key).encode()).digest())[
        : MANY.get(group, 50)
    ]


def tests_of(one: Fault, group: str) -> list[str]:
    """The tests of a group, those named after the file first."""
    paths = [ROOT / "tests" / name for name in GROUPS[group][1]]
    files = [
        file
        for path in paths
        for file in (sorted(path.glob("test_*.py")) if path.is_dir() else [path])
    ]
    return [
        str(file)
        for file in sorted(files, key=lambda file: file.stem != f"test_{Path(one.file).stem}")
    ]


def in_a_fork(work: Callable[[], int], log: Path, patience: float) -> int | None:
    """The exit code of `work` in a process of its own, None where it took too long."""
    child = os.fork()
    if child == 0:
        os.setsid()
        target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(target, 1)
        os.dup2(target, 2)
        code = BROKEN
        try:
            code = int(work())
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    until = time.monotonic() + patience
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


class FirstFailure:
    """For pytest: one example that fails is enough, and need not be made small."""

    def pytest_configure(self) -> None:
        from hypothesis import Phase, settings

        phases = Phase.explicit, Phase.generate
        settings.register_profile("mutants", settings.get_profile("suite"), phases=phases)
        settings.load_profile("mutants")


def untouched_by(module: str) -> str:
    """A copy of what was compiled, without the loops of files that use `module`: they hold the
    loops that they call."""
    texts = [(file.stem, file.read_text(encoding="utf-8")) for file in (COPY / "src").rglob("*.py")]
    users = {module}

    def uses(text: str) -> bool:
        return any(f".{user} import" in text or f"kernels import {user}" in text for user in users)

    while more := {stem for stem, text in texts if uses(text)} - users:
        users |= more

    kept = tempfile.mkdtemp(dir=COPY)
    leave_out = shutil.ignore_patterns(*(f"{user}.*" for user in users))
    shutil.copytree(COPY / "cache", kept, ignore=leave_out, dirs_exist_ok=True)
    return kept


def run_tests(one: Fault | None, tests: list[str], patience: float = float("inf")) -> str:
    """What the tests say of a fault: killed, survived or too long."""
    import numba
    import pytest

    def work() -> int:
        compiled = one is not None and "/kernels" in one.file
        kept = untouched_by(Path(one.file).stem) if compiled else str(COPY / "cache")
        numba.config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = kept
        sys.path.insert(0, str(COPY / "src"))
        os.environ["PYTHONPATH"] = str(COPY / "src")
        options = [
            "-x",
            "-q",
            "--no-header",
            "-p",
            "no:cacheprovider",
            f"--basetemp={COPY / 'tmp'}",
            "-m",
            "not slow and not attack and not engines",
        ]
        try:
            return pytest.main([*options, *tests], plugins=[FirstFailure()])
        finally:
            if compiled:
                shutil.rmtree(kept, ignore_errors=True)

    code = in_a_fork(work, COPY / "log.txt", patience)
    if code in (BROKEN, 4, 5):
        raise RuntimeError(f"the tests could not be run; see {COPY / 'log.txt'}")
    return "too long" if code is None else "survived" if code == 0 else "killed"


def try_fault(one: Fault, tests: list[str], patience: float) -> str:
    """Put the fault into the copy, run the tests, and take it out."""
    original = ROOT / one.file
    copy = COPY / one.file
    copy.write_text(one.put_into(original.read_text(encoding="utf-8")), encoding="utf-8")
    try:
        return run_tests(one, tests, patience)
    finally:
        shutil.copy2(original, copy)


def copy_sources() -> None:
    """A fresh copy of the sources; what was compiled before is kept."""
    shutil.rmtree(COPY / "src", ignore_errors=True)
    shutil.copytree(
        ROOT / "src", COPY / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    (COPY / "cache").mkdir(exist_ok=True)


def import_common_modules() -> None:
    """Import what all tests need, but for the library."""
    sys.dont_write_bytecode = True
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "MPLBACKEND": "Agg"}
    for name in COMMON:
        importlib.import_module(name)
    assert not any(name.startswith("weightedshap") for name in sys.modules)


def verdicts(file: Path) -> dict[str, str]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def report(groups: list[str], found: dict[str, str], equivalent: dict[str, str]) -> str:
    """A line for each group, and the survivors."""
    lines = []
    left = []
    for group in groups:
        keys = [one.key for one in draw_faults(group)]
        counts = Counter(
            "equivalent" if key in equivalent else found.get(key, "not run") for key in keys
        )
        left += [key for key in keys if found.get(key) == "survived" and key not in equivalent]
        lines.append(
            f"{group:14} " + ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))
        )
    return "\n".join([*lines, *(f"survived: {key}" for key in left)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(GROUPS), help="groups, with commas between")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--again", action="store_true", help="try the survivors again")
    parser.add_argument("--report", action="store_true", help="only say what is known")
    asked = parser.parse_args()
    groups = asked.only.split(",")
    until = time.monotonic() + 60 * asked.minutes
    found = verdicts(FOUND)
    equivalent = verdicts(EQUIVALENT)
    if not asked.report:
        copy_sources()
        import_common_modules()
    for group in [] if asked.report else groups:
        known = ("killed", "too long") if asked.again else ("killed", "too long", "survived")
        todo = [
            one
            for one in draw_faults(group)
            if found.get(one.key) not in known and one.key not in equivalent
        ]
        start = time.monotonic()
        if todo and run_tests(None, tests_of(todo[0], group)) != "survived":
            raise SystemExit(f"The tests of {group} fail without a fault; see {COPY / 'log.txt'}.")
        patience = PATIENCE[0] * (time.monotonic() - start) + PATIENCE[1]
        for one in todo:
            if time.monotonic() > until:
                break
            start = time.monotonic()
            found[one.key] = try_fault(one, tests_of(one, group), patience)
            FOUND.write_text(
                json.dumps(dict(sorted(found.items())), indent=1, ensure_ascii=False) + "\n",
                encoding="utf-8",
            )
            sys.stdout.write(f"{time.monotonic() - start:5.0f} s  {found[one.key]:8}  {one.key}\n")
            sys.stdout.flush()
    sys.stdout.write(report(groups, found, equivalent) + "\n")


if __name__ == "__main__":
    main()
