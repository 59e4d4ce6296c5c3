"""What changed in a history, in words: levels of latency, and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from mluops_cli.core.statuses import FAILING
from mluops_cli.core.units import format_microseconds
from mluops_cli.history.change_points import change_points
from mluops_cli.history.store import History, Point, Run, Setting


class Finding(NamedTuple):
    """A change of a case: the run in which it is there first, and the run of the same setting before that one.

    what is `fails`, or `slower by 12 %` or faster. before is None where the case has failed in all runs.
    """

    what: str
    case: str
    setting: Setting
    since: Run
    before: Run | None
    detail: str

    def __str__(self) -> str:
        return f"{self.what} since {self.since}: {self.case} ({self.setting}): {self.detail}"


def findings(history: History, matches: Callable[[str], bool]) -> Iterator[Finding]:
    """Yield what changed in the cases whose ids match; UnavailableError where ruptures is needed and missing."""
    for case in filter(matches, history.cases):
        for setting, points in history.points(case).items():
            yield from _verdict_findings(case, setting, points)
            yield from _latency_findings(case, setting, points)


def _verdict_findings(case: str, setting: Setting, points: Sequence[Point]) -> Iterator[Finding]:
    """Since when the case fails, if it fails in the last run that has it."""
    if points[-1].status not in FAILING:
        return
    first = len(points) - 1
    while first and points[first - 1].status in FAILING:
        first -= 1
    before = points[first - 1].run if first else None
    yield Finding("fails", case, setting, points[first].run, before, points[-1].reason)


def timed_points(points: Sequence[Point]) -> list[Point]:
    """Return those with a latency of the case file as it is now: those of another one say nothing."""
    return [point for point in points if point.latency and point.case_hash == points[-1].case_hash]


def _latency_findings(case: str, setting: Setting, points: Sequence[Point]) -> Iterator[Finding]:
    """The changes of level among the latencies."""
    measured = timed_points(points)
    for change in change_points([point.latency or 0.0 for point in measured]):
        what = f"{'slower' if change.ratio > 1 else 'faster'} by {abs(change.ratio - 1) * 100:.0f} %"
        detail = f"{format_microseconds(change.before)} -> {format_microseconds(change.after)}"
        yield Finding(what, case, setting, measured[change.first].run, measured[change.first - 1].run, detail)
