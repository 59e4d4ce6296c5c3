"""The baseline of a case: the reference kernel's outputs, checked against the contract and against what was planned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generators.contracts.model import UNKNOWN, Shape
from generators.contracts.operator import Array, Arrays, Operator
from schemas.dtypes import DTYPES
from schemas.errors import InputError, MluopsError, SourceLocation


def compute_baseline(
    operator: Operator, inputs: Mapping[str, Array | None], shapes: Mapping[str, Shape], params: Mapping[str, Any]
) -> Arrays:
    """The reference kernel's outputs in the contract's order.

    InputError where the inputs' values are outside the contract, MluopsError where the kernel returns other outputs.
    """
    given = {name: array for name, array in inputs.items() if array is not None}
    contract = operator.contract
    operator.check_values(given, contract.bind(shapes, params))
    outputs = operator.baseline(given, shapes, params)
    expected = [tensor.name for tensor in contract.outputs]
    if set(outputs) != set(expected):
        raise MluopsError(f"reference kernel of {contract.op} returns {sorted(outputs)}, its contract says {expected}")
    return {name: outputs[name] for name in expected}


def check_output(name: str, dims: Shape, dtype: str, array: Array, place: SourceLocation | None) -> None:
    """InputError where a baseline's array has another shape (UNKNOWN fits any size) or dtype than its output."""
    same = len(dims) == array.ndim and all(a in (UNKNOWN, b) for a, b in zip(dims, array.shape, strict=True))
    if not same:
        raise InputError(f"{name} has shape {list(dims)}, the baseline {list(array.shape)}", place)
    if array.dtype != DTYPES[dtype].storage:
        raise InputError(f"{name} has dtype {dtype}, the baseline {array.dtype}", place)
