"""What an operator's author may return as an error bound, and what is refused in words for that author."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from generators.error_bounds.checking import checked_bound
from schemas.errors import MluopsError

BASELINE = np.zeros((2, 3), np.float32)


def test_a_float32_bound_is_taken_as_it_is() -> None:
    bound = np.full((2, 3), 0.5, np.float32)
    assert checked_bound("twice", "y", bound, BASELINE) is bound
    assert checked_bound("twice", "y", np.zeros((), np.float32), BASELINE).shape == ()


def test_wider_numbers_are_rounded_up_and_inf_is_no_answer() -> None:
    found = checked_bound("twice", "y", [[0, 1, 1 + 2**-40], [np.nan, np.inf, 1e300]], BASELINE)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, np.array([[0, 1, 1 + 2**-23], [np.nan] * 3], np.float32))


@pytest.mark.parametrize(("bound", "baseline", "text"), [
    (np.zeros((2, 1), np.float32), BASELINE, "'y' is float32[2, 1], expected floats of shape [] or [2, 3]"),
    (np.zeros((2, 3), np.int32), BASELINE, "'y' is int32[2, 3], expected floats of shape [] or [2, 3]"),
    (-0.5, BASELINE, "'y' is -0.5 somewhere, expected 0 or more, NaN where there is no bound"),
    (0.5, BASELINE.astype(np.int32), "'y' holds int32, only outputs of real floats have error bounds"),
    (0.5, BASELINE.astype(np.complex64), "'y' holds complex64, only outputs of real floats have error bounds"),
    (0.5, None, "'y' is no output"),
])  # fmt: skip
def test_what_is_no_bound_is_refused(bound: Any, baseline: Any, text: str) -> None:
    with pytest.raises(MluopsError) as raised:
        checked_bound("twice", "y", bound, baseline)
    assert str(raised.value) == f"error_bound of twice: {text}"
