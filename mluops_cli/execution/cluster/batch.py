"""Batches: the cases that one Dask task runs one after the other."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mluops_cli.core.discovery import PlannedCase

_CASES: Final = 32  # of a batch: a task costs the scheduler about as much as a few tiny cases take to run
_BYTES: Final = 1 << 20  # of tensors of a batch: a case that is larger goes alone
_PER_SLOT: Final = 8  # batches per case that the cluster can run at once, so that all workers end together


@dataclass(slots=True, eq=False)
class Batch:
    """Cases without a record yet, and the state of the task that runs them.

    attempts counts tasks that ended before any of the cases had begun. worker and address are empty until the task
    has begun. heard is when its last event came, since when the running case began (seconds of time.monotonic).
    """

    cases: deque[PlannedCase]
    attempts: int = 0
    token: str = ""
    future: Any = None
    allowed: frozenset[str] = frozenset()
    address: str = ""
    running: PlannedCase | None = None
    heard: float = 0.0
    since: float = 0.0

    def submitted(self, token: str, future: Any, allowed: frozenset[str]) -> None:
        """A new task runs the batch, on one of the workers allowed (empty: on any)."""
        self.token, self.future, self.allowed = token, future, allowed
        self.address, self.running = "", None

    def begin(self, case: PlannedCase) -> None:
        """The case is being run."""
        self.running = case
        self.since = time.monotonic()

    def case(self, name: str) -> PlannedCase | None:
        """The case of this id, None where it has a record already."""
        return next((each for each in self.cases if each.id == name), None)


@dataclass(slots=True)
class _Building:
    cases: deque[PlannedCase] = field(default_factory=deque)
    size: int = 0


def batches_of(cases: Sequence[PlannedCase], capacity: int) -> Iterator[Batch]:
    """The cases in batches, in their order; capacity is how many cases the cluster can run at once."""
    most = max(1, min(_CASES, len(cases) // (_PER_SLOT * max(1, capacity))))
    building = _Building()
    for case in cases:
        if building.cases and (len(building.cases) == most or building.size + case.size > _BYTES):
            yield Batch(building.cases)
            building = _Building()
        building.cases.append(case)
        building.size += case.size
    if building.cases:
        yield Batch(building.cases)
