"""Annotations for CI servers, on the spec's line of failing cases, and a summary for the page of the step.

GitHub reads workflow commands from the output and shows ten annotations of a step, so failing cases are grouped by
their spec entry. GitLab reads a code quality file. plain is for all others: file:line: message.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args

from mluops_cli.core.escaping import one_line
from mluops_cli.core.output_files import write_text
from mluops_cli.core.record import Record
from mluops_cli.core.statuses import STATUSES
from mluops_cli.reports.markdown.document import step_summary
from mluops_cli.results.finished import FinishedRun
from schemas.atomic_files import write_failure
from schemas.errors import InputError
from schemas.suggest import counted

Server = Literal["github", "gitlab", "plain"]
SERVERS: Final[tuple[Server, ...]] = get_args(Server)
ANNOTATIONS: Final = 10  # of a step; GitHub ignores more
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


def detect_server(environment: Mapping[str, str] = os.environ) -> Server | None:
    """The CI server that runs this process; None where there is none."""
    if environment.get("GITHUB_ACTIONS") == "true":
        return "github"
    if environment.get("GITLAB_CI"):
        return "gitlab"
    return "plain" if environment.get("CI") not in (None, "", "false") else None


def make_annotations(run: FinishedRun, root: Path, limit: int = ANNOTATIONS) -> list[Annotation]:
    """At most limit annotations, one per spec entry with failing cases; the entry with the most cases is first."""
    groups: dict[tuple[str, int], list[Record]] = {}
    for record in run.failing:
        groups.setdefault(_place(record.place, root), []).append(record)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    shown, rest = ordered, []
    if len(ordered) > limit:
        shown, rest = ordered[: limit - 1], [record for _, records in ordered[limit - 1 :] for record in records]
    made = [_annotation(file, line, records) for (file, line), records in shown]
    if rest:
        entries = counted(len(ordered) - limit + 1, "entry", "entries")
        title = f"{counted(len(rest), 'more failing case')} of {entries}"
        made.append(Annotation("", 0, title, _reasons(rest), tuple(rest)))
    return made


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
    return f"::error {listed}::{_data(annotation.message)}\n"


def code_quality(found: Sequence[Annotation]) -> str:
    """GitLab's code quality report. It leaves out annotations without a file, which GitLab can't show."""
    return json.dumps([_issue(annotation) for annotation in found if annotation.file], indent=1) + "\n"


def _issue(annotation: Annotation) -> dict[str, Any]:
    # Of the names alone: the issue stays the same for the server when only measured values differ.
    names = "\n".join(sorted(record.case for record in annotation.records))
    return {
        "description": f"{annotation.title}: {_joined(annotation)}",
        "check_name": "mluops",
        "fingerprint": hashlib.sha256(names.encode("utf-8", "backslashreplace")).hexdigest(),
        "severity": "critical",
        "location": {"path": annotation.file, "lines": {"begin": annotation.line}},
    }


def _plain_line(annotation: Annotation) -> str:
    where = f"{annotation.file}:{annotation.line}: " if annotation.file else ""
    return f"{where}{annotation.title}: {_joined(annotation)}\n"


def _joined(annotation: Annotation) -> str:
    return "; ".join(one_line(line) for line in annotation.message.split("\n"))


def _annotation(file: str, line: int, records: Sequence[Record]) -> Annotation:
    if len(records) == 1:
        title = f"{records[0].status}: {one_line(records[0].case, 200)}"
    else:
        statuses = sorted({record.status for record in records}, key=STATUSES.index)
        title = f"{len(records)} failing cases ({', '.join(statuses)})"
    return Annotation(file, line, title, _reasons(records), tuple(records))


def _reasons(records: Sequence[Record]) -> str:
    if len(records) == 1:
        lines = [one_line(records[0].reason, 1000)]
    else:
        lines = [f"{r.status} {one_line(r.case, 200)}: {one_line(r.reason, 300)}" for r in records[:_NAMED]]
    if len(records) > _NAMED:
        lines.append(f"and {len(records) - _NAMED} more")
    lines.append(f"repro: {one_line(records[0].repro, 500)}")
    return "\n".join(lines)[:_MESSAGE]


def _place(place: str, root: Path) -> tuple[str, int]:
    """(file below root, line) of a spec's place; the file is empty where there is no such file."""
    match = re.fullmatch(r"([^\x00-\x1f]+?):(\d{1,9})(?::\d+)?", place)
    if match is None or len(match[1]) > 1000:
        return "", 0
    named = Path(match[1])
    for candidate in (named, Path("cases") / named):
        path = Path(os.path.normpath(root / candidate))
        if path.is_relative_to(root) and path.is_file():
            return path.relative_to(root).as_posix(), int(match[2])
    return "", 0


def _data(text: str) -> str:
    lines = (one_line(line) for line in text.split("\n"))
    return "%0A".join(line.replace("%", "%25") for line in lines)


def _property(text: str) -> str:
    return one_line(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")
