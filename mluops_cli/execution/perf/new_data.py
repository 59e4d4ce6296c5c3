"""A prepared case with other values: what an implementation has kept from earlier calls is wrong for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from generators.contracts.bound_case import BoundCase
from generators.contracts.operator import Arrays
from mluops_cli.core.case_options import CaseOptions
from mluops_cli.execution.case.calls import Prepared
from mluops_cli.execution.case.output_buffers import Array, OutputBuffer, digest
from schemas.errors import InputError

_STEP: Final = 7919  # elements; a prime, so that hardly a size of an axis divides it


class NewData(NamedTuple):
    """A case with other values; show puts them where the implementation finds them."""

    prepared: Prepared
    show: Callable[[], None]


def with_new_data(prepared: Prepared, turn: int, options: CaseOptions) -> NewData | None:
    """The case with other values in its floating inputs, others for each turn (from 1), and the reference's baseline.

    None where it has no floating input, an input is missing or has gaps, or the contract excludes the values.
    """
    bound, memory = prepared.bound, prepared.memory
    given = {name: array for name, array in prepared.call.inputs.items() if array is not None}
    floating = [name for name, array in given.items() if bound.inputs[name].dtype.is_float and array.size > 1]
    dense = all(array.flags.c_contiguous for array in given.values())
    if bound.operator is None or not (floating and prepared.baseline and dense) or len(given) < len(bound.inputs):
        return None
    inputs = {name: _changed(array, turn) if name in floating else array for name, array in given.items()}
    try:
        bound.check_values(inputs)
    except InputError:
        return None
    computed = bound.computed(inputs)
    baseline = {name: computed[name].astype(each.dtype, copy=False) for name, each in prepared.baseline.items()}
    if any(computed[name].shape != each.shape for name, each in prepared.baseline.items()):
        return None
    outputs = {name: _buffer(prepared, name, baseline.get(name)) for name in prepared.outputs}
    hidden = {name: memory.hidden(inputs[name]) for name in floating}
    call = replace(
        prepared.call,
        inputs={name: hidden[name][0] if name in hidden else memory.placed(array) for name, array in inputs.items()},
        outputs={name: outputs[name].array if name in outputs else None for name in prepared.call.outputs},
    )
    new = replace(
        prepared,
        calls=(call,),
        outputs=outputs,
        baseline=baseline,
        references=baseline,
        bounds=_bounds(bound, inputs, baseline, options),
        undecided=bound.undecided(inputs),
        digests={name: digest(array) for name, array in inputs.items()},
    )

    def show() -> None:
        for _, write in hidden.values():
            write()

    return NewData(new, show)


def _changed(array: Array, turn: int) -> Array:
    """The values rolled; at odd turns also halved, which is exact and has another sum."""
    rolled = np.roll(array, turn * _STEP % array.size or 1)
    return rolled * array.dtype.type(0.5) if turn % 2 else rolled


def _buffer(prepared: Prepared, name: str, baseline: Array | None) -> OutputBuffer:
    record, operator = prepared.bound.outputs[name], prepared.bound.operator
    assert operator is not None
    fill = next(each.fill for each in operator.contract.outputs if each.name == name)
    return OutputBuffer(record.dtype, record.shape, record.strides, baseline, fill, prepared.memory)


def _bounds(bound: BoundCase, inputs: Arrays, baseline: Arrays, options: CaseOptions) -> Arrays:
    """The error bounds of these values: those that the file stores are of others."""
    if options.bound == "off" or bound.operator is None:
        return {}
    wanted = options.accumulate or bound.accumulate
    return bound.operator.bounds(inputs, bound.shapes, bound.params, baseline, wanted)
