"""Judging against copying both arrays, a failing output against a passing one, and the memory judging takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from benchmarks.measure import Row, peak, ratio
from mluops_cli.judging.diagnosis import diagnose
from mluops_cli.judging.metrics import compare
from schemas.criteria import Criterion

ELEMENTS = 32 << 20
CRITERIA = tuple(Criterion(name, 0.05, "benchmark") for name in ("diff1", "diff2", "diff3"))
Array = NDArray[Any]


def _judge(baseline: Array, output: Array, dtype: str) -> Callable[[], object]:
    def judge() -> None:
        assert compare(baseline, output, CRITERIA, dtype).passed

    return judge


def rows(elements: int = ELEMENTS) -> list[Row]:
    """The rows of the table; elements is for a quick look."""
    noise = np.float32(1) + np.random.default_rng(1).uniform(-1e-3, 1e-3, elements).astype(np.float32)
    baseline = np.random.default_rng(0).uniform(1, 2, elements).astype(np.float32)
    output = baseline * noise
    copies = np.empty_like(baseline), np.empty_like(baseline)

    def copy_both() -> None:
        np.copyto(copies[0], baseline)
        np.copyto(copies[1], output)

    size = f"{elements >> 20} M"
    judge = _judge(baseline, output, "float")
    found = [
        ratio(f"judging {size} float by diff1, diff2, diff3 / copying both", judge, copy_both, 3),
        ratio(
            f"judging {size} float, equal bit for bit / copying both",
            _judge(baseline, baseline.copy(), "float"),
            copy_both,
            3,
        ),
        Row("judging: memory beyond the arrays", _memory(judge) / 1e6, "MB", 64),
        _failing(baseline, output, judge),
    ]
    whole, other = ((array * 2**20).astype(np.int32) for array in (baseline, output))
    found.append(ratio(f"judging {size} int32 / copying both", _judge(whole, other, "int32"), copy_both, 3))
    del whole, other
    for name, dtype in (("half", np.float16), ("bfloat16", ml_dtypes.bfloat16)):
        # Coarse enough that no block of the low precision is equal bit for bit: nothing is skipped.
        narrow = baseline.astype(dtype)
        other = narrow.copy()
        other[::256] *= dtype(1.01)
        found.append(ratio(f"judging {name} / float, per element", _judge(narrow, other, name), judge, 1.5))
    return found


def _memory(action: Callable[[], object]) -> int:
    """The peak of what one call allocates, in bytes; scratch that its thread holds already is dropped first."""
    from mluops_cli.judging import arithmetic

    arithmetic._local.__dict__.clear()
    return peak(action)


def _failing(baseline: Array, output: Array, passing: Callable[[], object]) -> Row:
    """Judging and diagnosing an output of which the last quarter is missing, against judging a passing one."""
    wrong = output.copy()
    wrong[-(wrong.size // 4) :] = 0

    def fail() -> None:
        assert not compare(baseline, wrong, CRITERIA, "float").passed
        found = diagnose(baseline, wrong, CRITERIA)
        assert found is not None
        assert found.patterns[0].word == "zero"

    return ratio("judging and diagnosing a failing output / a passing one", fail, passing, 3)
