"""Diagnosis: planted faults are named, and their places."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mluops_cli.judging.arithmetic import BLOCK, Array
from mluops_cli.judging.diagnosis import Diagnosis, diagnose
from schemas.criteria import Criterion

EXACT = (Criterion("diff3", 0, "contract"),)
ROUGH = (Criterion("diff1", 3e-3, "contract"), Criterion("diff2", 3e-3, "contract"))


def data(*shape: int, dtype: str = "f4") -> Array:
    return np.random.default_rng(1).standard_normal(shape).astype(dtype)


def found(b: Array, m: Array, criteria: Sequence[Criterion] = EXACT, **options: Any) -> Diagnosis:
    diagnosis = diagnose(b, m, criteria, **options)
    assert diagnosis is not None
    json.dumps(diagnosis.as_record(), allow_nan=False)
    assert diagnosis.words()
    return diagnosis


def words(diagnosis: Diagnosis) -> list[str]:
    return [pattern.word for pattern in diagnosis.patterns]


def regions(diagnosis: Diagnosis) -> list[tuple[str, int | None, int, int]]:
    return [(region.kind, region.axis, region.first, region.last) for region in diagnosis.regions]


def planted(fault: str, b: Array) -> Any:
    """The output, the pattern word, the regions, and the coordinates of the first wrong element."""
    m = b.copy()
    if fault == "all zero":
        return np.zeros_like(b), "zero", [], (0, 0, 0)
    if fault == "tail tile zeroed":
        m[:, :, 60:] = 0
        return m, "zero", [("tail", 2, 60, 63)], (0, 0, 60)
    if fault == "sentinel":
        m[2] = -777
        return m, "never written", [("index", 0, 2, 2)], (2, 0, 0)
    if fault == "shifted":
        return np.roll(b, 1, axis=1), "shifted", [], (0, 0, 0)
    if fault == "transposed":
        return np.ascontiguousarray(b.transpose(0, 2, 1)).reshape(b.shape), "transposed", [], (0, 0, 1)
    if fault == "batch 0 repeated":
        m[1:] = b[0]
        return m, "repeated", [("tail", 0, 1, 3)], (1, 0, 0)
    if fault == "rows swapped":
        m[:, [3, 9]] = b[:, [9, 3]]
        return m, "swapped", [("block", 1, 3, 9)], (0, 3, 0)
    if fault == "rounded through half":
        return b.astype("f2").astype("f4"), "rounded through half", [], (0, 0, 0)
    if fault == "rounded through bfloat16":
        return b.astype(ml_dtypes.bfloat16).astype("f4"), "rounded through bfloat16", [], (0, 0, 0)
    if fault == "factor":
        return b * np.float32(1.01), "factor", [], (0, 0, 0)
    if fault == "NaN":
        m[0, 5, 7:9] = np.nan
        return m, "not finite", [], (0, 5, 7)
    if fault == "one-sided":
        return b + np.abs(data(*b.shape)[::-1]) * 0.1, "one-sided", [], (0, 0, 0)
    if fault == "channel block":
        m[:, :, 16:32] = data(4, 40, 16)
        return m, None, [("block", 2, 16, 31)], (0, 0, 16)
    if fault == "border":
        m[:, [0, -1]] += data(4, 2, 64)
        return m, None, [("border", 1, 0, 39)], (0, 0, 0)
    assert fault == "frame"
    m[:, [0, -1]] += data(4, 2, 64)
    m[:, :, [0, -1]] += data(4, 40, 2)
    return m, None, [("border", None, 0, 0)], (0, 0, 0)


FAULTS = (
    "all zero", "tail tile zeroed", "sentinel", "shifted", "transposed", "batch 0 repeated", "rows swapped",
    "rounded through half", "rounded through bfloat16", "factor", "NaN", "one-sided", "channel block", "border",
    "frame",
)  # fmt: skip


def test_the_words_begin_with_the_count() -> None:
    diagnosis = found(np.arange(1, 11, dtype="f4"), np.zeros(10, "f4"))
    assert diagnosis.words().startswith("10 of 10 elements wrong (1); zeros instead of values; first [0]: 0.0 instead")
    assert diagnosis.as_record()["words"] == diagnosis.words()


def test_a_bool_that_keeps_its_fill_was_never_written() -> None:
    """The fill is no bool that a kernel may have written."""
    fill = np.full(6, 0x5A, np.uint8).view(bool)
    assert words(found(np.array([False] * 6), fill, sentinels=fill[:1])) == ["never written"]
    assert words(found(np.array([False] * 6), np.array([True] * 6), sentinels=fill[:1])) == ["values instead of zeros"]


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_named(fault: str) -> None:
    b = data(4, 40, 64)
    m, word, places, first = planted(fault, b)
    diagnosis = found(b, m, sentinels=np.array([-777, 5], b.dtype))
    assert words(diagnosis) == ([word] if word else [])
    assert regions(diagnosis) == places
    assert diagnosis.first[0].at == first
    assert diagnosis.wrong == int((~((b == m) | (np.isnan(b) & np.isnan(m)))).sum())
    assert sum(diagnosis.density) == pytest.approx(diagnosis.wrong, abs=16)


def test_transposed_of_unequal_axes_and_shift_words() -> None:
    b = data(3, 10, 17)
    m = np.ascontiguousarray(b.swapaxes(1, 2)).reshape(b.shape)
    assert found(b, m).patterns[0].text == "axes 1 and 2 are swapped"
    assert found(b, np.roll(b, -2, axis=2)).patterns[0].text == "the baseline shifted by -2 along axis 2"


def test_missing_zero_fill_and_index_off_by_one() -> None:
    b = data(8, 100)
    b[:, 50:] = 0
    m = b.copy()
    m[:, 50:] = data(8, 50)
    assert words(found(b, m)) == ["values instead of zeros"]
    indices = np.arange(1000, dtype=np.int32) * 7
    off = found(indices, indices + 1)
    assert (words(off), off.patterns[0].text) == (["offset"], "the baseline plus 1")


def test_other_mode_is_made_only_when_tried() -> None:
    b, other = data(50, 50), data(50, 51)[:, 1:]
    diagnosis = found(b, other, alternatives={"psa_type distribute": lambda: other})
    assert diagnosis.patterns[0].text == "the result of psa_type distribute"

    def never() -> None:
        raise AssertionError

    assert words(found(b, np.zeros_like(b), alternatives={"x": never})) == ["zero"]


def test_beyond_a_power_of_two() -> None:
    b = data(1 << 13, 20)
    m = b.copy()
    m.reshape(-1)[1 << 17 :] += 1
    assert ("beyond", None, 1 << 17, b.size - 1) in regions(found(b, m))
    assert "beyond element 2^17" in found(b, m).words()


def test_first_and_worst_elements_with_values_and_ulp() -> None:
    b = np.ones((3, BLOCK), np.float32)
    m = b.copy()
    m[0, 7] = np.nextafter(np.float32(1), np.float32(2))
    m[2, BLOCK - 1] = -1
    m[1, 3], m[1, 4] = 5, 4
    diagnosis = found(b, m)
    assert [element.at for element in diagnosis.first] == [(0, 7), (1, 3), (1, 4), (2, BLOCK - 1)]
    assert [element.at for element in diagnosis.worst] == [(1, 3), (1, 4), (2, BLOCK - 1), (0, 7)]
    assert diagnosis.first[0].ulp == 1
    assert diagnosis.worst[2].ulp == 2 * 0x3F800000  # from 1 down to 0 and on to -1
    assert (diagnosis.worst[0].baseline, diagnosis.worst[0].output) == (1, 5)


@pytest.mark.parametrize(
    ("b", "m", "ulp"),
    [
        (np.float16(1), np.float16(1.0009765625), 1), (ml_dtypes.bfloat16(1), ml_dtypes.bfloat16(1.0078125), 1),
        (np.float64(0), np.float64(-5e-324), 1), (np.uint8(0), np.uint8(255), None),
        (np.int64(-(2**62)), np.int64(2**62), None),
        (np.float32(1), np.float32("nan"), None), (np.complex64(1), np.complex64(1j), None),
        (np.bool_(0), np.bool_(1), None),
    ],
)  # fmt: skip
def test_ulp_distance(b: Array, m: Array, ulp: Any) -> None:
    diagnosis = found(np.asarray([b]), np.asarray([m]))
    assert diagnosis.first[0].ulp == ulp
    assert diagnosis.regions == ()


def test_within_tolerance_is_not_wrong() -> None:
    b = data(100, 100)
    m = b * np.float32(1.0001)
    m[40, 50:54] += 1
    diagnosis = found(b, m, ROUGH)
    assert diagnosis.wrong == 4
    assert diagnosis.first[0].at == (40, 50)
    assert found(b, b * np.float32(1.0001), ROUGH).wrong == np.count_nonzero(b != b * np.float32(1.0001))


def test_small_values_next_to_large_ones_have_a_margin() -> None:
    b = np.full(1000, 10, np.float32)
    b[::2] = 1e-6
    m = b.copy()
    m[::2] += 0.01  # 3e-3 of the typical magnitude, 5, is 0.015
    m[7], m[8] = 11, 0.1
    assert [element.at for element in found(b, m, ROUGH).first] == [(7,), (8,)]


@pytest.mark.parametrize("criteria", [EXACT, ROUGH])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_values_that_agree_without_being_finite_are_not_wrong(criteria: Any, special: Any) -> None:
    b = data(100)
    b[10:20] = special
    m = b.copy()
    m[50], m[12], m[60] = 9, 1, special
    diagnosis = found(b, m, criteria)
    assert [element.at for element in diagnosis.first] == [(12,), (50,), (60,)]
    assert diagnosis.wrong == 3


def test_nothing_to_say() -> None:
    b = data(4)
    assert diagnose(b, b.copy(), EXACT) is None
    assert diagnose(b, b[:2], EXACT) is None
    assert diagnose(b[:0], b[:0], EXACT) is None


def test_a_single_wrong_element_gets_no_pattern_by_chance() -> None:
    b = data(10, 10)
    m = b.copy()
    m[4, 4] = b[4, 5]
    diagnosis = found(b, m)
    assert (words(diagnosis), diagnosis.regions) == ([], ())


def test_random_values_get_no_pattern_or_region() -> None:
    b, m = data(2, 50, 50, 3), np.random.default_rng(9).standard_normal((2, 50, 50, 3)).astype("f4")
    diagnosis = found(b, m)
    assert (words(diagnosis), diagnosis.regions) == ([], ())


def test_histogram_counts_relative_errors_per_decade() -> None:
    b = np.full(30, 2, np.float64)
    m = b.copy()
    m[:10] += 3e-4
    m[10:15] += 40
    assert found(b, m).histogram == ((-4, 10), (1, 5))


@pytest.mark.parametrize("dtype", ["f2", "i1", "u8", "c8", "?", ml_dtypes.bfloat16])
def test_every_dtype_and_strided_outputs(dtype: str) -> None:
    b = (np.random.default_rng(0).standard_normal((40, 30)) * 5).astype(dtype)
    m = np.asfortranarray(b)
    m[39, 29] = 1 if b[39, 29] == 0 else 0
    diagnosis = found(b, m)
    assert (diagnosis.wrong, diagnosis.first[0].at) == (1, (39, 29))


def test_data_that_fit_half_anyway_are_not_called_rounded() -> None:
    rng = np.random.default_rng(4)
    b, m = (rng.integers(1, 100, (30, 40)).astype(np.float32) for _ in range(2))
    assert words(found(b, m)) == []
