"""The console: progress during the run, then a table, each failure with its repro line, and the counts."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mluops_cli.core import standard_streams as streams
from mluops_cli.core.escaping import one_line
from mluops_cli.core.events import CaseFinished, CaseStarted, Event, Heartbeat, RunFinished, RunStarted, WorkerLost
from mluops_cli.core.record import VARIES_BEYOND, Record
from mluops_cli.core.statuses import FAILING, PASSING
from mluops_cli.core.tally import Tally
from mluops_cli.core.units import format_fraction, format_microseconds
from mluops_cli.processes.sanitizer_reports import without_map
from mluops_cli.reports.cautions import TITLES, Caution, cautions, repeats_summary
from mluops_cli.reports.performance import PEAK_NAMES, describe_peaks
from mluops_cli.reports.progress import RunProgress
from mluops_cli.results.failure_groups import FailureGroups
from mluops_cli.results.finished import Judged, worst
from schemas.suggest import counted

ROWS: Final = 60  # more cases are summed up by suite, not listed one by one
REASONS: Final = {"s": "skip", "m": "mistrusted", "w": "waived"}  # letters of -r: statuses that don't fail
_ANY_WIDTH: Final = 100_000  # columns where there is no terminal: ids and lines are never folded
_BY_CRITERIA: Final = ("pass", "empty", "waived", "xpass")  # statuses that criteria decide
_PRINTED: Final = 20  # last lines of what an implementation printed that stand under its failure
_PRINTED_WIDTH: Final = 300  # characters of such a line
_BESIDE: Final = 40  # columns that the table has at least beside the ids; otherwise these stand on lines of their own
_WORDS: Final = 60  # characters of a reason in the table; the whole reason is below it
_DOUBT: Final = "magenta"  # a pass beyond its error bound, outputs that vary between repeats
_COLOURS: Final = {"pass": "green", "empty": "green", "skip": "yellow", "mistrusted": "yellow", "waived": "yellow"}


class ConsoleReport:
    """Listens to a run and prints it. Where it can't write any more it stops printing, and the run goes on.

    reasons: letters of REASONS, the statuses whose reasons are listed.
    """

    def __init__(self, console: Console, reasons: str = "") -> None:
        if not console.is_terminal:
            console.width = _ANY_WIDTH
        self.console = console
        self.rows: list[Record] = []
        self.failed = 0
        self.failures = FailureGroups()
        self.unexpected: list[tuple[str, str]] = []
        self.cautions: list[tuple[str, Caution]] = []
        self.unverified: Counter[str] = Counter()
        self.untried: dict[str, list[str]] = defaultdict(list)  # relation -> per case why it was not run
        self.listed = {REASONS[letter] for letter in reasons}
        self.reasons: dict[tuple[str, str], list[str]] = {}  # status, reason -> the cases
        self.mismeasured: list[tuple[str, str]] = []
        self.suites: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        self.worst: dict[tuple[str, str], Judged] = {}
        self.peaks: dict[str, None] = {}
        self.progress = RunProgress(console, lambda text: _say(console, text))

    def __call__(self, event: Event) -> None:
        """Listen to the run."""
        try:
            self._listen(event)
        except (OSError, SystemExit) as error:  # rich makes a broken pipe the latter
            self._go_quiet(error)

    def close(self) -> None:
        """Take down the progress bar and show the cursor that it hid, however the run ended."""
        try:
            self.progress.stop()
        except (OSError, SystemExit) as error:
            self._go_quiet(error)

    def _go_quiet(self, error: BaseException) -> None:
        self.console.quiet = True
        streams.abandon(self.console.file)
        self.progress.stop()
        if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
            with suppress(OSError):
                sys.stderr.write(f"standard output: {error.strerror}; the run goes on\n")

    def _listen(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._start(event)
        elif isinstance(event, CaseStarted):
            self.progress.case_started(event.case)
        elif isinstance(event, CaseFinished):
            self._add(event.record)
        elif isinstance(event, Heartbeat):
            self.progress.beat(event)
        elif isinstance(event, WorkerLost):
            running = f", it was running {event.case}" if event.case else ""
            back = (
                f", {counted(event.given_back, 'case goes', 'cases go')} to other workers" if event.given_back else ""
            )
            _say(self.console, f"worker {event.worker} is lost: {event.reason}{running}{back}", "yellow")
        elif isinstance(event, RunFinished):
            self._finish(event)

    def _start(self, run: RunStarted) -> None:
        resumed = f", {run.done} of them finished before" if run.done else ""
        _say(self.console, f"running {counted(run.cases, 'case')} on {run.options.impl}, {run.jobs} at a time{resumed}")
        for reason, number in run.again.items():
            cases = counted(number, "case of before runs", "cases of before run")
            _say(self.console, f"{cases} again: {reason}", "yellow")
        self.progress.start(run)

    def _add(self, record: Record) -> None:
        if len(self.rows) <= ROWS:
            self.rows.append(record)
        self.failures.add(record)
        if record.status in FAILING:
            self.failed += 1
        elif record.unexpected:
            self.unexpected.append((record.case, record.reason))
        elif record.perf and "problem" in record.perf:
            self.mismeasured.append((record.case, record.perf["problem"]))
        if record.status in self.listed:
            self.reasons.setdefault((record.status, record.reason), []).append(record.case)
        self.cautions += [(record.case, caution) for caution in cautions(record)]
        self.unverified.update(record.unverified)
        for relation, reason in record.relations_not_run.items():
            self.untried[relation].append(reason)
        self.peaks |= dict.fromkeys(describe_peaks([record]))
        key = record.op, record.suite
        self.suites[key][record.status] += 1
        found = worst(record)
        if found is not None and (key not in self.worst or found.badness > self.worst[key].badness):
            self.worst[key] = found
        self.progress.case_finished(failed=record.status in FAILING)

    def _finish(self, run: RunFinished) -> None:
        self.progress.stop()
        if self.suites:
            self._say_cases() if len(self.rows) <= ROWS else self.console.print(self._sums())
        for peaks in self.peaks:
            _say(self.console, f"efficiencies are fractions of these peaks: {peaks}")
        self._say_failures()
        for (status, why), ids in sorted(self.reasons.items()):
            _say(self.console, f"{status.upper()} {counted(len(ids), 'case')}: {why}", "yellow")
            for case in ids:
                _say(self.console, f"  {case}")
        for case, reason in self.unexpected:
            _say(self.console, f"{case}: {reason}", "yellow")
        for case, caution in sorted(self.cautions, key=lambda each: [*TITLES].index(each[1].word)):
            _say(self.console, f"{caution.word.upper()} {case}: {caution.text}", _DOUBT)
        for case, problem in self.mismeasured:
            _say(self.console, f"{case}: {problem}", "yellow")
        for name, number in sorted(self.unverified.items()):
            _say(self.console, f"{name} is unverified in {counted(number, 'case')}: it was not returned", "yellow")
        for relation, reasons in sorted(self.untried.items()):
            text = f"relation {relation} was not run in {counted(len(reasons), 'case')}, the first: {reasons[0]}"
            _say(self.console, text, "yellow")
        counts = ", ".join(f"{number} {status}" for status, number in sorted(run.tally.counts.items()))
        _say(self.console, f"{counted(run.tally.total, 'case')} in {run.seconds:.1f} s: {counts or 'none finished'}")
        if run.tally.repeats:
            style = _DOUBT if run.tally.repeats[VARIES_BEYOND] else None
            _say(self.console, f"repeated cases: {repeats_summary(run.tally.repeats)}", style)
        if self.progress.workers:
            _say(self.console, f"finished by worker: {self.progress.workers}")
        if run.not_run:
            _say(self.console, f"{counted(run.not_run, 'case was', 'cases were')} not run", "yellow")
        if run.problem:
            _say(self.console, f"{run.problem}; --resume runs the rest", "red")
        if run.tally.unexpected:
            answers = counted(run.tally.unexpected, "unexpected answer")
            _say(self.console, f"{answers} where no design demands a status: --strict fails on them", "yellow")
        if run.tally.beyond:
            cases = counted(run.tally.beyond, "case passes", "cases pass")
            _say(self.console, f"{cases} beyond the error bound of any correct kernel: --strict fails on them", _DOUBT)
        if run.interrupted:
            _say(self.console, "interrupted: the results so far are complete, --resume goes on from here", "yellow")
        else:
            self._say_unproven(run.tally)

    def _say_failures(self) -> None:
        """The failing cases by what they show: the smallest of each kind in full, the others by their ids."""
        for group in self.failures.groups():
            if group.count > 1:
                _say(self.console, f"{group}; the smallest:", "bold red")
            for number, line in enumerate(failure_lines(group.smallest)):
                _say(self.console, line, "" if number else "red")
            for case in group.cases[1:]:
                _say(self.console, f"  alike: {case}")
            if group.more:
                _say(self.console, f"  {group.more} more are alike: --html and --csv list them")
        if self.failures.further:
            _say(self.console, f"{self.failures.further} more fail in other ways: --html and --csv list them", "red")

    def _say_unproven(self, tally: Tally) -> None:
        """What was not validated; of a shard this is no verdict, since other shards may validate it."""
        follows, style = ("in this shard", "yellow") if tally.partial else ("so this run is not a pass", "red")
        if not tally.validated and not self.failed:
            _say(self.console, f"nothing was validated: no case passed, {follows}", style)
            return
        for sentence in tally.unproven_sentences:
            _say(self.console, f"{sentence}: nothing is proven of this operator, {follows}", style)

    def _say_cases(self) -> None:
        """A row per case. An id is never wrapped, so that it can be copied: a long one stands on a line of its own."""
        timed = any(record.perf for record in self.rows)
        rows = [(each.case, _row(each, timed=timed)) for each in sorted(self.rows, key=lambda each: each.case)]
        if max(cell_len(one_line(case)) for case, _ in rows) + _BESIDE > self.console.width:
            for case, cells in rows:
                _say(self.console, case)
                self.console.print(Text("  ").append_text(Text("  ").join(filter(None, cells))), soft_wrap=True)
            return
        table = _table("case", "status", "worst criterion", "time", *(("efficiency",) if timed else ()))
        table.columns[0].no_wrap = True
        for case, cells in rows:
            table.add_row(_text(case), *cells)
        self.console.print(table)

    def _sums(self) -> Table:
        table = _table("operator", "suite", "cases", "status", "worst criterion")
        for (op, suite), counts in sorted(self.suites.items()):
            states = ", ".join(f"{number} {status}" for status, number in sorted(counts.items()))
            colour = "red" if FAILING & counts.keys() else "green"
            detail = str(self.worst.get((op, suite), ""))
            table.add_row(_text(op), _text(suite), str(counts.total()), Text(states, colour), _text(detail))
        return table


def failure_lines(record: Record) -> Iterator[str]:
    """The reason, the last lines that the implementation printed, and the command that runs the case alone."""
    yield f"{record.status.upper()} {record.case}: {record.reason}"
    printed = without_map(record.printed).rstrip().splitlines()
    if len(printed) > _PRINTED:
        yield f"  printed (the last {_PRINTED} of {len(printed)} lines; all are in results.jsonl):"
    elif printed:
        yield "  printed:"
    for line in printed[-_PRINTED:]:
        yield f"    {one_line(line, _PRINTED_WIDTH)}"
    if record.repro:
        yield f"  repro: {record.repro}"


def _row(record: Record, *, timed: bool) -> list[Text]:
    """The cells of a case behind its id."""
    latency = "" if record.latency_us is None else format_microseconds(record.latency_us)
    if record.perf and record.perf["relative_error"] is not None:
        latency += f" ±{record.perf['relative_error']:.0%}"
    cells = [_status(record), _text(_detail(record)), _text(latency)]
    return [*cells, _text(_efficiency(record))] if timed else cells


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _detail(record: Record) -> str:
    """The worst criterion where criteria decided, otherwise the operator's status or the first words of the reason."""
    found = worst(record)
    if record.status in _BY_CRITERIA or (found is not None and not found.criterion.get("passed", True)):
        return str(found or record.operator_status or "")
    return one_line(record.reason, _WORDS)


def _efficiency(record: Record) -> str:
    """The efficiency of the side that bounds the case."""
    perf = record.perf or {}
    value = record.io_efficiency if perf.get("bottleneck") == "io" else record.compute_efficiency
    if "problem" in perf:
        return "error of measurement"
    return "" if value is None else f"{format_fraction(value)} of {PEAK_NAMES[perf['bottleneck']]}"


def _status(record: Record) -> Text:
    doubt = record.status in PASSING and cautions(record)
    return Text(record.status, _DOUBT if doubt else _COLOURS.get(record.status, "red"))


def _say(console: Console, text: str, style: str | None = None) -> None:
    """One line, never wrapped."""
    console.print(_text(text, style or ""), soft_wrap=True)


def _text(text: str, style: str = "") -> Text:
    """Any text as one line, with control characters escaped."""
    return Text(one_line(text), style)
