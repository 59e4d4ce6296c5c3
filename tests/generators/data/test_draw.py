"""Random data: the bits, the distributions, the exact counts, and what they must not depend on."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from generators.data.draw import BLOCK, draw, parse_values
from generators.data.rng import below, bit_generator, distinct
from schemas.dtypes import DTYPES
from schemas.errors import InputError
from tests.conftest import PROJECT

KEY = (1, "op/suite/case", "x")
FLOATS = ("half", "float", "double", "bfloat16")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def drawn(dist: dict[str, Any], dims: tuple[int, ...], dtype: str = "float", key: tuple[Any, ...] = KEY) -> Any:
    return draw(parse_values(dist, {}, dtype), dims, dtype, key)


def philox(key: int, count: int) -> list[int]:
    """Philox4x64-10 (Salmon et al., SC11, "Parallel random numbers: as easy as 1, 2, 3") as the paper states it.

    The counter is raised before each block of four numbers, as NumPy does.
    """
    mask, counter = 2**64 - 1, 0
    out: list[int] = []
    while len(out) < count:
        counter += 1
        c = [counter & mask, counter >> 64, 0, 0]
        k0, k1 = key & mask, key >> 64
        for _ in range(10):
            left, right = 0xD2E7470EE14C6C93 * c[0], 0xCA5A826395121157 * c[2]
            c = [(right >> 64) ^ c[1] ^ k0, right & mask, (left >> 64) ^ c[3] ^ k1, left & mask]
            k0, k1 = (k0 + 0x9E3779B97F4A7C15) & mask, (k1 + 0xBB67AE8584CAA73B) & mask
        out += c
    return out[:count]


def block_bits(block: int, count: int) -> list[int]:
    text = "\0".join(str(part) for part in (*KEY, block))
    return philox(xxhash.xxh3_128_intdigest(text.encode()), count)


# ---- bits -----------------------------------------------------------------------------------------------------------


def test_uniform_values_are_those_of_philox() -> None:
    raw = block_bits(0, 4)
    expected = [-1 + 2 * (half >> 8) / 2**24 for number in raw for half in (number & 0xFFFFFFFF, number >> 32)]
    assert drawn({"uniform": [-1, 1]}, (8,)).tolist() == np.array(expected, np.float32).tolist()
    doubles = [-1 + 2 * (number >> 11) / 2**53 for number in raw]
    assert drawn({"uniform": [-1, 1]}, (4,), "double").tolist() == doubles


def test_integers_are_those_of_philox() -> None:
    assert drawn({"integers": [-5, 5]}, (4,), "int32").tolist() == [number % 11 - 5 for number in block_bits(0, 4)]
    assert drawn({"choice": [7, 8, 9]}, (4,), "int8").tolist() == [7 + number % 3 for number in block_bits(0, 4)]


def test_each_block_has_bits_of_its_own() -> None:
    values = drawn({"integers": [0, 2**64 - 1]}, (BLOCK + 3,), "uint64")
    assert values[:2].tolist() == block_bits(0, 2)
    assert values[BLOCK:].tolist() == block_bits(1, 3)


def test_the_first_values_are_pinned() -> None:
    """A change here changes every generated file: it needs a line in the changelog."""
    assert drawn({"uniform": [-1, 1]}, (3,)).view(np.uint32).tolist() == [3202860400, 1057477194, 3197844716]
    assert drawn({"integers": [0, 999]}, (3,), "int32").tolist() == [355, 3, 872]


def test_nothing_but_the_key_decides() -> None:
    whole = drawn({"uniform": [0, 1]}, (2 * BLOCK,))
    assert (drawn({"uniform": [0, 1]}, (2, BLOCK)).reshape(-1) == whole).all()
    assert (drawn({"uniform": [0, 1]}, (BLOCK + 77,)) == whole[: BLOCK + 77]).all()
    for other in ((2, *KEY[1:]), (1, "op/suite/casf", "x"), (1, "op/suite/case", "y")):
        assert (drawn({"uniform": [0, 1]}, (64,), key=other) != whole[:64]).any()


def test_bytes_are_the_same_in_another_process_and_hash_seed() -> None:
    code = (
        "from generators.data.draw import draw, parse_values\n"
        "v = parse_values({'normal': [0, 1], 'nan': 0.1, 'special': ['largest']}, {}, 'float')\n"
        f"print(draw(v, (1000,), 'float', {KEY!r}).tobytes().hex())"
    )
    outputs = set()
    for seed in ("0", "1", "4711"):
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(PROJECT)}
        outputs.add(subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True).stdout)
    assert outputs == {
        drawn({"normal": [0, 1], "nan": 0.1, "special": ["largest"]}, (1000,)).tobytes().hex().encode() + b"\n"
    }


# ---- distributions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    ("low", "high"), [(-1, 1), (0, 1), (0.1, 0.1001), (-3, 60000), (1, 1.01), (-(2.0**-14), 2.0**-14)]
)
def test_uniform_stays_inside_and_fills_its_range(dtype: str, low: float, high: float) -> None:
    values = drawn({"uniform": [low, high]}, (100_000,), dtype).astype(np.float64)
    assert values.min() >= low
    assert values.max() < high
    span = high - low
    step = {"half": 2.0**-10, "bfloat16": 2.0**-7}.get(dtype, 2.0**-23) * max(abs(low), abs(high))
    assert values.min() < low + span / 50 + step
    assert values.max() > high - span / 50 - step
    if step < span / 100:
        assert abs(values.mean() - (low + high) / 2) < span / 100
        assert abs(values.std() - span / 12**0.5) < span / 100


def test_uniform_of_the_whole_float_range_is_finite() -> None:
    values = drawn({"uniform": [-3.4e38, 3.4e38]}, (10_000,))
    assert np.isfinite(values).all()
    assert values.max() > 3e38
    assert values.min() < -3e38


@settings(max_examples=60, deadline=None)
@given(st.floats(-1e4, 1e4), st.floats(-1e4, 1e4), st.sampled_from(FLOATS))
def test_uniform_never_reaches_high(low: float, high: float, dtype: str) -> None:
    if low >= high:
        with pytest.raises(InputError, match="low < high"):
            drawn({"uniform": [low, high]}, (5,), dtype)
        return
    try:
        values = drawn({"uniform": [low, high]}, (500,), dtype).astype(np.float64)
    except InputError:  # no number of the dtype lies between them
        between = np.array([(low + high) / 2]).astype(DTYPES[dtype].storage).astype(np.float64)
        assert not low <= between[0] < high
        return
    assert values.min() >= low
    assert values.max() < high


def test_normal_has_its_mean_and_deviation() -> None:
    values = drawn({"normal": [3, 2]}, (200_000,), "double")
    assert abs(values.mean() - 3) < 0.03
    assert abs(values.std() - 2) < 0.03
    assert abs(((values - 3) ** 3).mean()) < 0.3
    assert np.isfinite(drawn({"normal": [0, 10900]}, (100_000,), "half").astype(np.float32)).all()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_reach_both_ends_and_the_whole_range(dtype: str) -> None:
    values = drawn({"integers": [3, 6]}, (4_000,), dtype)
    assert np.bincount(values.astype(np.int64), minlength=7)[3:].min() > 800
    assert sorted(set(values.tolist())) == [3, 4, 5, 6]
    info = np.iinfo(DTYPES[dtype].storage)
    whole = drawn({"integers": [int(info.min), int(info.max)]}, (50_000,), dtype).astype(np.float64)
    span = float(info.max) - float(info.min)
    assert whole.min() < info.min + span / 100
    assert whole.max() > info.max - span / 100


def test_redrawing_keeps_whole_numbers_unbiased() -> None:
    """With bound = 3*2^62, the remainder alone would give the lowest third twice as often."""
    values = below(bit_generator(("bias",)), 30_000, 3 * 2**62)
    assert values.max() < 3 * 2**62
    thirds = np.bincount((values >> np.uint64(62)).astype(np.int64))
    assert abs(thirds - 10_000).max() < 400


def test_sequence_constant_choice() -> None:
    assert drawn({"sequence": [5, -2]}, (2, 2), "int32").tolist() == [[5, 3], [1, -1]]
    assert drawn({"sequence": [0.5, 0.25]}, (3,), "half").tolist() == [0.5, 0.75, 1.0]
    assert drawn({"sequence": [2**64 - 1, -1]}, (2,), "uint64").tolist() == [2**64 - 1, 2**64 - 2]
    assert drawn({"constant": 7}, (3,), "uint8").tolist() == [7, 7, 7]
    assert np.signbit(drawn({"constant": -0.0}, (2,))).all()
    counts = np.unique(drawn({"choice": [1, 2.5, 7]}, (30_000,)), return_counts=True)
    assert counts[0].tolist() == [1, 2.5, 7]
    assert abs(counts[1] - 10_000).max() < 500
    values = drawn({"sequence": [0, 1]}, (BLOCK + 2,), "int32")
    assert values[-1] == BLOCK + 1
    assert drawn({"integers": [0, 1]}, (50,), "bool").sum() in range(5, 46)


@pytest.mark.parametrize(("count", "space"), [(10, 10), (100, 101), (1000, 5000), (1000, 2**62), (0, 7), (1, 1)])
def test_distinct_numbers_are_distinct_and_in_range(count: int, space: int) -> None:
    values = distinct(bit_generator(("d", space)), count, space).tolist()
    assert len(set(values)) == count
    assert all(0 <= value < space for value in values)
    assert count < 50 or values != sorted(values)


def test_unique_values_and_rows() -> None:
    whole = drawn({"unique": [-3, 6]}, (10,), "int64")
    assert sorted(whole.tolist()) == list(range(-3, 7))
    rows = drawn({"unique": [[0, 1], [-1, 1], [5, 5]]}, (6, 3), "int32")
    assert sorted(map(tuple, rows.tolist())) == [(a, b, 5) for a in (0, 1) for b in (-1, 0, 1)]
    many = drawn({"unique": [[0, 3], [0, 40], [0, 1439], [0, 1439]]}, (100_000, 4), "int32")
    assert len(np.unique(many, axis=0)) == 100_000
    assert (many.max(0) <= [3, 40, 1439, 1439]).all()


# ---- NaN, Inf, special values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [(1000,), (3, 7), (BLOCK * 2 + 12345,), (10,)])
def test_shares_are_exact_counts(dims: tuple[int, ...]) -> None:
    values = drawn({"uniform": [1, 2], "nan": 0.1, "inf": 0.25}, dims)
    n = values.size
    nans = int(0.1 * n + 0.5)
    infs = int(0.35 * n + 0.5) - nans
    assert np.isnan(values).sum() == nans
    assert np.isinf(values).sum() == infs
    assert np.isposinf(values).sum() - np.isneginf(values).sum() == infs % 2
    assert ((values >= 1) & (values < 2)).sum() == n - nans - infs


@pytest.mark.parametrize("dtype", FLOATS)
def test_only_nan_only_inf_and_a_tiny_share(dtype: str) -> None:
    assert np.isnan(drawn({"uniform": [0, 1], "nan": 1}, (5, 3), dtype).astype(np.float32)).all()
    assert np.isinf(drawn({"uniform": [0, 1], "inf": 1}, (5, 3), dtype).astype(np.float32)).all()
    assert np.isnan(drawn({"uniform": [0, 1], "nan": 1e-9}, (5,), dtype).astype(np.float32)).sum() == 1
    assert np.isnan(drawn({"uniform": [0, 1], "nan": 1.0}, (BLOCK + 1,), dtype).astype(np.float32)).all()


def test_positions_are_drawn_and_the_rest_is_untouched() -> None:
    plain = drawn({"uniform": [0, 1]}, (BLOCK + 500,))
    laid = drawn({"uniform": [0, 1], "nan": 0.01}, (BLOCK + 500,))
    at = np.flatnonzero(np.isnan(laid))
    assert (np.delete(plain, at) == np.delete(laid, at)).all()
    gaps = np.diff(at)
    assert gaps.min() < 20 < gaps.max()
    assert at.max() > BLOCK
    assert abs(np.isnan(laid[: BLOCK // 2]).sum() - 0.005 * BLOCK) < 0.001 * BLOCK


def test_special_values_come_bit_for_bit() -> None:
    special = [
        "subnormal",
        "-subnormal",
        -0.0,
        "largest",
        "-largest",
        "smallest",
        "0x7fc00001",
        "0xffc12345",
        "-inf",
        1.5,
    ]
    bits = drawn({"uniform": [1, 2], "special": special}, (len(special), 1)).view(np.uint32)
    expected = [
        1,
        0x80000001,
        0x80000000,
        0x7F7FFFFF,
        0xFF7FFFFF,
        0x00800000,
        0x7FC00001,
        0xFFC12345,
        0xFF800000,
        0x3FC00000,
    ]
    assert sorted(bits.reshape(-1).tolist()) == sorted(expected)
    counts = np.unique(
        drawn({"uniform": [1, 2], "special": special, "special_share": 0.5}, (1000,)).view(np.uint32),
        return_counts=True,
    )
    assert all(counts[1][counts[0] == bit] >= 50 for bit in expected)


@pytest.mark.parametrize(
    ("dtype", "word", "bits"),
    [
        ("half", "largest", 0x7BFF), ("half", "subnormal", 1), ("half", "smallest", 0x0400), ("half", "-zero", 0x8000),
        ("bfloat16", "largest", 0x7F7F), ("bfloat16", "0x7fc1", 0x7FC1), ("double", "largest", 0x7FEFFFFFFFFFFFFF),
        ("int8", "largest", 0x7F), ("int8", "-largest", 0x80), ("uint16", "largest", 0xFFFF), ("int32", -1, 0xFFFFFFFF),
        ("int64", "-largest", 2**63), ("bool", "largest", 1),
    ],
)  # fmt: skip
def test_special_words_per_dtype(dtype: str, word: Any, bits: int) -> None:
    value = drawn({"constant": 0, "special": [word]}, (1,), dtype)
    assert int.from_bytes(value.tobytes(), "little") == bits


# ---- sizes, dtypes, memory ------------------------------------------------------------------------------------------


def test_no_elements_need_no_values() -> None:
    for dist in ({"uniform": [0, 1], "nan": 0.5}, {"unique": [0, 0]}, {"sequence": [1, 1]}):
        assert drawn(dist, (0, 3)).shape == (0, 3)
    assert drawn({"unique": [0, 0]}, ()).shape == ()


def test_integer_dtypes_take_the_floor() -> None:
    values = drawn({"uniform": [-2, 2]}, (1000,), "int32")
    assert sorted(set(values.tolist())) == [-2, -1, 0, 1]
    assert drawn({"uniform": [0, 2**63 - 1]}, (1000,), "int64").max() > 2**62


def test_scratch_is_bounded() -> None:
    n = 8 * BLOCK
    tracemalloc.start()
    try:
        drawn({"uniform": [0, 1], "nan": 0.01}, (n,))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * n + 16 * BLOCK


def test_all_floating_dtypes_are_held_as_promised() -> None:
    assert drawn({"normal": [0, 1]}, (2,), "bfloat16").dtype == ml_dtypes.bfloat16
    assert drawn({"uniform": [0, 1]}, (2,), "float8_e4m3fn").dtype == ml_dtypes.float8_e4m3fn
    assert drawn({"uniform": [0, 1]}, (2,), "float16").dtype == np.float16


def test_a7_doubles_over_nearly_their_whole_range_differ() -> None:
    """FOUND A7: high - low is beyond double, and every value was the same."""
    values = drawn({"uniform": [-1.7e308, 1.7e308]}, (10_000,), "double")
    assert np.isfinite(values).all()
    assert len(np.unique(values)) == 10_000
    assert abs((values > 0).mean() - 0.5) < 0.05
    assert values.min() < -1.6e308
    assert values.max() > 1.6e308


def test_b3_no_bound_beyond_64_bits_is_drawn_below() -> None:
    for bound in (0, 2**64 + 1, 10**23):
        with pytest.raises(ValueError, match="expected 1 to 2\\^64"):
            below(bit_generator(KEY), 1, bound)
    assert below(bit_generator(KEY), 2, 2**64).tolist() == bit_generator(KEY).random_raw(2).tolist()
