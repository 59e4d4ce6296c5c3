"""Invalid cases: each rule of a contract broken alone, derived from one legal case.

A derived case breaks exactly one rule, so the order in which an implementation checks never decides its status. A
written case may break several rules that share their statuses (`breaks`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from generators.contracts.case import Case, TensorPlan
from generators.contracts.checks import Violation, violations
from generators.contracts.faults import (
    NULL_HANDLE,
    NULL_WORKSPACE_SIZE,
    WORKSPACE_NULL,
    WORKSPACE_SHORT,
    null_descriptor,
    null_pointer,
    tensors_with,
)  # fmt: skip
from generators.contracts.model import DESIGN, LARGE, OURS, VENDOR, Contract, Env, Parameter, Shape
from generators.data.distributions import parse_values, plain_values
from schemas.dtypes import DTYPES
from schemas.errors import InputError
from schemas.status import BAD_PARAM, SUCCESS
from schemas.tensor_descriptor import dense_strides

_WRONG_DTYPES: Final = ("half", "float", "double", "int32", "int64")
_WRONG_LAYOUTS: Final = ("NCHW", "NHWC", "ARRAY")
_LARGE_BESIDE: Final = 4 << 20  # bytes that the other tensors of a large-tensor case may take


def broken(case: Case, contract: Contract) -> list[Violation]:
    """Everything that is wrong with a case: the contract's violations, then a violation per fault."""
    absent = tensors_with("null_descriptor", case.faults)
    descriptors = {plan.name: None if plan.name in absent else plan.descriptor for plan in _plans(case)}
    return [
        *violations(contract, descriptors, case.params),
        *(
            Violation(str(fault), (BAD_PARAM,), fault.text, OURS if fault == WORKSPACE_SHORT else DESIGN)
            for fault in case.faults
            if fault.kind != "null_descriptor"  # already among the contract's violations
        ),
    ]


def check_invalid(case: Case, contract: Contract) -> None:
    """InputError unless the case breaks `breaks` rules, and expects the statuses that the contract has for them.

    Several rules must share their statuses: then the order in which an implementation checks doesn't decide.
    """
    found = broken(case, contract)
    if len(found) != case.breaks:
        listed = "; ".join(violation.text for violation in found) or "nothing is wrong with it"
        number = "one rule" if case.breaks == 1 else f"{case.breaks} rules"
        raise InputError(f"case {case.id} must break exactly {number}, found {len(found)}: {listed}")
    answers = {violation.statuses for violation in found}
    if len(answers) > 1:
        listed = "; ".join(f"{each.text}: {' or '.join(each.statuses) or 'no status'}" for each in found)
        raise InputError(f"case {case.id} breaks rules with different statuses: {listed}")
    if set(case.expect) != set(found[0].statuses):
        expected = " or ".join(found[0].statuses) or "that no case may break this rule"
        raise InputError(f"case {case.id} expects {' or '.join(case.expect)}, the contract says {expected}")
    demanded = [violation for violation in found if violation.origin != OURS]
    if case.beyond_design == bool(demanded):
        given, right = ("expect_beyond_design", "expect") if case.beyond_design else ("expect", "expect_beyond_design")
        decisive = demanded[0] if demanded else found[0]
        text = f"{decisive.text} (this rule stands in {_standing(decisive.origin)})"
        raise InputError(f"case {case.id} has {given}, expected {right}: {text}")


def derive_invalid(base: Case, contract: Contract) -> Iterator[Case]:
    """Cases that break one rule each, named `<base>_<rule>`, from a legal base case.

    Nothing is computed on their data: they get plain values. A rule that this base can't break alone yields no case.
    """
    base = _plain(base)
    for derive in (_parameters, _dtypes, _layouts, _ranks, _dims, _rules, _strides, _large, _faults):
        for case in derive(base, contract):
            yield from as_invalid(case, contract, 1)


def illegal_variants(base: Case, contract: Contract) -> Iterator[Case]:
    """What derive_invalid yields, and sizes of 0; from any legal case, for mluops fuzz.

    What a rule lists in `breaks` is left out where it breaks another rule or none on this base.
    """
    base = _plain(base)
    for derive in (_parameters, _dtypes, _layouts, _ranks, _dims, _zeros, _listed, _strides, _large, _faults):
        for case in derive(base, contract):
            yield from as_invalid(case, contract, 1)


def as_invalid(case: Case, contract: Contract, breaks: int) -> Iterator[Case]:
    """The case with the statuses expected of it; nothing where it doesn't break so many rules of one status."""
    found = broken(case, contract)
    if len(found) == breaks and found[0].statuses and len({violation.statuses for violation in found}) == 1:
        beyond = all(violation.origin == OURS for violation in found)
        yield replace(case, expect=found[0].statuses, beyond_design=beyond, breaks=breaks)


def _plain(base: Case) -> Case:
    return replace(base, inputs=tuple(replace(plan, values=plain_values(plan.dtype)) for plan in base.inputs))


def _standing(origin: str) -> str:
    if origin == OURS:
        return "neither the design nor the vendor's library"
    return "the vendor's library" if origin == VENDOR else f"the {origin}"


def _plans(case: Case) -> tuple[TensorPlan, ...]:
    return (*case.inputs, *case.outputs)


def _env(base: Case, contract: Contract) -> Env:
    return contract.bind({plan.name: plan.dims for plan in _plans(base)}, base.params)


def _variant(base: Case, slug: str, plans: Mapping[str, TensorPlan], **changes: Any) -> Case:
    """The base under another name with some of its tensors exchanged."""
    inputs = tuple(plans.get(plan.name, plan) for plan in base.inputs)
    outputs = tuple(plans.get(plan.name, plan) for plan in base.outputs)
    return replace(base, name=f"{base.name}_{slug}", inputs=inputs, outputs=outputs, **changes)


def _assigned(base: Case, contract: Contract, slug: str, values: Mapping[str, Any]) -> Case | None:
    """The base with other sizes or parameters and the shapes that follow; None where a size would be negative."""
    env = {**_env(base, contract), **values}
    shapes = {plan.name: contract.shape(plan.name, env) for plan in _plans(base)}
    if any(size < 0 for shape in shapes.values() for size in shape):
        return None
    plans = {plan.name: _sized(plan, shapes[plan.name]) for plan in _plans(base)}
    params = {name: values.get(name, value) for name, value in base.params.items()}
    return _variant(base, slug, plans, params=params)


def _sized(plan: TensorPlan, dims: Shape) -> TensorPlan:
    """The tensor with other dims; a large one gets no data."""
    return replace(plan, dims=dims, values=None if math.prod(dims) >= LARGE else plan.values)


def _word(value: Any) -> str:
    """A number, or numbers, as part of a name: -1 is minus1."""
    values = value if isinstance(value, tuple) else (value,)
    return "_".join(str(each).replace("-", "minus") for each in values)


def _out_of_range(parameter: Parameter) -> list[int]:
    if parameter.choices is not None:
        return [min(parameter.choices.values()) - 1, max(parameter.choices.values()) + 1]
    below = [] if parameter.minimum is None else [parameter.minimum - 1]
    if parameter.minimum == 1:
        below.append(-1)  # passes where only 0 is refused
    return below if parameter.maximum is None else [*below, parameter.maximum + 1]


def _parameters(base: Case, contract: Contract) -> Iterator[Case]:
    env = _env(base, contract)
    for parameter in contract.passed_parameters:
        for value in _out_of_range(parameter):
            changed: list[tuple[str, Any]] = [(f"{parameter.name}_{_word(value)}", value)]
            if parameter.length is not None:
                old = env[parameter.name]
                changed = [
                    (f"{parameter.name}{axis}_{_word(value)}", (*old[:axis], value, *old[axis + 1 :]))
                    for axis in range(parameter.length)
                ]
            for slug, new in changed:
                case = _assigned(base, contract, slug, {parameter.name: new})
                if case is not None:
                    yield case


def _dtypes(base: Case, contract: Contract) -> Iterator[Case]:
    plans = {plan.name: plan for plan in _plans(base)}
    for tensor in contract.tensors.values():
        follow = [tensor.name, *(each.name for each in contract.tensors.values() if each.same_dtype_as == tensor.name)]
        allowed = (plans[tensor.name].dtype,) if tensor.same_dtype_as else tensor.dtypes
        for dtype in _WRONG_DTYPES:
            if dtype not in allowed:
                values = parse_values(
                    {"uniform": [-1, 1]} if DTYPES[dtype].is_float else {"integers": [0, 3]}, {}, dtype
                )
                changed = {
                    name: replace(plans[name], dtype=dtype, values=plans[name].values and values) for name in follow
                }
                yield _variant(base, f"{tensor.name}_dtype_{dtype}", changed)


def _layouts(base: Case, contract: Contract) -> Iterator[Case]:
    for plan in _plans(base):
        expected = contract.tensors[plan.name].layout
        for layout in _WRONG_LAYOUTS:
            if expected not in ("ARRAY", layout):
                yield _variant(base, f"{plan.name}_layout_{layout.lower()}", {plan.name: replace(plan, layout=layout)})


def _ranks(base: Case, contract: Contract) -> Iterator[Case]:
    """One dim less (a scalar is no descriptor that every API can make: left out) and one of size 1 more."""
    for plan in _plans(base):
        for dims in (plan.dims[:-1], (*plan.dims, 1)):
            if dims:
                yield _variant(base, f"{plan.name}_rank_{len(dims)}", {plan.name: replace(plan, dims=dims)})


def _zeros(base: Case, contract: Contract) -> Iterator[Case]:
    """Each size that must not be 0."""
    for size, status in contract.zero_elements.items():
        case = _assigned(base, contract, f"{size.lower()}_0", {size: 0}) if status != SUCCESS else None
        if case is not None:
            yield case


def _dims(base: Case, contract: Contract) -> Iterator[Case]:
    """Each dim that something else determines, one too large and one too small; the first of a free size is left out.

    Both directions: a check that is weakened from != to > or < answers rightly in one of them.
    """
    bound = {parameter.name for parameter in contract.parameters}
    for plan in _plans(base):
        for axis, expression in enumerate(contract.tensors[plan.name].dims):
            free = expression.names == {expression.text} and expression.text not in bound
            bound |= expression.names if free else set()
            for size in () if free else (plan.dims[axis] + 1, plan.dims[axis] - 1):
                if size >= 0:
                    dims = (*plan.dims[:axis], size, *plan.dims[axis + 1 :])
                    yield _variant(base, f"{plan.name}_dim{axis}_{size}", {plan.name: _sized(plan, dims)})


def _rules(base: Case, contract: Contract) -> Iterator[Case]:
    """What Rule.breaks lists; InputError where such a case breaks another rule, or none."""
    for rule in contract.rules:
        for values in rule.breaks:
            slug = "_".join(f"{name.lower()}_{_word(value)}" for name, value in values.items())
            case = _assigned(base, contract, slug, values)
            found = [] if case is None else broken(case, contract)
            if case is None or [violation.rule for violation in found] != [rule.text]:
                listed = ", ".join(violation.rule for violation in found) or "nothing"
                raise InputError(f"{base.id}: {dict(values)} should break {rule.text!r} alone, it breaks {listed}")
            yield case


def _listed(base: Case, contract: Contract) -> Iterator[Case]:
    """What Rule.breaks lists."""
    for rule in contract.rules:
        for values in rule.breaks:
            slug = "_".join(f"{name.lower()}_{_word(value)}" for name, value in values.items())
            case = _assigned(base, contract, slug, values)
            if case is not None:
                yield case


def _strides(base: Case, contract: Contract) -> Iterator[Case]:
    """Every second element of a memory twice as large."""
    for plan in _plans(base):
        if plan.descriptor.elements > 1:
            strides = tuple(2 * stride for stride in dense_strides(plan.dims))
            yield _variant(base, f"{plan.name}_strided", {plan.name: replace(plan, strides=strides)})


def _large(base: Case, contract: Contract) -> Iterator[Case]:
    """Per tensor the assignment of one size or parameter that makes the fewest tensors large and the rest small."""
    numbers = [*contract.sizes, *(each.name for each in contract.passed_parameters if each.length is None)]
    seen: set[tuple[Shape, ...]] = set()
    for tensor in contract.tensors:
        candidates: list[tuple[int, float, int, Case]] = []
        for name in numbers:
            size = _smallest_large(base, contract, tensor, name)
            case = size and _assigned(base, contract, f"{tensor}_large", {name: size})
            if case and [violation.rule for violation in broken(case, contract)] == ["large"]:
                beside = [plan for plan in _plans(case) if plan.descriptor.elements < LARGE]
                size_beside = sum(plan.descriptor.elements * DTYPES[plan.dtype].width for plan in beside)
                if size_beside <= _LARGE_BESIDE:
                    candidates.append((-len(beside), size_beside, len(candidates), case))
        if candidates:
            case = min(candidates)[-1]
            dims = tuple(plan.dims for plan in _plans(case))
            if dims not in seen:
                seen.add(dims)
                yield case


def _smallest_large(base: Case, contract: Contract, tensor: str, name: str) -> int | None:
    """The smallest value of a size or parameter with which the tensor has LARGE elements or more."""
    env = _env(base, contract)
    if not isinstance(env.get(name), int):
        return None

    def elements(value: int) -> int:
        return math.prod(contract.shape(tensor, {**env, name: value}))

    low, high = env[name], LARGE if name in contract.sizes else LARGE - 1  # parameters are 32-bit integers
    if elements(high) < LARGE or elements(low) >= LARGE:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if elements(middle) >= LARGE else (middle, high)
    return high


def _faults(base: Case, contract: Contract) -> Iterator[Case]:
    yield _variant(base, "null_handle", {}, faults=(NULL_HANDLE,))
    for plan in _plans(base):
        yield _variant(base, f"{plan.name}_null_descriptor", {}, faults=(null_descriptor(plan.name),))
        if plan.descriptor.elements > 0:  # a size may be unknown
            yield _variant(base, f"{plan.name}_null_pointer", {}, faults=(null_pointer(plan.name),))
    if contract.workspace:
        yield _variant(base, "null_workspace_size", {}, faults=(NULL_WORKSPACE_SIZE,))
        yield _variant(base, "workspace_null", {}, faults=(WORKSPACE_NULL,))
        yield _variant(base, "workspace_short", {}, faults=(WORKSPACE_SHORT,))
