"""When something explains an output: every element fits, and enough of them would not fit by chance.

An element fits an expected value where rounding explains the difference. An element that the baseline does not explain
and the expected value does is evidence: a value that is |m - b| off lies within e of the expected one with a
probability of about e / |m - b|, so that it counts log2(|m - b| / e) bits, and at most BITS_EACH. e is what rounding
explains, and half a step where values are coarse, such as integers. Zeros are no evidence: many faults give them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import ml_dtypes
import numpy as np

from mluops_cli.judging.arithmetic import Array
from mluops_cli.judging.blocks import flat

LOOKED_AT: Final = 1 << 20  # elements, spread over the output
BITS_EACH: Final = 8.0
BITS_ENOUGH: Final = 16.0  # one chance in 65536
FEW_ULP: Final = 8  # explained by rounding, in units in the last place, where there is no error bound


class Elements(NamedTuple):
    """Baseline, output and what rounding explains between them: float64, of one shape."""

    baseline: Array
    output: Array
    limit: Array  # NaN: not judged

    @property
    def beyond(self) -> Array:
        """Where both are finite and no rounding explains the difference."""
        with np.errstate(invalid="ignore"):
            error = np.abs(self.output - self.baseline)
            mask: Array = np.isfinite(error) & (error > self.limit)
        return mask

    def at(self, where: Any) -> Elements:
        """The elements of a mask or an index."""
        return Elements(self.baseline[where], self.output[where], self.limit[where])


@dataclass(frozen=True, slots=True)
class Difference:
    """An output beside its baseline, of one shape and dtype; bound is the error bound, None where there is none."""

    baseline: Array
    output: Array
    bound: Array | None = None

    @property
    def explainable(self) -> bool:
        """Whether the elements are real numbers that float64 holds."""
        dtype = self.baseline.dtype
        return dtype.kind in "fV" or (dtype.kind in "iu" and dtype.itemsize <= 4)

    @property
    def half_ulp(self) -> float:
        """The unit roundoff of the dtype; 0 for integers."""
        dtype = self.baseline.dtype
        return 0.0 if dtype.kind in "iu" else float(ml_dtypes.finfo(dtype).eps) / 2  # type: ignore[no-untyped-call]

    def elements(self) -> Elements:
        """Up to LOOKED_AT elements, spread evenly; flat. The step is odd, so that no channel is left out."""
        step = -(-self.baseline.size // LOOKED_AT) | 1 if self.baseline.size > LOOKED_AT else 1
        b, m = (np.asarray(flat(array)[::step]).astype(np.float64) for array in (self.baseline, self.output))
        bound = self.bound
        return Elements(b, m, self.limit(b, bound if bound is None or not bound.ndim else flat(bound)[::step]))

    def rows(self) -> Elements:
        """All elements, a row per value of all axes but the last."""
        b, m = (np.asarray(array, np.float64).reshape(-1, array.shape[-1]) for array in (self.baseline, self.output))
        bound = self.bound
        return Elements(b, m, self.limit(b, bound if bound is None or not bound.ndim else bound.reshape(b.shape)))

    def limit(self, expected: Array, bound: Array | None) -> Array:
        """What rounding explains per element: the bound, without one FEW_ULP, for integers 0."""
        if bound is not None:
            return np.broadcast_to(np.asarray(bound, np.float64), expected.shape)
        with np.errstate(invalid="ignore"):
            return 2 * FEW_ULP * self.half_ulp * np.where(np.isfinite(expected), np.abs(expected), 0)

    def evidence(self, elements: Elements) -> float:
        """The bits by which elements, all of which fit an expected value within limit, speak for it."""
        b, m, limit = elements.at(elements.beyond & (elements.output != 0))
        resolution = np.maximum(self.half_ulp * np.abs(m), _step(np.concatenate((b, m))) / 2)
        with np.errstate(divide="ignore"):
            bits = np.log2(np.abs(m - b) / np.maximum(limit, resolution))
        return float(np.clip(bits, 0, BITS_EACH).sum())


def _step(values: Array) -> float:
    """The largest power of two that all values are multiples of; 0 without any."""
    mantissas, exponents = np.frexp(values[values != 0])
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    lowest = np.ldexp((whole & -whole).astype(np.float64), exponents - 53)
    return float(lowest.min(initial=np.inf)) if lowest.size else 0.0


def fits(expected: Array, output: Array, limit: Array) -> bool:
    """Whether every element is within the limit of the expected one; NaN and Inf must agree."""
    with np.errstate(invalid="ignore"):
        near = np.abs(output - expected) <= limit
        odd = ~np.isfinite(expected)
        same = (output == expected) | (np.isnan(output) & np.isnan(expected))
    return bool(np.where(odd, same, near | np.isnan(limit)).all())
