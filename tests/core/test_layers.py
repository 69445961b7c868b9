"""Imports point one way: a module may import only what stands before it in LAYERS.

The whole tree of every file is walked, so an import inside a function counts too.
"""

import ast
from pathlib import Path

import weightedshap

LAYERS = [
    *("_lazy", "_compile", "_format", "_checks", "coalitions", "parallel", "contributions"),
    *("inputs", "trees", "weights", "games"),
    *("curves", "estimators", "utilities", "selection", "method", "config"),
    *("files", "explanation", "explainer"),
    *("evaluation", "plots", "report", "jobs", "engines", "__main__"),
]

# Shortcuts that people call on an object of the core; each imports its room when it is called.
ALLOWED = {("explanation", "plots"), ("explanation", "report"), ("explainer", "jobs")}

NEUTRAL = {"_version"}  # holds a string, imports nothing


def violations(package, layers=LAYERS, allowed=ALLOWED):
    """Sentences, one for each import of the package at folder `package` that points the wrong
    way."""
    rank = {module: position for position, module in enumerate(layers)}
    rank[""] = _rank_of_root(package, rank)
    found = []
    for file in sorted(package.rglob("*.py")):
        source = _module_of(file.relative_to(package))
        if source in NEUTRAL or source == "":
            continue
        if source not in rank:
            found.append(f"{source} has no place in the layers")
            continue
        targets = sorted(_imports(file, package) - NEUTRAL - {source})
        later = [target for target in targets if rank.get(target, len(rank)) >= rank[source]]
        wrong = [target for target in later if (source, target) not in allowed]
        found.extend(f"{source} imports {target or package.name}" for target in wrong)
    return found


def _rank_of_root(package, rank):
    """The package itself stands where the last module that it imports stands."""
    root = package / "__init__.py"
    return max(
        (rank.get(target, len(rank)) for target in _imports(root, package) - NEUTRAL), default=-1
    )


def _module_of(path):
    """The module or sub-package right under the package that a file belongs to; "" for its
    __init__."""
    return "" if path.parts == ("__init__.py",) else path.parts[0].removesuffix(".py")


def _imports(file, package):
    """Names right under `package` that a file imports; "" where it imports a name of the package
    itself."""
    targets = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            dotted = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, file, package)
            dotted = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        targets |= {_target(name, package) for name in dotted if name.split(".")[0] == package.name}
    return targets


def _absolute(node, file, package):
    if not node.level:
        return node.module
    here = [package.name, *file.relative_to(package).parts[:-1]]
    return ".".join([*here[: len(here) - node.level + 1], *([node.module] if node.module else [])])


def _target(dotted, package):
    name = dotted.split(".")[1] if "." in dotted else ""
    is_module = (package / name).is_dir() or (package / f"{name}.py").exists()
    return name if is_module else ""


def write_package(tmp_path, files):
    """A package `house` with the given files."""
    package = tmp_path / "house"
    for path, text in {"__init__.py": "", **files}.items():
        (package / path).parent.mkdir(parents=True, exist_ok=True)
        (package / path).write_text(text, encoding="utf-8")
    return package


def violations_in(tmp_path, files):
    return violations(
        write_package(tmp_path, files), ["cellar", "hall", "roof"], {("hall", "roof")}
    )


def test_imports_point_one_way():
    assert violations(Path(weightedshap.__file__).parent) == []


def test_only_the_commands_know_the_papers_experiments():
    package = Path(weightedshap.__file__).parent
    telling = [
        file
        for file in package.rglob("*.py")
        if "weightedshap_paper" in file.read_text(encoding="utf-8")
    ]
    assert telling == [package / "jobs/cli.py"]


def test_an_import_of_a_later_module_is_found(tmp_path):
    assert violations_in(tmp_path, {"cellar.py": "import house.hall", "hall.py": ""}) == [
        "cellar imports hall"
    ]


def test_an_import_inside_a_function_is_found(tmp_path):
    text = "def f():\n    from house.hall import g\n"
    assert violations_in(tmp_path, {"cellar.py": text, "hall.py": ""}) == ["cellar imports hall"]


def test_an_import_from_the_package_is_found(tmp_path):
    assert violations_in(tmp_path, {"cellar.py": "from house import hall", "hall.py": ""}) == [
        "cellar imports hall"
    ]


def test_a_relative_import_is_found(tmp_path):
    files = {"cellar/__init__.py": "", "cellar/wine.py": "from ..hall import g", "hall.py": ""}
    assert violations_in(tmp_path, files) == ["cellar imports hall"]


def test_an_import_of_the_package_itself_is_found(tmp_path):
    files = {
        "__init__.py": "from house.hall import g",
        "cellar.py": "from house import g",
        "hall.py": "",
    }
    assert violations_in(tmp_path, files) == ["cellar imports house"]


def test_a_module_without_a_place_is_found(tmp_path):
    assert violations_in(tmp_path, {"shed.py": ""}) == ["shed has no place in the layers"]


def test_earlier_modules_siblings_and_listed_exceptions_are_allowed(tmp_path):
    files = {
        "cellar/__init__.py": "from house.cellar.wine import red",
        "cellar/wine.py": "from . import barrel",
        "cellar/barrel.py": "import numpy",
        "hall.py": "from house.cellar import wine\nfrom house import roof",
        "roof.py": "import house.hall, house.cellar.wine",
    }
    assert violations_in(tmp_path, files) == []
