"""Cases over worker processes: a failure stays with its case, a death is reported, memory bounds what runs at once."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from generators.casegen import worker_pool as batch
from generators.casegen.worker_pool import InheritedFile, Task, run_tasks, start_worker, stops_held
from schemas.errors import InputError, MluopsError
from tests.conftest import PROJECT


def nothing() -> None:
    """Nothing to prepare."""


def note(folder: Path, name: str, seconds: float = 0) -> dict[str, Any]:
    """Leave the times of begin and end in a file."""
    begin = time.monotonic()
    time.sleep(seconds)
    (folder / name).write_text(f"{begin} {time.monotonic()}")
    return {"name": name, "pid": os.getpid()}


def refuse() -> dict[str, Any]:
    raise InputError("no such thing")


def break_down() -> dict[str, Any]:
    raise ZeroDivisionError("kernel")


def leave() -> dict[str, Any]:
    raise SystemExit(4)


def vanish() -> dict[str, Any]:
    os._exit(9)


def meet(folder: Path, name: str, other: str, seconds: float) -> dict[str, Any]:
    """Whether the other is at work at the same time: waits for it so long."""
    (folder / name).touch()
    until = time.monotonic() + seconds
    while not (folder / other).exists() and time.monotonic() < until:
        time.sleep(0.01)
    met = (folder / other).exists()
    return {"met": met}


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_task_gives_its_entry_or_its_error(tmp_path: Path, jobs: int) -> None:
    tasks = [Task(name, 1, partial(note, tmp_path, name)) for name in "abc"] + [Task("bad", 1, refuse)]
    results = dict(run_tasks(tasks, jobs, nothing))
    assert sorted(results) == ["a", "b", "bad", "c"]
    assert str(results["bad"]) == "no such thing"
    pids = {results[name]["pid"] for name in "abc"}  # type: ignore[index]
    assert (os.getpid() in pids) == (jobs == 1)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("fault", [break_down, leave])
def test_b4_an_unexpected_error_is_that_cases_error(tmp_path: Path, jobs: int, fault: Callable[[], Any]) -> None:
    tasks = [Task("op/s/broken", 9, fault)] + [Task(name, 1, partial(note, tmp_path, name)) for name in "abc"]
    results = dict(run_tasks(tasks, jobs, nothing))
    assert sorted(results) == ["a", "b", "c", "op/s/broken"]
    error = results["op/s/broken"]
    assert isinstance(error, MluopsError)
    assert re.fullmatch(r"op/s/broken: (ZeroDivisionError: kernel|SystemExit: 4)", str(error))
    assert error.exit_code == 3


def test_b4_a_worker_that_dies_costs_only_its_case(tmp_path: Path) -> None:
    tasks = [Task("op/s/fatal", 9, vanish)] + [Task(name, 1, partial(note, tmp_path, name)) for name in "abcdef"]
    results = dict(run_tasks(tasks, 2, nothing))
    assert str(results.pop("op/s/fatal")) == (
        "op/s/fatal: a worker process died (out of memory?) while this case was made"
    )
    assert {name: result["name"] for name, result in results.items()} == {name: name for name in "abcdef"}  # type: ignore[index]


def test_b4_an_idle_worker_ends_by_sigterm_and_not_by_ctrl_c() -> None:
    """A pool with a dead worker sends SIGTERM to the others, and waits for them without end."""
    start: tuple[Any, ...] = (nothing, None)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), start_worker, start) as pool:
        worker = pool.submit(os.getpid).result()
        os.kill(worker, signal.SIGINT)
        assert pool.submit(os.getpid).result() == worker
        os.kill(worker, signal.SIGTERM)
        with pytest.raises(BrokenProcessPool):
            pool.submit(time.sleep, 3).result()


def test_workers_that_all_die_end_the_run() -> None:
    tasks = [Task(f"op/s/{number}", 1, vanish) for number in range(20)]
    with pytest.raises(MluopsError, match=r"worker processes die \(out of memory\?\)"):
        list(run_tasks(tasks, 2, nothing))


class PoolStub:
    """A pool whose tasks are done at once, but for one that is done when nothing else is left."""

    def __init__(self, last: str, others: int) -> None:
        self.last, self.others = last, others
        self.pending: Any = Future()

    def submit(self, make: object, task: Task) -> Any:
        future: Any = self.pending if task.id == self.last else Future()
        if task.id != self.last:
            future.set_result((task.id, {}))
            self.others -= 1
        if self.others == 0:
            self.pending.set_result((self.last, {}))
        return future


def test_b13_taking_tasks_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many tasks pass a large one that waits for memory: none is searched for, and the memory asked once a second."""
    looks = compared = 0

    def available() -> int:
        nonlocal looks
        looks += 1
        return 1000

    def equal(self: Task, other: object) -> bool:
        nonlocal compared
        compared += 1
        return self is other

    monkeypatch.setattr(batch, "available_memory", available)
    monkeypatch.setattr(batch, "_held_by_workers", lambda: 0)
    monkeypatch.setattr(Task, "__eq__", equal)
    small = [Task(str(number), 1, refuse) for number in range(2000)]
    waiting = deque([Task("first", 500, refuse), Task("second", 700, refuse), *small])
    pool: Any = PoolStub("first", len(small))
    begin = time.monotonic()
    results = [name for name, _ in batch._feed(pool, waiting, {}, 4)]
    assert (len(results), results[-1]) == (2002, "second")
    assert "first" in results[-5:]
    assert compared == 0
    assert looks <= time.monotonic() - begin + 1


def test_cases_that_do_not_fit_together_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "available_memory", lambda: 1000)
    monkeypatch.setattr(batch, "_held_by_workers", lambda: 0)
    small = [
        Task("a", 400, partial(meet, tmp_path, "a", "b", 60)),
        Task("b", 400, partial(meet, tmp_path, "b", "a", 60)),
    ]
    assert [entry for _, entry in run_tasks(small, 2, nothing)] == [{"met": True}, {"met": True}]
    large = [Task("c", 401, partial(meet, tmp_path, "c", "d", 1)), Task("d", 400, partial(meet, tmp_path, "d", "c", 0))]
    assert dict(run_tasks(large, 2, nothing)) == {"c": {"met": False}, "d": {"met": True}}


def test_b13_the_memory_is_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory that comes free while cases are made lets later cases run together."""
    begin = time.monotonic()
    monkeypatch.setattr(batch, "available_memory", lambda: 1000 if time.monotonic() < begin + 1.5 else 2000)
    monkeypatch.setattr(batch, "_held_by_workers", lambda: 0)
    tasks = [Task("first", 900, partial(note, tmp_path, "first", 3))]
    tasks += [Task(a, 700, partial(meet, tmp_path, a, b, 30)) for a, b in (("c", "d"), ("d", "c"))]
    results = dict(run_tasks(tasks, 2, nothing))
    assert (results["c"], results["d"]) == ({"met": True}, {"met": True})


def hold(folder: Path, name: str) -> dict[str, Any]:
    """Write how much memory this process holds, after taking 64 MiB."""
    block = bytearray(64 << 20)
    block[::4096] = b"x" * len(block[::4096])
    return meet(folder, name, "end", 3)


def test_memory_that_workers_hold_counts_as_theirs(tmp_path: Path) -> None:
    """A look while cases are made must not take what they hold for the memory of others."""
    seen = 0
    tasks = [Task(name, 1, partial(hold, tmp_path, name)) for name in "ab"]
    tasks.append(Task("quick", 0, partial(note, tmp_path, "quick")))
    for _ in run_tasks(tasks, 3, nothing):
        seen = max(seen, batch._held_by_workers())
        (tmp_path / "end").touch()
    assert seen > 100 << 20


def test_a_file_that_workers_inherit_stays_open_until_the_last_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        tasks = [Task(name, 1, partial(note, tmp_path, name)) for name in "ab"]
        running = run_tasks(tasks, 2, nothing, InheritedFile(file.fileno()))
        next(running)
    with path.open() as other:
        with pytest.raises(BlockingIOError):  # closed here, and still held by the workers
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert len(list(running)) == 1
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


_PARENT = """
import sys, time
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from generators.casegen.worker_pool import Task, run_tasks
from tests.generators.casegen.test_worker_pool import note, nothing
if __name__ == "__main__":
    folder = Path(sys.argv[1])
    tasks = [Task("one", 2, partial(note, folder, "one")), Task("two", 1, partial(note, folder, "two", 60)),
             Task("three", 1, partial(note, folder, "three", 60))]
    list(run_tasks(tasks, 2, nothing))
"""


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(_PARENT)
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    parent = subprocess.Popen([sys.executable, str(script), str(tmp_path)], env=environment)
    workers: list[psutil.Process] = []
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "one").exists() and time.monotonic() < until:
            time.sleep(0.05)
        workers = psutil.Process(parent.pid).children()
        assert len(workers) >= 2
    finally:
        parent.kill()
        parent.wait()
    _, alive = psutil.wait_procs(workers, timeout=3)
    assert alive == []


def test_a_signal_that_another_thread_notices_is_held_back_too() -> None:
    order: list[str] = []
    done = threading.Event()
    other = threading.Thread(target=done.wait)
    before = signal.signal(signal.SIGTERM, lambda *_: order.append("handled"))
    other.start()
    assert other.ident is not None
    try:
        with stops_held():
            signal.pthread_kill(other.ident, signal.SIGTERM)
            time.sleep(0.05)  # the interpreter runs handlers meanwhile
            order.append("held")
        order.append("after")
    finally:
        done.set()
        other.join()
        signal.signal(signal.SIGTERM, before)
    assert order == ["held", "handled", "after"]
