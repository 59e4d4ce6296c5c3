"""The machine: shares, tiles, on-chip memory and its limit, transposes, atomic additions."""

from __future__ import annotations

import numpy as np
import pytest

from mluops_cli.implementations.tiled.onchip import (
    Machine,
    OnChip,
    OnChipLimitError,
    arrival_order,
    atomic_add,
    shuffled,
    split,
    tiles,
    transpose,
)


@pytest.mark.parametrize(
    ("units", "parts", "shares"),
    [
        (10, 4, [range(3), range(3, 6), range(6, 8), range(8, 10)]),
        (8, 4, [range(2), range(2, 4), range(4, 6), range(6, 8)]),
        (3, 4, [range(1), range(1, 2), range(2, 3)]),
        (1, 1, [range(1)]),
        (0, 4, []),
    ],
)
def test_the_first_units_modulo_parts_shares_take_one_more(units: int, parts: int, shares: list[range]) -> None:
    assert list(split(range(units), parts)) == shares


def test_shares_and_tiles_keep_their_offset() -> None:
    assert list(split(range(5, 8), 2)) == [range(5, 7), range(7, 8)]
    assert list(tiles(range(5, 10), 2)) == [range(5, 7), range(7, 9), range(9, 10)]
    assert list(tiles(range(5, 5), 2)) == []


def test_allocation_up_to_the_limit_and_not_beyond() -> None:
    chip = OnChip(40)
    assert chip.alloc(8, np.float32).size == 8
    assert chip.alloc(2, np.float32).size == 2
    with pytest.raises(OnChipLimitError, match=r"1 element of uint8 take 41 bytes .* a core has 40"):
        chip.alloc(1, np.uint8)
    chip.free()
    assert chip.alloc(40, np.uint8).size == 40


def test_arrays_on_chip_are_disjoint_and_aligned() -> None:
    chip = OnChip(64)
    first, second, third = chip.alloc(3, np.uint8), chip.alloc(2, np.float64), chip.alloc(4, np.int32)
    first[:], second[:], third[:] = 1, 2, 3
    assert first.tolist() == [1] * 3
    assert second.tolist() == [2.0] * 2
    assert third.tolist() == [3] * 4
    assert second.flags.aligned


def test_content_is_undefined_until_written_and_stays() -> None:
    chip = OnChip(16)
    assert chip.alloc(4, np.float32).all()
    chip.free()
    chip.alloc(4, np.float32)[:] = 5
    chip.free()
    assert chip.alloc(4, np.float32).tolist() == [5.0] * 4


def test_parts_are_rounded_down_to_128_bytes() -> None:
    assert Machine().part(8, 4) == 20480  # 655360 / 8 / 4, already a multiple of 32
    assert Machine().part(10, 4) == 16384
    assert Machine(nram=3000).part(8, 4) == 64  # 375 bytes: 256
    assert Machine(nram=1024).part(8, 4) == 32
    with pytest.raises(OnChipLimitError, match="8 parts of 128 bytes"):
        Machine(nram=1023).part(8, 4)


def test_defaults_are_the_designs() -> None:
    assert (Machine().nram, Machine().cores, Machine().tasks) == (655360, 4, 16)


@pytest.mark.parametrize("nram", [8, 64, 100, 1 << 16])
@pytest.mark.parametrize("shape", [(1, 1), (7, 5), (1, 33), (33, 1), (20, 31)])
def test_transpose_by_tiles(shape: tuple[int, int], nram: int) -> None:
    source = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)
    target = np.zeros(shape[::-1], np.float32)
    transpose(source, target, OnChip(nram))
    for i in range(shape[0]):
        for j in range(shape[1]):
            assert target[j, i] == source[i, j]


def test_transpose_that_holds_not_one_element() -> None:
    with pytest.raises(OnChipLimitError):
        transpose(np.zeros((2, 2), np.float32), np.zeros((2, 2), np.float32), OnChip(7))


def test_atomic_add_sums_repeated_rows() -> None:
    target = np.ones((4, 2), np.float32)
    rows = np.array([2, 0, 2, 2, 0])
    values = np.array([[1, 10], [2, 20], [4, 40], [8, 80], [16, 160]], np.float32)
    atomic_add(target, rows, values, arrival_order())
    assert target.tolist() == [[19, 181], [1, 1], [14, 131], [1, 1]]
    atomic_add(target, rows[:0], values[:0], arrival_order())
    assert target.sum() == 19 + 181 + 14 + 131 + 4


def test_atomic_add_has_the_precision_of_its_values_and_an_order_of_its_own() -> None:
    """Rounding in float32 shows the order: the same in every run, another with another seed."""
    values = np.random.default_rng(0).normal(size=(1000, 8)).astype(np.float32)
    rows = np.arange(1000) % 3
    sums = []
    for order in (arrival_order(), arrival_order(), np.random.default_rng(1)):
        target = np.zeros((3, 8), np.float32)
        atomic_add(target, rows, values, order)
        sums.append(target)
    np.testing.assert_array_equal(sums[0], sums[1])
    assert (sums[0] != sums[2]).any()
    exact = np.stack([values[row::3].sum(axis=0, dtype=np.float64) for row in range(3)])
    np.testing.assert_allclose(sums[0], exact, atol=1e-4)
    assert (sums[0] != exact).any()


def test_loads_come_shuffled_but_the_same_in_every_run() -> None:
    loads = list(tiles(range(100), 5))
    once, again = (list(shuffled(loads, arrival_order())) for _ in range(2))
    assert once == again
    assert once != loads
    assert sorted(once, key=lambda load: load.start) == loads
