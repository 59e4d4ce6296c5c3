"""FOUND D21: a pass that zeros or flipped signs would also get is mistrusted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mluops_cli.judging.arithmetic import BLOCK
from mluops_cli.judging.metrics import compare
from mluops_cli.judging.verdict import OutputUnderTest, judge_case
from mluops_cli.judging.weakness import swallowed
from schemas.criteria import Criterion

LOOSE = (Criterion("diff1", 3e-3, "category composite"), Criterion("diff2", 3e-3, "category composite"))
BOTH = "the baseline is so small that an output of zeros and one with all signs flipped would pass too"


def judged(b: Any, criteria: Any = LOOSE, exempt: bool = False) -> tuple[str, str]:
    verdict = judge_case([OutputUnderTest("y", b, b.copy(), criteria, "float")], exempt=exempt)
    return verdict.status, verdict.reason


@pytest.mark.parametrize("exempt", [False, True])
def test_d21_tiny_baselines_are_mistrusted(exempt: bool) -> None:
    b = np.random.default_rng(0).uniform(-1, 1, (8, 25)).astype("f4")
    assert judged(b, exempt=exempt) == ("pass", "")
    assert judged(b * np.float32(1e-15), exempt=exempt) == ("mistrusted", f"y: {BOTH}")
    assert judged(b * np.float32(1e-15), (Criterion("diff3", 0, "x"),), exempt) == ("pass", "")


def test_d21_the_exemption_of_zeros_stays() -> None:
    assert judged(np.zeros(40, "f4"), exempt=True) == ("pass", "")
    assert "an output left at 0" in judged(np.zeros(40, "f4"))[1]


def test_d22_undecided_elements_prove_nothing() -> None:
    """What may have any value does not tell a right output from zeros; where all may, nothing was compared."""
    b = np.random.default_rng(0).uniform(-1, 1, (8, 25)).astype("f4") * np.float32(1e-15)
    mask = np.zeros(b.shape, bool)
    mask[0] = True
    b[0], b[0, 0] = 1, np.nan
    assert judged(b) == ("pass", "")

    def of_mask(mask: Any) -> tuple[str, str]:
        verdict = judge_case([OutputUnderTest("y", b, b.copy(), LOOSE, "float", undecided=mask)])
        return verdict.status, verdict.reason

    assert of_mask(mask) == ("mistrusted", f"y: {BOTH}")
    assert of_mask(np.ones_like(mask)) == ("mistrusted", "y: every element is undecided")
    b[1] = 1
    assert of_mask(mask) == ("pass", "")


NAMES = ("diff1", "diff2", "diff3", "diff3_1", "diff3_2")


@pytest.mark.parametrize("dtype", ["float", "half", "complex_float", "double"])
@pytest.mark.parametrize("scale", [1, 1e-4, 1e-7, 1e-9, 1e-12, 1e-30, 1e-200])
@pytest.mark.parametrize("special", [None, np.nan, np.inf])
def test_d21_agrees_with_judging_such_outputs(dtype: str, scale: float, special: float | None) -> None:
    """The verdict from the sums is that of judging the outputs themselves."""
    rng = np.random.default_rng(1)
    storage = {"float": "f4", "half": "f2", "double": "f8", "complex_float": "c8"}[dtype]
    b = (rng.uniform(0.1, 1, 50) * scale).astype(storage)
    if dtype == "complex_float":
        b = b + (1j * b[::-1]).astype("c8")
    if special is not None:
        b[3] = special
    if not np.any(b[np.isfinite(b)]):
        pytest.skip("zero in this dtype")
    for name in NAMES:
        for threshold in (0, 1e-6, 3e-3, 1, 2, 5):
            criteria = (Criterion(name, threshold, "x"),)
            expected = [
                what
                for what, m in (("zeros", np.zeros_like(b)), ("flipped", -b))
                if compare(b, m, criteria, dtype).passed
            ]
            found = swallowed(b, criteria, dtype)
            assert [what for what in ("zeros", "flipped") if what in found] == expected, (name, threshold)


def test_d21_values_behind_the_first_block_count() -> None:
    b = np.zeros(BLOCK + 5, "f4")
    b[-1] = 1
    assert swallowed(b, LOOSE, "float") == ""
    b[-1] = 1e-14
    assert swallowed(b, LOOSE, "float") == BOTH
