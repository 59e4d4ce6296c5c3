"""One call of an implementation besides the case's own: buffers of its own, no case file, no baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from generators.contracts.checks import violations
from generators.contracts.model import Contract
from generators.parameters import as_lists
from mluops_cli.execution.case.output_buffers import Array, OutputBuffer
from mluops_cli.execution.kernel_process.case_memory import CaseMemory
from mluops_cli.execution.kernel_process.timed_call import Kernel, KernelLost, timed_call, words_of
from mluops_cli.implementations.base import (
    AdapterError,
    BadAnswer,
    Call,
    CannotShow,
    Crashed,
    OutOfBounds,
)
from schemas.dtypes import DTYPES
from schemas.status import NOT_SUPPORTED, SUCCESS
from schemas.tensor_descriptor import Descriptor

Outputs = dict[str, OutputBuffer] | str | None


def called(
    kernel: Kernel,
    contract: Contract,
    inputs: Mapping[str, Array],
    params: Mapping[str, Any],
    descriptors: Mapping[str, Descriptor],
    memory: CaseMemory,
) -> Outputs:
    """The outputs of a call; a sentence where there are none, None where the contract excludes the call.

    descriptors names the tensors in the contract's order. CannotShow where the implementation can't be given the call,
    or answers NOT_SUPPORTED: that is no fault.
    """
    if violations(contract, descriptors, params):
        return None
    outputs = {
        spec.name: OutputBuffer(DTYPES[each.dtype], each.dims, None, None, spec.fill, memory)
        for spec in contract.given(params).outputs
        for each in (descriptors[spec.name],)
    }
    for buffer in outputs.values():
        buffer.prepare(0)
    call = Call(
        contract.op,
        {name: memory.placed(_read_only(array)) for name, array in inputs.items()},
        {name: buffer.array for name, buffer in outputs.items()},
        as_lists(params),
        descriptors,
    )
    try:
        outcome = timed_call(kernel, call).outcome
    except (CannotShow, AdapterError, KernelLost):
        raise
    except (OutOfBounds, Crashed, BadAnswer) as verdict:
        return str(verdict)
    except BaseException as raised:  # also SystemExit and KeyboardInterrupt
        return f"raised {words_of(raised)[0]}"
    damage = [f"{name}: {text}" for name, buffer in outputs.items() if (text := buffer.damage())]
    damage += [f"{text} of input {name!r}" for name, array in _given(call) if (text := memory.stray(array))]
    if damage:
        return damage[0]
    if outcome.status == NOT_SUPPORTED:
        raise CannotShow(f"answers {NOT_SUPPORTED}")
    return outputs if outcome.status == SUCCESS else f"answers {outcome.status}, expected {SUCCESS}"


def _given(call: Call) -> Iterator[tuple[str, Array]]:
    return ((name, array) for name, array in call.inputs.items() if array is not None)


def _read_only(array: Array) -> Array:
    seen: Array = array.view()
    seen.flags.writeable = False
    return seen
