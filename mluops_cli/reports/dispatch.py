"""Reports as files: which ones are wanted, and where. They are written at the end of a run or by `mluops report`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mluops_cli.core.events import Event, RunFinished
from mluops_cli.core.output_files import STDOUT, refuse_inputs, write_text
from mluops_cli.core.record import Record
from mluops_cli.results.finished import FinishedRun, no_collection, read_run, run_files


@dataclass(frozen=True)
class ReportFiles:
    """The reports that are wanted; a path of - is standard output. junit_prefix: see junit_documents.

    It listens after the writer of results, whose file it reads.
    """

    out: Path
    junit: Path | None = None
    html: Path | None = None
    md: Path | None = None
    csv: Path | None = None
    lang: str = "en"
    ci: str | None = None
    base: Path | None = None
    junit_prefix: str | None = None

    def __call__(self, event: Event) -> None:
        """Listen to the run."""
        if isinstance(event, RunFinished):
            self.write(read_run(self.out))

    def refuse_inputs(self, others: Iterable[str | Path | None] = ()) -> None:
        """InputError where a report would be written over the run's own files, these others, or another report."""
        outputs = {f"--{name}": getattr(self, name) for name in ("junit", "html", "md", "csv")}
        refuse_inputs(outputs, [*run_files(self.out), *(run_files(self.base) if self.base else ()), *others])

    def write(self, run: FinishedRun) -> list[Path]:
        """Write the reports and return the paths of the files."""
        written: list[Path] = []
        with no_collection():
            for path, content in self._contents(run):
                write_text(path, content)
                written += [path] if path != STDOUT else []
        if self.ci:
            from mluops_cli.reports.ci import report_to_server

            sys.stdout.write(report_to_server(run, self.ci))
        return written

    def _contents(self, run: FinishedRun) -> Iterator[tuple[Path, str | Iterable[str]]]:
        # Imported where needed: a run without reports loads none of them.
        if self.junit:
            from mluops_cli.reports.junit import junit_documents

            documents = junit_documents(run, prefix=self.junit_prefix)
            for number, (name, document) in enumerate(documents):
                yield self.junit if not number else self._beside(self.junit, name), document
        if self.html:
            from mluops_cli.reports.html.page import html_text

            yield self.html, html_text(run, read_run(self.base, _latency_only) if self.base else None)
        if self.md:
            from mluops_cli.reports.markdown.document import markdown_text

            yield self.md, markdown_text(run, self.lang)
        if self.csv:
            from mluops_cli.reports.csv import csv_lines

            yield self.csv, csv_lines(run)

    def _beside(self, path: Path, name: str) -> Path:
        return path if path == STDOUT else path.with_name(f"{path.stem}-{name}{path.suffix}")


def _latency_only(record: Record) -> Record:
    """A record of the run that latencies are compared with, without its other parts as far as they take memory."""
    record.outputs, record.tensors, record.params, record.perf = {}, {}, {}, None
    record.file = record.reason = record.repro = record.place = record.printed = ""
    record.interface_us = record.latency_interval_us = record.seconds = record.operator_status = None
    record.expected_status = []
    return record
