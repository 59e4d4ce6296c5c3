"""A Dask scheduler and its workers as processes of their own, which tests may kill and stop."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mluops_cli.execution.conftest import wait_until

SCHEDULER = "scheduler"


class Dask:
    """A scheduler and workers; a worker without nanny is one process, so a kill of it is final."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start the scheduler."""
        file = self.folder / "scheduler.json"
        self._start(SCHEDULER, "scheduler", "--scheduler-file", str(file), "--port", "0", "--no-dashboard")
        wait_until(lambda: file.exists() and file.read_text().endswith("}"), 60)  # it is there before it is whole
        self.address = str(json.loads(file.read_text())["address"])

    def worker(self, name: str, resource: str = "MLU=1", *options: str, **environment: str) -> None:
        """Start a worker with one thread; environment is added to its own."""
        always = ("--name", name, "--nthreads", "1", "--no-nanny", "--resources", resource, "--no-dashboard")
        folder = ("--local-directory", str(self.folder / name))
        self._start(name, "worker", self.address, *always, *folder, *options, **environment)

    def workers(self, *names: str) -> None:
        """Start workers and wait until the scheduler knows them."""
        for name in names:
            self.worker(name)
        self.wait(len(names))

    def wait(self, count: int) -> None:
        """Wait until the scheduler knows so many workers."""
        from distributed import Client

        with Client(self.address, set_as_default=False, timeout=60) as client:
            client.wait_for_workers(count, timeout=60)

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
