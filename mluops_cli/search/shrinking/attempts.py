"""Attempts at a simpler call: each is made, run and judged; the last one that fails alike is kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from generators.contracts.negative_cases import broken
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.core.record import Record
from mluops_cli.lint.baselines import check_weakness
from mluops_cli.results.symptoms import Symptom
from mluops_cli.search.case_making import built_case, make_case
from mluops_cli.search.case_runner import CaseRunner
from mluops_cli.search.shrinking.candidate import Candidate
from schemas.casefiles.reading import read_case
from schemas.errors import MluopsError, UnavailableError

INTERRUPTED: Final = "interrupted"

Judge = Callable[[Record], Symptom | None]


@dataclass(frozen=True, slots=True)
class Budget:
    """What shrinking one call may take: runs of the implementation, and seconds."""

    runs: int = 600
    seconds: float = 60.0


def shows(found: Symptom | None, wanted: Symptom) -> bool:
    """Whether a smaller call shows the symptom that is wanted: it may name no region, but must not name another one."""
    # The diagnosis names a region where so many wrong elements are unlikely to lie by chance, if it is not the whole
    # output. A smaller call with the same fault may have too few wrong elements for that, or nothing beside them.
    # Another region means that other elements are wrong.
    return found is not None and found in (wanted, replace(wanted, region=""))


class Ended(Exception):  # noqa: N818  not an error
    """No further attempt is made; the text says why."""


class Attempts:
    """Runs calls as cases of one suite; judge gives the symptom of a record that shows a fault, else None.

    now: the simplest call so far that fails, with its record. runs: how often the implementation was run.
    """

    now: Candidate
    record: Record

    def __init__(
        self, runner: CaseRunner, judge: Judge, budget: Budget, stopped: Callable[[], bool], suite: str
    ) -> None:
        self.runs = 0
        self._runner = runner
        self._judge = judge
        self._budget = budget
        self._stopped = stopped
        self._suite = suite
        self._end = time.monotonic() + budget.seconds
        self._rejected: set[str] = set()
        self._wanted: Symptom | None = None
        self._rules: list[str] = []  # that the first call breaks
        self._weak = False  # whether the first call's baseline proves nothing

    @property
    def ample(self) -> bool:
        """Whether at least half of the budget is left."""
        return 2 * self.runs <= self._budget.runs and 2 * (self._end - time.monotonic()) >= self._budget.seconds

    def begin(self, start: Candidate, wanted: Symptom | None) -> bool:
        """Run the first call; whether it shows the symptom that is wanted, by default any. False after a signal.

        InputError where it is no legal call, UnavailableError where the implementation can't be loaded.
        """
        if start.shaped:
            self._rules = self._broken(start)
        case = self._case(start)
        self._weak = proves_nothing(case.file, start)
        try:
            record = self._run(case, lambda _: True)
        except Ended:
            return False
        found = None if record is None else self._judge(record)
        if record is None or found is None or wanted not in (None, found):
            return False
        self._wanted, self.now, self.record = found, start, record
        return True

    def accept(self, candidate: Candidate) -> bool:
        """Run a call; keep it, and return True, where it shows the symptom.

        Ended where the budget is used up, a signal came, or the disk or the loading of the implementation fails.
        """
        if candidate.key in self._rejected or candidate.key == self.now.key:
            return False
        record = self._failing_alike(candidate)
        if record is None:
            self._rejected.add(candidate.key)
            return False
        self.now, self.record = candidate, record
        return True

    def _failing_alike(self, candidate: Candidate) -> Record | None:
        """The record of a call that shows the symptom; None where it is no legal case, or breaks other rules.

        None too where a right kernel's pass would prove nothing, if it proves something for the first call: an entry is
        kept to see that the kernel is mended.
        """
        if self.runs >= self._budget.runs or time.monotonic() > self._end:
            raise Ended("the budget is used up")
        try:
            if candidate.shaped and self._broken(candidate) != self._rules:
                return None
            case = self._case(candidate)
        except UnavailableError as error:
            raise Ended(str(error)) from None
        except Exception:  # the reference kernel may raise too: a smaller call is then left out
            return None

        def alike(record: Record) -> bool:
            alike = self._wanted is not None and shows(self._judge(record), self._wanted)
            return alike and (self._weak or not proves_nothing(case.file, candidate))

        try:
            return self._run(case, alike)
        except MluopsError as error:
            raise Ended(str(error)) from None

    def _case(self, candidate: Candidate) -> PlannedCase:
        return make_case(candidate.contract.op, self._suite, candidate.entry(self._runner.folder), self._runner.folder)

    def _run(self, case: PlannedCase, wanted: Callable[[Record], bool]) -> Record | None:
        """The record, where it is wanted; that is asked while the case's files are there. Ended after a signal.

        Relations take several calls: they are checked only where the symptom is that of a relation.
        """
        if self._stopped():
            raise Ended(INTERRUPTED)
        found: list[Record] = []
        case = replace(case, relations=self._wanted is None or self._wanted.of_relation)
        finished = self._runner.run([case], lambda record: found.append(record) if wanted(record) else None)
        self.runs += 1
        if finished.interrupted:
            raise Ended(INTERRUPTED)
        return found[0] if found else None

    def _broken(self, candidate: Candidate) -> list[str]:
        """The rules that an illegal call breaks."""
        case = built_case(candidate.contract.op, self._suite, candidate.entry(self._runner.folder))
        return [violation.rule for violation in broken(case, candidate.contract)]


def proves_nothing(file: str, candidate: Candidate) -> bool:
    """Whether wrong outputs too would agree with the baseline of a case file."""
    with read_case(Path(file)) as case:
        return any(True for _ in check_weakness(case, candidate.operator))
