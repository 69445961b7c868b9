"""The README tells the truth: its Python runs, its commands exist; the table of choices names every
part."""

from __future__ import annotations

import re

import matplotlib as mpl
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

import weightedshap as ws
from tests.docs.page_blocks import DOCS, ROOT, blocks_of, run
from weightedshap.estimators import ESTIMATORS
from weightedshap.games import GAMES
from weightedshap.utilities import UTILITIES
from weightedshap.weights import FAMILIES

PAGE = ROOT / "README.md"
README = PAGE.read_text(encoding="utf-8")
CHOICES = (DOCS / "choose.md").read_text(encoding="utf-8")
SHORTLIST = re.compile(r"^explanation\.shortlist\((\d+)\)", re.MULTILINE)


def blocks(language: str) -> list[str]:
    return [block.text for block in blocks_of(PAGE) if block.language == language]


@pytest.mark.filterwarnings(
    "ignore:The set_(bad|over|under) function:PendingDeprecationWarning"
)  # import of shap
def test_the_python_runs_from_top_to_bottom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    names = run(PAGE)

    plt.close("all")
    explanation = names["explanation"]
    assert isinstance(explanation, ws.Explanation)
    assert ws.explain(names["vote"]).shapley[0] == pytest.approx([1 / 3] * 3)
    assert_few_features_suffice(explanation)


def assert_few_features_suffice(explanation: ws.Explanation) -> None:
    """Of the row that the example asks about, so that the reader sees what a shortlist is."""
    pages = PAGE, DOCS / "start.md"
    rows = [row for page in pages for row in SHORTLIST.findall(page.read_text(encoding="utf-8"))]
    assert len(rows) == 2
    assert rows[0] == rows[1]

    found = explanation.shortlist(int(rows[0]))

    assert found.enough
    assert 2 <= len(found) <= 3


def test_the_commands_are_targets_of_the_makefile():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    commands = re.findall(r"^make ([a-z-]+)", "\n".join(blocks("sh")), re.M)
    assert commands == ["demo", "test"]
    assert set(commands) <= set(targets)


@pytest.mark.parametrize(
    "table", [GAMES, ESTIMATORS, FAMILIES, UTILITIES], ids=["games", "estimators", "W", "T"]
)
def test_every_registered_name_is_in_the_table(table):
    assert [name for name in table if f'`"{name}"`' not in CHOICES] == []


def test_files_it_points_to_exist():
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
