"""How to run: what a worker has to know besides its cases, as plain values that travel to it; and the run itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from mluops_cli.core.discovery import PlannedCase
    from mluops_cli.core.record import Record

Cache = Literal["fresh", "warm"]


@dataclass(frozen=True, slots=True)
class Judging:
    """Options of the validator.

    canonical: outputs to be compared in canonical form; loose_nan: NaN and Inf are interchangeable; strict_tail: what
    lies behind the defined pairs of a rulebook must be -1.
    """

    canonical: tuple[str, ...] = ()
    loose_nan: bool = False
    strict_tail: bool = False


@dataclass(frozen=True, slots=True)
class PerfSettings:
    """How to measure: at least min_time seconds of calls, or exactly so many runs; bandwidth in bytes/s, ops in ops/s.

    Peaks that are None are those of the device, or measured where the implementation runs on this machine's cores.
    gate: a case below its operator's standard fails.
    """

    min_time: float = 0.2
    runs: int | None = None
    cache: Cache = "fresh"
    device: str | None = None
    bandwidth: float | None = None
    ops: float | None = None
    gate: bool = False


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker has to know besides its cases; plug-ins are paths of Python files.

    folder is what relative paths count from; empty: that of the process. Outputs of failing cases of up to keep_outputs
    bytes are kept under the run's folder out.
    """

    impl: str
    plugins: tuple[str, ...] = ()
    repeat: int = 1
    judging: Judging = field(default_factory=Judging)
    perf: PerfSettings | None = None
    folder: str = ""
    keep_outputs: int | None = None
    out: str = ""


@dataclass(slots=True)
class RunSettings:
    """How to run; repro makes the command that runs one case alone. finished: records of earlier, for --resume."""

    worker: WorkerSettings
    out: Path
    jobs: int = 1
    timeout: float = 300.0
    memory: int | None = None  # bytes a case may take, with all it starts; None: what the machine has
    max_failures: int | None = None
    strict: bool = False
    repro: Callable[[PlannedCase], str] = lambda case: ""
    finished: Sequence[Record] = ()
    waive: Callable[[Record], Record] | None = None  # what waivers make of a record
    options: Mapping[str, Any] = field(default_factory=dict)  # for the summary


def worker_settings(plain: Mapping[str, Any]) -> WorkerSettings:
    """The settings of what dataclasses.asdict made of them."""
    judging = Judging(**plain["judging"])
    perf = PerfSettings(**plain["perf"]) if plain["perf"] is not None else None
    return WorkerSettings(**{**plain, "judging": judging, "perf": perf})
