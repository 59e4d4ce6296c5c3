"""All mutants of one source file: the walk over its statements, and where each mutation has an effect."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from mluops_cli.search.mutation.mutators.edits import Edit, SourceText
from mluops_cli.search.mutation.mutators.expression_edits import Scope, called_name, expression_edits
from mluops_cli.search.mutation.mutators.statement_edits import statement_edits
from mluops_cli.search.mutation.mutators.tables import MESSAGES

_TYPES: Final = frozenset({
    "tuple", "list", "dict", "set", "frozenset", "type", "Callable", "Iterator", "Iterable", "Sequence", "Mapping",
    "Generator", "Optional", "Union", "Literal", "Annotated", "NDArray", "ndarray", "ClassVar", "Final",
})  # fmt: skip
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_NEVER_RUN: Final = ("TYPE_CHECKING", "__name__")


@dataclass(frozen=True, slots=True)
class Region:
    """The statement that a mutation changes.

    lines: from its first to its last line, of a statement with a body those of its head. function is the qualified name
    of the function that holds it, empty for what runs when the module is loaded; names are then what it assigns, and
    owner the class that it is in.
    """

    lines: range
    function: str = ""
    owner: str = ""
    names: frozenset[str] = frozenset()


@dataclass(frozen=True)
class FunctionLines:
    """A function, the lines of its body, and the names that occur in it."""

    name: str
    lines: range
    names: frozenset[str]


@dataclass
class Parsed:
    """The edits of a source text with their regions, its functions, and the classes with a function."""

    source: SourceText
    edits: list[tuple[Edit, Region]] = field(default_factory=list)
    functions: list[FunctionLines] = field(default_factory=list)
    mentioned: dict[Region, frozenset[str]] = field(default_factory=dict)  # by what runs at loading: names in it


def parse(text: str) -> Parsed:
    """Find every edit of a source text; SyntaxError where it is none."""
    source = SourceText(text)
    parsed = Parsed(source)
    strings = frozenset(
        each.value for each in ast.walk(source.tree) if isinstance(each, ast.Constant) and isinstance(each.value, str)
    )
    _Walk(parsed, strings).body(source.tree.body, _Where())
    return parsed


@dataclass(frozen=True, slots=True)
class _Where:
    """Around a statement: the function, its names, the class."""

    function: str = ""
    owner: str = ""
    prefix: str = ""
    names: frozenset[str] = frozenset()


@dataclass
class _Walk:
    parsed: Parsed
    strings: frozenset[str]

    def body(self, statements: Sequence[ast.stmt], where: _Where) -> None:
        for statement in statements:
            if not _is_idle(statement):
                self.statement(statement, where)

    def statement(self, node: ast.stmt, where: _Where) -> None:
        region = _region(node, where)
        scope = Scope(self.parsed.source, where.names, self.strings)
        if not where.function:
            self.parsed.mentioned[region] = _names_of(_head(node))
        self.parsed.edits += [(edit, region) for edit in statement_edits(node, scope)]
        for expression in _head(node):
            self.parsed.edits += [(edit, region) for edit in _edits_below(expression, scope)]
        if isinstance(node, _Function):
            name = f"{where.prefix}{node.name}"
            last = node.end_lineno or node.lineno
            found = FunctionLines(name, range(node.body[0].lineno, last + 1), _names_of([node]))
            self.parsed.functions.append(found)
            self.body(node.body, _Where(name, where.owner, f"{name}.", found.names))
        elif isinstance(node, ast.ClassDef):
            name = f"{where.prefix}{node.name}"
            self.body(node.body, _Where(where.function, name, f"{name}.", where.names))
        else:
            for inner in _bodies(node):
                self.body(inner, where)


def _is_idle(node: ast.stmt) -> bool:
    """Whether a statement does nothing that a case could show: imports, texts, messages, what only other tools read."""
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.Pass, ast.Raise)):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and called_name(node.value) in MESSAGES:
        return True
    if isinstance(node, ast.If):
        return any(isinstance(each, ast.Name) and each.id in _NEVER_RUN for each in ast.walk(node.test))
    return isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id.startswith("__") for target in node.targets
    )


def _region(node: ast.stmt, where: _Where) -> Region:
    inner = next(iter(_bodies(node)), [])
    last = max(node.lineno, inner[0].lineno - 1) if inner else node.end_lineno or node.lineno
    names = frozenset() if where.function else _assigned(node)
    return Region(range(node.lineno, last + 1), where.function, where.owner, names)


def _assigned(node: ast.stmt) -> frozenset[str]:
    """The names that a statement outside of functions gives a value; a class stands for itself."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return frozenset({node.name})
    return frozenset(
        each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    )


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The lists of statements in a statement, those of its handlers and cases included."""
    for _, value in ast.iter_fields(node):
        if not isinstance(value, list) or not value:
            continue
        if isinstance(value[0], ast.stmt):
            yield value
        elif isinstance(value[0], (ast.ExceptHandler, ast.match_case)):
            for each in value:
                yield each.body


def _head(node: ast.stmt) -> list[ast.expr]:
    """The expressions of a statement outside of its bodies, without annotations, decorators and base classes."""
    if isinstance(node, _Function):
        return [each for each in (*node.args.defaults, *node.args.kw_defaults) if each is not None]
    if isinstance(node, (ast.ClassDef, ast.Assert)):
        return [node.test] if isinstance(node, ast.Assert) else []
    found: list[ast.expr] = []
    for name, value in ast.iter_fields(node):
        if name == "annotation":
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.expr):
                found.append(each)
            elif isinstance(each, ast.withitem):
                found.append(each.context_expr)
            elif isinstance(each, ast.match_case) and each.guard is not None:
                found.append(each.guard)
    return found


def _edits_below(node: ast.AST, scope: Scope) -> Iterator[Edit]:
    """The edits of an expression and of all its parts, texts and types left out."""
    if isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.Call) and called_name(node) in MESSAGES:
        return
    if isinstance(node, ast.Subscript) and _is_type(node.value):
        return
    if isinstance(node, ast.expr):
        yield from expression_edits(node, scope)
    for child in ast.iter_child_nodes(node):
        yield from _edits_below(child, scope)


def _is_type(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in _TYPES


def _names_of(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """All names and attributes in the nodes, annotations included: a few too many do no harm."""
    found: set[str] = set()
    for node in nodes:
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                found.add(each.id)
            elif isinstance(each, ast.Attribute):
                found.add(each.attr)
            elif isinstance(each, ast.arg):
                found.add(each.arg)
    return frozenset(found)
