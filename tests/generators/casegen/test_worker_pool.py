"""Cases over worker processes: a failure stays with its case, a death is told, memory bounds what runs at once."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from generators.casegen import worker_pool as batch
from generators.casegen.worker_pool import Task, run_tasks
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
def test_an_unexpected_error_names_its_case(jobs: int) -> None:
    tasks = [Task("op/s/broken", 1, break_down), Task("z", 0, break_down)]
    with pytest.raises(MluopsError, match=r"op/s/broken: ZeroDivisionError: kernel|z: ZeroDivisionError: kernel"):
        list(run_tasks(tasks, jobs, nothing))


def test_a_worker_that_dies_is_told_with_its_cases() -> None:
    with pytest.raises(MluopsError, match=r"a worker process died \(out of memory\?\).*op/s/fatal"):
        list(run_tasks([Task("op/s/fatal", 1, vanish), Task("op/s/other", 1, refuse)], 2, nothing))


def test_cases_that_do_not_fit_together_run_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "available_memory", lambda: 1000)
    small = [
        Task("a", 400, partial(meet, tmp_path, "a", "b", 60)),
        Task("b", 400, partial(meet, tmp_path, "b", "a", 60)),
    ]
    assert [entry for _, entry in run_tasks(small, 2, nothing)] == [{"met": True}, {"met": True}]
    large = [Task("c", 401, partial(meet, tmp_path, "c", "d", 1)), Task("d", 400, partial(meet, tmp_path, "d", "c", 0))]
    assert dict(run_tasks(large, 2, nothing)) == {"c": {"met": False}, "d": {"met": True}}


_PARENT = """
import sys, time
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
