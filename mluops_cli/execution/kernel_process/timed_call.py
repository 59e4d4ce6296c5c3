"""One call with its time: of an implementation in this process, or through a kernel process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from time import perf_counter  # by name: an implementation may replace it in the module
from typing import Any

import numpy as np

from mluops_cli.core.exceptions import describe, user_traceback
from mluops_cli.core.hardware.machine import last_level_cache
from mluops_cli.execution.kernel_process.floating_point import MODE
from mluops_cli.execution.kernel_process.glimpse import Glimpse
from mluops_cli.implementations.base import Call, Implementation, Outcome, OutOfBounds
from schemas.process_state import preserved_process_state


@dataclass(frozen=True, slots=True)
class Timed:
    """The outcome of a call, its times in microseconds, and the outputs as they were after it.

    host_us: the time of the whole call, by the clock of the process that made it. round_trip_us: the same with the way
    to that process and back, by the clock of the process that judges; 0 where both are one.
    known_answers: what may have answered instead of the implementation. programs: the names of those that its process
    has started so far. Both are of KnownAnswers.
    """

    outcome: Outcome
    host_us: float
    round_trip_us: float = 0.0
    known_answers: str = ""
    programs: tuple[str, ...] = ()
    glimpse: Glimpse | None = field(default=None, compare=False)

    def check_outputs(self, before: Mapping[str, int] | None = None) -> None:
        """OutOfBounds where an output is another one than at the last look, or before."""
        glimpse = self.glimpse
        if glimpse is not None and (name := glimpse.changed(glimpse.hashes if before is None else before)):
            raise OutOfBounds(f"{name} is still being written after the call returned")


class Raised(Exception):  # noqa: N818 - what the implementation raised, not an error of ours
    """An exception of the implementation, as words: its description and its traceback."""

    def __init__(self, text: str, traceback: str) -> None:
        super().__init__(text)
        self.text = text
        self.traceback = traceback


class KernelLost(BaseException):
    """The kernel process has ended, or has broken its channel."""


class RemoteKernel(ABC):
    """An implementation in a kernel process."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the implementation."""

    @abstractmethod
    def operators(self) -> tuple[str, ...] | None:
        """See Implementation.operators."""

    @abstractmethod
    def device(self) -> str | None:
        """See Implementation.device."""

    @abstractmethod
    def timed_call(self, call: Call) -> Timed:
        """Make a call; besides what Implementation.call may raise: Raised, KernelLost."""

    @abstractmethod
    def flush_cache(self) -> None:
        """Evict the operands from all caches, those of the host included."""


Kernel = Implementation | RemoteKernel


def timed_call(kernel: Kernel, call: Call, key: str = "") -> Timed:
    """Make a call; everything that it changes for the whole process is put back. key is that of the glimpse."""
    if isinstance(kernel, RemoteKernel):
        return kernel.timed_call(call)
    glimpse = Glimpse(call.outputs, key)
    with preserved_process_state(), MODE.of_implementation():
        start = perf_counter()
        outcome = kernel.call(call)
        elapsed = perf_counter() - start
        glimpse.look()
    return Timed(outcome, elapsed * 1e6, glimpse=glimpse)


def flush_caches(kernel: Kernel) -> None:
    """Evict the operands from the caches of the host and of the device."""
    if isinstance(kernel, RemoteKernel):
        kernel.flush_cache()
        return
    memory = _larger_than_caches()
    np.add(memory, 1, out=memory)
    with MODE.of_implementation():
        kernel.flush_cache()


def words_of(raised: BaseException) -> tuple[str, str]:
    """What an implementation raised: its description, and its traceback."""
    if isinstance(raised, Raised):
        return raised.text, raised.traceback
    return describe(raised), user_traceback(raised)


@cache
def _larger_than_caches() -> np.ndarray[Any, Any]:
    return np.zeros(2 * last_level_cache(), np.uint8)
