"""The processor's floating-point mode: what an implementation sets stays with its calls, the judge keeps ours.

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

_SIZE: Final = 64  # bytes; fenv_t has 32 at most where we know it


def _c_library() -> Any:
    """What has fegetenv and fesetenv (C99), None where nothing has."""
    for name in (None, "libm.so.6", "libm.dylib"):
        try:
            library = ctypes.CDLL(name)
            library.fegetenv, library.fesetenv  # noqa: B018 - an AttributeError tells
        except (OSError, AttributeError, TypeError):
            continue
        return library
    return None


class FloatMode:
    """Two modes, ours as it is when this is made, and the implementation's, which begins as ours."""

    def __init__(self) -> None:
        self._library = _c_library()
        self._ours, self._theirs = self._get(), self._get()
        self._errors = np.geterr()  # what NumPy does about overflow and the like

    @contextmanager
    def of_implementation(self) -> Iterator[None]:
        """The implementation's mode within, ours again after; MluopsError where that can't be had."""
        self._set(self._theirs)
        try:
            with np.errstate(**self._errors):
                yield
                self._errors = np.geterr()
        finally:
            self._theirs = self._get()
            self._set(self._ours)
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
    """MluopsError where the processor takes subnormal numbers for 0."""
    if not _SUBNORMAL * _ONE:
        raise MluopsError("subnormal numbers count as 0 in this process (a library built with -ffast-math?)")


_SUBNORMAL: Final = np.full(1, 1e-39, np.float32)
_ONE: Final = np.float32(1)
MODE: Final = FloatMode()
