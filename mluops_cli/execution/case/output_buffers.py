"""Output buffers: filled with values that the operator can't produce, surrounded by canaries."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np
import xxhash

from mluops_cli.execution.case.sentinel import fill, sentinels
from mluops_cli.execution.kernel_process.case_memory import HOST, CaseMemory, mapped_file
from mluops_cli.implementations.canary_buffer import CanaryBuffer
from schemas.dtypes import DType
from schemas.tensor_descriptor import span
from schemas.wire.value_fields import part_dtype, shaped

Array = np.ndarray[Any, Any]

# Changes of 8 bits that make no value equal to the one before, nor a NaN of a NaN: of some of the exponent's bits.
_FLIPS: Final = np.array([flip for flip in range(256) if flip & 0x78], np.uint8)


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
        memory: CaseMemory = HOST,
    ) -> None:
        part, per_element = part_dtype(dtype)
        assert part.storage is not None
        count = span(shape, strides) * per_element
        self._memory = CanaryBuffer(count * part.storage.itemsize, memory.allocate)
        entry = np.empty(0, part.storage).real.dtype
        self._flat = self._memory.bytes.view(entry)
        self._baseline = baseline
        known = initial is not None
        values = np.array([initial], entry) if known else sentinels(entry, baseline)
        # A single sentinel would be the same in each repeat.
        self.sentinels: Array | None = values if known or len(values) > 1 else None
        self._shaped = partial(shaped, dtype=dtype, shape=shape, strides=strides)
        self.array: Array = self._shaped(self._flat)

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
        # All values occur in the baseline (8 bits): each element starts as another value than its baseline. It is drawn
        # where the implementation can't look: the same change of all elements could be undone.
        assert self._baseline is not None
        raw = np.zeros(self._flat.nbytes, np.uint8)
        own = self._shaped(raw.view(self._flat.dtype))
        np.copyto(own[tuple(map(slice, self._baseline.shape))], self._baseline)
        raw ^= np.random.default_rng().choice(_FLIPS, raw.size)
        np.copyto(self._flat.view(np.uint8), raw)

    def damage(self) -> str | None:
        """A phrase on what was written outside of it, None where nothing was."""
        return self._memory.corruption()


def digest(array: Array) -> int:
    """A hash of an array's elements, which shows whether it was written to."""
    dense: Any = array if array.flags.c_contiguous else np.ascontiguousarray(array)
    return xxhash.xxh3_64_intdigest(dense.reshape(-1).view(np.uint8))


def is_mapped(array: Array) -> bool:
    """Whether an array is a view of a memory-mapped file, which is mapped read-only."""
    return mapped_file(array) is not None
