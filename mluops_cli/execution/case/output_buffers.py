"""Output buffers: filled with values that the operator can't produce, surrounded by canaries."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import xxhash

from mluops_cli.execution.case.sentinel import fill, sentinels
from mluops_cli.implementations.canary_buffer import CanaryBuffer
from schemas.dtypes import DType
from schemas.tensor_descriptor import span
from schemas.wire.value_fields import part_dtype, shaped

Array = np.ndarray[Any, Any]


class OutputBuffer:
    """The memory of one output: an array of the tensor's shape and strides for the implementation to write into.

    baseline (None where nothing is compared) is what the sentinels have to differ from. initial is the value that the
    contract says the caller sets instead. sentinels are the values (of parts, where complex) it is filled with, None
    where each element starts as something of its own.
    """

    def __init__(
        self,
        dtype: DType,
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None,
        baseline: Array | None,
        initial: int | None,
    ) -> None:
        part, per_element = part_dtype(dtype)
        assert part.storage is not None
        count = span(shape, strides) * per_element
        self._memory = CanaryBuffer(count * part.storage.itemsize)
        entry = np.empty(0, part.storage).real.dtype
        self._flat = self._memory.bytes.view(entry)
        self._baseline = baseline
        known = initial is not None
        values = np.array([initial], entry) if known else sentinels(entry, baseline)
        # A single sentinel would be the same in each repeat.
        self.sentinels: Array | None = values if known or len(values) > 1 else None
        self.array: Array = shaped(self._flat, dtype, shape, strides)

    @property
    def defined(self) -> Array:
        """The part of the array that the baseline defines: an output may have capacity for more rows."""
        return self.array if self._baseline is None else self.array[tuple(map(slice, self._baseline.shape))]

    def prepare(self, repeat: int) -> None:
        """Fill it for a call, each repeat (from 0) with other values."""
        self._memory.restore()
        if self.sentinels is not None:
            fill(self._flat, self.sentinels, repeat)
            return
        # All values occur in the baseline (bool, 8 bits): each element starts as another value than its baseline.
        assert self._baseline is not None
        raw = self._flat.view(np.uint8)
        raw[...] = 0
        np.copyto(self.defined, self._baseline)
        flip = 1 if self._flat.dtype == np.bool_ else (0x5A, 0xA5)[repeat % 2]
        np.bitwise_xor(raw, flip, out=raw)

    def damage(self) -> str | None:
        """A phrase on what was written outside of it, None where nothing was."""
        return self._memory.corruption()


def digest(array: Array) -> int:
    """A hash of an array's elements, which shows whether it was written to."""
    dense: Any = array if array.flags.c_contiguous else np.ascontiguousarray(array)
    return xxhash.xxh3_64_intdigest(dense.reshape(-1).view(np.uint8))


def is_mapped(array: Array) -> bool:
    """Whether an array is a view of a memory-mapped file, which is mapped read-only."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.base is None:
            return False
        base = base.base
    return isinstance(base.obj if isinstance(base, memoryview) else base, mmap.mmap)
