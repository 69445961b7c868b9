"""One self-contained HTML page of an Explanation: `write`, or ``explanation.report("page.html")``.

The page holds plotly.js and what it draws, gzipped and coded in base64. A Content-Security-Policy
forbids to load anything, or to run any but the two scripts whose hashes it lists. No name or value
of the data stands in the markup: the script sets them as text, and plotly, which reads some HTML in
labels, gets them escaped.
"""

import base64
import gzip
import hashlib
import json
import os
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from weightedshap._checks import require
from weightedshap._format import plural
from weightedshap.evaluation import Evaluation
from weightedshap.explanation import Explanation
from weightedshap.plots.style import SHEET
from weightedshap.report.content import Whole, contents

__all__ = ["Whole", "page", "write"]


def write(
    explanation: Explanation,
    path: str | os.PathLike[str],
    evaluation: Evaluation | None = None,
    whole: Whole | None = None,
) -> None:
    """Write the page to one file; without `evaluation` it has only the flattering numbers of the
    judge that chose.

    Where `explanation` is a sample of many rows, `whole` tells what all of them sum up to.
    """
    Path(path).write_bytes(page(explanation, evaluation, whole).encode("utf-8"))


def page(
    explanation: Explanation, evaluation: Evaluation | None = None, whole: Whole | None = None
) -> str:
    """The page as text; see `write`."""
    plotly = require("plotly.offline", "report").get_plotlyjs().encode("utf-8")
    head, numbers = contents(explanation, evaluation, whole)
    style = _filled(_read("page.css"), {name: str(value) for name, value in SHEET.items()})
    parts = map(_read, ("text.js", "overview.js", "explorer.js"))
    script = "\n".join(['"use strict";', f"const STYLE = {json.dumps(SHEET)};", *parts])
    n = head["n"]
    d = len(explanation.feature_names)
    packed = {
        "plotly": plotly,
        "head": json.dumps(head, allow_nan=False).encode("ascii"),
        "numbers": numbers,
    }
    # gzipped (the same bytes every time), as letters that mean nothing to HTML
    pieces = {name: _letters(gzip.compress(content, mtime=0)) for name, content in packed.items()}
    pieces |= {"style": style, "script": script, "policy": _policy(script.encode("utf-8"), plotly)}
    pieces["title"] = f"WeightedSHAP: {plural(n, 'row')}, {plural(d, 'feature')}"
    return _filled(_read("page.html"), pieces)


def _filled(text: str, pieces: Mapping[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda found: pieces[found[1]], text)


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _letters(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _policy(*scripts: bytes) -> str:
    """Nothing may load, and nothing run but these scripts. What plotly.js styles and draws changes
    by version."""
    allowed = " ".join(
        f"'sha256-{_letters(hashlib.sha256(script).digest())}'" for script in scripts
    )
    shown = "style-src 'unsafe-inline'; img-src data:"
    return f"default-src 'none'; script-src {allowed}; {shown}; base-uri 'none'; form-action 'none'"
