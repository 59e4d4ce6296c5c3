from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from mluops_cli.execution.case.output_buffers import OutputBuffer, digest, is_mapped
from mluops_cli.execution.case.sentinel import sentinels
from mluops_cli.implementations.canary_buffer import CanaryBuffer
from mluops_cli.judging.diagnosis import diagnose
from mluops_cli.judging.verdict import OutputUnderTest, judge_case
from schemas.criteria import Criterion
from schemas.dtypes import DTYPES
from schemas.wire.value_fields import part_dtype, shaped

EQUAL = (Criterion("diff3", 0.0),)
# Of all dtypes but bool the baseline can hold every value.
HELD = [name for name, dtype in DTYPES.items() if dtype.storage is not None and name != "bool"]


@pytest.mark.parametrize("name", [*HELD, "complex_half", "complex_float", "int31"])
@pytest.mark.parametrize("repeat", [0, 1])
def test_no_element_starts_as_what_it_should_become(name: str, repeat: int) -> None:
    part, per_element = part_dtype(DTYPES[name])
    assert part.storage is not None
    storage = np.empty(0, part.storage).real.dtype
    entries = 64 * per_element * (part.storage.itemsize // storage.itemsize)
    flat = np.random.default_rng(1).integers(0, 2, entries).astype(storage)
    at = 0
    while len(values := sentinels(storage, flat)) > 1:  # until no two are left
        flat[at : at + len(values)] = values
        at += len(values)
    baseline = shaped(flat, DTYPES[name], (16, 4), None)
    buffer = OutputBuffer(DTYPES[name], (16, 4), None, baseline, None)
    assert buffer.sentinels is None
    buffer.prepare(repeat)
    assert (buffer.array.shape, buffer.array.dtype) == (baseline.shape, baseline.dtype)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        held, expected = (array.reshape(-1).view(storage).astype(np.float64) for array in (buffer.array, baseline))
    assert not (held == expected).any()
    assert not (np.isnan(held) & np.isnan(expected)).any()


def test_a_buffer_holds_what_it_says_and_that_is_nothing_the_baseline_holds() -> None:
    baseline = np.concatenate((np.arange(100), sentinels(np.dtype("<f4"), None)[1::2])).astype(np.float32)
    buffer = OutputBuffer(DTYPES["float"], (102,), None, baseline, None)
    buffer.prepare(0)
    assert buffer.sentinels is not None
    held, allowed = set(buffer.array.view(np.uint32).tolist()), set(buffer.sentinels.view(np.uint32).tolist())
    assert held == allowed
    assert held.isdisjoint(baseline.view(np.uint32).tolist())


def test_bools_start_as_bytes_that_are_no_bool_whatever_the_baseline_is() -> None:
    baselines = [np.array(values) for values in ([True] * 64, [False] * 64, [True, False] * 32)]
    for repeat in range(2):
        held = []
        for baseline in baselines:
            buffer = OutputBuffer(DTYPES["bool"], (64,), None, baseline, None)
            buffer.prepare(repeat)
            held.append(buffer.array.view(np.uint8).tolist())
        assert held[0] == held[1] == held[2]
        assert set(held[0]).isdisjoint({0, 1})
        assert {each & 1 for each in held[0]} == {0, 1}  # so that & shows too


def judged(baseline: Any, output: Any) -> str:
    return judge_case([OutputUnderTest("y", baseline, output, EQUAL, "bool")]).status


@pytest.mark.parametrize("left", [1, 62])
def test_bools_that_are_not_written_are_wrong(left: int) -> None:
    baseline = np.array([True, False] * 32)
    buffer = OutputBuffer(DTYPES["bool"], (64,), None, baseline, None)
    for repeat in range(2):
        for first in range(2):  # what is left unwritten begins with true, or with false
            buffer.prepare(repeat)
            written = np.ones(64, bool)
            written[first : first + left] = False
            buffer.array[written] = baseline[written]
            assert judged(baseline, buffer.array) == "fail"
            found = diagnose(baseline, buffer.array, EQUAL, sentinels=buffer.sentinels)
            assert found is not None
            assert (found.wrong, found.patterns[0].word) == (64 - written.sum(), "never written")
            buffer.array[...] = baseline
            assert judged(baseline, buffer.array) == "pass"


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
    assert "directly behind the end" in str(buffer.damage())


@pytest.mark.parametrize("size", [1, 63, 64, 1000])
@pytest.mark.parametrize(
    ("at", "words"),
    [
        (0, "directly behind the end (1 canary byte changed)"),
        (4095, "4095 bytes behind the end"),
        (-1, "1 byte before"),
        (-4096, "4096 bytes"),
    ],
)
def test_guards_show_a_single_byte(size: int, at: int, words: str) -> None:
    memory = CanaryBuffer(size)
    assert memory.bytes.ctypes.data % 64 == 0
    assert memory.bytes.nbytes == size
    memory.bytes[...] = 7
    assert memory.corruption() is None
    ctypes.memset(memory.bytes.ctypes.data + (at if at < 0 else size + at), 0, 1)
    assert words in str(memory.corruption())
    memory.restore()
    assert memory.corruption() is None


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


def test_what_an_output_starts_as_does_not_tell_the_baseline() -> None:
    """Where the baseline holds every value of its dtype, each element is changed in a way of its own."""
    baseline = np.arange(4096, dtype=np.int32).astype(np.int8)
    buffer = OutputBuffer(DTYPES["int8"], (4096,), None, baseline, None)
    buffer.prepare(0)
    assert buffer.sentinels is None
    changes = buffer.array.view(np.uint8) ^ baseline.view(np.uint8)
    assert len(np.unique(changes)) > 200
