"""The reference kernels as an implementation, for self-checks of cases, judging and execution."""

from __future__ import annotations

import time

import numpy as np

from generators.operator_registry import operators
from generators.parameters import as_tuples
from mluops_cli.implementations.base import Array, Call, CannotShow, Implementation, Outcome
from mluops_cli.implementations.call_contract import violations
from schemas.errors import InputError
from schemas.status import BAD_PARAM


class Reference(Implementation):
    """The contract decides the status, the operator's reference kernel the outputs."""

    name = "reference"
    needs = "nothing"

    def __init__(self, options: str = "") -> None:
        super().__init__(options)
        if options:
            raise InputError(f"implementation 'reference' takes no options, found {options!r}")

    @classmethod
    def operators(cls) -> tuple[str, ...]:
        """All operators that have a contract."""
        return tuple(operators())

    def call(self, call: Call) -> Outcome:
        """Run the reference kernel; CannotShow for an operator without a contract."""
        operator = operators().get(call.op)
        if operator is None:
            raise CannotShow(f"operator {call.op} has no reference kernel")
        if status := _refusal(call):
            return Outcome(status)
        params = as_tuples(call.params)
        start = time.perf_counter()
        inputs = {name: _data(array, call, name) for name, array in call.inputs.items()}
        shapes = {name: descriptor.dims for name, descriptor in call.descriptors.items() if descriptor is not None}
        computed = operator.baseline(inputs, shapes, params)
        latency = (time.perf_counter() - start) * 1e6
        for name, array in call.outputs.items():
            if array is not None:
                np.copyto(array[tuple(map(slice, computed[name].shape))], computed[name], casting="same_kind")
        return Outcome(latency_us=latency, scalars=operator.contract.counts(computed))


def _refusal(call: Call) -> str | None:
    """Return the status of the first broken rule or fault, None for a valid call."""
    if call.faults:
        return BAD_PARAM  # whatever the fault omits (handle, pointer, descriptor, workspace)
    broken = violations(call)
    for violation in broken:
        if violation.statuses:
            return violation.statuses[0]
    if broken:
        raise CannotShow(f"outside the contract: {broken[0].text}")
    return None


def _data(array: Array | None, call: Call, name: str) -> Array:
    """Return the input's array; an empty one where an empty tensor has none."""
    if array is not None:
        return array
    descriptor = call.descriptors[name]
    if descriptor is None or descriptor.elements:
        raise CannotShow(f"input {name} has no data")
    return np.empty(descriptor.dims, np.float32)
