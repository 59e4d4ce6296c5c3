"""An output held against its error bound: an error that no rounding explains is beyond it.

The bound is one number per element, NaN where none can be given, or one number for all of them: 0 for copies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from mluops_cli.judging.arithmetic import BLOCK, Array
from mluops_cli.judging.blocks import flat, map_blocks, same_bits, take

TWICE: Final = 2.0  # the largest difference of two correct outputs, in units of the bound


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
            return f"{place}no rounding explains this difference"
        return f"{place}{self.ratio:.3g} x what any order of {precision} additions explains"


def bound_ratio(baseline: Array, output: Array, bound: Array, *, threads: int = 1) -> BoundResult:
    """Return the largest |output - baseline| / bound over the elements that have a bound and a finite baseline.

    Infinite where the bound is 0 and they differ, or where the output is not finite; 0/0 is 0. The arrays have one
    shape and a floating dtype; bound is float32 of that shape, or of shape ().
    """
    b_flat, m_flat = flat(baseline), flat(output)
    bounds = None if bound.ndim == 0 else flat(bound)
    single = None if bounds is not None else np.float64(bound)

    def largest(start: int) -> tuple[float, int]:
        b, m = take(b_flat, start), take(m_flat, start)
        if same_bits(b, m, np.empty(len(b), np.bool_)):
            return 0.0, -1
        limit = single if bounds is None else bounds[start : start + BLOCK]
        return _largest(b, m, limit, start)

    best, where = 0.0, -1
    for ratio, position in map_blocks(largest, range(0, baseline.size, BLOCK), threads):
        if ratio > best:
            best, where = ratio, position
    index = None if where < 0 else tuple(map(int, np.unravel_index(where, baseline.shape)))
    return BoundResult(best, index)


def _largest(b: Array, m: Array, limit: Any, start: int) -> tuple[float, int]:
    """Return the largest ratio in a block and its flat position; -1 where no element differs."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
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
    return float(ratio[position]), start + position
