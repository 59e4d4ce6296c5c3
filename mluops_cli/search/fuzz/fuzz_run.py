"""A run of fuzz: calls are drawn, made and run until a limit is reached; the first failure of each symptom is kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Final, Protocol

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.core.record import Record
from mluops_cli.core.statuses import FAILED, FAILING, INTERRUPTED, NOTHING_SELECTED, OUR_FAILURE, PASSED
from mluops_cli.core.tally import Tally
from mluops_cli.execution.interrupt import interruptible
from mluops_cli.results.symptoms import Symptom, symptom_of
from mluops_cli.search.case_runner import CaseRunner, case_folder
from mluops_cli.search.fuzz.findings import (
    Finding,
    Reduced,
    excuse_slowness,
    is_doubtful,
    is_finding,
    set_right,
)
from mluops_cli.search.fuzz.pairs import pairs_of
from mluops_cli.search.fuzz.supply import Search, Supplied, Supply, supplying

_PROBLEMS: Final = 5  # problems of operators that are kept


@dataclass(frozen=True, slots=True)
class Limits:
    """When the search ends: after so many seconds, so many calls, or so many findings; None: never for that reason."""

    seconds: float | None
    cases: int | None
    findings: int


@dataclass(slots=True)
class Coverage:
    """The pairs of classes that the run calls of an operator had."""

    op: str
    seen: set[frozenset[tuple[str, str]]] = field(default_factory=set)

    def add(self, classes: dict[str, str]) -> None:
        """Count the pairs of one call."""
        self.seen.update(map(frozenset, combinations(classes.items(), 2)))

    @property
    def pairs(self) -> int:
        """How many pairs there are, those that no legal call has included."""
        return len(pairs_of(self.op))


@dataclass(slots=True)
class Outcome:
    """What came of the search so far."""

    findings: list[Finding] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)
    again: int = 0  # failures with a symptom that was found before, or that shrink to the same call as a finding
    problems: list[str] = field(default_factory=list)  # of operators and of mluops itself
    coverage: dict[str, Coverage] = field(default_factory=dict)
    seconds: float = 0.0  # without those that findings were shrunk in
    settled: int = 0  # so many of the findings are as they stay
    interrupted: bool = False

    @property
    def exit_code(self) -> int:
        """0 nothing found, 1 a finding or nothing was judged, 3 our failure, 5 no legal call was drawn, 130."""
        if self.interrupted:
            return INTERRUPTED
        if self.problems:
            return OUR_FAILURE
        if not self.tally.total:
            return NOTHING_SELECTED
        return FAILED if self.findings or self.tally.unproven or not self.tally.validated else PASSED


class Watcher(Protocol):
    """Follows a search."""

    def found(self, outcome: Outcome, finding: Finding) -> None:
        """A new symptom was found: it is the last of the outcome's findings, not shrunk yet."""

    def settled(self, outcome: Outcome, finding: Finding) -> None:
        """A finding stays as it is now: shrunk, where that is asked for."""

    def dropped(self, outcome: Outcome) -> None:
        """A finding was shrunk to the call of an earlier one; it counts as a failure like that one."""

    def beat(self, outcome: Outcome) -> None:
        """Time has passed."""


@dataclass
class FuzzRun:
    """A search with an implementation.

    reduce shrinks a finding; it is given a function that says whether a signal asks to end.
    """

    search: Search
    options: CaseOptions
    limits: Limits
    jobs: int
    watcher: Watcher
    reduce: Callable[[Finding, Callable[[], bool]], Reduced] | None = None

    def run(self) -> Outcome:
        """Draw, make and run calls until a limit is reached or a signal asks to end.

        InputError or UnavailableError where the implementation can't be loaded.
        """
        outcome = Outcome(coverage={op: Coverage(op) for op in self.search.ops})
        plugins = [Path(path) for path in self.options.plugins]
        with (
            interruptible() as interrupt,
            case_folder(self.search.most) as folder,
            supplying(self.search, folder, self.jobs, plugins, self.limits.cases) as supply,
            closing(CaseRunner(self.options, folder, self.jobs)) as runner,
        ):
            stream = _Stream(self.search, self.options.timeout, self.limits, self.watcher, outcome, supply)
            while not (stream.over or outcome.interrupted):
                outcome.interrupted = runner.stream(stream, stream.hear, stream.beat).interrupted
                stream.start += self._settle(stream, runner, interrupt.is_set)
                stream.beat()
                outcome.interrupted = outcome.interrupted or interrupt.is_set()
            outcome.seconds = time.monotonic() - stream.start
        return outcome

    def _settle(self, stream: _Stream, runner: CaseRunner, stopped: Callable[[], bool]) -> float:
        """Repeat what is doubtful, and shrink the new findings; the seconds that it took."""
        start, outcome = time.monotonic(), stream.outcome
        while stream.doubtful:
            record, call = stream.doubtful.popitem()[1]
            repeated = [] if outcome.interrupted or call.planned is None else [call.planned]
            records = [record]
            outcome.interrupted = runner.run(repeated, records.append, keep=True).interrupted or outcome.interrupted
            stream.enter(records[-1], call)
        while outcome.settled < len(outcome.findings):
            finding = outcome.findings[outcome.settled]
            if self.reduce is not None and not (outcome.interrupted or stopped()):
                reduced = self.reduce(finding, stopped)
                finding = outcome.findings[outcome.settled] = reduced.finding
                outcome.interrupted = reduced.interrupted
            if any(finding.same_call(each) for each in outcome.findings[: outcome.settled]):
                del outcome.findings[outcome.settled]
                outcome.again += 1
                self.watcher.dropped(outcome)
                continue
            outcome.settled += 1
            self.watcher.settled(outcome, finding)
        return time.monotonic() - start


class _Stream:
    """Hands the calls of a supply to the supervisor, and hears their records.

    It ends for good where the search is over, and for a while where something is to be repeated or shrunk.
    """

    def __init__(
        self, search: Search, timeout: float, limits: Limits, watcher: Watcher, outcome: Outcome, supply: Supply
    ) -> None:
        self.outcome = outcome
        self.start = time.monotonic()
        self.doubtful: dict[str, tuple[Record, Supplied]] = {}
        self._search = search
        self._timeout = timeout
        self._limits = limits
        self._watcher = watcher
        self._supply = supply
        self._running: dict[str, Supplied] = {}
        self._symptoms: set[Symptom] = set()

    @property
    def handle(self) -> int:
        """A descriptor that can be read when there may be more to take."""
        return self._supply.handle

    @property
    def over(self) -> bool:
        """Whether a limit is reached."""
        outcome, limits = self.outcome, self._limits
        late = limits.seconds is not None and time.monotonic() - self.start >= limits.seconds
        many = len(outcome.findings) >= limits.findings or len(outcome.problems) >= _PROBLEMS
        return late or many or self._supply.exhausted

    @property
    def ended(self) -> bool:
        """Whether no call is to be started for now."""
        return bool(self.doubtful) or self.outcome.settled < len(self.outcome.findings) or self.over

    def take(self, count: int) -> list[PlannedCase]:
        """At most so many calls that are ready; what is wrong with others is recorded."""
        planned = []
        for call in self._supply.take(count):
            if call.planned is None:
                self.outcome.problems.append(f"{call.op}: {call.problem}")
            else:
                self._running[call.planned.id] = call
                planned.append(call.planned)
        return planned

    def beat(self) -> None:
        """Say that time has passed."""
        self.outcome.seconds = time.monotonic() - self.start
        self._watcher.beat(self.outcome)

    def hear(self, record: Record) -> None:
        """Count the record of a call, unless the call is to be repeated."""
        call = self._running.pop(record.case)
        if is_doubtful(record):
            self.doubtful[record.case] = record, call
        else:
            self.enter(record, call)

    def enter(self, record: Record, call: Supplied) -> None:
        """Count the record of a call, and keep it as a finding where it is the first of its symptom."""
        outcome = self.outcome
        for file in call.planned.files if call.planned is not None else ():
            Path(file).unlink(missing_ok=True)
        set_right(record, self._search.ops)
        excuse_slowness(record, call.seconds, self._timeout)
        outcome.tally.add(record.counted)
        outcome.coverage[call.op].add(dict(call.drawn.classes))
        if not is_finding(record):
            if record.status in FAILING:
                outcome.problems.append(f"{record.case}: {record.reason}")
            return
        symptom = symptom_of(record)
        if symptom in self._symptoms:
            outcome.again += 1
            return
        self._symptoms.add(symptom)
        finding = Finding(symptom, call.drawn.entry, record)
        outcome.findings.append(finding)
        self._watcher.found(outcome, finding)
