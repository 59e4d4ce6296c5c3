"""One pass over baseline and output in blocks: the sums, maxima and counts that the criteria are made of."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
Flat = Any  # a one-dimensional array, or the flat iterator of a strided one: both are sliced in C order

BLOCK: Final = 1 << 16  # elements; fixed, so that figures depend on neither threads nor memory
ROW: Final = 1 << 13  # a dot product this short stays on one BLAS thread, whatever the library was told
HEAD: Final = 1 << 9  # where so many leading elements differ, comparing the whole block bit by bit is wasted
CAUTION: Final = 1 - 1e-12  # more than rounding can move a ratio
EPSILON: Final = 1e-9  # keeps a relative error finite where the baseline is zero


class Request(NamedTuple):
    """What a pass has to find out: names of criteria, diff3's floor (th), whether NaN and Inf are interchangeable."""

    names: frozenset[str]
    floor: float
    loose: bool


class Figures(NamedTuple):
    """Figures of one block or of a whole output. d = abs(m - b), taken where both are finite; positions are flat."""

    max_diff: float = 0.0
    sum_diff: float = 0.0
    sum_base: float = 0.0
    sum_diff2: float = 0.0
    sum_base2: float = 0.0
    max_ratio: float = 0.0  # diff3: d / (abs(b) + EPSILON) above the floor, else d
    max_ratio_nonzero: float = 0.0  # diff3_1: d / abs(b) where b is not 0
    nonzero: int = 0  # elements with b != 0; counted for diff3_1 only
    mismatched: int = 0  # NaN or Inf on one side only, or of different kinds
    first_mismatched: int | None = None

    @property
    def overflowed(self) -> bool:
        """Whether finite elements led to a figure beyond the range it was computed in."""
        return not all(map(np.isfinite, self[:7]))


class Scratch:
    """The arrays one thread works in, allocated once: 1.6 MB."""

    def __init__(self, wide: type[np.floating[Any]]) -> None:
        self.base, self.diff, self.ratio = (np.empty(BLOCK, wide) for _ in range(3))
        self.mask = np.empty(BLOCK, np.bool_)


@dataclass(slots=True)
class Best:
    """The largest ratios of the blocks done so far. Threads may overwrite each other's: that costs time only."""

    ratio: Any = 0.0
    nonzero: Any = 0.0


_local = threading.local()


def scratch_of_thread(wide: type[np.floating[Any]]) -> Scratch:
    held: dict[Any, Scratch] = _local.__dict__.setdefault("scratch", {})
    if wide not in held:
        held[wide] = Scratch(wide)
    return held[wide]


def flat(array: Array) -> Flat:
    """The array's elements in C order, sliceable without a copy of the whole."""
    if array.flags.c_contiguous:
        return array.reshape(-1)
    return array if array.ndim == 1 else array.flat


def take(elements: Flat, start: int) -> Array:
    """One block, in native byte order; bool as its bytes, for a byte that is neither 0 nor 1 is no bool."""
    block: Array = elements[start : start + BLOCK]
    if not block.dtype.isnative:
        block = block.astype(block.dtype.newbyteorder("="))
    if block.dtype == np.bool_:
        block = block.view(np.uint8)
    return block


def widen(values: Array, out: Array, spare: Array) -> None:
    """Copies real values into float64 or wider; spare is a float64 array that may be overwritten."""
    if values.dtype == np.float16 and values.view(np.int16).max() < 0x7C00 and values.view(np.uint16).max() < 0xFC00:
        # All finite. NumPy converts half one by one; shifting the bits into a float32's place takes half the time:
        # sign extended and masked, they read as the value times 2**-112.
        bits = spare.view(np.int32)[: len(values)]
        np.copyto(bits, values.view(np.int16))
        np.left_shift(bits, 13, out=bits)
        np.bitwise_and(bits, np.int32(-0x70002000), out=bits)
        single = bits.view(np.float32)
        np.multiply(single, np.float32(2.0**112), out=single)
        np.copyto(out, single)
    else:
        np.copyto(out, values, casting="unsafe")


def _float_differences(b: Array, m: Array, base: Array, diff: Array, spare: Array) -> None:
    widen(b, base, spare)
    widen(m, diff, spare)
    np.subtract(diff, base, out=diff)


def differences(b: Array, m: Array, base: Array, diff: Array, spare: Array) -> None:
    """base = b and diff = m - b of real arrays up to a block long, with their signs; spare is scratch."""
    wide_integer = b.dtype.kind in "iu" and b.dtype.itemsize == 8
    (_integer_differences if wide_integer else _float_differences)(b, m, base, diff, spare)


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
    rest = values[whole:]
    if not whole:
        return np.dot(rest, rest)
    rows = values[:whole]
    products = np.matmul(rows.reshape(-1, 1, ROW), rows.reshape(-1, ROW, 1))
    return np.add.reduce(products, axis=None) + np.dot(rest, rest)


def _denominators(base: Array, names: frozenset[str]) -> dict[str, Any]:
    """The figures of a block that depend on the baseline alone; base holds abs(b), 0 where not finite."""
    figures: dict[str, Any] = {}
    if "diff1" in names:
        figures["sum_base"] = np.add.reduce(base)
    if "diff2" in names:
        figures["sum_base2"] = squares(base)
    if "diff3_1" in names:
        figures["nonzero"] = int(np.count_nonzero(base))
    return figures


def _mismatches(b: Array, m: Array, base: Array, diff: Array, loose: bool) -> Array:
    """Sets base and diff to 0 where an element is not finite; returns where NaN and Inf don't agree."""
    b, m = (values.astype(base.dtype) for values in (b, m))
    finite = np.isfinite(b) & np.isfinite(m)
    base[~finite] = diff[~finite] = 0
    wrong: Array = ~(finite | agreeing(b, m, loose))
    return wrong


def agreeing(b: Array, m: Array, loose: bool) -> Array:
    """Where two float arrays are equal, any NaN equal to any NaN; loose: and all NaN and Inf equal to each other."""
    same: Array = ~np.isfinite(b) & ~np.isfinite(m) if loose else np.isnan(b) & np.isnan(m)
    same |= b == m
    return same


def _equal_block(b: Array, scratch: Scratch, request: Request) -> Figures:
    """The share in the denominators of a block whose output equals its baseline."""
    base = scratch.base[: len(b)]
    with np.errstate(all="ignore"):
        widen(b, base, scratch.ratio)
        np.abs(base, out=base)
        if not np.isfinite(np.max(base)):
            base[~np.isfinite(base)] = 0
        return Figures(**_denominators(base, request.names))


def _largest_ratio(base: Array, diff: Array, best: Any, floor: float, ratio: Array, mask: Array) -> Any:
    """The largest r of diff3 in a block, or best where none is larger; floor below 0 means diff3_1.

    Dividing everything costs twice what finding the few elements that may exceed the best so far does.
    """
    np.multiply(base, best * CAUTION, out=ratio)
    candidates = np.count_nonzero(np.greater(diff, ratio, out=mask))
    if not candidates:
        return best
    if candidates < len(base) // 16:
        base, diff = base[mask], diff[mask]
        ratio, mask = np.empty_like(base), np.empty(len(base), np.bool_)
    # diff3_1 leaves zeros out: over Inf they come to 0.
    np.add(base, EPSILON if floor >= 0 else 0, out=ratio)
    if np.less_equal(base, max(floor, 0), out=mask).any():
        np.copyto(ratio, 1 if floor >= 0 else np.inf, where=mask)
    return max(best, np.maximum.reduce(np.divide(diff, ratio, out=ratio)))


def _block(b: Array, m: Array, start: int, scratch: Scratch, request: Request, best: Best) -> Figures:
    """All figures of one block; best carries the largest ratios from block to block."""
    base, diff, ratio, mask = (part[: len(b)] for part in (scratch.base, scratch.diff, scratch.ratio, scratch.mask))
    names = request.names
    found: dict[str, Any] = {}
    with np.errstate(all="ignore"):
        differences(b, m, base, diff, scratch.ratio)
        np.abs(diff, out=diff)
        np.abs(base, out=base)
        max_diff = np.maximum.reduce(diff)
        if not np.isfinite(max_diff):
            wrong = _mismatches(b, m, base, diff, request.loose)
            max_diff = np.maximum.reduce(diff)
            if wrong.any():
                found |= {"mismatched": int(np.count_nonzero(wrong)), "first_mismatched": start + int(np.argmax(wrong))}
        found |= _denominators(base, names)
        if max_diff == 0:
            return Figures(**found)
        found["max_diff"] = max_diff
        if "diff1" in names:
            found["sum_diff"] = np.add.reduce(diff)
        if "diff2" in names:
            found["sum_diff2"] = squares(diff)
        if "diff3" in names:
            best.ratio = found["max_ratio"] = _largest_ratio(base, diff, best.ratio, request.floor, ratio, mask)
        if "diff3_1" in names:
            best.nonzero = found["max_ratio_nonzero"] = _largest_ratio(base, diff, best.nonzero, -1, ratio, mask)
    return Figures(**found)


def same_bits(b: Array, m: Array, mask: Array) -> bool:
    """Whether two blocks are equal bit for bit; cheap where they are not."""
    if b.dtype != m.dtype or b.dtype.itemsize not in (1, 2, 4, 8):
        return False
    bits = f"u{b.dtype.itemsize}"
    b, m = b.view(bits), m.view(bits)
    if not np.array_equal(b[:HEAD], m[:HEAD]):
        return False
    return not np.not_equal(b, m, out=mask[: len(b)]).any()


def _total(values: Iterable[Any], wide: type[np.floating[Any]]) -> Any:
    """The sum of the blocks' sums: exact in float64, in the blocks' order where they are wider."""
    if wide is not np.float64:
        return np.add.reduce(np.array(list(values), wide))
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def _gather(blocks: list[Figures], wide: type[np.floating[Any]]) -> Figures:
    """The figures of the whole from those of its blocks."""
    if not blocks:
        return Figures()
    columns = Figures(*zip(*blocks, strict=True))  # type: ignore[arg-type]
    whole: dict[str, Any] = {}
    for name, column in columns._asdict().items():
        if name.startswith("first"):
            whole[name] = min((position for position in column if position is not None), default=None)
        elif name.startswith("max"):
            whole[name] = max(column)
        else:
            whole[name] = _total(column, wide) if name.startswith("sum") else sum(column)
    return Figures(**whole)


def map_blocks(work: Callable[[int], Any], starts: Iterable[int], threads: int) -> Iterator[Any]:
    """work(start) of every block, in order, on so many threads (NumPy lets them run side by side)."""
    if threads == 1:
        yield from map(work, starts)
    else:
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(work, starts)


def measure(
    baseline: Array, output: Array, request: Request, *, threads: int = 1, wide: type[np.floating[Any]] = np.float64
) -> Figures:
    """Figures of an output against its baseline: arrays of one shape, real dtypes.

    A block that is equal bit for bit adds to no numerator; its share of the denominators is fetched only where
    another block differs, so an exact copy is judged at the speed of reading it. Finite doubles whose figures pass
    the range of float64 are measured again in long double.
    """
    b_all, m_all = flat(baseline), flat(output)
    best = Best()

    def differing(start: int) -> Figures | None:
        scratch = scratch_of_thread(wide)
        b, m = take(b_all, start), take(m_all, start)
        return None if same_bits(b, m, scratch.mask) else _block(b, m, start, scratch, request, best)

    def equal(start: int) -> Figures:
        return _equal_block(take(b_all, start), scratch_of_thread(wide), request)

    starts = range(0, baseline.size, BLOCK)
    found = list(map_blocks(differing, starts, threads))
    blocks = [block for block in found if block is not None]
    if any(block.max_diff for block in blocks) and request.names & {"diff1", "diff2", "diff3_1"}:
        skipped = (start for start, block in zip(starts, found, strict=True) if block is None)
        blocks += map_blocks(equal, skipped, threads)
    whole = _gather(blocks, wide)
    if whole.overflowed and wide is np.float64:
        return measure(baseline, output, request, threads=threads, wide=np.longdouble)
    return whole


class Unequal(NamedTuple):
    """How many elements differ, the flat position of the first, and how many exceed the baseline."""

    number: int = 0
    first: int | None = None
    greater: int = 0


def locate(baseline: Array, output: Array, *, loose: bool = False, threads: int = 1) -> Unequal:
    """Counts the unequal elements: a pass of its own, for a passing output doesn't need it."""
    b_all, m_all = flat(baseline), flat(output)

    def block(start: int) -> Unequal:
        b, m = take(b_all, start), take(m_all, start)
        if same_bits(b, m, scratch_of_thread(np.float64).mask):
            return Unequal()
        scratch, size = scratch_of_thread(np.float64), len(b)
        if b.dtype != m.dtype or not (b.dtype.kind in "iu" or b.dtype.itemsize >= 4):  # NumPy compares half slowly
            widen(b, scratch.base[:size], scratch.ratio)
            widen(m, scratch.diff[:size], scratch.ratio)
            b, m = scratch.base[:size], scratch.diff[:size]
        unequal = np.not_equal(b, m, out=scratch.mask[:size])
        greater = m > b
        if b.dtype.kind not in "iu" and not (np.isfinite(np.maximum.reduce(b)) and np.isfinite(np.minimum.reduce(b))):
            unequal &= ~agreeing(b, m, loose)
        if not unequal.any():
            return Unequal()
        return Unequal(int(np.count_nonzero(unequal)), start + int(np.argmax(unequal)), int(np.count_nonzero(greater)))

    blocks = list(map_blocks(block, range(0, baseline.size, BLOCK), threads))
    first = min((found.first for found in blocks if found.first is not None), default=None)
    return Unequal(sum(found.number for found in blocks), first, sum(found.greater for found in blocks))
