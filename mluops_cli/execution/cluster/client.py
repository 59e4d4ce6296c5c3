"""A fleet (`--scheduler`): cases by shard to Dask workers, each under a supervisor of ours on the worker.

Dask connects, finds workers with the resource and carries the shards; it decides nothing about cases. A shard is pinned
to one incarnation of one worker, so Dask never runs it a second time: when the worker is lost, the case it was running
is a crash, and only what it had not begun goes elsewhere. Results arrive as events, case by case.
"""

from __future__ import annotations

import os
import queue
import time
import uuid
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mluops_cli.core.case_options import WorkerSettings
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.core.events import CaseStarted, Heartbeat, Listener, RunFinished, WorkerLost
from mluops_cli.core.filters import partition
from mluops_cli.core.record import read_record
from mluops_cli.execution.cluster.shard import introduce, run_shard
from mluops_cli.execution.interrupt import interruptible
from mluops_cli.execution.recorder import Recorder, RunSettings
from schemas.errors import InputError, UnavailableError
from schemas.version import __version__

_CONNECT: Final = 10.0  # seconds for the scheduler to answer
_REPLACEMENT: Final = 30.0  # seconds to wait for a worker when all are lost
_TICK: Final = 1.0
_SHARDS: Final = 4  # per slot: few enough to keep workers warm, enough for the slots to end together
_LOOKED_AT: Final = 20  # case files that a new worker is asked to find
_ATTEMPTS: Final = 3  # shards that ended without any case having begun, before the first case is blamed


@dataclass(slots=True)
class _Shard:
    """Cases that go to a worker together, in the order they are run there."""

    cases: deque[PlannedCase]
    attempts: int = 0


@dataclass(slots=True)
class _Slot:
    """Room for one case at a time on one worker: its address, the incarnation, and what it does."""

    address: str
    identity: str
    name: str
    shard: _Shard | None = None
    token: str = ""
    future: Any = None
    running: PlannedCase | None = None
    since: float = 0.0


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
        from distributed import Client
    except ImportError as error:
        raise UnavailableError(f"--scheduler needs Dask: pip install 'mluops[cluster]' ({error})") from None
    try:
        client: Any = Client(scheduler, timeout=_CONNECT, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise UnavailableError(f"no Dask scheduler answers at {scheduler}: {error}") from None
    with client:
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
    if not name or number <= 0:
        raise InputError(f"--resource {text!r}: expected NAME=NUMBER, such as MLU=1")
    return {name: number}


@dataclass
class _Fleet:
    client: Any
    resource: dict[str, float]
    settings: RunSettings
    recorder: Recorder
    slots: list[_Slot] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # address -> why it can't be used
    shards: deque[_Shard] = field(default_factory=deque)
    finished: Counter[str] = field(default_factory=Counter)
    topic: str = field(default_factory=lambda: f"mluops-{uuid.uuid4().hex}")
    messages: queue.Queue[dict[str, Any]] = field(default_factory=queue.Queue)
    worker: WorkerSettings = field(init=False)
    paths: list[str] = field(default_factory=list)  # what a worker must be able to see

    def __post_init__(self) -> None:
        plugins = tuple(os.path.abspath(path) for path in self.settings.options.plugins)
        options = replace(self.settings.options, plugins=plugins)
        self.worker = replace(self.settings.worker, options=options, folder=os.getcwd())

    def run(self, cases: Sequence[PlannedCase]) -> RunFinished:
        step = max(1, len(cases) // _LOOKED_AT)
        files = [os.path.abspath(case.file) for case in cases[::step] if case.problem is None]
        self.paths = [self.worker.folder, *self.worker.options.plugins, *files]
        self._admit()
        self._demand_workers()
        self._split(self.recorder.open(cases, len(self.slots)))
        self.client.subscribe_topic(self.topic, lambda event: self.messages.put(event[1]))
        with interruptible() as interrupt:
            try:
                self._loop(interrupt)
            finally:
                self.client.cancel([slot.future for slot in self.slots if slot.future is not None], force=True)
                self.client.unsubscribe_topic(self.topic)
        return self.recorder.close(interrupted=interrupt.is_set())

    def _split(self, cases: Sequence[PlannedCase]) -> None:
        count = max(1, min(len(cases), _SHARDS * len(self.slots)))
        parts = partition(cases, count, weight=lambda case: case.size, name=lambda case: case.id)
        self.shards.extend(_Shard(deque(part)) for part in parts if part)

    def _loop(self, interrupt: Any) -> None:
        looked = manned = time.monotonic()
        while not interrupt.is_set():
            if self.recorder.enough:
                self.shards.clear()
            busy = [slot for slot in self.slots if slot.shard is not None]
            if not self.shards and not busy:
                return
            for slot in self.slots:
                if slot.shard is None and self.shards:
                    self._give(slot, self.shards.popleft())
            self._listen()
            for slot in busy:
                if slot.future is not None and slot.future.done():
                    self._conclude(slot)
            now = time.monotonic()
            if now - looked >= _TICK:
                looked = now
                self._look()
                manned = now if self.slots else manned
                if not self.slots and now - manned >= _REPLACEMENT:
                    self._give_up()

    def _give(self, slot: _Slot, shard: _Shard) -> None:
        slot.shard, slot.token, slot.running = shard, uuid.uuid4().hex, None
        remote = [replace(case, file=os.path.abspath(case.file)) for case in shard.cases]
        slot.future = self.client.submit(
            run_shard,
            self.topic,
            slot.token,
            slot.identity,
            remote,
            self.worker,
            key=f"{self.topic}-{slot.token}",
            workers=[slot.address],
            resources=self.resource or None,
            retries=0,
            pure=False,
        )

    def _listen(self) -> None:
        """Take in what workers tell; waits a little for the first message."""
        try:
            message = self.messages.get(timeout=0.1)
            while True:
                slot = next((each for each in self.slots if each.token == message["shard"]), None)
                if slot is not None:
                    self._take(slot, message)
                message = self.messages.get_nowait()
        except queue.Empty:
            return

    def _take(self, slot: _Slot, message: dict[str, Any]) -> None:
        """One event of a shard that is still that worker's."""
        assert slot.shard is not None
        case = next((each for each in slot.shard.cases if each.id == message["case"]), None)
        if case is None:
            return
        if "record" not in message:
            slot.running, slot.since = case, time.monotonic()
            self.recorder.emit(CaseStarted(case.id))
            return
        slot.shard.cases.remove(case)
        slot.running = None
        record = read_record(message["record"])
        record.worker = slot.name
        self.finished[slot.name] += 1
        self.recorder.enter(case, record)

    def _conclude(self, slot: _Slot) -> None:
        """A shard has come to its end, good or bad."""
        self._listen()  # events go before the result they belong to
        if slot.future.status != "finished":
            self._lose(slot, f"its shard ended as {slot.future.status}: {_reason(slot.future)}")
            return
        result = slot.future.result()
        if "problem" in result:
            kind = InputError if result["exit_code"] == InputError.exit_code else UnavailableError
            raise kind(f"worker {slot.name}: {result['problem']}")
        for plain in result["records"]:  # an event that was lost on the way
            self._take(slot, {"case": plain["case"], "record": plain})
        if slot.shard is not None and slot.shard.cases:
            self._lose(slot, "it was started anew")
            return
        slot.shard = slot.future = None
        slot.token = ""

    def _look(self) -> None:
        """Once a second: lost workers, new workers, a heartbeat."""
        alive = self.client.scheduler_info()["workers"]
        for slot in [each for each in self.slots if each.address not in alive]:
            self._lose(slot, "the scheduler has no connection to it any more")
        self._admit()
        now = time.monotonic()
        running = tuple(
            (f"{slot.running.id} on {slot.name}", now - slot.since) for slot in self.slots if slot.running is not None
        )
        self.recorder.emit(Heartbeat(running, self.recorder.tally.total, tuple(sorted(self.finished.items()))))

    def _lose(self, slot: _Slot, reason: str) -> None:
        """Take a slot away: what it was running is a crash, the rest of its shard goes back."""
        self.slots.remove(slot)
        shard, case = slot.shard, slot.running
        if slot.future is not None:
            self.client.cancel([slot.future], force=True)
        if shard is None:
            return
        shard.attempts = 0 if case is not None else shard.attempts + 1
        if case is None and shard.attempts >= _ATTEMPTS and shard.cases:
            case = shard.cases[0]
        if case is not None:
            shard.cases.remove(case)
        self.recorder.emit(WorkerLost(slot.name, reason, case.id if case else None, len(shard.cases)))
        if case is not None:
            said = f"worker {slot.name} of the fleet was lost in the middle of the case: {reason}"
            self.recorder.add(case, {"status": "crash", "reason": said, "worker": slot.name})
        if shard.cases:
            self.shards.appendleft(shard)

    def _admit(self) -> None:
        """Make slots of workers that have the resource and are not known yet."""
        workers = self.client.scheduler_info()["workers"]
        known = {slot.address for slot in self.slots} | self.refused.keys()
        new = [address for address, each in workers.items() if address not in known and self._room(each)]
        if not new:
            return
        answers = self.client.run(introduce, self.paths, workers=new, on_error="return")
        for address, answer in answers.items():
            name = str(workers[address].get("name", address))  # an address where nobody gave it a name
            if isinstance(answer, BaseException):
                self.refused[address] = f"worker {name} can't load mluops: {answer}"
            elif answer["version"] != __version__:
                self.refused[address] = f"worker {name} has mluops {answer['version']}, here is {__version__}"
            elif answer["missing"]:
                missing = answer["missing"][0]
                self.refused[address] = f"worker {name} doesn't see {missing}: expected a path that all share"
            else:
                self.slots += [_Slot(address, answer["id"], name) for _ in range(self._room(workers[address]))]

    def _room(self, worker: dict[str, Any]) -> int:
        """How many cases a worker can take at once."""
        rooms = [int(worker.get("nthreads", 1))]
        rooms += [int(worker.get("resources", {}).get(name, 0) // amount) for name, amount in self.resource.items()]
        return min(rooms)

    def _demand_workers(self) -> None:
        """Nothing to run on is an error at once, not a wait; so is a worker that was asked for and can't work."""
        if self.refused:
            raise UnavailableError(next(iter(self.refused.values())))
        if self.slots:
            return
        workers = self.client.scheduler_info()["workers"]
        if not workers:
            raise UnavailableError("no worker is connected to the scheduler")
        have = "; ".join(sorted({_listed(each.get("resources", {})) for each in workers.values()}))
        wanted = _listed(self.resource)
        raise InputError(f"--resource {wanted}: no worker has it; the {len(workers)} workers have {have}")

    def _give_up(self) -> None:
        """No worker is left, and none has come: what is still to do ends here, told case by case."""
        why = next(iter(self.refused.values()), "")
        reason = f"no worker of the fleet is left and none came within {_REPLACEMENT:g} s{': ' if why else ''}{why}"
        while self.shards:
            for case in self.shards.popleft().cases:
                self.recorder.add(case, {"status": "error", "blame": "tool", "reason": reason})


def _listed(resources: dict[str, float]) -> str:
    return ", ".join(f"{name}={amount:g}" for name, amount in resources.items()) or "none"


def _reason(future: Any) -> str:
    """What an unfinished future tells of its end."""
    error = future.exception() if future.status == "error" else None
    return f"{type(error).__name__}: {error}" if error is not None else "no reason given"
