"""The outputs of repeated calls held against those of the first: identical, or different by as much as rounding allows.

Two correct kernels are each within the error bound B of the baseline, so that they are within 2B of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np

from generators.contracts.operator import Array
from mluops_cli.core.record import IDENTICAL, REPEAT_VERDICTS, VARIES_BEYOND, VARIES_UNBOUNDED, VARIES_WITHIN
from mluops_cli.judging.arithmetic import BLOCK
from mluops_cli.judging.blocks import flat, same_bits, take
from mluops_cli.judging.bounds import TWICE, bound_ratio, says_nothing
from mluops_cli.judging.verdict import OutputUnderTest


class Repeats:
    """Keeps a copy of the outputs of the first call; says per output how those of later calls differ from it.

    bounds gives the error bounds by output; it is called once, where outputs differ. Integers have none: any
    difference is beyond. A floating output without one only `varies`: it is unknown how much rounding explains.
    """

    def __init__(self, bounds: Callable[[], Mapping[str, Array]]) -> None:
        self._bounds = cache(bounds)
        self._first: dict[str, Array] = {}
        self.verdicts: dict[str, str] = {}

    def add(self, outputs: Sequence[OutputUnderTest]) -> None:
        """Take in the outputs of a call."""
        if not self._first:
            self._first = {each.name: each.output.copy() for each in outputs}
            self.verdicts = dict.fromkeys(self._first, IDENTICAL)
            return
        for each in outputs:
            self.verdicts[each.name] = max(self.verdicts[each.name], self._verdict(each), key=REPEAT_VERDICTS.index)

    def _verdict(self, item: OutputUnderTest) -> str:
        first = self._first[item.name]
        if same_elements(first, item.output):
            return IDENTICAL
        bound = self._bounds().get(item.name)
        if bound is None or says_nothing(bound):
            return VARIES_BEYOND if first.dtype.kind in "iub" else VARIES_UNBOUNDED
        if bound.ndim == 0 and not bound:  # copies: the sign of zero and the bits of a NaN count too
            return VARIES_BEYOND
        return VARIES_BEYOND if bound_ratio(first, item.output, bound).ratio > TWICE else VARIES_WITHIN


def same_elements(one: Array, other: Array) -> bool:
    """Whether two arrays of one shape and dtype hold the same bits, block by block."""
    first, second = flat(one), flat(other)
    mask = np.empty(BLOCK, np.bool_)
    return all(same_bits(take(first, at), take(second, at), mask) for at in range(0, one.size, BLOCK))
