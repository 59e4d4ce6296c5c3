"""Guard pages: holes in a shared file, directly before and behind a tensor, that show who reads there.

The first access to a hole, a read too, makes the system put a page there, in the file, which all processes share.
mincore tells the judging process which pages exist. A page without any access (PROT_NONE) would show the same in one
process alone, and by a signal that ends it.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from contextlib import suppress
from typing import Any, Final, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

PAGE: Final = mmap.PAGESIZE
# Bytes for what is left of the tensor's own pages: NaN and -1, or huge numbers. Two calls with different ones give
# different results where they are read.
POISON: Final = (0xFF, 0x7E)
_ALIGNMENT: Final = 64


class Layout(NamedTuple):
    """Where a tensor lies in a run of pages, in bytes from their start: guard page, its own pages, guard page."""

    start: int
    behind: int  # the second guard page

    @property
    def size(self) -> int:
        """The bytes of all pages."""
        return self.behind + PAGE


def layout(size: int, *, at_start: bool) -> Layout:
    """Place so many bytes at the start of their first page, or else at the end of their last, at a multiple of 64."""
    own = size + -size % PAGE
    free = 0 if at_start else (own - size) // _ALIGNMENT * _ALIGNMENT
    return Layout(PAGE + free, PAGE + own)


class Guard:
    """The guard pages of one tensor, in a mapped file: memory is all of the file, offset where its pages start."""

    def __init__(self, mapped: mmap.mmap, memory: Array, offset: int, placed: Layout, size: int) -> None:
        self._map = mapped
        self._memory = memory
        self._address: int = memory.__array_interface__["data"][0]
        self._pages = offset, offset + placed.behind  # before and behind
        start = offset + placed.start
        self.bytes: Array = memory[start : start + size]
        self._rest = memory[offset + PAGE : start], memory[start + size : offset + placed.behind]
        self._watched = True

    def set(self, poison: int) -> None:
        """Poison the rest of the tensor's own pages and make the guard pages holes; after the tensor is written."""
        for rest in self._rest:
            rest[...] = poison
        if _MINCORE is None:
            self._watched = False
        elif any(found := self._exist()):
            for page, exists in zip(self._pages, found, strict=True):
                if exists:
                    with suppress(OSError):
                        self._map.madvise(mmap.MADV_REMOVE, page, PAGE)
            # Where the system can't tell, such as with huge pages of a file, there is nothing to watch.
            self._watched = not any(self._exist())

    def stray(self) -> str | None:
        """Where something was read or written outside of the tensor since set; None where nothing was."""
        if self._watched and any(found := self._exist()):
            side = found.index(True)
            written = self._memory[self._pages[side] : self._pages[side] + PAGE].any()
            return f"{'written' if written else 'read'} {('before the start', 'beyond the end')[side]}"
        return None

    def _exist(self) -> tuple[bool, bool]:
        """Whether the file has the page before and the page behind."""
        before, behind = self._pages
        if behind - before < len(_FOUND) * PAGE:  # one call for both
            return _exist(self._address + before, (behind - before) // PAGE + 1)
        return _exist(self._address + before, 1)[0], _exist(self._address + behind, 1)[0]


def small_pages(mapped: mmap.mmap) -> None:
    """Let no page of a mapped file be so large that it holds a tensor and its guard."""
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with suppress(OSError):
            mapped.madvise(mmap.MADV_NOHUGEPAGE)


def _exist(address: int, pages: int) -> tuple[bool, bool]:
    """Whether the file has the first and the last of some pages; also where the system doesn't tell."""
    if _MINCORE is None or _MINCORE(address, pages * PAGE, _FOUND) != 0:
        return True, True
    return bool(_FOUND[0] & 1), bool(_FOUND[pages - 1] & 1)


def _mincore() -> Any:
    if sys.platform != "linux":
        return None
    found = ctypes.CDLL(None).mincore
    found.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
    return found


_MINCORE: Final = _mincore()
_FOUND: Final = (ctypes.c_ubyte * 32)()
