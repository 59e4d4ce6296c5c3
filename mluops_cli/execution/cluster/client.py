"""A run on the workers of a Dask scheduler (`--scheduler`).

Dask places the batches of cases on workers, moves them to idle and late ones, and says which are lost. This module adds
what Dask lacks: every case is attempted once, its record arrives as an event as soon as it is made, a worker that no
longer answers is given up after the timeout of the case it runs, and the run ends whatever becomes of the cluster.
"""

from __future__ import annotations

import json
import os
import queue
import time
import uuid
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mluops_cli.core.case_options import WorkerSettings
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.core.events import CaseStarted, Heartbeat, Listener, RunFinished, WorkerLost
from mluops_cli.core.record import read_record
from mluops_cli.execution.cluster.batch import Batch, batches_of
from mluops_cli.execution.cluster.members import Members
from mluops_cli.execution.cluster.scheduler import PREFIX, SchedulerWatch, Workers, erred_on, remove_worker, within
from mluops_cli.execution.cluster.task import request_for, run_batch
from mluops_cli.execution.interrupt import interruptible
from mluops_cli.execution.recorder import Recorder, RunSettings
from schemas.errors import InputError, UnavailableError

_CONNECT: Final = 10.0  # seconds for the scheduler to answer
_TICK: Final = 1.0
_AHEAD: Final = 2  # tasks per case that the cluster can run at once: one runs, one waits on the worker for it to end
_ATTEMPTS: Final = 3  # tasks that ended before any of their cases had begun, before the first case is blamed
_LOADING: Final = 30.0  # seconds a worker may always take to load the implementation, however short the timeout
_UNREACHABLE: Final = 15.0  # seconds without an answer after which the scheduler is given up
_GRACE: Final = 15.0  # seconds a worker may be late to say that a case has exceeded its timeout


def run_on_fleet(
    scheduler: str,
    resource: str | None,
    cases: Sequence[PlannedCase],
    settings: RunSettings,
    listeners: Sequence[Listener],
) -> RunFinished:
    """Run the cases on the workers of a Dask scheduler, as supervisor.run_cases does here.

    resource is NAME=NUMBER of what a case takes. InputError where no worker has it, UnavailableError where Dask, the
    scheduler, or a worker's mluops or files are missing.
    """
    wanted = parse_resource(resource)
    try:
        from distributed import Client  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise UnavailableError(f"--scheduler needs Dask: pip install 'mluops[cluster]' ({error})") from None
    try:
        client: Any = Client(scheduler, timeout=_CONNECT, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise UnavailableError(f"no Dask scheduler answers at {scheduler}: {error}") from None
    return _Fleet(client, wanted, settings, Recorder(settings, listeners)).run(cases)


def parse_resource(text: str | None) -> dict[str, float]:
    """{NAME: NUMBER} of NAME=NUMBER; InputError for anything else."""
    if text is None:
        return {}
    name, _, amount = text.partition("=")
    try:
        number = float(amount)
    except ValueError:
        number = 0.0
    if not name or not 0 < number < float("inf"):
        raise InputError(f"--resource {text!r}: expected NAME=NUMBER, such as MLU=1")
    return {name: number}


@dataclass
class _Fleet:
    client: Any
    resource: dict[str, float]
    settings: RunSettings
    recorder: Recorder
    members: Members = field(init=False)
    waiting: deque[Batch] = field(default_factory=deque)
    in_flight: dict[str, Batch] = field(default_factory=dict)  # by token
    finished: Counter[str] = field(default_factory=Counter)  # cases by the name of the worker
    topic: str = field(default_factory=lambda: f"{PREFIX}{uuid.uuid4().hex}")
    messages: queue.Queue[Any] = field(default_factory=queue.Queue)
    answered: float = field(default_factory=time.monotonic)  # when the scheduler last did
    unreachable: str = ""  # the last error of asking it
    problem: str = ""  # why the run can't go on
    worker: WorkerSettings = field(init=False)

    def __post_init__(self) -> None:
        plugins = tuple(os.path.abspath(path) for path in self.settings.options.plugins)
        options = replace(self.settings.options, plugins=plugins)
        self.worker = replace(self.settings.worker, options=options, folder=os.getcwd())
        self.members = Members(self.resource)

    def run(self, cases: Sequence[PlannedCase]) -> RunFinished:
        watch = SchedulerWatch(self.client, self.topic, self.messages.put)
        with interruptible() as interrupt:
            try:
                self.client.subscribe_topic(self.topic, lambda event: self.messages.put(event[1]))
                watch.start()
                self.members.demand(self._first_look())
                capacity = self.members.capacity
                self.waiting.extend(batches_of(self.recorder.open(cases, capacity), capacity))
                self._loop(interrupt)
                self._beat()
            finally:
                watch.end()
                with suppress(Exception):
                    within(_GRACE / 3, self._leave)
        return self.recorder.close(interrupted=interrupt.is_set(), problem=self.problem)

    def _leave(self) -> None:
        """Cancel what is still running, and close the connection."""
        with suppress(Exception):
            self.client.cancel([batch.future for batch in self.in_flight.values()], force=True)
        self.client.close(timeout=_GRACE / 5)

    def _loop(self, interrupt: Any) -> None:
        beaten = time.monotonic()
        while not interrupt.is_set() and not self.problem:
            if self.recorder.enough:
                self._stop()
            if not self.waiting and not self.in_flight:
                return
            self._submit()
            self._listen()
            for batch in [each for each in self.in_flight.values() if each.future.done()]:
                self._conclude(batch)
            self._look_for_silence()
            if time.monotonic() - beaten >= _TICK:
                beaten = time.monotonic()
                self._beat()

    def _stop(self) -> None:
        """Start no more batches: after too many failures only those that have begun are waited for."""
        self.waiting.clear()
        for batch in [each for each in self.in_flight.values() if not each.address]:
            batch.future.cancel(force=True)
            del self.in_flight[batch.token]

    def _beat(self) -> None:
        now = time.monotonic()
        running = tuple(
            (f"{batch.running.id} on {self._name(batch)}", now - batch.since)
            for batch in self.in_flight.values()
            if batch.running is not None
        )
        self.recorder.emit(Heartbeat(running, self.recorder.tally.total, tuple(sorted(self.finished.items()))))

    def _submit(self) -> None:
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
                resources=self.resource or None,
                retries=0,
                pure=False,
            )
            batch.submitted(token, future, allowed)
            self.in_flight[token] = batch

    def _listen(self) -> None:
        """Take in what has arrived; wait a little for the first message."""
        with suppress(queue.Empty):
            message = self.messages.get(timeout=0.1)
            while True:
                if isinstance(message, Exception):
                    self.unreachable = f": {message}"
                elif "token" in message:
                    self._take(message)
                else:
                    self._look(message)
                message = self.messages.get_nowait()

    def _take(self, message: dict[str, Any]) -> None:
        """One event of a task; nothing where its batch has been given to another task since."""
        batch = self.in_flight.get(message["token"])
        if batch is None:
            return
        batch.heard = time.monotonic()
        if "begun" in message:
            if batch.address:  # Dask runs it again, which it does when a worker leaves in good order
                self._lose(batch, "it left the cluster")
            else:
                batch.address = message["begun"]
        elif "refused" in message:
            self._refuse(batch, message["refused"])
        elif "problem" in message:
            kind = InputError if message["exit_code"] == InputError.exit_code else UnavailableError
            if not self.finished:
                raise kind(f"worker {self._name(batch)}: {message['problem']}")
            self._refuse(batch, message["problem"])
        elif "end" in message:
            if batch.cases:
                self._lose(batch, "its task ended early")
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
        made = read_record(json.loads(record))
        made.worker = self._name(batch)
        self.finished[made.worker] += 1
        self.recorder.enter(case, made)

    def _conclude(self, batch: Batch) -> None:
        """A task is over for Dask. Its events have been sent before that, but may have to be read still."""
        self._listen()
        if batch.token not in self.in_flight:
            return
        if batch.future.status != "error":
            if batch.future.status != "finished":
                self.problem = "the connection to the scheduler is lost"
            else:
                self._lose(batch, "its task ended without a word")
            return
        error = batch.future.exception(timeout=_CONNECT)
        if type(error).__name__ == "KilledWorker":
            reason = "the scheduler has no connection to it any more"
            if batch.address:
                self._lose(batch, reason)
            else:  # it waited on that worker for its turn
                name = self.members.name(error.last_worker.address)
                self.recorder.emit(WorkerLost(name, reason, None, len(batch.cases)))
                self.waiting.appendleft(self.in_flight.pop(batch.token))
            return
        said = f"{type(error).__name__}: {error}"
        if batch.address:
            self._lose(batch, f"its task ended with {said}")
            return
        addresses = within(_CONNECT, self.client.run_on_scheduler, erred_on, batch.future.key)
        if addresses:
            batch.address = addresses[0]
            self._refuse(batch, f"can't load mluops: {said}")
        else:
            self.problem = f"the scheduler can't start a task: {said}"

    def _lose(self, batch: Batch, reason: str, status: str = "crash") -> None:
        """A task is lost: the case that it was running gets this status, its other cases wait again."""
        del self.in_flight[batch.token]
        with suppress(Exception):
            batch.future.cancel(force=True)
        name, case = self._name(batch), batch.running
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

    def _refuse(self, batch: Batch, reason: str) -> None:
        """Never use a worker again, which has not begun a case of the batch; an error where the run has just begun."""
        said = f"worker {self._name(batch)} {reason}"
        if not self.finished:
            raise UnavailableError(said)
        self.members.refuse(batch.address, said)
        del self.in_flight[batch.token]
        self.recorder.emit(WorkerLost(self._name(batch), reason, None, len(batch.cases)))
        self.waiting.appendleft(batch)

    def _name(self, batch: Batch) -> str:
        return self.members.name(batch.address)

    def _first_look(self) -> Workers:
        """The scheduler's workers at the start; UnavailableError where it doesn't answer."""
        try:
            found = self.messages.get(timeout=_CONNECT)
        except queue.Empty:
            found = TimeoutError(f"no answer within {_CONNECT:g} s")
        if isinstance(found, Exception):
            raise UnavailableError(f"the Dask scheduler doesn't answer: {found}")
        self._look(found)
        workers: Workers = found
        return workers

    def _look(self, workers: Workers) -> None:
        """Once a second: which workers there are. Tasks that none of them may run wait again."""
        self.answered = time.monotonic()
        self.members.update(workers)
        self.problem = self.problem or self.members.gone()
        for batch in list(self.in_flight.values()):
            if batch.allowed and not batch.address and batch.allowed.isdisjoint(workers):
                del self.in_flight[batch.token]
                batch.future.cancel(force=True)
                self.waiting.appendleft(batch)

    def _look_for_silence(self) -> None:
        """Give up what doesn't answer: a host that hangs keeps its connections, so Dask waits for it for minutes."""
        now = time.monotonic()
        if now - self.answered > _UNREACHABLE:
            self.problem = f"the scheduler doesn't answer{self.unreachable}"
        begun = [batch for batch in self.in_flight.values() if batch.address]
        late = [batch for batch in begun if now > self._deadline(batch)]
        silent = set(self.members.silent()) - {batch.address for batch in begun} | {batch.address for batch in late}
        for batch in late:
            self._lose(batch, "it doesn't answer any more", "timeout")
        for address in silent:
            self.members.refuse(address, f"worker {self.members.name(address)} doesn't answer any more")
            with suppress(Exception):
                within(_CONNECT, self.client.run_on_scheduler, remove_worker, address)

    def _deadline(self, batch: Batch) -> float:
        """When the next event of a task must have come: its worker enforces the timeout by itself, if it can."""
        if batch.running is not None:
            return batch.since + self.settings.options.timeout + _GRACE
        return batch.heard + max(_LOADING, self.settings.options.timeout) + _GRACE
