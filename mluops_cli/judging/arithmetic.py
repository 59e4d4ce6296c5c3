"""Arithmetic on one block of both arrays: values widened, exact differences, sums of squares, largest ratios."""

from __future__ import annotations

import math
import threading
from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]

BLOCK: Final = 1 << 17  # elements; fixed, so that figures depend on neither threads nor memory
ROW: Final = 1 << 13  # a dot product this short stays on one BLAS thread, whatever the library was told
CAUTION: Final = 1 - 1e-12  # more than rounding can move a bound that is no subnormal number
SMALLEST: Final = math.nextafter(0.0, 1.0)
EPSILON: Final = 1e-9  # keeps a relative error finite where the baseline is zero
_HALF, _BFLOAT16 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
_HALF_SCALE: Final = 2.0**112
# What abs(b) and abs(m - b) have to stay below. Float32 and bfloat16: finite. Half: 2**15, so that what isn't finite,
# 2**16 or more, shows in the difference. Int32: 2**30, for if a difference below it had wrapped, m would be none.
_EXACT_BELOW: Final = {
    np.dtype(np.float32): math.inf,
    _BFLOAT16: math.inf,
    _HALF: 2.0**15 / _HALF_SCALE,
    np.dtype(np.int32): 2.0**30,
}
# More than rounding can move a bound in float32. Those of half, scaled, are subnormal numbers: they move by 2**-38 at
# most, and a difference is 2**-24 at least.
_CAUTION_SINGLE: Final = 1 - 2.0**-12


class Scratch:
    """The arrays one thread works in, allocated once: 3.3 MB in float64."""

    def __init__(self, wide: type[np.floating[Any]]) -> None:
        self.base, self.diff, self.ratio = (np.empty(BLOCK, wide) for _ in range(3))
        # Of 32 bits an element: two in the place of ratio and two in that of base.
        self.halves = [
            half for whole in (self.ratio, self.base) for half in whole.view(np.float32)[: 2 * BLOCK].reshape(2, BLOCK)
        ]
        self.mask = np.empty(BLOCK, np.bool_)


_local = threading.local()


def scratch_of_thread(wide: type[np.floating[Any]]) -> Scratch:
    held: dict[Any, Scratch] = _local.__dict__.setdefault("scratch", {})
    if wide not in held:
        held[wide] = Scratch(wide)
    return held[wide]


def _half_to_single(values: Array, out: Array) -> None:
    """Finite half values into float32, times 1 / _HALF_SCALE: exactly, and without NumPy's slow conversion.

    Their bits are shifted into a float32's place and the sign, extended, is masked. What isn't finite comes out as
    2**16 or more.
    """
    bits = out.view(np.int32)
    np.copyto(bits, values.view(np.int16))
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, np.int32(-0x70002000), out=bits)


def widen(values: Array, out: Array, spare: Array) -> None:
    """Copies real values into float64 or wider; spare is a float64 array that may be overwritten."""
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
    """base = b and diff = m - b of real arrays up to a block long, with their signs; spare is scratch."""
    wide_integer = b.dtype.kind in "iu" and b.dtype.itemsize == 8
    (_integer_differences if wide_integer else _plain_differences)(b, m, base, diff, spare)


def _integer_differences(b: Array, m: Array, base: Array, diff: Array, spare: Array) -> None:
    """Those of 64-bit integers, exact: the magnitude fits uint64, where subtraction wraps to the right value."""
    magnitude = spare.view(np.uint64)[: len(b)]
    less = m < b
    np.subtract(m.view(np.uint64), b.view(np.uint64), out=magnitude)
    np.negative(magnitude, out=magnitude, where=less)
    np.copyto(diff, magnitude)
    np.negative(diff, out=diff, where=less)
    np.copyto(base, b)


def squares(values: Array) -> Any:
    """The sum of squares of a block, the same on every run and for every number of BLAS threads."""
    whole = len(values) // ROW * ROW
    rows, rest = values[:whole], values[whole:]
    products = np.matmul(rows.reshape(-1, 1, ROW), rows.reshape(-1, ROW, 1))
    total = np.add.reduce(products.reshape(-1))
    return total + np.dot(rest, rest) if len(rest) else total


def _single(values: Array, out: Array) -> Array:
    """The values as float32: of int32 rounded, of half times 1 / _HALF_SCALE."""
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
    """A block of which most of m is near b: abs(b) and abs(m - b) in 32 bits, the latter not exact at far.

    Both are to be multiplied by scale, a power of two.
    """

    base: Array
    diff: Array
    largest: float  # of diff
    far: Array  # positions
    scale: float


def near_differences(b: Array, m: Array, scratch: Scratch, limit: float) -> Near | None:
    """abs(b) and abs(m - b) in half the time that float64 takes; None where this is not the way.

    Where abs(m - b) < abs(b) / 2 a float32 difference is exact (Sterbenz). far holds all other elements, all with
    abs(m - b) > limit * abs(b), and perhaps some more. None for other dtypes, for a value that isn't finite or is too
    large, and where more than one in 16 is far.
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
    """The largest r of diff3 in a block, or best where none is larger; floor below 0 means diff3_1.

    Dividing everything costs twice what finding the few elements that may exceed the best so far does.
    """
    np.multiply(base, best * CAUTION, out=ratio)
    if floor < 0:  # a bound that is a subnormal number may have been rounded up, by one half of the smallest at most
        np.maximum(np.subtract(ratio, SMALLEST, out=ratio), 0, out=ratio)
    candidates = np.count_nonzero(np.greater(diff, ratio, out=mask))
    if not candidates:
        return best
    if candidates < len(base) // 16:
        base, diff = base[mask], diff[mask]
        ratio, mask = np.empty_like(base), np.empty(len(base), np.bool_)
    return max(best, ratios(base, diff, floor, ratio, mask))


def ratios(base: Array, diff: Array, floor: float, ratio: Array, mask: Array) -> Any:
    """The largest r of diff3, at least one element; floor below 0 means diff3_1. ratio and mask are scratch."""
    # diff3_1 leaves zeros out: over Inf they come to 0.
    np.add(base, EPSILON if floor >= 0 else 0, out=ratio)
    if np.less_equal(base, max(floor, 0), out=mask).any():
        np.copyto(ratio, 1 if floor >= 0 else np.inf, where=mask)
    return np.maximum.reduce(np.divide(diff, ratio, out=ratio))


def agreeing(b: Array, m: Array, loose: bool) -> Array:
    """Where two float arrays are equal, any NaN equal to any NaN; loose: and all NaN and Inf equal to each other."""
    same: Array = ~np.isfinite(b) & ~np.isfinite(m) if loose else np.isnan(b) & np.isnan(m)
    same |= b == m
    return same
