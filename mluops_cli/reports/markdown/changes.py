"""The comparison of two runs, as text for the terminal and as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from mluops_cli.core.escaping import one_line
from mluops_cli.core.units import format_microseconds
from mluops_cli.reports.markdown.document import code, plain
from mluops_cli.results.compare import Change, Comparison, Speed, Timing
from schemas.suggest import counted

_ROWS: Final = 1000  # of a section; the JSON file has all of them
_ALIKE: Final = 3  # more unclear cases with one reason share a row
_SPEEDS: Final[dict[Speed, str]] = {"SLOW": "slower", "FAST": "faster", "AMBG": "unclear", "SAME": "equally fast"}
_ORDER: Final = (*_SPEEDS,)
Section = tuple[str, list[tuple[str, ...]]]


def _sections(found: Comparison) -> Iterator[Section]:
    """Titles with their rows; the first cell is a case id."""
    for title, changes in (
        ("newly failing", found.newly_failing),
        ("fixed", found.fixed),
        ("changed", found.changed),
        ("appeared", found.appeared),
        ("gone", found.gone),
        ("changed case files", found.case_changed),
        ("newly beyond the error bound", found.newly_beyond),
        ("within the error bound again", found.within_again),
        ("changed repeats", found.repeats),
    ):
        yield title, [(c.case, f"{c.before or 'absent'} -> {c.after or 'absent'}", _reason(c)) for c in changes]
    grown = sorted(found.grown, key=lambda each: -(each.factor or float("inf")))
    yield (
        "errors that grew within their threshold",
        [
            (g.case, f"{g.output} {g.criterion}", f"{g.before:.4g} -> {g.after:.4g} (threshold {g.threshold:g}), "
             + (f"{g.factor:.3g} times" if g.factor else "from nothing"))
            for g in grown
        ],
    )  # fmt: skip
    yield "speed", list(_speeds(found))


def _reason(change: Change) -> str:
    """The reason for the new status, behind a note where the case changed rather than the implementation alone."""
    return f"[case file changed] {change.reason}".rstrip() if change.case_changed else change.reason


def _speeds(found: Comparison) -> Iterator[tuple[str, ...]]:
    """A row per case that got slower or faster, or may have; unclear cases of one reason share a row if they are many.

    The reason why two latencies can't be compared is often that of the whole run, such as a missing --perf.
    """
    reasons = Counter(timing.reason for timing in found.timings if timing.verdict == "AMBG")
    for timing in sorted(found.timings, key=lambda each: (_ORDER.index(each.verdict), each.case)):
        if timing.verdict != "SAME" and reasons[timing.reason] <= _ALIKE:
            yield timing.case, _SPEEDS[timing.verdict], f"{_latencies(timing)}: {timing.reason}"
    for reason, number in reasons.items():
        if number > _ALIKE:
            yield counted(number, "case"), _SPEEDS["AMBG"], reason


def _latencies(timing: Timing) -> str:
    after = "not measured" if timing.after is None else format_microseconds(timing.after)
    return f"{format_microseconds(timing.before)} -> {after}"


def _counts(found: Comparison) -> str:
    parts = [f"{len(rows)} {title}" for title, rows in _sections(found) if title != "speed"]
    parts += [f"{len(found.timed(verdict))} {words}" for verdict, words in _SPEEDS.items() if found.timed(verdict)]
    return f"{counted(found.cases, 'case')} compared: {', '.join(parts)}"


def changes_text(found: Comparison) -> str:
    """The sections with rows, in columns, and the counts."""
    lines = []
    for title, rows in _sections(found):
        if rows:
            lines.append(f"{title} ({len(rows)})")
            lines += _columns(rows[:_ROWS])
            lines += [f"  ... and {len(rows) - _ROWS} more"] if len(rows) > _ROWS else []
    return "\n".join([*lines, _counts(found), ""])


def _columns(rows: Sequence[tuple[str, ...]]) -> list[str]:
    shown = [[one_line(cell, 300) for cell in row] for row in rows]
    widths = [min(60, max(map(len, column))) for column in list(zip(*shown, strict=True))[:-1]]
    return [
        "  " + "  ".join([*(f"{cell:{width}}" for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in shown
    ]


def changes_markdown(found: Comparison) -> str:
    """The counts, and the sections with rows as tables."""
    lines = ["# Comparison", "", _counts(found), ""]
    for title, rows in _sections(found):
        if rows:
            lines += [f"## {title.capitalize()} ({len(rows)})", "", "| case | what | detail |", "| --- | --- | --- |"]
            lines += [f"| {code(case)} | {plain(what)} | {plain(detail)} |" for case, what, detail in rows[:_ROWS]]
            lines += ["", f"{len(rows) - _ROWS} more."] if len(rows) > _ROWS else []
            lines.append("")
    return "\n".join(lines)
