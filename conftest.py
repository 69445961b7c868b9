"""A last line of every test run: what was skipped, and how to run it.

A skip says which tests it concerns and how to run them, in the form ``WHAT; to run: HOW``; that of
`pytest.importorskip` says so by itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import pytest

TO_RUN = "; to run: "
NO_MODULE = re.compile(r"could not import '(\w+)")
TOO_OLD = re.compile(r"module '(\w+)[^']*' has __version__ .*, required is: '(.+)'")
DISTRIBUTIONS = {"sklearn": "scikit-learn", "yaml": "pyyaml"}  # where a module has another name


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Print what was skipped below pytest's own last line, which programs read.

    Workers of pytest-xdist have no terminal; their reports come together in the controller's.
    """
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    skipped = terminal.stats.get("skipped", []) if terminal else []

    if skipped:
        terminal.write_line(skipped_line(skipped))


def skipped_line(reports: Iterable[pytest.TestReport | pytest.CollectReport]) -> str:
    """Return one line that says how many tests were skipped, why, and how to run them."""
    tests: Counter[str] = Counter()
    files: Counter[str] = Counter()

    for report in reports:
        # A file that is skipped when it is collected has one report for all its tests.
        count = files if isinstance(report, pytest.CollectReport) else tests
        count[instruction(reason_of(report))] += 1

    told = []
    every = tests + files
    for reason in sorted(every, key=lambda reason: (-every[reason], reason)):
        what, _, how = reason.partition(TO_RUN)
        counts = [(tests[reason], "test"), (files[reason], "file of tests")]
        who = " and ".join(plural(count, noun) for count, noun in counts if count)
        them = "it" if every[reason] == 1 else "them"
        told.append(f"{who} {what}. To run {them}: {how}." if how else f"{who} ({what}).")

    return "Skipped: " + " ".join(told)


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the reason that a skip was given, on one line."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return " ".join(reason.removeprefix("Skipped: ").split())


def instruction(reason: str) -> str:
    """Return a reason as ``WHAT; to run: HOW`` where a module is missing or too old."""
    if found := NO_MODULE.match(reason):
        name = DISTRIBUTIONS.get(found[1], found[1])
        return f"with {name}{TO_RUN}pip install {name}"

    if found := TOO_OLD.match(reason):
        name = DISTRIBUTIONS.get(found[1], found[1])
        return f"with {name} {found[2]}{TO_RUN}pip install '{name}>={found[2]}'"

    return reason


def plural(count: int, noun: str) -> str:
    """Return a count with its noun."""
    first, *rest = noun.split(" ", 1)
    return " ".join([f"{count:,} {first}" if count == 1 else f"{count:,} {first}s", *rest])
