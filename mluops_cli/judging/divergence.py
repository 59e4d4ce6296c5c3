"""diff_kl: how far the distributions of two outputs' magnitudes lie apart."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from mluops_cli.judging.arithmetic import BLOCK, Array
from mluops_cli.judging.blocks import flat, map_blocks, take

FLOOR: Final = 1e-10  # smaller magnitudes are raised to it
JUDGED_FROM: Final = 1000  # elements; fewer make no distribution


def kl_divergence(baseline: Array, output: Array, *, threads: int = 1) -> float:
    """Return the symmetric Kullback-Leibler divergence, KL(P, Q) + KL(Q, P), of two real arrays of one shape.

    P and Q are the magnitudes, floored and normalised, of the elements that are finite in both. The first pass computes
    the sums: (P - Q) * log(P / Q) of normalised values loses less to cancellation than sums of values that are not.
    """
    b_all, m_all = flat(baseline), flat(output)
    starts = range(0, baseline.size, BLOCK)

    def magnitudes(start: int) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):  # converting a signalling NaN raises a flag
            b, m = (take(elements, start).astype(np.float64) for elements in (b_all, m_all))
        finite = np.isfinite(b) & np.isfinite(m)
        # Scaled down, so that the sum of 2**60 of the largest doubles is finite; ratios stay the same.
        return tuple(np.maximum(np.abs(values[finite]) * 2.0**-60, FLOOR * 2.0**-60) for values in (b, m))  # type: ignore[return-value]

    def sums(start: int) -> tuple[float, float]:
        p, q = magnitudes(start)
        return float(np.add.reduce(p)), float(np.add.reduce(q))

    def divergence(start: int) -> float:
        p, q = magnitudes(start)
        with np.errstate(all="ignore"):  # a normalised value may be 0 beside the largest doubles
            ratio = np.log(p / q) - ratio_of_sums
        return float(np.add.reduce((p / p_sum - q / q_sum) * ratio))

    p_sum, q_sum = (math.fsum(column) for column in zip(*map_blocks(sums, starts, threads), strict=True))
    if p_sum == 0 or q_sum == 0:  # nothing is finite
        return 0.0
    ratio_of_sums = math.log(p_sum / q_sum)
    return math.fsum(map_blocks(divergence, starts, threads))
