"""The criteria of docs/judging.md written naively, and short ways to get the judge's values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from mluops_cli.judging.arithmetic import Array
from mluops_cli.judging.metrics import compare
from schemas.criteria import Criterion

SUMS = ("diff1", "diff2", "diff3", "diff3_1", "diff3_2")
FLOORS = {"float": 1e-6, "half": 1e-4, "bfloat16": 1e-4, "float8_e4m3fn": 1e-4, "float8_e5m2": 1e-4}


def criteria(*names: str, threshold: float = 1e300) -> list[Criterion]:
    return [Criterion(name, threshold, "test") for name in names]


def values(
    baseline: Array, output: Array, names: Sequence[str] = SUMS, dtype: str = "float", **options: Any
) -> dict[tuple[str, str], float | None]:
    return {
        (result.name, result.part): result.value
        for result in compare(baseline, output, criteria(*names), dtype, **options).criteria
    }


def naive(baseline: Sequence[float], output: Sequence[float], floor: float) -> dict[str, float]:
    """The table of criteria in exact fractions, element by element; for finite values."""
    b = [Fraction(x) for x in baseline]
    m = [Fraction(x) for x in output]
    d = [abs(y - x) for x, y in zip(b, m, strict=True)]
    e = Fraction(1e-9)
    ratios = [0 if y == x == 0 else r / (abs(x) + e) if abs(x) > floor else r for x, y, r in zip(b, m, d, strict=True)]
    return {
        "diff1": float(sum(d) / (sum(map(abs, b)) + e)),
        "diff2": math.sqrt(sum(r * r for r in d) / (sum(x * x for x in b) + e)),
        "diff3": float(max(ratios)),
        "diff3_1": float(max((r / abs(x) for x, r in zip(b, d, strict=True) if x), default=0)),
        "diff3_2": float(max(d)),
    }


def exact(array: Array) -> list[Any]:
    """Python numbers equal to the array's."""
    if array.dtype.kind in "iub":
        return [int(x) for x in array.ravel()]
    return [float(x) for x in array.ravel()]
