"""Arrays of any layout in blocks of a fixed size, one after the other or on several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np

from mluops_cli.judging.arithmetic import BLOCK, Array

Flat = Any  # a one-dimensional array, or the flat iterator of a strided one: both are sliced in C order

HEAD: Final = 1 << 9  # elements; where these differ already, the rest of the block is not compared bit by bit


def flat(array: Array) -> Flat:
    """Return the array's elements in C order, which can be sliced without a copy of the whole."""
    if array.flags.c_contiguous:
        return array.reshape(-1)
    return array if array.ndim == 1 else array.flat


def take(elements: Flat, start: int) -> Array:
    """Return one block in native byte order; bool as bytes, since an output may hold bytes other than 0 and 1."""
    block: Array = elements[start : start + BLOCK]
    if not block.dtype.isnative:
        block = block.astype(block.dtype.newbyteorder("="))
    if block.dtype == np.bool_:
        block = block.view(np.uint8)
    return block


def same_bits(b: Array, m: Array, mask: Array) -> bool:
    """Return whether two blocks are equal bit for bit; quick where they are not."""
    if b.dtype != m.dtype or b.dtype.itemsize not in (1, 2, 4, 8):
        return False
    bits = f"u{b.dtype.itemsize}"
    b, m = b.view(bits), m.view(bits)
    if b[:HEAD].tobytes() != m[:HEAD].tobytes():
        return False
    return not np.not_equal(b, m, out=mask[: len(b)]).any()


def map_blocks(work: Callable[[int], Any], starts: Iterable[int], threads: int) -> Iterator[Any]:
    """Yield work(start) of every block, in order, on so many threads (NumPy releases the interpreter lock)."""
    if threads == 1:
        yield from map(work, starts)
    else:
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(work, starts)
