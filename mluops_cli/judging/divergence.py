"""diff_kl: how far the distributions of two outputs' magnitudes lie apart."""

from __future__ import annotations

import math

import numpy as np

from mluops_cli.judging.arithmetic import BLOCK, Array
from mluops_cli.judging.blocks import flat, map_blocks, take

FLOOR = 1e-10  # smaller magnitudes count as this much
JUDGED_FROM = 1000  # elements; fewer say nothing about a distribution


def kl_divergence(baseline: Array, output: Array, *, threads: int = 1) -> float:
    """Symmetric Kullback-Leibler divergence, KL(P, Q) + KL(Q, P), of two real arrays of one shape.

    P and Q are the magnitudes, floored and normalised, of the elements that are finite in both. Two passes: the sums
    first, for (P - Q) * log(P / Q) loses less to cancellation than sums taken before normalising would.
    """
    b_all, m_all = flat(baseline), flat(output)
    starts = range(0, baseline.size, BLOCK)

    def magnitudes(start: int) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):  # a signalling NaN is no news
            b, m = (take(elements, start).astype(np.float64) for elements in (b_all, m_all))
        finite = np.isfinite(b) & np.isfinite(m)
        # The largest double is brought down so that sums of 2**60 of them stay finite; ratios don't notice.
        return tuple(np.maximum(np.abs(values[finite]) * 2.0**-60, FLOOR * 2.0**-60) for values in (b, m))  # type: ignore[return-value]

    def sums(start: int) -> tuple[float, float]:
        p, q = magnitudes(start)
        return float(np.add.reduce(p)), float(np.add.reduce(q))

    def divergence(start: int) -> float:
        p, q = magnitudes(start)
        with np.errstate(all="ignore"):  # of the ratio, for what is normalised may be 0 beside the largest doubles
            ratio = np.log(p / q) - ratio_of_sums
        return float(np.add.reduce((p / p_sum - q / q_sum) * ratio))

    p_sum, q_sum = (math.fsum(column) for column in zip(*map_blocks(sums, starts, threads), strict=True))
    if p_sum == 0 or q_sum == 0:  # nothing is finite
        return 0.0
    ratio_of_sums = math.log(p_sum / q_sum)
    return math.fsum(map_blocks(divergence, starts, threads))
