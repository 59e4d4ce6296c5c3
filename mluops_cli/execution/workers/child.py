"""Inside a worker process: set up once, then task in, result out, as JSON (nothing of theirs is unpickled)."""

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
from mluops_cli.core.machine import processor
from mluops_cli.processes.process_tree import become_subreaper
from mluops_cli.processes.reaper import put_under_reaper

LOST: Final = "the pipe to the supervisor is gone: the implementation closed it, or opened another file in its place"


def worker_main(pipe: Connection, printed: Connection, settings: WorkerSettings) -> None:
    """Work on cases until the pipe closes; says {"ready"} or {"problem", "exit_code"} first."""
    _redirect(printed)
    put_under_reaper()
    _lead_a_session()
    home = os.getpid()
    line = pipe.fileno()
    files = [_which(number) for number in (line, 1, 2)]

    def say(message: dict[str, Any]) -> None:
        if os.getpid() != home:  # it has come back up the stack: it has no say
            _leave("a process that the implementation forked came back out of it, and was ended")
        if _which(line) != files[0]:  # what we say would go nowhere, or into a file of the implementation
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
        say({"problem": text, "exit_code": code})
        return
    from mluops_cli.core.fingerprint import hash_case
    from mluops_cli.execution.case.case_run import run_case

    say({"ready": True, "device": device})
    while True:
        try:
            task = json.loads(pipe.recv_bytes())
        except EOFError:
            with suppress(BaseException):  # what it raises now concerns no case
                implementation.close()
            return
        case_hash = hash_case([task["file"], *task["external"]], task["manifest_meta"])
        result = run_case(task, implementation, settings, meter) | {"case_hash": case_hash}
        _flush()
        if [_which(1), _which(2)] == files[1:]:
            _open_streams()
        else:  # what prints from now on fails, or writes into a file that took the number
            result["retire"] = True
        say(result | {"token": task["token"]})


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
    """Of our own, killed as a whole, and at once when the supervisor ends (Linux tells the warden of that as well)."""
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    supervisor = parent_process()
    assert supervisor is not None
    threading.Thread(target=_await_end, args=(supervisor.sentinel,), daemon=True).start()
    # What a case started stays below us when its own parent ends, so that its memory counts, and `exec:` can end it.
    become_subreaper()
    with suppress(OSError):  # short of memory, the system ends us and neither the warden nor the supervisor
        Path("/proc/self/oom_score_adj").write_text("1000")


def _await_end(sentinel: int) -> None:
    wait([sentinel])
    os.killpg(os.getpid(), signal.SIGKILL)


def _redirect(printed: Connection) -> None:
    """What Python, C code and children print on 1 and 2 goes to the supervisor, which keeps a bounded part of it."""
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for number in (1, 2):
        os.dup2(printed.fileno(), number)
    printed.close()
    _open_streams()
    faulthandler.enable(file=2)


def _open_streams() -> None:
    """New streams: the old ones keep in mind what kind of file 1 and 2 were, or are what an implementation made."""
    sys.stdout = open(1, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115


def _which(number: int) -> tuple[int, int] | None:
    """Which file has this number, None where it is closed."""
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
    """Push out what is printed but still buffered, by Python or by C."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(BaseException):  # the implementation closed it, or put anything in its place
            stream.flush()
    ctypes.CDLL(None).fflush(None)
