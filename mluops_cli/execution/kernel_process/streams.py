"""The standard streams of a process that runs an implementation: restored after each call."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import sys
from contextlib import suppress
from typing import Final

_C_LIBRARY: Final = ctypes.CDLL(None)


class Streams:
    """Python streams on descriptors 1 and 2, which stay what they are now."""

    def __init__(self) -> None:
        self._files = [identity(number) for number in (1, 2)]
        self._open()
        faulthandler.enable(file=2)

    def restore(self) -> bool:
        """Write out what Python and C still buffer and open what was closed; whether the descriptors are the old ones.

        Where they aren't, printing would fail, or write into another file.
        """
        for stream in (sys.stdout, sys.stderr):
            with suppress(BaseException):  # the implementation closed or replaced it
                stream.flush()
        _C_LIBRARY.fflush(None)
        if [identity(number) for number in (1, 2)] != self._files:
            return False
        if (sys.stdout, sys.stderr) != self._ours or any(stream.closed for stream in self._ours):
            self._open()
        return True

    def _open(self) -> None:
        """Open new streams: an implementation may have closed or replaced the old ones."""
        sys.stdout, sys.stderr = self._ours = (
            open(1, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False),  # noqa: SIM115
            open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False),  # noqa: SIM115
        )


def identity(number: int) -> tuple[int, int] | None:
    """Device and inode of the file behind a descriptor, None where it is closed."""
    try:
        found = os.fstat(number)
    except OSError:
        return None
    return found.st_dev, found.st_ino
