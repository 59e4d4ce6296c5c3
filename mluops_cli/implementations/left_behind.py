"""What a call of a Python callable leaves behind that could still act for it: running threads, timers, hooks, clocks.

It names what honest code does by mistake and what simple cheats do. Code that sets out to can undo it
(docs/untrusted.md).
"""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from collections.abc import Iterator, Set
from importlib import import_module
from itertools import takewhile
from time import monotonic, sleep
from types import FrameType
from typing import Any, Final

from mluops_cli.implementations.base import OutOfBounds
from schemas.process_state import ENDING_SIGNALS

_signal: Final[Any] = import_module("_signal")  # its getsignal makes no enum: all take 3 µs and not 80
GRACE: Final = 0.1  # seconds in which threads may end by themselves; the caller counts them as time of the call
_PAUSE: Final = 0.0002  # seconds, after each call of kernels that keep threads
_STEP: Final = 0.001  # seconds between two looks at threads that are at work
_CLOCKS: Final = ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "process_time", "time", "time_ns")
_OURS: Final = tuple(vars(time)[name] for name in _CLOCKS)  # taken before any implementation is loaded
_TIMERS: Final = {name: getattr(signal, name) for name in ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")}
# Handlers of the others are put back after the call (schemas/process_state.py).
_SIGNALS: Final = tuple(int(each) for each in signal.Signals if each not in ENDING_SIGNALS and each < signal.SIGRTMIN)
_POOLS: Final = ("concurrent/futures/thread.py", "concurrent/futures/_base.py", "multiprocessing/pool.py")
_WAITING: Final = ("threading.py", "queue.py", "selectors.py", "multiprocessing/connection.py")


class LeftBehind(OutOfBounds):
    """The call left something behind that can write to its outputs or change what measures it: the case fails."""


class Watch:
    """The state of the process before a call."""

    def __init__(self) -> None:
        # Threads that are at work already are somebody else's.
        self._others = {threading.get_ident()}
        self._others |= _working(self._others)
        self._hooks = _hooks()

    def settle(self) -> bool:
        """Whether threads are at work for the call; they are waited for, GRACE seconds in all."""
        if sys._current_frames().keys() <= self._others:
            return False
        sleep(_PAUSE)  # a thread of a pool that has just got a task looks idle until it runs
        working = _working(self._others)
        if not working:
            return False
        end = monotonic() + GRACE
        while working and monotonic() < end:
            sleep(_STEP)
            working = _working(self._others)
        return True

    def check(self) -> None:
        """LeftBehind where a thread of the call works on, or a timer, a handler, a hook or a clock is another one."""
        for thread in _working(self._others):
            known = {each.ident: each.name for each in threading.enumerate()}
            raise LeftBehind(f"left work running: thread {known.get(thread, thread)!r} is at work")
        for name, timer in _TIMERS.items():
            if any(_signal.getitimer(timer)):
                raise LeftBehind(f"left work running: the call set the timer {name}")
        if (hooks := _hooks()) != self._hooks:
            names = [name for name, before, now in zip(_names(), self._hooks, hooks, strict=True) if before != now]
            raise LeftBehind(f"left work running: the call set {', '.join(names)}")
        for name, clock in zip(_CLOCKS, _OURS, strict=True):
            if vars(time).get(name) is not clock:
                raise LeftBehind(f"clock replaced: time.{name}")


def _hooks() -> tuple[Any, ...]:
    """What may run code of the implementation later: handlers of signals, functions for profiling and tracing."""
    return (*map(_signal.getsignal, _SIGNALS), sys.getprofile(), sys.gettrace(), tuple(gc.callbacks))


def _names() -> Iterator[str]:
    yield from (f"a handler of {signal.Signals(number).name}" for number in _SIGNALS)
    yield from ("a profile function", "a trace function", "a callback of the garbage collector")


def _working(others: Set[int]) -> set[int]:
    """The threads of Python besides these that are at work, by their identifiers."""
    return {each for each, frame in sys._current_frames().items() if each not in others and _works(frame)}


def _works(frame: FrameType) -> bool:
    """Whether a thread is at work, rather than waiting for its next task: kernels may keep such threads.

    One waits in a pool of the standard library, or in an object of threading or queue without a time limit.
    """
    frames = list(_outwards(frame))
    waiting = list(takewhile(lambda each: _is_of(each, _WAITING), frames))
    if any(_is_of(each, _POOLS) for each in frames[len(waiting) :][:1]):
        return False
    unlimited = frame.f_code.co_name == "wait" and frame.f_locals.get("timeout", 0) is None
    return not (_is_of(frame, ("threading.py",)) and unlimited)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_of(frame: FrameType, files: tuple[str, ...]) -> bool:
    return frame.f_code.co_filename.replace("\\", "/").endswith(files)
