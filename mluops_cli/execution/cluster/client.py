"""A run on the workers of a Dask scheduler (`--scheduler`).

Dask places the batches of cases on workers, moves them to idle and late ones, and says which are lost. This module adds
what Dask lacks: every case is attempted once, its record arrives as an event as soon as it is made, a worker that no
longer answers is given up after the timeout of the case it runs, and the run ends whatever becomes of the cluster.
"""

from __future__ import annotations

import os
import queue
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mluops_cli.core.discovery import PlannedCase
from mluops_cli.core.events import Heartbeat, Listener, RunFinished
from mluops_cli.execution.cluster.assignments import Assignments
from mluops_cli.execution.cluster.batch import Batch, batches_of
from mluops_cli.execution.cluster.members import Members
from mluops_cli.execution.cluster.scheduler import PREFIX, SchedulerWatch, Workers, remove_worker, within
from mluops_cli.execution.interrupt import interruptible
from mluops_cli.execution.recorder import Recorder, RunSettings
from schemas.errors import InputError, UnavailableError

_CONNECT: Final = 10.0  # seconds for the scheduler to answer
_TICK: Final = 1.0
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
    batches: Assignments = field(init=False)
    topic: str = field(default_factory=lambda: f"{PREFIX}{uuid.uuid4().hex}")
    messages: queue.Queue[Any] = field(default_factory=queue.Queue)
    answered: float = field(default_factory=time.monotonic)  # when the scheduler last did
    unreachable: str = ""  # the last error of asking it
    problem: str = ""  # why the run can't go on

    def __post_init__(self) -> None:
        plugins = tuple(os.path.abspath(path) for path in self.settings.options.plugins)
        options = replace(self.settings.options, plugins=plugins)
        worker = replace(self.settings.worker, options=options, folder=os.getcwd())
        self.members = Members(self.resource)
        self.batches = Assignments(self.client, worker, self.topic, self.recorder, self.members)

    def run(self, cases: Sequence[PlannedCase]) -> RunFinished:
        watch = SchedulerWatch(self.client, self.topic, self.messages.put)
        with interruptible() as interrupt:
            try:
                self.client.subscribe_topic(self.topic, lambda event: self.messages.put(event[1]))
                watch.start()
                self.members.demand(self._first_look())
                capacity = self.members.capacity
                self.batches.waiting.extend(batches_of(self.recorder.open(cases, capacity), capacity))
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
            self.batches.cancel()
        self.client.close(timeout=_GRACE / 5)

    def _loop(self, interrupt: Any) -> None:
        beaten = time.monotonic()
        while not interrupt.is_set() and not self.problem:
            if self.recorder.enough:
                self.batches.stop()
            if not self.batches.waiting and not self.batches.in_flight:
                return
            self.batches.submit()
            self._listen()
            for batch in [each for each in self.batches.in_flight.values() if each.future.done()]:
                self._listen()  # its events have been sent before it was over, but may have to be read still
                self.problem = self.batches.conclude(batch) or self.problem
            self._look_for_silence()
            if time.monotonic() - beaten >= _TICK:
                beaten = time.monotonic()
                self._beat()

    def _beat(self) -> None:
        finished = tuple(sorted(self.batches.finished.items()))
        self.recorder.emit(Heartbeat(tuple(self.batches.running()), self.recorder.tally.total, finished))

    def _listen(self) -> None:
        """Take in what has arrived; wait a little for the first message."""
        with suppress(queue.Empty):
            message = self.messages.get(timeout=0.1)
            while True:
                if isinstance(message, Exception):
                    self.unreachable = f": {message}"
                elif "token" in message:
                    self.batches.take(message)
                else:
                    self._look(message)
                message = self.messages.get_nowait()

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
        self.batches.recall(workers)

    def _look_for_silence(self) -> None:
        """Give up what doesn't answer: a host that hangs keeps its connections, so Dask waits for it for minutes."""
        now = time.monotonic()
        if now - self.answered > _UNREACHABLE:
            self.problem = f"the scheduler doesn't answer{self.unreachable}"
        begun = [batch for batch in self.batches.in_flight.values() if batch.address]
        late = [batch for batch in begun if now > self._deadline(batch)]
        silent = set(self.members.silent()) - {batch.address for batch in begun} | {batch.address for batch in late}
        for batch in late:
            self.batches.lose(batch, "it doesn't answer any more", "timeout")
        for address in silent:
            self.members.refuse(address, f"worker {self.members.name(address)} doesn't answer any more")
            with suppress(Exception):
                within(_CONNECT, self.client.run_on_scheduler, remove_worker, address)

    def _deadline(self, batch: Batch) -> float:
        """When the next event of a task must have come: its worker enforces the timeout by itself, if it can."""
        if batch.running is not None:
            return batch.since + self.settings.options.timeout + _GRACE
        return batch.heard + max(_LOADING, self.settings.options.timeout) + _GRACE
