"""Mutations of one statement: it is left out, or its condition is changed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, Final

from mluops_cli.search.mutation.mutators.edits import Edit
from mluops_cli.search.mutation.mutators.expression_edits import Scope, called_name, negation
from mluops_cli.search.mutation.mutators.tables import ARITHMETIC, CHECKS

_LEAVING: Final = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def statement_edits(node: ast.stmt, scope: Scope) -> Iterator[Edit]:
    """The edits of a statement itself, its parts not included."""
    for kind, make in _BY_TYPE:
        if isinstance(node, kind):
            yield from make(node, scope)


def _call(node: ast.Expr, scope: Scope) -> Iterator[Edit]:
    if not isinstance(node.value, ast.Call):
        return
    name = called_name(node.value)
    if any(word in name for word in CHECKS):
        kind = "removed_check"
    else:
        kind = "zero_fill" if name == "fill" else "removed_statement"
    yield scope.replaced(node, "pass", kind)


def _assignment(node: ast.Assign, scope: Scope) -> Iterator[Edit]:
    """Leave out what is stored in an array; a name that is never assigned would raise at once."""
    if all(isinstance(target, (ast.Subscript, ast.Attribute)) for target in node.targets):
        yield scope.replaced(node, "pass", "zero_fill" if _is_fill(node) else "removed_statement")


def _is_fill(node: ast.Assign) -> bool:
    value = node.value.operand if isinstance(node.value, ast.UnaryOp) else node.value
    whole = any(isinstance(target, ast.Subscript) for target in node.targets)
    return whole and isinstance(value, ast.Constant) and isinstance(value.value, (int, float))


def _update(node: ast.AugAssign, scope: Scope) -> Iterator[Edit]:
    old, others = ARITHMETIC[type(node.op)]
    start, stop = scope.source.stop(node.target), scope.source.start(node.value)
    for new in others:
        yield from scope.operator(start, stop, f"{old}=", f"{new}=", "arithmetic")
    yield scope.replaced(node, "pass", "removed_statement")


def _jump(node: ast.stmt, scope: Scope) -> Iterator[Edit]:
    yield scope.replaced(node, "pass", "removed_statement")


def _condition(node: ast.If, scope: Scope) -> Iterator[Edit]:
    yield from negation(node.test, scope)
    if isinstance(node.body[-1], _LEAVING) and not node.orelse:
        yield scope.replaced(node, "pass", "removed_check")


def _while(node: ast.While, scope: Scope) -> Iterator[Edit]:
    yield from negation(node.test, scope)


def _assert(node: ast.Assert, scope: Scope) -> Iterator[Edit]:
    yield scope.replaced(node, "pass", "removed_check")


_Make = Callable[[Any, Scope], Iterator[Edit]]
_BY_TYPE: Final[tuple[tuple[Any, _Make], ...]] = (
    (ast.Expr, _call),
    (ast.Assign, _assignment),
    (ast.AugAssign, _update),
    ((ast.Continue, ast.Break), _jump),
    (ast.If, _condition),
    (ast.While, _while),
    (ast.Assert, _assert),
)
