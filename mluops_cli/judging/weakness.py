"""Why a pass proves little: a baseline of zeros or of one value, or thresholds that an output of zeros meets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from mluops_cli.judging.arithmetic import BLOCK, EPSILON, SMALLEST, Array, scratch_of_thread, squares, widen
from mluops_cli.judging.blocks import flat, take
from mluops_cli.judging.divergence import JUDGED_FROM as KL_FROM
from mluops_cli.judging.metrics import DIFF3_FLOOR, DIFF4_FROM, parts_of
from schemas.criteria import Criterion

CONSTANT_FROM: Final = 16  # elements; fewer may be equal by chance
NEARLY_ALL: Final = 0.99  # fraction of zeros from which a pass proves little
_JUDGED_FROM: Final = {"diff4": DIFF4_FROM, "diff_kl": KL_FROM}  # elements


def weakness(baseline: Array, dtype: str, expected_zero_fraction: float) -> str:
    """Return why wrong outputs too would agree with a baseline of one element or more; empty where they wouldn't."""
    zeros = _zero_fraction(baseline)
    if zeros >= NEARLY_ALL and zeros > expected_zero_fraction:
        fraction = "all" if zeros == 1 else f"{zeros:.4%}"
        return f"{fraction} of the baseline is 0, an output left at 0 would pass or nearly so"
    numbers = baseline.view(np.uint32) if dtype == "complex_half" else baseline
    if zeros < 1 and numbers.size >= CONSTANT_FROM and _constant(numbers):
        return f"all {numbers.size} values of the baseline are the same"
    return ""


def _zero_fraction(array: Array) -> float:
    """Return the fraction of zeros; 0 where it is below NEARLY_ALL, found without reading on."""
    elements, found = flat(array), 0
    for start in range(0, array.size, BLOCK):
        found += int(np.count_nonzero(take(elements, start)))
        if found > (1 - NEARLY_ALL) * array.size:
            return 0.0
    return 1 - found / array.size


def _constant(array: Array) -> bool:
    """Return whether all elements are equal bit for bit; stops at the first block that isn't."""
    elements = flat(array)
    if elements[:1].tobytes() != elements[array.size - 1 :].tobytes():  # as a rule
        return False
    for start in range(0, array.size, BLOCK):
        block = np.ascontiguousarray(take(elements, start))
        rows = block.view(np.uint8).reshape(len(block), -1)
        if start == 0:
            first = rows[0].copy()
        if not (rows == first).all():
            return False
    return True


def swallowed(baseline: Array, criteria: Sequence[Criterion], dtype: str) -> str:
    """Return why an output of zeros, or one with all signs flipped, passes too: the baseline is that small.

    Only sums of the baseline are needed: for zeros |m - b| is |b|, with flipped signs 2 |b|. Reading stops as soon as
    both fail, which is in the first block as a rule. Empty for a baseline of zeros (weakness judges it), and where
    diff4 or diff_kl are judged.
    """
    if any(baseline.size >= _JUDGED_FROM.get(each.name, baseline.size + 1) for each in criteria):
        return ""
    passing = {"an output of zeros": 1, "one with all signs flipped": 2}
    anything = False
    for part, values in parts_of(baseline, dtype):
        limits = [
            (each.name, each.threshold if part != "imag" or each.imaginary is None else each.imaginary)
            for each in criteria
        ]
        for sums in _growing_sums(values, DIFF3_FLOOR.get(dtype, 0.0)):
            anything = anything or bool(sums.largest)
            passing = {what: factor for what, factor in passing.items() if sums.meet(factor, limits)}
            if not passing:
                return ""
    listed = " and ".join(passing)
    return f"the baseline is so small that {listed} would pass too" if anything else ""


class _Sums:
    """Sums over the finite elements that were read: |b|, b^2, and the largest |b|. They start with one element or 0."""

    def __init__(self, floor: float, first: Any = 0.0) -> None:
        self.floor = floor
        self.total = self.largest = first
        self.total2 = first * first
        self.nan = self.infinite = False

    def add(self, base: Array) -> None:
        """Add one block of |b|."""
        largest = base.max()
        if not np.isfinite(largest):
            self.nan = self.nan or bool(np.isnan(base).any())
            self.infinite = self.infinite or bool(np.isinf(base).any())
            base = base[np.isfinite(base)]
            largest = base.max(initial=0.0)
        if not largest:
            return
        self.total += np.add.reduce(base)
        self.total2 += squares(base)
        self.largest = max(self.largest, largest)

    @property
    def ratio(self) -> Any:
        """The diff3 of zeros; it grows with |b|."""
        return self.largest / (self.largest + EPSILON) if self.largest > self.floor else self.largest

    def meet(self, factor: int, limits: Sequence[tuple[str, float]]) -> bool:
        """Whether an output whose difference is factor times |b| everywhere meets all criteria (name, threshold)."""
        if self.infinite or (self.nan and factor == 1):
            return False
        least = SMALLEST if self.largest else 0.0  # squares underflow; a threshold of 0 still means equality
        return all(
            name not in _OF_ZEROS or max(factor * _OF_ZEROS[name](self), least) <= limit for name, limit in limits
        )


# The criteria of an output of zeros.
_OF_ZEROS: Final[dict[str, Callable[[_Sums], Any]]] = {
    "diff1": lambda sums: sums.total / (sums.total + EPSILON),
    "diff2": lambda sums: np.sqrt(sums.total2 / (sums.total2 + EPSILON)),
    "diff3": lambda sums: sums.ratio,
    "diff3_1": lambda sums: float(sums.largest > 0),
    "diff3_2": lambda sums: sums.largest,
}


def _growing_sums(values: Array, floor: float) -> Iterator[_Sums]:
    """Yield the sums of a real array after each of its blocks; before that, those of one element, the largest so far.

    Sums only grow, so that one element decides as a rule.
    """
    elements, sums = flat(values), _Sums(floor)
    scratch = scratch_of_thread(np.float64)
    for start in range(0, values.size, BLOCK):
        block = take(elements, start)
        base = scratch.base[: len(block)]
        with np.errstate(all="ignore"):
            widen(block, base, scratch.ratio)
            np.abs(base, out=base)
            if not start and np.isfinite(largest := base.max()):
                yield _Sums(floor, largest)
            sums.add(base)
            yield sums
