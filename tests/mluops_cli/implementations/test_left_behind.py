"""Threads, timers, handlers and clocks that a call leaves behind fail it; idle pools and finished threads don't."""

from __future__ import annotations

import _thread
import gc
import queue
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool
from typing import Any

import pytest

from mluops_cli.implementations.callables import CallableKernel
from mluops_cli.implementations.left_behind import LeftBehind

from .test_python import make_call

STARTED = threading.Event()
RELEASED = threading.Event()


@pytest.fixture(autouse=True)
def _released() -> Iterator[None]:
    """Let the threads of a test end with it."""
    STARTED.clear()
    RELEASED.clear()
    yield
    RELEASED.set()


def called(leave: Callable[[], Any]) -> Any:
    """A call of a kernel that copies its input and leaves something behind."""

    def kernel(op: str, inputs: Any, outputs: Any, params: Any) -> None:
        outputs["y"][...] = inputs["x"]
        leave()

    return CallableKernel(kernel)(make_call())


def spins() -> None:
    STARTED.set()
    while not RELEASED.is_set():
        time.sleep(0.001)


def test_a_thread_at_work_is_named() -> None:
    with pytest.raises(LeftBehind, match="left work running: thread 'busy' is at work"):
        called(threading.Thread(target=spins, name="busy", daemon=True).start)


def test_a_thread_that_threading_does_not_know_is_named() -> None:
    with pytest.raises(LeftBehind, match=r"left work running: thread \d+ is at work"):
        called(lambda: [_thread.start_new_thread(spins, ()), STARTED.wait()])


def test_a_thread_that_waits_for_its_time_is_named() -> None:
    timer = threading.Timer(5, spins)
    with pytest.raises(LeftBehind, match="left work running: thread"):
        called(timer.start)
    timer.cancel()


def test_a_thread_that_ends_at_once_counts_as_time_of_the_call() -> None:
    outcome = called(threading.Thread(target=lambda: time.sleep(0.004)).start)
    assert outcome.latency_us > 3_900


def test_threads_of_libraries_may_stay() -> None:
    """Such as the monitor of tqdm: they wake up from time to time."""
    assert called(threading.Thread(target=RELEASED.wait, args=(60,), daemon=True).start).status == "SUCCESS"


def test_threads_of_before_are_nobody_s_business() -> None:
    thread = threading.Thread(target=spins, daemon=True)
    thread.start()
    STARTED.wait()
    assert called(lambda: None).status == "SUCCESS"


def test_idle_pools_may_stay() -> None:
    tasks: queue.Queue[Any] = queue.Queue()

    def own_pool() -> None:
        threading.Thread(target=lambda: tasks.get(), daemon=True).start()

    with ThreadPoolExecutor(2) as executor, ThreadPool(2) as pool:
        assert called(lambda: list(executor.map(abs, range(8)))).status == "SUCCESS"
        assert called(lambda: pool.map(abs, range(8))).status == "SUCCESS"
        assert called(own_pool).status == "SUCCESS"
        try:
            with pytest.raises(LeftBehind, match="left work running: thread 'ThreadPoolExecutor"):
                called(lambda: [executor.submit(spins), STARTED.wait()])
        finally:
            RELEASED.set()
    tasks.put(None)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("perf_counter", lambda: 0.0, "clock replaced: time.perf_counter"),
        ("time_ns", lambda: 0, "clock replaced: time.time_ns"),
    ],
)
def test_another_clock_is_named(name: str, value: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LeftBehind, match=said):
        called(lambda: monkeypatch.setattr(time, name, value))


def test_hooks_are_named() -> None:
    before = signal.getsignal(signal.SIGUSR1), sys.getprofile()
    try:
        with pytest.raises(LeftBehind, match="left work running: the call set a handler of SIGUSR1"):
            called(lambda: signal.signal(signal.SIGUSR1, lambda *_: None))
        with pytest.raises(LeftBehind, match="left work running: the call set a callback of the garbage collector"):
            called(lambda: gc.callbacks.append(lambda *_: None))
        with pytest.raises(LeftBehind, match="left work running: the call set the timer ITIMER_VIRTUAL"):
            called(lambda: signal.setitimer(signal.ITIMER_VIRTUAL, 500))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGUSR1, before[0])
        gc.callbacks.pop()


def test_an_answer_that_computes_when_it_is_read_counts_as_time_of_the_call() -> None:
    class Slow:
        def __index__(self) -> int:
            time.sleep(0.004)
            return 0

    assert CallableKernel(lambda op, inputs, outputs, params: Slow())(make_call()).latency_us > 3_900  # type: ignore[operator]


def copies(op: str, inputs: Any, outputs: Any, params: Any) -> None:
    outputs["y"][...] = inputs["x"]


def test_the_arrays_of_a_call_are_released_with_it() -> None:
    """A frame that holds all frames, its own among them, would keep them until garbage is collected."""
    call = make_call()
    array = call.outputs["y"]
    assert array is not None
    kept = weakref.ref(array)
    gc.disable()
    try:
        CallableKernel(copies)(call)
        del array, call
        assert kept() is None
    finally:
        gc.enable()
