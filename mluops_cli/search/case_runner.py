"""Runs cases that a search makes: the supervisor of `mluops run` with worker processes that are kept between calls."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from mluops_cli.core.case_options import CaseOptions, WorkerSettings
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.core.events import CaseFinished, Event, Heartbeat, RunFinished
from mluops_cli.core.record import Record
from mluops_cli.execution.case_source import CaseSource
from mluops_cli.execution.supervisor import RunSettings, memory_for_a_case, run_cases
from mluops_cli.execution.workers.handle import WorkerProcess
from mluops_cli.processes.scratch_dir import scratch_directory, sweep
from mluops_cli.search.case_making import Entry, make_case
from schemas.errors import MluopsError

_IN_MEMORY: Final = Path("/dev/shm")
_AT_ONCE: Final = 16  # times the largest case: files of so many may be there at once

Listen = Callable[[Record], None]


@contextmanager
def case_folder(most: int) -> Iterator[Path]:
    """A folder for the files of cases of up to so many bytes; it is removed at the end.

    In memory where it fits, otherwise among the system's temporary files.
    """
    parent = _IN_MEMORY if _holds(_IN_MEMORY, _AT_ONCE * most) else None
    with suppress(OSError):
        sweep(parent)
    with scratch_directory(parent) as folder:
        yield folder


def _holds(folder: Path, size: int) -> bool:
    try:
        found = os.statvfs(folder)
    except OSError:
        return False
    return os.access(folder, os.W_OK) and found.f_bavail * found.f_frsize >= size


class CaseRunner:
    """Runs cases with equal options, call after call; close() ends its worker processes.

    Outputs of failing cases of up to keep_outputs bytes are kept below the folder.
    """

    def __init__(self, options: CaseOptions, folder: Path, jobs: int, keep_outputs: int | None = None) -> None:
        worker = WorkerSettings(options, keep_outputs=keep_outputs, out=str(folder))
        self.settings = RunSettings(worker, folder, jobs=jobs, memory=memory_for_a_case())
        self.folder = folder
        self._warm: list[WorkerProcess] = []

    def run(
        self,
        cases: Sequence[PlannedCase],
        listen: Listen,
        beat: Callable[[], None] | None = None,
        *,
        keep: bool = False,
    ) -> RunFinished:
        """Run cases; listen gets the record of each, and its files are removed unless they are to be kept.

        beat is called about once a second.
        InputError or UnavailableError where the implementation can't be loaded.
        """
        files = {} if keep else {case.id: case.files for case in cases}

        def hear(event: Event) -> None:
            if isinstance(event, CaseFinished):
                listen(event.record)
                for file in files.get(event.record.case, ()):
                    Path(file).unlink(missing_ok=True)
            elif isinstance(event, Heartbeat) and beat is not None:
                beat()

        return run_cases(cases, self.settings, [hear], self._warm)

    def stream(self, source: CaseSource, listen: Listen, beat: Callable[[], None]) -> RunFinished:
        """Run what the source has until it has ended, as run does; the files are kept."""

        def hear(event: Event) -> None:
            if isinstance(event, CaseFinished):
                listen(event.record)
            elif isinstance(event, Heartbeat):
                beat()

        return run_cases((), self.settings, [hear], self._warm, source)

    def run_entry(self, op: str, suite: str, entry: Entry) -> Record | None:
        """The record of one entry; None where it is no legal case, or the run was interrupted."""
        try:
            case = make_case(op, suite, entry, self.folder)
        except MluopsError:
            return None
        records: list[Record] = []
        self.run([case], records.append)
        return records[0] if records else None

    def close(self) -> None:
        """End the worker processes."""
        for worker in self._warm:
            worker.finish()
        for worker in self._warm:
            worker.close(1.0)
        self._warm.clear()
