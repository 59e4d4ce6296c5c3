"""Memory for an implementation to write to: aligned, between canary bytes that show a write out of bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from schemas.suggest import counted

Array = np.ndarray[Any, Any]

CANARY_BYTES: Final = 4096  # on each side: a whole lost row or tile falls into them, and a check takes a microsecond
ALIGNMENT: Final = 64
CANARY: Final = 0xA5
_INTACT: Final = bytes([CANARY]) * CANARY_BYTES


def _of_this_process(size: int) -> Array:
    return np.empty(size, np.uint8)


class CanaryBuffer:
    """size writable bytes at a multiple of 64, uninitialised, with canary bytes before and after."""

    def __init__(self, size: int, allocate: Callable[[int], Array] = _of_this_process) -> None:
        raw = allocate(CANARY_BYTES + size + CANARY_BYTES + ALIGNMENT)
        start = CANARY_BYTES + (-(raw.__array_interface__["data"][0] + CANARY_BYTES)) % ALIGNMENT
        self.bytes: Array = raw[start : start + size]
        self._before = raw[start - CANARY_BYTES : start]
        self._after = raw[start + size : start + size + CANARY_BYTES]
        self.restore()

    def restore(self) -> None:
        """Write the canaries anew."""
        self._before[:] = CANARY
        self._after[:] = CANARY

    def corruption(self) -> str | None:
        """Return which canary bytes were overwritten, None where all are intact."""
        if self._before.tobytes() == self._after.tobytes() == _INTACT:
            return None
        return corruption(self._before, self._after)


def corruption(before: Array, after: Array, *, canary: int = CANARY) -> str | None:
    """Return which of the canary bytes before and after some memory were overwritten, None where all are intact."""
    if (hit := np.flatnonzero(after != canary)).size:
        where = f"{counted(hit[0], 'byte')} behind" if hit[0] else "directly behind"
        return f"written out of bounds, {where} the end ({counted(hit.size, 'canary byte')} changed)"
    if (hit := np.flatnonzero(before != canary)).size:
        where = f"{counted(len(before) - hit[0], 'byte')} before the start"
        return f"written out of bounds, {where} ({counted(hit.size, 'canary byte')} changed)"
    return None


def memory_of(array: Array) -> Array:
    """Return the bytes from an array's first element to its last, the gaps of a strided one included.

    The result is a flat uint8 view of the same memory.
    """
    if array.flags.c_contiguous:
        return array.reshape(-1).view(np.uint8)
    steps = ((size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True))
    count = sum(steps) + array.itemsize if array.size else 0
    first = array[(slice(0, 1),) * array.ndim].reshape(-1)
    return np.lib.stride_tricks.as_strided(first.view(np.uint8), (count,), (1,), writeable=array.flags.writeable)
