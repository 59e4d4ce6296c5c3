"""The command's side of the fork server: it starts it, gives it trials, and takes their results."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from types import TracebackType
from typing import Any, Final

from mluops_cli.core.case_options import WorkerSettings
from mluops_cli.core.discovery import PlannedCase
from mluops_cli.execution.interrupt import Interrupt
from mluops_cli.execution.workers.handle import starting
from mluops_cli.search.mutation.fork_server import TrialResult, serve
from mluops_cli.search.mutation.trial import Trial
from schemas.errors import MluopsError

_FAREWELL: Final = 5.0  # seconds in which the server may end by itself


class TrialRunner:
    """A fork server for some cases and an implementation; a context manager that ends it.

    problems: index of each case that can't be prepared -> why. MluopsError where the server ends by itself.
    """

    def __init__(
        self, cases: Sequence[PlannedCase], settings: WorkerSettings, names: Sequence[str], interrupt: Interrupt
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, there = context.Pipe()
        self.interrupt = interrupt
        self.process = context.Process(target=serve, args=(there, settings, tuple(names)), daemon=False)
        with starting(settings.options.threads):
            self.process.start()
        there.close()
        self.problems: dict[int, str] = {}
        self._first, self._count = cases, 0

    def __enter__(self) -> TrialRunner:
        self.add(self._first)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pipe.close()
        if kind is None and not self.interrupt.is_set():
            self.process.join(_FAREWELL)
        self.process.terminate()  # the reaper ends what is left
        self.process.join(_FAREWELL)
        self.process.kill()
        self.process.join()

    def add(self, cases: Sequence[PlannedCase]) -> range:
        """Let the server hold more cases, while no trial runs; their indices in trials."""
        self._send(list(cases))
        self.problems.update(self._receive() or {})
        before, self._count = self._count, self._count + len(cases)
        return range(before, self._count)

    def run(self, trials: Iterator[Trial], jobs: int) -> Iterator[TrialResult]:
        """The results as they come, of so many trials at once; each trial is asked for when a process is free.

        Ends early after an interrupt.
        """
        running = 0
        while not self.interrupt.is_set():
            while running < jobs and (trial := next(trials, None)) is not None:
                self._send(trial)
                running += 1
            if not running:
                return
            result = self._receive()
            if result is not None:
                running -= 1
                yield result

    def one(self, trial: Trial) -> TrialResult | None:
        """The result of a single trial; None after an interrupt."""
        return next(self.run(iter((trial,)), 1), None)

    def _send(self, message: Trial | list[PlannedCase]) -> None:
        with suppress(OSError):  # _receive reports what ended it
            self.pipe.send(message)

    def _receive(self) -> Any:
        """The next message; None after an interrupt."""
        handles: list[Any] = [self.pipe, self.interrupt.handle]
        while not self.interrupt.is_set():
            ready = wait(handles)
            if self.pipe in ready:
                with suppress(EOFError, OSError):
                    return self.pipe.recv()
                raise MluopsError("the process that runs the mutants ended (out of memory?); --resume goes on")
        return None
