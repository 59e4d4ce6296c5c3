"""Tensors in shared memory: where they are, who can write to them, and when the system gets the memory back."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import tempfile

import ml_dtypes
import numpy as np
import pytest

from mluops_cli.execution.kernel_process import shared_memory
from mluops_cli.execution.kernel_process.shared_memory import (
    _KEPT,
    FIXED,
    OUTPUTS,
    AttachedMemory,
    SharedMemory,
    fixed_inputs_are_safe,
)
from mluops_cli.implementations.canary_buffer import CanaryBuffer
from schemas.errors import UnavailableError


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
    memory = SharedMemory()
    first = memory.place_of(memory.allocate(100))
    with memory.scope():
        inner = memory.place_of(memory.allocate(100))
    assert memory.place_of(memory.allocate(100)) == inner
    memory.allocate(_KEPT)
    memory.allocate(1 << 20)[...] = 1
    descriptor = memory.descriptors[OUTPUTS]
    assert os.fstat(descriptor).st_blocks * 512 > 1 << 20
    memory.reset()
    assert os.fstat(descriptor).st_blocks * 512 < 1 << 20
    assert memory.place_of(memory.allocate(100)) == first


def test_more_than_there_is() -> None:
    with pytest.raises(MemoryError):
        SharedMemory().allocate(1 << 60)


def test_fixed_memory_is_given_back_too() -> None:
    memory = SharedMemory()
    memory._segments[FIXED].take(_KEPT)
    memory.placed(np.ones(1 << 20, np.uint8), fixed=True)
    memory.reset()
    assert os.fstat(memory.descriptors[FIXED]).st_blocks == 0
    assert memory.placed(np.ones(4096, np.uint8), fixed=True).all()


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
