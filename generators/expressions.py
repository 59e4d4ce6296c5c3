"""Integer expressions over the sizes and parameters of an operator, such as `h_mask*w_mask` or `N % B == 0`."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any, Final

_ALLOWED: Final = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Name, ast.Load, ast.Constant,
    ast.Subscript, ast.Call, ast.List, ast.Tuple, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Pow, ast.USub,
    ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.And, ast.Or, ast.Not,
)  # fmt: skip
_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {"min": min, "max": max, "abs": abs, "prod": math.prod}
GLOBALS: Final[dict[str, Any]] = {"__builtins__": {}, "len": len, **_FUNCTIONS}


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression: its text, the names it reads and its code."""

    text: str
    names: frozenset[str]
    code: CodeType

    def __call__(self, env: Mapping[str, Any]) -> Any:
        """The value under env, in Python's unbounded integers; NameError where a name is unbound."""
        return eval(self.code, GLOBALS, env)


@lru_cache(maxsize=4096)
def parse_expression(text: str) -> Expression:
    """Parse an expression of + - * // % **, comparisons, and / or / not, subscripts, min, max, abs, prod.

    Raises ValueError naming what is not allowed.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(f"{text!r} is not an expression: {error.msg}") from None
    names = set()
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise ValueError(f"{text!r}: {type(node).__name__} is not allowed in an expression")
        if isinstance(node, ast.Name):
            names.add(node.id)
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS):
            raise ValueError(f"{text!r}: only {', '.join(_FUNCTIONS)} may be called")
    return Expression(text.strip(), frozenset(names - _FUNCTIONS.keys()), compile(tree, "<expression>", "eval"))
