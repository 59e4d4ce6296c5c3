"""The workspace protocol of every adapter: when its size is asked for, and what is handed out.

A valid call asks the operator for the size and gets as much. An invalid call can't ask: the operator may refuse the
question. It gets SPARE bytes, so that the operator has no reason to refuse the workspace. The faults
`workspace:null` and `workspace:short` omit or shorten the workspace of a call that is valid otherwise.
"""

from __future__ import annotations

from typing import Final

from generators.contracts.faults import WORKSPACE_SHORT
from mluops_cli.implementations.base import Call, CannotShow
from mluops_cli.implementations.call_contract import violations
from mluops_cli.implementations.canary_buffer import CanaryBuffer

SPARE: Final = 1 << 28  # bytes; not initialised, so that only address space is used
POISON: Final = 0xFF  # NaN in every float, -1 in every signed integer; fresh memory is 0 and would hide a missing reset


def size_is_asked(call: Call) -> bool:
    """Return whether the operator is asked for the size: the call is valid and complete, but for its workspace."""
    if any(array is None for array in (*call.inputs.values(), *call.outputs.values())):
        return False
    others = [fault for fault in call.faults if not (fault.of_workspace or fault.of_size_query)]
    return not (others or violations(call))


def granted_bytes(call: Call, needed: int | None) -> int | None:
    """Return the bytes to hand out, None for a null workspace.

    needed is the operator's answer, None where it was not asked. CannotShow where the call omits a workspace that
    the operator does not need.
    """
    if needed is None:
        return SPARE
    if not any(fault.of_workspace for fault in call.faults):
        return needed
    if needed == 0:
        raise CannotShow("needs a workspace of 0 bytes, so it can't be too small or null")
    return needed - 1 if WORKSPACE_SHORT in call.faults else None


def poisoned(size: int) -> CanaryBuffer:
    """Return a workspace in host memory, each byte POISON; one of SPARE bytes is left as the system gives it."""
    memory = CanaryBuffer(size)
    if size != SPARE:
        memory.bytes[:] = POISON
    return memory
