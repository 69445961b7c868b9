"""How the code is made: attributes that are guessed at, types that are not named, and functions that are long."""

import ast
from pathlib import Path

import weightedshap

FILES = sorted(Path(weightedshap.__file__).parent.rglob("*.py"))
TREES = {file: ast.parse(file.read_text(encoding="utf-8")) for file in FILES}
LINES = sum(file.read_text(encoding="utf-8").count("\n") for file in FILES)
KERNELS = "kernels.py"  # compiled by numba, which infers the types


def nodes(kind):
    return [node for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, kind)]


def functions():
    return nodes((ast.FunctionDef, ast.AsyncFunctionDef))


def annotations():
    """Annotations of arguments, results and fields."""
    for node in nodes((ast.FunctionDef, ast.AsyncFunctionDef)):
        yield node.returns
        yield from (argument.annotation for argument in ast.walk(node.args) if isinstance(argument, ast.arg))
    yield from (node.annotation for node in nodes(ast.AnnAssign))


def code_lines(function, source):
    """Lines of a function that hold code: no docstring, no comment, no blank."""
    start = function.lineno
    if isinstance(function.body[0], ast.Expr) and isinstance(function.body[0].value, ast.Constant):
        skipped = range(function.body[0].lineno, function.body[0].end_lineno + 1)
    else:
        skipped = ()
    lines = {n: source[n - 1].strip() for n in range(start, function.end_lineno + 1) if n not in skipped}
    return sum(bool(line) and not line.startswith("#") for line in lines.values())


def lengths():
    found = []
    for file, tree in TREES.items():
        source = file.read_text(encoding="utf-8").splitlines()
        made = (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
        found += [code_lines(node, source) for node in made]
    return sorted(found)


def test_attributes_are_seldom_guessed_at():
    guesses = [node for node in nodes(ast.Call) if getattr(node.func, "id", "") in ("getattr", "hasattr")]
    assert len(guesses) <= 2 * LINES / 1000


def test_types_are_named():
    given = [annotation for annotation in annotations() if annotation is not None]
    bare = [annotation for annotation in given if isinstance(annotation, ast.Name) and annotation.id == "Any"]
    assert len(bare) <= 0.05 * len(given)


def test_functions_are_short():
    found = lengths()
    assert found[len(found) // 2] <= 5
    assert found[int(0.9 * len(found))] <= 16
    assert found[-1] <= 57


def test_the_library_stays_small():
    assert LINES <= 17_300  # to come down to 12,500
