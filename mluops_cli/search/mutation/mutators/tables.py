"""What stands for what in mutations: operators, functions, dtypes and the names of axes. Data, no code."""

from __future__ import annotations

import ast
from typing import Final

# Operator -> its text in a source, and the texts that take its place.
COMPARISONS: Final[dict[type[ast.cmpop], tuple[str, tuple[str, ...]]]] = {
    ast.Lt: ("<", ("<=", ">=")),
    ast.LtE: ("<=", ("<", ">")),
    ast.Gt: (">", (">=", "<=")),
    ast.GtE: (">=", (">", "<")),
    ast.Eq: ("==", ("!=",)),
    ast.NotEq: ("!=", ("==",)),
    ast.Is: ("is", ("is not",)),
    ast.IsNot: ("is not", ("is",)),
    ast.In: ("in", ("not in",)),
    ast.NotIn: ("not in", ("in",)),
}
ARITHMETIC: Final[dict[type[ast.operator], tuple[str, tuple[str, ...]]]] = {
    ast.Add: ("+", ("-",)),
    ast.Sub: ("-", ("+",)),
    ast.Mult: ("*", ("+",)),
    ast.Div: ("/", ("*",)),
    ast.FloorDiv: ("//", ("*",)),
    ast.Mod: ("%", ("//",)),
    ast.Pow: ("**", ("*",)),
    ast.LShift: ("<<", (">>",)),
    ast.RShift: (">>", ("<<",)),
    ast.BitAnd: ("&", ("|",)),
    ast.BitOr: ("|", ("&",)),
    ast.BitXor: ("^", ("&",)),
    ast.MatMult: ("@", ("*",)),
}

# Functions by the last part of their name: kind of mutation -> name -> the name that takes its place.
FUNCTIONS: Final[dict[str, dict[str, str]]] = {
    "comparison": {
        "less": "less_equal", "less_equal": "less", "greater": "greater_equal", "greater_equal": "greater",
        "equal": "not_equal", "not_equal": "equal", "any": "all", "all": "any", "logical_and": "logical_or",
        "logical_or": "logical_and", "isnan": "isinf", "isinf": "isnan",
    },
    "arithmetic": {
        "add": "subtract", "subtract": "add", "multiply": "add", "divide": "multiply", "floor_divide": "multiply",
        "maximum": "minimum", "minimum": "maximum", "max": "min", "min": "max", "amax": "amin", "amin": "amax",
        "fmax": "fmin", "fmin": "fmax", "floor": "ceil", "ceil": "floor", "rint": "floor", "trunc": "floor",
        "round": "floor", "argmax": "argmin", "argmin": "argmax", "bitwise_and": "bitwise_or",
        "bitwise_or": "bitwise_and", "left_shift": "right_shift", "right_shift": "left_shift", "sum": "max",
        "mean": "sum",
    },
    "zero_fill": {"zeros": "ones", "zeros_like": "ones_like"},
}  # fmt: skip
SYMMETRIC: Final = frozenset({
    "add", "multiply", "maximum", "minimum", "max", "min", "fmax", "fmin", "equal", "not_equal", "logical_and",
    "logical_or", "bitwise_and", "bitwise_or", "gcd", "lcm", "isclose", "hypot",
})  # fmt: skip
NARROWER: Final = {
    "float64": "float32", "double": "single", "float32": "float16", "single": "half", "longdouble": "float64",
    "int64": "int32", "int32": "int16", "int16": "int8", "intp": "int32", "uint64": "uint32", "uint32": "uint16",
    "uint16": "uint8", "complex128": "complex64",
}  # fmt: skip
PLAIN_NARROWER: Final = {"float": '"float32"', "int": '"int32"'}  # only where a dtype is expected

# Words of names that stand for one axis, and those that stand for the other.
_AXES: Final = (
    ("h", "w"), ("y", "x"), ("H", "W"), ("Y", "X"), ("height", "width"), ("row", "column"), ("rows", "columns"),
    ("row", "col"), ("rows", "cols"), ("top", "left"), ("bottom", "right"), ("OH", "OW"), ("oh", "ow"), ("IH", "IW"),
    ("ih", "iw"), ("Ho", "Wo"), ("Hi", "Wi"),
)  # fmt: skip
OTHER_AXIS: Final[dict[str, tuple[str, ...]]] = {
    word: tuple(other for pair in _AXES if word in pair for other in pair if other != word)
    for word in {word for pair in _AXES for word in pair}
}
AXES_FUNCTIONS: Final = frozenset({"transpose", "permute", "moveaxis", "swapaxes", "reshape", "rollaxis", "view"})
TURNING: Final = frozenset({"transpose", "permute", "swapaxes", "moveaxis"})  # methods: x.transpose(1, 0) -> x
CHECKS: Final = ("check", "require", "assert", "expect", "refuse", "validate", "verify", "ensure")
MESSAGES: Final = frozenset({"print", "warn", "debug", "info", "warning", "error", "exception", "log"})
