"""A Sphinx extension for the site: formulas as MathML, links in docstrings, pictures, examples.

Single backticks become links to the public names of the package. Docstrings are rewritten before
and after numpydoc reads them, pictures are drawn by `docs/pictures.py`, and a warning in an example
is an error. `docs/conf.py` loads the extension.
"""

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
# The stars of φ* and w*, and of keyword arguments.
STARS = re.compile(r"(?<=[φw])\*|(?<=, )\*(?=,)")
HEAD = (">>> import numpy as np", ">>> import weightedshap as ws")
# The paper's equations, algorithms and theorems, which the page of the method describes.
PAPER = re.compile(r"\b(Equation|Algorithm|Theorem) ([1-5])\b")


def public_names() -> dict[str, str]:
    """Return the full name of every public object and member, by its name in docstrings."""
    targets: dict[str, str] = {}
    for suffix in MODULES:
        module = importlib.import_module(f"weightedshap{suffix}")
        for name in module.__all__:
            full = f"weightedshap{suffix}.{name}"
            thing = getattr(module, name)
            # The class is documented in the module that defines it.
            if name == "WeightFamily" and not suffix:
                continue
            targets.setdefault(name, full)
            targets[full] = full
            if inspect.isclass(thing):
                members = [member for member in vars(thing) if not member.startswith("_")]
                targets |= {
                    f"{name}.{member}": f"{full}.{member}"
                    for member in members
                    if _documented(thing, member)
                }
    return targets


def _documented(thing: type, member: str) -> bool:
    """Return whether a member of a class has a docstring of its own."""
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
    """Return a link for text in single backticks if it is a public name, else code."""
    env = inliner.document.settings.env
    targets = env.app.ours
    literal = nodes.literal(rawtext, text, classes=["xref", "py"])
    here = env.ref_context.get("py:class")
    full = targets.get(f"{here}.{text}") if here else None
    full = full or targets.get(text)
    if full is None:
        return [nodes.literal(rawtext, text)], []
    link = addnodes.pending_xref(
        rawtext, literal, refdomain="py", reftype="obj", reftarget=full, refexplicit=True
    )
    link["refdoc"] = env.docname
    link["refwarn"] = True
    return [link], []


def snippets(text: str) -> dict[str, list[str]]:
    """Return the example of each class whose docstring has none, by the name of the class."""
    examples = re.findall(r"^(weightedshap\.[\w.]+)\n((?:.+\n?)+)", text, re.M)
    return {name: [*HEAD, *lines.splitlines()] for name, lines in examples}


def append_snippet(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Append the example of a class to its docstring."""
    if name in app.snippets:
        lines += ["", "Examples", "--------", *app.snippets[name], ""]


def split_entries(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Split each ``name : description`` of a section in two lines; one line may hold several."""
    written = []
    inside = False
    for place, line in enumerate(lines):
        if line in ("Parameters", "Attributes") and lines[place + 1 : place + 2] == [
            "-" * len(line)
        ]:
            inside = True
        elif line in ("Examples", "Returns"):
            inside = False
        entries = ENTRY.split(line) if inside and ENTRY.match(line) else []
        written += [
            part
            for name, text in zip(entries[1::2], entries[2::2])
            for part in (name, f"    {text}")
        ] or [line]
    lines[:] = written


def formulas_are_code(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Mark indented paragraphs before the sections as code: they hold formulas or code."""
    written = []
    margin = 0
    for place, line in enumerate(lines):
        if line.startswith("---"):
            written += lines[place:]
            break
        indent = len(line) - len(line.lstrip())
        if line.strip() and indent > margin and place and not lines[place - 1].strip():
            written += [" " * margin + "::", ""]
        margin = indent if line.strip() else margin
        written.append(line)
    lines[:] = written


def as_rest(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape bars and stars of formulas, and link the paper's equations to the method's page."""
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
    """Return text outside of backticks with escaped formulas and links to the paper's parts."""
    text = STARS.sub(r"\\*", text.replace("|", r"\|"))
    return PAPER.sub(lambda match: f":ref:`{match[0]} <{match[1].lower()}-{match[2]}>`", text)


def hide_constructors(app: Any, what: str, name: str, *_: Any) -> tuple[str, None] | None:
    """Hide the constructors of results, which only the library calls."""
    return ("", None) if name in ("weightedshap.Explanation", "weightedshap.Evaluation") else None


def inline_math(writer: Any, node: nodes.math) -> None:
    """Write a formula within a line as MathML."""
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def block_math(writer: Any, node: nodes.math_block) -> None:
    """Write a formula of its own line as MathML, with its number."""
    number = f'<span class="eqno">({node["number"]})</span>' if node["number"] else ""
    writer.body.append(
        f"{writer.starttag(node, 'div', CLASS='math')}{tex2mathml(node.astext(), as_block=True)}"
    )
    writer.body.append(f"{number}</div>\n")
    raise nodes.SkipNode


def warnings_are_errors(conf: dict[str, Any], name: str, when: str) -> None:
    """Turn warnings into errors while an example of the gallery runs, and ignore them after it."""
    if when == "before":
        warnings.filterwarnings("error")
        # matplotlib draws without a window here, and importing shap raises the second warning.
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
        warnings.filterwarnings(
            "ignore", "The set_(bad|over|under) function", PendingDeprecationWarning
        )
    else:
        warnings.resetwarnings()
        warnings.simplefilter("ignore")


def prepare_build(app: Any) -> None:
    """Collect the public names and the examples, and draw the pictures, before the build."""
    app.ours = public_names()
    app.snippets = snippets((app.srcdir / "snippets.txt").read_text(encoding="utf-8"))
    pictures.draw_all(app.srcdir / "images" / "drawn")


def setup(app: Any) -> dict[str, Any]:
    """Register the roles, the formulas and the handlers of docstrings with Sphinx."""
    app.add_role("ours", ours)
    app.add_html_math_renderer("mathml", (inline_math, None), (block_math, None))
    # numpydoc has priority 500: the first three come before it, the last one after it.
    app.connect("autodoc-process-docstring", formulas_are_code, priority=100)
    app.connect("autodoc-process-docstring", append_snippet, priority=110)
    app.connect("autodoc-process-docstring", split_entries, priority=120)
    app.connect("autodoc-process-docstring", as_rest, priority=900)
    app.connect("autodoc-process-signature", hide_constructors)
    app.connect("builder-inited", prepare_build, priority=1)
    return {"parallel_read_safe": False}
