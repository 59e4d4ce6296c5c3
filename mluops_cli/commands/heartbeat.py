"""Lines that say how far a long command is, where there is no terminal to draw a bar on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import rich_click as click

_INTERVAL: Final = 10.0  # seconds between lines


class Heartbeat:
    """Writes a line to stderr now and then. clock: seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._last = clock, clock()

    def say(self, text: Callable[[], str]) -> None:
        """Write the line where ten seconds have passed since the last one."""
        now = self._clock()
        if now - self._last >= _INTERVAL:
            self._last = now
            click.echo(text(), err=True)
