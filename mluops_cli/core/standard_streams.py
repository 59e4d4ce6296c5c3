"""The standard streams: a command works all the same where they are closed, cut off or full."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import Any, Final

_STREAMS: Final = ("stdin", "stdout", "stderr")


def open_closed() -> None:
    """Open streams that are closed at the start (`>&-`) on the null device, so that no file gets their number."""
    for number, name in enumerate(_STREAMS):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115


def speak_utf8() -> None:
    """Write UTF-8 in every locale; bytes of file names that are not UTF-8 are written unchanged."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="surrogateescape")


def abandon(stream: Any) -> None:
    """Discard what a stream still holds and all that is written to it from now on."""
    with suppress(OSError, ValueError, AttributeError):  # not a file of the system
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
