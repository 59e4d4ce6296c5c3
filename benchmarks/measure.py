"""How a metric is measured: alternating pairs, the median of their ratios, each against its bound."""

from __future__ import annotations

import statistics
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of the benchmark table; at_least: the bound is a lower one (of a rate, not of a cost)."""

    name: str
    value: float
    unit: str
    bound: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the metric is within its bound; None without one."""
        if self.bound is None:
            return None
        return self.value >= self.bound if self.at_least else self.value <= self.bound


def seconds(action: Callable[[], object]) -> float:
    """Wall-clock seconds of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def peak(action: Callable[[], object]) -> int:
    """The most that one call has allocated at any time, in bytes."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def ratio(
    name: str, ours: Callable[[], object], plain: Callable[[], object], bound: float | None = None, pairs: int = 7
) -> Row:
    """Ours against something plain: the median ratio of alternating pairs, after one unmeasured call of each."""
    ours(), plain()
    taken = [(seconds(ours), seconds(plain)) for _ in range(pairs)]
    note = f"{statistics.median(a for a, _ in taken):.3f} s against {statistics.median(b for _, b in taken):.3f} s"
    return Row(name, statistics.median(a / b for a, b in taken), "x", bound, note=note)
