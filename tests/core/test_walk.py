"""The way of one row through the package: which files a default call goes through, and how often it
turns.

A hop is a change of file from one function of the package to the next that is called; a function
that is called again, in a loop or later, counts where it is met first. CONTRIBUTING.md shows the
same way in words.
"""

import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor

import weightedshap as ws

PACKAGE = Path(ws.__file__).parent
SHIM = "_lazy.py"  # stands for a module of another package, wherever one is named
COMPREHENSIONS = {"<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>"}
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(120, 4)), columns=list("abcd"))
MODEL = LGBMRegressor(n_estimators=5, n_jobs=1, verbose=-1).fit(FRAME, FRAME["a"] - FRAME["b"])

# The default is two games, so it encodes twice, walks two sets of trees, and imputes.
MOST_HOPS_BY_DEFAULT = 42
MOST_HOPS_ON_TREES = 29
MOST_HOPS_OF_A_FUNCTION = 74
MOST_HOPS_SAMPLED = 62
# Two games are fitted, and everything is resolved that a call would otherwise look up.
MOST_HOPS_TO_CONSTRUCT = 116


def plain_function(X):
    X = np.asarray(X)
    return X[:, 0] - X[:, 1] * X[:, 2]


def first_calls(work):
    """Return (file, function) of the package in the order in which `work` first calls them."""
    seen = {}

    def note(frame, event, argument):
        code = frame.f_code
        if (
            event == "call"
            and code.co_name not in COMPREHENSIONS
            and Path(code.co_filename).is_relative_to(PACKAGE)
        ):
            file = Path(code.co_filename).relative_to(PACKAGE).as_posix()
            seen.setdefault((file, code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return [(file, name) for file, name in seen if file != SHIM]


def entries(calls):
    """Return the files one after the other, each as often as it is entered."""
    files = [file for file, _ in calls]
    return [file for file, before in zip(files, [None, *files]) if file != before]


def count_hops(calls):
    return len(entries(calls)) - 1


def without_kernels(files):
    """Leave out compiled loops: whether numba reports them to a profiler depends on its version."""
    files = [file for file in files if "kernels" not in file]
    return [file for file, before in zip(files, [None, *files]) if file != before]


def trace_row(model, **choices):
    """Return the first calls that explaining one row makes, with everything compiled before."""
    ws.Explainer(model, FRAME[:100], progress=False, **choices)(FRAME[100:101])
    explainer = ws.Explainer(model, FRAME[:100], progress=False, **choices)
    return first_calls(lambda: explainer(FRAME[100:101]))


@pytest.fixture(scope="module")
def default_row():
    return trace_row(MODEL)


def test_a_default_row_takes_few_hops(default_row):
    assert count_hops(default_row) <= MOST_HOPS_BY_DEFAULT, "\n".join(entries(default_row))


@pytest.mark.parametrize(
    ("model", "choices", "most"),
    [
        (MODEL, {"game": "tree_path"}, MOST_HOPS_ON_TREES),
        (plain_function, {}, MOST_HOPS_OF_A_FUNCTION),
        (
            plain_function,
            {"game": "marginal", "estimator": "permutation", "evaluations": 200},
            MOST_HOPS_SAMPLED,
        ),
    ],
    ids=["trees", "function", "sampled"],
)
def test_other_rows_take_few_hops(model, choices, most):
    calls = trace_row(model, **choices)
    assert count_hops(calls) <= most, "\n".join(entries(calls))


def test_the_constructor_takes_few_hops():
    ws.Explainer(MODEL, FRAME[:100], progress=False)
    calls = first_calls(lambda: ws.Explainer(MODEL, FRAME[:100], progress=False))
    assert count_hops(calls) <= MOST_HOPS_TO_CONSTRUCT, "\n".join(entries(calls))


def test_the_steps_of_the_method_are_met_in_the_papers_order(default_row):
    steps = ["explain_block", "estimate", "score_weights", "select"]
    met = [
        name
        for file, name in default_row
        if file in ("method.py", "selection.py") and name in steps
    ]
    assert met == steps


def test_no_file_but_the_method_is_entered_often(default_row):
    times = Counter(entries(default_row))
    del times["method.py"]
    assert max(times.values()) <= 3, times


def test_the_table_in_contributing_is_the_traced_way(default_row):
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("## The way of one row")[2].partition("\n## ")[0]
    files = re.findall(r"^\| \d+ \| `([\w./]+)`", table, re.M)
    assert without_kernels(files) == without_kernels(entries(default_row))
