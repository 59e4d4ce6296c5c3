"""Whether reported times are too short: the judging process times each call too, by a clock that no kernel can reach.

What lies between both times is the way to the kernel process and back. Calls of a kernel that does nothing, in another
process and between the timed calls, tell how long that takes.
"""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any, Final

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.units import format_microseconds
from mluops_cli.execution.case.calls import Calls
from mluops_cli.execution.kernel_process.kernel_handle import KernelProcess
from mluops_cli.execution.kernel_process.timed_call import KernelLost, Timed, flush_caches
from mluops_cli.implementations.base import OutOfBounds
from mluops_cli.implementations.python import Python
from schemas.errors import MluopsError

_LEAST: Final = 6  # timed calls; fewer say nothing
_EACH: Final = 8  # timed calls at the start that are each followed by an empty one
_EVERY: Final = 16  # of the later calls, one in so many is
_FACTOR: Final = 3.0  # besides its time, a right kernel's call takes less than so many empty ones


def nothing(op: str, inputs: Any, outputs: Any, params: Any) -> None:
    """Stand in for a kernel."""


class EmptyCalls:
    """Empty calls between the timed calls of one case."""

    def __init__(self, options: CaseOptions, kernel: KernelProcess) -> None:
        """Start a process like the kernel's, with the same memory."""
        self._python = options.impl.partition(":")[0] == Python.name
        self._process = KernelProcess(replace(options, impl=f"{Python.name}:{__name__}:nothing"), kernel.memory)
        self._await_ready = True
        self._empty: list[Timed] = []

    def follow(self, calls: Calls, number: int) -> str:
        """Make an empty call after the timed call of this number (from 1), or none.

        Return what the timed call has left writing to the outputs, as a sentence; empty where nothing. MluopsError
        where the process has ended.
        """
        if number == 1:
            self._empty.clear()
        if number <= _EACH or number % _EVERY == 0:
            try:
                if self._await_ready:
                    self._process.await_ready()
                    self._await_ready = False
                # Busy directly before, as the kernel's process is: a system under load lets both wait alike then.
                flush_caches(self._process)
                self._empty.append(self._process.timed_call(calls.prepared.call))
            except OutOfBounds as late:  # an empty call writes nothing
                return str(late)
            except KernelLost as lost:
                raise MluopsError(f"empty calls, which show whether times are too short: {lost}") from None
        return ""

    def too_short(self, calls: Calls, first: int) -> str:
        """Why the times of the calls from this number on (from 0) are too short, as a sentence; empty where not."""
        timed = sorted(calls.timed[first:], key=self._shown)
        if len(timed) < _LEAST:
            return ""
        # These make the median what it is. A load on the machine delays some calls, and not all of them.
        least = min(timed[: len(timed) // 2], key=self._besides)
        usual = statistics.quantiles(map(self._besides, self._empty))[-1]
        if self._besides(least) <= _FACTOR * usual:
            return ""
        other, own, empty = map(format_microseconds, (least.round_trip_us, self._shown(least), usual))
        text = f"a call took {other} by another clock, {own} by its own"
        return f"clock replaced: {text}; one that does nothing takes {empty}"

    def _shown(self, timed: Timed) -> float:
        """The reported time of a call in microseconds.

        Of a Python callable without workspace nothing but mluops's own work lies beside its latency. Others copy
        tensors or start programs there: their time is that of the whole call.
        """
        latency, workspace = timed.outcome.latency_us, timed.outcome.workspace_bytes
        return latency if self._python and workspace is None and latency is not None else timed.host_us

    def _besides(self, timed: Timed) -> float:
        """What a call takes besides its reported time."""
        return timed.round_trip_us - self._shown(timed)
