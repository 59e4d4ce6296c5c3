"""Outputs that are near their baseline are measured in a quicker way: to the same metrics, bit for bit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from mluops_cli.judging import measurement
from mluops_cli.judging.arithmetic import BLOCK, Array, Scratch, near_differences
from tests.mluops_cli.judging.naive import FLOORS, exact, naive, values

NAMES = ("diff1", "diff2", "diff3", "diff3_2")
SUMS = ("diff1", "diff2", "diff3_2")
TYPES = {
    "float": np.dtype("f4"),
    "half": np.dtype("f2"),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "int32": np.dtype("i4"),
}


def pair(name: str, size: int, seed: int = 0) -> tuple[Array, Array]:
    """A baseline and an output near it, with a few elements far off and some equal, zero or tiny."""
    rng = np.random.default_rng(seed)
    dtype = TYPES[name]
    b = rng.uniform(100, 4000, size) * rng.choice([-1, 1], size)
    m = b * (1 + rng.normal(0, 0.01, size))
    b, m = b.astype(dtype), m.astype(dtype)
    spots = rng.permutation(size)[: max(1, size // 40)]
    b[spots] = rng.uniform(-3, 3, len(spots)).astype(dtype)  # near zero, so far off by relation
    b[spots[::3]] = 0
    m[spots[1::3]] = b[spots[1::3]]
    if dtype.kind == "f":
        b[spots[2::3]] = np.finfo(dtype).smallest_subnormal * 3
    return b, m


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """How many blocks were measured in the quick way."""
    calls: list[bool] = []

    def counted(*arguments: Any) -> Any:
        found = near_differences(*arguments)
        calls.append(found is not None)
        return found

    monkeypatch.setattr(measurement, "near_differences", counted)
    return calls


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("seed", range(4))
def test_exact_fractions(name: str, seed: int, taken: list[bool]) -> None:
    b, m = pair(name, 1000, seed)
    found = values(b, m, SUMS, name)
    assert taken == [True]
    expected = naive(exact(b), exact(m), FLOORS.get(name, 0))
    for criterion in SUMS:
        assert found[criterion, ""] == pytest.approx(expected[criterion], rel=1e-12, abs=0)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("where", [0.1, 0.9])
def test_the_largest_ratio_is_found_in_whichever_block(name: str, where: float, taken: list[bool]) -> None:
    """The first block goes the plain way, for there is no ratio yet."""
    b, m = pair(name, 2 * BLOCK)
    place = int(where * b.size)
    b[place], m[place] = 1, 100
    with np.errstate(all="ignore"):
        wide, other = b.astype(np.longdouble), m.astype(np.longdouble)
        d, size = np.abs(other - wide), np.abs(wide)
        ratios = np.where(size > FLOORS.get(name, 0), d / (size + np.longdouble(1e-9)), d)
    assert values(b, m, ["diff3"], name)["diff3", ""] == pytest.approx(float(ratios.max()), rel=1e-12)
    assert taken == [False, True]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("size", [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5])
def test_the_same_bits_as_the_plain_way(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch, taken: list[bool]
) -> None:
    b, m = pair(name, size)
    m[-1] = -m[-1]
    quick = [values(b, m, NAMES, name, threads=threads) for threads in (1, 3)]
    assert any(taken) == (size > BLOCK + 1)
    monkeypatch.setattr(measurement, "near_differences", lambda *_: None)
    assert quick == [values(b, m, NAMES, name)] * 2


@pytest.mark.parametrize("criterion", ["diff1", "diff2", "diff3_2"])
def test_without_ratios_the_first_block_is_quick_too(criterion: str, taken: list[bool]) -> None:
    b, m = pair("float", 500)
    assert values(b, m, [criterion])[criterion, ""] == pytest.approx(
        naive(exact(b), exact(m), 1e-6)[criterion], rel=1e-12
    )
    assert taken == [True]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["float", "half", "bfloat16"])
@pytest.mark.parametrize("side", [0, 1])
def test_values_that_are_not_finite_are_not_for_the_quick_way(
    bad: float, name: str, side: int, taken: list[bool]
) -> None:
    both = pair(name, 500)
    both[side][77] = bad
    assert values(both[0], both[1], ["diff1"], name)["diff1", ""] is None
    assert taken == [False]


@pytest.mark.parametrize("large", [2**23, 2**24, 2**30 - 2])
@pytest.mark.parametrize("sign", [-1, 1])
def test_integers_that_float32_rounds(large: int, sign: int, taken: list[bool]) -> None:
    """PITFALLS: 16777216 and 16777217 are two numbers."""
    b = np.full(200, sign * large, np.int32)
    m = b + np.int32(1)
    found = values(b, m, ["diff1", "diff3_2"], "int32")
    assert found["diff3_2", ""] == 1
    assert found["diff1", ""] == pytest.approx(1 / large, rel=1e-12)
    assert taken == [True]


LEAST, MOST = -(2**31), 2**31 - 1


@pytest.mark.parametrize(
    ("other", "got", "difference"),
    [
        (LEAST, MOST, 2**32 - 1),  # wraps to -1
        (MOST, LEAST, 2**32 - 1),
        (LEAST, 0, 2**31),  # a magnitude that int32 has not
        (0, LEAST, 2**31),
        (LEAST, LEAST, 0),
        (MOST - 1, MOST, 1),
        (2**30 - 1, -(2**30) + 1, 2**31 - 2),
        (-(2**30), 2**30, 2**31),
        (-(2**30) + 1, MOST, 3 * 2**30 - 2),
    ],
)
def test_integers_whose_difference_wraps_are_not_for_the_quick_way(
    other: Any, got: Any, difference: Any, taken: list[bool]
) -> None:
    b = np.full(200, 7, np.int32)
    m = b + np.int32(1)
    b[77], m[77] = other, got
    assert values(b, m, ["diff3_2"], "int32")["diff3_2", ""] == max(difference, 1)
    assert taken == [False]


def test_differences_that_pass_the_range_of_float32(taken: list[bool]) -> None:
    b = np.full(200, 3e38, np.float32)
    m = b.copy()
    m[7] = -3e38
    assert values(b, m, ["diff3_2"])["diff3_2", ""] == 2 * float(np.float32(3e38))
    assert taken == [False]


def test_a_limit_that_half_rounds_hides_no_ratio(taken: list[bool]) -> None:
    """The bounds of small halves are subnormal float32 numbers; the last element's was rounded up by 7e-6."""
    b = np.full(2 * BLOCK, 4, np.float16)
    m = b.copy()
    b[3], m[3] = 0.00010001659393310547, 0.00010007619857788086  # 5.95942e-4
    b[BLOCK + 9], m[BLOCK + 9] = 0.0004000663757324219, 0.00040030479431152344  # 5.95946e-4
    true = (float(m[BLOCK + 9]) - float(b[BLOCK + 9])) / (float(b[BLOCK + 9]) + 1e-9)
    assert values(b, m, ["diff3"], "half")["diff3", ""] == pytest.approx(true, rel=1e-12)
    assert taken == [True, True]


def test_no_element_beyond_the_limit_is_overlooked() -> None:
    """Around the limit and around one half, in steps of an ULP."""
    scratch = Scratch(np.float64)
    for limit in (1e-3, 0.1, 0.4999, 0.5, 3.0):
        b = np.full(4000, 1.7, np.float32)
        for around in (1 + limit, 1 - limit, 1.5, 0.5):
            m = b.copy()
            centre = np.float32(1.7 * around).view(np.int32)
            m[:200] = (centre + np.arange(-100, 100, dtype=np.int32)).view(np.float32)
            found = near_differences(b, m, scratch, limit)
            assert found is not None
            true = np.abs(m.astype(np.float64) - b)
            near = np.ones(len(b), bool)
            near[found.far] = False
            assert (true[near] <= limit * b[near].astype(np.float64)).all()
            assert np.array_equal(found.diff[near].astype(np.float64), true[near])
