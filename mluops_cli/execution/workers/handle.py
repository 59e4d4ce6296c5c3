"""The supervisor's handle of one worker process: a pipe for tasks and results, and one for what it prints."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from mluops_cli.core.case_options import WorkerSettings
from mluops_cli.execution.kernel_process.frames import BrokenChannelError, FrameReader, wait_readable
from mluops_cli.execution.kernel_process.kernel_main import LOST
from mluops_cli.execution.workers.channel import FACTS, check_facts, check_result
from mluops_cli.execution.workers.child import worker_main

__all__ = ["WorkerProcess", "WorkerSettings", "starting"]

KEPT: Final = 4096  # bytes of what a case prints that are kept from its start, and as many from its end
_CHUNK: Final = 1 << 16
_CHUNKS: Final = 16  # read at once, so that a worker that prints without end doesn't block the supervisor
_LAST: Final = 5.0  # seconds for the reaper to end the process tree
# Read by OpenMP and BLAS when they are loaded. One thread by default: the workers share the cores, and the order of
# additions, so the last bits of a sum, would depend on the number of threads.
_THREADS: Final = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
)  # fmt: skip


_STARTING: Final = threading.Lock()  # a start changes state of the whole process for a moment


class WorkerProcess:
    """A spawned worker that runs case after case. process is its reaper, which ends with it and its process tree."""

    def __init__(self, settings: WorkerSettings) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, pipe_end = context.Pipe()
        self.printed, printed_end = context.Pipe(duplex=False)
        self._head, self._tail = bytearray(), bytearray()
        self._lost = 0
        self._used = False
        self._token = ""
        self._frames = FrameReader()
        self.process = context.Process(target=worker_main, args=(pipe_end, printed_end, settings), daemon=False)
        with starting(settings.options.threads):
            self.process.start()
        pipe_end.close()
        printed_end.close()
        os.set_blocking(self.printed.fileno(), False)
        self.since = time.monotonic()  # seconds of time.monotonic: the start of the process, or of its case
        self.ready = False  # whether the implementation is loaded
        self.device = ""  # the name of the device that runs its cases, known when it is ready
        self.facts: dict[str, Any] = {}  # what it has sent about its case before the first call
        self._open = True

    def send(self, task: dict[str, Any]) -> None:
        """Send a case; OSError where the worker has ended."""
        self.drain()
        if self._used:  # what was printed while the implementation was loaded belongs to the first case
            self._head.clear()
            self._tail.clear()
            self._lost = 0
        self._used = True
        self.facts = {}
        self.since = time.monotonic()
        self._token = os.urandom(16).hex()
        self.pipe.send_bytes(json.dumps(task | {"token": self._token}).encode())

    def receive(self) -> dict[str, Any] | None:
        """The next message that has arrived, None where there is none; BrokenChannelError where it is malformed."""
        with suppress(OSError):  # closed
            self._frames.read(self.pipe.fileno())
        return self._frames.message()

    def result(self) -> dict[str, Any] | None:
        """The result of the case that was sent, None while there is none; BrokenChannelError where it is malformed.

        What the worker tells of the case before is kept in facts.
        """
        while (message := self.receive()) is not None:
            token, facts = message.pop("token", None), message.get(FACTS)
            if facts is None:
                check_result(message)
            else:
                check_facts(facts)
            if token != self._token:
                raise BrokenChannelError("a result that belongs to no case")
            if facts is None:
                return message
            self.facts = facts
        return None

    @property
    def unread(self) -> bool:
        """Whether bytes have arrived after the last message."""
        try:
            return bool(self._frames) or wait_readable([self.pipe], 0)
        except OSError:
            return False

    def drain(self) -> None:
        """Read what it has printed so far. Of long texts the start and the end are kept."""
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
        free = KEPT - len(self._head)
        self._head += data[:free]
        self._tail += data[free:]
        if len(self._tail) > KEPT:
            self._lost += len(self._tail) - KEPT
            del self._tail[:-KEPT]

    @property
    def pid(self) -> int:
        """The id of the reaper, the root of the worker's process tree."""
        assert self.process.pid is not None
        return self.process.pid

    @property
    def output(self) -> str:
        """What it has printed since the last case was sent, at most twice KEPT bytes."""
        gap = f"\n... {self._lost} bytes ...\n".encode() if self._lost else b""
        return bytes(self._head + gap + self._tail).decode("utf-8", "backslashreplace")

    @property
    def last_line(self) -> str:
        """A colon and the last line of its output, empty where there is none."""
        lines = [line for line in self.output.splitlines() if line.strip()]
        return f": {lines[-1].strip()}" if lines else ""

    def waitables(self) -> list[Any]:
        """Handles for wait_readable: readable when it sends, prints or ends."""
        return [self.pipe, self.process.sentinel, *([self.printed] if self._open else [])]

    @property
    def alive(self) -> bool:
        """Whether the process is running."""
        return self.process.is_alive()

    @property
    def death(self) -> str:
        """How it ended, as a phrase for a record."""
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
        """Ask an idle worker to end; close() must follow."""
        with suppress(OSError):
            self.pipe.close()

    def close(self, patience: float = 0.0) -> None:
        """End the worker and its process tree, after waiting patience seconds for it to end by itself."""
        if patience:
            self.process.join(patience)
        self.process.terminate()  # the reaper ends the process tree
        self.process.join(_LAST)
        self.process.kill()
        self.process.join()
        self.drain()
        for end in (self.pipe, self.printed):
            with suppress(OSError):
                end.close()


@contextmanager
def starting(threads: int | None) -> Iterator[None]:
    """Start a spawned process in the block: with so many threads of BLAS and OpenMP, and out of reach of Ctrl-C."""
    with _STARTING, _environment(threads), _interrupts_held(), _main_module_hidden(), _children_allowed():
        yield


@contextmanager
def _environment(threads: int | None) -> Iterator[None]:
    """Set the number of threads of BLAS and OpenMP in the environment: threads, otherwise the user's, otherwise 1."""
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
    """Block SIGINT, which the worker inherits: a Ctrl-C must not reach it before it leads its own session."""
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
    """Hide the main module: a spawned process would run it again, and a worker needs nothing of it."""
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
    """Allow children in a daemon of multiprocessing, such as a Dask worker under its nanny.

    Daemons may have none because children could outlive them. Workers end with their parent, but multiprocessing has no
    public way to say so.
    """
    config: dict[str, Any] = getattr(multiprocessing.current_process(), "_config", {})
    before = config.get("daemon")
    config["daemon"] = False
    try:
        yield
    finally:
        config["daemon"] = before
