"""``weightedshap reproduce``, as a person at a terminal meets it."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from weightedshap.jobs import cli
from weightedshap_paper.experiments import EXPERIMENTS

HUNDRED = ("reproduce", "hundred-features", "--runs", "2", "--rows", "3", "--quiet")


def run(*arguments):
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


def numbers(folder):
    """By case and number of the run."""
    cases = json.loads((folder / "hundred-features.json").read_text())["cases"]
    return {
        (case, run): record["numbers"]
        for case, of in cases.items()
        for run, record in enumerate(of)
    }


def test_the_list_names_every_experiment():
    output = run("reproduce", "--list").output
    for name, experiment in EXPERIMENTS.items():
        assert f"{name} " in output
        assert experiment.title in output


def test_one_experiment_writes_runs_figure_and_results(tmp_path):
    result = run("reproduce", "two-features", "--quick", "--results", tmp_path)
    assert result.exit_code == 0, result.output
    assert str(tmp_path / "RESULTS.md") in result.output
    assert (tmp_path / "figures" / "two-features.png").read_bytes().startswith(b"\x89PNG")
    assert "**holds**" in (tmp_path / "RESULTS.md").read_text()


def test_quiet_prints_nothing(tmp_path):
    assert (
        run("reproduce", "two-features", "--quick", "--quiet", "--results", tmp_path).output == ""
    )


def test_killed_and_started_again_it_gives_the_same(tmp_path):
    """The process is killed after its first run; the second start does the rest."""
    killed = tmp_path / "killed"
    whole = tmp_path / "whole"
    command = [
        sys.executable,
        "-c",
        "from weightedshap.jobs.cli import main; main()",
        *HUNDRED,
        "--results",
        str(killed),
    ]
    process = subprocess.Popen(command)
    while not (killed / "hundred-features.json").exists() and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.wait()
    before = numbers(killed)
    assert before
    for folder in (killed, whole):
        result = run(*HUNDRED, "--results", folder)
        assert result.exit_code == 0, result.output
    assert numbers(killed) == numbers(whole)
    assert before.items() <= numbers(whole).items()
    assert (killed / "RESULTS.md").read_text() == (whole / "RESULTS.md").read_text()


def test_another_configuration_is_refused_before_any_run(tmp_path):
    run(*HUNDRED, "--results", tmp_path)
    result = run(*HUNDRED, "--results", tmp_path, "--seed", 5)
    assert result.exit_code == 1
    assert "seed is 0 there and 5 here" in result.output
    assert "--results" in result.output


def test_what_results_need_is_read_before_any_run(tmp_path):
    """Another experiment's file is broken: RESULTS.md could not be written after hours of work."""
    (tmp_path / "mnist.json").write_text("{")
    result = run(*HUNDRED, "--results", tmp_path)
    assert result.exit_code == 1
    assert "mnist.json is not a file of runs" in result.output
    assert not (tmp_path / "hundred-features.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["two-feature"], "Did you mean 'two-features'"),
        (["example", "--game", "neural"], "Unknown game 'neural'"),
        (["example", "--runs", "0"], "0 is not in the range"),
        (["example", "--rows", "1"], "1 is not in the range"),
    ],
)
def test_wrong_arguments_are_refused(tmp_path, arguments, message):
    result = run("reproduce", *arguments, "--results", tmp_path)
    assert result.exit_code != 0
    assert message in result.output
    assert "Traceback" not in result.output
