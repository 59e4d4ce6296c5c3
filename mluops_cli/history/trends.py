"""What changed in a history, in words: levels of latency, and verdicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final, NamedTuple

from mluops_cli.core.statuses import FAILING, PASSING
from mluops_cli.core.units import format_microseconds
from mluops_cli.history.change_points import change_points
from mluops_cli.history.store import History, Point, Run, Setting

FAILS: Final = "fails"
_PAST: Final = {FAILS: "failed", "passes": "passed"}


class Finding(NamedTuple):
    """A change of a case: the run in which it is there first, and the run before that one that it is compared with.

    what is `fails`, `passes` or `is skip`, or `slower by 12 %` or faster. before is None where the case has failed in
    all runs. until is the last run with a verdict that changed again.
    """

    what: str
    case: str
    setting: Setting
    since: Run
    before: Run | None
    detail: str
    until: Run | None = None

    def __str__(self) -> str:
        return f"{self._when}: {self.case} ({self.setting}){f': {self.detail}' if self.detail else ''}"

    @property
    def _when(self) -> str:
        if self.until is None:
            return f"{self.what} since {self.since}"
        past = _PAST.get(self.what) or self.what.replace("is ", "was ", 1)
        return f"{past} in {self.since}" if self.until == self.since else f"{past} from {self.since} to {self.until}"


def findings(history: History, matches: Callable[[str], bool], *, every: bool = False) -> Iterator[Finding]:
    """Yield what changed in the cases whose ids match; UnavailableError where ruptures is needed and missing.

    Of the verdicts those cases that fail now, or with every all changes.
    """
    for case in filter(matches, history.cases):
        points_by_setting = history.points(case)
        for change in verdict_changes(case, points_by_setting):
            if every or (change.what == FAILS and change.until is None):
                yield change
        for setting, points in points_by_setting.items():
            yield from _latency_findings(case, setting, points)


def verdict_changes(case: str, points_by_setting: dict[Setting, list[Point]]) -> Iterator[Finding]:
    """Yield the changes of a case's verdict, the oldest first, and the failure of a case that never did anything else.

    Compared are the runs of one implementation, judged alike, with the case file as it is now: whether latencies were
    measured, and on which device, makes no other verdict.
    """
    series: defaultdict[tuple[str, str], list[tuple[Setting, Point]]] = defaultdict(list)
    for setting, points in points_by_setting.items():
        series[setting.impl, setting.judging] += [(setting, point) for point in points]
    for found in series.values():
        found.sort(key=lambda each: each[1].run.number)
        file = found[-1][1].case_hash
        same = [each for each in found if each[1].case_hash == file]
        stretches = [[*group] for _, group in groupby(same, lambda each: _state(each[1].status))]
        if len(stretches) == 1 and same[0][1].status in FAILING:
            yield Finding(FAILS, case, same[0][0], same[0][1].run, None, same[-1][1].reason)
        for before, stretch in pairwise(stretches):
            (setting, first), (_, last) = stretch[0], stretch[-1]
            until = None if stretch is stretches[-1] else last.run
            state = _state(first.status)
            yield Finding(state, case, setting, first.run, before[-1][1].run, last.reason, until)


def _state(status: str) -> str:
    """What a verdict says of a case, in words."""
    if status in FAILING:
        return FAILS
    return "passes" if status in PASSING else f"is {status}"


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
