"""The conditions of a contract, each stated once: `sound` evaluates all at once, `violations` one after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import CodeType
from typing import Any, Final, Protocol

from generators.contracts.model import (
    DESIGN,
    LARGE,
    UNKNOWN,
    Contract,
    Env,
    Parameter,
    Params,
    Shape,
    TensorSpec,
)  # fmt: skip
from generators.expressions import GLOBALS, UNCOMPUTABLE
from schemas.status import BAD_PARAM, SUCCESS
from schemas.tensor_descriptor import Descriptor


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: what it says, the statuses a correct implementation may answer with, and where it stands."""

    rule: str
    statuses: tuple[str, ...]
    text: str
    origin: str = DESIGN


def illegal_case(op: str, found: Iterable[Violation]) -> str:
    """What is wrong with a case of an operator that breaks these rules."""
    return f"no legal case of {op}: {'; '.join(violation.text for violation in found)}"


def other_number(op: str, found: int, role: str, wanted: Sequence[TensorSpec]) -> str:
    """What is wrong with a case that has another number of tensors than its operator."""
    return f"{op} has {found} {role}, expected {len(wanted)}: {', '.join(each.name for each in wanted)}"


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


def violations(
    contract: Contract, descriptors: Mapping[str, Descriptor | None], params: Params, env: Env | None = None
) -> list[Violation]:
    """The broken rules of a call, in the order in which operators check them.

    Parameters, dtypes, layouts, ranks and sizes; with right ranks also relations, strides and large tensors; in a call
    that is right otherwise also the rules without a status, and zero elements. An absent (None) descriptor is a
    violation of its own; the rest is then not looked at.
    """
    missing = [name for name in contract.tensors if descriptors.get(name) is None]
    if missing:
        return [Violation(f"{name}.descriptor", (BAD_PARAM,), f"{name} has no descriptor") for name in missing]
    given = [descriptor for name in contract.tensors if (descriptor := descriptors[name]) is not None]
    if env is None:
        try:
            env = contract.bind({name: each.dims for name, each in zip(contract.tensors, given, strict=True)}, params)
        except UNCOMPUTABLE:  # a parameter that a default depends on is missing, or has the wrong form: reported below
            env = dict(params)
    whole = None not in env.values()  # None: a parameter is missing
    return [] if whole and sound(contract, given, env) else violations_one_by_one(contract, given, env)


def violations_one_by_one(contract: Contract, tensors: Iterable[Tensor], env: Env) -> list[Violation]:
    """The broken rules, by an evaluation of each condition: sound is many times faster, but says only whether."""
    return _checks(contract).broken(tensors, env)


def sound(contract: Contract, tensors: Iterable[Tensor], env: Env) -> bool:
    """Whether no rule is broken, quickly; where False, violations tells. tensors are in the contract's order."""
    return _checks(contract).sound(tensors, env)


def broken_rule(contract: Contract, tensors: Iterable[Tensor], env: Env) -> str | None:
    """The first broken rule of a call with all tensors and parameters, None where there is none; it words nothing."""
    return _checks(contract).first(tensors, env)


def breaks(contract: Contract, rule: str, tensors: Iterable[Tensor], env: Env) -> bool:
    """Whether such a call breaks this rule, whatever others it breaks."""
    return _checks(contract).breaks(rule, tensors, env)


def misshapen(parameter: Parameter, value: Any) -> str | None:
    """What is wrong with the form of a parameter's value: one number, or a tuple of as many as it has."""
    if parameter.length is None:
        return None if _is_single(value) else f"{parameter.name} is {list(value)}, expected one number"
    return (
        None
        if _is_list(value, parameter.length)
        else f"{parameter.name} is {value}, expected {parameter.length} integers"
    )


def _is_single(value: Any) -> bool:
    return not isinstance(value, tuple)


def _is_list(value: Any, length: int) -> bool:
    return isinstance(value, tuple) and len(value) == length


_GLOBALS: Final[dict[str, Any]] = {**GLOBALS, "is_single": _is_single, "is_list": _is_list}
Text = str | Callable[[Env], str]


@dataclass(frozen=True)
class _Check:
    """One condition.

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
        return compile(self.holds, "<contract>", "eval")

    def broken(self, scope: Env) -> bool:
        try:
            return not eval(self.code, _GLOBALS, scope)
        except UNCOMPUTABLE:
            return False

    def violation(self, scope: Env) -> Violation:
        text = self.text if isinstance(self.text, str) else self.text(scope)
        return Violation(self.rule, self.statuses, text, self.origin)


class _Checks:
    """The conditions of one contract, in the order of violations."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        position = {name: f"_{index}" for index, name in enumerate(contract.tensors)}
        self._names = tuple(position.values())
        self._unknown: Env = dict.fromkeys(contract.data_sizes, UNKNOWN)
        self._parameters = [check for parameter in contract.passed_parameters for check in _of_parameter(parameter)]
        self._tensors = [check for tensor in contract.tensors.values() for check in _of_tensor(tensor, position)]
        answered = [check for check in _of_rules(contract) if check.statuses]
        self._relations = [*answered, *_of_strides(contract, position), _of_size(contract, position)]
        self._last = [*(check for check in _of_rules(contract) if not check.statuses), *_of_zeros(contract)]
        self._every = (*self._parameters, *self._tensors, *self._relations, *self._last)
        self._all = compile(" and ".join(f"({check.holds})" for check in self._every), "<contract>", "eval")

    def sound(self, tensors: Iterable[Tensor], env: Env) -> bool:
        """Whether all conditions hold; False where one can't be computed."""
        try:
            return bool(eval(self._all, _GLOBALS, self._scope(tensors, env)))
        except UNCOMPUTABLE:
            return False

    def first(self, tensors: Iterable[Tensor], env: Env) -> str | None:
        """The first broken rule."""
        scope = self._scope(tensors, env)
        return next((check.rule for check in self._every if check.broken(scope)), None)

    def breaks(self, rule: str, tensors: Iterable[Tensor], env: Env) -> bool:
        """Whether a condition of this rule is broken."""
        scope = self._scope(tensors, env)
        return any(check.broken(scope) for check in self._every if check.rule == rule)

    def _scope(self, tensors: Iterable[Tensor], env: Env) -> Env:
        scope = self._unknown | env
        scope.update(zip(self._names, tensors, strict=True))
        return scope

    def broken(self, tensors: Iterable[Tensor], env: Env) -> list[Violation]:
        """The violations, see the function of that name."""
        missing = [each.name for each in self._contract.passed_parameters if env.get(each.name) is None]
        found = [Violation(name, (), f"parameter {name} is missing") for name in missing]
        scope = {name: value for name, value in env.items() if value is not None}
        scope.update(zip(self._names, tensors, strict=True))
        found += _found((*self._parameters, *self._tensors), scope)
        if any(violation.rule.endswith(".rank") for violation in found):
            return found
        found += _found(self._relations, scope)
        return found or list(_found(self._last, scope))


@cache
def _checks(contract: Contract) -> _Checks:
    return _Checks(contract)


def _found(checks: Iterable[_Check], scope: Env) -> Iterator[Violation]:
    """The violations of the checks, one per rule."""
    broken: set[str] = set()
    for check in checks:
        if check.rule not in broken and check.needs not in broken and check.broken(scope):
            broken.add(check.rule)
            yield check.violation(scope)


def _of_parameter(parameter: Parameter) -> Iterator[_Check]:
    """Its form, then its range."""
    name, length = parameter.name, parameter.length
    form = f"is_single({name})" if length is None else f"is_list({name}, {length})"
    yield _Check(name, form, lambda scope: misshapen(parameter, scope[name]) or "", ())
    entries, least, most = (name + ",", name, name) if length is None else (name, f"min({name})", f"max({name})")

    def check(holds: str, expected: str) -> _Check:
        text: Text = lambda scope: f"{name} is {scope[name]}, expected {expected}"  # noqa: E731
        return _Check(name, holds, text, parameter.statuses, parameter.origin)

    if parameter.choices is not None:
        words = ", ".join(f"{number} ({word})" for word, number in parameter.choices.items())
        yield check(f"{{*({entries})}} <= {{{', '.join(map(str, parameter.choices.values()))}}}", words)
    if parameter.minimum is not None:
        yield check(f"{least} >= {parameter.minimum}", _range_text(parameter.minimum, parameter.maximum))
    if parameter.maximum is not None:
        yield check(f"{most} <= {parameter.maximum}", _range_text(parameter.minimum, parameter.maximum))


def _range_text(minimum: int | None, maximum: int | None) -> str:
    """The legal values of a parameter in words."""
    if minimum is None:
        return f"{maximum} or less"
    if maximum is None:
        return f"{minimum} or more"
    return str(minimum) if minimum == maximum else f"{minimum} to {maximum}"


def _of_tensor(tensor: TensorSpec, position: Mapping[str, str]) -> Iterator[_Check]:
    """Dtype, layout, rank, and each dim."""
    name, own = tensor.name, position[tensor.name]
    followed = position[tensor.same_dtype_as] if tensor.same_dtype_as else ""

    def dtype_text(scope: Env) -> str:
        allowed = (scope[followed].dtype,) if followed else tensor.dtypes
        return f"{name} has dtype {scope[own].dtype}, expected {' or '.join(allowed)}"

    yield _Check(f"{name}.dtype", f"{own}.dtype in {f'({followed}.dtype,)' if followed else tensor.dtypes}", dtype_text)
    # Tensors of layout ARRAY carry no layout rule in any of the design documents.
    if tensor.layout != "ARRAY":
        text: Text = lambda scope: f"{name} has layout {scope[own].layout}, expected {tensor.layout}"  # noqa: E731
        yield _Check(f"{name}.layout", f"{own}.layout == {tensor.layout!r}", text)
    rank = len(tensor.dims)

    def rank_text(scope: Env) -> str:
        dims = scope[own].dims
        return f"{name} has {len(dims)} dims {list(dims)}, expected {rank}: [{tensor.shape}]"

    yield _Check(f"{name}.rank", f"len({own}.dims) == {rank}", rank_text)
    for axis in range(rank):
        yield _of_dim(tensor, own, axis)


def _of_dim(tensor: TensorSpec, own: str, axis: int) -> _Check:
    expression = tensor.dims[axis]

    def text(scope: Env) -> str:
        reason = f"{expression.text} = " if expression.names else ""
        return f"{tensor.name} dim {axis} is {scope[own].dims[axis]}, expected {reason}{expression(scope)}"

    # A difference: with a parameter of the wrong form, which is reported as such, it can't be computed.
    holds = f"{own}.dims[{axis}] - ({expression.text}) == 0"
    return _Check(f"{tensor.name}.dim{axis}", holds, text, needs=f"{tensor.name}.rank")


def _of_rules(contract: Contract) -> Iterator[_Check]:
    for rule in contract.rules:
        text = f"not true: {rule.text} ({rule.holds})"
        yield _Check(rule.text, rule.holds, text, rule.statuses, rule.origin)


def _of_strides(contract: Contract, position: Mapping[str, str]) -> Iterator[_Check]:
    for name, own in position.items():
        text = f"{name} is strided"
        yield _Check(f"{name}.strides", f"{own}.strides is None", text, contract.strided)


def _of_size(contract: Contract, position: Mapping[str, str]) -> _Check:
    """All tensors in one rule: a size often makes several of them large."""

    def text(scope: Env) -> str:
        sizes = {name: math.prod(scope[own].dims) for name, own in position.items()}
        large = ", ".join(f"{name} has {size} elements" for name, size in sizes.items() if size >= LARGE)
        return f"{large}, expected fewer than {LARGE}"

    return _Check(
        "large", " and ".join(f"prod({own}.dims) < {LARGE}" for own in position.values()), text, contract.large
    )


def _of_zeros(contract: Contract) -> Iterator[_Check]:
    for size, status in contract.zero_elements.items():
        if status != SUCCESS:
            text = f"{size} is 0, expected 1 or more"
            yield _Check(f"{size} = 0", f"{size} != 0", text, (status,))
