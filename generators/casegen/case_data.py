"""The data of a planned case: which tensors its file stores, how many bytes they are, and the values of its inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from generators.contracts.case import Case, TensorPlan
from generators.contracts.faults import tensors_with
from generators.contracts.model import LARGE, Env
from generators.contracts.operator import Array, Operator
from generators.data.distributions import plain_values
from generators.data.draw import draw, keyed_generator, lay_over
from schemas.dtypes import DTYPES, dtype_named
from schemas.errors import InputError, MluopsError, SourceLocation
from schemas.status import SUCCESS
from schemas.tensor_descriptor import span


def omitted_tensors(case: Case) -> frozenset[str]:
    """The tensors that the case's file holds no data of on purpose: too large ones, and null pointers."""
    nulls = tensors_with("null_pointer", case.faults)
    return frozenset(plan.name for plan in case.plans if plan.name in nulls or plan.descriptor.elements >= LARGE)


def tensor_bytes(plan: TensorPlan) -> int:
    """Bytes of the tensor's stored values, gaps of a strided one included; sizes that only the data tell count as 0."""
    dims = tuple(max(0, size) for size in plan.dims)
    return math.ceil(span(dims, plan.strides) * DTYPES[plan.dtype].width)


def case_bytes(case: Case) -> int:
    """Bytes of the tensors that the case's file holds; sizes that only the data tell count as 0."""
    omitted = omitted_tensors(case)
    plans = case.plans if SUCCESS in case.expect else case.inputs
    return sum(tensor_bytes(plan) for plan in plans if plan.name not in omitted)


def draw_inputs(case: Case, operator: Operator, omitted: frozenset[str] = frozenset()) -> dict[str, Array | None]:
    """The case's inputs by name, None for omitted ones; each depends on (seed, case id, tensor) alone.

    InputError, with the spec's place, where an input has no values or they can't be drawn. MluopsError where a recipe
    of the operator gives another dtype or shape than the case says.
    """
    arrays: dict[str, Array | None] = {}
    env = operator.contract.bind(case.shapes(operator.contract), case.params)
    for plan in case.inputs:
        if plan.values is not None and plan.values.kind == "recipe" and not case.valid:
            plan = _drawable(plan, operator, env)
        arrays[plan.name] = None if plan.name in omitted else _draw(plan, case, operator, env, arrays)
    return arrays


def _drawable(plan: TensorPlan, operator: Operator, env: Env) -> TensorPlan:
    """The input of an invalid case; with plain values where its sizes disagree: no recipe can be meant for them."""
    agrees = operator.contract.fits(plan.name, plan.dims, env)
    return plan if agrees else replace(plan, values=plain_values(plan.dtype))


def _draw(plan: TensorPlan, case: Case, operator: Operator, env: Env, arrays: Mapping[str, Array | None]) -> Array:
    key = (case.seed, case.id, plan.name)
    if plan.values is None:
        dtype = dtype_named(plan.dtype)
        if plan.descriptor.elements or dtype is None:
            raise InputError(f"input {plan.name} has no values", SourceLocation(case.place))
        return np.empty(plan.dims, dtype.storage)
    if plan.values.kind == "recipe":
        word = plan.values.args[0]
        given = {name: array for name, array in arrays.items() if array is not None}
        drawn = operator.draw(plan.name, word, env, keyed_generator(key), given)
        if drawn is None:
            raise InputError(f"{case.op} has no recipe {word!r} for {plan.name}", SourceLocation(case.place))
        drawn = np.ascontiguousarray(drawn)
        _check_drawn(drawn, plan, f"{case.place}: recipe {word!r} of {case.op}")
        lay_over(plan.values, drawn.reshape(-1), key)
        return drawn
    try:
        return draw(plan.values, plan.dims, plan.dtype, key)
    except InputError as error:
        raise InputError(f"{case.id}: {plan.name}: {error.message}", SourceLocation(case.place)) from None


def _check_drawn(drawn: Array, plan: TensorPlan, recipe: str) -> None:
    """MluopsError where a recipe's array is not of the tensor's dtype and shape: the operator is wrong."""
    storage = DTYPES[plan.dtype].storage
    if drawn.dtype != storage or drawn.shape != plan.dims:
        found = f"{drawn.dtype} of shape {list(drawn.shape)}"
        raise MluopsError(f"{recipe} gives {found} for {plan.name}, expected {storage} of shape {list(plan.dims)}")
