"""A run of fuzz: calls are drawn, made and run until a limit is reached; the first failure of each symptom is kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Final, Protocol

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.record import Record
from mluops_cli.core.statuses import FAILED, INTERRUPTED, NOTHING_SELECTED, OUR_FAILURE, PASSED
from mluops_cli.core.tally import Tally
from mluops_cli.execution.interrupt import interruptible
from mluops_cli.search.case_runner import CaseRunner, case_folder
from mluops_cli.search.fuzz.findings import Finding, Reduced, Symptom, is_finding, set_right, symptom_of
from mluops_cli.search.fuzz.pairs import pairs_of
from mluops_cli.search.fuzz.supply import Search, Supplied, supplying

_TICK: Final = 0.2  # seconds between looks at the time and at interrupts
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
    again: int = 0  # failures with a symptom that was found before
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
    """Is told what happens."""

    def found(self, outcome: Outcome, finding: Finding) -> None:
        """A new symptom was found: it is the last of the outcome's findings, not shrunk yet."""

    def settled(self, outcome: Outcome, finding: Finding) -> None:
        """A finding stays as it is now: shrunk, where that is asked for."""

    def beat(self, outcome: Outcome) -> None:
        """Time has passed."""


@dataclass
class FuzzRun:
    """A search with an implementation.

    reduce shrinks a finding; it is told how to see that a signal asks to end.
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
        start = time.monotonic()
        symptoms: set[Symptom] = set()

        def beat() -> None:
            outcome.seconds = time.monotonic() - start
            self.watcher.beat(outcome)

        plugins = [Path(path) for path in self.options.plugins]
        with (
            interruptible() as interrupt,
            case_folder(self.search.most) as folder,
            supplying(self.search, folder, self.jobs, plugins, self.limits.cases) as supply,
            closing(CaseRunner(self.options, folder, self.jobs)) as runner,
        ):
            while not (supply.exhausted or self._over(outcome, start)):
                calls = self._sound(supply.take(_TICK), outcome)
                if calls:
                    by_id = {call.planned.id: call for call in calls if call.planned is not None}
                    finished = runner.run(
                        [call.planned for call in by_id.values() if call.planned is not None],
                        lambda record, by_id=by_id: self._hear(record, by_id[record.case], outcome, symptoms),  # type: ignore[misc]
                        beat,
                    )
                    outcome.interrupted = finished.interrupted
                start += self._settle(outcome, interrupt.is_set)
                beat()
                if interrupt.is_set() or outcome.interrupted:
                    outcome.interrupted = True
                    break
        outcome.seconds = time.monotonic() - start
        return outcome

    def _settle(self, outcome: Outcome, stopped: Callable[[], bool]) -> float:
        """Shrink the new findings; the seconds that it took."""
        start = time.monotonic()
        while outcome.settled < len(outcome.findings):
            finding = outcome.findings[outcome.settled]
            if self.reduce is not None and not (outcome.interrupted or stopped()):
                reduced = self.reduce(finding, stopped)
                finding = outcome.findings[outcome.settled] = reduced.finding
                outcome.interrupted = reduced.interrupted
            outcome.settled += 1
            self.watcher.settled(outcome, finding)
        return time.monotonic() - start

    def _over(self, outcome: Outcome, start: float) -> bool:
        late = self.limits.seconds is not None and time.monotonic() - start >= self.limits.seconds
        return late or len(outcome.findings) >= self.limits.findings or len(outcome.problems) >= _PROBLEMS

    def _sound(self, calls: Sequence[Supplied], outcome: Outcome) -> list[Supplied]:
        """The calls that have a file; what is wrong with the others is recorded."""
        outcome.problems += [f"{call.op}: {call.problem}" for call in calls if call.planned is None]
        return [call for call in calls if call.planned is not None]

    def _hear(self, record: Record, call: Supplied, outcome: Outcome, symptoms: set[Symptom]) -> None:
        set_right(record, self.search.ops)
        outcome.tally.add(record.counted)
        outcome.coverage[call.op].add(dict(call.drawn.classes))
        if record.status == "error" and record.blame != "implementation":
            outcome.problems.append(f"{record.case}: {record.reason}")
        if not is_finding(record):
            return
        symptom = symptom_of(record)
        if symptom in symptoms:
            outcome.again += 1
            return
        symptoms.add(symptom)
        finding = Finding(symptom, call.drawn.entry, record)
        outcome.findings.append(finding)
        self.watcher.found(outcome, finding)
