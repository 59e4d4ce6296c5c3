"""What outputs are filled with: kinds of values that show each way of reading an output, different in each repeat."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from mluops_cli.execution.case.sentinel import fill, sentinels
from schemas.dtypes import DTYPES

STORED = {name: dtype.storage for name, dtype in DTYPES.items() if dtype.storage and dtype.storage.kind != "c"}
FLOATS = ("half", "float", "double", "bfloat16", "float8_e4m3fn", "float8_e5m2")
SIZE = 40_000


def filled(storage: Any, repeat: int, baseline: Any = None) -> Any:
    memory = np.zeros(SIZE, storage)
    fill(memory, sentinels(np.dtype(storage), baseline), repeat)
    return memory


def bits(array: Any) -> Any:
    return array.view(f"u{array.itemsize}")


@pytest.mark.parametrize("name", STORED)
def test_every_element_starts_otherwise_in_the_next_repeat(name: str) -> None:
    repeats = [bits(filled(STORED[name], repeat)) for repeat in range(4)]
    assert all((a != b).all() for a, b in pairwise(repeats))


@pytest.mark.parametrize("size", [0, 1, 7, 16380, 16381, 16382, 2 * 16381])
def test_memory_of_any_size_begins_alike(size: int) -> None:
    memory = np.zeros(size, np.float32)
    fill(memory, sentinels(memory.dtype, None), 3)
    assert memory.tobytes() == filled(np.float32, 3)[:size].tobytes()


@pytest.mark.parametrize("name", FLOATS)
def test_floats_are_nan_and_huge_of_both_signs(name: str) -> None:
    storage = STORED[name]
    values = sentinels(storage, None).astype(np.float64)
    assert np.isnan(values).tolist() == [True, False, True, False]
    assert (
        -values[3] == values[1] >= 0.75 * min(float(np.finfo(np.float32).max), {"half": 65504}.get(name, 300)) ** 0.75
    )
    if name != "float8_e4m3fn":  # has but one NaN of each sign
        ordinary = bits(np.array([np.nan, -np.nan]).astype(storage)).tolist()
        assert not set(bits(sentinels(storage, None)).tolist()) & set(ordinary)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_no_nan_where_the_baseline_is_not_finite(name: str, odd: float) -> None:
    """NaN equals any NaN, and in the loose mode Inf: an unwritten element could pass."""
    if name == "float8_e4m3fn" and np.isinf(odd):
        odd = np.nan
    baseline = np.linspace(-3, 3, 70_000).astype(STORED[name])
    assert np.isnan(sentinels(STORED[name], baseline).astype(np.float64)).any()
    baseline[-1] = odd
    values = sentinels(STORED[name], baseline).astype(np.float64)
    assert np.isfinite(values).all()
    assert sorted(np.sign(values).tolist()) == [-1, 1]


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64"])
def test_integers_are_huge_of_both_signs(name: str) -> None:
    assert sorted(np.sign(sentinels(STORED[name], None)).tolist()) == [-1, 1]


def test_what_the_baseline_holds_is_none() -> None:
    first = sentinels(np.dtype("<i4"), None)
    second = sentinels(np.dtype("<i4"), np.array([5, *first], np.int32))
    assert len(second) == 2
    assert not set(first.tolist()) & set(second.tolist())


# How an operator may read what it should only write; every way leaves what isn't 0.
WAYS: dict[str, Callable[[Any], Any]] = {
    "times 0": lambda y: y * np.float32(0),
    "minus itself": lambda y: y - y,
    "max in NumPy": lambda y: np.maximum(y, 0),
    "max in C": lambda y: np.fmax(y, 0),
    "positive or 0": lambda y: np.where(y > 0, y, 0),
    "min in C": lambda y: np.fmin(y, 0),
    "0 unless NaN": lambda y: np.where(y != y, y, 0),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("step", [1, 2, 3, 64, 1000])
def test_a_few_elements_of_one_call_show_every_way_of_reading(way: str, step: int) -> None:
    """Neighbours, or a column of a matrix."""
    for start in range(0, 1000, 99):
        read = WAYS[way](filled(np.float32, 0)[start::step][:24])
        assert ((read != 0) | np.isnan(read)).any()
