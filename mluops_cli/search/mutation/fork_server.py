"""The fork server: a process that holds the cases ready to be called, and forks itself for each mutant.

A fork takes milliseconds and finds everything loaded: no start of Python, no import of NumPy, no case to be read and no
baseline to be computed. A mutant that crashes, hangs or spoils memory ends its own process only. The server itself
never loads the implementation.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

from mluops_cli.core.case_options import WorkerSettings
from mluops_cli.core.discovery import PlannedCase, open_case
from mluops_cli.core.statuses import WRONG_INPUT
from mluops_cli.execution.case.case_run import Prepared, prepare
from mluops_cli.processes.reaper import put_under_reaper
from mluops_cli.search.mutation.trial import CaseResult, Trial, run_trial
from schemas.errors import MluopsError

_HELD: Final = 1 << 30  # bytes of tensors of the cases that are held ready; others are prepared by each fork
_WALL_FACTOR: Final = 10.0  # a case that waits instead of computing may take so many times its limit,
_WALL_LEAST: Final = 15.0  # and so many seconds at least
_TIMEOUTS: Final = 3  # cases of one mutant that may run into their limit; the others aren't tried then


@dataclass(slots=True)
class TrialResult:
    """What came of a trial: a result per case that was run; problem says why the mutant can't be loaded."""

    number: int
    results: list[CaseResult] = field(default_factory=list)
    problem: str = ""
    exit_code: int = 0  # of the problem
    sources: dict[str, str] = field(default_factory=dict)  # module -> file, of the implementation as it was loaded


def serve(pipe: Connection, settings: WorkerSettings, names: Sequence[str]) -> None:
    """Answer every Trial that arrives with a TrialResult, in any order, until the pipe closes.

    A list of cases that arrives is added to those that trials name by their indices; the answer is what is wrong with
    those that can't be prepared: index -> why.
    """
    put_under_reaper()
    os.setsid()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    if settings.options.plugins:
        from mluops_cli.implementations.plugins import load_plugins

        load_plugins([Path(path) for path in settings.options.plugins])
    with ExitStack() as files:
        _Server(pipe, _Shelf(settings, files), settings, names).run()


class _Shelf:
    """The cases, prepared as soon as they fit into memory together."""

    def __init__(self, settings: WorkerSettings, files: ExitStack) -> None:
        self.cases: list[PlannedCase] = []
        self.settings, self.files = settings, files
        self._ready: dict[int, Prepared] = {}
        self._held = 0

    def add(self, cases: Sequence[PlannedCase]) -> dict[int, str]:
        """Prepare the smallest of more cases; returns what is wrong with those that can't be."""
        problems: dict[int, str] = {}
        new = range(len(self.cases), len(self.cases) + len(cases))
        self.cases += cases
        for index in sorted(new, key=lambda index: self.cases[index].size):
            self._held += self.cases[index].size
            try:
                if self._held <= _HELD:
                    self._ready[index] = self._prepare(index)
            except MluopsError as error:
                problems[index] = str(error)
        return problems

    def __call__(self, index: int) -> Prepared:
        if index not in self._ready:
            self._ready[index] = self._prepare(index)
        return self._ready[index]

    def _prepare(self, index: int) -> Prepared:
        file = self.files.enter_context(open_case(self.cases[index]))
        return prepare(file, self.settings.options)


@dataclass(slots=True)
class _Fork:
    """A running trial."""

    trial: Trial
    process: BaseProcess
    pipe: Connection
    result: TrialResult
    current: int | None = None  # the case that it runs
    late: float = float("inf")  # the time at which it is ended
    done: bool = False
    last: bool = False  # no more cases are to be run
    loaded: bool = False

    @property
    def over(self) -> bool:
        return self.done or not self.process.is_alive()


class _Server:
    def __init__(self, pipe: Connection, shelf: _Shelf, settings: WorkerSettings, names: Sequence[str]) -> None:
        self.pipe, self.shelf, self.settings, self.names = pipe, shelf, settings, names
        self.context = multiprocessing.get_context("fork")
        self.forks: list[_Fork] = []

    def run(self) -> None:
        while True:
            now = time.monotonic()
            left = min((fork.late - now for fork in self.forks), default=None)
            handles: list[Any] = [self.pipe]
            handles += [each for fork in self.forks for each in (fork.pipe, fork.process.sentinel)]
            ready = wait(handles, None if left is None else max(0.0, min(left, 60.0)))
            if self.pipe in ready:
                try:
                    message = self.pipe.recv()
                except EOFError:
                    return
                if isinstance(message, Trial):
                    self._start(message, None)
                else:
                    self.pipe.send(self.shelf.add(message))
            for fork in tuple(self.forks):
                self._listen(fork)

    def _start(self, trial: Trial, before: TrialResult | None) -> None:
        here, there = self.context.Pipe(duplex=False)
        process = self.context.Process(
            target=run_trial, args=(there, trial, self.shelf, self.settings, self.names), daemon=False
        )
        process.start()
        there.close()
        late = time.monotonic() + 10 * _WALL_LEAST
        self.forks.append(_Fork(trial, process, here, before or TrialResult(trial.number), late=late))

    def _listen(self, fork: _Fork) -> None:
        """Take the messages of a fork; see whether it has ended, or has to be ended."""
        over = fork.over  # asked first: messages that it sent before can still be read
        for message in _messages(fork.pipe):
            self._take(fork, message)
        late = time.monotonic() > fork.late
        if not (over or fork.done or late):
            return
        self.forks.remove(fork)
        with suppress(OSError):
            os.killpg(fork.process.pid or 0, signal.SIGKILL)
        fork.process.kill()
        fork.process.join()
        fork.pipe.close()
        if not fork.done:
            self._ended(fork, late=late)
        self._go_on(fork)

    def _take(self, fork: _Fork, message: dict[str, Any]) -> None:
        if "problem" in message:
            fork.result.problem, fork.result.exit_code = str(message["problem"]), int(message["exit_code"])
            fork.done = True
        elif "loaded" in message:
            fork.result.sources, fork.loaded = message["loaded"], True
        elif "begin" in message:
            fork.current = int(message["begin"])
            limit = dict(zip(fork.trial.cases, fork.trial.limits, strict=True))[fork.current]
            fork.late = time.monotonic() + max(_WALL_FACTOR * limit, _WALL_LEAST)
        elif "case" in message:
            fork.result.results.append(CaseResult(**message["case"]))
            fork.current = None
            fork.last = bool(message["last"])
            fork.done = fork.last or bool(message["retire"])

    def _ended(self, fork: _Fork, *, late: bool) -> None:
        """A fork that ended, or was ended, without saying so."""
        code = fork.process.exitcode or 0
        slow = late or code == -signal.SIGPROF
        reason = "no answer within its time limit" if slow else f"its process ended with {_exit(code)}"
        if fork.current is not None:
            fork.result.results.append(CaseResult(fork.current, "timeout" if slow else "crash", reason))
        elif not fork.loaded:
            fork.result.problem, fork.result.exit_code = reason, WRONG_INPUT

    def _go_on(self, fork: _Fork) -> None:
        """Run the cases that are left in another fork; send the result where there are none."""
        result, trial = fork.result, fork.trial
        done = {each.case for each in result.results}
        left = [place for place, case in enumerate(trial.cases) if case not in done]
        killed = any(each.killing for each in result.results)
        timeouts = sum(each.status == "timeout" for each in result.results)
        if fork.last or result.problem or not left or (trial.first and killed) or timeouts >= _TIMEOUTS or not done:
            self.pipe.send(result)
            return
        self._start(trial.of(left), result)


def _messages(pipe: Connection) -> Iterator[dict[str, Any]]:
    """The messages that have arrived; what a mutant has written into the pipe by itself is left out."""
    with suppress(OSError, EOFError, ValueError):
        while pipe.poll():
            message = json.loads(pipe.recv_bytes())
            if isinstance(message, dict):
                yield message


def _exit(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {-code} ({signal.Signals(-code).name})"
    except ValueError:
        return f"signal {-code}"
