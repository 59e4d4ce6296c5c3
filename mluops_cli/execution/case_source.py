"""Where the cases of a run come from that aren't there at its start."""

from __future__ import annotations

from typing import Protocol

from mluops_cli.core.discovery import PlannedCase


class CaseSource(Protocol):
    """Cases that are made while others run."""

    @property
    def handle(self) -> int:
        """A descriptor that can be read when there may be more to take."""

    @property
    def ended(self) -> bool:
        """Whether no more cases are to be started for now."""

    def take(self, count: int) -> list[PlannedCase]:
        """At most so many cases that are ready; it doesn't wait for any."""
