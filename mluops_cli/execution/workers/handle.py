"""One worker process as the supervisor sees it: a pipe for tasks and results, a pipe for what it prints, and an end."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from mluops_cli.core.case_options import WorkerSettings
from mluops_cli.execution.workers.child import LOST, worker_main
from mluops_cli.execution.workers.messages import BrokenChannelError, FrameReader, check_result

__all__ = ["WorkerProcess", "WorkerSettings"]

KEPT: Final = 4096  # bytes of what a case prints that are kept: as many of its start, as many of its end
_CHUNK: Final = 1 << 16
_CHUNKS: Final = 16  # read at once: a flood must not keep the supervisor from its other work
_LAST: Final = 5.0  # seconds for the warden to end everything
# One thread per worker: the workers share the cores, and sums must not depend on how many threads made them.
_THREADS: Final = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip


_STARTING: Final = threading.Lock()  # what a start changes for a moment belongs to the whole process


class WorkerProcess:
    """A worker: spawned, warm between cases, under a warden (process is that) so that it ends with all it started."""

    def __init__(self, settings: WorkerSettings) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.printed, their_output = context.Pipe(duplex=False)
        self._head, self._tail = bytearray(), bytearray()
        self._lost = 0
        self._used = False
        self._token = ""
        self._frames = FrameReader()
        self.process = context.Process(target=worker_main, args=(theirs, their_output, settings), daemon=False)
        with (
            _STARTING,
            _environment(settings.options.threads),
            _interrupts_held(),
            _main_module_hidden(),
            _children_allowed(),
        ):
            self.process.start()
        theirs.close()
        their_output.close()
        os.set_blocking(self.printed.fileno(), False)
        self.since = time.monotonic()  # of its start, or of the case it works on
        self.ready = False  # whether it has loaded the implementation
        self.device = ""  # the name of what runs its cases, known when it is ready
        self._open = True

    def send(self, task: dict[str, Any]) -> None:
        """Give it a case; OSError where it is gone."""
        self.drain()
        if self._used:  # what was printed while the implementation was loaded belongs to the first case
            self._head.clear()
            self._tail.clear()
            self._lost = 0
        self._used = True
        self.since = time.monotonic()
        self._token = uuid.uuid4().hex
        self.pipe.send_bytes(json.dumps(task | {"token": self._token}).encode())

    def receive(self) -> dict[str, Any] | None:
        """A message that has arrived, None where there is none; BrokenChannelError where it can't be one."""
        with suppress(OSError):  # closed
            for _ in range(_CHUNKS):
                if not self.pipe.poll() or not (data := os.read(self.pipe.fileno(), _CHUNK)):
                    break
                self._frames.feed(data)
        return self._frames.message()

    def result(self) -> dict[str, Any] | None:
        """What came of the case it was given, None where it isn't there yet; BrokenChannelError."""
        message = self.receive()
        if message is not None:
            token = message.pop("token", None)
            check_result(message)
            if token != self._token:
                raise BrokenChannelError("a result of no case")
        return message

    @property
    def unread(self) -> bool:
        """Whether more has arrived than the last message."""
        try:
            return bool(self._frames) or self.pipe.poll()
        except OSError:
            return False

    def drain(self) -> None:
        """Take what it has printed so far; the middle of a flood is dropped."""
        for _ in range(_CHUNKS if self._open else 0):
            try:
                data = os.read(self.printed.fileno(), _CHUNK)
            except BlockingIOError:
                return
            if not data:
                self._open = False
                return
            self._keep(data)
            if len(data) < _CHUNK:
                return

    def _keep(self, data: bytes) -> None:
        room = KEPT - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > KEPT:
            self._lost += len(self._tail) - KEPT
            del self._tail[:-KEPT]

    @property
    def pid(self) -> int:
        """The process above all that belongs to the worker."""
        assert self.process.pid is not None
        return self.process.pid

    @property
    def output(self) -> str:
        """What it printed since the last case was given to it, bounded."""
        gap = f"\n... {self._lost} bytes ...\n".encode() if self._lost else b""
        return bytes(self._head + gap + self._tail).decode("utf-8", "backslashreplace")

    def waitables(self) -> list[Any]:
        """What becomes readable when it has something to say, or dies."""
        return [self.pipe, self.process.sentinel, *([self.printed] if self._open else [])]

    @property
    def alive(self) -> bool:
        return self.process.is_alive()

    @property
    def death(self) -> str:
        """How it ended, in words."""
        code = self.process.exitcode
        if code is None or code >= 0:
            when = " in the middle of the case" if self.ready else ""
            why = f": {LOST}" if self.output.endswith(f"{LOST}\n") else ""
            return f"its process ended with exit code {code}{when}{why}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = "unknown"
        why = ", perhaps out of memory" if -code == signal.SIGKILL else ""
        return f"its process died of signal {-code} ({name}{why})"

    def finish(self) -> None:
        """Let an idle worker end by itself; close() is still to come."""
        with suppress(OSError):
            self.pipe.close()

    def close(self, patience: float = 0.0) -> None:
        """End it, and everything it started, at the latest after patience seconds."""
        if patience:
            self.process.join(patience)
        self.process.terminate()  # its warden ends all that is below it
        self.process.join(_LAST)
        self.process.kill()
        self.process.join()
        self.drain()
        for end in (self.pipe, self.printed):
            with suppress(OSError):
                end.close()


@contextmanager
def _environment(threads: int | None) -> Iterator[None]:
    """Set the threads of BLAS and OpenMP, which read them when they are loaded: so many, else the user's, else 1."""
    before = {name: os.environ.get(name) for name in _THREADS}
    for name, value in before.items():
        os.environ[name] = str(threads) if threads is not None else value or "1"
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A worker inherits the block, so a Ctrl-C meant for us doesn't hit it before it has left our group."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _main_module_hidden() -> Iterator[None]:
    """A spawned process runs the main module again for what it defines; a worker needs nothing of it."""
    main = sys.modules["__main__"]
    shown = vars(main)
    hidden = {name: shown[name] for name in ("__file__", "__spec__") if name in shown}
    for name in hidden:
        shown[name] = None
    try:
        yield
    finally:
        for name, value in hidden.items():
            shown[name] = value


@contextmanager
def _children_allowed() -> Iterator[None]:
    """A Dask worker under its nanny is a daemon of multiprocessing, which is denied children for fear they outlive it.

    Ours don't: they end with it. There is no public way to say so.
    """
    config: dict[str, Any] = getattr(multiprocessing.current_process(), "_config", {})
    before = config.get("daemon")
    config["daemon"] = False
    try:
        yield
    finally:
        config["daemon"] = before
