"""The supervisor: it starts worker processes, gives them cases, ends those that hang, and makes one record per case.

Why not the process pool of a library: a pool gives up all its work when one of its processes dies, can't kill the
process tree of a single task, and doesn't know which task a dead process had. One pipe per worker solves all three.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from generators.casegen.worker_pool import available_memory
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.core.events import CaseStarted, Heartbeat, Listener, RunFinished
from mluops_cli.execution.case_source import CaseSource
from mluops_cli.execution.interrupt import Interrupt, interruptible
from mluops_cli.execution.kernel_process.frames import BrokenChannelError, wait_readable
from mluops_cli.execution.recorder import Recorder, RunSettings
from mluops_cli.execution.workers.case_answer import answer_of
from mluops_cli.execution.workers.handle import WorkerProcess
from mluops_cli.processes.scratch_dir import sweep
from mluops_cli.processes.tree_memory import memory_held, process_trees
from schemas.errors import InputError, UnavailableError

__all__ = ["RunSettings", "check_loads", "memory_for_a_case", "run_cases"]

_TICK: Final = 1.0  # seconds between heartbeats
_START_LIMIT: Final = 30.0  # seconds in which a worker may load the implementation, even if the timeout is shorter
_FAREWELL: Final = 2.0  # seconds in which an idle worker may end by itself
_MEMORY_FRACTION: Final = 0.8  # fraction of the available memory that the running cases may need together
_MEMORY_FACTOR: Final = 2.5  # a case needs at most so many times the bytes of its tensors
_SMALL: Final = 1 << 20  # bytes: smaller cases always fit
_MEMORY_LIMIT: Final = 0.9  # fraction of the memory available at the start that a case may take without --memory
_LOOK: Final = 0.2  # seconds between two checks of the memory of running cases
_LOOK_COST: Final = 10.0  # times as long as a check took, at least, to the next: there may be many processes


def run_cases(
    cases: Sequence[PlannedCase],
    settings: RunSettings,
    listeners: Sequence[Listener],
    warm: list[WorkerProcess] | None = None,
    source: CaseSource | None = None,
) -> RunFinished:
    """Run all cases and send the events to the listeners.

    source: where further cases come from, one for each worker that is free, until it has ended.
    warm: idle worker processes of an earlier run with equal worker settings; those that are idle at the end replace
    them. InputError or UnavailableError where the implementation can't be loaded.
    """
    return _Supervisor(settings, Recorder(settings, listeners), warm, source).run(cases)


def check_loads(settings: RunSettings) -> None:
    """Load the implementation and end it; InputError or UnavailableError where it can't be loaded."""
    supervisor = _Supervisor(settings, Recorder(settings, ()))
    supervisor.starting.append(worker := WorkerProcess(settings.worker))
    try:
        while supervisor.starting:
            wait_readable(worker.waitables(), _TICK)
            worker.drain()
            supervisor._greet(worker)
    finally:
        supervisor._end(orderly=True)


@dataclass(slots=True)
class _Supervisor:
    settings: RunSettings
    recorder: Recorder
    warm: list[WorkerProcess] | None = None
    source: CaseSource | None = None
    waiting: deque[PlannedCase] = field(default_factory=deque)
    idle: list[WorkerProcess] = field(default_factory=list)
    starting: list[WorkerProcess] = field(default_factory=list)
    running: dict[WorkerProcess, PlannedCase] = field(default_factory=dict)
    given_back: set[str] = field(default_factory=set)
    loaded: bool = False  # whether any worker has loaded the implementation
    beaten: float = 0.0  # time of the last heartbeat
    looked: float = 0.0  # time of the last check of memory
    look_after: float = _LOOK  # seconds from then to the next check
    memory: int = 0  # bytes that a case may take

    def run(self, cases: Sequence[PlannedCase]) -> RunFinished:
        self.memory = self.settings.options.memory or self.settings.memory or memory_for_a_case()
        self.waiting.extend(self.recorder.open(cases, self.settings.jobs))
        if self.warm:
            self.idle.extend(self.warm)
            self.loaded = True
        jobs = self.settings.jobs if self.source else min(self.settings.jobs, max(1, len(self.waiting)))
        with interruptible() as interrupt:
            try:
                while not interrupt.is_set() and self._more():
                    self._take(jobs)
                    self._fill(jobs)
                    self._wait(interrupt, jobs)
            finally:
                self._end(orderly=not interrupt.is_set())
        return self.recorder.close(interrupted=interrupt.is_set())

    def _more(self) -> bool:
        """Whether cases are waiting or running; after too many failures none is started any more."""
        if self.recorder.enough:
            self.waiting.clear()
        return bool(self.waiting or self.running or (self.source and not self.source.ended))

    def _free(self, jobs: int) -> int:
        """How many more cases could run."""
        return jobs - len(self.running) - len(self.waiting)

    def _take(self, jobs: int) -> None:
        """Take a case for each free worker from the source."""
        if self.source and not self.source.ended and (free := self._free(jobs)) > 0:
            self.waiting.extend(taken := self.source.take(free))
            self.recorder.selected += len(taken)

    def _fill(self, jobs: int) -> None:
        """Give cases to idle workers, and start workers while there are cases for them."""
        budget: float | None = None  # bytes; measured only if a large case is waiting

        def fits(case: PlannedCase) -> bool:
            nonlocal budget
            if not self.running or case.size < _SMALL:
                return True
            budget = available_memory() * _MEMORY_FRACTION if budget is None else budget
            return case.size * _MEMORY_FACTOR <= budget

        while self.waiting and self.idle:
            if fits(self.waiting[0]):
                case = self.waiting.popleft()
            elif fits(self.waiting[-1]):
                case = self.waiting.pop()
            else:
                break
            if budget is not None:
                budget -= case.size * _MEMORY_FACTOR
            self._give(self.idle.pop(), case)
        missing = min(jobs - len(self.running), len(self.waiting)) - len(self.idle) - len(self.starting)
        self.starting += [WorkerProcess(self.settings.worker) for _ in range(missing)]

    def _give(self, worker: WorkerProcess, case: PlannedCase) -> None:
        try:
            worker.send(
                {
                    "case": case.id,
                    "file": os.path.abspath(case.file),  # an implementation may have changed the folder
                    "shown": case.file,  # the name in error messages
                    "external": case.external,
                    "manifest_meta": case.manifest_meta,
                    "enum_numbering": case.enum_numbering,
                    "relations": case.relations,
                }
            )
        except OSError:  # it died while idle, by something that an earlier case left
            worker.close()
            if not self._wait_again(case):
                self._finish(case, {"status": "crash", "reason": worker.death})
            return
        self.running[worker] = case
        self.recorder.emit(CaseStarted(case.id))

    def _wait_again(self, case: PlannedCase) -> bool:
        """Let the case wait again, once, and return whether it does: an earlier case had broken its worker."""
        if case.id in self.given_back:
            return False
        self.given_back.add(case.id)
        self.waiting.appendleft(case)
        return True

    def _wait(self, interrupt: Interrupt, jobs: int) -> None:
        """Wait until a worker sends a message, dies or is late, at most a second; then handle what has happened."""
        workers = [*self.running, *self.starting, *self.idle]
        now = time.monotonic()
        late = min((worker.since + self.settings.options.timeout - now for worker in self.running), default=_TICK)
        late = min(late, _LOOK if self.running or self.source else _TICK)
        handles: list[Any] = [interrupt.handle, *(each for worker in workers for each in worker.waitables())]
        if self.source and not self.source.ended and self._free(jobs) > 0:
            handles.append(self.source.handle)
        wait_readable(handles, min(max(late, 0.0), _TICK))
        for worker in workers:
            worker.drain()
            if worker in self.starting:
                self._greet(worker)
            elif worker in self.running:
                self._listen(worker)
            elif not worker.alive or worker.unread:  # its message would be taken for the answer to the next case
                self.idle.remove(worker)
                worker.close()
        now = time.monotonic()
        if now - self.looked >= self.look_after:
            self._look(now)
        if now - self.beaten >= _TICK:
            self.beaten = now
            running = tuple((case.id, now - worker.since) for worker, case in self.running.items())
            self.recorder.emit(Heartbeat(running, self.recorder.tally.total))

    def _look(self, now: float) -> None:
        """End the cases that hold too much memory.

        The limit of the system (RLIMIT_AS) is of no use: it counts address space, with mapped files and the hundreds of
        gigabytes that device drivers reserve, and it holds for each process, not for a case with all that it starts.
        """
        limit = self.memory
        watched = [worker for worker in self.running if now - worker.since >= _LOOK]
        trees = process_trees([worker.pid for worker in watched]) if watched else {}
        for worker in watched:
            if (held := memory_held(trees[worker.pid], limit)) > limit:
                reason = f"out of memory: it held {_mib(held)}, the limit is {_mib(limit)} (--memory)"
                worker.close()
                self._finish(self.running.pop(worker), {"status": "crash", "reason": reason}, worker)
        self.looked = time.monotonic()
        self.look_after = max(_LOOK, _LOOK_COST * (self.looked - now))

    def _greet(self, worker: WorkerProcess) -> None:
        """Handle the first message of a new worker: it is ready, or it can't load the implementation."""
        alive = worker.alive  # asked first: a message that it sent before it died can still be read
        broken = ""
        try:
            message = worker.receive()
        except BrokenChannelError as error:
            message, broken = None, str(error)
        if message is not None and message.get("ready"):
            self.starting.remove(worker)
            self.idle.append(worker)
            worker.ready = self.loaded = True
            worker.device = str(message.get("device") or "")
            return
        limit = max(_START_LIMIT, self.settings.options.timeout)
        late = time.monotonic() - worker.since > limit
        if message is None and alive and not late and not broken:
            return
        self.starting.remove(worker)
        worker.close()
        what = f"implementation {self.settings.options.impl!r} can't be loaded"
        if message is not None:
            problem = str(message.get("problem"))
            raise (InputError if message.get("exit_code") == InputError.exit_code else UnavailableError)(problem)
        reason = f"{what}: {broken or (f'it takes longer than {limit:g} s' if late else worker.death)}"
        if not self.loaded or not self.waiting:
            raise UnavailableError(f"{reason}{worker.last_line}")
        case = self.waiting.popleft()
        if not self._wait_again(case):
            self._finish(case, {"status": "crash", "reason": reason}, worker)

    def _listen(self, worker: WorkerProcess) -> None:
        """Handle what the case of a worker came to."""
        answer = answer_of(worker, self.settings.options.timeout)
        if answer is None:
            return
        case = self.running.pop(worker)
        if answer.usable:
            self.idle.append(worker)
        else:
            worker.close()
            if answer.again and self._wait_again(case):
                return
        self._finish(case, answer.result, worker)

    def _finish(self, case: PlannedCase, result: dict[str, Any], worker: WorkerProcess | None = None) -> None:
        if worker is None:
            self.recorder.add(case, result)
        else:
            seconds = time.monotonic() - worker.since
            self.recorder.add(case, worker.facts | result | {"device": worker.device}, worker.output, seconds)

    def _end(self, *, orderly: bool) -> None:
        if self.warm is not None and orderly:
            self.warm[:], self.idle = self.idle, []
        for worker in self.idle:
            worker.finish()
        for worker in self.idle:
            worker.close(_FAREWELL if orderly else 0.0)
        for worker in (*self.running, *self.starting):
            worker.close()
        with suppress(OSError):
            sweep()  # scratch directories of programs that were ended with their workers


def memory_for_a_case() -> int:
    """Bytes of memory that a case may take without --memory."""
    return int(available_memory() * _MEMORY_LIMIT)


def _mib(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB"
