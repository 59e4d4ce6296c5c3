"""Whether a call keeps to a contract: `sound` evaluates all conditions at once, `violations` one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from generators.contracts.conditions import (
    FUNCTIONS,
    Condition,
    Tensor,
    Violation,
    of_parameters,
    of_rules,
    of_size,
    of_strides,
    of_tensors,
    of_zeros,
)  # fmt: skip
from generators.contracts.model import UNKNOWN, Contract, Env, Params, TensorSpec
from generators.expressions import UNCOMPUTABLE
from schemas.status import BAD_PARAM
from schemas.tensor_descriptor import Descriptor


def illegal_case(op: str, found: Iterable[Violation]) -> str:
    """What is wrong with a case of an operator that breaks these rules."""
    return f"no legal case of {op}: {'; '.join(violation.text for violation in found)}"


def other_number(op: str, found: int, role: str, wanted: Sequence[TensorSpec]) -> str:
    """What is wrong with a case that has another number of tensors than its operator."""
    return f"{op} has {found} {role}, expected {len(wanted)}: {', '.join(each.name for each in wanted)}"


def violations(
    contract: Contract, descriptors: Mapping[str, Descriptor | None], params: Params, env: Env | None = None
) -> list[Violation]:
    """The broken rules of a call, in the order in which operators check them.

    Parameters, dtypes, layouts, ranks and sizes; with right ranks also relations, strides and large tensors; in a call
    that is right otherwise also the rules without a status, and zero elements. An absent (None) descriptor is a
    violation of its own; the rest is then not looked at. Tensors that exist only with other parameters are no part of
    the call.
    """
    contract = contract.given(params if env is None else env)
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
    return _checks(contract.given(env)).broken(tensors, env)


def sound(contract: Contract, tensors: Iterable[Tensor], env: Env) -> bool:
    """Whether no rule is broken, quickly; where False, violations tells. tensors are in the contract's order."""
    return _checks(contract.given(env)).sound(tensors, env)


def broken_rule(contract: Contract, tensors: Iterable[Tensor], env: Env) -> str | None:
    """The first broken rule of a call with all tensors and parameters, None where there is none; it words nothing."""
    return _checks(contract.given(env)).first(tensors, env)


def breaks(contract: Contract, rule: str, tensors: Iterable[Tensor], env: Env) -> bool:
    """Whether such a call breaks this rule, whatever others it breaks."""
    return _checks(contract.given(env)).breaks(rule, tensors, env)


class _Checks:
    """The conditions of one contract, in the order of violations."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        position = {name: f"_{index}" for index, name in enumerate(contract.tensors)}
        self._names = tuple(position.values())
        self._unknown: Env = dict.fromkeys(contract.data_sizes, UNKNOWN) | dict.fromkeys(contract.computed_parameters)
        self._parameters = [*of_parameters(contract)]
        self._tensors = [*of_tensors(contract, position)]
        rules = [*of_rules(contract)]
        answered = [check for check in rules if check.statuses]
        self._relations = [*answered, *of_strides(contract, position), of_size(contract, position)]
        self._last = [*(check for check in rules if not check.statuses), *of_zeros(contract)]
        self._every = (*self._parameters, *self._tensors, *self._relations, *self._last)
        self._all = compile(" and ".join(f"({check.holds})" for check in self._every), "<contract>", "eval")

    def sound(self, tensors: Iterable[Tensor], env: Env) -> bool:
        """Whether all conditions hold; False where one can't be computed."""
        try:
            return bool(eval(self._all, FUNCTIONS, self._scope(tensors, env)))
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
        known = {*env, *self._contract.computed_parameters}
        missing = [
            each.name
            for each in self._contract.passed_parameters
            if each.name not in known or env.get(each.name, 0) is None
        ]
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


def _found(checks: Iterable[Condition], scope: Env) -> Iterator[Violation]:
    """The violations of the checks, one per rule."""
    broken: set[str] = set()
    for check in checks:
        if check.rule not in broken and check.needs not in broken and check.broken(scope):
            broken.add(check.rule)
            yield check.violation(scope)
