"""A lower precision of the output: rounded once at the end, or in every addition."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np

from mluops_cli.judging.arithmetic import Array
from mluops_cli.judging.explanations.evidence import Difference, fits
from mluops_cli.judging.patterns import ENOUGH, NARROW, Pattern, held_in, rounded_through

# dtype of the accumulation -> the error bound of a kernel that adds up in it, None where there is none
Accumulations = Callable[[str], Array | None]


def low_precision(difference: Difference, accumulated: Accumulations) -> Iterator[Pattern]:
    """Yield the narrow dtype that holds every element beyond the bound, and few of their baselines.

    Either rounding the result once explains them, or all elements are within the error bound of sums in that dtype,
    with a margin for rounding the terms and for overflow.
    """
    dtype = difference.baseline.dtype
    if dtype not in (np.float32, np.float64):
        return
    found = difference.elements()
    b, m, limit = found.at(found.beyond)
    name = held_in(m.astype(dtype), b.astype(dtype)) if np.count_nonzero(m) >= ENOUGH else ""
    if not name:
        return
    info = ml_dtypes.finfo(NARROW[name])  # type: ignore[no-untyped-call]
    unit, least = float(info.eps) / 2, float(info.smallest_subnormal) / 2
    if (np.abs(m - b) <= limit + unit * (np.abs(b) + limit) + least).all():
        yield rounded_through(name)
        return
    bound = accumulated(name)
    if bound is not None:
        whole = Difference(difference.baseline, difference.output, bound).elements()
        allowed = 2 * whole.limit + unit * np.abs(whole.baseline) + least  # the terms are rounded too
        terms = allowed / unit  # at least the sum of the absolute terms
        overflows = ~np.isfinite(whole.output) & (terms > float(info.max))
        if fits(whole.baseline, np.where(overflows, whole.baseline, whole.output), allowed):
            yield Pattern(f"sums in {name}", f"explained by sums in {name}")
