"""The batches of a run on a cluster: which wait, which a Dask task runs, what becomes of those that are lost."""

from __future__ import annotations

import time
import uuid
from collections import Counter, deque
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from mluops_cli.core.case_options import WorkerSettings
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.core.events import CaseStarted, WorkerLost
from mluops_cli.core.record import parse_record
from mluops_cli.execution.cluster.batch import Batch
from mluops_cli.execution.cluster.members import Members
from mluops_cli.execution.cluster.scheduler import erred_on, within
from mluops_cli.execution.cluster.task import request_for, run_batch
from mluops_cli.execution.recorder import Recorder
from schemas.errors import InputError, UnavailableError

_ANSWER: Final = 10.0  # seconds for Dask to say why a task ended
_AHEAD: Final = 2  # tasks per case that the cluster can run at once: one runs, one waits on the worker for it to end
_ATTEMPTS: Final = 3  # tasks that ended before any of their cases had begun, before the first case is blamed


@dataclass
class Assignments:
    """The batches without all their records. Each is submitted as one task, and again where the task or worker is lost.

    client is that of Dask, topic that of the events. finished counts cases by the name of the worker.
    """

    client: Any
    worker: WorkerSettings
    topic: str
    recorder: Recorder
    members: Members
    waiting: deque[Batch] = field(default_factory=deque)
    in_flight: dict[str, Batch] = field(default_factory=dict)  # by token
    finished: Counter[str] = field(default_factory=Counter)

    def submit(self) -> None:
        """Give Dask as many batches as keep the workers busy: few, so that a late or a lost worker matters little."""
        while self.waiting and len(self.in_flight) < _AHEAD * self.members.capacity:
            batch = self.waiting.popleft()
            token = uuid.uuid4().hex
            allowed = frozenset(self.members.usable) if self.members.refused else frozenset()
            future = self.client.submit(
                run_batch,
                request_for(batch.cases, self.worker, self.topic, token),
                key=f"{self.topic}-{token}",
                workers=sorted(allowed) or None,
                resources=self.members.resource or None,
                retries=0,
                pure=False,
            )
            batch.submitted(token, future, allowed)
            self.in_flight[token] = batch

    def stop(self) -> None:
        """Start no more batches: after too many failures only those that have begun are waited for."""
        self.waiting.clear()
        for batch in [each for each in self.in_flight.values() if not each.address]:
            batch.future.cancel(force=True)
            del self.in_flight[batch.token]

    def take(self, message: dict[str, Any]) -> None:
        """One event of a task; nothing where its batch has been given to another task since."""
        batch = self.in_flight.get(message["token"])
        if batch is None:
            return
        batch.heard = time.monotonic()
        if "begun" in message:
            self.members.names[message["begun"]] = message["name"]  # it may be lost before the scheduler's next list
            if batch.address:  # Dask runs it again, which it does when a worker leaves in good order
                self.lose(batch, "it left the cluster")
            else:
                batch.address = message["begun"]
        elif "refused" in message:
            self.refuse(batch, message["refused"])
        elif "problem" in message:
            kind = InputError if message["exit_code"] == InputError.exit_code else UnavailableError
            if not self.finished:
                raise kind(f"worker {self.name(batch)}: {message['problem']}")
            self.refuse(batch, message["problem"])
        elif "end" in message:
            if batch.cases:
                self.lose(batch, "its task ended early")
            else:
                del self.in_flight[batch.token]
        for name, record in message.get("cases", ()):
            if case := batch.case(name):
                self._take_case(batch, case, record)

    def _take_case(self, batch: Batch, case: PlannedCase, record: str | None) -> None:
        if record is None:
            batch.begin(case)
            self.recorder.emit(CaseStarted(case.id))
            return
        batch.cases.remove(case)
        batch.running = None
        made = parse_record(record.encode())
        made.worker = self.name(batch)
        self.finished[made.worker] += 1
        self.recorder.enter(case, made)

    def conclude(self, batch: Batch) -> str:
        """A task is over for Dask, and all its events have been taken; return why the run can't go on, if it can't."""
        if batch.token not in self.in_flight:
            return ""
        if batch.future.status != "error":
            if batch.future.status != "finished":
                return "the connection to the scheduler is lost"
            self.lose(batch, "its task ended without a word")
            return ""
        error = batch.future.exception(timeout=_ANSWER)
        if type(error).__name__ == "KilledWorker":
            reason = "the scheduler has no connection to it any more"
            if batch.address:
                self.lose(batch, reason)
            else:  # it waited on that worker for its turn
                name = str(error.last_worker.name)
                self.recorder.emit(WorkerLost(name, reason, None, len(batch.cases)))
                self.waiting.appendleft(self.in_flight.pop(batch.token))
            return ""
        said = f"{type(error).__name__}: {error}"
        if batch.address:
            self.lose(batch, f"its task ended with {said}")
            return ""
        addresses = within(_ANSWER, self.client.run_on_scheduler, erred_on, batch.future.key)
        if not addresses:
            return f"the scheduler can't start a task: {said}"
        batch.address = addresses[0]
        self.refuse(batch, f"can't load mluops: {said}")
        return ""

    def lose(self, batch: Batch, reason: str, status: str = "crash") -> None:
        """A task is lost: the case that it was running gets this status, its other cases wait again."""
        del self.in_flight[batch.token]
        with suppress(Exception):
            batch.future.cancel(force=True)
        name, case = self.name(batch), batch.running
        batch.attempts = 0 if case is not None else batch.attempts + 1
        if case is None and batch.attempts >= _ATTEMPTS and batch.cases:
            case = batch.cases[0]
        if case is not None:
            batch.cases.remove(case)
        self.recorder.emit(WorkerLost(name, reason, case.id if case else None, len(batch.cases)))
        if case is not None:
            said = f"worker {name} of the fleet was lost in the middle of the case: {reason}"
            self.recorder.add(case, {"status": status, "reason": said, "worker": name})
        if batch.cases:
            self.waiting.appendleft(batch)

    def refuse(self, batch: Batch, reason: str) -> None:
        """Never use a worker again, which has not begun a case of the batch; an error where the run has just begun."""
        said = f"worker {self.name(batch)} {reason}"
        if not self.finished:
            raise UnavailableError(said)
        self.members.refuse(batch.address, said)
        del self.in_flight[batch.token]
        self.recorder.emit(WorkerLost(self.name(batch), reason, None, len(batch.cases)))
        self.waiting.appendleft(batch)

    def recall(self, addresses: Collection[str]) -> None:
        """Let batches wait again that have not begun and that no worker at these addresses may run."""
        for batch in list(self.in_flight.values()):
            if batch.allowed and not batch.address and batch.allowed.isdisjoint(addresses):
                del self.in_flight[batch.token]
                batch.future.cancel(force=True)
                self.waiting.appendleft(batch)

    def cancel(self) -> None:
        """Cancel all tasks."""
        self.client.cancel([batch.future for batch in self.in_flight.values()], force=True)

    def running(self) -> Iterator[tuple[str, float]]:
        """The cases that are being run, with the worker's name, and for how many seconds."""
        now = time.monotonic()
        for batch in self.in_flight.values():
            if batch.running is not None:
                yield f"{batch.running.id} on {self.name(batch)}", now - batch.since

    def name(self, batch: Batch) -> str:
        """The name of the worker that the batch's task runs on."""
        return self.members.name(batch.address)
