"""The way of one row through the package: which files a call of the explainer goes through, and how
often it turns.

A hop is a change of file from one function of the package to the next that is called; a function
that is called again, in a loop or later, counts where it is met first. CONTRIBUTING.md tells the
same way in words.
"""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor

import weightedshap as ws

PACKAGE = Path(ws.__file__).parent
MOST_HOPS = 50
SHIM = "_lazy.py"  # stands for a module of another package, wherever one is named
COMPREHENSIONS = {"<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>"}
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(120, 4)), columns=list("abcd"))
MODEL = LGBMRegressor(n_estimators=5, n_jobs=1, verbose=-1).fit(FRAME, FRAME["a"] - FRAME["b"])


def first_calls(work):
    """(file, function) of the package in the order in which they are first called by `work`."""
    met = {}

    def note(frame, event, argument):
        code = frame.f_code
        if (
            event == "call"
            and code.co_name not in COMPREHENSIONS
            and Path(code.co_filename).is_relative_to(PACKAGE)
        ):
            met.setdefault(
                (Path(code.co_filename).relative_to(PACKAGE).as_posix(), code.co_qualname)
            )

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return [(file, name) for file, name in met if file != SHIM]


def in_turn(files):
    """Files one after the other, each as often as it is come back to."""
    return [file for file, before in zip(files, [None, *files]) if file != before]


def uncompiled(files):
    """Without compiled loops: whether numba reports them to a profiler depends on its version."""
    return in_turn([file for file in files if "kernels" not in file])


@pytest.fixture(scope="module")
def way():
    ws.Explainer(MODEL, FRAME[:100], game="tree_path", progress=False)(
        FRAME[100:101]
    )  # compiled from now on
    explainer = ws.Explainer(MODEL, FRAME[:100], game="tree_path", progress=False)
    return first_calls(lambda: explainer(FRAME[100:101]))


def test_one_row_takes_few_hops(way):
    turns = in_turn([file for file, _ in way])
    assert len(turns) - 1 <= MOST_HOPS, "\n".join(turns)


def test_the_call_enters_the_rooms_where_a_reader_looks(way):
    met = {f"{file}: {name}" for file, name in way}
    wanted = {
        "estimators/exact.py: read_off",
        "utilities.py: _small_area",
        "selection.py: candidates",
        "selection.py: select",
    }
    assert wanted <= met


def test_contributing_tells_the_same_way(way):
    text = (Path(__file__).parent.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("## The way of one row")[2].partition("\n## ")[0]
    told = re.findall(r"^\| \d+ \| `([\w./]+)`", table, re.M)
    assert len(told) - 1 <= MOST_HOPS
    assert uncompiled(told) == uncompiled([file for file, _ in way])
