"""The machine the device algorithms run on: cores in clusters, each with a small on-chip memory, and main memory.

A kernel walks over its cores one after the other. All it computes on lies in memory allocated from a core's OnChip;
going beyond that is an error, as on the device. Source: section 3 of the design documents.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from schemas.suggest import counted

Array = np.ndarray[Any, Any]

NFU_ALIGN: Final = 128  # bytes that the vector unit wants its operands' sizes to be a multiple of
_UNDEFINED: Final = 0xA5  # the bytes of on-chip memory before it is written: no right answer by chance
_ATOMIC_ORDER: Final = 20220530  # seed of the order in which atomic additions arrive


class OnChipLimitError(Exception):
    """A kernel asked for more on-chip memory than a core has."""


@dataclass(frozen=True, slots=True)
class Machine:
    """nram: bytes of on-chip memory per core; clusters of `cores` cores each.

    The defaults are 640 KiB (design documents: MAX_NRAM_SIZE), 4 cores per cluster (a job of type U1) and 4 clusters.
    """

    nram: int = 640 * 1024
    clusters: int = 4
    cores: int = 4

    @property
    def tasks(self) -> int:
        """Number of cores in all (taskDim)."""
        return self.clusters * self.cores

    def core(self) -> OnChip:
        """The on-chip memory of a core."""
        return OnChip(self.nram)

    def part(self, parts: int, itemsize: int) -> int:
        """Elements of one of `parts` equal parts of the memory, each rounded down to 128 bytes (PAD_DOWN)."""
        nbytes = self.nram // parts // NFU_ALIGN * NFU_ALIGN
        if nbytes == 0:
            raise OnChipLimitError(f"{parts} parts of {NFU_ALIGN} bytes or more don't fit, a core has {self.nram}")
        return nbytes // itemsize


class OnChip:
    """The on-chip memory of one core; its content is undefined until written, and stays when allocated anew."""

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes
        self._memory: Array = np.full(nbytes, _UNDEFINED, np.uint8)
        self._used = 0

    def alloc(self, elements: int, dtype: Any) -> Array:
        """A flat array on chip; OnChipLimitError beyond the memory's size."""
        dtype = np.dtype(dtype)
        start = -(-self._used // dtype.itemsize) * dtype.itemsize
        stop = start + elements * dtype.itemsize
        if stop > self.nbytes:
            raise OnChipLimitError(
                f"{counted(elements, 'element')} of {dtype} take {stop} bytes on chip with those in use, "
                f"a core has {self.nbytes}"
            )
        self._used = stop
        return self._memory[start:stop].view(dtype)

    def free(self) -> None:
        """Give back all that was allocated."""
        self._used = 0


def split(units: range, parts: int) -> Iterator[range]:
    """Yield parts of consecutive units: the first len(units) % parts have one more; empty parts are left out."""
    size, extra = divmod(len(units), parts)
    start = 0
    for part in range(min(parts, len(units))):
        stop = start + size + (part < extra)
        yield units[start:stop]
        start = stop


def tiles(units: range, size: int) -> Iterator[range]:
    """Consecutive tiles of at most `size` units, the remainder last."""
    for start in range(0, len(units), size):
        yield units[start : start + size]


def span(units: range) -> slice:
    """The slice of a tensor's axis that consecutive units cover."""
    return slice(units.start, units.stop)


def shaped(buffer: Array, *shape: int) -> Array:
    """The first elements of a flat buffer, seen in a shape."""
    return buffer[: math.prod(shape)].reshape(shape)


def transpose(source: Array, target: Array, chip: OnChip) -> None:
    """target = source.T for matrices in main memory, by tiles that are transposed on chip."""
    rows, columns = source.shape
    capacity = max(1, chip.nbytes // (2 * source.itemsize))
    height = min(rows, max(math.isqrt(capacity), capacity // max(columns, 1)))
    width = min(columns, capacity // max(height, 1))
    chip.free()
    loaded, turned = (chip.alloc(height * width, source.dtype) for _ in range(2))
    for down in tiles(range(rows), height):
        for across in tiles(range(columns), width):
            tile = shaped(loaded, len(down), len(across))
            tile[...] = source[span(down), span(across)]
            result = shaped(turned, len(across), len(down))
            result[...] = tile.T
            target[span(across), span(down)] = result


def arrival_order() -> np.random.Generator:
    """Return the generator of the order in which atomic additions arrive: any order, but equal in every run."""
    return np.random.default_rng(_ATOMIC_ORDER)


def shuffled(loads: list[range], order: np.random.Generator) -> Iterator[range]:
    """Yield the loads of all cores in the order of their atomic additions."""
    for index in order.permutation(len(loads)):
        yield loads[index]


def atomic_add(target: Array, rows: Array, values: Array, order: np.random.Generator) -> None:
    """target[rows[i]] += values[i] for every i at the values' own precision, in a shuffled order.

    Rows may repeat: values of one row are summed up in the order of arrival, then added to the target.
    """
    if rows.size == 0:
        return
    arrived = order.permutation(rows.size)
    arrived = arrived[np.argsort(rows[arrived], kind="stable")]  # per row still in the order of arrival
    rows = rows[arrived]
    first = np.empty(rows.size, bool)
    first[0] = True
    np.not_equal(rows[1:], rows[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    target[rows[starts]] += np.add.reduceat(values[arrived], starts, axis=0)
