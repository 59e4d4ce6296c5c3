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
    assert BoundResult(INF, (4,)).sentence("float32") == "[4]: no rounding explains this difference"
