"""A constant factor: the wrong elements are the baseline times a number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from mluops_cli.judging.arithmetic import Array
from mluops_cli.judging.explanations.evidence import BITS_EACH, BITS_ENOUGH, Difference, Elements
from mluops_cli.judging.patterns import Pattern

_ROUNDINGS: Final = 4  # half ULPs: of the product, of the factor itself, and a margin for the estimated factor


def constant_factor(difference: Difference) -> Iterator[Pattern]:
    """Yield the least-squares ratio of the elements beyond the bound, where each is that times its baseline.

    Elements weigh as much as rounding leaves them certain. What remains must be within the bound, times the factor,
    plus a few roundings.
    """
    found = difference.elements()
    b, m, limit = found.at(found.beyond)
    if not b.size or not difference.half_ulp or not np.ptp(b):
        return
    rounding = _ROUNDINGS * difference.half_ulp * np.abs(m)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        factor = _ratio(b, m, np.ones_like(b))
        factor = _ratio(b, m, abs(factor) * limit + rounding)
        allowed = abs(factor) * limit + rounding
        rest = np.abs(m - factor * b)
    if not np.isfinite(factor) or not (rest <= allowed).all():
        return
    if difference.evidence(Elements(b, m, allowed)) < BITS_ENOUGH + BITS_EACH:  # one element gives the factor
        return
    used = float(np.max(np.divide(rest, allowed, out=np.zeros_like(rest), where=allowed > 0)))
    how = f"least squares; what remains is {used:.2g} of what rounding explains"
    yield Pattern("factor", f"explained by the baseline times {factor:.6g} ({how})")


def _ratio(b: Array, m: Array, uncertainty: Array) -> float:
    """The least-squares ratio of m and b, whose elements are uncertain by so much."""
    scale = 1 / np.maximum(uncertainty, np.finfo(np.float64).tiny)
    return float(np.sum((b * scale) * (m * scale)) / np.sum((b * scale) ** 2))
