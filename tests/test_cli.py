"""The commands, as a person at a terminal meets them."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

import weightedshap as ws
from weightedshap import cli


def run(*arguments: str):
    return CliRunner().invoke(cli.main, arguments, catch_exceptions=False)


def test_version():
    assert ws.__version__ in run("--version").output


def test_help_names_the_commands():
    assert "demo" in run("--help").output


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    output = tmp_path_factory.mktemp("demo") / "figure.png"
    return run("demo", "--rows", "3", "--output", str(output)), output


def test_demo_writes_the_figure_and_says_where(demo):
    result, output = demo
    assert result.exit_code == 0
    assert output.read_bytes().startswith(b"\x89PNG")
    assert str(output) in result.output


def test_demo_prints_both_areas_and_weighted_is_not_larger(demo):
    text = demo[0].output
    areas = {name: float(area) for name, area in re.findall(r"^ +(Shapley|WeightedSHAP|ratio) +([\d.]+)", text, re.M)}
    assert 0 < areas["WeightedSHAP"] <= areas["Shapley"]
    assert areas["ratio"] == pytest.approx(areas["WeightedSHAP"] / areas["Shapley"], abs=2e-3)
    assert "game that chose the weights" in text


def test_demo_shares_cover_all_rows_and_every_weight(demo):
    shares = re.findall(r"^  (first|last|Beta\(\d+,\d+\)) +(\d+)%", demo[0].output, re.M)
    assert [label for label, _ in shares] == list(ws.weights.paper(30).labels)
    assert sum(int(share) for _, share in shares) == pytest.approx(100, abs=2)


def test_demo_shows_reweighting_and_a_single_game(demo):
    assert "explanation.reweight('wide')" in demo[0].output
    assert "ws.explain(explainer.game.at(row))" in demo[0].output


def test_one_row_has_no_interval_but_works(tmp_path):
    result = run("demo", "--rows", "1", "--output", str(tmp_path / "one.png"))
    assert "one row gives none" in result.output


def test_quiet_prints_nothing(tmp_path):
    result = run("demo", "--rows", "1", "--quiet", "--output", str(tmp_path / "quiet.svg"))
    assert result.output == ""
    assert "<svg" in (tmp_path / "quiet.svg").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "0"], "0 is not in the range"),
        (["--rows", "1", "--output", "no/such/folder/a.png"], "does not exist"),
        (["--rows", "1", "--output", "figure.xyz"], "xyz"),
    ],
)
def test_wrong_options_are_refused_before_any_work(arguments, message):
    result = run("demo", *arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_the_command_starts_without_a_plotting_window():
    code = "import sys, weightedshap.cli; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
