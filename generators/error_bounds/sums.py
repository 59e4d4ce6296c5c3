"""The bound of a sum of n terms, added in any order (Higham 2002, section 4.2)."""

from __future__ import annotations

import numpy as np

from generators.error_bounds.precision import Array, Rounding, stored


def sum_bound(terms: Array, counts: Array, baseline: Array, rounding: Rounding) -> Array:
    """How far sums of n terms may be from the baseline: gamma(n - 1) S + the output's rounding + n t, in float32.

    terms is S per element, the sum of the absolute values, in float64 and of the output's shape; counts is n, broadcast
    over terms; baseline is the rounded sum. n products count as n + 1 terms. NaN, which is no answer, where a partial
    sum may overflow. Source: Higham 2002, section 4.2; docs/judging.md.

    One term is a copy: 0, or t where it may be flushed; no term gives 0. An accumulation coarser than the
    terms rounds the first one too when it is added to zero: the zero counts as a term then, n + 1 stands for n.
    """
    t = rounding.smallest
    if rounding.accumulation.unit > rounding.output.unit:
        counts = np.where(counts > 0, counts + 1, 0)
    with np.errstate(invalid="ignore", over="ignore"):
        rest = rounding.gamma(counts - 1) * terms + counts * t
        bound = rest + rounding.of_output(baseline, rest)
    copied = np.where((np.abs(baseline) < t) & (baseline != 0), t, 0.0)
    bound = np.where(counts > 1, bound, np.where(counts == 1, copied, 0.0))
    return stored(bound, terms, baseline, rounding.output)
