"""`import weightedshap` is light: no optional package, and not many modules (counted, not
timed)."""

import inspect
import subprocess
import sys

import pytest

from weightedshap._lazy import LazyModule

MOST_MODULES = 650  # measured: about 510, of which numpy and scipy are 300

SCRIPT = "import sys, weightedshap; print(*sys.modules)"

HEAVY = (
    "numba",
    "torch",
    "shap",
    "shapiq",
    "matplotlib",
    "xgboost",
    "catboost",
    "polars",
    "plotly",
)
HEAVY += (
    "pandas",
    "pyarrow",
    "sklearn",
    "lightgbm",
    "joblib",
    "tqdm",
    "scipy.special",
    "scipy.stats",
)


def imported_modules(script=SCRIPT):
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=environment(),
    )
    return set(answer.stdout.split())


def environment():
    """This process's search path, so that the package under test is the one imported."""
    return {"PYTHONPATH": ":".join(path for path in sys.path if path)}


def test_importing_loads_the_package_and_no_optional_one():
    modules = imported_modules()
    assert "weightedshap.explainer" in modules
    assert [name for name in HEAVY if name in modules] == []


def test_commands_load_what_they_need_when_they_need_it():
    modules = imported_modules("import sys, weightedshap.jobs.cli; print(*sys.modules)")
    assert [name for name in HEAVY if name in modules] == []


def test_importing_stays_light():
    assert len(imported_modules()) < MOST_MODULES


def test_to_look_at_a_module_that_is_not_installed_does_not_load_it():
    absent = LazyModule("no_such_module")
    assert inspect.unwrap(absent) is absent
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        _ = absent.name
