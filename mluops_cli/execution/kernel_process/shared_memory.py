"""Memory that the judging process and its kernel process share: tensors are there, and nothing else.

Three segments, by what the kernel process may do with them. Each is as large as the machine's memory and empty: pages
come with the first write. They are kept between cases: the first write to a page takes much longer than later ones.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

import ml_dtypes  # noqa: F401 - it tells NumPy the names of its dtypes
import numpy as np

from mluops_cli.execution.kernel_process.case_memory import CaseMemory, mapped_file
from mluops_cli.execution.kernel_process.guard_pages import PAGE, POISON, Guard, layout, small_pages
from mluops_cli.implementations.canary_buffer import ALIGNMENT, memory_of
from schemas.errors import UnavailableError

Array = np.ndarray[Any, Any]
Place = tuple[int, int, str, list[int], list[int]]  # segment, offset, dtype, shape, strides in bytes

FIXED, INPUTS, OUTPUTS = range(3)  # what can't be written; what is checked after each call; what is to be written
_LEAST: Final = 1 << 20  # bytes: fewer aren't worth a call of the system
_POPULATE_READ, _POPULATE_WRITE = 22, 23  # MADV_POPULATE_ of Linux 5.14
_CHUNK: Final = 16 << 20  # bytes that are copied at once
_SEALS: Final = "F_SEAL_SHRINK", "F_SEAL_GROW", "F_SEAL_SEAL"


class SharedMemory(CaseMemory):
    """The judging process's side: places tensors one after the other, and forgets all at the end of a case.

    kept: bytes of each segment that the next case finds touched, at most; they count as memory of that case.
    UnavailableError where the user's limits (ulimit) don't allow it.
    """

    def __init__(self, kept: int = 0) -> None:
        self._kept = kept
        self._segments = [_Segment(_largest()) for _ in range(3)]
        self._guards: dict[int, Guard] = {}  # by the address of the tensor

    @property
    def descriptors(self) -> list[int]:
        """The descriptors for the kernel process; that of FIXED can't be written through."""
        return [each.shown if number == FIXED else each.descriptor for number, each in enumerate(self._segments)]

    def allocate(self, size: int) -> Array:
        """So many bytes that the implementation may write to; MemoryError."""
        found = self._segments[OUTPUTS].take(size)
        self._segments[OUTPUTS].touch(found)
        return found

    def placed(self, array: Array, *, fixed: bool = False, at_start: bool = False) -> Array:
        """A copy for the implementation with the array's dtype, shape and strides, read-only; MemoryError."""
        source = memory_of(array)
        segment = self._segments[FIXED if fixed else INPUTS]
        guard = segment.take_guarded(source.nbytes, at_start=at_start)
        file = mapped_file(array) if sys.platform == "linux" else None
        for at in range(0, source.nbytes, _CHUNK):
            segment.copy(source[at : at + _CHUNK], guard.bytes[at : at + _CHUNK])
            if file is not None:  # the copy is used from here on: the pages needn't be held twice
                file.madvise(mmap.MADV_DONTNEED)
        guard.set(POISON[at_start])
        copy: Array = np.ndarray(array.shape, array.dtype, guard.bytes, 0, array.strides)
        copy.flags.writeable = False
        self._guards[_address(copy)] = guard
        return copy

    def hidden(self, array: Array) -> tuple[Array, Callable[[], None]]:
        """As placed, with zeros instead of the values until the function is called."""
        found = self.placed(np.zeros_like(array))
        return found, partial(np.copyto, self._guards[_address(found)].bytes, memory_of(array))

    def stray(self, array: Array) -> str | None:
        """Where something was read or written outside of an array of placed; None where nothing was."""
        guard = self._guards.get(_address(array))
        return None if guard is None else guard.stray()

    def place_of(self, array: Array) -> Place:
        """Where the kernel process finds an array of allocate or placed."""
        described = (array.dtype.name, list(array.shape), list(array.strides))
        address = _address(array)
        for number, segment in enumerate(self._segments):
            if 0 <= address - segment.address < segment.size:  # an empty array too: it has canaries or guard pages
                return (number, address - segment.address, *described)
        raise ValueError("an array that is not in shared memory")

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A block after which what was allocated in it is used no more."""
        before, guards = [segment.used for segment in self._segments], dict(self._guards)
        try:
            yield
        finally:
            self._guards = guards
            for segment, used in zip(self._segments, before, strict=True):
                segment.used = used

    def reset(self) -> None:
        """Forget the tensors of a case; memory beyond what is kept goes back to the system."""
        for segment in self._segments:
            segment.reset(self._kept)
        self._guards.clear()


class _Segment:
    """Shared memory of so many bytes, handed out from its start."""

    def __init__(self, size: int) -> None:
        self.descriptor = _new_file()
        with _files_unlimited():
            while True:
                try:
                    os.ftruncate(self.descriptor, size)
                    self._map = mmap.mmap(self.descriptor, size)
                    break
                except OSError as error:
                    if size <= _LEAST:
                        text = "the limits on address space and on the size of files (ulimit) leave no shared memory"
                        raise UnavailableError(f"{text}: {error.strerror}") from error
                    size //= 2
        # Its pages can't be taken away under the judging process.
        for name in _SEALS if sys.platform == "linux" else ():
            with suppress(OSError, AttributeError):
                fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, getattr(fcntl, name))
        self.shown = _read_only(self.descriptor)
        small_pages(self._map)
        self.size = size
        self.bytes: Array = np.frombuffer(self._map, np.uint8)
        self.address: int = self.bytes.__array_interface__["data"][0]
        self.used = 0
        self._most = self._held = 0  # bytes from the start that have pages: now, and before the case

    def take(self, size: int) -> Array:
        start = self.used
        if size > self.size - start:
            raise MemoryError(f"{size} bytes of shared memory, there are {self.size - start}")
        self.used = start + size + -size % ALIGNMENT
        self._most = max(self._most, self.used)
        return self.bytes[start : start + size]

    def take_guarded(self, size: int, *, at_start: bool) -> Guard:
        """Memory between guard pages, at the start of its pages or at their end."""
        placed = layout(size, at_start=at_start)
        first = self.used + -self.used % PAGE
        self.take(first - self.used + placed.size)
        return Guard(self._map, self.bytes, first, placed, size)

    def touch(self, part: Array) -> None:
        """Give the part its pages, which is about to be written as a whole."""
        _map_pages(self._map, self._start(part), part.nbytes, _POPULATE_WRITE)

    def copy(self, source: Array, part: Array) -> None:
        """Copy bytes into the part."""
        start = self._start(part)
        if part.nbytes <= _LEAST or start + part.nbytes <= self._held:
            part[...] = source
            return
        # New pages take less time when they are written as a file. Mapped, they count as memory of this process.
        with _files_unlimited():
            written = os.pwrite(self.descriptor, source.data, start)
        part[written:] = source[written:]
        _map_pages(self._map, start, part.nbytes, _POPULATE_READ)

    def _start(self, part: Array) -> int:
        return _address(part) - self.address

    def reset(self, kept: int) -> None:
        """Hand out from the start again; pages beyond so many bytes go back to the system."""
        self.used, kept = 0, kept + -kept % PAGE
        if self._most - kept > _LEAST and sys.platform == "linux":
            end = min(self.size, self._most + -self._most % PAGE)
            with suppress(OSError):
                self._map.madvise(mmap.MADV_REMOVE, kept, end - kept)
            self._most = kept
        self._held = self._most


class AttachedMemory:
    """The kernel process's side."""

    def __init__(self, descriptors: Sequence[int]) -> None:
        """Map the segments and close the descriptors: nothing else of this process can find the memory by them."""
        self._maps = []
        for number, descriptor in enumerate(descriptors):
            access = mmap.ACCESS_READ if number == FIXED else mmap.ACCESS_WRITE
            self._maps.append(mmap.mmap(descriptor, 0, access=access))
            small_pages(self._maps[-1])
            _close_all(descriptor)

    def array(self, place: Sequence[Any], *, writeable: bool) -> Array:
        """The array at a place."""
        segment, offset, dtype, shape, strides = place
        found: Array = np.ndarray(shape, np.dtype(dtype), self._maps[segment], offset, strides)
        if writeable:  # by now the file has its pages: so that no call is the first to touch them
            _map_pages(self._maps[segment], offset, found.nbytes, _POPULATE_READ)
        found.flags.writeable = writeable
        return found


def _address(array: Array) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


def _map_pages(mapped: mmap.mmap, start: int, size: int, advice: int) -> None:
    """Map the pages of so many bytes at once, where they are many: one by one each first touch takes longer."""
    if size > _LEAST and sys.platform == "linux":
        first = start - start % PAGE
        with suppress(OSError):
            mapped.madvise(advice, first, start + size - first)


def _close_all(descriptor: int) -> None:
    """Close a descriptor and its copies: Python's mmap keeps one, which a forked process could map again."""
    wanted = os.fstat(descriptor)
    for number in range(descriptor + _COPIES):
        with suppress(OSError):
            if number > 2 and os.path.samestat(os.fstat(number), wanted):
                os.close(number)


_COPIES: Final = 16  # the descriptors of a new process are the lowest ones
_IN_MEMORY: Final = "/dev/shm"
# os.memfd_create is missing where Python was built for an older C library than there is, such as by conda.
_MEMFD: Final = getattr(ctypes.CDLL(None), "memfd_create", None)
_CLOEXEC, _ALLOW_SEALING = 1, 2  # MFD_


def _new_file() -> int:
    """A new file without a name; UnavailableError where there is no place for one.

    A folder in memory may have a limit, 64 MiB in most containers: a write beyond it ends the process by SIGBUS.
    """
    if _MEMFD is not None and (found := int(_MEMFD(b"mluops", _CLOEXEC | _ALLOW_SEALING))) >= 0:
        return found
    for folder in (_IN_MEMORY, None):
        with suppress(OSError), tempfile.TemporaryFile(dir=folder) as file:
            return os.dup(file.fileno())
    raise UnavailableError(
        f"no shared memory: no file can be made in {_IN_MEMORY}, nor in a folder for temporary files"
    )


def _read_only(descriptor: int) -> int:
    """Another descriptor of the file, which can't be written through; the same one where the system gives none."""
    with suppress(OSError):
        return os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY)
    return descriptor


def fixed_inputs_are_safe() -> bool:
    """Whether the kernel process gets the descriptor of FIXED read-only, so that it can't map it for writing."""
    descriptor = _new_file()
    try:
        shown = _read_only(descriptor)
        if shown != descriptor:
            os.close(shown)
        return shown != descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _files_unlimited() -> Iterator[None]:
    """Allow files as large as the hard limit: the memory is a file, though not on a disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (before[1], before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _largest() -> int:
    """The bytes of the machine's memory, for more can't be held; at most an eighth of a limit on address space."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return memory if limit == resource.RLIM_INFINITY else min(memory, limit // 8 // PAGE * PAGE)
