"""The processor's floating-point mode: one for the implementation's calls, one for the judge.

A library built with -ffast-math lets the processor take subnormal numbers for 0 as soon as it is loaded. Half is
judged by subnormal numbers (judging/arithmetic.py), so differences of one ULP would vanish with them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from schemas.errors import MluopsError

_SIZE: Final = 64  # bytes, more than any known fenv_t has (32)


def _c_library() -> Any:
    """The library with fegetenv and fesetenv (C99), None where there is none."""
    for name in (None, "libm.so.6", "libm.dylib"):
        try:
            library = ctypes.CDLL(name)
            library.fegetenv, library.fesetenv  # noqa: B018 - AttributeError where it lacks them
        except (OSError, AttributeError, TypeError):
            continue
        return library
    return None


class FloatMode:
    """Two modes: the judge's is that of the process at construction; the implementation's starts as a copy of it."""

    def __init__(self) -> None:
        self._library = _c_library()
        self._judge, self._implementation = self._get(), self._get()
        self._errors = np.geterr()  # how NumPy handles overflow and the like

    @contextmanager
    def of_implementation(self) -> Iterator[None]:
        """Set the implementation's mode in the block and the judge's after it; MluopsError where that fails."""
        self._set(self._implementation)
        try:
            with np.errstate(**self._errors):
                yield
                self._errors = np.geterr()
        finally:
            self._implementation = self._get()
            self._set(self._judge)
        require_subnormals()

    def _get(self) -> Any:
        mode = ctypes.create_string_buffer(_SIZE)
        if self._library is not None:
            self._library.fegetenv(mode)
        return mode

    def _set(self, mode: Any) -> None:
        if self._library is not None:
            self._library.fesetenv(mode)


def require_subnormals() -> None:
    """Raise MluopsError where the processor treats subnormal numbers as 0."""
    if not _SUBNORMAL * _ONE:
        raise MluopsError("subnormal numbers count as 0 in this process (a library built with -ffast-math?)")


_SUBNORMAL: Final = np.full(1, 1e-39, np.float32)
_ONE: Final = np.float32(1)
MODE: Final = FloatMode()
