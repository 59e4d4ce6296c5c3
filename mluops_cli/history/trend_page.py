"""The page of a history: a strip of verdicts for each suite, a small chart of latencies for each case."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mluops_cli.core.statuses import STATUSES
from mluops_cli.core.units import format_microseconds
from mluops_cli.history.store import History, Point, Run, Setting
from mluops_cli.history.trends import Finding, timed_points

WIDTH: Final = 240  # of a chart, in its own units
HEIGHT: Final = 64
_MARGIN: Final = 4


@dataclass(frozen=True, slots=True)
class Strip:
    """The verdicts of a suite, run by run: (worst status or empty, words)."""

    suite: str
    setting: str
    cells: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Chart:
    """The latencies of a case: points of the line and of the band of intervals, x and words of the runs with a change.

    anchor is the case's id, with a number where several settings ran it.
    """

    anchor: str
    case: str
    setting: str
    line: str
    band: str
    marks: list[tuple[float, str]]
    least: str
    most: str


def trend_page(history: History, matches: Callable[[str], bool], found: Sequence[Finding]) -> str:
    """Return the page, which needs no network and runs no script."""
    runs = history.runs
    places = {run.number: _x(index, len(runs)) for index, run in enumerate(runs)}
    counts: defaultdict[tuple[str, str], defaultdict[int, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    charts: list[Chart] = []
    shown: Counter[str] = Counter()
    for case in filter(matches, history.cases):
        for setting, points in history.points(case).items():
            for point in points:
                counts[case.rpartition("/")[0], str(setting)][point.run.number][point.status] += 1
            if len(measured := timed_points(points)) > 1:
                marks = [each for each in found if (each.case, each.setting) == (case, setting)]
                shown[case] += 1
                anchor = case if shown[case] == 1 else f"{case}~{shown[case]}"
                charts.append(_chart(anchor, case, setting, measured, places, marks))
    charts.sort(key=lambda chart: not chart.marks)  # those with changes first
    strips = [_strip(suite, setting, by_run, runs) for (suite, setting), by_run in sorted(counts.items())]
    template = _environment().get_template("trend.html.j2")
    return template.render(runs=runs, found=found, strips=strips, charts=charts, width=WIDTH, height=HEIGHT)


def _strip(suite: str, setting: str, by_run: defaultdict[int, Counter[str]], runs: Sequence[Run]) -> Strip:
    cells = []
    for run in runs:
        states = sorted(by_run[run.number].items(), key=lambda item: STATUSES.index(item[0]))
        words = ", ".join(f"{number} {status}" for status, number in states) or "not run"
        cells.append((states[0][0] if states else "", f"{run}: {words}"))
    return Strip(suite, setting, cells)


def _chart(
    anchor: str,
    case: str,
    setting: Setting,
    points: Sequence[Point],
    places: dict[int, float],
    found: Sequence[Finding],
) -> Chart:
    lows = [point.low or point.latency or 0.0 for point in points]
    highs = [point.high or point.latency or 0.0 for point in points]
    least, most = min(lows), max(highs)
    scale = (HEIGHT - 2 * _MARGIN) / ((most - least) or 1.0)

    def path(values: Sequence[float], of: Sequence[Point]) -> list[str]:
        placed = zip(values, of, strict=True)
        return [f"{places[point.run.number]:g},{HEIGHT - _MARGIN - (v - least) * scale:.1f}" for v, point in placed]

    band = [*path(lows, points), *reversed(path(highs, points))]
    marks = [(places[each.since.number], f"{each.what} since {each.since}") for each in found]
    line = path([point.latency or 0.0 for point in points], points)
    texts = format_microseconds(least), format_microseconds(most)
    return Chart(anchor, case, str(setting), " ".join(line), " ".join(band), marks, *texts)


def _x(index: int, count: int) -> float:
    return round(_MARGIN + (WIDTH - 2 * _MARGIN) * (index / (count - 1) if count > 1 else 0.5), 1)


@cache
def _environment() -> Environment:
    loader = FileSystemLoader(Path(__file__).with_name("templates"))
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
