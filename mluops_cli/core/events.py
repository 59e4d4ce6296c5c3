"""The events of a run. Listeners (results, console, reports) receive all of them and don't know each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mluops_cli.core.case_options import CaseOptions
from mluops_cli.core.record import Record
from mluops_cli.core.tally import Tally


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The run starts: cases are selected, done of them have a record of an earlier run (--resume, --last-failed).

    again: why other records of the earlier run aren't kept -> how many cases run again for that.
    """

    options: CaseOptions
    cases: int
    jobs: int
    out: Path
    done: int = 0
    again: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The implementation is loaded, or no case needs it: from now on the results of this run replace earlier ones."""


@dataclass(frozen=True, slots=True)
class CaseStarted:
    """A worker has been given the case."""

    case: str


@dataclass(frozen=True, slots=True)
class CaseFinished:
    """The one record of a case."""

    record: Record


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """About once a second: what is being run, with seconds since its start, and how many are finished.

    workers: of a fleet, how many cases each has finished.
    """

    running: tuple[tuple[str, float], ...]
    finished: int
    workers: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """A worker of a fleet is gone: the case it was running is a crash, those it had not begun go to others."""

    worker: str
    reason: str
    case: str | None
    given_back: int


@dataclass(frozen=True, slots=True)
class RunFinished:
    """All records are written; not_run counts selected cases without one (interrupted, --max-fail, or a problem).

    problem says why the rest of a fleet's cases could not be run.
    """

    tally: Tally
    exit_code: int
    seconds: float
    not_run: int = 0
    interrupted: bool = False
    problem: str = ""


Event = RunStarted | Loaded | CaseStarted | CaseFinished | Heartbeat | WorkerLost | RunFinished
Listener = Callable[[Event], None]
