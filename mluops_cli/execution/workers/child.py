"""The worker process, which judges: it owns a kernel process, and runs one case per message of the supervisor.

Messages are JSON, so the supervisor unpickles nothing.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import socket
import threading
from contextlib import suppress
from functools import partial
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NoReturn

from mluops_cli.core.case_options import WorkerSettings
from mluops_cli.core.hardware.machine import processor
from mluops_cli.execution.kernel_process.frames import wait_readable
from mluops_cli.execution.kernel_process.kernel_handle import BrokenKernel, KernelEnded, KernelProcess
from mluops_cli.execution.kernel_process.reply import load_problem
from mluops_cli.execution.kernel_process.streams import Streams
from mluops_cli.execution.kernel_process.timed_call import KernelLost
from mluops_cli.execution.workers.channel import FACTS
from mluops_cli.processes.process_tree import become_subreaper
from mluops_cli.processes.reaper import end_as, put_under_reaper
from schemas.errors import MluopsError


def worker_main(pipe: Connection, printed: Connection, settings: WorkerSettings) -> None:
    """Run cases until the pipe closes. The first message is {"ready", "device"} or {"problem", "exit_code"}."""
    _redirect(printed)
    put_under_reaper()
    _lead_a_session()
    try:
        _Worker(pipe, settings).run()
    except KernelEnded as ended:
        _end_alike(ended.code)


class _Worker:
    def __init__(self, pipe: Connection, settings: WorkerSettings) -> None:
        self.pipe = pipe
        self.settings = settings
        self.meter: Any = None

    def run(self) -> None:
        """Send whether the implementation is loaded, then the result of each case; KernelEnded."""
        if not self._start():
            return
        from mluops_cli.core.fingerprint import hash_case
        from mluops_cli.execution.case.case_run import run_case

        while (task := self._task()) is not None:
            tell = partial(self._tell, task["token"])
            case_hash = hash_case([task["file"], *task["external"]], task["manifest_meta"])
            asked = self.kernel.asked
            try:
                memory = self.kernel.memory
                result = run_case(task, self.kernel, self.settings, self.meter, memory, tell)
                result["case_hash"] = case_hash
                memory.reset()
            except KernelLost as lost:
                begun = self.kernel.asked > asked  # otherwise an earlier case had broken the kernel process
                if begun and isinstance(lost, KernelEnded):
                    raise
                result = {"status": "crash", "reason": str(lost), "retire": True, "again": not begun}
            if self.kernel.spoilt:
                result["retire"] = True
            self._send(result | {"token": task["token"]})
        self.kernel.close()

    def _start(self) -> bool:
        """Start the kernel process, load plug-ins for their operators; whether the implementation is loaded there."""
        options = self.settings.options
        try:
            if self.settings.folder:
                os.chdir(self.settings.folder)
            self.kernel = KernelProcess(options)
            # While it loads the implementation, this process loads the judge.
            import mluops_cli.execution.case.case_run  # noqa: F401

            if options.plugins:
                from mluops_cli.implementations.plugins import load_plugins

                load_plugins([Path(path) for path in options.plugins])
            ready = self.kernel.await_ready()
            if ready.problem is not None:
                self._send({"problem": ready.problem, "exit_code": ready.exit_code})
                return False
            if options.measured:
                from mluops_cli.execution.perf.measure import Meter

                self.meter = Meter(options, self.kernel)
        except BrokenKernel as broken:
            self._send(load_problem(MluopsError(f"implementation {options.impl!r} can't be loaded: {broken}")))
            return False
        except KernelEnded:
            raise
        except BaseException as error:
            self._send(load_problem(error))
            return False
        self._send({"ready": True, "device": options.device or ready.device or processor()})
        return True

    def _task(self) -> dict[str, Any] | None:
        """The next case, None where there is none; ends where its kernel process does or sends something.

        A case that was sent before that is returned: its first call finds that the kernel process is lost.
        """
        wait_readable([self.pipe, *self.kernel.handles], None)
        if wait_readable([self.pipe], 0):
            return self._received()
        try:
            self.kernel.check()
        except KernelLost as lost:
            _refuse_more(self.pipe)
            if (sent := self._received()) is not None:
                return sent
            if isinstance(lost, BrokenKernel):
                _end_alike(1)
            raise
        return self._received()

    def _received(self) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = json.loads(self.pipe.recv_bytes())
        except EOFError:
            return None
        return found

    def _tell(self, token: str, facts: dict[str, Any]) -> None:
        self._send({FACTS: facts, "token": token})

    def _send(self, message: dict[str, Any]) -> None:
        self.pipe.send_bytes(json.dumps(message).encode())


def _end_alike(code: int) -> NoReturn:
    """End as the kernel process did, so that the supervisor sees how; code is as of subprocess.Popen.returncode."""
    faulthandler.disable()  # the fault was not in this process
    end_as(-code if code < 0 else code << 8)


def _refuse_more(pipe: Connection) -> None:
    """Let the supervisor send no further case: it gives that one to another worker. What it has sent can be read."""
    with socket.socket(fileno=os.dup(pipe.fileno())) as end:
        end.shutdown(socket.SHUT_RD)


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
    """Send what this process and its kernel process print on descriptors 1 and 2 to the supervisor; 0 is empty."""
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for number in (1, 2):
        os.dup2(printed.fileno(), number)
    printed.close()
    Streams()
