"""One pass over baseline and output: the sums, maxima and counts that the criteria are computed from."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

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
from mluops_cli.judging.blocks import flat, map_blocks, same_bits, take

# Criteria and start of a block -> its metrics where the output equals the baseline: denominators only.
DenominatorCache = dict[tuple[frozenset[str], int], "Metrics"]


class Request(NamedTuple):
    """What a pass computes: the names of the criteria, diff3's floor (th), whether NaN and Inf are interchangeable.

    signed_zero: whether 0 and -0 are counted as different.
    """

    names: frozenset[str]
    floor: float
    loose: bool
    signed_zero: bool = False


class Metrics(NamedTuple):
    """Metrics of one block or of a whole output. d = abs(m - b) where both are finite; positions are flat."""

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
    wrong_zeros: int = 0  # elements where 0 and -0 stand for each other, counted if the request says so
    first_wrong_zero: int | None = None

    @property
    def overflowed(self) -> bool:
        """Whether finite elements gave a metric beyond the range of its dtype."""
        return not all(map(math.isfinite, self[:7]))


@dataclass(slots=True)
class Best:
    """Hints from the blocks done so far for the next ones. Threads may overwrite each other's: that only costs time."""

    ratio: Any = 0.0  # the largest, of diff3
    nonzero: Any = 0.0  # of diff3_1
    near: bool = True  # whether m is mostly near b


def _denominators(base: Array, names: frozenset[str]) -> dict[str, Any]:
    """Return the metrics of a block that depend on the baseline alone; base holds abs(b), 0 where not finite."""
    metrics: dict[str, Any] = {}
    if "diff1" in names:
        metrics["sum_base"] = np.add.reduce(base)
    if "diff2" in names:
        metrics["sum_base2"] = squares(base)
    if "diff3_1" in names:
        metrics["nonzero"] = int(np.count_nonzero(base))
    return metrics


def _mismatches(b: Array, m: Array, base: Array, diff: Array, loose: bool) -> Array:
    """Set base and diff to 0 where an element is not finite; return where NaN and Inf disagree."""
    b, m = (values.astype(base.dtype) for values in (b, m))
    finite = np.isfinite(b) & np.isfinite(m)
    base[~finite] = diff[~finite] = 0
    wrong: Array = ~(finite | agreeing(b, m, loose))
    return wrong


def _equal_block(b: Array, scratch: Scratch, request: Request) -> Metrics:
    """Return the metrics of a block whose output equals its baseline: denominators only."""
    base = scratch.base[: len(b)]
    with np.errstate(all="ignore"):
        widen(b, base, scratch.ratio)
        np.abs(base, out=base)
        if not np.isfinite(np.max(base)):
            base[~np.isfinite(base)] = 0
        return Metrics(**_denominators(base, request.names))


def _near_block(b: Array, m: Array, scratch: Scratch, request: Request, best: Best) -> Metrics | None:
    """Return the metrics of one block by the fast way of near_differences, None where it does not apply."""
    tracked = "diff3" in request.names
    with np.errstate(all="ignore"):
        found = near_differences(b, m, scratch, best.ratio if tracked else 1.0)
        if found is None:
            best.near = tracked and not best.ratio  # without a ratio so far, every difference may be the largest
            return None
        # One float64 array serves for both, one after the other: it stays in the processor's cache.
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
    """Return the metrics, ratios aside, of values multiplied by a power of two, which rounds nothing."""
    sums = {name: getattr(metrics, name) * scale for name in ("max_diff", "sum_diff", "sum_base")}
    return metrics._replace(**sums, sum_diff2=metrics.sum_diff2 * scale**2, sum_base2=metrics.sum_base2 * scale**2)


def _block(b: Array, m: Array, start: int, scratch: Scratch, request: Request, best: Best) -> Metrics:
    """Return all metrics of one block; best passes the largest ratios from block to block."""
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


def _with_wrong_zeros(metrics: Metrics, b: Array, m: Array, start: int) -> Metrics:
    """Return the metrics of a block with the count of zeros that have the other sign."""
    with np.errstate(invalid="ignore"):
        wrong = (b == 0) & (m == 0) & (np.signbit(b) != np.signbit(m))
    number = int(np.count_nonzero(wrong))
    return metrics._replace(wrong_zeros=number, first_wrong_zero=start + int(np.argmax(wrong))) if number else metrics


def _metrics(
    diff: Array, max_diff: Any, ratio: Any, nonzero: Any, denominators: dict[str, Any], names: frozenset[str]
) -> Metrics:
    """Return the metrics of a block from diff = abs(m - b) and what is known already."""
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


def _total(values: Iterable[Any], wide: type[np.floating[Any]]) -> Any:
    """Return the sum of the blocks' sums: exact in float64, in the blocks' order where they are wider."""
    if wide is not np.float64:
        return np.add.reduce(np.array(list(values), wide))
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def _gather(blocks: list[Metrics], wide: type[np.floating[Any]]) -> Metrics:
    """Return the metrics of the whole from those of its blocks."""
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


def measure(
    baseline: Array,
    output: Array,
    request: Request,
    *,
    threads: int = 1,
    wide: type[np.floating[Any]] = np.float64,
    cache: DenominatorCache | None = None,
) -> tuple[Metrics, list[int]]:
    """Return the metrics of an output against its baseline (one shape, real dtypes), and the starts of unequal blocks.

    A block that is equal bit for bit adds to no numerator. Its part of the denominators is computed only where another
    block differs: an exact copy is judged at the speed of reading it. cache keeps these parts for the next output that
    is compared with the same baseline. Where finite doubles give a metric beyond the range of float64, everything is
    computed again in long double.
    """
    b_all, m_all = flat(baseline), flat(output)
    best = Best()

    def differing(start: int) -> Metrics | None:
        scratch = scratch_of_thread(wide)
        b, m = take(b_all, start), take(m_all, start)
        if same_bits(b, m, scratch.mask):
            return None
        metrics = _block(b, m, start, scratch, request, best)
        return _with_wrong_zeros(metrics, b, m, start) if request.signed_zero else metrics

    denominators = {} if cache is None else cache

    def equal(start: int) -> Metrics:
        key = request.names, start
        if key not in denominators:
            denominators[key] = _equal_block(take(b_all, start), scratch_of_thread(wide), request)
        return denominators[key]

    starts = range(0, baseline.size, BLOCK)
    found = list(map_blocks(differing, starts, threads))
    blocks = [block for block in found if block is not None]
    if any(block.max_diff for block in blocks) and request.names & {"diff1", "diff2", "diff3_1"}:
        skipped = (start for start, block in zip(starts, found, strict=True) if block is None)
        blocks += map_blocks(equal, skipped, threads)
    whole = _gather(blocks, wide)
    if wide is np.float64 and whole.overflowed:
        return measure(baseline, output, request, threads=threads, wide=np.longdouble)
    return whole, [start for start, block in zip(starts, found, strict=True) if block is not None]
