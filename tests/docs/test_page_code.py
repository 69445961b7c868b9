"""Code on the pages runs and prints what they show, and their commands exist.

What is compared, and how a page is set up, is described in tests/docs/page_blocks.py.
"""

from __future__ import annotations

import ast
import inspect
import re
import shlex

import click
import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

import weightedshap as ws
from tests.docs.page_blocks import (
    PAGES,
    ROOT,
    blocks_of,
    comparable,
    matches,
    name_of,
    run,
    shown_value,
)
from weightedshap.jobs import cli

NOT_RUN = {  # page → how the blocks begin that cannot run here, and why
    "docs/scale.md": {
        "ws.engines.spark(": "needs Spark, Java, Dask and Ray; tests/engines makes the same calls",
        "rows = duckdb": (
            "needs DuckDB, which comes with the engines; tests/engines makes these calls"
        ),
    },
}
EXTRAS = {  # page → what its Python needs beyond the package
    "docs/data.md": ("polars",),
    "docs/evaluation.md": ("torch", "plotly"),
    "docs/report.md": ("plotly",),
    "docs/scale.md": ("pyarrow",),
}
DRAWINGS = ("CONTRIBUTING.md", "docs/scale.md")  # in a fence without a language: a chain, a folder
LANGUAGES = ("python", "text", "sh", "bibtex", "diff", "setup", "")
ELSEWHERE = ROOT / "README.md"  # runs in tests/docs/test_readme.py


def has_code(page):
    """Return whether a page has Python to run here."""
    return page != ELSEWHERE and any(block.language == "python" for block in blocks_of(page))


@pytest.mark.parametrize("page", list(filter(has_code, PAGES)), ids=name_of)
def test_the_python_of_a_page_runs_and_gives_what_it_shows(page, tmp_path, monkeypatch):
    for extra in EXTRAS.get(name_of(page), ()):
        pytest.importorskip(extra)
    monkeypatch.chdir(tmp_path)

    run(page, without=tuple(NOT_RUN.get(name_of(page), ())))

    plt.close("all")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_has_no_output_in_a_block_that_is_not_compared(page):
    languages = [block.language for block in blocks_of(page)]
    assert [name for name in languages if name not in LANGUAGES and name[0] != "{"] == []
    assert languages.count("") == (1 if name_of(page) in DRAWINGS else 0)


@pytest.mark.parametrize("page", NOT_RUN)
def test_calls_in_blocks_that_cannot_run_have_arguments_that_exist(page):
    begin = tuple(NOT_RUN[page])
    blocks = [block.text for block in blocks_of(ROOT / page) if block.text.startswith(begin)]
    assert len(blocks) == len(begin)

    for node in ast.walk(ast.parse("".join(blocks))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("ws."):
            function = eval(ast.unparse(node.func), {"ws": ws})
            keywords = {keyword.arg: keyword.value for keyword in node.keywords}
            inspect.signature(function).bind(*node.args, **keywords)


def test_the_page_of_choices_states_what_an_example_of_the_gallery_finds():
    example = (ROOT / "examples" / "plot_08_honest.py").read_text(encoding="utf-8")
    names = {}
    exec(example.split("evaluation = ")[0], names)
    X = names["X"][350:]
    y = names["y"][350:]
    rankings = ["WeightedSHAP", "WeightedSHAP shared", "WeightedSHAP wide", "Shapley"]
    found = ws.evaluate(names["explainer"], X, y, methods=rankings, metrics=[])

    area = found.areas(found.judges[0]).mean(axis=0)
    own, shared, wide = np.round(100 * area[:3] / area[3]).astype(int)

    page = (ROOT / "docs" / "choose.md").read_text(encoding="utf-8").replace("\n", " ")
    for sentence in (
        f"own weights leave about {own} % of Shapley's recovery error",
        f"one shared weight about {shared} %",
        f"no gain from the wider family of 47 ({wide} and {own} %)",
    ):
        assert comparable(sentence) in comparable(page), sentence


# commands
# -----------------------------------------------------------------------------------------------


def commands_of(page, program):
    """Yield the words behind a program's name, for each of its commands in a page's ```sh
    blocks."""
    for block in blocks_of(page):
        if block.language == "sh":
            for line in block.text.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                if words[:1] == [program]:
                    yield words[1:]


def inline_of(page):
    """Yield the code within a page's sentences and tables."""
    fence = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
    yield from re.findall(r"`([^`\n]+)`", fence.sub("", page.read_text(encoding="utf-8")))


def options_of(command):
    """Return the options of a command."""
    names = [name for parameter in command.params for name in parameter.opts]
    return {"--help", *(name for name in names if name.startswith("--"))}


def named_options(code):
    """Return the options that a piece of code names."""
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", code))


def test_commands_in_shell_blocks_are_understood():
    found = [words for page in PAGES for words in commands_of(page, "weightedshap")]
    assert len(found) >= 8

    for name, *words in found:
        command = cli.main.commands[name]
        parser = command.make_parser(click.Context(command))
        parser.parse_args(words)  # raises for an option that does not exist


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_and_options_in_sentences_exist(page):
    every = set().union(*map(options_of, cli.main.commands.values()))

    for code in inline_of(page):
        if code.startswith("--"):
            assert named_options(code) <= every, code
        if match := re.match(r"weightedshap ([a-z]+)\b(.*)", code):
            assert named_options(match[2]) <= options_of(cli.main.commands[match[1]]), code


def test_targets_of_make_on_the_pages_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))

    named = {words[0] for page in PAGES for words in commands_of(page, "make")}
    inline = [code.split() for page in PAGES for code in inline_of(page)]
    named |= {words[1] for words in inline if words[0] == "make"}

    assert len(named) >= 10
    assert named <= targets


# what is compared
# ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("comment", "shown"),
    [
        ("(3, 4): rows × features", "(3, 4)"),
        ("['a', …, 'b'], and more", "['a', …, 'b']"),
        ("'won' (not 'lost')", "'won'"),
        ("a third each", None),
        ("", None),
    ],
)
def test_a_value_is_what_a_comment_begins_with(comment, shown):
    assert shown_value(comment) == shown


def test_a_value_is_compared_to_the_letter():
    assert matches("(3, 4)", np.zeros((3, 4)))
    assert not matches("(3, 4)", np.zeros((3, 5)))
    assert matches("['a', …, 'd']", ["a", "b", "c", "d"])
    assert not matches("['a', 'b']", ["a", "b", "c"])
    assert not matches("('a',)", ["a"])


PRINTS = "```python\nprint('1.5 %')\n```\n"
LIES = {
    "another figure": PRINTS + "\nis\n\n```text\n1.6 %\n```\n",
    "another value": "```python\n[1 + 1]    # [3]\n```\n",
    "nothing was printed": "```python\nx = 1\n```\n```text\n1\n```\n",
    "no Python": "```text\n1\n```\n",
    "after a setup": "<!-- setup:\nx = 1\n-->\n```python\nprint(x)\n```\n```text\n2\n```\n",
}


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A function that writes a page and returns its path."""
    monkeypatch.setattr("tests.docs.page_blocks.ROOT", tmp_path)
    monkeypatch.setattr("tests.docs.page_blocks.pinned", lambda: True)
    page = tmp_path / "page.md"

    def write(text):
        page.write_text(text, encoding="utf-8")
        return page

    return write


@pytest.mark.parametrize("text", LIES.values(), ids=LIES)
def test_a_page_that_shows_something_else_is_noticed(text, written):
    with pytest.raises(AssertionError, match=r"page\.md, line \d+"):
        run(written(text))


def test_figures_are_not_compared_with_those_of_other_versions(written, monkeypatch):
    monkeypatch.setattr("tests.docs.page_blocks.pinned", lambda: False)
    run(written(PRINTS + "```text\n1.6 %\n```\n"))
    with pytest.raises(AssertionError, match=r"page\.md"):
        run(written(PRINTS + "```text\n1.6 of 100\n```\n"))
