"""What the site needs beyond Sphinx: formulas without scripts, links from docstrings, pictures,
strict examples."""

from __future__ import annotations

import importlib
import inspect
import re
import warnings
from typing import Any

import pictures
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx import addnodes

MODULES = [
    "",
    ".plots",
    ".games",
    ".estimators",
    ".estimators.stopping",
    ".weights",
    ".utilities",
    ".curves",
]
MODULES += [".engines", ".report"]
TICKS = re.compile(r"(``.*?``|`.*?`)")
ENTRY = re.compile(r"(?:^| · )([a-z_]\w*(?:, [a-z_]\w*)*) : ")
STARS = re.compile(r"(?<=[φw])\*|(?<=, )\*(?=,)")  # of φ* and w*, and of keyword arguments
HEAD = (">>> import numpy as np", ">>> import weightedshap as ws")
PAPER = re.compile(
    r"\b(Equation|Algorithm|Theorem) ([1-5])\b"
)  # those of the paper, told on the page of the method


def public_names() -> dict[str, str]:
    """Every public name, and members of public classes, by what docstrings call it."""
    found: dict[str, str] = {}
    for suffix in MODULES:
        module = importlib.import_module(f"weightedshap{suffix}")
        for name in module.__all__:
            full = f"weightedshap{suffix}.{name}"
            thing = getattr(module, name)
            if name == "WeightFamily" and not suffix:
                continue  # is shown where it is made
            found.setdefault(name, full)
            found[full] = full
            if inspect.isclass(thing):
                members = [member for member in vars(thing) if not member.startswith("_")]
                found |= {
                    f"{name}.{member}": f"{full}.{member}"
                    for member in members
                    if _documented(thing, member)
                }
    return found


def _documented(thing: type, member: str) -> bool:
    return bool(getattr(inspect.getattr_static(thing, member), "__doc__", None)) and not isinstance(
        inspect.getattr_static(thing, member), (int, str, float, tuple, type(None))
    )


def ours(
    name: str,
    rawtext: str,
    text: str,
    lineno: int,
    inliner: Any,
    options: Any = None,
    content: Any = (),
) -> Any:
    """The role of single backticks: a link where the name is one of ours, else code."""
    env, known = inliner.document.settings.env, inliner.document.settings.env.app.ours
    literal = nodes.literal(rawtext, text, classes=["xref", "py"])
    here = env.ref_context.get("py:class")
    full = known.get(f"{here}.{text}") if here else None
    full = full or known.get(text)
    if full is None:
        return [nodes.literal(rawtext, text)], []
    link = addnodes.pending_xref(
        rawtext, literal, refdomain="py", reftype="obj", reftarget=full, refexplicit=True
    )
    link["refdoc"], link["refwarn"] = env.docname, True
    return [link], []


def snippets(text: str) -> dict[str, list[str]]:
    """Examples of classes whose docstrings have none, by the class."""
    found = re.findall(r"^(weightedshap\.[\w.]+)\n((?:.+\n?)+)", text, re.M)
    return {name: [*HEAD, *lines.splitlines()] for name, lines in found}


def with_snippet(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if name in app.snippets:
        lines += ["", "Examples", "--------", *app.snippets[name], ""]


def described(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """``name : what it is`` in a section is a name and its description; several may stand in one
    line."""
    told, inside = [], False
    for place, line in enumerate(lines):
        if line in ("Parameters", "Attributes") and lines[place + 1 : place + 2] == [
            "-" * len(line)
        ]:
            inside = True
        elif line in ("Examples", "Returns"):
            inside = False
        entries = ENTRY.split(line) if inside and ENTRY.match(line) else []
        told += [
            part
            for name, text in zip(entries[1::2], entries[2::2])
            for part in (name, f"    {text}")
        ] or [line]
    lines[:] = told


def formulas_are_code(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """An indented paragraph, before the sections, is a formula or a piece of code."""
    told, margin = [], 0
    for place, line in enumerate(lines):
        if line.startswith("---"):
            told += lines[place:]
            break
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent > margin and place and not lines[place - 1].strip():
            told += [" " * margin + "::", ""]
        margin = indent if line.strip() else margin
        told.append(line)
    lines[:] = told


def as_rest(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Bars and stars of formulas stay what they are; what is named of the paper is a link to the
    page of the method."""
    literal: int | None = None
    for place, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if literal is not None and line.strip() and indent <= literal:
            literal = None
        if literal is None and not line.lstrip().startswith((">>>", "...", ".. ", ":")):
            lines[place] = "".join(
                _plain(part) if i % 2 == 0 else part for i, part in enumerate(TICKS.split(line))
            )
        if line.rstrip().endswith("::") and not line.lstrip().startswith(".."):
            literal = indent


def _plain(text: str) -> str:
    text = STARS.sub(r"\\*", text.replace("|", r"\|"))
    return PAPER.sub(lambda found: f":ref:`{found[0]} <{found[1].lower()}-{found[2]}>`", text)


def unmade_by_people(app: Any, what: str, name: str, *_: Any) -> tuple[str, None] | None:
    """Results are made by the library: their constructors say nothing to a reader."""
    return ("", None) if name in ("weightedshap.Explanation", "weightedshap.Evaluation") else None


def inline_math(writer: Any, node: nodes.math) -> None:
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def block_math(writer: Any, node: nodes.math_block) -> None:
    number = f'<span class="eqno">({node["number"]})</span>' if node["number"] else ""
    writer.body.append(
        f"{writer.starttag(node, 'div', CLASS='math')}{tex2mathml(node.astext(), as_block=True)}"
    )
    writer.body.append(f"{number}</div>\n")
    raise nodes.SkipNode


def warnings_are_errors(conf: dict[str, Any], name: str, when: str) -> None:
    """While an example runs, every warning of Python is an error; afterwards as before."""
    if when == "before":
        warnings.filterwarnings("error")
        # matplotlib draws on a canvas without a window here, and shap's import says this of itself
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
        warnings.filterwarnings(
            "ignore", "The set_(bad|over|under) function", PendingDeprecationWarning
        )
    else:
        warnings.resetwarnings()
        warnings.simplefilter("ignore")


def begun(app: Any) -> None:
    app.ours = public_names()
    app.snippets = snippets((app.srcdir / "snippets.txt").read_text(encoding="utf-8"))
    pictures.draw_all(app.srcdir / "images" / "drawn")


def setup(app: Any) -> dict[str, Any]:
    app.add_role("ours", ours)
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    app.connect("autodoc-process-docstring", formulas_are_code, priority=100)  # before numpydoc
    app.connect("autodoc-process-docstring", with_snippet, priority=110)
    app.connect("autodoc-process-docstring", described, priority=120)
    app.connect("autodoc-process-docstring", as_rest, priority=900)  # after it
    app.connect("autodoc-process-signature", unmade_by_people)
    app.connect("builder-inited", begun, priority=1)
    return {"parallel_read_safe": False}
