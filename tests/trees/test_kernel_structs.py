"""Loops bind the fields of their struct arguments to names before they begin.

A field that is read within a loop is loaded anew at every step, which can make it four times
slower, and nothing else would tell.
"""

import ast
from pathlib import Path

import pytest

import weightedshap

PACKAGE = Path(weightedshap.__file__).parent
MODULES = [
    *sorted((PACKAGE / "trees" / "kernels").glob("*.py")),
    PACKAGE / "games" / "surrogates" / "imputation_kernels.py",
    PACKAGE / "games" / "surrogates" / "network" / "kernels.py",
]
DECORATORS = {"compiled", "inlined"}
# What arrays have, and no struct may.
OF_ARRAYS = {"shape", "dtype", "size", "ndim"}

PLANTED = """
@compiled
def add_predictions(x_left, nodes, leaf_value, out):
    roots = nodes.roots
    for row in range(x_left.shape[0]):
        for root in roots:
            node = root
            while node < nodes.left.shape[0]:
                node = nodes.left[node] if x_left[row, node] else nodes.right[node]
            out[row] += leaf_value[node]

@compiled(fastmath={"contract"})
def total(lists, out):
    for leaf in range(lists.first[0], lists.first[1]):
        out[0] += value_of(lists.value, leaf)
    for output in lists.value:
        out[1] += output

def build(lists):
    for leaf in range(3):
        lists.value[leaf] = 0
"""


def is_compiled(function):
    decorators = (
        decorator.func if isinstance(decorator, ast.Call) else decorator
        for decorator in function.decorator_list
    )
    return any(isinstance(one, ast.Name) and one.id in DECORATORS for one in decorators)


def kernels(source):
    """Return the compiled functions of a module."""
    functions = [one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.FunctionDef)]
    return [function for function in functions if is_compiled(function)]


def repeated(loop):
    """Return what a loop does at every step: what it runs over is looked up once."""
    return [loop.test, *loop.body] if isinstance(loop, ast.While) else loop.body


def fields_read_in_loops(source):
    """Return (function, line, field) wherever a compiled loop reads a field of an argument."""
    reads = set()
    for function in kernels(source):
        arguments = {argument.arg for argument in function.args.args}
        loops = (one for one in ast.walk(function) if isinstance(one, ast.For | ast.While))
        for step in (step for loop in loops for step in repeated(loop)):
            for node in ast.walk(step):
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.value, ast.Name)
                    and node.value.id in arguments
                    and node.attr not in OF_ARRAYS
                ):
                    reads.add((function.name, node.lineno, f"{node.value.id}.{node.attr}"))
    return sorted(reads)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_loop_reads_fields_of_structs(module):
    assert fields_read_in_loops(module.read_text("utf-8")) == []


def test_all_kernels_are_looked_at():
    names = [kernel.name for module in MODULES for kernel in kernels(module.read_text("utf-8"))]
    assert len(names) > 40
    assert {"add_predictions", "fill_leaves", "impute_along", "last_layer"} <= set(names)


def test_fields_that_are_read_in_loops_are_found():
    assert fields_read_in_loops(PLANTED) == [
        ("add_predictions", 8, "nodes.left"),
        ("add_predictions", 9, "nodes.left"),
        ("add_predictions", 9, "nodes.right"),
        ("total", 15, "lists.value"),
    ]


def test_no_struct_has_a_field_named_like_an_attribute_of_arrays():
    for module in MODULES:
        for struct in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(struct, ast.ClassDef):
                fields = {one.target.id for one in struct.body if isinstance(one, ast.AnnAssign)}
                assert not fields & OF_ARRAYS, struct.name
