"""The criteria against naive implementations in Python integers and float64, over every dtype and block edge."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mluops_cli.judging.arithmetic import BLOCK
from mluops_cli.judging.measurement import DenominatorCache
from mluops_cli.judging.metrics import NAMES, compare
from schemas.dtypes import DTYPES
from tests.mluops_cli.judging.naive import FLOORS, SUMS, criteria, exact, naive, values

REAL = [name for name, dtype in DTYPES.items() if dtype.storage is not None and dtype.kind != "complex"]


def draw(name: str, size: int, rng: Any) -> Any:
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
def test_every_dtype_agrees_with_exact_fractions(name: str, size: int) -> None:
    rng = np.random.default_rng(size)
    b, m = draw(name, size, rng)
    b.ravel()[0] = 1  # diff3_1 needs one element
    expected = naive(exact(b), exact(m), FLOORS.get(name, 0))
    found = values(b, m, dtype=name)
    for criterion in SUMS:
        assert found[criterion, ""] == pytest.approx(expected[criterion], rel=1e-12), criterion


@pytest.mark.parametrize("size", [BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 8191])
@pytest.mark.parametrize("name", ["float", "half", "int64"])
def test_block_edges(name: str, size: int) -> None:
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
def test_one_wrong_element_anywhere_is_found(name: str, size: int) -> None:
    rng = np.random.default_rng(3)
    b, _ = draw(name, size, rng)
    for position in {0, size // 2, size - 1, min(BLOCK - 1, size - 1), min(BLOCK, size - 1)}:
        m = b.copy()
        m[position] = 0 if b[position] else 1
        found = compare(b, m, criteria("diff3", threshold=0), name)
        assert not found.passed
        assert (found.unequal, found.first_unequal) == (1, (position,))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
def test_corrupted_last_element_of_a_large_tensor(dtype: str) -> None:
    """PITFALLS B29, at 2^26 elements."""
    b = np.ones(1 << 26, dtype)
    m = b.copy()
    m[-1] = 2
    found = compare(b.reshape(1 << 13, -1), m.reshape(1 << 13, -1), criteria("diff3", threshold=0), "float")
    assert found.first_unequal == ((1 << 13) - 1, (1 << 13) - 1)
    assert "1 of 67108864 elements differ" in found.reason


@pytest.mark.parametrize("name", ["float", "half", "double"])
def test_figures_depend_on_neither_threads_nor_strides(name: str) -> None:
    rng = np.random.default_rng(1)
    b, m = draw(name, 3 * BLOCK + 300, rng)
    b, m = b.reshape(4, -1), m.reshape(4, -1)
    once = values(b, m, NAMES, name)
    assert values(b, m, NAMES, name, threads=3) == once
    spread = np.zeros((4, 2 * b.shape[1]), b.dtype)
    spread[:, ::2] = m
    assert values(np.asfortranarray(b), spread[:, ::2], NAMES, name) == once


@pytest.mark.parametrize("special", [2.0, np.nan, np.inf])
def test_equal_blocks_count_in_the_denominators(special: Any) -> None:
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


@pytest.mark.parametrize("dtype", ["float", "complex_float"])
def test_cached_denominators_change_no_metric(dtype: str) -> None:
    """An element in each block in turn, an equal output in between, and one that differs everywhere."""
    b = np.linspace(1, 2, 3 * BLOCK, dtype=np.float32)
    if dtype == "complex_float":
        b = b + 1j * b[::-1] ** 2
    caches: dict[str, DenominatorCache] = {}
    for place in (5, BLOCK, None, 2 * BLOCK + 1, ..., 7):
        m = b.copy()
        if place is not None:
            m[place] *= 1.5
        assert values(b, m, dtype=dtype, caches=caches) == values(b, m, dtype=dtype)
    assert {start for _, start in caches["" if dtype == "float" else "real"]} == {0, BLOCK, 2 * BLOCK}
    assert values(b, m, ["diff1"], dtype, caches=caches) == values(b, m, ["diff1"], dtype)


@pytest.mark.parametrize("many", [False, True])
def test_the_largest_ratio_of_a_later_block_counts_however_close(many: Any) -> None:
    b = np.ones(3 * BLOCK, np.float64)
    m = b.copy()
    m[5 : 5 + (BLOCK // 2 if many else 1)] = 1.5
    m[BLOCK + 9] = 1.5 + 1e-9
    m[2 * BLOCK :: 2] = 1.4
    found = values(b, m, dtype="double")
    assert found["diff3", ""] == pytest.approx((m[BLOCK + 9] - 1) / (1 + 1e-9), rel=1e-15)
    assert found["diff3_1", ""] == pytest.approx(m[BLOCK + 9] - 1, rel=1e-15)


def test_strided_and_reversed_one_dimensional_outputs() -> None:
    b = np.arange(10, dtype=np.float32)
    assert compare(b, np.arange(20, dtype=np.float32)[::2] / 2, criteria("diff3", threshold=0), "float").passed
    assert compare(b, b[::-1].copy()[::-1], criteria("diff3", threshold=0), "float").passed
    assert not compare(b, b[::-1], criteria("diff3", threshold=0), "float").passed


@pytest.mark.parametrize("name", ["float", "half", "int64", "uint32"])
def test_outputs_of_the_other_byte_order(name: str) -> None:
    b = np.arange(1, 10).astype(DTYPES[name].storage)
    m = b.astype(b.dtype.newbyteorder(">"))
    assert compare(b, m, criteria("diff3", threshold=0), name).passed
    m[4] += 1
    assert values(b, m, dtype=name)["diff3_2", ""] == 1


# -- complex ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["complex_float", "complex_double", "complex_half"])
@pytest.mark.parametrize("contiguous", [True, False])
def test_complex_parts_are_judged_separately(name: str, contiguous: Any) -> None:
    rng = np.random.default_rng(5)
    real, imag, wrong = (rng.standard_normal((3, 50)) for _ in range(3))

    def make(re: Any, im: Any) -> Any:
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


def test_diff4_fails_only_where_all_of_100_differences_lie_on_one_side() -> None:
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
def test_diff4_knows_sides_in_every_dtype(dtype: str) -> None:
    storage = DTYPES[dtype].storage
    b = np.full(300, 3).astype(storage)
    up, down = np.full(300, 5).astype(storage), np.full(300, 1).astype(storage)
    assert "above" in compare(b, up, criteria("diff4"), dtype).reason
    assert "below" in compare(b, down, criteria("diff4"), dtype).reason


def test_diff4_leaves_values_alone_that_are_not_finite() -> None:
    b = np.full(300, np.nan, np.float32)
    b[:100] = 1
    m = b.copy()
    m[:100] = 2
    assert "all 100 unequal" in compare(b, m, criteria("diff4"), "float").reason


@pytest.mark.parametrize(("others", "share"), [([-1] * 100, 1.0), ([1] * 99 + [-1], 0.99)])
def test_diff4_leaves_infinities_alone_that_are_as_good_as_equal(others: Any, share: Any) -> None:
    b = np.zeros(300, np.float32)
    m = b.copy()
    m[:100] = others
    b[200], m[200] = -np.inf, np.inf
    (result,) = compare(b, m, criteria("diff4"), "float", loose_nan=True).criteria
    assert (result.value, result.passed) == (share, share < 1)


@pytest.mark.parametrize("dtype", ["half", "bfloat16", "float"])
def test_a_signalling_nan_warns_nobody(dtype: str) -> None:
    b = np.ones(2000, DTYPES[dtype].storage)
    signalling = {"half": 0x7C01, "bfloat16": 0x7F81, "float": 0x7F800001}[dtype]
    b.view(f"u{b.itemsize}")[7] = signalling
    m = b.copy()
    m[9] = 2
    assert values(b, m, NAMES, dtype)["diff3_2", ""] == 1


@pytest.mark.parametrize(
    ("other", "got"), [("f4", "c8"), ("c8", "f4"), ("f8", "c8"), ("c8", "c16"), ("f4", "i4"), ("u4", "i4"), ("?", "u1")]
)
def test_dtypes_of_another_kind_are_not_compared(other: Any, got: Any) -> None:
    found = compare(np.ones(4, other), np.ones(4, got), criteria("diff3"), "float")
    assert found.reason == f"its dtype is {np.dtype(got)}, expected {np.dtype(other)}"


def test_complex_halves_are_pairs() -> None:
    b = np.ones((2, 3), np.float16)
    assert "[2, 3]" in compare(b, b.copy(), criteria("diff3"), "complex_half").reason


def test_diff3_1_where_the_baseline_is_a_subnormal_double() -> None:
    """The first block's 0.6 is a bound of 3 in units of the smallest double, rounded, for the last element."""
    b = np.ones(2 * BLOCK)
    m = b.copy()
    m[0], b[-1], m[-1] = 1.6, 5e-324, 1e-323
    assert values(b, m, ["diff3_1"], "double")["diff3_1", ""] == 1


def test_diff_kl_of_the_largest_doubles() -> None:
    b = np.full(1 << 21, 1.7e308)
    b[0] = 0
    assert values(b, b.copy(), ["diff_kl"], "double")["diff_kl", ""] == 0
    m = b.copy()
    m[1 : 1 << 20] = 0.85e308  # P is even, Q is 1/3 and 2/3: KL(P, Q) + KL(Q, P) = log(2) / 6
    assert values(b, m, ["diff_kl"], "double")["diff_kl", ""] == pytest.approx(math.log(2) / 6, rel=1e-4)


@pytest.mark.parametrize("size", [1000, BLOCK + 5])
def test_diff_kl_agrees_with_the_naive_sum(size: int) -> None:
    rng = np.random.default_rng(2)
    b = rng.standard_normal(size).astype(np.float32)
    m = (b + rng.standard_normal(size) * 0.3).astype(np.float32)
    b[3] = 0
    p, q = (np.maximum(np.abs(x.astype(np.longdouble)), 1e-10) for x in (b, m))
    p, q = p / p.sum(), q / q.sum()
    expected = float((p * np.log(p / q)).sum() + (q * np.log(q / p)).sum())
    assert values(b, m, ["diff_kl"])["diff_kl", ""] == pytest.approx(expected, rel=1e-12)
    assert values(b, b * 2, ["diff_kl"])["diff_kl", ""] == pytest.approx(0, abs=1e-9)


def test_diff_kl_is_judged_from_1000_elements() -> None:
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
def test_naive_agreement_on_any_small_output(both: Any) -> None:
    b, m = (np.array(side, np.float32) for side in zip(*both, strict=True))
    assume(b.any())
    expected = naive(exact(b), exact(m), 1e-6)
    for (name, _), value in values(b, m).items():
        assert value == pytest.approx(expected[name], rel=1e-12), name


@given(pairs, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_sign_and_order_do_not_matter(both: Any, random: Any) -> None:
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
def test_scaling_both_sides(both: Any, power: Any) -> None:
    """A common factor changes no relative metric (the epsilon is small beside such data); diff3_2 scales with it."""
    b, m = (np.array(side, np.float64) * 2.0**40 for side in zip(*both, strict=True))
    assume(np.all(b != 0))
    scale = 2.0**power
    once, scaled = values(b, m, dtype="double"), values(b * scale, m * scale, dtype="double")
    for (name, part), value in once.items():
        factor = scale if name == "diff3_2" else 1
        assert value is not None
        assert scaled[name, part] == pytest.approx(value * factor, rel=1e-12), name


@given(pairs, st.data())
@settings(deadline=None)
def test_one_changed_element_never_passes_at_threshold_0(both: Any, data: Any) -> None:
    b = np.array([pair[0] for pair in both], np.float32)
    position = data.draw(st.integers(0, len(b) - 1))
    m = b.copy()
    m[position] = np.nextafter(b[position], np.float32(np.inf))
    for name in SUMS:
        assert not compare(b, m, criteria(name, threshold=0), "float").passed, name


def test_records_are_json() -> None:
    import json

    b, m = np.array([1, 2, math.nan], "f4"), np.array([1, math.inf, math.nan], "f4")
    record = compare(b, m, criteria(*NAMES, threshold=math.inf), "float").as_record()
    text = json.dumps(record, allow_nan=False)
    assert json.loads(text)["criteria"][0]["value"] is None
    assert json.loads(text)["first_mismatched"] == [1]
