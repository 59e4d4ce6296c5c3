"""The Markdown reports: the test report of operator teams, and a summary that fits on a CI server's page."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mluops_cli.core.escaping import one_line
from mluops_cli.core.record import IDENTICAL, VARIES_BEYOND, VARIES_UNBOUNDED, VARIES_WITHIN, Record
from mluops_cli.core.units import format_fraction
from mluops_cli.reports.cautions import doubtful
from mluops_cli.reports.markdown.test_report import dtypes, operator_reports, shapes
from mluops_cli.reports.markdown.translations import translator
from mluops_cli.reports.performance import describe_peaks, interval_text, remark
from mluops_cli.results.finished import FinishedRun

TEMPLATES: Final = Path(__file__).with_name("templates")
ROWS: Final = 2000  # of a table; the CSV file has all of them
_CELL: Final = 500  # characters of a text that isn't ours
_SPECIAL: Final = re.compile(r"([\\`*\[\]<>|#~&]|(?<![^\W_])_|_(?![^\W_]))")
# What servers act on after they have read the Markdown, so that no escape prevents it: mentions and e-mail addresses,
# formulas, bare URLs, emoji, references to issues and the like.
_ACTIVE: Final = re.compile(
    r"[@$]|://|\bwww\.|\b(?:mailto|xmpp):|:[\w+-]+:|[#!&%~^]\w|\bGH-\d", re.ASCII | re.IGNORECASE
)


def markdown_text(run: FinishedRun, lang: str = "en") -> str:
    """The test report, English or zh."""
    return _environment().get_template("report.md.j2").render(
        t=translator(lang), run=run, operators=operator_reports(run), rows=ROWS, doubts=list(doubtful(run))
    )  # fmt: skip


def step_summary(run: FinishedRun, limit: int, lang: str = "en") -> str:
    """The verdict, the matrix and as many failing and doubtful cases as fit into limit bytes of UTF-8."""
    template = _environment().get_template("summary.md.j2")
    t = translator(lang)
    rows: list[tuple[str, str, str]] = [(record.status, record.case, record.reason) for record in run.failing]
    rows += [(t(caution.title), record.case, caution.text) for record, found in doubtful(run) for caution in found]
    shown = len(rows)
    while True:
        text = template.render(t=t, run=run, rows=rows[:shown], left=len(rows) - shown)
        size = len(text.encode())
        if size <= limit or not shown:
            return text if size <= limit else text.encode()[:limit].decode(errors="ignore")
        shown = min(shown - 1, int(shown * limit / size * 0.95))


@cache
def _environment() -> Environment:
    # No autoescape, which is for HTML: the filters `md` and `code` escape Markdown.
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters |= {
        "md": plain,
        "code": code,
        "number": number,
        "percent": percent,
        "counts": counts,
        "peaks": describe_peaks,
    }
    environment.globals |= {"paragraph": paragraph, "timed_row": timed_row}
    return environment


def paragraph(run: FinishedRun, t: Callable[..., str]) -> str:
    """The verdict and the counts behind it, in one paragraph."""
    found = run.tally.counts
    parts = [f"**{t({'pass': 'Passed.', 'fail': 'Failed.'}.get(run.verdict, 'Incomplete.'))}**"]
    parts.append(
        t("Passed on {impl}: {good} of {total}.", good=found["pass"], total=run.tally.total, impl=code(run.impl))
    )
    if not run.tally.validated:
        parts.append(t("Nothing was validated."))
    if run.tally.unproven:
        parts.append(t("Operators without a judged valid case: {ops}.", ops=", ".join(map(code, run.tally.unproven))))
    if run.tally.partial:
        parts.append(t("Only shard {part}, without the cases of the other shards.", part=run.summary["shard"]))
    if not run.complete:
        parts.append(t("The run did not finish; cases not run: {n}.", n=run.not_run))
    for status, text in (("waived", "{n} waived."), ("mistrusted", "{n} mistrusted."), ("skip", "{n} skipped.")):
        if found[status]:
            parts.append(t(text, n=found[status]))
    if run.tally.beyond:
        parts.append(t("Passed beyond the error bound: {n}.", n=run.tally.beyond))
    if run.tally.repeats:
        parts.append(
            t(
                "Repeated cases: {same} identical, {within} varying within the error bound, {beyond} beyond it.",
                same=run.tally.repeats[IDENTICAL],
                within=run.tally.repeats[VARIES_WITHIN],
                beyond=run.tally.repeats[VARIES_BEYOND],
            )
        )
    if unbounded := run.tally.repeats[VARIES_UNBOUNDED]:
        parts.append(t("Varying between repeats without an error bound: {n}.", n=unbounded))
    unverified = sorted({name for record in run.records for name in record.unverified})
    if unverified:
        parts.append(t("Not returned, so unverified: {names}.", names=", ".join(map(code, unverified))))
    if run.tally.unexpected:
        parts.append(t("Unexpected answers beyond the design: {n}.", n=run.tally.unexpected))
    parts.append(t("{n} failed:", n=len(run.failing)) if run.failing else t("Nothing failed."))
    return " ".join(parts)


def timed_row(record: Record) -> str:
    """The row of a case in the performance table. In the template it would take several times as long."""
    cells = (
        plain(record.op), number(record.latency_us), number(record.interface_us), percent(record.io_efficiency),
        percent(record.compute_efficiency), number(record.workspace_bytes), plain(dtypes(record)),
        code(shapes(record)), interval_text(record) or "-", plain(remark(record)),
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


@lru_cache(typed=True)  # most cells of a column are one of few texts
def plain(text: Any) -> str:
    """Any text as one line that holds no Markdown and no HTML; a code span where only that keeps it inactive."""
    line = one_line(str(text), _CELL)
    if _ACTIVE.search(line):
        return code(line)
    return _SPECIAL.sub(r"\\\1", line).replace("\\<", "&lt;").replace("\\>", "&gt;")


def code(text: Any) -> str:
    """Any text as a code span that it can't end, in a table or outside of one."""
    line = one_line(str(text), _CELL)
    if not line.strip():
        return ""
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}".replace("|", "\\|")


def number(value: float | int | None) -> str:
    """A number, or a dash."""
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else plain(value)


def percent(value: float | None) -> str:
    """A fraction in percent, or a dash."""
    return "-" if value is None else format_fraction(value)


def counts(found: Any) -> str:
    """Counts by status in one line."""
    return ", ".join(f"{cases} {status}" for status, cases in sorted(found.items()) if cases)
