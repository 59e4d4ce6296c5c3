"""Integer expressions over the sizes and parameters of an operator, such as `h_mask*w_mask` or `N % B == 0`."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any, Final

_ALLOWED: Final = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Name, ast.Load, ast.Constant,
    ast.Subscript, ast.Call, ast.List, ast.Tuple, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.Pow, ast.USub,
    ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.And, ast.Or, ast.Not,
)  # fmt: skip
# The exceptions of an expression that has no value.
UNCOMPUTABLE: Final = (NameError, IndexError, TypeError, ValueError, ZeroDivisionError, OverflowError)
_LENGTH: Final = 1000  # characters of an expression: it bounds the parser and the value
_BITS: Final = 4096  # of a power or a product


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * exponent > _BITS:
        raise OverflowError(f"a power has more than {_BITS} bits")
    return base**exponent


def _product(left: Any, right: Any) -> Any:
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() + right.bit_length() > _BITS:
            raise OverflowError(f"a product has more than {_BITS} bits")
    elif isinstance(left, (list, tuple)) or isinstance(right, (list, tuple)):
        raise TypeError("a list is multiplied")
    return left * right


def _prod(factors: Iterable[Any]) -> Any:
    product = math.prod(factors)
    if isinstance(product, int) and product.bit_length() > _BITS:
        raise OverflowError(f"a product has more than {_BITS} bits")
    return product


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {"min": min, "max": max, "abs": abs, "prod": _prod}
_BOUNDED: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {ast.Pow: _power, ast.Mult: _product}
GLOBALS: Final[dict[str, Any]] = {
    "__builtins__": {}, "len": len, **_FUNCTIONS, **{function.__name__: function for function in _BOUNDED.values()}
}  # fmt: skip


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

    Raises ValueError naming what is not allowed. Powers and products beyond 4096 bits are an OverflowError of the call.
    """
    if len(text) > _LENGTH:
        raise ValueError(f"an expression of {len(text)} characters, expected at most {_LENGTH}")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        names = frozenset(_names(tree, text))
        code = compile(ast.fix_missing_locations(_Bounding().visit(tree)), "<expression>", "eval")
    except SyntaxError as error:
        raise ValueError(f"{text!r} is not an expression: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise ValueError("an expression that is nested too deep") from None
    return Expression(text.strip(), names, code)


def _names(tree: ast.AST, text: str) -> Iterator[str]:
    """The names that an expression reads; ValueError where it holds what is not allowed."""
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise ValueError(f"{text!r}: {type(node).__name__} is not allowed in an expression")
        if isinstance(node, ast.Constant) and not isinstance(node.value, (int, float)):
            raise ValueError(f"{text!r}: {node.value!r} is no number")
        if isinstance(node, ast.Constant) and node.value == math.inf:
            raise ValueError(f"{text!r}: a number is beyond the largest one")
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS):
            raise ValueError(f"{text!r}: only {', '.join(_FUNCTIONS)} may be called")
        if isinstance(node, ast.Name) and node.id not in _FUNCTIONS:
            yield node.id


class _Bounding(ast.NodeTransformer):
    """Puts the functions of _BOUNDED in place of their operators."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        function = _BOUNDED.get(type(node.op))
        if function is None:
            return node
        return ast.Call(ast.Name(function.__name__, ast.Load()), [node.left, node.right], [])
