from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from mluops_cli.execution.buffers import OutputBuffer, digest, is_mapped, sentinels
from mluops_cli.implementations.memory import Guarded
from schemas.dtypes import DTYPES

HELD = [name for name, dtype in DTYPES.items() if dtype.storage is not None]


@pytest.mark.parametrize("name", HELD)
def test_sentinels_are_distinct_and_another_for_each_repeat(name: str) -> None:
    storage = DTYPES[name].storage
    assert storage is not None
    first, second = sentinels(storage, 0), sentinels(storage, 1)
    assert first[0] != second[0]
    assert {np.array(value, storage).tobytes() for value in first} == {
        np.array(value, storage).tobytes() for value in second
    }
    assert len({np.array(value, storage).tobytes() for value in first}) == len(first) >= 2
    assert all(np.isfinite(np.array(first, storage).astype(np.complex128)))


@pytest.mark.parametrize("name", [*HELD, "complex_half"])
@pytest.mark.parametrize("repeat", [0, 1])
def test_no_element_starts_as_what_it_should_become(name: str, repeat: int) -> None:
    dtype = DTYPES[name]
    storage = dtype.storage if dtype.storage is not None else np.dtype("<f2")
    tail = () if dtype.storage is not None else (2,)
    rng = np.random.default_rng(1)
    baseline = rng.integers(0, 2, (7, 5, *tail)).astype(storage)
    flat: Any = baseline.reshape(-1)
    candidates = sentinels(storage, repeat)
    flat[: len(candidates)] = candidates  # every value that could be the sentinel occurs
    flat[len(candidates)] = storage.type(1)
    buffer = OutputBuffer(dtype, (7, 5), None, baseline, None)
    buffer.prepare(repeat)
    assert buffer.array.shape == baseline.shape
    assert buffer.array.dtype == storage
    different = buffer.array != baseline
    assert bool(different.all())


def test_the_sentinel_is_one_that_the_baseline_lacks() -> None:
    storage = np.dtype("<f4")
    taken = sentinels(storage, 0)[:3]
    baseline = np.array([0, *taken, 5], storage)
    buffer = OutputBuffer(DTYPES["float"], (5,), None, baseline, None)
    buffer.prepare(0)
    assert buffer.array[0] not in baseline
    assert buffer.sentinel == buffer.array[0]


def test_a_contract_may_say_what_an_output_starts_with() -> None:
    buffer = OutputBuffer(DTYPES["int32"], (2, 3), None, np.full((2, 3), -1, np.int32), -1)
    for repeat in range(2):
        buffer.array[...] = 9
        buffer.prepare(repeat)
        assert (buffer.array == -1).all()


def test_a_strided_output_covers_its_span() -> None:
    buffer = OutputBuffer(DTYPES["float"], (2, 3), (8, 2), None, None)
    buffer.prepare(0)
    assert buffer.array.strides == (32, 8)
    start = buffer.array.ctypes.data
    ctypes.memset(start + 4 * (8 + 2 * 2), 0, 4)  # the last element
    assert buffer.damage() is None
    ctypes.memset(start + 4 * (8 + 2 * 2) + 4, 0, 1)
    assert "0 bytes behind the end" in str(buffer.damage())


@pytest.mark.parametrize("size", [1, 63, 64, 1000])
@pytest.mark.parametrize(
    ("at", "words"),
    [(0, "0 bytes behind the end"), (4095, "4095 bytes behind the end"), (-1, "1 bytes before"), (-4096, "4096 bytes")],
)
def test_guards_show_a_single_byte(size: int, at: int, words: str) -> None:
    memory = Guarded(size)
    assert memory.bytes.ctypes.data % 64 == 0
    assert memory.bytes.nbytes == size
    memory.bytes[...] = 7
    assert memory.damage() is None
    ctypes.memset(memory.bytes.ctypes.data + (at if at < 0 else size + at), 0, 1)
    assert words in str(memory.damage())
    memory.restore()
    assert memory.damage() is None


def test_digest_and_maps(tmp_path: Any) -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    before = digest(array)
    assert digest(array.copy()) == before
    array[1, 2, 3] += 1
    assert digest(array) != before
    assert digest(array[:, ::2]) == digest(array[:, ::2].copy())
    assert not is_mapped(array[1:])
    array.tofile(tmp_path / "raw")
    mapped = np.memmap(tmp_path / "raw", np.float32, "r").view(np.ndarray)
    assert is_mapped(mapped[3:].reshape(3, 7))
