"""The signals that ask a run to end: Ctrl-C, SIGTERM, a closed terminal."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from schemas.process_state import ENDING_SIGNALS


class Interrupt:
    """A flag that a signal sets and that a wait on handle notices, so that no record is cut off in the middle.

    The second signal raises KeyboardInterrupt: the run then ends at once, without a summary.
    """

    def __init__(self) -> None:
        self.handle, self._write = os.pipe()
        self._set = False

    def is_set(self) -> bool:
        """Return whether a signal has come."""
        return self._set

    def __call__(self, *_: object) -> None:
        """Handle a signal."""
        if self._set:
            raise KeyboardInterrupt
        self._set = True
        os.write(self._write, b"!")

    def close(self) -> None:
        """Close the pipe behind the handle."""
        os.close(self.handle)
        os.close(self._write)


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Let the ending signals set a flag during a run; afterwards their handlers are those of before.

    Inside another such block the flag is that block's: a search notices what ended one of its runs. Outside the main
    thread no handler can be set: the flag stays off. Signals that are ignored (nohup) stay ignored.
    """
    for number in ENDING_SIGNALS:
        if isinstance(outer := signal.getsignal(number), Interrupt):
            yield outer
            return
    interrupt = Interrupt()
    before = {}
    if threading.current_thread() is threading.main_thread():
        heeded = [number for number in ENDING_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, interrupt) for number in heeded}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        interrupt.close()
