"""Many cases into files, by worker processes: as many at once as the cores and the memory allow."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.reduction import DupFd
from typing import Any, Final

import psutil

from generators.casegen.control_groups import memory_left
from schemas.errors import MluopsError

_FRACTION: Final = 0.8  # of the available memory that the cases being made may need together
_LOOK: Final = 1.0  # seconds between looks at the available memory
_STOPS: Final = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class Task:
    """One case to be made: its id, the bytes of memory that takes, and a picklable function that returns its entry."""

    id: str
    peak: int
    make: Callable[[], dict[str, Any]]


Result = tuple[str, dict[str, Any] | MluopsError]


@dataclass(frozen=True, slots=True)
class InheritedFile:
    """An open file that workers keep open too, such as a lock: it is closed when the last of them has ended."""

    handle: int

    def __reduce__(self) -> tuple[Callable[[Any], InheritedFile], tuple[Any]]:
        return _opened, (DupFd(self.handle),)


def _opened(duplicate: Any) -> InheritedFile:
    return InheritedFile(duplicate.detach())


def run_tasks(
    tasks: Sequence[Task], jobs: int, prepare: Callable[[], None], inherited: InheritedFile | None = None
) -> Generator[Result, None, None]:
    """Make every task, the largest first; yields (id, entry or error) as each is done.

    prepare runs once in each worker (plug-ins); inherited stays open there. A case that fails doesn't stop the others,
    nor does one whose worker dies: the cases of a dead worker are tried once more, each alone. MluopsError where every
    worker dies. After an interrupt no file is left half-written.
    """
    waiting = deque(sorted(tasks, key=lambda task: (-task.peak, task.id)))
    if jobs == 1 or len(waiting) == 1:
        yield from map(_make, waiting)
        return
    start = (prepare, inherited)
    while waiting:
        before = len(waiting)
        unanswered = yield from _run_pool(waiting, jobs, start)
        for task in tuple(unanswered):
            if not (yield from _run_pool(deque([task]), 1, start)):
                unanswered.remove(task)
                continue
            yield task.id, MluopsError(f"{task.id}: a worker process died (out of memory?) while this case was made")
        if waiting and len(unanswered) == before - len(waiting):  # the next workers would die as well
            raise MluopsError(f"worker processes die (out of memory?): none made any of {len(unanswered)} cases")


def available_memory() -> int:
    """Bytes of memory this process may still take: the machine's, or what its control groups (a container) leave."""
    free: int = psutil.virtual_memory().available
    left = memory_left()
    return free if left is None else min(free, left)


@dataclass(slots=True)
class _Budget:
    """The bytes of memory that the cases being made may need together, looked at again every second."""

    bytes: int = 0
    looked: float = field(default=-_LOOK)

    def look(self) -> int:
        now = time.monotonic()
        if now - self.looked >= _LOOK:
            self.looked = now
            self.bytes = int((available_memory() + _held_by_workers()) * _FRACTION)
        return self.bytes


def _held_by_workers() -> int:
    """Bytes of memory that the worker processes hold by themselves, mapped files apart."""
    held = 0
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            memory = child.memory_info()
            held += memory.rss - getattr(memory, "shared", 0)
    return held


def _run_pool(waiting: deque[Task], jobs: int, start: tuple[Any, ...]) -> Generator[Result, None, list[Task]]:
    """Make the tasks in worker processes; returns those that were being made when a worker died, else an empty list."""
    context = multiprocessing.get_context("spawn")
    workers = min(jobs, len(waiting))
    running: dict[Future[Result], Task] = {}
    with ProcessPoolExecutor(workers, context, start_worker, start) as pool:
        try:
            yield from _feed(pool, waiting, running, 2 * workers)
        except BrokenProcessPool:
            return list(running.values())
        except BaseException:
            for child in psutil.Process().children():
                with suppress(psutil.NoSuchProcess):  # it has ended already
                    child.send_signal(signal.SIGINT)
            pool.shutdown(wait=True, cancel_futures=True)  # afterwards none writes any more
            raise
    return []


def _feed(
    pool: ProcessPoolExecutor, waiting: deque[Task], running: dict[Future[Result], Task], most: int
) -> Iterator[Result]:
    """Give tasks to the pool and yield their results; running holds what the pool has. BrokenProcessPool passes."""
    budget = _Budget()
    while waiting or running:
        used = sum(task.peak for task in running.values())
        while waiting and len(running) < most:
            largest = not running or used + waiting[0].peak <= budget.look()
            task = waiting[0 if largest else -1]
            if running and used + task.peak > budget.look():
                break
            with stops_held():  # a worker inherits the block, so none dies of Ctrl-C while it starts
                running[pool.submit(_make, task)] = task
            if largest:
                waiting.popleft()
            else:
                waiting.pop()
            used += task.peak
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            result = future.result()
            del running[future]
            yield result


def _make(task: Task) -> Result:
    with stoppable():
        try:
            return task.id, task.make()
        except MluopsError as error:
            return task.id, error
        except (Exception, SystemExit) as error:
            return task.id, MluopsError(f"{task.id}: {type(error).__name__}: {error}")


@contextmanager
def stoppable() -> Iterator[None]:
    """In a worker: what is done inside ends with KeyboardInterrupt when the worker is told to stop."""
    global _busy
    _busy = True
    try:
        if _stopped:  # the pool hands out what it had queued, and nobody waits for it any more
            raise KeyboardInterrupt
        yield
    finally:
        _busy = False
        if _ended:
            os._exit(1)


_busy = _stopped = False  # of a worker: it makes a case; it was told to stop
_ended = False  # it was told so by SIGTERM: from Python 3.12 on a pool with a dead worker sends it and no other word
_kept: list[InheritedFile] = []


def start_worker(prepare: Callable[[], None], inherited: InheritedFile | None) -> None:
    """In a new worker: end with the parent, and let a signal undo the case in work.

    Ctrl-C leaves an idle worker alone, which the pool tells to end; SIGTERM ends it, after the case is undone.
    """
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    if inherited is not None:
        _kept.append(inherited)

    def interrupted(number: int, frame: Any) -> None:
        global _stopped, _ended
        first, _stopped = not _stopped, True
        _ended = _ended or number == signal.SIGTERM
        if _busy and first:  # a second one (from the terminal, from the parent) must not stop the tidying up
            raise KeyboardInterrupt
        if _ended and not _busy:
            os._exit(1)

    for number in _STOPS:
        signal.signal(number, interrupted)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)
    prepare()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


@contextmanager
def stops_held() -> Iterator[None]:
    """Keep Ctrl-C and SIGTERM back for a moment; they come at the end."""
    came: list[int] = []
    handlers: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        # Blocked here, a signal may come to another thread, such as one of BLAS, and Python handles it in this one.
        handlers = {number: found for number in _STOPS if callable(found := signal.getsignal(number))}
    for number in handlers:
        signal.signal(number, lambda number, _: came.append(number))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)
