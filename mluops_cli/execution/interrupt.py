"""Ctrl-C and SIGTERM during a run."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupt:
    """Ctrl-C or SIGTERM as a flag that a wait on handle notices, so that no listener is cut off in a line."""

    def __init__(self) -> None:
        self.handle, self._write = os.pipe()
        self._set = False

    def is_set(self) -> bool:
        """Whether a signal has come."""
        return self._set

    def __call__(self, *_: object) -> None:
        if self._set:
            raise KeyboardInterrupt  # the second time it is meant
        self._set = True
        os.write(self._write, b"!")

    def close(self) -> None:
        """Let go of the handle."""
        os.close(self.handle)
        os.close(self._write)


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """The flag while a run goes on, in the main thread set by the signals; afterwards they mean what they did."""
    interrupt = Interrupt()
    before = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        interrupt.close()
