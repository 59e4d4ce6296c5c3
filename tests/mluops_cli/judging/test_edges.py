"""What criteria do at the edges: integers, NaN and Inf, zeros, extremes, thresholds, shapes."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mluops_cli.judging.metrics import NAMES, compare
from schemas.criteria import Criterion
from tests.mluops_cli.judging.naive import FLOORS, SUMS, criteria, exact, naive, values

# -- integers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"])
def test_differences_of_integers_do_not_wrap(dtype: str) -> None:
    """PITFALLS B56: the extremes, both ways."""
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.max, 3, 5], dtype)
    other = np.array([info.max, info.min, 5, 3], dtype)
    for b, m in ((ends, other), (other, ends)):
        assert values(b, m, dtype=dtype)["diff3_2", ""] == float(int(info.max) - int(info.min))
    assert values(ends[2:], other[2:], dtype=dtype)["diff3_2", ""] == 2


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_neighbours_beyond_float_precision_differ(dtype: str) -> None:
    """Integers never go through float32, nor those of 64 bits through float64."""
    for base in (16777216, *(() if dtype.endswith("32") else (2**53, 2**62 + 2**40))):
        b, m = np.full(20, base, dtype), np.full(20, base, dtype)
        m[-1] += 1
        found = compare(b, m, criteria("diff3", "diff3_2", threshold=0), dtype)
        assert [result.passed for result in found.criteria] == [False, False]
        assert found.max_abs == 1
        assert found.unequal == 1


def test_a_byte_that_is_no_bool_is_not_true() -> None:
    b = np.ones(40, np.bool_)
    m = np.full(40, 0xAA, np.uint8).view(np.bool_)
    assert compare(b, m, criteria("diff3", threshold=0), "bool").unequal == 40


# -- NaN and Inf -----------------------------------------------------------------------------------------

FLOATS = {"float": np.float32, "half": np.float16, "double": np.float64, "bfloat16": ml_dtypes.bfloat16}


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("criterion", NAMES)
def test_a_value_that_is_not_finite_on_one_side_fails_every_criterion(name: str, bad: float, criterion: str) -> None:
    """PITFALLS B54: all, and one in 100000, either way round, whatever the threshold."""
    b = np.random.default_rng(0).standard_normal(100_000).astype(FLOATS[name])
    one, every = b.copy(), np.full_like(b, bad)
    one[70_001] = bad
    for left, right, count, where in ((b, one, 1, 70_001), (one, b, 1, 70_001), (b, every, 100_000, 0)):
        found = compare(left, right, criteria(criterion), name)
        assert not found.passed
        assert (found.mismatched, found.first_mismatched) == (count, (where,))
        assert f"at {count} of 100000 elements, the first at [{where}]" in found.reason
        assert found.criteria[0].value is None
        assert found.criteria[0].smallest_passing is None


@pytest.mark.parametrize("name", FLOATS)
def test_nan_equals_nan_and_inf_only_its_own_sign(name: str) -> None:
    """PITFALLS B55."""
    b = np.array([math.nan, math.inf, -math.inf, 1], FLOATS[name])
    assert compare(b, b.copy(), criteria(*SUMS, threshold=0), name).passed
    assert compare(b, np.array([-math.nan, math.inf, -math.inf, 1], b.dtype), criteria(*SUMS, threshold=0), name).passed
    swapped = np.array([math.nan, -math.inf, math.inf, 1], b.dtype)
    found = compare(b, swapped, criteria("diff1"), name)
    assert (found.mismatched, found.first_mismatched) == (2, (1,))
    for other in (math.inf, 0):
        assert compare(b, np.array([other, math.inf, -math.inf, 1], b.dtype), criteria("diff1"), name).mismatched == 1


def test_nan_payload_and_sign_do_not_matter() -> None:
    b = np.array([0x7FC00000, 0x3F800000], np.uint32).view(np.float32)
    m = np.array([0xFFC00001, 0x3F800000], np.uint32).view(np.float32)
    assert compare(b, m, criteria(*SUMS, threshold=0), "float").passed


def test_loose_mode_swaps_nan_and_inf_but_no_number() -> None:
    b = np.array([math.nan, math.inf, -math.inf, 1], np.float32)
    m = np.array([math.inf, -math.inf, math.nan, 1], np.float32)
    assert compare(b, m, criteria("diff3", threshold=0), "float", loose_nan=True).passed
    assert not compare(b, m, criteria("diff3", threshold=0), "float").passed
    for other in ([0, math.inf, math.inf, 1], [math.nan, math.nan, math.nan, math.nan]):
        found = compare(b, np.array(other, np.float32), criteria("diff3"), "float", loose_nan=True)
        assert found.mismatched == 1


@pytest.mark.parametrize("criterion", SUMS)
@pytest.mark.parametrize("name", FLOATS)
def test_the_finite_rest_is_still_judged(criterion: str, name: str) -> None:
    """PITFALLS C03: [NaN, 1, 2] against [NaN, 1, 99]."""
    b, m = (np.array([math.nan, math.inf, 1, x], FLOATS[name]) for x in (2, 99))
    found = compare(b, m, criteria(criterion, threshold=0.5), name)
    assert not found.passed
    assert found.mismatched == 0
    assert found.unequal == 1
    expected = naive([1, 2], [1, float(m[3])], FLOORS.get(name, 0))[criterion]
    assert found.criteria[0].value == pytest.approx(expected, rel=1e-12)


# -- zeros, extremes, thresholds -------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", SUMS)
def test_zero_baseline(criterion: str) -> None:
    """PITFALLS B58: figures stay finite, 0 against 0 is 0, anything else fails at threshold 0."""
    zeros = np.zeros(10, np.float32)
    assert compare(zeros, -zeros, criteria(criterion, threshold=0), "float").passed
    for wrong in (1e-12, 1):
        m = zeros + np.float32(wrong)
        found = compare(zeros, m, criteria(criterion, threshold=0), "float")
        assert not found.passed
        if criterion == "diff3_1":
            assert "can't be computed" in found.reason
        else:
            expected = naive([0] * 10, exact(m), 1e-6)[criterion]
            assert found.criteria[0].value == pytest.approx(expected, rel=1e-12)
            assert "by at most" in found.reason


@pytest.mark.parametrize("criterion", ["diff1", "diff2", "diff3", "diff3_1"])
def test_all_zeros_against_small_values_fail(criterion: str) -> None:
    """PITFALLS B59: relative criteria see that data of 1e-6 are gone."""
    b = np.random.default_rng(0).uniform(2e-6, 4e-6, 1000).astype(np.float32)
    assert not compare(b, np.zeros_like(b), criteria(criterion, threshold=3e-3), "float").passed


@pytest.mark.parametrize("criterion", SUMS)
def test_no_difference_is_lost_to_underflow(criterion: str) -> None:
    b = np.array([1e-200, 1], np.float64)
    m = np.array([2e-200, 1], np.float64)
    found = compare(b, m, criteria(criterion, threshold=0), "double")
    assert not found.passed
    assert (found.criteria[0].smallest_passing or 0) > 0


@pytest.mark.parametrize("criterion", SUMS)
@pytest.mark.skipif(np.finfo(np.longdouble).maxexp < 2048, reason="no wider type on this platform")
def test_the_largest_doubles(criterion: str) -> None:
    b = np.array([1e308, -1.7e308, 1.7e308] * 5, np.float64)
    m = b * np.tile([1, -1, 0.5], 5)
    found = compare(b, m, criteria(criterion), "double")
    expected = {
        "diff1": 4.25 / 4.4,
        "diff2": math.sqrt((3.4**2 + 0.85**2) / (1 + 2 * 1.7**2)),
        "diff3": 2,
        "diff3_1": 2,
    }
    if criterion == "diff3_2":  # 3.4e308 is no double
        assert found.criteria[0].value is None
        assert "beyond the range of numbers" in found.reason
    else:
        assert found.criteria[0].value == pytest.approx(expected[criterion], rel=1e-12)
    assert compare(b, b.copy(), criteria(criterion, threshold=0), "double").passed


def test_thresholds_are_inclusive_and_the_smallest_passing_one_passes() -> None:
    b, m = np.array([1, 2, 3], np.float32), np.array([1, 2, 3.25], np.float32)
    for name in SUMS:
        (result,) = compare(b, m, criteria(name, threshold=0), "float").criteria
        assert not result.passed
        assert result.smallest_passing is not None
        assert result.smallest_passing == result.value
        assert compare(b, m, criteria(name, threshold=result.smallest_passing), "float").passed
        assert not compare(b, m, criteria(name, threshold=math.nextafter(result.smallest_passing, 0)), "float").passed


def test_diff3_1_cannot_hide_a_difference_at_threshold_0() -> None:
    b, m = np.array([0, 1], np.float32), np.array([5, 1], np.float32)
    (result,) = compare(b, m, criteria("diff3_1", threshold=0), "float").criteria
    assert (result.value, result.passed) == (0, False)


def test_no_criterion_an_unknown_one_and_a_threshold_that_is_no_number_fail() -> None:
    b = np.ones(3, np.float32)
    assert compare(b, b.copy(), [], "float").reason == "there is no criterion to judge it by"
    assert "diff9 is no known criterion" in compare(b, b.copy(), criteria("diff9"), "float").reason
    assert not compare(b, b.copy(), criteria("diff1", threshold=math.nan), "float").passed


def test_two_thresholds_of_one_formula_are_both_judged() -> None:
    """PITFALLS C03: the second one isn't dropped."""
    b, m = np.ones(4, np.float32), np.full(4, 1.01, np.float32)
    two = [Criterion("diff1", 1, "a"), Criterion("diff1", 1e-3, "b")]
    for order in (two, two[::-1]):
        assert sorted(result.passed for result in compare(b, m, order, "float").criteria) == [False, True]


@pytest.mark.parametrize("shape", [(1,), (6, 1), (4, 6), (24,), (6, 4, 1), (2, 12), ()])
def test_shapes_are_neither_broadcast_nor_reshaped(shape: Any) -> None:
    """PITFALLS B63."""
    found = compare(np.ones((6, 4), np.float32), np.ones(shape, np.float32), criteria("diff1"), "float")
    assert not found.passed
    assert str(list(shape)) in found.reason
    assert "[6, 4]" in found.reason


def test_dtypes_must_agree_but_floats_may_be_wider() -> None:
    ones = np.ones(4, np.float32)
    assert "dtype" in compare(ones, ones.astype(np.int32), criteria("diff1"), "float").reason
    assert "dtype" in compare(ones.astype(np.int32), ones.astype(np.int64), criteria("diff1"), "int32").reason
    assert compare(ones.astype(np.float64), ones, criteria("diff1", threshold=0), "float").passed
    assert compare(ones, ones.astype(ml_dtypes.bfloat16), criteria("diff1", threshold=0), "float").passed


def test_scalars_and_empty_outputs() -> None:
    assert not compare(np.float32(1) + np.zeros((), "f4"), np.full((), 2, "f4"), criteria("diff1"), "float").empty
    found = compare(np.full((), 1, "f4"), np.full((), 2, "f4"), criteria("diff1", threshold=0.5), "float")
    assert (found.passed, found.first_unequal, found.elements) == (False, (), 1)
    found = compare(np.zeros((0, 4), "f4"), np.zeros((0, 4), "f4"), criteria(*NAMES), "float")
    assert found.empty
    assert found.passed
    assert not compare(np.zeros((0, 4), "f4"), np.zeros((0, 5), "f4"), criteria("diff1"), "float").empty
