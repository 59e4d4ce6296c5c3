"""An output held against its error bound: an error that no rounding explains is beyond it.

The bound is one number per element, NaN where none can be given, or one number for all of them: 0 for copies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from mluops_cli.judging.arithmetic import BLOCK, Array, scratch_of_thread
from mluops_cli.judging.blocks import flat, map_blocks, same_bits, take

TWICE: Final = 2.0  # the largest difference of two correct outputs, in units of the bound
# A quotient in float32 is trusted from here on: no subnormal number, which is less precise, comes near.
_LEAST: Final = 2.0**-100


@dataclass(frozen=True, slots=True)
class BoundResult:
    """The largest error in units of the bound, and where it is; index is None where no element was judged."""

    ratio: float
    index: tuple[int, ...] | None

    @property
    def beyond(self) -> bool:
        """Whether no correct kernel computes this output."""
        return self.ratio > 1

    def as_record(self) -> dict[str, Any]:
        """Return the keys of an output's record: bound_ratio ("inf" where the bound is 0 or the output not finite)."""
        record: dict[str, Any] = {"bound_ratio": "inf" if math.isinf(self.ratio) else self.ratio}
        if self.index is not None and self.ratio > 0:
            record["bound_element"] = list(self.index)
        return record

    def sentence(self, precision: str) -> str:
        """Return where the error is largest and how far beyond; precision names the dtype of the accumulation."""
        place = "" if self.index is None else f"{list(self.index)}: "
        if math.isinf(self.ratio):
            return f"{place}no rounding in {precision} explains this difference"
        return f"{place}{self.ratio:.3g} x what any order of {precision} additions explains"


EXACT: Final = BoundResult(0.0, None)  # of an output whose bits are those of the baseline


def says_nothing(bound: Array) -> bool:
    """Whether no element has a bound, though there are elements."""
    return bool(bound.size and np.isnan(bound.flat[0]) and np.isnan(bound).all())


def bound_ratio(baseline: Array, output: Array, bound: Array, *, threads: int = 1) -> BoundResult:
    """Return the largest |output - baseline| / bound over the elements that have a bound and a finite baseline.

    Infinite where the bound is 0 and they differ, or where the output is not finite; 0/0 is 0. The arrays have one
    shape and a floating dtype; bound is float32 of that shape, or of shape (). An element whose ratio is larger by less
    than a part in a million may be passed over, but none above 1 (or 2) for one that is not.
    """
    b_flat, m_flat = flat(baseline), flat(output)
    bounds = None if bound.ndim == 0 else flat(bound)

    def largest(start: int) -> tuple[float, int]:
        b, m = take(b_flat, start), take(m_flat, start)
        scratch = scratch_of_thread(np.float64)
        ratio, mask = scratch.halves[0][: len(b)], scratch.mask[: len(b)]
        if same_bits(b, m, mask):
            return 0.0, -1
        limit = bound[()] if bounds is None else bounds[start : start + BLOCK]
        with np.errstate(all="ignore"):
            places = _largest_in_single(b, m, limit, ratio, mask)
            if places is None:
                found, place = _largest(b, m, limit)
                return found, start + place
            found, place = _largest(b[places], m[places], limit if bounds is None else limit[places])
            return found, start + int(places[place])

    best, where = 0.0, -1
    for ratio, position in map_blocks(largest, range(0, baseline.size, BLOCK), threads):
        if ratio > best:
            best, where = ratio, position
        if best == math.inf:
            break
    index = None if where < 0 else tuple(map(int, np.unravel_index(where, baseline.shape)))
    return BoundResult(best, index)


def _largest_in_single(b: Array, m: Array, limit: Any, ratio: Array, mask: Array) -> Array | None:
    """Return the positions of a block's largest ratio in float32; ratio and mask are overwritten.

    None where float32 can't tell: other dtypes, values that are not finite, ratios near the ends of the range. Rounding
    is monotonic, so a ratio rounded to more than 1 is more than 1; one rounded to 1 may be either, as for 2.
    """
    if b.dtype != np.float32 or m.dtype != np.float32:
        return None
    np.abs(np.subtract(m, b, out=ratio), out=ratio)
    if not np.maximum.reduce(ratio) < np.inf:
        return None
    largest = np.fmax.reduce(np.divide(ratio, limit, out=ratio))  # NaN is 0/0, or an element without a bound
    if not _LEAST < largest < np.inf:
        return None
    np.equal(ratio, largest, out=mask)
    return np.flatnonzero(mask) if largest in (1, TWICE) else mask.argmax(axis=0, keepdims=True)


def _largest(b: Array, m: Array, limit: Any) -> tuple[float, int]:
    """Return the largest ratio of some elements, in float64, and its position among them."""
    wide = b.astype(np.float64)
    error = np.abs(m.astype(np.float64) - wide)
    ratio = error / limit
    # 0/0 is NaN here: no error. NaN of a finite baseline is an output of NaN, or an element without a bound.
    odd = np.isnan(ratio)
    if odd.any():
        judged = np.isfinite(wide) & ~np.isnan(limit)
        ratio[odd] = np.where(judged[odd] & (error[odd] != 0), np.inf, 0.0)
    ratio[np.isinf(wide)] = 0.0
    position = int(ratio.argmax())
    return float(ratio[position]), position
