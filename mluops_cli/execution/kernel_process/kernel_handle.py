"""The judging process's handle of its kernel process: starts it, makes calls through it, ends it."""

from __future__ import annotations

import math
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from multiprocessing.spawn import get_executable
from time import perf_counter
from typing import Any, Final

from generators.casegen.control_groups import memory_left
from mluops_cli.core.case_options import CaseOptions
from mluops_cli.execution.kernel_process.frames import BrokenChannelError, FrameReader, framed, wait_readable
from mluops_cli.execution.kernel_process.glimpse import Glimpse
from mluops_cli.execution.kernel_process.known_answers import phrase_of
from mluops_cli.execution.kernel_process.reply import Ready, Reply, checked, read_reply
from mluops_cli.execution.kernel_process.request import FLUSH, RequestWriter
from mluops_cli.execution.kernel_process.shared_memory import SharedMemory
from mluops_cli.execution.kernel_process.timed_call import KernelLost, RemoteKernel, Timed
from mluops_cli.implementations.base import BadAnswer, Call, OutOfBounds
from mluops_cli.processes.pausing import pause_below, resume

_BOOT: Final = (
    "import sys; sys.path[:] = eval(sys.argv[1]); "
    "from mluops_cli.execution.kernel_process.kernel_main import main; main(*eval(sys.argv[2]))"
)
_ASKED: Final = 0.1  # seconds between questions whether the process has ended, where the system doesn't tell
_KEPT: Final = 256 << 20  # bytes of a segment that are kept between cases, at most
_KEPT_FRACTION: Final = 64  # one of so many parts of the memory
_PROGRAMS: Final = 8  # whose names a record has, at most
_CLOSING: Final = 1.5  # seconds in which it may release what it holds


class KernelEnded(KernelLost):
    """The process has ended; code is as of subprocess.Popen.returncode."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the kernel process ended with {code}")
        self.code = code


class BrokenKernel(KernelLost):
    """What has arrived is not a message of mluops; the text says what it is."""


class KernelProcess(RemoteKernel):
    """A kernel process with an implementation, and the memory that it shares with this process.

    A late message belongs to no case: each request has a token, which the reply repeats.
    """

    def __init__(self, options: CaseOptions, memory: SharedMemory | None = None) -> None:
        """Start the process; await_ready() must follow. Two may share a memory."""
        self.memory = memory or SharedMemory(0 if options.memory is not None else _kept_between_cases())
        self._write = RequestWriter(self.memory)
        self._reader = FrameReader()
        self._ready = Ready()
        self.spoilt = False  # whether no further case may come to it
        self.asked = 0  # requests that were sent to it
        self._paused: list[int] = []  # processes that it has started
        ours, theirs = socket.socketpair()
        self._socket = ours
        given = (theirs.fileno(), self.memory.descriptors, os.getpid())
        path = [each for each in sys.path if isinstance(each, str)]
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined] # as multiprocessing does
        with theirs:
            self._process = subprocess.Popen(
                [get_executable(), *flags, "-c", _BOOT, repr(path), repr(given)],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), *self.memory.descriptors),
                start_new_session=True,
            )
        self._death = _death_of(self._process.pid)
        plugins = list(options.plugins)
        self._send({"impl": options.impl, "plugins": plugins})

    def await_ready(self) -> Ready:
        """Whether the implementation is loaded; KernelLost."""
        self._ready = self._checked(lambda message: checked(message, Ready, "first message"))
        return self._ready

    @property
    def name(self) -> str:
        """The name of the implementation."""
        return self._ready.name

    def operators(self) -> tuple[str, ...] | None:
        """The operators that it has, None where only a call can tell."""
        return None if self._ready.operators is None else tuple(self._ready.operators)

    def device(self) -> str | None:
        """The device's name, None where the host's cores compute."""
        return self._ready.device

    def timed_call(self, call: Call) -> Timed:
        """Make a call; the exceptions are those of RemoteKernel."""
        request = self._write(call)
        start = perf_counter()
        reply = self._answer(request)
        elapsed = (perf_counter() - start) * 1e6
        self._paused = pause_below(self._process.pid)  # they share its outputs, which are judged now
        if reply.host_us > elapsed:
            raise OutOfBounds(f"clock replaced: a call took {reply.host_us:.6g} µs, {elapsed:.6g} µs by another clock")
        timed = replace(
            reply.take(),
            round_trip_us=elapsed,
            known_answers=phrase_of(reply.known_answers),
            programs=_shown(reply.programs),
            glimpse=Glimpse(call.outputs, reply.token),
        )
        timed.check_outputs(reply.glimpse)
        if (latency := timed.outcome.latency_us) is not None and not 0 <= latency < math.inf:
            raise BadAnswer(f"latency_us is {latency}, expected 0 or more microseconds")
        return timed

    def flush_cache(self) -> None:
        """Evict the operands from all caches."""
        self._answer({"what": FLUSH}).take()

    @property
    def handles(self) -> list[Any]:
        """Handles that are readable when something comes from it that nobody waits for, its end included."""
        return [self._socket, *([] if self._death is None else [self._death])]

    def check(self) -> None:
        """KernelLost where it has ended or sent something since the last call."""
        if self._process.poll() is not None:
            raise KernelEnded(self._process.returncode)
        if self._reader or wait_readable([self._socket], 0):
            raise BrokenKernel(str(BrokenChannelError("a result that belongs to no case")))

    def close(self) -> None:
        """Let it release what it holds, and end it."""
        resume(self._paused)
        self._socket.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_CLOSING)
        self._process.kill()
        self._process.wait()

    def _answer(self, request: dict[str, Any]) -> Reply:
        self.check()
        self.asked += 1
        resume(self._paused)
        token = os.urandom(16).hex()
        self._send(request | {"token": token})
        reply: Reply = self._checked(lambda message: read_reply(message, token))
        self.spoilt = self.spoilt or reply.spoilt or bool(self._reader)
        return reply

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._socket.sendall(framed(message))
        except OSError:
            raise KernelEnded(self._process.wait()) from None

    def _checked(self, check: Callable[[dict[str, Any]], Any]) -> Any:
        try:
            return check(self._message())
        except BrokenChannelError as broken:
            raise BrokenKernel(str(broken)) from None

    def _message(self) -> dict[str, Any]:
        """The next message, however long it takes: the supervisor holds the limit of a case; KernelEnded."""
        while True:
            wait_readable(self.handles, None if self._death is not None else _ASKED)
            ended = self._process.poll() is not None  # asked first: what it sent before can still be read
            goes_on = self._reader.read(self._socket.fileno())
            if (message := self._reader.message()) is not None:
                return message
            if ended or not goes_on:  # it has closed the channel, so that its end alone can be waited for
                raise KernelEnded(self._process.wait())


def _shown(programs: list[str]) -> tuple[str, ...]:
    """The first programs, and how many more there are."""
    more = len(programs) - _PROGRAMS
    return (*programs[:_PROGRAMS], *([f"{more} more"] if more > 0 else []))


def _kept_between_cases() -> int:
    """Bytes of each segment: little of the memory that the supervisor lets a case have without --memory."""
    machine, left = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), memory_left()
    return min(_KEPT, (machine if left is None else min(machine, left)) // _KEPT_FRACTION)


def _death_of(process: int) -> int | None:
    """A descriptor that is readable when a process has ended; None where the system or a sandbox has no such."""
    try:
        return os.pidfd_open(process)
    except (AttributeError, OSError):
        return None
