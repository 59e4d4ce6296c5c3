"""OUT/results.jsonl, a line per case as each finishes, and OUT/summary.json at the end."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final

from mluops_cli.core.environment import environment
from mluops_cli.core.events import CaseFinished, Event, Loaded, RunFinished, RunStarted
from mluops_cli.core.record import RESULTS, Record, read_record
from schemas.errors import InputError, SourceLocation, UnavailableError
from schemas.version import __version__

SUMMARY: Final = "summary.json"


class JsonResults:
    """Writes both files into a folder; earlier ones of ours are replaced, or added to with resume.

    They stay until the implementation is loaded: a mistyped --impl costs no results.
    """

    def __init__(self, out: Path, *, resume: bool = False, strict: bool = False) -> None:
        self.out = out
        self.resume = resume
        self.strict = strict
        self.run: dict[str, Any] = {}
        try:
            self._lines: IO[str] = (out / RESULTS).open("a", encoding="utf-8", newline="\n")
            fcntl.flock(self._lines, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lines.close()
            raise InputError(f"another mluops run is writing to {out}") from None
        except OSError as error:
            raise UnavailableError(f"can't write results to {out}: {error.strerror}") from None

    def __call__(self, event: Event) -> None:
        """Listen to the run."""
        if isinstance(event, RunStarted):
            started = datetime.now().astimezone().isoformat(timespec="seconds")
            options = event.options.as_json()
            self.run = {
                "impl": event.options.impl, "started": started, "environment": environment(), "options": options,
            }  # fmt: skip
        elif isinstance(event, Loaded):
            (self.out / SUMMARY).unlink(missing_ok=True)
            if not self.resume:
                self._lines.truncate(0)
        elif isinstance(event, CaseFinished):
            self._lines.write(json.dumps(event.record.as_json(), allow_nan=False) + "\n")
            self._lines.flush()
        elif isinstance(event, RunFinished):
            self.close()
            _write_whole(self.out / SUMMARY, self._summary(event))

    def close(self) -> None:
        """Let go of the file, also where a run ends before its end."""
        self._lines.close()

    def _summary(self, run: RunFinished) -> dict[str, Any]:
        return {
            "mluops": __version__,
            **self.run,
            "cases": run.tally.total,
            "not_run": run.not_run,
            "counts": dict(sorted(run.tally.counts.items())),
            "exit_code": run.exit_code,
            "validated": run.tally.validated,
            "interrupted": run.interrupted,
            "strict": self.strict,
            "seconds": round(run.seconds, 3),
        }


def read_results(out: Path) -> Iterator[Record]:
    """The records in OUT, none where there are none; InputError for a line that is no record.

    A last line that was cut off (a kill, a full disk) is passed over.
    """
    path = out / RESULTS
    for number, line in enumerate(_whole_lines(path), 1):
        try:
            yield read_record(_parse(line))
        except (ValueError, TypeError, AttributeError):
            raise InputError("expected a result of mluops run", SourceLocation(str(path), number)) from None


def _parse(line: bytes) -> Any:
    """One line of JSON: pydantic's reader takes half the time and shares keys, json's takes all that JSON allows."""
    from pydantic_core import from_json  # here, for who only writes

    try:
        return from_json(line, allow_inf_nan=False)
    except ValueError:
        return json.loads(line)


def repair_results(out: Path) -> None:
    """Take a cut-off last line away, so that lines can be added."""
    path = out / RESULTS
    whole = sum(len(line) for line in _whole_lines(path))
    if path.exists() and path.stat().st_size > whole:
        os.truncate(path, whole)


def refuse_foreign(out: Path) -> None:
    """InputError where a file of a name we write is not one of ours."""
    first_line = next(_whole_lines(out / RESULTS), None)
    summary = (out / SUMMARY).read_bytes() if (out / SUMMARY).exists() else None
    for name, text, key in ((RESULTS, first_line, "case"), (SUMMARY, summary, "exit_code")):
        if text is not None and not _has_key(text, key):
            raise InputError(f"{out / name} is not a result of mluops run and is left alone; choose another --out")


def _has_key(text: bytes, key: str) -> bool:
    try:
        found = json.loads(text)
    except ValueError:
        return False
    return isinstance(found, dict) and key in found


def _whole_lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from (line for line in file if line.endswith(b"\n"))
    except FileNotFoundError:
        return


def _write_whole(path: Path, content: dict[str, Any]) -> None:
    beside = path.with_name(f".{path.name}.tmp")
    beside.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    os.replace(beside, path)
