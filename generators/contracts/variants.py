"""A legal case with one thing of it changed, for each kind of rule; negative_cases tells which break one rule alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from generators.contracts.case import Case, TensorPlan
from generators.contracts.checks import violations
from generators.contracts.faults import (
    NULL_HANDLE,
    NULL_WORKSPACE_SIZE,
    WORKSPACE_NULL,
    WORKSPACE_SHORT,
    null_descriptor,
    null_pointer,
)  # fmt: skip
from generators.contracts.model import LARGE, Contract, Env, Parameter, Rule, Shape
from generators.data.distributions import parse_values
from generators.parameters import c_float
from schemas.dtypes import DTYPES
from schemas.status import SUCCESS
from schemas.tensor_descriptor import dense_strides

Variants = Callable[[Case, Contract], Iterator[Case]]

_WRONG_DTYPES: Final = ("half", "float", "double", "int32", "int64")
_WRONG_LAYOUTS: Final = ("NCHW", "NHWC", "ARRAY")
_LARGE_BESIDE: Final = 4 << 20  # bytes that the other tensors of a large-tensor case may take


def other_parameters(base: Case, contract: Contract) -> Iterator[Case]:
    """Each number of a parameter just outside its range."""
    env = _env(base, contract)
    for parameter in contract.passed_parameters:
        for value in _out_of_range(parameter):
            changed: list[tuple[str, Any]] = [(f"{parameter.name}_{_word(value)}", value)]
            if parameter.length is not None:
                old = env.get(parameter.name, ())
                changed = [
                    (f"{parameter.name}{axis}_{_word(value)}", (*old[:axis], value, *old[axis + 1 :]))
                    for axis in range(len(old))
                ]
            for slug, new in changed:
                case = _assigned(base, contract, slug, {parameter.name: new})
                if case is not None:
                    yield case


def other_dtypes(base: Case, contract: Contract) -> Iterator[Case]:
    """Each tensor with dtypes that it must not have; tensors of the same dtype follow."""
    plans = {plan.name: plan for plan in base.plans}
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


def other_layouts(base: Case, contract: Contract) -> Iterator[Case]:
    """Each tensor with layouts that it must not have."""
    for plan in base.plans:
        expected = contract.tensors[plan.name].layout
        for layout in _WRONG_LAYOUTS:
            if expected not in ("ARRAY", layout):
                yield _variant(base, f"{plan.name}_layout_{layout.lower()}", {plan.name: replace(plan, layout=layout)})


def other_ranks(base: Case, contract: Contract) -> Iterator[Case]:
    """Each tensor with one dim less and one of size 1 more; a scalar, which not every API can describe, is left out."""
    for plan in base.plans:
        for dims in (plan.dims[:-1], (*plan.dims, 1)):
            if dims:
                yield _variant(base, f"{plan.name}_rank_{len(dims)}", {plan.name: replace(plan, dims=dims)})


def zero_sizes(base: Case, contract: Contract) -> Iterator[Case]:
    """0 for each size that must not be 0."""
    for size, status in contract.zero_elements.items():
        case = _assigned(base, contract, f"{size.lower()}_0", {size: 0}) if status != SUCCESS else None
        if case is not None:
            yield case


def other_dims(base: Case, contract: Contract) -> Iterator[Case]:
    """Each dim that something else determines, one too large and one too small; the first of a free size is left out.

    Both directions: a check that is weakened from != to > or < answers rightly in one of them.
    """
    bound = {parameter.name for parameter in contract.parameters}
    for plan in base.plans:
        for axis, expression in enumerate(contract.tensors[plan.name].dims):
            free = expression.names == {expression.text} and expression.text not in bound
            bound |= expression.names if free else set()
            for size in () if free else (plan.dims[axis] + 1, plan.dims[axis] - 1):
                if size >= 0:
                    dims = (*plan.dims[:axis], size, *plan.dims[axis + 1 :])
                    yield _variant(base, f"{plan.name}_dim{axis}_{size}", {plan.name: _sized(plan, dims)})


def listed(base: Case, contract: Contract) -> Iterator[tuple[Rule, Mapping[str, Any], Case | None]]:
    """What Rule.breaks lists, with its rule and values; None where a size would be negative."""
    for rule in contract.rules:
        for values in rule.breaks:
            slug = "_".join(f"{name.lower()}_{_word(value)}" for name, value in values.items())
            yield rule, values, _assigned(base, contract, slug, values)


def strided(base: Case, contract: Contract) -> Iterator[Case]:
    """Each tensor as every second element of a memory twice as large."""
    for plan in base.plans:
        if plan.descriptor.elements > 1:
            strides = tuple(2 * stride for stride in dense_strides(plan.dims))
            yield _variant(base, f"{plan.name}_strided", {plan.name: replace(plan, strides=strides)})


def large(base: Case, contract: Contract) -> Iterator[Case]:
    """Per tensor the assignment of one size or parameter that makes the fewest tensors large and the rest small."""
    plain = [each for each in contract.passed_parameters if each.length is None and each.kind == "int"]
    numbers = [*contract.sizes, *(each.name for each in plain)]
    seen: set[tuple[Shape, ...]] = set()
    for tensor in contract.tensors:
        candidates: list[tuple[int, float, int, Case]] = []
        for name in numbers:
            size = _smallest_large(base, contract, tensor, name)
            case = size and _assigned(base, contract, f"{tensor}_large", {name: size})
            if case and _is_large_alone(case, contract):
                beside = [plan for plan in case.plans if plan.descriptor.elements < LARGE]
                size_beside = sum(plan.descriptor.elements * DTYPES[plan.dtype].width for plan in beside)
                if size_beside <= _LARGE_BESIDE:
                    candidates.append((-len(beside), size_beside, len(candidates), case))
        if candidates:
            case = min(candidates)[-1]
            dims = tuple(plan.dims for plan in case.plans)
            if dims not in seen:
                seen.add(dims)
                yield case


def _is_large_alone(case: Case, contract: Contract) -> bool:
    found = violations(contract, {plan.name: plan.descriptor for plan in case.plans}, case.params)
    return [violation.rule for violation in found] == ["large"]


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


def faulty(base: Case, contract: Contract) -> Iterator[Case]:
    """Each invalid-call fault that the operator's call can have."""
    yield _variant(base, "null_handle", {}, faults=(NULL_HANDLE,))
    for plan in base.plans:
        yield _variant(base, f"{plan.name}_null_descriptor", {}, faults=(null_descriptor(plan.name),))
        if plan.descriptor.elements > 0:  # a size may be unknown
            yield _variant(base, f"{plan.name}_null_pointer", {}, faults=(null_pointer(plan.name),))
    if contract.workspace:
        yield _variant(base, "null_workspace_size", {}, faults=(NULL_WORKSPACE_SIZE,))
        yield _variant(base, "workspace_null", {}, faults=(WORKSPACE_NULL,))
        yield _variant(base, "workspace_short", {}, faults=(WORKSPACE_SHORT,))


# In the order of derived cases: what the contract says of one number or tensor, then of the whole call.
OF_TENSORS: Final[tuple[Variants, ...]] = (other_parameters, other_dtypes, other_layouts, other_ranks, other_dims)
OF_CALLS: Final[tuple[Variants, ...]] = (strided, large, faulty)


def _out_of_range(parameter: Parameter) -> list[Any]:
    if parameter.kind == "string":
        return [] if parameter.choices is None else ["other"]
    if parameter.kind == "bool":
        return []
    if parameter.choices is not None:
        return [min(parameter.choices.values()) - 1, max(parameter.choices.values()) + 1]
    values = [] if parameter.minimum is None else [parameter.minimum - 1]
    if parameter.minimum == 1:
        values.append(-1)  # passes where only 0 is refused
    values += [] if parameter.maximum is None else [parameter.maximum + 1]
    return [c_float(value) for value in values] if parameter.kind == "float" else values


def _env(base: Case, contract: Contract) -> Env:
    return contract.bind({plan.name: plan.dims for plan in base.plans}, base.params)


def _variant(base: Case, slug: str, plans: Mapping[str, TensorPlan], **changes: Any) -> Case:
    """The base under another name with some of its tensors exchanged."""
    inputs = tuple(plans.get(plan.name, plan) for plan in base.inputs)
    outputs = tuple(plans.get(plan.name, plan) for plan in base.outputs)
    return replace(base, name=f"{base.name}_{slug}", inputs=inputs, outputs=outputs, **changes)


def _assigned(base: Case, contract: Contract, slug: str, values: Mapping[str, Any]) -> Case | None:
    """The base with other sizes or parameters and the shapes that follow; None where a size would be negative."""
    env = {**_env(base, contract), **values}
    shapes = {plan.name: contract.shape(plan.name, env) for plan in base.plans}
    if any(size < 0 for shape in shapes.values() for size in shape):
        return None
    plans = {plan.name: _sized(plan, shapes[plan.name]) for plan in base.plans}
    params = {name: values.get(name, value) for name, value in base.params.items()}
    return _variant(base, slug, plans, params=params)


def _sized(plan: TensorPlan, dims: Shape) -> TensorPlan:
    """The tensor with other dims; a large one gets no data."""
    return replace(plan, dims=dims, values=None if math.prod(dims) >= LARGE else plan.values)


def _word(value: Any) -> str:
    """A number, or numbers, as part of a name: -1 is minus1."""
    values = value if isinstance(value, tuple) else (value,)
    return "_".join(str(each).replace("-", "minus") for each in values)
