"""The criteria against naive implementations in Python integers and float64, over every dtype and block edge."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mluops_cli.judging.blocks import BLOCK
from mluops_cli.judging.criteria import NAMES, compare
from schemas.criteria import Criterion
from schemas.dtypes import DTYPES

SUMS = ("diff1", "diff2", "diff3", "diff3_1", "diff3_2")
REAL = [name for name, dtype in DTYPES.items() if dtype.storage is not None and dtype.kind != "complex"]
FLOORS = {"float": 1e-6, "half": 1e-4, "bfloat16": 1e-4, "float8_e4m3fn": 1e-4, "float8_e5m2": 1e-4}


def criteria(*names, threshold=1e300):
    return [Criterion(name, threshold, "test") for name in names]


def values(baseline, output, names=SUMS, dtype="float", **options):
    return {
        (result.name, result.part): result.value
        for result in compare(baseline, output, criteria(*names), dtype, **options).criteria
    }


def naive(baseline, output, floor):
    """EVALUATION.md's table in exact fractions, element by element; for finite values."""
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


def exact(array):
    """Python numbers equal to the array's."""
    if array.dtype.kind in "iub":
        return [int(x) for x in array.ravel()]
    return [float(x) for x in array.ravel()]


def draw(name, size, rng):
    """A baseline and an output of that dtype with zeros, equal and unequal elements."""
    dtype = DTYPES[name]
    if dtype.kind == "bool":
        return rng.random(size) < 0.5, rng.random(size) < 0.5
    if dtype.is_float:
        b = rng.standard_normal(size)
        b[rng.random(size) < 0.1] = 0
        m = b + rng.standard_normal(size) * (rng.random(size) < 0.7) * 0.1
        return b.astype(dtype.storage), m.astype(dtype.storage)
    info = np.iinfo(dtype.storage)
    b, m = (rng.integers(info.min, info.max, size, dtype.storage, endpoint=True) for _ in range(2))
    m[rng.random(size) < 0.3] = 0
    b[rng.random(size) < 0.1] = 0
    return b, m


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("size", [1, 2, 3, 500])
def test_every_dtype_agrees_with_exact_fractions(name, size):
    rng = np.random.default_rng(size)
    b, m = draw(name, size, rng)
    b.ravel()[0] = 1  # diff3_1 needs one element
    expected = naive(exact(b), exact(m), FLOORS.get(name, 0))
    found = values(b, m, dtype=name)
    for criterion in SUMS:
        assert found[criterion, ""] == pytest.approx(expected[criterion], rel=1e-12), criterion


@pytest.mark.parametrize("size", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 8191])
@pytest.mark.parametrize("name", ["float", "half", "int64"])
def test_block_edges(name, size):
    rng = np.random.default_rng(7)
    b, m = draw(name, size, rng)
    wide = np.longdouble
    d = np.abs(m.astype(wide) - b.astype(wide))
    size_b = np.abs(b.astype(wide))
    above = size_b > FLOORS.get(name, 0)
    ratios = np.where(above, d / np.where(above, size_b + wide(1e-9), 1), d)
    found = values(b, m, dtype=name)
    assert found["diff1", ""] == pytest.approx(float(d.sum() / (size_b.sum() + wide(1e-9))), rel=1e-12)
    assert found["diff2", ""] == pytest.approx(
        float(np.sqrt((d * d).sum() / ((size_b * size_b).sum() + 1e-9))), rel=1e-12
    )
    assert found["diff3", ""] == pytest.approx(float(ratios.max()), rel=1e-12)
    assert found["diff3_2", ""] == pytest.approx(float(d.max()), rel=1e-12)


@pytest.mark.parametrize("size", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 1])
@pytest.mark.parametrize("name", REAL)
def test_one_wrong_element_anywhere_is_found(name, size):
    rng = np.random.default_rng(3)
    b, _ = draw(name, size, rng)
    for position in {0, size // 2, size - 1, min(BLOCK - 1, size - 1), min(BLOCK, size - 1)}:
        m = b.copy()
        m[position] = 0 if b[position] else 1
        found = compare(b, m, criteria("diff3", threshold=0), name)
        assert not found.passed
        assert (found.unequal, found.first_unequal) == (1, (position,))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_corrupted_last_element_of_a_large_tensor(dtype):
    """PITFALLS B29, at 2^26 elements."""
    b = np.ones(1 << 26, dtype)
    m = b.copy()
    m[-1] = 2
    found = compare(b.reshape(1 << 13, -1), m.reshape(1 << 13, -1), criteria("diff3", threshold=0), "float")
    assert found.first_unequal == ((1 << 13) - 1, (1 << 13) - 1)
    assert "1 of 67108864 elements differ" in found.reason


@pytest.mark.parametrize("name", ["float", "half", "double"])
def test_figures_depend_on_neither_threads_nor_strides(name):
    rng = np.random.default_rng(1)
    b, m = draw(name, 3 * BLOCK + 300, rng)
    b, m = b.reshape(4, -1), m.reshape(4, -1)
    once = values(b, m, NAMES, name)
    assert values(b, m, NAMES, name, threads=3) == once
    spread = np.zeros((4, 2 * b.shape[1]), b.dtype)
    spread[:, ::2] = m
    assert values(np.asfortranarray(b), spread[:, ::2], NAMES, name) == once


@pytest.mark.parametrize("special", [2.0, np.nan, np.inf])
def test_equal_blocks_count_in_the_denominators(special):
    b = np.full(3 * BLOCK, 2, np.float32)
    b[7] = special
    m = b.copy()
    m[BLOCK + 1] = 5
    weight = 3 * BLOCK - (not np.isfinite(special))
    found = values(b, m)
    assert found["diff1", ""] == pytest.approx(3 / (2 * weight + 1e-9), rel=1e-12)
    assert found["diff2", ""] == pytest.approx(3 / math.sqrt(4 * weight + 1e-9), rel=1e-12)
    zeros = np.zeros(2 * BLOCK, np.float32)
    zeros[0] = 1  # the only element that diff3_1 can be taken of lies in an equal block
    wrong = zeros.copy()
    wrong[-1] = 1
    assert values(zeros, wrong, ["diff3_1"]) == {("diff3_1", ""): 0}


@pytest.mark.parametrize("many", [False, True])
def test_the_largest_ratio_of_a_later_block_counts_however_close(many):
    b = np.ones(3 * BLOCK, np.float64)
    m = b.copy()
    m[5 : 5 + (BLOCK // 2 if many else 1)] = 1.5
    m[BLOCK + 9] = 1.5 + 1e-9
    m[2 * BLOCK :: 2] = 1.4
    found = values(b, m, dtype="double")
    assert found["diff3", ""] == pytest.approx((m[BLOCK + 9] - 1) / (1 + 1e-9), rel=1e-15)
    assert found["diff3_1", ""] == pytest.approx(m[BLOCK + 9] - 1, rel=1e-15)


def test_strided_and_reversed_one_dimensional_outputs():
    b = np.arange(10, dtype=np.float32)
    assert compare(b, np.arange(20, dtype=np.float32)[::2] / 2, criteria("diff3", threshold=0), "float").passed
    assert compare(b, b[::-1].copy()[::-1], criteria("diff3", threshold=0), "float").passed
    assert not compare(b, b[::-1], criteria("diff3", threshold=0), "float").passed


@pytest.mark.parametrize("name", ["float", "half", "int64", "uint32"])
def test_outputs_of_the_other_byte_order(name):
    b = np.arange(1, 10).astype(DTYPES[name].storage)
    m = b.astype(b.dtype.newbyteorder(">"))
    assert compare(b, m, criteria("diff3", threshold=0), name).passed
    m[4] += 1
    assert values(b, m, dtype=name)["diff3_2", ""] == 1


# -- integers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"])
def test_differences_of_integers_do_not_wrap(dtype):
    """PITFALLS B56: the extremes, both ways."""
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.max, 3, 5], dtype)
    other = np.array([info.max, info.min, 5, 3], dtype)
    for b, m in ((ends, other), (other, ends)):
        assert values(b, m, dtype=dtype)["diff3_2", ""] == float(int(info.max) - int(info.min))
    assert values(ends[2:], other[2:], dtype=dtype)["diff3_2", ""] == 2


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_neighbours_beyond_float_precision_differ(dtype):
    """Integers never go through float32, nor those of 64 bits through float64."""
    for base in (16777216, *(() if dtype.endswith("32") else (2**53, 2**62 + 2**40))):
        b, m = np.full(20, base, dtype), np.full(20, base, dtype)
        m[-1] += 1
        found = compare(b, m, criteria("diff3", "diff3_2", threshold=0), dtype)
        assert [result.passed for result in found.criteria] == [False, False]
        assert found.max_abs == 1
        assert found.unequal == 1


def test_a_byte_that_is_no_bool_is_not_true():
    b = np.ones(40, np.bool_)
    m = np.full(40, 0xAA, np.uint8).view(np.bool_)
    assert compare(b, m, criteria("diff3", threshold=0), "bool").unequal == 40


# -- NaN and Inf -----------------------------------------------------------------------------------------

FLOATS = {"float": np.float32, "half": np.float16, "double": np.float64, "bfloat16": ml_dtypes.bfloat16}


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("criterion", NAMES)
def test_a_value_that_is_not_finite_on_one_side_fails_every_criterion(name, bad, criterion):
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
def test_nan_equals_nan_and_inf_only_its_own_sign(name):
    """PITFALLS B55."""
    b = np.array([math.nan, math.inf, -math.inf, 1], FLOATS[name])
    assert compare(b, b.copy(), criteria(*SUMS, threshold=0), name).passed
    assert compare(b, np.array([-math.nan, math.inf, -math.inf, 1], b.dtype), criteria(*SUMS, threshold=0), name).passed
    swapped = np.array([math.nan, -math.inf, math.inf, 1], b.dtype)
    found = compare(b, swapped, criteria("diff1"), name)
    assert (found.mismatched, found.first_mismatched) == (2, (1,))
    for other in (math.inf, 0):
        assert compare(b, np.array([other, math.inf, -math.inf, 1], b.dtype), criteria("diff1"), name).mismatched == 1


def test_nan_payload_and_sign_do_not_matter():
    b = np.array([0x7FC00000, 0x3F800000], np.uint32).view(np.float32)
    m = np.array([0xFFC00001, 0x3F800000], np.uint32).view(np.float32)
    assert compare(b, m, criteria(*SUMS, threshold=0), "float").passed


def test_loose_mode_swaps_nan_and_inf_but_no_number():
    b = np.array([math.nan, math.inf, -math.inf, 1], np.float32)
    m = np.array([math.inf, -math.inf, math.nan, 1], np.float32)
    assert compare(b, m, criteria("diff3", threshold=0), "float", loose_nan=True).passed
    assert not compare(b, m, criteria("diff3", threshold=0), "float").passed
    for other in ([0, math.inf, math.inf, 1], [math.nan, math.nan, math.nan, math.nan]):
        found = compare(b, np.array(other, np.float32), criteria("diff3"), "float", loose_nan=True)
        assert found.mismatched == 1


@pytest.mark.parametrize("criterion", SUMS)
@pytest.mark.parametrize("name", FLOATS)
def test_the_finite_rest_is_still_judged(criterion, name):
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
def test_zero_baseline(criterion):
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
def test_all_zeros_against_small_values_fail(criterion):
    """PITFALLS B59: relative criteria see that data of 1e-6 are gone."""
    b = np.random.default_rng(0).uniform(2e-6, 4e-6, 1000).astype(np.float32)
    assert not compare(b, np.zeros_like(b), criteria(criterion, threshold=3e-3), "float").passed


@pytest.mark.parametrize("criterion", SUMS)
def test_no_difference_is_lost_to_underflow(criterion):
    b = np.array([1e-200, 1], np.float64)
    m = np.array([2e-200, 1], np.float64)
    found = compare(b, m, criteria(criterion, threshold=0), "double")
    assert not found.passed
    assert found.criteria[0].smallest_passing > 0


@pytest.mark.parametrize("criterion", SUMS)
@pytest.mark.skipif(np.finfo(np.longdouble).maxexp < 2048, reason="no wider type on this platform")
def test_the_largest_doubles(criterion):
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


def test_thresholds_are_inclusive_and_the_smallest_passing_one_passes():
    b, m = np.array([1, 2, 3], np.float32), np.array([1, 2, 3.25], np.float32)
    for name in SUMS:
        (result,) = compare(b, m, criteria(name, threshold=0), "float").criteria
        assert not result.passed
        assert result.smallest_passing == result.value
        assert compare(b, m, criteria(name, threshold=result.smallest_passing), "float").passed
        assert not compare(b, m, criteria(name, threshold=math.nextafter(result.value, 0)), "float").passed


def test_diff3_1_cannot_hide_a_difference_at_threshold_0():
    b, m = np.array([0, 1], np.float32), np.array([5, 1], np.float32)
    (result,) = compare(b, m, criteria("diff3_1", threshold=0), "float").criteria
    assert (result.value, result.passed) == (0, False)


def test_no_criterion_an_unknown_one_and_a_threshold_that_is_no_number_fail():
    b = np.ones(3, np.float32)
    assert compare(b, b.copy(), [], "float").reason == "there is no criterion to judge it by"
    assert "diff9 is no known criterion" in compare(b, b.copy(), criteria("diff9"), "float").reason
    assert not compare(b, b.copy(), criteria("diff1", threshold=math.nan), "float").passed


def test_two_thresholds_of_one_formula_are_both_judged():
    """PITFALLS C03: the second one isn't dropped."""
    b, m = np.ones(4, np.float32), np.full(4, 1.01, np.float32)
    two = [Criterion("diff1", 1, "a"), Criterion("diff1", 1e-3, "b")]
    for order in (two, two[::-1]):
        assert sorted(result.passed for result in compare(b, m, order, "float").criteria) == [False, True]


@pytest.mark.parametrize("shape", [(1,), (6, 1), (4, 6), (24,), (6, 4, 1), (2, 12), ()])
def test_shapes_are_neither_broadcast_nor_reshaped(shape):
    """PITFALLS B63."""
    found = compare(np.ones((6, 4), np.float32), np.ones(shape, np.float32), criteria("diff1"), "float")
    assert not found.passed
    assert str(list(shape)) in found.reason
    assert "[6, 4]" in found.reason


def test_dtypes_must_agree_but_floats_may_be_wider():
    ones = np.ones(4, np.float32)
    assert "dtype" in compare(ones, ones.astype(np.int32), criteria("diff1"), "float").reason
    assert "dtype" in compare(ones.astype(np.int32), ones.astype(np.int64), criteria("diff1"), "int32").reason
    assert compare(ones.astype(np.float64), ones, criteria("diff1", threshold=0), "float").passed
    assert compare(ones, ones.astype(ml_dtypes.bfloat16), criteria("diff1", threshold=0), "float").passed


def test_scalars_and_empty_outputs():
    assert not compare(np.float32(1) + np.zeros((), "f4"), np.full((), 2, "f4"), criteria("diff1"), "float").empty
    found = compare(np.full((), 1, "f4"), np.full((), 2, "f4"), criteria("diff1", threshold=0.5), "float")
    assert (found.passed, found.first_unequal, found.elements) == (False, (), 1)
    found = compare(np.zeros((0, 4), "f4"), np.zeros((0, 4), "f4"), criteria(*NAMES), "float")
    assert found.empty
    assert found.passed
    assert not compare(np.zeros((0, 4), "f4"), np.zeros((0, 5), "f4"), criteria("diff1"), "float").empty


# -- complex ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["complex_float", "complex_double", "complex_half"])
@pytest.mark.parametrize("contiguous", [True, False])
def test_complex_parts_are_judged_separately(name, contiguous):
    rng = np.random.default_rng(5)
    real, imag, wrong = (rng.standard_normal((3, 50)) for _ in range(3))

    def make(re, im):
        if name == "complex_half":
            return np.stack((re, im), axis=-1).astype(np.float16)
        array = (re + 1j * im).astype(DTYPES[name].storage)
        return array if contiguous else np.asfortranarray(array)

    b, m = make(real, imag), make(real, imag + wrong)
    found = compare(b, m, criteria(*SUMS, threshold=0), name)
    assert {result.part for result in found.criteria if not result.passed} == {"imag"}
    assert "imaginary part" in found.reason
    assert found.shape == (3, 50)
    part = (lambda array: array[..., 1]) if name == "complex_half" else np.imag
    floor = {"complex_half": 1e-4, "complex_float": 1e-6, "complex_double": 0}[name]
    expected = naive(exact(part(b)), exact(part(m)), floor)
    for result in found.criteria:
        if result.part == "imag":
            assert result.value == pytest.approx(expected[result.name], rel=1e-12)


# -- diff4 and diff_kl -----------------------------------------------------------------------------------


def test_diff4_fails_only_where_all_of_100_differences_lie_on_one_side():
    b = np.zeros(200_000, np.float32)
    for count, sides, passed, judged in (
        (99, 1, True, False), (100, 1, False, True), (100, -1, False, True), (100, 0, True, True),
        (70_000, 1, False, True),
    ):  # fmt: skip
        m = b.copy()
        m[:count] = sides or np.resize([1, -1, -1, -1], count)
        (result,) = compare(b, m, criteria("diff4"), "float").criteria
        assert (result.passed, result.judged) == (passed, judged), (count, sides)
        if judged:
            assert result.value == (1 if sides else 0.75)


@pytest.mark.parametrize("dtype", ["uint64", "half", "int64"])
def test_diff4_knows_sides_in_every_dtype(dtype):
    storage = DTYPES[dtype].storage
    b = np.full(300, 3).astype(storage)
    up, down = np.full(300, 5).astype(storage), np.full(300, 1).astype(storage)
    assert "above" in compare(b, up, criteria("diff4"), dtype).reason
    assert "below" in compare(b, down, criteria("diff4"), dtype).reason


def test_diff4_leaves_values_alone_that_are_not_finite():
    b = np.full(300, np.nan, np.float32)
    b[:100] = 1
    m = b.copy()
    m[:100] = 2
    assert "all 100 unequal" in compare(b, m, criteria("diff4"), "float").reason


@pytest.mark.parametrize("size", [1000, BLOCK + 5])
def test_diff_kl_agrees_with_the_naive_sum(size):
    rng = np.random.default_rng(2)
    b = rng.standard_normal(size).astype(np.float32)
    m = (b + rng.standard_normal(size) * 0.3).astype(np.float32)
    b[3] = 0
    p, q = (np.maximum(np.abs(x.astype(np.longdouble)), 1e-10) for x in (b, m))
    p, q = p / p.sum(), q / q.sum()
    expected = float((p * np.log(p / q)).sum() + (q * np.log(q / p)).sum())
    assert values(b, m, ["diff_kl"])["diff_kl", ""] == pytest.approx(expected, rel=1e-12)
    assert values(b, b * 2, ["diff_kl"])["diff_kl", ""] == pytest.approx(0, abs=1e-9)


def test_diff_kl_is_judged_from_1000_elements():
    b, m = np.ones(999, np.float32), np.arange(999, dtype=np.float32)
    (result,) = compare(b, m, criteria("diff_kl", threshold=0), "float").criteria
    assert (result.passed, result.judged) == (True, False)
    assert not compare(
        np.ones(1000, "f4"), np.arange(1000, dtype="f4"), criteria("diff_kl", threshold=0.1), "float"
    ).passed


# -- properties ------------------------------------------------------------------------------------------

numbers = st.integers(-1000, 1000).map(lambda i: i / 8)
pairs = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=40)


@given(pairs)
@settings(deadline=None)
def test_naive_agreement_on_any_small_output(both):
    b, m = (np.array(side, np.float32) for side in zip(*both, strict=True))
    assume(b.any())
    expected = naive(exact(b), exact(m), 1e-6)
    for (name, _), value in values(b, m).items():
        assert value == pytest.approx(expected[name], rel=1e-12), name


@given(pairs, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_sign_and_order_do_not_matter(both, random):
    b, m = (np.array(side, np.float64) for side in zip(*both, strict=True))
    once = values(b, m, dtype="double")
    shuffled = list(both)
    random.shuffle(shuffled)
    b2, m2 = (np.array(side, np.float64) for side in zip(*shuffled, strict=True))
    for other in (values(-b, -m, dtype="double"), values(b2, m2, dtype="double")):
        for key, value in once.items():
            assert other[key] == (None if value is None else pytest.approx(value, rel=1e-12)), key


@given(pairs, st.integers(1, 30))
@settings(deadline=None)
def test_scaling_both_sides(both, power):
    """Relative figures don't notice a common factor (nor, for data this large, the epsilon), diff3_2 scales with it."""
    b, m = (np.array(side, np.float64) * 2.0**40 for side in zip(*both, strict=True))
    assume(np.all(b != 0))
    scale = 2.0**power
    once, scaled = values(b, m, dtype="double"), values(b * scale, m * scale, dtype="double")
    for (name, part), value in once.items():
        factor = scale if name == "diff3_2" else 1
        assert scaled[name, part] == pytest.approx(value * factor, rel=1e-12), name


@given(pairs, st.data())
@settings(deadline=None)
def test_one_changed_element_never_passes_at_threshold_0(both, data):
    b = np.array([pair[0] for pair in both], np.float32)
    position = data.draw(st.integers(0, len(b) - 1))
    m = b.copy()
    m[position] = np.nextafter(b[position], np.float32(np.inf))
    for name in SUMS:
        assert not compare(b, m, criteria(name, threshold=0), "float").passed, name


def test_records_are_json():
    import json

    b, m = np.array([1, 2, math.nan], "f4"), np.array([1, math.inf, math.nan], "f4")
    record = compare(b, m, criteria(*NAMES, threshold=math.inf), "float").as_record()
    text = json.dumps(record, allow_nan=False)
    assert json.loads(text)["criteria"][0]["value"] is None
    assert json.loads(text)["first_mismatched"] == [1]
