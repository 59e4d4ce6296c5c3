"""Unit roundoffs, and what the roundings of a sum and of an output amount to.

Source: N. Higham, Accuracy and Stability of Numerical Algorithms, 2002, sections 2.2 and 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Precision:
    """A floating dtype: its unit roundoff, its smallest normal number and its largest number."""

    unit: float
    smallest: float
    largest: float


PRECISIONS: Final[Mapping[str, Precision]] = {
    "half": Precision(2.0**-11, 2.0**-14, 65504.0),
    "bfloat16": Precision(2.0**-8, 2.0**-126, (2 - 2.0**-7) * 2.0**127),
    "float": Precision(2.0**-24, 2.0**-126, (2 - 2.0**-23) * 2.0**127),
    "double": Precision(2.0**-53, 2.0**-1022, (2 - 2.0**-52) * 2.0**1023),
}


@dataclass(frozen=True, slots=True)
class Rounding:
    """The precision that a kernel accumulates in and that of its output: u, t and what rounding the output adds."""

    accumulation: Precision
    output: Precision

    @property
    def unit(self) -> float:
        """u: the unit roundoff of the accumulation."""
        return self.accumulation.unit

    @property
    def smallest(self) -> float:
        """t: the smallest normal number of the coarser precision; it covers flushed subnormal numbers."""
        return max(self.accumulation.smallest, self.output.smallest)

    def gamma(self, k: Array) -> Array:
        """k u / (1 - k u) per element of k; NaN, which is no answer, where k u is 1/2 or more."""
        product = np.maximum(k, 0) * self.unit
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(product < 0.5, product / (1 - product), np.nan)

    def of_output(self, baseline: Array, rest: Array) -> Array:
        """What rounding the result to the output's dtype adds to the bound `rest`; baseline is the rounded one."""
        if self.accumulation.unit < self.output.unit:
            return 2 * self.output.unit * (np.abs(baseline) + rest)
        return self.output.unit * np.abs(baseline)


def rounding(accumulation: str, output: str) -> Rounding:
    """The roundings of a kernel that accumulates in one dtype and stores its output in another, for sum_bound.

    Dtypes by name: "half", "bfloat16", "float", "double"; KeyError for another.
    """
    return Rounding(PRECISIONS[accumulation], PRECISIONS[output])


def rounded_up(bound: Array) -> Array:
    """Numbers of 0 or more, or NaN, as float32 that are not smaller."""
    with np.errstate(over="ignore"):
        narrow = bound.astype(np.float32)
    up = narrow.view(np.int32)  # the next float32 has the next bits
    up += narrow < bound
    return narrow


def stored(bound: Array, terms: Any, baseline: Array, output: Precision) -> Array:
    """The bound as float32, rounded up; NaN, which is no answer, where none can be given (set_unknown)."""
    narrow = rounded_up(bound)
    set_unknown(narrow, terms, baseline, output)
    return narrow


def set_unknown(bound: Array, terms: Any, baseline: Array, output: Precision) -> None:
    """Put NaN, which is no answer, into a float32 bound where none can be given.

    terms is the sum of the absolute values that the element is made of: where terms + bound overflow the output's dtype
    a partial sum may. baseline, where it is not finite, has no bound either.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        known = np.isfinite(baseline)
        known &= terms + bound <= output.largest
    if not known.all():
        bound[~known] = np.nan
