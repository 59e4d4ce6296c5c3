"""What a worker has to know besides its cases, as plain values that travel to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

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

    folder is what relative paths count from; empty: that of the process.
    """

    impl: str
    plugins: tuple[str, ...] = ()
    repeat: int = 1
    judging: Judging = field(default_factory=Judging)
    perf: PerfSettings | None = None
    folder: str = ""


def worker_settings(plain: Mapping[str, Any]) -> WorkerSettings:
    """The settings of what dataclasses.asdict made of them."""
    judging = Judging(**plain["judging"])
    perf = PerfSettings(**plain["perf"]) if plain["perf"] is not None else None
    return WorkerSettings(**{**plain, "judging": judging, "perf": perf})
