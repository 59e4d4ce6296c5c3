"""Arithmetic on one block of two arrays: values widened, exact differences, sums of squares, largest ratios."""

from __future__ import annotations

import math
import threading
from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

BLOCK: Final = 1 << 17  # elements; fixed, so that metrics depend on neither threads nor memory
ROW: Final = 1 << 13  # elements; BLAS computes a dot product this short on one thread, whatever its settings
CAUTION: Final = 1 - 1e-12  # lowers a bound by more than rounding can raise it; not for subnormal bounds
SMALLEST: Final = math.nextafter(0.0, 1.0)
EPSILON: Final = 1e-9  # keeps a relative error finite where the baseline is zero
_HALF, _BFLOAT16 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
_HALF_SCALE: Final = 2.0**112
# Limits of abs(b) and abs(m - b) for near_differences. Float32 and bfloat16: finite. Half: 2**15; a value that isn't
# finite is 2**16 or more here, so it exceeds the limit. Int32: 2**30; no difference below it can come from wrapping.
_EXACT_BELOW: Final = {
    np.dtype(np.float32): math.inf,
    _BFLOAT16: math.inf,
    _HALF: 2.0**15 / _HALF_SCALE,
    np.dtype(np.int32): 2.0**30,
}
# Lowers a float32 limit by more than rounding can raise it. Limits of half values are scaled by 2**-112, so they are
# subnormal: rounding moves them by 2**-150 at most, and two half values, scaled, differ by 2**-136 at least.
_CAUTION_SINGLE: Final = 1 - 2.0**-12


class Scratch:
    """The arrays one thread works in, allocated once: 3.3 MB in float64."""

    def __init__(self, wide: type[np.floating[Any]]) -> None:
        self.base, self.diff, self.ratio = (np.empty(BLOCK, wide) for _ in range(3))
        # Four arrays with 32 bits an element: two share the memory of ratio, two that of base.
        self.halves = [
            half for whole in (self.ratio, self.base) for half in whole.view(np.float32)[: 2 * BLOCK].reshape(2, BLOCK)
        ]
        self.mask = np.empty(BLOCK, np.bool_)


_local = threading.local()


def scratch_of_thread(wide: type[np.floating[Any]]) -> Scratch:
    """Return the scratch arrays of this thread in the wide dtype (float64 or longdouble)."""
    held: dict[Any, Scratch] = _local.__dict__.setdefault("scratch", {})
    if wide not in held:
        held[wide] = Scratch(wide)
    return held[wide]


def _half_to_single(values: Array, out: Array) -> None:
    """Convert finite half values into float32, times 1 / _HALF_SCALE: exactly, and without NumPy's slow conversion.

    Their bits are shifted into a float32's place and the extended sign is masked. A value that isn't finite becomes
    2**16 or more (before the scale).
    """
    bits = out.view(np.int32)
    np.copyto(bits, values.view(np.int16))
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, np.int32(-0x70002000), out=bits)


def widen(values: Array, out: Array, spare: Array) -> None:
    """Copy real values into out, float64 or wider; spare is a float64 array that may be overwritten."""
    if values.dtype == _HALF and values.view(np.int16).max() < 0x7C00 and values.view(np.uint16).max() < 0xFC00:
        single = spare.view(np.float32)[: len(values)]
        _half_to_single(values, single)
        np.multiply(single, np.float32(_HALF_SCALE), out=single)
        np.copyto(out, single)
    else:
        np.copyto(out, values, casting="unsafe")


def _plain_differences(b: Array, m: Array, base: Array, diff: Array, spare: Array) -> None:
    widen(b, base, spare)
    widen(m, diff, spare)
    np.subtract(diff, base, out=diff)


def differences(b: Array, m: Array, base: Array, diff: Array, spare: Array) -> None:
    """Set base = b and diff = m - b of real arrays up to a block long, with their signs; spare may be overwritten."""
    wide_integer = b.dtype.kind in "iu" and b.dtype.itemsize == 8
    (_integer_differences if wide_integer else _plain_differences)(b, m, base, diff, spare)


def _integer_differences(b: Array, m: Array, base: Array, diff: Array, spare: Array) -> None:
    """Set the differences of 64-bit integers exactly: in uint64 the subtraction wraps to the right magnitude."""
    magnitude = spare.view(np.uint64)[: len(b)]
    less = m < b
    np.subtract(m.view(np.uint64), b.view(np.uint64), out=magnitude)
    np.negative(magnitude, out=magnitude, where=less)
    np.copyto(diff, magnitude)
    np.negative(diff, out=diff, where=less)
    np.copyto(base, b)


def squares(values: Array) -> Any:
    """Return the sum of squares of a block; equal on every run and for every number of BLAS threads."""
    whole = len(values) // ROW * ROW
    rows, rest = values[:whole], values[whole:]
    products = np.matmul(rows.reshape(-1, 1, ROW), rows.reshape(-1, ROW, 1))
    total = np.add.reduce(products.reshape(-1))
    return total + np.dot(rest, rest) if len(rest) else total


def _single(values: Array, out: Array) -> Array:
    """Return the values as float32: int32 rounded, half times 1 / _HALF_SCALE."""
    if values.dtype == np.float32:
        return values
    if values.dtype == _HALF:
        _half_to_single(values, out)
    elif values.dtype == _BFLOAT16:
        bits = out.view(np.uint32)
        np.copyto(bits, values.view(np.uint16))
        np.left_shift(bits, 16, out=bits)
    else:
        np.copyto(out, values, casting="unsafe")
    return out


class Near(NamedTuple):
    """A block in which most of m is near b: abs(b) and abs(m - b) in 32 bits, the latter inexact at the positions far.

    The true values are these times scale, a power of two.
    """

    base: Array
    diff: Array
    largest: float  # of diff
    far: Array  # positions
    scale: float


def near_differences(b: Array, m: Array, scratch: Scratch, limit: float) -> Near | None:
    """Return abs(b) and abs(m - b) in half the time that float64 takes; None where the fast way does not apply.

    Where abs(m - b) < abs(b) / 2 a float32 difference is exact (Sterbenz). far holds all other elements, all elements
    with abs(m - b) > limit * abs(b), and perhaps some more. The fast way does not apply to other dtypes, to values that
    are not finite or too large, and where more than one element in 16 is far.
    """
    below, size = _EXACT_BELOW.get(b.dtype), len(b)
    if below is None or b.dtype != m.dtype:
        return None
    whole = b.dtype.kind == "i"
    diff, base, bound, spare = (half[:size] for half in scratch.halves)
    if whole:
        diff, base, x, y = diff.view(np.int32), base.view(np.int32), b, m
    else:
        x, y = _single(b, base), _single(m, diff)
    np.abs(np.subtract(y, x, out=diff), out=diff)
    np.abs(x, out=base)
    magnitude = np.uint32 if whole else np.float32  # the magnitude of -2**31 is -2**31 to int32
    largest = np.maximum.reduce(diff.view(magnitude))
    if not largest < below or (below < math.inf and not np.maximum.reduce(base.view(magnitude)) < below):
        return None
    np.multiply(_single(base, bound), np.float32(min(limit, 0.5) * _CAUTION_SINGLE), out=bound)
    number = np.count_nonzero(np.greater(_single(diff, spare), bound, out=scratch.mask[:size]))
    if number > size // 16:
        return None
    scale = _HALF_SCALE if b.dtype == _HALF else 1.0
    return Near(base, diff, float(largest), np.flatnonzero(scratch.mask[:size]) if number else _NOWHERE, scale)


_NOWHERE: Final = np.empty(0, np.intp)


def largest_ratio(base: Array, diff: Array, best: Any, floor: float, ratio: Array, mask: Array) -> Any:
    """Return the largest r of diff3 in a block, or best where none is larger; a floor below 0 means diff3_1.

    Only elements that may exceed best are divided: that takes half the time of dividing all.
    """
    np.multiply(base, best * CAUTION, out=ratio)
    if floor < 0:  # a subnormal bound may have been rounded up, by half of the smallest number at most
        np.maximum(np.subtract(ratio, SMALLEST, out=ratio), 0, out=ratio)
    candidates = np.count_nonzero(np.greater(diff, ratio, out=mask))
    if not candidates:
        return best
    if candidates < len(base) // 16:
        base, diff = base[mask], diff[mask]
        ratio, mask = np.empty_like(base), np.empty(len(base), np.bool_)
    return max(best, ratios(base, diff, floor, ratio, mask))


def ratios(base: Array, diff: Array, floor: float, ratio: Array, mask: Array) -> Any:
    """Return the largest r of diff3 over one element or more; a floor below 0 means diff3_1."""
    # diff3_1 leaves out elements where b is 0: divided by Inf they give 0.
    np.add(base, EPSILON if floor >= 0 else 0, out=ratio)
    if np.less_equal(base, max(floor, 0), out=mask).any():
        np.copyto(ratio, 1 if floor >= 0 else np.inf, where=mask)
    return np.maximum.reduce(np.divide(diff, ratio, out=ratio))


def agreeing(b: Array, m: Array, loose: bool) -> Array:
    """Return where two float arrays are equal; NaN equals NaN. With loose, all NaN and Inf equal each other."""
    same: Array = ~np.isfinite(b) & ~np.isfinite(m) if loose else np.isnan(b) & np.isnan(m)
    same |= b == m
    return same
