"""The ledger of a run: which cases are to be run, and the one place where their records are made and told."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mluops_cli.core.case_options import CaseOptions, WorkerSettings, repro_line
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.core.events import CaseFinished, CaseStarted, Event, Listener, Loaded, RunFinished, RunStarted
from mluops_cli.core.fingerprint import hash_case
from mluops_cli.core.machine import platform_name
from mluops_cli.core.record import Record, Tally
from mluops_cli.core.statuses import OUR_FAILURE
from mluops_cli.results.resume import Earlier


@dataclass(slots=True)
class RunSettings:
    """How to run: the options of every case, how many at once, where results go.

    jobs: cases at once. max_failures: no case is started after so many have failed. strict: mistrusted fails.
    earlier: the results of an earlier run that --resume keeps. waive: what waivers make of a record.
    """

    worker: WorkerSettings
    out: Path
    jobs: int = 1
    max_failures: int | None = None
    strict: bool = False
    earlier: Earlier = field(default_factory=Earlier)
    waive: Callable[[Record], Record] | None = None

    @property
    def options(self) -> CaseOptions:
        """The options of every case."""
        return self.worker.options


class Recorder:
    """Counts and tells; every selected case gets exactly one record here, whoever ran it."""

    def __init__(self, settings: RunSettings, listeners: Sequence[Listener]) -> None:
        self.settings = settings
        self.listeners = listeners
        self.tally = Tally()
        self.selected = 0
        self.loaded = False
        self.unreadable: list[PlannedCase] = []
        self.start = time.monotonic()

    def emit(self, event: Event) -> None:
        """Tell the listeners; that the implementation is loaded goes before the first news of a case, and the end."""
        if not self.loaded and isinstance(event, CaseStarted | CaseFinished | RunFinished):
            self.loaded = True
            self.emit(Loaded())
        for listener in self.listeners:
            listener(event)

    def open(self, cases: Sequence[PlannedCase], jobs: int) -> list[PlannedCase]:
        """Begin the run; the readable cases that have no record yet, with more than one job the largest first.

        Those that can't be read get theirs at the end: an implementation that can't be loaded leaves no record at all.
        """
        settings = self.settings
        done = settings.earlier.kept
        for counted in done.values():
            self.tally.add(counted)
        todo = [case for case in cases if case.id not in done]
        self.selected = len(todo) + len(done)
        self.unreadable = [case for case in todo if case.problem is not None]
        todo = [case for case in todo if case.problem is None]
        jobs = min(jobs, max(1, len(todo)))
        if jobs > 1:  # so that no worker is left alone with a large one at the end
            todo.sort(key=lambda case: -case.size)
        self.emit(RunStarted(settings.options, self.selected, jobs, settings.out, len(done), settings.earlier.again))
        return todo

    @property
    def enough(self) -> bool:
        """Whether so many cases have failed that no other is to be begun."""
        limit = self.settings.max_failures
        return limit is not None and self.tally.failures >= limit

    def add(self, case: PlannedCase, result: dict[str, Any], printed: str = "", seconds: float | None = None) -> None:
        """The record of a case from what came of it."""
        result.pop("retire", None)
        printed += result.pop("traceback", "")
        record = Record(case.id, case.op, case.suite, case.file, self.settings.options.impl, **result)
        record.printed = printed
        record.platform = platform_name()  # here, not in enter: of a fleet's case this runs on the worker's machine
        record.seconds = seconds if seconds is None else round(seconds, 6)
        if record.status == "error" and record.blame is None:
            record.blame = "implementation"
        self.enter(case, record)

    def enter(self, case: PlannedCase, record: Record) -> None:
        """A record that is complete but for what only this side knows."""
        record.file = case.file
        record.case_hash = record.case_hash or hash_case(case.files, case.manifest_meta)
        record.options_hash = self.settings.options.digest
        record.repro = repro_line(self.settings.options, case.file, str(self.settings.out))
        if self.settings.waive is not None:
            record = self.settings.waive(record)
        self.tally.add(record.counted)
        self.emit(CaseFinished(record))

    def close(self, *, interrupted: bool, problem: str = "") -> RunFinished:
        """End the run; problem says why cases that were not run could not be."""
        for case in self.unreadable:
            if not self.enough:
                self.add(case, {"status": "error", "blame": "case", "reason": str(case.problem)})
        code = self.tally.exit_code(strict=self.settings.strict, interrupted=interrupted)
        code = max(code, OUR_FAILURE) if problem else code
        seconds = time.monotonic() - self.start
        finished = RunFinished(self.tally, code, seconds, self.selected - self.tally.total, interrupted, problem)
        self.emit(finished)
        return finished
