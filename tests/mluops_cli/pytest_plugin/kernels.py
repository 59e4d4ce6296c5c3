"""Callables for `python:`: right but for what their names say."""

from __future__ import annotations

from typing import Any

import numpy as np

from generators.operator_registry import operators
from generators.parameters import as_tuples

Arrays = dict[str, Any]
Params = dict[str, Any]


def right(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """All outputs by the reference kernel, and the counts that it knows; BAD_PARAM for psa_type 2."""
    if params.get("psa_type", 0) not in (0, 1):
        return "BAD_PARAM"
    operator = operators()[op]
    shapes = {name: array.shape for name, array in (inputs | outputs).items()}
    found = operator.baseline(inputs, shapes, as_tuples(params))
    for name, array in found.items():
        outputs[name][tuple(map(slice, array.shape))] = array
    return {"status": "SUCCESS", **operator.contract.counts(found)}


def silent(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Returns no counts."""
    right(op, inputs, outputs, params)


def shifted(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Elements are one place further along the last axis."""
    right(op, inputs, outputs, params)
    y = next(iter(outputs.values()))
    y[...] = np.roll(y, 1, axis=-1)


def imprecise(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Within the thresholds, beyond the error bound of sums."""
    right(op, inputs, outputs, params)
    y = next(iter(outputs.values()))
    y[...] = y * np.float32(1 + 2e-4)


def unwritten(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    pass


def outside(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    """Writes four bytes behind the first output."""
    right(op, inputs, outputs, params)
    y = next(iter(outputs.values()))
    np.lib.stride_tricks.as_strided(y.reshape(-1)[-1:], (2,), (4,))[1] = 7


def raises(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    raise ArithmeticError("no such mask")


def refuses(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    return "NOT_SUPPORTED"


def bad_param(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    return 3


def nonsense(op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
    return "FINE"


class Right:
    """A class of such."""

    def __call__(self, op: str, inputs: Arrays, outputs: Arrays, params: Params) -> Any:
        return right(op, inputs, outputs, params)
