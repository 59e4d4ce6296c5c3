"""Annotations for CI servers, on the spec's line of failing and doubtful cases, and a summary for the page of the step.

GitHub reads workflow commands from the output and shows ten errors and ten warnings of a step, so cases are grouped by
their spec entry. GitLab reads a code quality file. plain is for all others: file:line: message.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

from mluops_cli.core.escaping import cut, one_line
from mluops_cli.core.output_files import write_text
from mluops_cli.core.record import Record
from mluops_cli.reports.cautions import doubtful
from mluops_cli.reports.markdown.document import step_summary
from mluops_cli.reports.spec_files import SpecFiles
from mluops_cli.results.finished import FinishedRun
from schemas.atomic_files import write_failure
from schemas.errors import InputError
from schemas.suggest import counted

Server = Literal["github", "gitlab", "plain"]
SERVERS: Final[tuple[Server, ...]] = get_args(Server)
Level = Literal["error", "warning"]  # warning: a case that passes, but with doubts
ANNOTATIONS: Final = 10  # of a step and level; GitHub ignores more
_SEVERITIES: Final[dict[Level, str]] = {"error": "critical", "warning": "minor"}  # of GitLab
SUMMARY_LIMIT: Final = (
    900_000  # bytes; GitHub refuses a summary of more than 1 MiB, which several commands of a step share
)
_MESSAGE: Final = 3000  # characters of an annotation's message
_NAMED: Final = 5  # cases whose reason an annotation gives
_CODE_QUALITY: Final = "gl-code-quality-report.json"


@dataclass(frozen=True, slots=True)
class Annotation:
    """A message for a line of a file; file is empty where the spec of the cases is unknown."""

    file: str
    line: int
    title: str
    message: str
    records: tuple[Record, ...]
    level: Level = "error"


class _Finding(NamedTuple):
    """A case that an annotation names, with what is wrong and why."""

    record: Record
    label: str
    reason: str


def detect_server(environment: Mapping[str, str] = os.environ) -> Server | None:
    """The CI server that runs this process; None where there is none."""
    if environment.get("GITHUB_ACTIONS") == "true":
        return "github"
    if environment.get("GITLAB_CI"):
        return "gitlab"
    return "plain" if environment.get("CI") not in (None, "", "false") else None


def make_annotations(run: FinishedRun, root: Path, limit: int = ANNOTATIONS) -> list[Annotation]:
    """At most limit annotations of each level, one per spec entry; errors first, then the entry with the most cases."""
    failing = (_Finding(record, record.status, record.reason) for record in run.failing)
    specs = SpecFiles(root)
    doubts = (
        _Finding(record, ", ".join(each.title for each in found), "; ".join(each.text for each in found))
        for record, found in doubtful(run)
    )
    return [
        *_of_level("error", "failing", failing, specs, limit),
        *_of_level("warning", "doubtful", doubts, specs, limit),
    ]


def _of_level(
    level: Level, word: str, findings: Iterable[_Finding], specs: SpecFiles, limit: int
) -> Iterator[Annotation]:
    """The annotations of a level; word says what its cases are."""
    groups: dict[tuple[str, int], list[_Finding]] = {}
    for each in findings:
        groups.setdefault(specs.find(each.record.place, each.record.op), []).append(each)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    shown, rest = ordered, []
    if len(ordered) > limit:
        shown, rest = ordered[: limit - 1], [each for _, found in ordered[limit - 1 :] for each in found]
    for (file, line), found in shown:
        yield _annotation(file, line, _title(found, word), found, level)
    if rest:
        entries = counted(len(ordered) - limit + 1, "entry", "entries")
        yield _annotation("", 0, f"{counted(len(rest), f'more {word} case')} of {entries}", rest, level)


def report_to_server(run: FinishedRun, server: str, environment: Mapping[str, str] = os.environ) -> str:
    """Write the files that the server reads and return the text for standard output; InputError for another server."""
    if server not in SERVERS:
        raise InputError(f"unknown CI server {server!r}, expected one of {', '.join(SERVERS)}")
    root = Path(environment.get("GITHUB_WORKSPACE") or environment.get("CI_PROJECT_DIR") or ".").resolve()
    found = make_annotations(run, root, ANNOTATIONS if server == "github" else 1000)
    if server == "github":
        if target := environment.get("GITHUB_STEP_SUMMARY"):
            _append(Path(target), step_summary(run, SUMMARY_LIMIT) + "\n")
        return "".join(map(github_command, found))
    if server == "gitlab":
        write_text(run.out / _CODE_QUALITY, code_quality(found))
    return "".join(map(_plain_line, found))


def _append(path: Path, text: str) -> None:
    """Add to a file that other commands of the step add to as well; UnavailableError where that fails."""
    try:
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise write_failure(path, error) from None


def github_command(annotation: Annotation) -> str:
    """A workflow command, in one line whatever its texts contain."""
    properties = {"title": annotation.title}
    if annotation.file:
        properties = {"file": annotation.file, "line": str(annotation.line), **properties}
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{annotation.level} {listed}::{_data(annotation.message)}\n"


def code_quality(found: Sequence[Annotation]) -> str:
    """GitLab's code quality report. It leaves out annotations without a file, which GitLab can't show."""
    return json.dumps([_issue(annotation) for annotation in found if annotation.file], indent=1) + "\n"


def _issue(annotation: Annotation) -> dict[str, Any]:
    # Of the names alone: the issue stays the same for the server when only measured values differ.
    names = "\n".join(sorted(record.case for record in annotation.records))
    names += "" if annotation.level == "error" else f"\n{annotation.level}"
    return {
        "description": f"{annotation.title}: {_joined(annotation)}",
        "check_name": "mluops",
        "fingerprint": hashlib.sha256(names.encode("utf-8", "backslashreplace")).hexdigest(),
        "severity": _SEVERITIES[annotation.level],
        "location": {"path": annotation.file, "lines": {"begin": annotation.line}},
    }


def _plain_line(annotation: Annotation) -> str:
    where = f"{annotation.file}:{annotation.line}: " if annotation.file else ""
    return f"{where}{annotation.title}: {_joined(annotation)}\n"


def _joined(annotation: Annotation) -> str:
    return "; ".join(one_line(line) for line in annotation.message.split("\n"))


def _annotation(file: str, line: int, title: str, found: Sequence[_Finding], level: Level) -> Annotation:
    return Annotation(file, line, title, _reasons(found), tuple(each.record for each in found), level)


def _title(found: Sequence[_Finding], word: str) -> str:
    if len(found) == 1:
        return f"{found[0].label}: {one_line(found[0].record.case, 200)}"
    labels = dict.fromkeys(each.label for each in found)  # failing ones come with the worst status first
    ops = {each.record.op for each in found}
    of = f" of {one_line(min(ops), 200)}" if len(ops) == 1 else ""
    return f"{len(found)} {word} cases{of} ({', '.join(labels)})"


def _reasons(found: Sequence[_Finding]) -> str:
    if len(found) == 1:
        lines = [one_line(found[0].reason, 1000)]
    else:
        lines = [f"{f.label} {one_line(f.record.case, 200)}: {one_line(f.reason, 300)}" for f in found[:_NAMED]]
    if len(found) > _NAMED:
        lines.append(f"and {len(found) - _NAMED} more")
    lines.append(f"repro: {one_line(found[0].record.repro, 500)}")
    return cut("\n".join(lines), _MESSAGE)


def _data(text: str) -> str:
    lines = (one_line(line) for line in text.split("\n"))
    return "%0A".join(line.replace("%", "%25") for line in lines)


def _property(text: str) -> str:
    return one_line(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
