"""The worker process: loads the implementation once, then runs one case per message of the supervisor.

Messages are JSON, so the supervisor unpickles nothing that an implementation may have written.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final, NoReturn

from mluops_cli.core.case_options import WorkerSettings
from mluops_cli.core.hardware.machine import processor
from mluops_cli.processes.process_tree import become_subreaper
from mluops_cli.processes.reaper import put_under_reaper

LOST: Final = "the pipe to the supervisor is gone: the implementation closed it, or opened another file in its place"
_C_LIBRARY: Final = ctypes.CDLL(None)


def worker_main(pipe: Connection, printed: Connection, settings: WorkerSettings) -> None:
    """Run cases until the pipe closes. The first message is {"ready", "device"} or {"problem", "exit_code"}."""
    _redirect(printed)
    put_under_reaper()
    _lead_a_session()
    home = os.getpid()
    channel = pipe.fileno()
    files = [_identity(number) for number in (channel, 1, 2)]

    def send(message: dict[str, Any]) -> None:
        if os.getpid() != home:  # a fork of the implementation has returned into this function
            _leave("a process that the implementation forked came back out of it, and was ended")
        if _identity(channel) != files[0]:  # the message would be lost, or go into a file of the implementation
            _leave(LOST)
        pipe.send_bytes(json.dumps(message).encode())

    try:
        from mluops_cli.execution.case.floating_point import MODE

        with MODE.of_implementation():
            implementation = _implementation(settings)
            meter = _meter(settings, implementation)
            device = settings.options.device or implementation.device() or processor()
    except BaseException as error:
        code = getattr(error, "exit_code", 3)
        text = str(error) if hasattr(error, "exit_code") else f"{type(error).__name__}: {error}"
        send({"problem": text, "exit_code": code})
        return
    from mluops_cli.core.fingerprint import hash_case
    from mluops_cli.execution.case.case_run import run_case

    send({"ready": True, "device": device})
    while True:
        try:
            task = json.loads(pipe.recv_bytes())
        except EOFError:
            with suppress(BaseException):  # no case is affected
                implementation.close()
            return
        case_hash = hash_case([task["file"], *task["external"]], task["manifest_meta"])
        result = run_case(task, implementation, settings, meter) | {"case_hash": case_hash}
        _flush()
        if [_identity(1), _identity(2)] == files[1:]:
            _open_streams()
        else:  # the implementation closed them: printing would fail, or write into another file
            result["retire"] = True
        send(result | {"token": task["token"]})


def _implementation(settings: WorkerSettings) -> Any:
    from mluops_cli.implementations.registry import implementation_named

    if settings.folder:
        os.chdir(settings.folder)
    if settings.options.plugins:
        from mluops_cli.implementations.plugins import load_plugins

        load_plugins([Path(path) for path in settings.options.plugins])
    return implementation_named(settings.options.impl)


def _meter(settings: WorkerSettings, implementation: Any) -> Any:
    if not settings.options.measured:
        return None
    from mluops_cli.execution.perf.measure import Meter

    return Meter(settings.options, implementation)


def _lead_a_session() -> None:
    """Lead a new session, so that the process group can be killed as a whole: also as soon as the supervisor ends."""
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    supervisor = parent_process()
    assert supervisor is not None
    threading.Thread(target=_await_end, args=(supervisor.sentinel,), daemon=True).start()
    # Orphans of a case stay in this process tree: their memory counts, and `exec:` can end them.
    become_subreaper()
    with suppress(OSError):  # where memory runs out, the kernel ends the worker rather than the supervisor
        Path("/proc/self/oom_score_adj").write_text("1000")


def _await_end(sentinel: int) -> None:
    wait([sentinel])
    os.killpg(os.getpid(), signal.SIGKILL)


def _redirect(printed: Connection) -> None:
    """Send what Python, C code and child processes print on descriptors 1 and 2 to the supervisor; 0 is empty."""
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for number in (1, 2):
        os.dup2(printed.fileno(), number)
    printed.close()
    _open_streams()
    faulthandler.enable(file=2)


def _open_streams() -> None:
    """Open new Python streams on 1 and 2: an implementation may have closed or replaced the old ones."""
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115


def _identity(number: int) -> tuple[int, int] | None:
    """Device and inode of the file behind a descriptor, None where it is closed."""
    try:
        found = os.fstat(number)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _leave(why: str) -> NoReturn:
    with suppress(OSError):
        os.write(2, f"{why}\n".encode())
    os._exit(1)


def _flush() -> None:
    """Write out what Python and C still buffer."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(BaseException):  # the implementation closed or replaced it
            stream.flush()
    _C_LIBRARY.fflush(None)
