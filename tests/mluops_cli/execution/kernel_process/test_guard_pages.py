"""Reads and writes beside an input are named, whatever its size; what a right kernel reads is not."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from generators.casegen.generate import generate
from generators.casegen.write_options import WriteOptions
from generators.operator_registry import operators
from generators.specs.selection import select_cases
from mluops_cli.execution.kernel_process import guard_pages
from mluops_cli.execution.kernel_process.guard_pages import PAGE, POISON, layout
from mluops_cli.execution.kernel_process.shared_memory import SharedMemory
from mluops_cli.search.case_making import make_case
from tests.mluops_cli.execution.conftest import Ran

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells which pages of a file exist")

SIZES = (0, 1, 63, 64, 65, 1000, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE + 100, 40 * PAGE + 4)
KERNELS = Path(__file__).with_name("reads_outside.py")
PSAMASK = {
    "name": "case",
    "sizes": {"N": 1, "H": 4, "W": 5},
    "params": {"psa_type": "collect", "h_mask": 3, "w_mask": 3},
}


@pytest.fixture
def memory() -> SharedMemory:
    return SharedMemory()


def read(address: int, size: int) -> None:
    ctypes.string_at(address, size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("at_start", [False, True])
def test_a_tensor_lies_at_one_end_of_its_pages(size: int, *, at_start: bool) -> None:
    placed = layout(size, at_start=at_start)
    assert placed.start % 64 == 0
    assert placed.behind % PAGE == placed.size % PAGE == 0
    assert placed.size - placed.behind == PAGE
    assert PAGE <= placed.start <= placed.start + size <= placed.behind
    assert placed.behind - PAGE < size + PAGE  # no page too many
    if at_start:
        assert placed.start == PAGE
    else:
        assert placed.behind - placed.start - size < 64


@pytest.mark.parametrize("size", SIZES[1:])
@pytest.mark.parametrize("fixed", [False, True])
def test_a_read_on_either_side_shows(memory: SharedMemory, size: int, *, fixed: bool) -> None:
    data = np.arange(size).astype(np.uint8)
    for at_start, distance, said in ((False, size + 63, "read beyond the end"), (True, -1, "read before the start")):
        array = memory.placed(data, fixed=fixed, at_start=at_start)
        other = memory.placed(data, fixed=fixed, at_start=at_start)
        assert np.array_equal(array, data)
        read(array.ctypes.data, size)
        assert memory.stray(array) is None
        read(array.ctypes.data + distance, 1)
        assert memory.stray(array) == said
        assert memory.stray(other) is None
        memory.reset()


def test_a_write_shows(memory: SharedMemory) -> None:
    array = memory.placed(np.zeros(1000, np.float32))
    ctypes.memset(array.ctypes.data + array.nbytes + 60, 1, 8)
    assert memory.stray(array) == "written beyond the end"


def test_pages_of_an_earlier_case_are_holes_again(memory: SharedMemory) -> None:
    large = memory.placed(np.ones(20 * PAGE, np.uint8))
    read(large.ctypes.data + large.nbytes, 64)
    assert memory.stray(large)
    memory.reset()
    for size in (100, PAGE, 3 * PAGE):
        array = memory.placed(np.ones(size, np.uint8))
        assert memory.stray(array) is None
        read(array.ctypes.data + array.nbytes, 64)
        assert memory.stray(array) == "read beyond the end"


def test_the_rest_of_the_pages_is_poisoned_otherwise_in_each_of_two_calls(memory: SharedMemory) -> None:
    data = np.zeros(25, np.float32)
    found = []
    for at_start in (False, True):
        array = memory.placed(data, at_start=at_start)
        found.append(ctypes.string_at(array.ctypes.data + array.nbytes, 28))
    assert found == [bytes([each]) * 28 for each in POISON]
    assert np.isnan(np.frombuffer(found[0], np.float32)).all()
    assert (np.frombuffer(found[1], np.float32) > 1e37).all()


def test_after_a_scope_only_what_was_before_is_watched(memory: SharedMemory) -> None:
    array = memory.placed(np.zeros(100, np.uint8))
    with memory.scope():
        inner = memory.placed(np.zeros(100, np.uint8))
        read(inner.ctypes.data + 164, 1)
        assert memory.stray(inner) == "read beyond the end"
    assert memory.stray(inner) is None
    assert memory.stray(array) is None


def test_a_system_that_does_not_tell_shows_nothing(memory: SharedMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_pages, "_MINCORE", None)
    monkeypatch.delattr(mmap, "MADV_REMOVE")
    array = memory.placed(np.zeros(100, np.uint8))
    read(array.ctypes.data + 164, 1)
    assert memory.stray(array) is None


@pytest.mark.parametrize(
    ("name", "repeat", "status", "reason"),
    [
        ("beyond_0", 1, "fail", "read beyond the end of input 'x'"),
        ("before_0", 2, "fail", "repeat 2, after right ones: read before the start of input 'x'"),
        ("beyond_and_raises", 1, "fail", "read beyond the end of input 'x'; raised KeyError: 'lost'"),
        ("beyond_and_wrong_answer", 1, "fail", "read beyond the end of input 'x'; returned an unknown operator status"),
        ("uses_what_is_beside", 1, "fail", "NaN"),
    ],
)
def test_a_case(run: Callable[..., Ran], tmp_path: Path, name: str, repeat: int, status: str, reason: str) -> None:
    make_case("psamask_forward", "general", PSAMASK, tmp_path / "cases")
    ran = run(tmp_path / "cases", "--impl", f"python:{KERNELS}:{name}", "--repeat", repeat)
    (record,) = ran.records.values()
    assert record["status"] == status
    assert reason in record["reason"]


@pytest.mark.slow
@pytest.mark.parametrize("op", operators())
def test_64_elements_behind_each_input_are_named_in_every_case_of_a_general_suite(
    run: Callable[..., Ran], tmp_path: Path, op: str
) -> None:
    for case in select_cases((op,), ("general",), (), 1):
        generate(case, WriteOptions(tmp_path / "cases"))
    for number, tensor in enumerate(operators()[op].contract.inputs):
        ran = run(tmp_path / "cases", "--impl", f"python:{KERNELS}:beyond_{number}", "-j", "2")
        assert len(ran.records) > 20
        reasons = {record["reason"] for record in ran.records.values()}
        assert reasons == {f"read beyond the end of input {tensor.name!r}"}
    right = run(tmp_path / "cases", "--impl", "tiled", "--repeat", "2", "-j", "2")
    assert set(right.statuses.values()) == {"pass"}
