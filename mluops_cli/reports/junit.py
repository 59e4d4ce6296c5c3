"""JUnit XML as Jenkins and GitLab read it: one testcase per case, named by the case id.

Names of suites and classes begin with a prefix, the implementation where none is given: servers tell the tests of two
runs in one pipeline by them.

failure: judged and wrong. error: could not be judged (crash, timeout, error). skipped: skip, waived and mistrusted,
each with its reason. system-out: where outputs are beyond their error bound, how they vary between repeats, and what
an implementation printed before it failed.

A file has at most LIMIT bytes, since CI servers refuse larger ones. A larger report is split by operator, and one
operator into several files where necessary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, count
from typing import Any, Final
from xml.sax.saxutils import escape

from junitparser import Element, Error, Failure, Skipped, SystemOut, TestSuite

from mluops_cli.core.escaping import clipped, one_line
from mluops_cli.core.record import Record
from mluops_cli.reports.cautions import beyond_text, programs_text, repeats_text
from mluops_cli.results.finished import FinishedRun, judged

LIMIT: Final = 29_900_000  # bytes of the suites in a file; CI servers refuse files above 30 MB
_PREFIX: Final = 100  # characters of the prefix
_MESSAGE: Final = 2000  # characters of a message, which is one line
_PRINTED: Final = 20_000  # characters of what an implementation printed
_RESULTS: Final[dict[str, type[Any]]] = {
    "fail": Failure, "xpass": Failure, "error": Error, "crash": Error, "timeout": Error,
    "skip": Skipped, "waived": Skipped, "mistrusted": Skipped,
}  # fmt: skip
_DECLARATION: Final = b"<?xml version='1.0' encoding='utf-8'?>\n"


def junit_documents(run: FinishedRun, limit: int = LIMIT, prefix: str | None = None) -> list[tuple[str, str]]:
    """(name, document) of each file. The only file of a small report has no name, others have distinct ones.

    prefix begins the names of suites and classes; empty for none, None for the implementation.
    """
    prefix = _prefix(run.impl if prefix is None else prefix)
    suites = [each for op, records in run.by_operator.items() for each in _suites(run, prefix, op, records, limit)]
    if sum(len(body) for _, body in suites) <= limit:
        return [("", _document([body for _, body in suites]))]
    names = _file_names([name for name, _ in suites])
    return [(name, _document([body])) for name, (_, body) in zip(names, suites, strict=True)]


def _document(bodies: list[bytes]) -> str:
    # The counts (tests, failures, ...) are attributes of each suite. Jenkins' schema doesn't require them here.
    return b"".join((_DECLARATION, b"<testsuites>\n", *bodies, b"</testsuites>\n")).decode()


def _suites(
    run: FinishedRun, prefix: str, op: str, records: Sequence[Record], limit: int
) -> Iterator[tuple[str, bytes]]:
    """(name, XML) of the operator's testsuite, or of several where one is too large for a file."""
    body = _suite(run, prefix, op, records)
    if len(body) + 100 <= limit or len(records) == 1:
        yield op, body
        return
    parts = -(-len(body) * 5 // (limit * 4))  # a fifth below the limit, because cases differ in size
    size = max(1, min(len(records) - 1, -(-len(records) // parts)))
    for number, start in enumerate(range(0, len(records), size), 1):
        yield from _suites(run, prefix, f"{op}.{number}", records[start : start + size], limit)


def _file_names(names: Sequence[str]) -> list[str]:
    """A distinct file name for each name, on file systems that ignore case too."""
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        plain = "".join(char if char.isalnum() or char in "._-" else "_" for char in name)[:100]
        numbered = (f"{plain}-{number}" for number in count(2))
        chosen = next(each for each in chain([plain], numbered) if each.casefold() not in taken)
        taken.add(chosen.casefold())
        found.append(chosen)
    return found


def _suite(run: FinishedRun, prefix: str, op: str, records: Sequence[Record]) -> bytes:
    suite = TestSuite(one_line(f"{prefix}{op}"))
    for name, value in (("implementation", run.impl), ("mluops", run.summary.get("mluops", ""))):
        suite.add_property(name, one_line(str(value)))
    if run.summary.get("started"):
        suite.timestamp = str(run.summary["started"])
    if hostname := run.summary.get("environment", {}).get("host"):
        suite.hostname = one_line(str(hostname))
    kinds = [_RESULTS.get(record.status) for record in records]
    suite.tests, suite.failures = len(records), kinds.count(Failure)
    suite.errors, suite.skipped = kinds.count(Error), kinds.count(Skipped)
    suite.time = round(sum(record.seconds or 0.0 for record in records), 3)
    head = _xml(suite).removesuffix("</testsuite>")
    repeats = run.repeats
    cases = (_case(record, prefix, repeated=record.case in repeats) for record in records)
    return "".join((head, *cases, "</testsuite>\n")).encode()


def _case(record: Record, prefix: str, *, repeated: bool) -> str:
    """A testcase as text: most are empty, and junitparser's elements take longer than everything else."""
    name, of = _attribute(record.case), _class_name(prefix, record.op, record.suite)
    head = f'<testcase name="{name}" classname="{of}" time="{round(float(record.seconds or 0), 3)}"'
    if record.status not in _RESULTS and not (record.beyond_bound or record.programs or repeated):
        return f"{head} />"
    inside = "".join(map(_xml, _results(record)))
    return f"{head}>{inside}</testcase>" if inside else f"{head} />"


def _results(record: Record) -> Iterator[Element]:
    kind = _RESULTS.get(record.status)
    if kind is not None:
        result = kind(_message(record), record.status)
        if kind is not Skipped:
            result.text = clipped(_details(record), _PRINTED)
        yield result
    printed = record.printed if kind not in (None, Skipped) else ""
    if text := "\n".join(filter(None, (*_findings(record), printed))):
        yield SystemOut(clipped(text, _PRINTED))


def _findings(record: Record) -> Iterator[str]:
    """What is known of the outputs besides the status, which JUnit has no element for."""
    if beyond := beyond_text(record):
        yield f"beyond the error bound: {beyond}"
    if repeats := repeats_text(record):
        yield f"outputs of repeated calls: {repeats}"
    if programs := programs_text(record):
        yield programs


@cache
def _class_name(prefix: str, op: str, suite: str) -> str:
    return _attribute(f"{prefix}{op}.{suite}")


def _prefix(text: str) -> str:
    """The prefix of names with its dot, empty for none. Servers split names at dots, and some at slashes."""
    return f"{one_line(text, _PREFIX).replace('.', '_').replace('/', '_')}." if text else ""


def _attribute(text: str) -> str:
    return escape(one_line(text), {'"': "&quot;"})


def _xml(element: Element) -> str:
    text: bytes = element.tostring()  # type: ignore[no-untyped-call]
    return text.removeprefix(_DECLARATION).decode()  # only the document has one


def _message(record: Record) -> str:
    """Status and reason in one line: some servers show no more."""
    return one_line(f"{record.status}: {record.reason}", _MESSAGE)


def _details(record: Record) -> str:
    lines = [record.reason, *(f"{each} (threshold from {_source(each)})" for each in judged(record))]
    lines += [f"{name}: {text}" for name, text in (("case file", record.file), ("spec", record.place)) if text]
    return "\n".join([*lines, f"repro: {record.repro}"])


def _source(each: Any) -> str:
    return str(each.criterion.get("source", "unknown"))
