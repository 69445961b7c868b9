"""What a registry, a citation manager and a packager read says the same as the package."""

import re
import tomllib
from pathlib import Path

import pytest

import weightedshap

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
APART = {
    "dask",
    "distributed",
    "ray",
    "pyspark",
    "duckdb",
    "torch",
    "xgboost",
}  # by engines, or too large; xgboost-cpu is in
CONDA = {"matplotlib": "matplotlib-base"}


def bounds(requirements):
    """{name: lowest version} of requirements with one."""
    found = (re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)$", one) for one in requirements)
    return {match[1]: match[2] for match in found if match}


def read(file):
    return yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))


def test_the_citation_has_the_version_and_the_paper():
    cited = read("CITATION.cff")
    assert cited["version"] == weightedshap.__version__
    assert cited["license"] == PROJECT["license"]
    assert [author["family-names"] for author in cited["preferred-citation"]["authors"]] == [
        "Kwon",
        "Zou",
    ]
    assert cited["preferred-citation"]["year"] == 2022


def test_the_changelog_begins_with_the_version():
    released = re.findall(
        r"^## \[(\d[\d.]*)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M
    )
    assert released[0] == weightedshap.__version__


def test_the_recipe_asks_for_what_the_package_asks_for():
    recipe = read("recipe/recipe.yaml")
    assert recipe["context"]["version"] == weightedshap.__version__
    assert PROJECT["requires-python"] == f">={recipe['context']['python_min']}"
    asked = {
        CONDA.get(name, name): version for name, version in bounds(PROJECT["dependencies"]).items()
    }
    named = dict(
        one.split(" >=") for one in recipe["requirements"]["run"] if not one.startswith("python ")
    )
    assert named == asked
    (entry,) = recipe["build"]["python"]["entry_points"]
    assert dict([entry.split(" = ")]) == PROJECT["scripts"]


def test_the_lowest_versions_are_those_of_the_bounds():
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines if not line.startswith("#"))
    extras = [
        one
        for name, extra in PROJECT["optional-dependencies"].items()
        if name != "docs"
        for one in extra
    ]
    asked = bounds([*PROJECT["dependencies"], *extras])
    asked = {name: version for name, version in asked.items() if name not in APART}
    assert {name: re.sub(r"(\.0)+$", "", pinned.get(name, "none")) for name in asked} == {
        name: re.sub(r"(\.0)+$", "", version) for name, version in asked.items()
    }
