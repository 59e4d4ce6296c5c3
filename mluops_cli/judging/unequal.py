"""The unequal elements of an output: how many, where the first one is, how many are above the baseline."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from mluops_cli.judging.arithmetic import Array, agreeing, scratch_of_thread, widen
from mluops_cli.judging.blocks import flat, map_blocks, take


class Unequal(NamedTuple):
    """How many elements differ, the flat position of the first one, and how many exceed the baseline."""

    number: int = 0
    first: int | None = None
    greater: int = 0


def locate(baseline: Array, output: Array, starts: Iterable[int], *, loose: bool = False, threads: int = 1) -> Unequal:
    """Count the unequal elements of the blocks that start there: a second pass, which no passing output needs."""
    b_all, m_all = flat(baseline), flat(output)

    def block(start: int) -> Unequal:
        b, m = take(b_all, start), take(m_all, start)
        scratch, size = scratch_of_thread(np.float64), len(b)
        if b.dtype != m.dtype or not (b.dtype.kind in "iu" or b.dtype.itemsize >= 4):  # NumPy compares half slowly
            with np.errstate(all="ignore"):  # converting a signalling NaN raises a flag
                widen(b, scratch.base[:size], scratch.ratio)
                widen(m, scratch.diff[:size], scratch.ratio)
            b, m = scratch.base[:size], scratch.diff[:size]
        unequal = np.not_equal(b, m, out=scratch.mask[:size])
        greater = m > b
        if b.dtype.kind not in "iu" and not (np.isfinite(np.maximum.reduce(b)) and np.isfinite(np.minimum.reduce(b))):
            unequal &= ~agreeing(b, m, loose)
        if not unequal.any():
            return Unequal()
        number, above = (int(np.count_nonzero(where)) for where in (unequal, greater & unequal))
        return Unequal(number, start + int(np.argmax(unequal)), above)

    blocks = list(map_blocks(block, starts, threads))
    first = min((found.first for found in blocks if found.first is not None), default=None)
    return Unequal(sum(found.number for found in blocks), first, sum(found.greater for found in blocks))
