"""Pages of the documentation as blocks, and their Python, run and held against what the page shows.

A page's ```python blocks run from top to bottom in one namespace. What a page takes for granted,
such as a model and rows of the reader's own, it makes in a comment that readers do not see::

    <!-- setup:
    X = …
    -->

Two kinds of output are compared to the letter. A ```text block is what the block of Python before
it prints. The value of an expression is shown in the comment behind it, as in
``model.classes_  # ['no', 'yes']: their order``; of an array that is the shape, and … stands for
anything.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
WRITTEN = [
    *DOCS.glob("*.md"),
    *DOCS.glob("reference/*.md"),
]  # those below reference/generated are made
PAGES = sorted([*WRITTEN, *ROOT.glob("*.md")])

FENCED = r"^```(?P<language>[^\n`]*)\n(?P<text>.*?)^```$"
SETUP = r"^<!-- setup:\n(?P<setup>.*?)^-->$"
BLOCK = re.compile(f"{FENCED}|{SETUP}", re.MULTILINE | re.DOTALL)
FIGURE = re.compile(r"\d[\d,.]*")
LIBRARIES = ("lightgbm", "numpy", "pandas", "scikit-learn", "scipy")  # on which figures depend
CLOSING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, or the code that sets the page up."""

    language: str  # of the fence: "python", "text", "sh", "{toctree}", "" …; "setup" of the comment
    text: str
    line: int  # of its first line in the page, from 1


def name_of(page: Path) -> str:
    """Return a page's path below the project."""
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks and the setup of a page in their order."""
    source = page.read_text(encoding="utf-8")
    blocks = []

    for match in BLOCK.finditer(source):
        is_setup = match["setup"] is not None
        language = "setup" if is_setup else match["language"]
        text = match["setup"] if is_setup else match["text"]
        blocks.append(Block(language, text, source.count("\n", 0, match.start()) + 2))

    return blocks


def run(page: Path, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """Run the Python of a page, compare what it shows, and return the names it leaves.

    Blocks that begin with one of `without` are left out.
    """
    names: dict[str, Any] = {"__name__": page.stem}
    printed = ""

    for block in blocks_of(page):
        where = f"{name_of(page)}, line {block.line}"

        if block.language == "text":
            assert printed, f"{where} shows output, but the Python before it prints nothing"
            same = comparable(block.text) == comparable(printed)
            assert same, f"{where} shows something else than\n{printed}"

        if block.language in ("python", "setup") and not block.text.startswith(without):
            printed = _printed(block, page, names)

    return names


def comparable(text: str) -> str:
    """Return a text as it is compared: without spaces at line ends, maybe without figures.

    Figures on the pages are those of the versions in constraints.txt. Other versions of the
    libraries that train models give others, so there only the words are compared.
    """
    lines = "\n".join(line.rstrip() for line in text.strip().splitlines())
    return lines if pinned() else FIGURE.sub("#", lines)


def pinned() -> bool:
    """Return whether the libraries have the versions that the pages' figures were made with."""
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pins = dict(re.findall(r"^([\w-]+)==(\S+)$", constraints, re.MULTILINE))
    return all(version(library) == pins[library] for library in LIBRARIES)


def _printed(block: Block, page: Path, names: dict[str, Any]) -> str:
    """Run a block by statements, compare the values in its comments, and return what it prints."""
    tree = ast.parse(block.text)
    comments = dict(_comments(block.text))

    with contextlib.redirect_stdout(io.StringIO()) as printed:
        for node in tree.body:
            shown = shown_value(comments.get(node.end_lineno, ""))
            ast.increment_lineno(node, block.line - 1)  # a traceback tells the line of the page
            where = f"{name_of(page)}, line {node.lineno}"

            if not isinstance(node, ast.Expr):
                assert shown is None, f"{where}: only an expression has a value to show"
                exec(compile(ast.Module([node], []), page, "exec"), names)
                continue

            value = eval(compile(ast.Expression(node.value), page, "eval"), names)
            if shown is not None:
                assert matches(shown, value), f"{where} shows {shown}, but it is {value!r}"

    return printed.getvalue()


def _comments(code: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that end in a comment, from 1, each with its comment."""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.removeprefix("#").strip()


def shown_value(comment: str) -> str | None:
    """Return the tuple, list, dictionary or text that a comment begins with, or None."""
    if comment[:1] in ("'", '"'):
        return comment[: comment.index(comment[0], 1) + 1]
    if comment[:1] not in CLOSING:
        return None

    depth = 0
    for at, letter in enumerate(comment):
        depth += (letter in CLOSING) - (letter in CLOSING.values())
        if not depth:
            return comment[: at + 1]

    return comment


def matches(shown: str, value: Any) -> bool:
    """Return whether a value is shown so: an array by its shape, all else by its repr."""
    text = repr(value.shape) if isinstance(value, np.ndarray) else repr(value)
    return re.fullmatch(re.escape(shown).replace("…", ".*"), text) is not None
