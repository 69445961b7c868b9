"""The site tells the truth: public names have pages, links lead somewhere, and classes show how
they are used."""

import ast
import contextlib
import doctest
import importlib
import inspect
import io
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import weightedshap as ws
from tests.core.test_public_names import MODULES
from tests.docs.page_blocks import DOCS, PAGES, ROOT, WRITTEN, blocks_of

EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
OURS = [*MODULES, ".engines", ".report"]
SNIPPETS = dict(
    re.findall(
        r"^(weightedshap\.[\w.]+)\n((?:.+\n?)+)", (DOCS / "snippets.txt").read_text("utf-8"), re.M
    )
)
TOPICS = (
    "housing credit classes pipeline torch groups voting superpixels honest weights_by_row"
    " streaming from_shap"
)
LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")


def text_of(page: Path) -> str:
    """A page without its code."""
    text = re.sub(r"^```(?!\{).*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return re.sub(r"`[^`\n]+`", "code", text)


def listed_names(page: str) -> set[str]:
    """The names in the tables of a reference page, with their module."""
    text = (DOCS / "reference" / page).read_text(encoding="utf-8")
    found = set()
    for block in re.findall(r"^```\{eval-rst\}\n(.*?)^```$", text, re.M | re.S):
        module = re.search(r"(?:currentmodule|automodule):: (\S+)", block)[1]
        found |= {f"{module}.{name}" for name in re.findall(r"^ {3}([\w]+)$", block, re.M)}
        found |= {f"{module}.{name}" for name in re.findall(r"^\.\. data:: (\w+)$", block, re.M)}
        found |= {module} if "automodule" in block else set()
    return found


def anchors(page: Path) -> set[str]:
    """What a link can point to: headings and labels."""
    text = text_of(page)
    heads = re.findall(r"^#{1,3} (.+)$", text, re.M)
    slugs = {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$", text, re.M))


def target_of(page: Path, link: str) -> Path:
    """The file behind a link; pages of the gallery are made of the examples."""
    path = (page.parent / link).resolve()
    if path.parent == DOCS / "auto_examples":
        return (
            ROOT
            / "examples"
            / ("GALLERY_HEADER.rst" if path.stem == "index" else f"{path.stem}.py")
        )
    return path


@pytest.mark.parametrize("suffix", OURS)
def test_every_public_name_has_a_reference_page(suffix):
    known = set().union(*(listed_names(page.name) for page in (DOCS / "reference").glob("*.md")))
    names = [
        f"weightedshap{suffix}.{name}"
        for name in importlib.import_module(f"weightedshap{suffix}").__all__
    ]
    elsewhere = {
        "weightedshap.WeightFamily": "weightedshap.weights.WeightFamily"
    }  # one page is enough
    assert [name for name in names if elsewhere.get(name, name) not in known] == []


@pytest.mark.parametrize("suffix", OURS)
def test_every_public_class_has_an_example_that_runs(suffix):
    module = importlib.import_module(
        f"weightedshap{suffix}"
    )  # the doctests run with the tests of src
    classes = [name for name in module.__all__ if inspect.isclass(getattr(module, name))]
    shown = [name for name in classes if ">>>" in (inspect.getdoc(getattr(module, name)) or "")]
    assert [
        name
        for name in classes
        if name not in shown and f"weightedshap{suffix}.{name}" not in SNIPPETS
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in LINK.findall(text_of(page)):
        if link.startswith(("http://", "https://", "images/drawn/")):
            continue
        name, _, anchor = link.partition("#")
        target = target_of(page, name) if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_in_the_tables_of_contents():
    named = {
        (page.parent / entry).resolve()
        for page in WRITTEN
        for block in re.findall(
            r"^```\{toctree\}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S
        )
        for entry in re.findall(r"^([\w/-]+)$", block, re.M)
    }
    assert [
        page.name
        for page in WRITTEN
        if page.with_suffix("") not in named and page.name != "index.md"
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_know_nothing_of_the_machine_they_were_written_on(page):
    assert not re.search(r"(?<![\w./])/(work|tmp|home|root)/", page.read_text(encoding="utf-8"))


TEN_LINES = (ROOT / "README.md", DOCS / "index.md", DOCS / "start.md")


def ten_lines(page: Path) -> str:
    """The first Python of a page."""
    return next(block.text for block in blocks_of(page) if block.language == "python")


def test_the_ten_lines_are_the_same_everywhere():
    first = [ten_lines(page) for page in TEN_LINES]
    shared = [block[: block.index("explanation.values")] for block in first]
    assert len({re.sub(r"\s+$", "", block) for block in shared}) == 1


def letters_per_line(sidebars: float) -> int:
    """Return how many letters of code a line of the site has room for, in a window of 1300 pixels.

    From the style sheets of pydata-sphinx-theme 0.23 and docs/_static/house.css. The article takes
    what the scroll bar and the sidebars (in rem) leave, at most the width that house.css allows.
    Its padding is one rem on each side and two more on the left; that of code is one rem and a
    border of one pixel on each side. Code is set in 0.875 rem, and the widest font that the theme
    asks for, Menlo, takes 0.602 of that for a letter.
    """
    window = 1300
    scroll_bar = 15
    rem = 16
    house = (DOCS / "_static" / "house.css").read_text(encoding="utf-8")
    most = float(re.search(r"\.bd-article-container \{ max-width: (\d+)rem; \}", house)[1])

    article = min(most * rem, window - scroll_bar - sidebars * rem)
    content = article - (2 + 2) * rem
    code = content - 2 * (rem + 1)
    return int(code / (0.602 * 0.875 * rem))


@pytest.mark.parametrize(
    ("page", "sidebars"),
    [
        ("index.md", 17),  # the contents of the page, on the right
        ("start.md", 17 + 16),  # and those of the site, on the left
    ],
)
def test_the_ten_lines_fit_into_their_column(page, sidebars):
    """Of a longer line the end is cut off until the reader scrolls. Two letters are left for other
    fonts."""
    assert max(map(len, ten_lines(DOCS / page).splitlines())) <= letters_per_line(sidebars) - 2


def test_the_gallery_shows_what_people_look_for():
    assert len(EXAMPLES) >= 12
    assert [
        topic for topic in TOPICS.split() if not any(topic in example.stem for example in EXAMPLES)
    ] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_an_example_has_a_title_and_words_and_imports_the_library(example):
    tree = ast.parse(example.read_text(encoding="utf-8"))
    title, rule, blank, *words = ast.get_docstring(tree).splitlines()
    assert rule == "=" * len(title)
    assert blank == ""
    assert words
    imported = [
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    ]
    assert "weightedshap" in imported


@pytest.mark.parametrize("name", SNIPPETS)
def test_examples_of_the_reference_run(name):
    given = {"np": np, "ws": ws, "__name__": name}
    test = doctest.DocTestParser().get_doctest(SNIPPETS[name], given, name, None, 0)
    runner = doctest.DocTestRunner()
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        runner.run(test)
    assert runner.tries > 0
    assert runner.failures == 0, printed.getvalue()
