"""Tensors in shared memory: where they are, who can write to them, and when the system gets the memory back."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import resource
import tempfile

import ml_dtypes
import numpy as np
import pytest

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.execution.kernel_process import shared_memory
from mluops_cli.execution.kernel_process.shared_memory import (
    FIXED,
    INPUTS,
    OUTPUTS,
    AttachedMemory,
    SharedMemory,
    fixed_inputs_are_safe,
)
from mluops_cli.implementations.canary_buffer import CanaryBuffer
from mluops_cli.processes.tree_memory import memory_held
from schemas.errors import UnavailableError
from tests.mluops_cli.execution.kernel_process.conftest import Started

MIB = 1 << 20


def held(memory: SharedMemory, kind: int) -> int:
    """The bytes that one kind of memory takes."""
    return os.fstat(memory.descriptors[kind]).st_blocks * 512


def attached(memory: SharedMemory) -> AttachedMemory:
    """The kernel process's side, which closes the descriptors that it is given."""
    return AttachedMemory([os.dup(each) for each in memory.descriptors])


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24, dtype=np.float32).reshape(2, 3, 4),
        np.arange(24, dtype=np.int64).reshape(4, 6)[:, ::2],
        np.arange(6).astype(ml_dtypes.bfloat16),
        np.arange(6).astype(ml_dtypes.float8_e4m3fn),
        np.array([True, False]),
        np.array(7.5),
        np.ones(3, np.complex64),
        np.empty((0, 4), np.float16),
        np.broadcast_to(np.float32(3), (5, 2)),
    ],
    ids=lambda array: f"{array.dtype} {array.shape}",
)
@pytest.mark.parametrize("fixed", [False, True])
def test_an_array_is_found_again(array: np.ndarray, fixed: bool) -> None:
    memory = SharedMemory()
    placed = memory.placed(array, fixed=fixed)
    found = attached(memory).array(memory.place_of(placed), writeable=False)
    for each in (placed, found):
        assert (each.shape, each.dtype, each.strides) == (array.shape, array.dtype, array.strides)
        assert each.tobytes() == array.tobytes()
        assert not each.flags.writeable


def test_what_the_kernel_process_writes_is_seen() -> None:
    memory = SharedMemory()
    own = memory.allocate(100)
    attached(memory).array(memory.place_of(own), writeable=True)[...] = 7
    assert (own == 7).all()


def test_writes_behind_an_empty_output_meet_its_canaries() -> None:
    memory = SharedMemory()
    empty = CanaryBuffer(0, memory.allocate)
    number, offset, *_ = memory.place_of(empty.bytes)
    shown = attached(memory).array((number, offset, "uint8", [8], [1]), writeable=True)
    assert empty.corruption() is None
    shown[...] = 7
    assert empty.corruption() is not None


def test_a_python_without_memfd_takes_that_of_the_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder in memory has 64 MiB in most containers, and larger cases would end by SIGBUS."""
    monkeypatch.delattr(os, "memfd_create")
    names = {os.readlink(f"/proc/self/fd/{each}") for each in SharedMemory().descriptors}
    assert names == {"/memfd:mluops (deleted)"}


@pytest.mark.parametrize("folder", ["/dev/shm", "/proc", "/missing"])
def test_without_memfd_the_memory_is_a_file(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory where that can be written, otherwise where temporary files are."""
    monkeypatch.setattr(shared_memory, "_MEMFD", None)
    monkeypatch.setattr(shared_memory, "_IN_MEMORY", folder)
    memory = SharedMemory()
    own = memory.allocate(100)
    attached(memory).array(memory.place_of(own), writeable=True)[...] = 7
    assert (own == 7).all()


def test_where_no_file_can_be_made_that_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(dir: str | None) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(shared_memory, "_MEMFD", None)
    monkeypatch.setattr(tempfile, "TemporaryFile", refused)
    with pytest.raises(UnavailableError, match="no shared memory: no file can be made in /dev/shm"):
        SharedMemory()


def test_an_array_of_this_process_has_no_place() -> None:
    with pytest.raises(ValueError, match="not in shared memory"):
        SharedMemory().place_of(np.ones(3))


def test_fixed_memory_can_not_be_made_writable() -> None:
    memory = SharedMemory()
    placed = memory.placed(np.ones(8), fixed=True)
    found = attached(memory).array(memory.place_of(placed), writeable=False)
    libc = ctypes.CDLL(None, use_errno=True)
    page = found.ctypes.data - found.ctypes.data % mmap.PAGESIZE
    assert libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(mmap.PAGESIZE), mmap.PROT_WRITE) == -1
    assert ctypes.get_errno() == errno.EACCES
    with pytest.raises(ValueError, match="WRITEABLE"):
        found.flags.writeable = True


def test_the_kernel_process_keeps_no_descriptor_and_can_not_shrink_the_memory() -> None:
    memory = SharedMemory()
    given = [os.dup(each) for each in memory.descriptors]
    AttachedMemory(given)
    for each in given:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(each)
    memory = SharedMemory()
    with pytest.raises(PermissionError):
        os.ftruncate(memory.descriptors[OUTPUTS], 4096)


def test_a_case_s_memory_is_used_again_and_much_of_it_given_back() -> None:
    memory = SharedMemory(kept=MIB)
    first = memory.place_of(memory.allocate(100))
    with memory.scope():
        inner = memory.place_of(memory.allocate(100))
    assert memory.place_of(memory.allocate(100)) == inner
    memory.allocate(4 * MIB)[...] = 1
    assert held(memory, OUTPUTS) >= 4 * MIB
    memory.reset()
    assert held(memory, OUTPUTS) == MIB
    assert memory.place_of(memory.allocate(100)) == first


@pytest.mark.parametrize("kind", [FIXED, INPUTS])
def test_inputs_are_copied_into_kept_and_into_new_memory(kind: int) -> None:
    memory = SharedMemory(kept=4 * MIB)
    for size in (6 * MIB, 3 * MIB + 1, 9 * MIB):
        data = np.random.default_rng(size).integers(0, 255, size, np.uint8)
        placed = memory.placed(data, fixed=kind == FIXED)
        assert (placed == data).all()
        assert memory.stray(placed) is None
        memory.reset()
        assert held(memory, kind) <= 4 * MIB
    assert held(memory, kind) > 3 * MIB  # but for the guard page


@pytest.mark.parametrize(("limit", "kept"), [(None, True), (1 << 30, False)])
def test_a_case_under_a_limit_finds_no_memory_of_the_one_before(
    limit: int | None, kept: bool, started: Started
) -> None:
    """It would count as memory of that case."""
    kernel = started(CaseOptions(impl="tiled", memory=limit))
    kernel.memory.placed(np.ones(8 * MIB, np.uint8), fixed=True)
    kernel.memory.reset()
    assert (held(kernel.memory, FIXED) > 0) is kept


def test_new_memory_counts_before_the_kernel_reads_it() -> None:
    memory = SharedMemory()
    before = memory_held([os.getpid()], 0)
    memory.placed(np.ones(64 * MIB, np.uint8), fixed=True)
    assert 64 * MIB <= memory_held([os.getpid()], 0) - before < 80 * MIB


def test_a_limit_on_the_size_of_files_hinders_no_copy() -> None:
    memory = SharedMemory()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, before[1]))
    try:
        assert memory.placed(np.ones(4 * MIB, np.uint8), fixed=True).all()
        assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == MIB
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_more_than_there_is() -> None:
    with pytest.raises(MemoryError):
        SharedMemory().allocate(1 << 60)


def test_where_proc_is_refused_all_goes_on_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fixed_inputs_are_safe()
    before = os.open

    def refused(path: str, flags: int, *rest: int) -> int:
        if path.startswith("/proc/self/fd"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return before(path, flags, *rest)

    monkeypatch.setattr(os, "open", refused)
    assert not fixed_inputs_are_safe()
    memory = SharedMemory()
    array = memory.placed(np.arange(6), fixed=True)
    found = attached(memory).array(memory.place_of(array), writeable=False)
    assert found.tolist() == array.tolist()
