"""Many cases into files, over worker processes: as many at once as the cores and the memory allow."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil

from schemas.errors import MluopsError

_SHARE: Final = 0.8  # of the available memory that cases in work may need together
_CGROUP: Final = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Task:
    """One case to be made: its id, the bytes of memory that takes, and a picklable function that returns its entry."""

    id: str
    peak: int
    make: Callable[[], dict[str, Any]]


Result = tuple[str, dict[str, Any] | MluopsError]


def run_tasks(tasks: Sequence[Task], jobs: int, prepare: Callable[[], None]) -> Generator[Result, None, None]:
    """Make every task, the largest first; yields (id, entry or error) as each is done.

    prepare runs once in each worker (plug-ins). A case that fails doesn't stop the others. MluopsError where a worker
    dies. After an interrupt no file is left half-written.
    """
    ordered = deque(sorted(tasks, key=lambda task: (-task.peak, task.id)))
    if jobs == 1 or len(ordered) == 1:
        yield from map(_make, ordered)
        return
    context = multiprocessing.get_context("spawn")
    workers = min(jobs, len(ordered))
    with ProcessPoolExecutor(workers, context, _start_worker, (prepare,)) as pool:
        try:
            yield from _feed(pool, ordered, 2 * workers)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for child in psutil.Process().children():
                with suppress(psutil.NoSuchProcess):  # the one whose death brought us here
                    child.send_signal(signal.SIGINT)
            raise


def available_memory() -> int:
    """Bytes of memory this process may still take: the machine's, or what its control group (a container) leaves."""
    free = psutil.virtual_memory().available
    try:
        limit = int((_CGROUP / "memory.max").read_text())
        used = int((_CGROUP / "memory.current").read_text())
    except (OSError, ValueError):  # no limit, or no such thing on this system
        return free
    return min(free, max(0, limit - used))


def _feed(pool: ProcessPoolExecutor, waiting: deque[Task], most: int) -> Iterator[Result]:
    budget = int(available_memory() * _SHARE)
    running: dict[Future[Result], Task] = {}
    while waiting or running:
        used = sum(task.peak for task in running.values())
        while waiting and len(running) < most:
            task = waiting[0] if not running or used + waiting[0].peak <= budget else waiting[-1]
            if running and used + task.peak > budget:
                break
            waiting.remove(task)
            with _interrupts_held():  # a worker inherits the block, so none dies of Ctrl-C while it starts
                running[pool.submit(_make, task)] = task
            used += task.peak
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            try:
                result = future.result()
            except BrokenProcessPool:
                ids = ", ".join(sorted(each.id for each in running.values()))
                raise MluopsError(f"a worker process died (out of memory?) while these were made: {ids}") from None
            del running[future]
            yield result


def _make(task: Task) -> Result:
    global _busy
    _busy = True
    try:
        if _stopped:  # the pool hands out what it had queued, and nobody waits for it any more
            raise KeyboardInterrupt
        return task.id, task.make()
    except MluopsError as error:
        return task.id, error
    except Exception as error:
        raise MluopsError(f"{task.id}: {type(error).__name__}: {error}") from error
    finally:
        _busy = False


_busy = _stopped = False  # of a worker: it makes a case; it was told to stop


def _start_worker(prepare: Callable[[], None]) -> None:
    """In a new worker: end with the parent, and let Ctrl-C undo the case in work but leave an idle worker alone."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()

    def interrupted(number: int, frame: Any) -> None:
        global _stopped
        first, _stopped = not _stopped, True
        if _busy and first:  # a second one (from the terminal, from the parent) must not stop the tidying up
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    prepare()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Keep Ctrl-C back for a moment; it comes at the end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
