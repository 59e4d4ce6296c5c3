"""A threshold of its own for the imaginary parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mluops_cli.judging.metrics import compare
from schemas.criteria import Criterion


@pytest.mark.parametrize("dtype", ["complex_float", "complex_half"])
@pytest.mark.parametrize(
    ("threshold", "imaginary", "passed"),
    [(0.5, None, True), (0.5, 0.1, False), (0.1, 0.5, True), (0.01, 0.5, False), (0.1, None, False)],
)
def test_each_part_has_its_threshold(dtype: str, threshold: float, imaginary: float | None, passed: bool) -> None:
    """The real parts are off by 1/16 of 1, the imaginary ones by 1/4 of 1."""
    baseline: Any = np.ones((8, 2), np.float16 if dtype == "complex_half" else np.float32)
    output = baseline + np.array([1 / 16, 1 / 4], baseline.dtype)
    if dtype == "complex_float":
        baseline, output = (array.view(np.complex64)[:, 0] for array in (baseline, output))
    found = compare(baseline, output, [Criterion("diff1", threshold, "t", imaginary)], dtype)
    assert found.passed is passed
    assert [result.threshold for result in found.criteria] == [threshold, imaginary or threshold]
