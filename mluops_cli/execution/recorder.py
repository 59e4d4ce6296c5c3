"""The recorder of a run: it selects the cases that have no record yet, makes all records, and sends the events."""

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
from mluops_cli.core.hardware.machine import platform_name
from mluops_cli.core.record import Record
from mluops_cli.core.statuses import OUR_FAILURE
from mluops_cli.core.tally import Tally
from mluops_cli.processes.sanitizer_reports import sanitizer_report
from mluops_cli.results.resume import Earlier


@dataclass(slots=True)
class RunSettings:
    """How to run: the options of every case, how many at once, where results go.

    jobs: cases at once. max_failures: no case is started after so many have failed. strict: mistrusted fails.
    partial: the cases are a part of those that are selected (--shard). earlier: the results of an earlier run that
    --resume or --last-failed keeps. waive: what waivers make of a record. memory: bytes that a case may take where the
    options don't say it; None: it is measured when the run starts.
    """

    worker: WorkerSettings
    out: Path
    jobs: int = 1
    max_failures: int | None = None
    strict: bool = False
    partial: bool = False
    earlier: Earlier = field(default_factory=Earlier)
    waive: Callable[[Record], Record] | None = None
    memory: int | None = None

    @property
    def options(self) -> CaseOptions:
        """The options of every case."""
        return self.worker.options


class Recorder:
    """Makes exactly one record for every selected case, counts it, and sends it to the listeners."""

    def __init__(self, settings: RunSettings, listeners: Sequence[Listener]) -> None:
        self.settings = settings
        self.listeners = listeners
        self.tally = Tally(partial=settings.partial)
        self.selected = 0
        self.loaded = False
        self.unreadable: list[PlannedCase] = []
        self.start = time.monotonic()

    def emit(self, event: Event) -> None:
        """Send an event to the listeners; Loaded is sent before the first event of a case and before the end."""
        if not self.loaded and isinstance(event, CaseStarted | CaseFinished | RunFinished):
            self.loaded = True
            self.emit(Loaded())
        for listener in self.listeners:
            listener(event)

    def open(self, cases: Sequence[PlannedCase], jobs: int) -> list[PlannedCase]:
        """Start the run; return the readable cases that have no record yet, the largest first if jobs is above 1.

        Cases that can't be read get their records at the end, so that no record is made if the implementation can't be
        loaded.
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
        if jobs > 1:  # so that no large case is left for one worker at the end
            todo.sort(key=lambda case: -case.size)
        self.emit(RunStarted(settings.options, self.selected, jobs, settings.out, len(done), settings.earlier.again))
        return todo

    @property
    def enough(self) -> bool:
        """Whether so many cases have failed that no other is started."""
        limit = self.settings.max_failures
        return limit is not None and self.tally.failures >= limit

    def add(self, case: PlannedCase, result: dict[str, Any], printed: str = "", seconds: float | None = None) -> None:
        """Make the record of a case from the keys of its result, what it printed and the seconds that it took."""
        record = record_of(case, self.settings.options.impl, result, printed)
        record.platform = platform_name()  # not in enter: on a Dask cluster this runs on the worker's machine
        record.seconds = seconds if seconds is None else round(seconds, 6)
        self.enter(case, record)

    def enter(self, case: PlannedCase, record: Record) -> None:
        """Complete a record with what only this process knows, count it and send it."""
        record.file = case.file
        record.case_hash = record.case_hash or hash_case(case.hashed_files, case.manifest_meta)
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
        not_run = self.selected - self.tally.total + self.settings.earlier.not_run
        finished = RunFinished(self.tally, code, seconds, not_run, interrupted, problem)
        self.emit(finished)
        return finished


def record_of(case: PlannedCase, impl: str, result: dict[str, Any], printed: str = "") -> Record:
    """The record of a case that an implementation ran, from the keys of its result and what it printed."""
    keys = {key: each for key, each in result.items() if key not in ("retire", "again", "traceback")}
    record = Record(case.id, case.op, case.suite, case.file, impl, **keys)
    record.printed = printed + result.get("traceback", "")
    if record.status == "crash" and (report := sanitizer_report(record.printed)):
        record.reason = f"{report}; {record.reason}"
    if record.status == "error" and record.blame is None:
        record.blame = "implementation"
    return record
