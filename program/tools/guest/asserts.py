"""Tests taken apart, so that each assertion counts and a failure says what was expected and what came."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import CodeType
from typing import Any

CHECK = "check"
"""A test that defines this function of one argument has its assertions there: HumanEval's form."""

FAILED = "_coda_failed"
"""The name under which tests find `Failed`."""

_LEFT, _RIGHT = "_coda_left", "_coda_right"
_LITERAL = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp)


class Failed(AssertionError):
    """An assertion does not hold.

    Attributes:
        source: The assertion.
        equality: Whether it says that two values are equal.
        sides: What stood on its two sides, where it was a comparison; what was expected comes second.
        note: The message that it has.
    """

    def __init__(self, source: str, equality: bool, sides: tuple[Any, Any] | None, note: Any) -> None:
        super().__init__(source if note is None else note)
        self.source = source
        self.equality = equality
        self.sides = sides
        self.note = note


@dataclass(frozen=True)
class Unit:
    """One step of a test.

    Attributes:
        code: What to execute.
        source: Its text, to show.
        counts: Whether it is a test of its own; else it prepares the next ones.
    """

    code: CodeType
    source: str
    counts: bool


@dataclass(frozen=True)
class Script:
    """A test, ready to run.

    Attributes:
        units: Its steps.
        used: Names that it reads.
        called: Those of them that it calls.
        attributed: Those of which it reads attributes.
        defined: Names that it defines itself.
    """

    units: tuple[Unit, ...]
    used: frozenset[str]
    called: frozenset[str]
    attributed: frozenset[str]
    defined: frozenset[str]


def take_apart(source: str, label: str, argument: str | None) -> Script:
    """Compile a test.

    Args:
        source: Python statements.
        label: What to call it in a traceback.
        argument: The expression that a `CHECK` function is called with.

    Raises:
        SyntaxError: It is not Python (or a `ValueError`: it holds a null character).
    """
    tree = ast.parse(source)
    tree.body = _with_check(tree.body, argument)
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    used = frozenset(node.id for node in names if isinstance(node.ctx, ast.Load))
    called = _names_in([node.func for node in ast.walk(tree) if isinstance(node, ast.Call)])
    attributed = _names_in([node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)])
    defined = frozenset(node.id for node in names if not isinstance(node.ctx, ast.Load)) | _bound(tree)
    if any(_asserts(node) for node in tree.body):
        units = tuple(_unit([node], label, counts=_asserts(node)) for node in tree.body)
    else:
        units = (_unit(tree.body, label, counts=not all(map(_defines, tree.body))),)
    return Script(units, used, called, attributed, defined)


def _asserts(node: ast.stmt) -> bool:
    """Whether executing this statement asserts something; a definition alone does not."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    return any(isinstance(inner, ast.Assert) for inner in ast.walk(node))


def _defines(node: ast.stmt) -> bool:
    """Whether this statement only defines or imports something: then it prepares tests, and is none."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom)


def _with_check(body: list[ast.stmt], argument: str | None) -> list[ast.stmt]:
    """Put the body of a `CHECK` function in its place, or at least call the function."""
    found = next((node for node in body if isinstance(node, ast.FunctionDef) and node.name == CHECK), None)
    calls = [node for node in body if isinstance(node, ast.Expr) and _calls_check(node.value)]
    if found is None or (argument is None and not calls):
        return body
    if len(found.args.args) != 1 or found.args.vararg or found.args.kwonlyargs or found.decorator_list:
        return body
    given = calls[0].value.args[0] if calls else ast.Name(argument or "", ast.Load())  # type: ignore[attr-defined]
    rest = [node for node in body if node is not found and node not in calls]
    if len(calls) > 1 or any(isinstance(node, ast.Return | ast.Yield | ast.Nonlocal) for node in ast.walk(found)):
        call = ast.Expr(ast.Call(ast.Name(CHECK, ast.Load()), [given], []))
        return [*rest, found, *(calls or [ast.fix_missing_locations(ast.copy_location(call, found))])]
    bind = ast.Assign([ast.Name(found.args.args[0].arg, ast.Store())], given)
    return [*rest, ast.fix_missing_locations(ast.copy_location(bind, found)), *found.body]


def _calls_check(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == CHECK and len(node.args) == 1
    )


def _names_in(nodes: list[ast.expr]) -> frozenset[str]:
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name))


def _bound(tree: ast.Module) -> frozenset[str]:
    """Names that definitions, imports, arguments and exception handlers bind."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.split(".")[0])
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
    return frozenset(found)


def _unit(body: list[ast.stmt], label: str, *, counts: bool) -> Unit:
    source = "\n".join(ast.unparse(statement) for statement in body)
    tree = ast.Module([_Rewriter().visit(statement) for statement in body], [])
    return Unit(compile(ast.fix_missing_locations(tree), label, "exec"), source, counts)


class _Rewriter(ast.NodeTransformer):
    """Makes assertions remember what they compared."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Turn ``assert left == right`` into statements that raise `Failed` with both values."""
        source, note = ast.Constant(ast.unparse(node.test)), node.msg or ast.Constant(None)
        if not (isinstance(node.test, ast.Compare) and len(node.test.ops) == 1):
            arguments = [source, ast.Constant(False), ast.Constant(None), note]
            return ast.copy_location(self._raise_unless(node.test, arguments), node)
        left, right = ast.Name(_LEFT, ast.Load()), ast.Name(_RIGHT, ast.Load())
        swapped = isinstance(node.test.left, _LITERAL) and not isinstance(node.test.comparators[0], _LITERAL)
        sides = ast.Tuple([right, left] if swapped else [left, right], ast.Load())
        arguments = [source, ast.Constant(isinstance(node.test.ops[0], ast.Eq)), sides, note]
        statements: list[ast.stmt] = [
            ast.Assign([ast.Name(_LEFT, ast.Store())], node.test.left),
            ast.Assign([ast.Name(_RIGHT, ast.Store())], node.test.comparators[0]),
            self._raise_unless(ast.Compare(left, node.test.ops, [right]), arguments),
        ]
        return ast.copy_location(ast.If(ast.Constant(True), statements, []), node)

    @staticmethod
    def _raise_unless(test: ast.expr, arguments: list[ast.expr]) -> ast.stmt:
        failure = ast.Raise(ast.Call(ast.Name(FAILED, ast.Load()), arguments, []), None)
        return ast.If(test, [ast.Pass()], [failure])
