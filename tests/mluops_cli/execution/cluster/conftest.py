"""A Dask scheduler and its workers as processes of their own, which tests may kill and stop."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mluops_cli.execution.cluster import client as fleet
from mluops_cli.execution.cluster import members
from tests.mluops_cli.execution.conftest import wait_until

SCHEDULER = "scheduler"
PATIENCE = 3600.0  # seconds: longer than any test takes, on a loaded machine too
# A kernel whose first call on each worker (WHO) is right, and whose later ones wait for a file beside it.
WAITING = """
import os, pathlib, time
from tests.mluops_cli.execution.misbehaving import right
folder = pathlib.Path(__file__).parent
def kernel(*arguments):
    first = folder / f"first-{os.environ.get('WHO')}"
    while first.exists() and not (folder / "go").exists():
        time.sleep(0.02)
    first.touch()
    return right(*arguments)
"""


@pytest.fixture(autouse=True)
def _patient(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of a cluster gives up nothing because the machine is slow; a test of a limit sets that limit."""
    if request.node.get_closest_marker("cluster") is None:
        return
    for name in ("_CONNECT", "_LOADING", "_UNREACHABLE", "_GRACE"):
        monkeypatch.setattr(fleet, name, PATIENCE)
    for name in ("_SILENT", "_REPLACEMENT"):
        monkeypatch.setattr(members, name, PATIENCE)


@contextlib.contextmanager
def meanwhile(action: Callable[[], None]) -> Iterator[None]:
    """Do something in a thread while the block runs; its exception is the test's."""
    raised: list[BaseException] = []

    def guarded() -> None:
        try:
            action()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if raised:
        raise raised[0]


def records_in(folder: Path, worker: str = "") -> int:
    """How many records the run has so far, of a worker or of all."""
    path = folder / "out" / "results.jsonl"
    text = path.read_text() if path.exists() else ""
    return text.count(f'"worker": "{worker}"' if worker else "\n")


def waiting_kernel(folder: Path) -> str:
    """--impl of WAITING; a file "go" in the folder lets it go on."""
    (folder / "waiting.py").write_text(WAITING)
    return f"python:{folder / 'waiting.py'}:kernel"


class Dask:
    """A scheduler and workers; a worker without nanny is one process, so a kill of it is final."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start the scheduler."""
        file = self.folder / "scheduler.json"
        self._start(SCHEDULER, "scheduler", "--scheduler-file", str(file), "--port", "0", "--no-dashboard")
        wait_until(lambda: file.exists() and file.read_text().endswith("}"))  # it is there before it is whole
        self.address = str(json.loads(file.read_text())["address"])

    def worker(self, name: str, resource: str = "MLU=1", *options: str, **environment: str) -> None:
        """Start a worker with one thread; environment is added to its own."""
        always = ("--name", name, "--nthreads", "1", "--no-nanny", "--resources", resource, "--no-dashboard")
        folder = ("--local-directory", str(self.folder / name))
        self._start(name, "worker", self.address, *always, *folder, *options, WHO=name, **environment)

    def workers(self, *names: str) -> None:
        """Start workers and wait until the scheduler knows them."""
        for name in names:
            self.worker(name)
        self.wait(len(names))

    def wait(self, count: int) -> None:
        """Wait until the scheduler knows so many workers."""
        from distributed import Client

        with Client(self.address, set_as_default=False, timeout=PATIENCE) as client:
            client.wait_for_workers(count, timeout=PATIENCE)

    def kill(self, name: str) -> None:
        """End a process as a crash of its host does."""
        self.processes[name].kill()
        self.processes[name].wait()

    def stop(self, name: str) -> None:
        """Let a process hang: it keeps its connections, but does nothing any more."""
        self.processes[name].send_signal(signal.SIGSTOP)

    def _start(self, name: str, what: str, *options: str, **environment: str) -> None:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *options]
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | environment)

    def close(self) -> None:
        """End all processes."""
        for process in self.processes.values():
            process.kill()
            process.wait()


def _dask(folder: Path) -> Iterator[Dask]:
    pytest.importorskip("distributed", reason="needs Dask: pip install 'mluops[cluster]'")
    running = Dask(folder)
    try:
        running.start()
        yield running
    finally:
        running.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dask]:
    """A scheduler without workers, for one test."""
    yield from _dask(tmp_path_factory.mktemp("dask"))
