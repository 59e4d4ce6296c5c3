"""FOUND G2: copies keep the sign of zero; sums don't."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mluops_cli.judging.metrics import compare
from schemas.criteria import Criterion

EXACT = (Criterion("diff3", 0, "category pure_io"),)
SUM = (Criterion("diff1", 3e-3, "category composite"),)


def judged(b: Any, m: Any, dtype: str = "float", criteria: Any = EXACT, signed_zero: bool = True) -> tuple[bool, str]:
    found = compare(b, m, criteria, dtype, signed_zero=signed_zero)
    return found.passed, found.reason


@pytest.mark.parametrize(
    ("dtype", "name"), [("f4", "float"), ("f2", "half"), ("f8", "double"), (ml_dtypes.bfloat16, "bfloat16")]
)
@pytest.mark.parametrize("others", [0, 1])
def test_g2_a_wrong_sign_of_zero_fails_a_copy(dtype: Any, name: str, others: int) -> None:
    b = np.full((300, 500), others, dtype)
    b[299, 1], b[299, 3] = 0, 0
    m = b.copy()
    assert judged(b, m, name) == (True, "")
    m[299, 3] = -0.0
    reason = "diff3 (threshold 0 from category pure_io): 1 zero has the wrong sign, the first at [299, 3]: "
    assert judged(b, m, name) == (False, f"{reason}a copy keeps the sign of 0")
    assert judged(m, b, name)[0] is False
    assert judged(m, m.copy(), name)[0]
    assert judged(b, m, name, signed_zero=False)[0]
    assert judged(b, m, name, SUM)[0]


def test_g2_nan_payloads_and_integers_are_unaffected() -> None:
    b = np.array([0x7FC00000, 0x7FC00001, 0x80000000], "u4").view("f4")
    m = np.array([0xFFC00005, 0x7F800001, 0x80000000], "u4").view("f4")
    assert judged(b, m)[0]
    integers = np.array([0, 1, -1], "i4")
    assert judged(integers, integers.copy(), "int32")[0]


def test_g2_each_part_of_a_complex_number_has_a_sign() -> None:
    b = np.array([1, 0 + 1j], "c8")
    m = b.copy()
    m.imag[0] = -0.0
    assert "diff3 of the imaginary part" in judged(b, m, "complex_float")[1]
