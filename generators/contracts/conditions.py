"""The conditions that a contract's fields state: each an expression, and the text of its violation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import CodeType
from typing import Any, Final, Protocol

from generators.contracts.model import DESIGN, LARGE, Contract, Env, Parameter, Shape, TensorSpec
from generators.expressions import GLOBALS, UNCOMPUTABLE
from generators.parameters import is_formed, misshapen
from schemas.status import BAD_PARAM, SUCCESS


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: what it says, the statuses a correct implementation may answer with, and where it stands."""

    rule: str
    statuses: tuple[str, ...]
    text: str
    origin: str = DESIGN


class Tensor(Protocol):
    """What the conditions look at: a Descriptor, or a TensorPlan."""

    @property
    def dtype(self) -> str:
        """The dtype's name."""

    @property
    def layout(self) -> str:
        """The layout's name."""

    @property
    def dims(self) -> Shape:
        """The dims; UNKNOWN where one depends on the data."""

    @property
    def strides(self) -> Shape | None:
        """The strides in elements, None where it is dense."""


# What the expressions may call; elements is prod without its bound, which sizes don't need.
FUNCTIONS: Final[dict[str, Any]] = {**GLOBALS, "int": int, "is_formed": is_formed, "elements": math.prod}
Text = str | Callable[[Env], str]


@dataclass(frozen=True)
class Condition:
    """One condition of a contract.

    holds is an expression over sizes, parameters and the tensors by position (_0, _1, ...). A condition that
    can't be computed counts as holding: another one is broken then, or it depends on the data. text is the message, in
    the same scope. needs names a rule without which the condition has no meaning.
    """

    rule: str
    holds: str
    text: Text
    statuses: tuple[str, ...] = (BAD_PARAM,)
    origin: str = DESIGN
    needs: str = ""

    @cached_property
    def code(self) -> CodeType:
        """The compiled expression."""
        return compile(self.holds, "<contract>", "eval")

    def broken(self, scope: Env) -> bool:
        """Whether the condition is false in this scope."""
        try:
            return not eval(self.code, FUNCTIONS, scope)
        except UNCOMPUTABLE:
            return False

    def violation(self, scope: Env) -> Violation:
        """The violation that a broken condition is, with its message."""
        text = self.text if isinstance(self.text, str) else self.text(scope)
        return Violation(self.rule, self.statuses, text, self.origin)


def of_parameters(contract: Contract) -> Iterator[Condition]:
    """Of each parameter its form, then its range."""
    for parameter in contract.passed_parameters:
        yield from _of_parameter(parameter)


def _of_parameter(parameter: Parameter) -> Iterator[Condition]:
    name, length = parameter.name, parameter.length
    # A call takes longer than a comparison.
    plain = length is None and parameter.kind == "int"
    form = f"{name}.__class__ is int" if plain else f"is_formed({name}, {length}, {parameter.kind!r})"
    unknown = f"{name} is None or " if parameter.computed_from else ""  # the values of its input aren't drawn yet
    yield Condition(name, unknown + form, lambda scope: misshapen(parameter, scope[name], scope) or "", ())

    def check(holds: str, expected: str) -> Condition:
        text: Text = lambda scope: f"{name} is {scope[name]}, expected {expected}"  # noqa: E731
        return Condition(name, unknown + holds, text, parameter.statuses, parameter.origin)

    if parameter.choices is not None:
        words = choices_text(parameter.choices)
        known = f"({', '.join(map(repr, parameter.choices.values()))},)"
        yield check(f"{name} in {known}" if length is None else f"{{*{name}}} <= {{*{known}}}", words)
    if parameter.minimum is not None:
        least = name if length is None else f"min({name}, default={parameter.minimum})"  # a list may be empty
        yield check(f"{least} >= {parameter.minimum}", _range_text(parameter.minimum, parameter.maximum))
    if parameter.maximum is not None:
        most = name if length is None else f"max({name}, default={parameter.maximum})"
        yield check(f"{most} <= {parameter.maximum}", _range_text(parameter.minimum, parameter.maximum))


def choices_text(choices: Mapping[str, Any]) -> str:
    """The legal values of a parameter with their words."""
    return ", ".join(word if word == value else f"{value} ({word})" for word, value in choices.items())


def _range_text(minimum: float | None, maximum: float | None) -> str:
    """The legal values of a parameter in words."""
    if minimum is None:
        return f"{maximum} or less"
    if maximum is None:
        return f"{minimum} or more"
    return str(minimum) if minimum == maximum else f"{minimum} to {maximum}"


def of_tensors(contract: Contract, position: Mapping[str, str]) -> Iterator[Condition]:
    """Of each tensor the dtype, the layout, the rank and each dim. position: name -> name in the expressions."""
    for tensor in contract.tensors.values():
        yield from _of_tensor(tensor, position)


def _of_tensor(tensor: TensorSpec, position: Mapping[str, str]) -> Iterator[Condition]:
    name, own = tensor.name, position[tensor.name]
    followed = position[tensor.same_dtype_as] if tensor.same_dtype_as else ""

    def dtype_text(scope: Env) -> str:
        allowed = (scope[followed].dtype,) if followed else tensor.dtypes
        return f"{name} has dtype {scope[own].dtype}, expected {' or '.join(allowed)}"

    yield Condition(
        f"{name}.dtype", f"{own}.dtype in {f'({followed}.dtype,)' if followed else tensor.dtypes}", dtype_text
    )
    # Tensors of layout ARRAY carry no layout rule in any of the design documents.
    if tensor.layout != "ARRAY":
        text: Text = lambda scope: f"{name} has layout {scope[own].layout}, expected {tensor.layout}"  # noqa: E731
        yield Condition(f"{name}.layout", f"{own}.layout == {tensor.layout!r}", text)
    rank = len(tensor.dims)

    def rank_text(scope: Env) -> str:
        dims = scope[own].dims
        return f"{name} has {len(dims)} dims {list(dims)}, expected {rank}: [{tensor.shape}]"

    yield Condition(f"{name}.rank", f"len({own}.dims) == {rank}", rank_text)
    for axis in range(rank):
        yield _of_dim(tensor, own, axis)


def _of_dim(tensor: TensorSpec, own: str, axis: int) -> Condition:
    expression = tensor.dims[axis]

    def text(scope: Env) -> str:
        reason = f"{expression.text} = " if expression.names else ""
        return f"{tensor.name} dim {axis} is {scope[own].dims[axis]}, expected {reason}{expression(scope)}"

    # A difference: with a parameter of the wrong form, which is reported as such, it can't be computed.
    holds = f"{own}.dims[{axis}] - ({expression.text}) == 0"
    return Condition(f"{tensor.name}.dim{axis}", holds, text, needs=f"{tensor.name}.rank")


def of_rules(contract: Contract) -> Iterator[Condition]:
    """The rules between sizes and parameters."""
    for rule in contract.rules:
        text = f"not true: {rule.text} ({rule.holds})"
        yield Condition(rule.text, rule.holds, text, rule.statuses, rule.origin)


def of_strides(contract: Contract, position: Mapping[str, str]) -> Iterator[Condition]:
    """Each tensor is dense."""
    for name, own in position.items():
        text = f"{name} is strided"
        yield Condition(f"{name}.strides", f"{own}.strides is None", text, contract.strided)


def of_size(contract: Contract, position: Mapping[str, str]) -> Condition:
    """All tensors in one rule: a size often makes several of them large."""

    def text(scope: Env) -> str:
        sizes = {name: math.prod(scope[own].dims) for name, own in position.items()}
        large = ", ".join(f"{name} has {size} elements" for name, size in sizes.items() if size >= LARGE)
        return f"{large}, expected fewer than {LARGE}"

    return Condition(
        "large", " and ".join(f"elements({own}.dims) < {LARGE}" for own in position.values()), text, contract.large
    )


def of_zeros(contract: Contract) -> Iterator[Condition]:
    """The sizes for which 0 has a status other than SUCCESS."""
    for size, status in contract.zero_elements.items():
        if status != SUCCESS:
            text = f"{size} is 0, expected 1 or more"
            yield Condition(f"{size} = 0", f"{size} != 0", text, (status,))
