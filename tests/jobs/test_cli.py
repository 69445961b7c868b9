"""The commands, as a person at a terminal meets them."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

import weightedshap as ws
from tests.plots.examples import two_games
from weightedshap.jobs import cli


def run(*arguments: str):
    return CliRunner().invoke(cli.main, arguments, catch_exceptions=False)


def test_the_version_is_printed():
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


def test_demo_names_the_explained_game_and_the_judge_and_advises_another_judge(demo):
    text = demo[0].output
    assert "explained: tree_path (log-odds)" in text
    assert "judged by: anchored (probability)" in text
    chosen, shapley = map(
        float, re.search(r"known features: ([\d.]+), by Shapley ([\d.]+) \(", text).groups()
    )
    assert 0 < chosen <= shapley
    assert "measured on the judge that chose the weights; ws.evaluate uses another judge" in text


def test_demo_shares_cover_all_rows_and_every_weight(demo):
    shares = re.findall(
        r"^  (first|last|Beta\(\d+,\d+\))(?: = Shapley)? +(\d+) %", demo[0].output, re.M
    )
    assert [label for label, _ in shares] == list(ws.weights.paper(30).labels)
    assert sum(int(share) for _, share in shares) == 100


def test_bars_of_games_that_compete_have_a_part_for_each():
    explanation = two_games()
    title, *games = cli.shares(explanation).splitlines()[:3]
    assert title.endswith("; utility aup, judged by tree_surrogate (prediction)")
    assert [line.split()[:2] for line in games] == [["█", "baseline"], ["▒", "marginal"]]
    bars = cli.shares(explanation).splitlines()[3:]
    assert len(bars) == 13
    drawn = [sum(bar.count(block) for bar in bars) / 40 for block in "█▒"]
    won = [(explanation.game_labels == game).mean() for game in ("baseline", "marginal")]
    assert drawn == pytest.approx(won, abs=0.15)


def test_demo_shows_one_row_on_both_scales_and_the_features_that_suffice(demo):
    text = demo[0].output
    assert re.search(
        r"Top features of row \d, where the areas differ most: log-odds \S+, probability 0\.\d+",
        text,
    )
    assert re.search(r"^Row \d: .*(suffice|needed)", text, re.M)


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
    code = "import sys, weightedshap.jobs.cli; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
