"""The adjoint relation: <forward(x), z> = <x, backward(z)>, with both kernels of one implementation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from generators.contracts.relations import Relation
from generators.operator_registry import operators
from mluops_cli.core.record import BROKEN, HOLDS, NOT_RUN
from mluops_cli.execution.case.calls import Prepared
from mluops_cli.execution.case.output_buffers import Array
from mluops_cli.execution.case.related_call import called
from mluops_cli.execution.kernel_process.timed_call import Kernel
from mluops_cli.implementations.base import CannotShow
from mluops_cli.judging.bounds import TWICE

_EPSILON: Final = 2.0**-52  # of the float64 sums of the two products
_SINGLE: Final = 4  # bytes of the largest numbers whose products float64 holds exactly


def unlike_adjoint(
    prepared: Prepared, implementation: Kernel, relation: Relation, bounds: Mapping[str, Array], accumulate: str
) -> str | None:
    """The verdict on the operator and its adjoint; None where nothing can be said.

    An implementation that does not tell its operators may lack the adjoint: a call of it that fails is not run then.
    z is random. An output is within 2B of the exact one: B of the baseline, which is rounded itself. So the products
    differ by 2 (sum abs(z) B + sum abs(x) B') at most, with B' the bounds of the adjoint's output. For copies, whose
    bounds are 0, products and sums are exact: the two are equal.
    accumulate: the dtype that both may accumulate in.
    """
    bound, adjoint = prepared.bound, operators().get(relation.adjoint)
    kernels = implementation.operators()
    if adjoint is None:
        return None
    if kernels is not None and relation.adjoint not in kernels:
        return f"{NOT_RUN}{implementation.name} has no kernel of {relation.adjoint}"
    ((output, buffer),) = prepared.outputs.items()
    x, y, limit = prepared.call.inputs[relation.linear], buffer.array, bounds.get(output)
    if x is None or limit is None or not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None
    given = next(each.linear for each in adjoint.contract.relations if each.adjoint == bound.op)
    (result,) = adjoint.contract.outputs
    z: Array = np.asarray(np.random.default_rng(bound.seed).uniform(-1, 1, y.shape), y.dtype)
    inputs: dict[str, Array] = {}
    for each in adjoint.contract.inputs:
        array = z if each.name == given else prepared.call.inputs[each.name]
        assert array is not None
        inputs[each.name] = array
    own = {given: output, result.name: relation.linear}
    wanted = {name: bound.descriptors[own.get(name, name)] for name in adjoint.contract.tensors}
    descriptors = {name: each for name, each in wanted.items() if each is not None}
    try:
        found = called(implementation, adjoint.contract, inputs, bound.params, descriptors, prepared.memory)
    except CannotShow as reason:
        return f"{NOT_RUN}{relation.adjoint}: {reason}"
    if found is None:
        return None
    if isinstance(found, str):
        return f"{NOT_RUN if kernels is None else BROKEN}{relation.adjoint}: {found}"
    env = adjoint.contract.bind({name: each.dims for name, each in descriptors.items()}, bound.params)
    other_limit = adjoint.error_bound(inputs, env, accumulate=accumulate)[result.name]
    back = found[result.name].array
    if not (limit.ndim or other_limit.ndim or limit or other_limit) and y.dtype.itemsize <= _SINGLE:
        left, right = _exact_product(y, z), _exact_product(x, back)
        return HOLDS if left == right else _told(relation, output, left, right)
    left, right = _product(y, z), _product(x, back)
    sums = max(x.size, y.size) * _EPSILON * (_product(abs(y), abs(z)) + _product(abs(x), abs(back)))
    rounding = TWICE * (_product(abs(z), limit) + _product(abs(x), other_limit)) + sums
    if np.isfinite(back).all() and np.isnan(rounding):
        return None  # an element without a bound
    if abs(left - right) <= rounding:
        return HOLDS
    return _told(relation, output, left, right)


def _told(relation: Relation, output: str, left: float, right: float) -> str:
    return f"{BROKEN}<{output}, z> = {left:.9g}, <{relation.linear}, {relation.adjoint}(z)> = {right:.9g}"


def _exact_product(one: Array, other: Array) -> float:
    """The sum of the products of elements of at most 32 bits, rounded once."""
    products = np.multiply(one, other, dtype=np.float64)
    return math.fsum(products[products != 0])


def _product(one: Array, other: Array) -> float:
    """The sum of the products of elements, in float64."""
    return float(np.sum(np.multiply(one, other, dtype=np.float64)))
