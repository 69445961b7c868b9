"""Folders of explainers that are damaged, hostile, or written by many at once."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import weightedshap as ws
from tests.attacks.damage import model
from weightedshap.files.explainer_folder import MAIN

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
ROOT = Path(__file__).parents[2]
GAMES = {
    "trees": {"game": ws.games.TreeSurrogate(masks=2, trees=4)},
    "network": {"game": ws.games.NeuralSurrogate(epochs=1, units=4)},
    "default": {
        "game": ["marginal", ws.games.DistilledTrees(rows=100, trees=4)],
        "judge": ws.games.Anchored(masks=2, network=ws.games.NeuralSurrogate(epochs=1, units=4)),
    },
}


def many(few, long):
    return pytest.mark.parametrize("n", [few, pytest.param(long, marks=pytest.mark.attack)])


def lines_of(folder, seed, n, start):
    """What a child tells of the cases from `start` on, until it ends, of itself or not."""
    command = [
        sys.executable,
        "-m",
        "tests.attacks.damage",
        str(folder),
        str(seed),
        str(n),
        str(start),
    ]
    paths = os.pathsep.join([str(Path(ws.__file__).parents[1]), str(ROOT)])
    child = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}, cwd=ROOT
    )
    return [json.loads(line) for line in child.stdout.splitlines()], child


@many(60, 1500)
@pytest.mark.parametrize("game", GAMES)
def test_damaged_explainers_are_refused_and_never_end_the_interpreter(tmp_path, tally, game, n):
    ws.Explainer(model, X, progress=False, **GAMES[game]).save(tmp_path)
    original = (tmp_path / MAIN).read_bytes()
    counted = tally(f"damaged files, {game}")
    start = 0
    while start < n:
        lines, child = lines_of(tmp_path, 0, n, start)
        ended = {line["case"]: line for line in lines if "kind" in line}
        about = {line["case"]: line["about"] for line in lines if "about" in line}
        for case, line in ended.items():
            counted.count(
                line["kind"], line["wrong"] and f"case {case} ({about[case]}): {line['wrong']}"
            )
        (tmp_path / MAIN).write_bytes(original)
        if child.returncode == 0:
            break
        assert about, child.stderr
        last = max(about)
        counted.count(
            "died", f"case {last} ({about[last]}): exit {child.returncode}: {child.stderr[-300:]}"
        )
        start = last + 1


def explainer_of(number):
    """Two explainers that differ, the second much larger."""
    return ws.Explainer(
        model,
        np.repeat(X, 1 + 400 * number, axis=0),
        game="baseline",
        random_state=number,
        progress=False,
    )


def save_again_and_again(folder):
    pair = [explainer_of(number) for number in (0, 1)]
    while True:
        for explainer in pair:
            explainer.save(folder)


def state(folder):
    return ws.Explainer.load(folder, model, progress=False).config.random_state


@many(6, 100)
def test_a_saver_killed_at_any_moment_leaves_the_old_or_the_new(tmp_path, tally, n):
    counted = tally("killed savers")
    rng = np.random.default_rng(0)
    explainer_of(0).save(tmp_path)
    context = multiprocessing.get_context("spawn")
    for _ in range(n):
        child = context.Process(target=save_again_and_again, args=(tmp_path,))
        child.start()
        first = (tmp_path / MAIN).stat().st_mtime_ns
        while child.is_alive() and (tmp_path / MAIN).stat().st_mtime_ns == first:  # until it saves
            time.sleep(0.01)
        assert child.is_alive(), f"the saver ended by itself: {child.exitcode}"
        time.sleep(rng.random() * 0.2)
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        try:
            counted.count(f"state {state(tmp_path)}")
        except Exception as error:
            counted.count("unreadable", repr(error))
    for part in tmp_path.glob(".*.part"):
        os.utime(part, (0, 0))
    explainer_of(0).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [MAIN]


@many(20, 400)
def test_threads_that_save_to_one_folder_never_fail_or_mix(tmp_path, tally, n):
    counted = tally("savers at once")
    wrong = []
    pair = [explainer_of(number) for number in (0, 1)]
    pair[0].save(tmp_path)

    def work(t):
        for turn in range(n // 4):
            try:
                pair[(t + turn) % 2].save(tmp_path)
                assert state(tmp_path) in (0, 1)
            except BaseException as error:
                wrong.append(repr(error))

    threads = [threading.Thread(target=work, args=(t,)) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counted.tried, counted.wrong = n, wrong
    assert [path.name for path in tmp_path.iterdir()] == [MAIN]
