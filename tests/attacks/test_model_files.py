"""Damaged and hostile model files: refused, or what their library predicts; never the end of the
process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import weightedshap as ws

pytest.importorskip("xgboost")

ROOT = Path(__file__).parents[2]


def lines_of(folder, kind, seed, n, start):
    """What a child tells of the cases from `start` on, until it ends, of itself or not."""
    command = [
        sys.executable,
        "-m",
        "tests.attacks.model_damage",
        str(folder),
        kind,
        str(seed),
        str(n),
        str(start),
    ]
    paths = os.pathsep.join([str(Path(ws.__file__).parents[1]), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths}
    child = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False
    )
    return [json.loads(line) for line in child.stdout.splitlines() if line.startswith("{")], child


@pytest.mark.parametrize("n", [20, pytest.param(300, marks=pytest.mark.attack)])
@pytest.mark.parametrize("kind", ["txt", "json", "ubj"])
def test_damaged_models_are_refused_or_predict_what_their_library_does(tmp_path, tally, kind, n):
    counted = tally(f"model files, .{kind}")
    start = 0
    while start < n:
        lines, child = lines_of(tmp_path, kind, 0, n, start)
        about = {line["case"]: line["about"] for line in lines if "about" in line}
        for line in lines:
            if "kind" in line:
                case = line["case"]
                counted.count(
                    line["kind"], line["wrong"] and f"case {case} ({about[case]}): {line['wrong']}"
                )
        if child.returncode == 0:
            break

        assert about, child.stderr
        last = max(about)
        how = "took too long" if "Timeout" in child.stderr else "died"
        counted.count(
            how, f"case {last} ({about[last]}): exit {child.returncode}: {child.stderr[-300:]}"
        )
        start = last + 1
