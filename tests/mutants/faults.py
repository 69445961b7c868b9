"""Small faults of a source file: every comparison, operation, constant, condition and choice,
changed a little."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitXor: (ast.BitOr,),
    ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
TWINS = [
    ("min", "max"),
    ("any", "all"),
    ("argmin", "argmax"),
    ("minimum", "maximum"),
    ("sum", "mean"),
    ("cumsum", "cumprod"),
]
TWINS += [
    ("zeros", "ones"),
    ("floor", "ceil"),
    ("exp", "expm1"),
    ("log", "log1p"),
    ("hypot", "add"),
    ("abs", "negative"),
]
NAMES = {a: b for pair in TWINS for a, b in (pair, pair[::-1])}
NAMES = {**NAMES, "add": "subtract", "negative": "abs"}


@dataclass(frozen=True)
class Fault:
    """One piece of a file replaced by another."""

    file: str
    line: str  # the text of the line, so that edits elsewhere leave the fault what it is
    change: str  # before → after
    start: int
    stop: int
    new: str

    @property
    def key(self) -> str:
        return f"{self.file} | {self.line} | {self.change}"

    def put_into(self, source: str) -> str:
        return source[: self.start] + self.new + source[self.stop :]


def faults(file: str, source: str) -> list[Fault]:
    """All faults of a file, in order of their places; of two that look alike on one line the
    first."""
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def place(number: int, column: int) -> int:
        return starts[number - 1] + len(lines[number - 1].encode()[:column].decode())

    found: dict[str, Fault] = {}
    for node, new in _changes(ast.parse(source)):
        start = place(node.lineno, node.col_offset)
        stop = place(node.end_lineno, node.end_col_offset)
        before = source[start:stop]
        after = new
        if isinstance(node, ast.expr) and not isinstance(
            node, ast.Constant | ast.Name | ast.Attribute
        ):
            after = f"({new})"  # the unparsed text may bind less tightly than what stood there
        one = Fault(
            file,
            lines[node.lineno - 1].strip(),
            " ".join(f"{before} → {new}".split()),
            start,
            stop,
            after,
        )
        found.setdefault(one.key, one)
    return sorted(found.values(), key=lambda one: one.start)


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """Expressions and the text that may stand in their place."""
    for node in _code(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            for other in OPERATORS.get(type(node.ops[0]), ()):
                yield node, ast.unparse(ast.Compare(node.left, [other()], node.comparators))
        elif isinstance(node, ast.BinOp) and not _is_type(node):
            for other in OPERATORS.get(type(node.op), ()):
                yield node, ast.unparse(ast.BinOp(node.left, other(), node.right))
        elif isinstance(node, ast.BoolOp):
            yield node, ast.unparse(ast.BoolOp(OPERATORS[type(node.op)][0](), node.values))
        elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
            yield node, ast.unparse(node.operand)
        elif isinstance(node, ast.IfExp):
            yield node, ast.unparse(ast.IfExp(node.test, node.orelse, node.body))
        elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield node, str(not node.value)
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):
            yield node, str(node.value + 1)
        elif isinstance(node, ast.Constant) and isinstance(node.value, float):
            yield node, repr(node.value * 2 if node.value else 1.0)
        elif isinstance(node, ast.Attribute) and node.attr in NAMES:
            yield node, ast.unparse(ast.Attribute(node.value, NAMES[node.attr], ast.Load()))
        elif isinstance(node, ast.Name) and node.id in ("min", "max", "any", "all"):
            yield node, NAMES[node.id]


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes that compute: no annotations, decorators, docstrings, nor the words of errors and
    texts."""
    skipped: list[ast.AST | None] = []
    if isinstance(node, ast.FunctionDef):
        skipped = [node.returns, *node.decorator_list]
    elif isinstance(node, ast.arg | ast.AnnAssign):
        skipped = [node.annotation]
    elif isinstance(node, ast.ClassDef):
        skipped = list(node.decorator_list)
    elif isinstance(node, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        if not any(child is one for one in skipped):
            yield from _code(child)


def _is_type(node: ast.BinOp) -> bool:
    """Whether ``a | b`` joins types."""
    names = [side.id for side in (node.left, node.right) if isinstance(side, ast.Name)]
    nothing = any(
        isinstance(side, ast.Constant) and side.value is None for side in (node.left, node.right)
    )
    return isinstance(node.op, ast.BitOr) and (
        nothing or any(name[:1].isupper() and not name.isupper() for name in names)
    )
