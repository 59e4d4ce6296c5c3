"""What a call of a Python callable leaves behind that could still act for it: running threads, timers, hooks, clocks.

It names what honest code does by mistake and what simple cheats do. Code that sets out to can undo it
(docs/untrusted.md).
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
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
_FIRST: Final = frozenset(sys._current_frames())  # threads of before any implementation is loaded
_STANDARD: Final = os.path.join(os.path.dirname(threading.__file__), "")


class LeftBehind(OutOfBounds):
    """The call left something behind that can write to its outputs or change what measures it: the case fails."""


class Watch:
    """The state of the process before a call of code in this folder (folder_of)."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._others = _FIRST | {threading.get_ident()}
        self._others |= self._working()  # they are at work before the call
        self._hooks = _hooks()

    def settle(self) -> bool:
        """Whether threads are at work for the call; they are waited for, GRACE seconds in all."""
        if sys._current_frames().keys() <= self._others:
            return False
        sleep(_PAUSE)  # a thread of a pool that has just got a task looks idle until it runs
        end = monotonic() + GRACE
        found = False
        while self._working() and monotonic() < end:
            found = True
            sleep(_STEP)
        return found

    def check(self) -> None:
        """LeftBehind where a thread of the call works on, or a timer, a handler, a hook or a clock is another one."""
        for thread in self._working():
            known = {each.ident: each.name for each in threading.enumerate()}
            raise LeftBehind(f"left work running: thread {known.get(thread, thread)!r} is at work")
        if (hooks := _hooks()) != self._hooks:
            names = [name for name, before, now in zip(_names(), self._hooks, hooks, strict=True) if before != now]
            raise LeftBehind(f"left work running: the call set {', '.join(names)}")
        for name, clock in zip(_CLOCKS, _OURS, strict=True):
            if vars(time).get(name) is not clock:
                raise LeftBehind(f"clock replaced: time.{name}")

    def _working(self) -> set[int]:
        """The threads of Python besides the others that are at work, by their identifiers."""
        # No variable holds the frames: this function's own is among them, and a cycle would keep it and its callers,
        # with the arrays of the call, until garbage is collected.
        return {
            each
            for each, frame in sys._current_frames().items()
            if each not in self._others and _works(frame, self._folder)
        }


def _works(frame: FrameType, folder: str) -> bool:
    """Whether a thread runs code of the folder, or will by a timer.

    Kernels and libraries may keep threads that wait for their next task. One waits without a time limit, or it runs
    nothing of the kernel's.
    """
    if _is(frame, "wait") and frame.f_locals.get("timeout", 0) is None:
        return False
    return any(
        (folder and each.f_code.co_filename.startswith(folder))
        or (_is(each, "run") and isinstance(each.f_locals.get("self"), threading.Timer))
        for each in _outwards(frame)
    )


def _is(frame: FrameType, function: str) -> bool:
    """Whether a frame is that of a function of threading."""
    return frame.f_code.co_name == function and frame.f_code.co_filename == threading.__file__


def _hooks() -> tuple[Any, ...]:
    """What may run code of the implementation later: timers, handlers, functions for profiling and tracing."""
    timers = [any(_signal.getitimer(timer)) for timer in _TIMERS.values()]  # set or not: their time runs
    return (*timers, *map(_signal.getsignal, _SIGNALS), sys.getprofile(), sys.gettrace(), tuple(gc.callbacks))


def _names() -> Iterator[str]:
    yield from (f"the timer {name}" for name in _TIMERS)
    yield from (f"a handler of {signal.Signals(number).name}" for number in _SIGNALS)
    yield from ("a profile function", "a trace function", "a callback of the garbage collector")


def folder_of(target: Callable[..., Any]) -> str:
    """The folder of the file that a callable is written in; empty where it is in none, or in the standard library."""
    while isinstance(target, partial):
        target = target.func
    module = sys.modules.get(getattr(target, "__module__", None) or type(target).__module__)
    file = getattr(module, "__file__", None)
    if file is None or (file.startswith(_STANDARD) and "-packages" not in file):
        return ""
    return os.path.join(os.path.dirname(file), "")


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
