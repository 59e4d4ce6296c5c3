"""The bound of a sum of n terms, added in any order (Higham 2002, section 4.2)."""

from __future__ import annotations

import numpy as np

from generators.error_bounds.precision import Array, Rounding, stored


def sum_bound(terms: Array, counts: Array, baseline: Array, rounding: Rounding) -> Array:
    """gamma(n - 1) S + the output's rounding + n t per element, float32.

    terms is S, the sum of the absolute values, counts the number n of terms (broadcast over terms), baseline the
    rounded sum. One term is a copy: 0, or t where it may be flushed; no term gives 0. An accumulation coarser than the
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
