"""The mutants of one operator, run on its cases: which are killed, which survive.

No mutation-testing library is used: mutmut and cosmic-ray mutate a project for its own test command, one process start
per mutant, and give neither the mutants nor the runs as functions.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

import xxhash

from mluops_cli.core.case_options import WorkerSettings
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.core.fingerprint import hash_case
from mluops_cli.core.statuses import WRONG_INPUT
from mluops_cli.core.tally import Counted, Tally
from mluops_cli.execution.case.calls import GOES_ON
from mluops_cli.execution.interrupt import Interrupt
from mluops_cli.search.mutation.equivalence import compared
from mluops_cli.search.mutation.fork_server import TrialResult
from mluops_cli.search.mutation.mutants import Found, Mutant, find_mutants
from mluops_cli.search.mutation.records import CasesRecord, MutantFile, MutantRecord, OperatorMutants
from mluops_cli.search.mutation.runner import TrialRunner
from mluops_cli.search.mutation.sources import SourceModule
from mluops_cli.search.mutation.trial import CaseResult, Trial
from schemas.atomic_files import write_text
from schemas.errors import InputError, UnavailableError
from schemas.version import __version__

_TIMED: Final = 3  # calls of the right source that are timed
_LIMIT_LEAST: Final = 0.5  # seconds of the processor that a mutant may take for a case,
_LIMIT_FACTOR: Final = 20.0  # or so many times what the right source takes


class Watcher(Protocol):
    """Follows a session."""

    def begins(self, op: str, mutants: int, done: int) -> None:
        """The mutants are made, and done of them have a record of an earlier session."""

    def judged(self, record: MutantRecord) -> None:
        """One mutant has its record."""

    def compares(self, mutants: int) -> None:
        """All mutants have a record; so many of them are now compared with the right source on drawn calls."""

    def compared(self, record: MutantRecord) -> None:
        """One of them is compared."""


@dataclass
class OperatorSession:
    """Runs the mutants of one operator.

    modules: the names of the implementation's modules. matrix: every mutant runs on every case, not only up to the
    first that fails. drawn: calls drawn from the contract that a mutant which no case tells from the right source is
    compared on. keep: the folder for the sources of the survivors. make: how the mutants are made, of the source
    and its traced results. Interrupted, it ends early; what it found is in the file.
    """

    op: str
    cases: Sequence[PlannedCase]
    settings: WorkerSettings
    modules: Sequence[str]
    jobs: int
    matrix: bool
    drawn: int
    file: MutantFile
    keep: Path | None
    watcher: Watcher
    interrupt: Interrupt
    make: Callable[[Sequence[SourceModule], Sequence[CaseResult]], Found] = find_mutants
    _seconds: dict[int, float] = field(default_factory=dict)  # of the right source
    _answers: dict[int, str] = field(default_factory=dict)  # likewise, where they are the same in every call
    _valid: dict[int, str] = field(default_factory=dict)  # of the cases that the operator must accept, the status
    _runs: Counter[int] = field(default_factory=Counter)
    _kills: Counter[int] = field(default_factory=Counter)
    _first: float = 0.0  # of the first call of the right source in a process: it may have to set up something
    _session: str = ""  # the hash of what the mutants are made from

    def run(self) -> OperatorMutants | None:
        """All records of the operator; None where it was interrupted before the first mutant.

        InputError where the implementation can't be loaded or no case passes with it.
        """
        with TrialRunner(self.cases, self.settings, self.modules, self.interrupt) as runner:
            right = self._right(runner)
            if right is None:
                return None
            found, sources, left_out = right
            session = OperatorMutants(self._cases_record(sources, left_out, found.unreached))
            self._session = session.cases.session
            known = self.file.kept(session.cases)
            session.mutants = {each.id: known[each.id] for each in found.mutants if each.id in known}
            self.file.add(session.cases)
            self.watcher.begins(self.op, len(found.mutants), len(session.mutants))
            left = [each for each in found.mutants if each.id not in session.mutants]
            mutants = {each.id: each for each in found.mutants}
            for record in session.mutants.values():
                self._keep(record, mutants[record.mutant])
            for record in self._judge(runner, left):
                self.file.add(record)
                session.mutants[record.mutant] = record
                self._keep(record, mutants[record.mutant])
                self.watcher.judged(record)
            for record in self._compare(runner, found.mutants, session):
                self.file.add(record)
                self._keep(record, mutants[record.mutant])
                self.watcher.compared(record)
        return session

    def _compare(
        self, runner: TrialRunner, mutants: Sequence[Mutant], session: OperatorMutants
    ) -> Iterator[MutantRecord]:
        """Look for a drawn call that tells a mutant from the right source, where no case does; the changed records."""
        records = session.mutants
        waiting = [
            each
            for each in mutants
            if each.id in records and not records[each.id].drawn and each.mutation is not None
            if records[each.id].status in ("equivalent", "not_reached")
        ]
        if not (waiting and self.drawn) or self.interrupt.is_set():
            return
        self.watcher.compares(len(waiting))
        for found in compared(runner, self.op, self.drawn, waiting, self.jobs):
            record = records[found.mutant.id]
            record.drawn = found.calls
            if found.result is not None:
                allowed = found.result.allowed and not found.result.killing
                record.status = "allowed" if allowed else "survived"
                record.reason = f"{found.result.status}: {found.result.reason}".removesuffix(": ")
                record.shown_by = found.entry
            yield record

    def _keep(self, record: MutantRecord, mutant: Mutant) -> None:
        if self.keep is not None and record.survives and mutant.mutation is not None:
            file, *rest = record.mutant.split(":")
            name = "_".join((Path(file).stem, *rest))
            write_text(self.keep / self.op / f"{name}.py", mutant.mutation.text)

    def _right(self, runner: TrialRunner) -> tuple[Found, list[SourceModule], dict[str, str]] | None:
        """Run the source as it is, traced and timed: its mutants, its modules, and the cases that are left out."""
        limit = self.settings.options.timeout
        usable = [index for index in range(len(self.cases)) if index not in runner.problems]
        left_out = {self.cases[index].id: reason for index, reason in runner.problems.items()}
        trial = Trial(0, None, tuple(usable), (limit,) * len(usable), first=False, traced=True)
        traced = runner.one(trial)
        timed = [runner.one(replace(trial, traced=False)) for _ in range(_TIMED)]
        plain = timed[-1]
        if traced is None or plain is None:
            return None
        if plain.problem:
            raise (InputError if plain.exit_code == WRONG_INPUT else UnavailableError)(plain.problem)
        passing = {each.case for each in plain.results if each.status in GOES_ON}
        for each in plain.results:
            if each.case not in passing:
                left_out[self.cases[each.case].id] = f"{each.status}: {each.reason}"
        if not passing:
            reason = next(iter(left_out.values()), "there is none")
            raise InputError(f"{self.op}: no case passes with --impl {self.settings.options.impl}, such as {reason}")
        first = {each.case: each.answer for each in traced.results}
        for each in (each for result in timed if result is not None for each in result.results):
            if each.case in passing:  # the least: what else the machine does only adds to it
                self._seconds[each.case] = min(each.seconds, self._seconds.get(each.case, each.seconds))
        self._answers = {
            each.case: each.answer
            for each in plain.results
            if each.case in passing and first.get(each.case) == each.answer
        }
        self._first = plain.results[0].seconds
        self._valid = {each.case: each.status for each in plain.results if each.valid and each.case in passing}
        sources = [
            SourceModule(name, file, Path(file).read_text(encoding="utf-8")) for name, file in plain.sources.items()
        ]
        return self.make(sources, [each for each in traced.results if each.case in passing]), sources, left_out

    def _cases_record(
        self, sources: Sequence[SourceModule], left_out: dict[str, str], unreached: list[str]
    ) -> CasesRecord:
        """What the mutants of this session are made from and run on."""
        used = sorted(self._seconds)
        hashes = {self.cases[index].id: hash_case(self.cases[index].files) for index in used}
        texts = {source.name: source.text for source in sources}
        made_from = [__version__, self.settings.options.digest, texts, hashes, self.matrix, self.drawn]
        session = xxhash.xxh3_64_hexdigest(json.dumps(made_from, sort_keys=True).encode())
        seconds = {self.cases[index].id: round(self._seconds[index], 6) for index in used}
        return CasesRecord(
            self.op, session, self.settings.options.impl, self.matrix, seconds, left_out, sorted(unreached)
        )

    def _judge(self, runner: TrialRunner, mutants: Sequence[Mutant]) -> Iterator[MutantRecord]:
        """The record of every mutant, in any order."""
        for mutant in mutants:
            if not mutant.cases:
                yield self._record(mutant, TrialResult(0))
        waiting = deque((number, each) for number, each in enumerate(mutants) if each.cases)

        def trials() -> Iterator[Trial]:
            while waiting:
                number, mutant = waiting.popleft()
                order = sorted(mutant.cases, key=self._cost)
                limits = tuple(map(self._limit, order))
                yield Trial(number, mutant.mutation, tuple(order), limits, not self.matrix, impl=mutant.impl)

        for result in runner.run(trials(), self.jobs):
            for each in result.results:
                self._runs[each.case] += 1
                self._kills[each.case] += each.killing
            yield self._record(mutants[result.number], result)

    def _limit(self, case: int) -> float:
        """Seconds of the processor that a mutant may take for the case."""
        return max(_LIMIT_LEAST, _LIMIT_FACTOR * self._seconds[case]) + 2 * self._first

    def _cost(self, case: int) -> tuple[float, int]:
        """Seconds until a kill is expected by this case alone, from the mutants so far."""
        chance = (self._kills[case] + 1) / (self._runs[case] + 2)
        return (self._seconds[case] + 0.0005) / chance, case

    def _record(self, mutant: Mutant, result: TrialResult) -> MutantRecord:
        killing = [each for each in result.results if each.killing]
        differing = [each for each in result.results if not each.killing and self._differs(each)]
        record = MutantRecord(
            self.op,
            self._session,
            mutant.id,
            mutant.file,
            mutant.line,
            mutant.kind,
            "equivalent" if mutant.cases else "not_reached",
            list(mutant.diff),
            [self.cases[each.case].id for each in killing],
            differing=[self.cases[each.case].id for each in differing],
            run=len(result.results),
            seconds=round(sum(each.seconds for each in result.results), 6),
        )
        if result.problem:
            record.status, record.reason = "killed", result.problem
        elif killing:
            record.status, record.reason = "killed", f"{killing[0].status}: {killing[0].reason}"
        elif self._proves_nothing(result.results):
            record.status, record.reason = "killed", "no valid case is judged, some are skipped"
        elif mutant.mutation is None:
            record.status = "survived"  # it is known to be wrong
        elif differing:
            telling = [each for each in differing if not each.allowed]
            record.status = "survived" if telling else "allowed"
            shown = (telling or differing)[0]
            record.reason = f"{shown.status}: {shown.reason}".removesuffix(": ")
        return record

    def _proves_nothing(self, results: Sequence[CaseResult]) -> bool:
        """Whether a run would fail because valid cases are skipped and none is judged."""
        tally = Tally()
        for status in (self._valid | {each.case: each.status for each in results if each.case in self._valid}).values():
            tally.add(Counted(status, op=self.op, valid=True))
        return bool(tally.unproven)

    def _differs(self, result: CaseResult) -> bool:
        answer = self._answers.get(result.case)
        return answer is not None and answer != result.answer
