"""The memory of a case's tensors: that of this process, unless the calls are made in another one."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]


class CaseMemory:
    """Memory of this process, which NumPy takes and gives back."""

    def allocate(self, size: int) -> Array:
        """So many bytes, uninitialised."""
        return np.empty(size, np.uint8)

    def placed(self, array: Array, *, fixed: bool = False, at_start: bool = False) -> Array:
        """The array where the implementation finds it, read-only; fixed: it can't write there, however it tries.

        Where it has guard pages: it ends directly before one, or starts directly behind one.
        """
        return array

    def hidden(self, array: Array) -> tuple[Array, Callable[[], None]]:
        """As placed, and a function: before its call, the implementation finds zeros there if it searches."""
        return self.placed(array), _nothing

    def stray(self, array: Array) -> str | None:
        """Where something was read or written beside an array of placed; None where nothing was, as far as it knows."""
        return None

    def scope(self) -> AbstractContextManager[None]:
        """A block after which what was allocated in it is used no more."""
        return nullcontext()


HOST: Final = CaseMemory()


def _nothing() -> None:
    """In this process, which the implementation can search anyway, nothing is hidden."""


def mapped_file(array: Array) -> mmap.mmap | None:
    """The memory-mapped file that an array is a view of, None where there is none."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    base = base.obj if isinstance(base, memoryview) else base
    return base if isinstance(base, mmap.mmap) else None
