"""The parameters of operators and the rules between them, as data: kinds, and the form that a value must have."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from generators.expressions import UNCOMPUTABLE, parse_expression
from schemas.status import BAD_PARAM

Params = Mapping[str, Any]  # parameter name -> int, float, bool, text or a tuple of one of them
Kind = Literal["int", "float", "bool", "string"]  # of a parameter's values
Env = dict[str, Any]  # sizes (int) and parameters (as in Params) by name

# Where a rule stands: "design" or "design SECTION", the design document, or the contract's source where there is none;
# "vendor", which the vendor's library checks; "ours", nobody else's.
DESIGN: Final = "design"
VENDOR: Final = "vendor"
OURS: Final = "ours"

# Kind of a parameter -> the type of its values; what a message calls one, and several.
TYPES: Final[Mapping[str, type]] = {"int": int, "float": float, "bool": bool, "string": str}
_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "int": ("one number", "integers"),
    "float": ("one number", "numbers"),
    "bool": ("true or false", "of true and false"),
    "string": ("a text", "texts"),
}
_LONGEST: Final = 1 << 16  # values of a list that no input gives


def c_float(value: float) -> float:
    """The C float that is nearest to a number: what a case file and a call hold."""
    return ctypes.c_float(value).value


def as_tuples(params: Params) -> Env:
    """Parameters as contracts have them: the lists of calls and files become tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in params.items()}


def as_lists(params: Params) -> Env:
    """Parameters as calls and files have them: tuples become lists."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in params.items()}


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: a value of its kind, or a list of `length` of them.

    kind is int; float, a C float (a number is rounded to one); bool; or string. length is a number, or an
    expression over sizes and parameters, such as "FD*FH*FW". minimum and maximum, of numbers, are inclusive;
    choices names the legal values: word -> value. default is a value or, of int, also an expression; without one
    the parameter must be given, or be bound by a shape. computed_from names an input from whose values the list is
    computed where a spec leaves it out (Operator.computed_parameter), such as how many of its rows count. statuses
    are what breaking the range is answered with; empty: such a case is refused when a spec is expanded. origin says
    where the range stands, as in Rule. output = (tensor, dim): the count of an output's rows, a size that depends
    on the data. It is in the file for its readers; implementations don't get it, and return it in Outcome.scalars.
    text is for the operator's page.
    """

    name: str
    minimum: float | None = None
    maximum: float | None = None
    choices: Mapping[str, Any] | None = None
    length: int | str | None = None
    default: Any = None
    statuses: tuple[str, ...] = (BAD_PARAM,)
    origin: str = DESIGN
    output: tuple[str, int] | None = None
    text: str = ""
    kind: Kind = "int"
    computed_from: str = ""

    @property
    def follows(self) -> bool:
        """Whether the default is an expression over others."""
        return self.kind == "int" and isinstance(self.default, str)

    def length_in(self, env: Env) -> int | None:
        """How many values it has with these sizes and parameters, None where it is no list; errors of expressions."""
        length = self.length
        return parse_expression(length)(env) if isinstance(length, str) else length

    def smallest_list(self, env: Env) -> tuple[Any, ...]:
        """As many of its smallest values as it has.

        Empty where the length can't be computed, as of an invalid case, or is that of a call with a large tensor.
        """
        try:
            length = self.length_in(env) or 0
        except UNCOMPUTABLE:
            return ()
        if length > _LONGEST:
            return ()
        return (min(self.choices.values()) if self.choices else TYPES[self.kind](self.minimum or 0),) * length


@dataclass(frozen=True, slots=True)
class Rule:
    """A relation between sizes and parameters that must hold.

    text says it in words, holds as an expression with names of sizes and parameters, such as "N % B == 0"; a parameter
    with a length is indexed: "pad[0] < 3". statuses are what breaking it is answered with, names such as "BAD_PARAM";
    empty: a case that breaks it is refused when a spec is expanded, nothing is expected of an implementation. breaks
    lists assignments (sizes or parameters by name) that break this rule alone, for derived invalid cases. origin says
    where the rule stands: "design", "design SECTION", "vendor" (the vendor's library checks it), or "ours", which no
    implementation has to check.
    """

    text: str
    holds: str
    statuses: tuple[str, ...] = (BAD_PARAM,)
    breaks: tuple[Mapping[str, Any], ...] = ()
    origin: str = DESIGN


def misshapen(parameter: Parameter, value: Any, env: Env | None = None) -> str | None:
    """What is wrong with the form of a parameter's value: one of its kind, or a tuple of as many as it has.

    Without env a list whose length is an expression may have any.
    """
    if env is not None:
        length = parameter.length_in(env)
    elif isinstance(parameter.length, str):
        length = len(value) if isinstance(value, tuple) else 0
    else:
        length = parameter.length
    if is_formed(value, length, parameter.kind):
        return None
    shown = list(value) if isinstance(value, tuple) and length is None else value
    one, several = _WORDS[parameter.kind]
    expected = one if length is None else f"{parameter.length if env is None else length} {several}"
    if length is None and parameter.kind == "int" and not isinstance(value, tuple):
        expected = "an integer"
    return f"{parameter.name} is {shown}, expected {expected}"


def is_formed(value: Any, length: int | None, kind: str) -> bool:
    """Whether a value is one of a kind, or a tuple of `length` of them."""
    if length is not None:
        return isinstance(value, tuple) and len(value) == length and all(is_formed(each, None, kind) for each in value)
    return type(value) is TYPES[kind] or (kind == "bool" and type(value) is int and value in (0, 1))
