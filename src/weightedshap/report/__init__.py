"""One self-contained HTML page of an Explanation: `write`, or ``explanation.report("page.html")``.

The page contains plotly.js and the data that it draws, gzipped and encoded in base64. A
Content-Security-Policy forbids to load anything, or to run any but the two scripts whose hashes it
lists. No name or value of the data is part of the markup: the script sets them as text, and plotly,
which reads some HTML in labels, gets them escaped.
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
from weightedshap.report.content import AllRows, contents

__all__ = ["AllRows", "page", "write"]

SCRIPTS = ("text.js", "overview.js", "explorer.js")


def write(
    explanation: Explanation,
    path: str | os.PathLike[str],
    evaluation: Evaluation | None = None,
    whole: AllRows | None = None,
) -> None:
    """Write the HTML page of an explanation to one file.

    Without `evaluation` the page only has the flattering numbers of the judge that chose the
    weights. If `explanation` is a sample of many rows, `whole` contains the sums over all of them.
    """
    Path(path).write_bytes(page(explanation, evaluation, whole).encode("utf-8"))


def page(
    explanation: Explanation, evaluation: Evaluation | None = None, whole: AllRows | None = None
) -> str:
    """Return the HTML page of an explanation as text; for the arguments see `write`."""
    plotly = require("plotly.offline", "report").get_plotlyjs().encode("utf-8")
    head, numbers = contents(explanation, evaluation, whole)
    style = _render(_read("page.css"), {name: str(value) for name, value in SHEET.items()})
    constants = f"const STYLE = {json.dumps(SHEET)};"
    script = "\n".join(['"use strict";', constants, *map(_read, SCRIPTS)])
    rows = plural(head["n"], "row")
    features = plural(len(explanation.feature_names), "feature")
    pieces = {
        "plotly": _encode(plotly),
        "head": _encode(json.dumps(head, allow_nan=False).encode("ascii")),
        "numbers": _encode(numbers),
        "style": style,
        "script": script,
        "policy": _policy(script.encode("utf-8"), plotly),
        "title": f"WeightedSHAP: {rows}, {features}",
    }
    return _render(_read("page.html"), pieces)


def _render(template: str, pieces: Mapping[str, str]) -> str:
    """Replace each ``{{name}}`` of a template by the text of that name in `pieces`."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: pieces[match[1]], template)


def _read(name: str) -> str:
    """Return the text of a file of this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _encode(content: bytes) -> str:
    """Compress content with gzip and encode it in base64, as text that is safe in HTML.

    Equal content always becomes equal text.
    """
    return _to_base64(gzip.compress(content, mtime=0))


def _to_base64(content: bytes) -> str:
    """Encode bytes in base64, as text."""
    return base64.b64encode(content).decode("ascii")


def _policy(*scripts: bytes) -> str:
    """Return a Content-Security-Policy that loads nothing, and runs only the given scripts."""
    hashes = " ".join(
        f"'sha256-{_to_base64(hashlib.sha256(script).digest())}'" for script in scripts
    )
    # The styles that plotly.js sets differ between its versions, so styles have no hashes.
    styles = "style-src 'unsafe-inline'; img-src data:"
    return f"default-src 'none'; script-src {hashes}; {styles}; base-uri 'none'; form-action 'none'"
