"""The last line of a run of the tests says what was skipped, and how to run that."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import instruction
from tests.docs.page_blocks import ROOT

PASSES = "def test_passes():\n    pass\n"
SUITE = {
    "test_page.py": PASSES
    + """
import pytest

@pytest.mark.parametrize("page", range(3))
def test_in_a_browser(page):
    pytest.skip("of the page in a browser; to run: apt-get install chromium")

def test_with_a_library():
    pytest.importorskip("no_such_library")

@pytest.mark.skipif(True, reason="on Tuesdays")
def test_without_instructions():
    pass
""",
    "test_whole_file.py": "import pytest\npytest.importorskip('no_such_library.part')\n" + PASSES,
    "test_version.py": """
import pytest

def test_with_a_version():
    pytest.importorskip("numpy", "99.1")
""",
}
EVERYTHING = (
    "Skipped: 3 tests of the page in a browser. To run them: apt-get install chromium."
    " 1 test and 1 file of tests with no_such_library. To run them: pip install no_such_library."
    " 1 test (on Tuesdays)."
    " 1 test with numpy 99.1. To run it: pip install 'numpy>=99.1'."
)
CLOSING = re.compile(r"(=+ )?(\d+ \w+, )*\d+ \w+ in [\d.]+s( =+)?")  # of pytest itself


@pytest.fixture
def run_tests(tmp_path):
    """A function that runs pytest on files and returns the lines it prints and its exit code."""
    shutil.copy(ROOT / "conftest.py", tmp_path)

    def test(files, *options):
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        plugins = ["-p", "no:cacheprovider", "-p", "xdist.plugin"]
        command = [sys.executable, "-m", "pytest", *plugins, *options, "."]
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        return done.stdout.splitlines(), done.returncode

    return test


@pytest.mark.parametrize("options", [("-n", "0"), ("-n", "0", "-q"), ("-n", "2")], ids=" ".join)
def test_the_last_line_says_what_was_skipped_and_how_to_run_it(run_tests, options):
    lines, code = run_tests(SUITE, *options)
    assert lines[-1] == EVERYTHING
    assert CLOSING.fullmatch(lines[-2]), lines[-2]
    assert "1 passed, 7 skipped" in lines[-2]
    assert code == 0


@pytest.mark.parametrize("options", [("-n", "0"), ("-n", "2")], ids=" ".join)
def test_no_line_is_printed_where_nothing_was_skipped(run_tests, options):
    lines, code = run_tests({"test_all.py": PASSES}, *options)
    assert CLOSING.fullmatch(lines[-1]), lines[-1]
    assert code == 0


def test_a_failure_stays_a_failure_where_tests_were_skipped(run_tests):
    fails = "def test_fails():\n    assert 1 == 2\n"
    lines, code = run_tests({**SUITE, "test_fails.py": fails}, "-n", "0")
    assert lines[-1] == EVERYTHING
    assert "1 failed, 1 passed, 7 skipped" in lines[-2]
    assert code == 1


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("could not import 'skops.io': no module", "with skops; to run: pip install skops"),
        ("could not import 'yaml': no module", "with pyyaml; to run: pip install pyyaml"),
        (
            "module 'sklearn' has __version__ '1.5.0', required is: '1.8'",
            "with scikit-learn 1.8; to run: pip install 'scikit-learn>=1.8'",
        ),
        ("on Tuesdays", "on Tuesdays"),
    ],
)
def test_a_missing_or_old_library_is_to_be_installed_by_its_name_in_the_registry(reason, text):
    assert instruction(reason) == text


def reasons_in(path: Path):
    """Yield the reasons of skips that a file of tests gives: texts, or None where there is none."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call):
            continue

        name = ast.unparse(node.func)
        given = [keyword.value for keyword in node.keywords if keyword.arg == "reason"]
        if name == "pytest.importorskip" and not given:
            continue  # conftest.py knows what to install
        if name in ("pytest.skip", "pytest.mark.skip", "pytest.mark.skipif", "pytest.importorskip"):
            texts = given or (node.args[:1] if name == "pytest.skip" else [])
            yield ast.literal_eval(texts[0]) if texts else None


def test_every_skip_says_which_tests_it_concerns_and_how_to_run_them():
    files = [path for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__).resolve()]
    reasons = [(path.name, reason) for path in files for reason in reasons_in(path)]
    assert len(reasons) >= 5
    assert [one for one in reasons if "; to run: " not in (one[1] or "")] == []
