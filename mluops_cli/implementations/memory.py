"""Memory handed to an implementation: aligned, with guard bytes before and after that show a write out of bounds."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

GUARD: Final = 4096  # bytes on each side: a lost row or tile lands in them, and looking costs a microsecond
ALIGNMENT: Final = 64
_PATTERN: Final = 0xA5
_POISON: Final = 0xFF


class CanaryBuffer:
    """size writable bytes at a multiple of 64, between two guards; the bytes themselves are not initialised."""

    def __init__(self, size: int) -> None:
        raw = np.empty(GUARD + size + GUARD + ALIGNMENT, np.uint8)
        start = GUARD + (-(raw.ctypes.data + GUARD)) % ALIGNMENT
        self.bytes: np.ndarray[Any, Any] = raw[start : start + size]
        self.whole = raw[start - GUARD : start + size + GUARD]  # with the guards
        self._before = raw[start - GUARD : start]
        self._after = raw[start + size : start + size + GUARD]
        self.restore()

    def restore(self) -> None:
        """Write the guards anew."""
        self._before[:] = _PATTERN
        self._after[:] = _PATTERN

    def damage(self) -> str | None:
        """Which guard was overwritten and where, None where both are whole."""
        if (hit := np.flatnonzero(self._after != _PATTERN)).size:
            return f"written out of bounds, {hit[0]} bytes behind the end ({hit.size} guard bytes changed)"
        if (hit := np.flatnonzero(self._before != _PATTERN)).size:
            return f"written out of bounds, {GUARD - hit[0]} bytes before the start ({hit.size} guard bytes changed)"
        return None


def workspace(size: int) -> CanaryBuffer:
    """Memory to hand out as a workspace, each byte 0xFF: NaN in every float, -1 in every signed integer.

    Fresh memory of the system is zeroed, and would hide that a kernel presumes it so.
    """
    memory = CanaryBuffer(size)
    memory.bytes[:] = _POISON
    return memory


def memory_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The bytes from an array's first element to its last, gaps of a strided one included: a flat view, not a copy."""
    steps = ((size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True))
    count = sum(steps) + array.itemsize if array.size else 0
    first = array.reshape(-1)[:1] if array.flags.c_contiguous else array[(slice(0, 1),) * array.ndim].reshape(-1)
    return np.lib.stride_tricks.as_strided(first.view(np.uint8), (count,), (1,), writeable=array.flags.writeable)
