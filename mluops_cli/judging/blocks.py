"""One pass over baseline and output in blocks: the sums, maxima and counts that the criteria are made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from mluops_cli.judging.arithmetic import (
    BLOCK,
    Array,
    Scratch,
    agreeing,
    differences,
    largest_ratio,
    near_differences,
    ratios,
    scratch_of_thread,
    squares,
    widen,
)

# Criteria and start of a block -> its figures where the output equals the baseline: denominators only.
Known = dict[tuple[frozenset[str], int], "Metrics"]
Flat = Any  # a one-dimensional array, or the flat iterator of a strided one: both are sliced in C order

HEAD: Final = 1 << 9  # where so many leading elements differ, comparing the whole block bit by bit is wasted


class Request(NamedTuple):
    """What a pass has to find out: names of criteria, diff3's floor (th), whether NaN and Inf are interchangeable."""

    names: frozenset[str]
    floor: float
    loose: bool


class Metrics(NamedTuple):
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


@dataclass(slots=True)
class Best:
    """What the blocks done so far say of the next. Threads may overwrite each other's: that costs time only."""

    ratio: Any = 0.0  # the largest, of diff3
    nonzero: Any = 0.0  # of diff3_1
    near: bool = True  # whether m is mostly near b


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


def _denominators(base: Array, names: frozenset[str]) -> dict[str, Any]:
    """The figures of a block that depend on the baseline alone; base holds abs(b), 0 where not finite."""
    metrics: dict[str, Any] = {}
    if "diff1" in names:
        metrics["sum_base"] = np.add.reduce(base)
    if "diff2" in names:
        metrics["sum_base2"] = squares(base)
    if "diff3_1" in names:
        metrics["nonzero"] = int(np.count_nonzero(base))
    return metrics


def _mismatches(b: Array, m: Array, base: Array, diff: Array, loose: bool) -> Array:
    """Sets base and diff to 0 where an element is not finite; returns where NaN and Inf don't agree."""
    b, m = (values.astype(base.dtype) for values in (b, m))
    finite = np.isfinite(b) & np.isfinite(m)
    base[~finite] = diff[~finite] = 0
    wrong: Array = ~(finite | agreeing(b, m, loose))
    return wrong


def _equal_block(b: Array, scratch: Scratch, request: Request) -> Metrics:
    """The share in the denominators of a block whose output equals its baseline."""
    base = scratch.base[: len(b)]
    with np.errstate(all="ignore"):
        widen(b, base, scratch.ratio)
        np.abs(base, out=base)
        if not np.isfinite(np.max(base)):
            base[~np.isfinite(base)] = 0
        return Metrics(**_denominators(base, request.names))


def _near_block(b: Array, m: Array, scratch: Scratch, request: Request, best: Best) -> Metrics | None:
    """All figures of one block in the quick way, None where that is not the way for it."""
    tracked = "diff3" in request.names
    with np.errstate(all="ignore"):
        found = near_differences(b, m, scratch, best.ratio if tracked else 1.0)
        if found is None:
            best.near = tracked and not best.ratio  # while there is no ratio yet, every difference is a large one
            return None
        # One float64 array for both, one after the other: what stays in the cache decides the speed.
        values, far = scratch.base[: len(b)], found.far
        np.copyto(values, found.base)
        denominators = _denominators(values, request.names)
        max_diff, largest = found.largest, best.ratio
        if not len(far):
            np.copyto(values, found.diff)
        else:
            far_base = values[far] * found.scale
            np.copyto(values, found.diff)
            far_diff = np.abs(m[far].astype(np.float64) - b[far].astype(np.float64))
            values[far] = far_diff / found.scale
            max_diff = np.maximum.reduce(values)
            if tracked:
                spare = np.empty_like(far_base), np.empty(len(far), np.bool_)
                best.ratio = largest = max(largest, ratios(far_base, far_diff, request.floor, *spare))
        metrics = _metrics(values, max_diff, largest, 0.0, denominators, request.names)
        return metrics if found.scale == 1 else _scaled(metrics, found.scale)


def _scaled(metrics: Metrics, scale: float) -> Metrics:
    """Figures, but for ratios, of values that are to be multiplied by a power of two, which rounds nothing."""
    sums = {name: getattr(metrics, name) * scale for name in ("max_diff", "sum_diff", "sum_base")}
    return metrics._replace(**sums, sum_diff2=metrics.sum_diff2 * scale**2, sum_base2=metrics.sum_base2 * scale**2)


def _block(b: Array, m: Array, start: int, scratch: Scratch, request: Request, best: Best) -> Metrics:
    """All figures of one block; best carries the largest ratios from block to block."""
    names = request.names
    if best.near and scratch.base.dtype == np.float64 and "diff3_1" not in names:
        quick = _near_block(b, m, scratch, request, best)
        if quick is not None:
            return quick
    base, diff, ratio, mask = (part[: len(b)] for part in (scratch.base, scratch.diff, scratch.ratio, scratch.mask))
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
                found = {"mismatched": int(np.count_nonzero(wrong)), "first_mismatched": start + int(np.argmax(wrong))}
        largest = nonzero = 0.0
        if max_diff and "diff3" in names:
            best.ratio = largest = largest_ratio(base, diff, best.ratio, request.floor, ratio, mask)
        if max_diff and "diff3_1" in names:
            best.nonzero = nonzero = largest_ratio(base, diff, best.nonzero, -1, ratio, mask)
        denominators = _denominators(base, names)
        metrics = _metrics(diff, max_diff, largest, nonzero, denominators, names)
        return metrics._replace(**found) if found else metrics


def _metrics(
    diff: Array, max_diff: Any, ratio: Any, nonzero: Any, denominators: dict[str, Any], names: frozenset[str]
) -> Metrics:
    """The figures of a block; diff holds abs(m - b), everything else is known."""
    if not max_diff:
        return Metrics(**denominators)
    return Metrics(
        max_diff=max_diff,
        sum_diff=np.add.reduce(diff) if "diff1" in names else 0.0,
        sum_diff2=squares(diff) if "diff2" in names else 0.0,
        max_ratio=ratio,
        max_ratio_nonzero=nonzero,
        **denominators,
    )


def same_bits(b: Array, m: Array, mask: Array) -> bool:
    """Whether two blocks are equal bit for bit; cheap where they are not."""
    if b.dtype != m.dtype or b.dtype.itemsize not in (1, 2, 4, 8):
        return False
    bits = f"u{b.dtype.itemsize}"
    b, m = b.view(bits), m.view(bits)
    if b[:HEAD].tobytes() != m[:HEAD].tobytes():
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


def _gather(blocks: list[Metrics], wide: type[np.floating[Any]]) -> Metrics:
    """The figures of the whole from those of its blocks."""
    if not blocks:
        return Metrics()
    columns = Metrics(*zip(*blocks, strict=True))  # type: ignore[arg-type]
    whole: dict[str, Any] = {}
    for name, column in columns._asdict().items():
        if name.startswith("first"):
            whole[name] = min((position for position in column if position is not None), default=None)
        elif name.startswith("max"):
            whole[name] = max(column)
        else:
            whole[name] = _total(column, wide) if name.startswith("sum") else sum(column)
    return Metrics(**whole)


def map_blocks(work: Callable[[int], Any], starts: Iterable[int], threads: int) -> Iterator[Any]:
    """work(start) of every block, in order, on so many threads (NumPy lets them run side by side)."""
    if threads == 1:
        yield from map(work, starts)
    else:
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(work, starts)


def measure(
    baseline: Array,
    output: Array,
    request: Request,
    *,
    threads: int = 1,
    wide: type[np.floating[Any]] = np.float64,
    known: Known | None = None,
) -> tuple[Metrics, list[int]]:
    """Figures of an output against its baseline (one shape, real dtypes), and where the blocks start that differ.

    A block that is equal bit for bit adds to no numerator; its share of the denominators is fetched only where
    another block differs, so an exact copy is judged at the speed of reading it; known remembers it for the next output
    that is measured against the same baseline. Finite doubles whose figures pass the range of float64 are measured
    again in long double.
    """
    b_all, m_all = flat(baseline), flat(output)
    best = Best()

    def differing(start: int) -> Metrics | None:
        scratch = scratch_of_thread(wide)
        b, m = take(b_all, start), take(m_all, start)
        return None if same_bits(b, m, scratch.mask) else _block(b, m, start, scratch, request, best)

    remembered = {} if known is None else known

    def equal(start: int) -> Metrics:
        key = request.names, start
        if key not in remembered:
            remembered[key] = _equal_block(take(b_all, start), scratch_of_thread(wide), request)
        return remembered[key]

    starts = range(0, baseline.size, BLOCK)
    found = list(map_blocks(differing, starts, threads))
    blocks = [block for block in found if block is not None]
    if any(block.max_diff for block in blocks) and request.names & {"diff1", "diff2", "diff3_1"}:
        skipped = (start for start, block in zip(starts, found, strict=True) if block is None)
        blocks += map_blocks(equal, skipped, threads)
    whole = _gather(blocks, wide)
    if whole.overflowed and wide is np.float64:
        return measure(baseline, output, request, threads=threads, wide=np.longdouble)
    return whole, [start for start, block in zip(starts, found, strict=True) if block is not None]


class Unequal(NamedTuple):
    """How many elements differ, the flat position of the first, and how many exceed the baseline."""

    number: int = 0
    first: int | None = None
    greater: int = 0


def locate(baseline: Array, output: Array, starts: Iterable[int], *, loose: bool = False, threads: int = 1) -> Unequal:
    """Counts the unequal elements of the blocks that start there: a pass of its own, no passing output needs it."""
    b_all, m_all = flat(baseline), flat(output)

    def block(start: int) -> Unequal:
        b, m = take(b_all, start), take(m_all, start)
        scratch, size = scratch_of_thread(np.float64), len(b)
        if b.dtype != m.dtype or not (b.dtype.kind in "iu" or b.dtype.itemsize >= 4):  # NumPy compares half slowly
            with np.errstate(all="ignore"):  # a signalling NaN is no news
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
