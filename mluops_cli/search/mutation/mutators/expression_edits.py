"""Mutations of one expression; each returns the edits that the expression allows."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from mluops_cli.search.mutation.mutators.edits import Edit, SourceText
from mluops_cli.search.mutation.mutators.tables import (
    ARITHMETIC,
    AXES_FUNCTIONS,
    COMPARISONS,
    FUNCTIONS,
    NARROWER,
    OTHER_AXIS,
    PLAIN_NARROWER,
    SYMMETRIC,
    TURNING,
)


@dataclass(frozen=True, slots=True)
class Scope:
    """What is known around a node: the text, the names that its function uses, the strings of the module."""

    source: SourceText
    names: frozenset[str] = field(default=frozenset())
    strings: frozenset[str] = field(default=frozenset())

    def replaced(self, node: ast.expr | ast.stmt, text: str, kind: str) -> Edit:
        """The edit that puts a text in the place of a node."""
        return Edit(self.source.start(node), self.source.stop(node), text, kind)

    def swapped(self, one: ast.expr, other: ast.expr, kind: str) -> Edit:
        """The edit that swaps two nodes, the first of which comes first."""
        source = self.source
        middle = source.between(source.stop(one), source.start(other))
        text = source.segment(other) + middle + source.segment(one)
        return Edit(source.start(one), source.stop(other), text, kind)

    def operator(self, start: int, stop: int, old: str, new: str, kind: str) -> Iterator[Edit]:
        """The edit that replaces an operator between two operands; nothing where it isn't found there."""
        gap = self.source.data[start:stop]
        pattern = rb"\s+".join(map(re.escape, old.encode().split()))
        word = rb"\b" if old[0].isalpha() else b""
        if match := re.search(word + pattern + word, gap):
            yield Edit(start + match.start(), start + match.end(), new, kind)


def expression_edits(node: ast.expr, scope: Scope) -> Iterator[Edit]:
    """The edits of an expression itself, its parts not included."""
    for kind, make in _BY_TYPE:
        if isinstance(node, kind):
            yield from make(node, scope)


def _comparison(node: ast.Compare, scope: Scope) -> Iterator[Edit]:
    left = node.left
    for operator, right in zip(node.ops, node.comparators, strict=True):
        old, others = COMPARISONS[type(operator)]
        for new in others:
            yield from scope.operator(scope.source.stop(left), scope.source.start(right), old, new, "comparison")
        left = right


def _arithmetic(node: ast.BinOp, scope: Scope) -> Iterator[Edit]:
    old, others = ARITHMETIC[type(node.op)]
    if _is_text(node.left) or _is_text(node.right):
        return
    for new in others:
        start, stop = scope.source.stop(node.left), scope.source.start(node.right)
        yield from scope.operator(start, stop, old, new, "arithmetic")


def _is_text(node: ast.expr) -> bool:
    """Whether an operand is a text or a list, for which arithmetic means something else."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (str, bytes))
    return isinstance(node, (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp))


def _both(node: ast.BoolOp, scope: Scope) -> Iterator[Edit]:
    """Swap `and` and `or`; leave out one operand."""
    source = scope.source
    old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    for left, right in pairwise(node.values):
        yield from scope.operator(source.stop(left), source.start(right), old, new, "comparison")
    for index, value in enumerate(node.values):
        rest = [source.segment(each) for each in node.values if each is not value]
        others = f" {old} ".join(f"({text})" for text in rest) if len(rest) > 1 else rest[0]
        if index or len(rest) == 1 or not isinstance(value, ast.NamedExpr):
            yield scope.replaced(node, others, "removed_check")


def _sign(node: ast.UnaryOp, scope: Scope) -> Iterator[Edit]:
    if isinstance(node.op, ast.Not):
        yield scope.replaced(node, f"bool({scope.source.segment(node.operand)})", "condition")
    elif isinstance(node.op, (ast.USub, ast.Invert)):
        yield scope.replaced(node, f"+{scope.source.segment(node.operand)}", "arithmetic")


def _number(node: ast.Constant, scope: Scope) -> Iterator[Edit]:
    value = node.value
    if type(value) is int:
        yield scope.replaced(node, str(value + 1), "off_by_one")
        yield scope.replaced(node, str(value - 1) if value else "-1", "off_by_one")
    elif type(value) is float:
        yield scope.replaced(node, repr(value * 2 if value else 1.0), "arithmetic")


def _text(node: ast.Constant, scope: Scope) -> Iterator[Edit]:
    if not isinstance(node.value, str):
        return
    if node.value in NARROWER:
        yield scope.replaced(node, repr(NARROWER[node.value]), "narrowed_dtype")
    for other in _siblings(node.value, scope.strings):
        yield scope.replaced(node, repr(other), "transposed_axes")


def _name(node: ast.Name, scope: Scope) -> Iterator[Edit]:
    if not isinstance(node.ctx, ast.Load):
        return
    if node.id in NARROWER:
        yield scope.replaced(node, NARROWER[node.id], "narrowed_dtype")
    for other in _siblings(node.id, scope.names):
        yield scope.replaced(node, other, "transposed_axes")


def _attribute(node: ast.Attribute, scope: Scope) -> Iterator[Edit]:
    if not isinstance(node.ctx, ast.Load):
        return
    value = scope.source.segment(node.value)
    if node.attr in NARROWER:
        yield scope.replaced(node, f"{value}.{NARROWER[node.attr]}", "narrowed_dtype")
    if node.attr == "T":
        yield scope.replaced(node, value, "transposed_axes")
    for other in _siblings(node.attr, scope.names):
        yield scope.replaced(node, f"{value}.{other}", "transposed_axes")


def _siblings(name: str, known: frozenset[str]) -> Iterator[str]:
    """The known names that differ in one word, which stands for another axis: pad_h and pad_w."""
    words = name.split("_")
    for index, word in enumerate(words):
        for other in OTHER_AXIS.get(word, ()):
            changed = "_".join((*words[:index], other, *words[index + 1 :]))
            if changed in known:
                yield changed


def _tuple(node: ast.Tuple, scope: Scope) -> Iterator[Edit]:
    yield from _swaps(node.elts, scope, "transposed_axes")


def _call(node: ast.Call, scope: Scope) -> Iterator[Edit]:
    name = called_name(node)
    for kind, others in FUNCTIONS.items():
        if name in others:
            function = scope.source.segment(node.func)
            yield scope.replaced(node.func, f"{function.removesuffix(name)}{others[name]}", kind)
    kind = "transposed_axes" if name in AXES_FUNCTIONS else "swapped_arguments"
    if name not in SYMMETRIC:
        yield from _swaps(node.args, scope, kind)
    if isinstance(node.func, ast.Attribute) and name in TURNING:
        yield scope.replaced(node, scope.source.segment(node.func.value), "transposed_axes")
    if name == "range":
        yield from _ends(node.args, scope)
    if name == "slice" and len(node.args) > 1:
        yield from _ends(node.args, scope)
    dtypes = [each.value for each in node.keywords if each.arg == "dtype"] + (node.args[:1] if name == "astype" else [])
    for each in dtypes:
        if isinstance(each, ast.Name) and each.id in PLAIN_NARROWER:
            yield scope.replaced(each, PLAIN_NARROWER[each.id], "narrowed_dtype")


def called_name(node: ast.Call) -> str:
    """The last part of the name of what is called; empty where it has none."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _ends(arguments: Sequence[ast.expr], scope: Scope) -> Iterator[Edit]:
    """range and slice one step shorter, at each end; ends that are numbers are mutated by themselves."""
    if not arguments or any(isinstance(each, ast.Starred) for each in arguments):
        return
    if len(arguments) == 1:
        start = scope.source.start(arguments[0])
        yield Edit(start, start, "1, ", "off_by_one")
        yield from _shorter(None, arguments[0], scope)
    else:
        yield from _shorter(arguments[0], arguments[1], scope)


def _slice(node: ast.Slice, scope: Scope) -> Iterator[Edit]:
    yield from _shorter(node.lower, node.upper, scope)


def _shorter(lower: ast.expr | None, upper: ast.expr | None, scope: Scope) -> Iterator[Edit]:
    for end, step in ((lower, "+ 1"), (upper, "- 1")):
        if end is not None and not isinstance(end, ast.Constant):
            yield scope.replaced(end, f"({scope.source.segment(end)}) {step}", "off_by_one")


def _choice(node: ast.IfExp, scope: Scope) -> Iterator[Edit]:
    yield from negation(node.test, scope)


def _comprehension(node: Any, scope: Scope) -> Iterator[Edit]:
    for generator in node.generators:
        for condition in generator.ifs:
            yield from negation(condition, scope)


def negation(test: ast.expr, scope: Scope) -> Iterator[Edit]:
    """The test negated; a single comparison is negated by another mutation."""
    if isinstance(test, (ast.Constant, ast.NamedExpr)) or (isinstance(test, ast.Compare) and len(test.ops) == 1):
        return
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return
    yield scope.replaced(test, f"(not ({scope.source.segment(test)}))", "condition")


def _swaps(nodes: Sequence[ast.expr], scope: Scope, kind: str) -> Iterator[Edit]:
    """Neighbours of one kind swapped: two names, two numbers, two calls of one function."""
    for one, other in pairwise(nodes):
        alike = _likeness(one) == _likeness(other) is not None
        if alike and scope.source.segment(one) != scope.source.segment(other):
            yield scope.swapped(one, other, kind)


def _likeness(node: ast.expr) -> object:
    """What two arguments of one kind have in common; None where a swap means nothing."""
    if isinstance(node, ast.Constant):
        return type(node.value).__name__
    if isinstance(node, ast.Call):
        return called_name(node) or None
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.Slice)):
        return type(node).__name__
    return None


_Make = Callable[[Any, Scope], Iterator[Edit]]
_BY_TYPE: Final[tuple[tuple[Any, _Make], ...]] = (
    (ast.Compare, _comparison),
    (ast.BinOp, _arithmetic),
    (ast.BoolOp, _both),
    (ast.UnaryOp, _sign),
    (ast.Constant, _number),
    (ast.Constant, _text),
    (ast.Name, _name),
    (ast.Attribute, _attribute),
    (ast.Tuple, _tuple),
    (ast.Call, _call),
    (ast.Slice, _slice),
    (ast.IfExp, _choice),
    ((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), _comprehension),
)
