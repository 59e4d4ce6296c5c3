"""Ratios of errors and bounds, worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mluops_cli.judging.arithmetic import BLOCK
from mluops_cli.judging.bounds import BoundResult, bound_ratio

INF, NAN = math.inf, math.nan


def found(baseline: Any, output: Any, bound: Any, dtype: Any = np.float32) -> BoundResult:
    """The result for lists of numbers."""
    return bound_ratio(np.array(baseline, dtype), np.array(output, dtype), np.array(bound, np.float32))


@pytest.mark.parametrize(
    ("baseline", "output", "bound", "ratio", "index"),
    [
        ([1, 2, 4], [1, 2.5, 4], [1, 0.25, 1], 2, (1,)),
        ([1, 2, 4], [1, 2, 4], [0, 0, 0], 0, None),
        ([1, 2, 4], [1, 2, 4.5], [0, 0, 0], INF, (2,)),
        ([1, 2, 4], [1.25, 2, 4.5], 0.5, 1, (2,)),
        ([1, 2, 4], [1, 2, 5], 0, INF, (2,)),
        ([0.0, 1], [-0.0, 1], [0, 0], 0, None),
        ([1, 2, 4], [1, NAN, 4], [1, 1, 1], INF, (1,)),
        ([1, 2, 4], [1, INF, 4], [1, 1, 1], INF, (1,)),
        ([NAN, INF, 4], [5, 7, 4.5], [1, 1, 1], 0.5, (2,)),
        ([1, 2, 4], [9, 2, 4.5], [NAN, 1, 1], 0.5, (2,)),
        ([1, 2, 4], [NAN, 2, 4], [NAN, 1, 1], 0, None),
        ([INF, 1], [-INF, 1], [0, 0], 0, None),
        ([3e38, 1], [-3e38, 1], [1e38, 1], 6, (0,)),
        ([], [], [], 0, None),
    ],
)
def test_ratio_and_place(
    baseline: list[float], output: list[float], bound: Any, ratio: float, index: tuple[int, ...] | None
) -> None:
    result = found(baseline, output, bound)
    assert result.ratio == pytest.approx(ratio, rel=1e-6)
    assert result.index == index
    assert result.beyond is (ratio > 1)


def test_the_place_counts_over_blocks_and_axes() -> None:
    baseline = np.zeros((3, BLOCK), np.float32)
    output = baseline.copy()
    output[1, 7], output[2, BLOCK - 1] = 1, 3
    result = bound_ratio(baseline, output, np.full(baseline.shape, 0.5, np.float32))
    assert (result.ratio, result.index) == (6, (2, BLOCK - 1))
    assert result == bound_ratio(baseline, output, np.full(baseline.shape, 0.5, np.float32), threads=2)


@pytest.mark.parametrize(("limit", "scale"), [(1, 1), (0.5, 2)])
def test_ratios_that_float32_rounds_to_1_or_2_are_told_apart(limit: float, scale: int) -> None:
    """|m - b| is 1 - 2^-30 in the first element and 1 + 2^-30 in the second; both are 1 to float32."""
    result = found([1, 1], [2.0**-30, -(2.0**-30)], [limit, limit])
    assert result.ratio == scale * (1 + 2.0**-30)
    assert result.index == (1,)
    assert found([1, 1], [2.0**-30, 2.0**-30], limit).ratio == scale * (1 - 2.0**-30)


@pytest.mark.parametrize("seed", range(60))
def test_the_same_as_a_quotient_of_doubles(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 200))
    baseline = (rng.standard_normal(size) * 10.0 ** rng.uniform(-45, 38)).astype(np.float32)
    bound = (np.abs(baseline) * np.float32(10 ** rng.uniform(-7, 1))).astype(np.float32)
    bound[rng.random(size) < 0.1] = 0
    bound[rng.random(size) < 0.1] = NAN
    share = rng.choice([0, 0.5, 1, 1, 2, rng.uniform(0, 3)], size) * rng.choice([-1, 1], size)
    with np.errstate(over="ignore", invalid="ignore"):
        output = (baseline + np.nan_to_num(bound) * share).astype(np.float32)
        wide = [array.astype(np.float64) for array in (baseline, output, bound)]
        ratios = np.abs(wide[1] - wide[0]) / wide[2]
    ratios[np.isnan(bound) | (wide[0] == wide[1]) | ~np.isfinite(baseline)] = 0
    result = bound_ratio(baseline, output, bound)
    assert result.ratio == pytest.approx(ratios.max(), rel=2.0**-20, abs=0)
    assert result.index is None or result.ratio == ratios[result.index]
    assert result.beyond == bool((ratios > 1).any())


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_other_floating_dtypes(dtype: Any) -> None:
    assert found([1, 2], [1, 2.5], [0.25, 0.25], dtype).ratio == 2


def test_a_strided_output_is_read_in_its_own_order() -> None:
    memory = np.zeros((4, 6), np.float32)
    output = memory[:, ::2]
    output[3, 1] = 2
    result = bound_ratio(np.zeros((4, 3), np.float32), output, np.ones((4, 3), np.float32))
    assert (result.ratio, result.index) == (2, (3, 1))


def test_records_and_sentences() -> None:
    assert BoundResult(0.0, None).as_record() == {"bound_ratio": 0.0}
    assert BoundResult(INF, (1, 2)).as_record() == {"bound_ratio": "inf", "bound_element": [1, 2]}
    assert BoundResult(9690.25, (0, 3)).sentence("float32") == (
        "[0, 3]: 9.69e+03 x what any order of float32 additions explains"
    )
    assert BoundResult(INF, (4,)).sentence("float32") == "[4]: no rounding in float32 explains this difference"
