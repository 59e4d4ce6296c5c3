"""How far a run is: a bar on a terminal, a line now and then where there is none."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from mluops_cli.core.escaping import one_line
from mluops_cli.core.events import Heartbeat, RunStarted
from schemas.suggest import counted

_BEAT: Final = 30.0  # seconds between the lines that report progress where there is no terminal
_BAR: Final = 20  # columns of the bar: the id of the case needs the others
_FIRST: Final = 3  # cases that must be finished before the time that is left is guessed


class RunProgress:
    """The cases that are finished, those that failed, and the time that is left at the present speed."""

    def __init__(self, console: Console, say: Callable[[str], None]) -> None:
        self.workers = ""
        self._console = console
        self._say = say
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._total = self._done = self._finished = self._failed = 0
        self._begun = self._said = time.monotonic()

    def start(self, run: RunStarted) -> None:
        """Begin: on a terminal the bar is shown until stop()."""
        self._total, self._done = run.cases, run.done
        self._begun = self._said = time.monotonic()
        if self._console.is_terminal:
            columns = (
                BarColumn(_BAR),
                MofNCompleteColumn(),
                TextColumn("{task.fields[failed]}", style="red"),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[case]}", markup=False),
            )
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("", total=run.cases, completed=run.done, case="", failed="")
            self._bar.start()

    def case_started(self, case: str) -> None:
        """Show the id of a case that has begun."""
        if self._bar is not None:
            self._bar.update(self._task, case=one_line(case))

    def case_finished(self, *, failed: bool) -> None:
        """Count a case."""
        self._finished += 1
        self._failed += failed
        if self._bar is not None:
            self._bar.update(self._task, advance=1, failed=self._failures)

    def beat(self, beat: Heartbeat) -> None:
        """Show what each worker of a fleet has done; print a line now and then where there is no bar."""
        self.workers = ", ".join(f"{worker} {finished}" for worker, finished in beat.workers)
        if self._bar is not None and self.workers:
            self._bar.update(self._task, case=one_line(self.workers))
        if self._bar is not None or time.monotonic() - self._said < _BEAT:
            return
        self._said = time.monotonic()
        running = ", ".join(f"{case} ({seconds:.0f} s)" for case, seconds in beat.running)
        parts = [f"{beat.finished} of {counted(self._total, 'case')} finished", self._failures, self._remaining]
        self._say(f"{', '.join(filter(None, parts))}; running: {running or 'none'}")
        if self.workers:
            self._say(f"finished by worker: {self.workers}")

    def stop(self) -> None:
        """Take down the bar and show the cursor that it hid."""
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.stop()

    @property
    def _failures(self) -> str:
        return f"{self._failed} failed" if self._failed else ""

    @property
    def _remaining(self) -> str:
        """The time that the other cases take at the present speed; empty where too few are finished to tell."""
        if self._finished < _FIRST:
            return ""
        left = self._total - self._done - self._finished
        seconds = left * (time.monotonic() - self._begun) / self._finished
        return f"about {seconds / 60:.0f} min left" if seconds >= 90 else f"about {seconds:.0f} s left"
