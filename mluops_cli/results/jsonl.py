"""OUT/results.jsonl, to which a line is added as each case finishes, and OUT/summary.json, written at the end."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final

from mluops_cli.core.events import CaseFinished, Event, Loaded, RunFinished, RunStarted
from mluops_cli.core.hardware.machine import environment
from mluops_cli.core.record import RESULTS, Record, RecordError, parse_record
from mluops_cli.core.tally import Tally
from mluops_cli.results.origin import sign
from schemas.atomic_files import write_failure, write_text
from schemas.errors import InputError, SourceLocation, UnavailableError
from schemas.version import __version__

SUMMARY: Final = "summary.json"
_ENCODER: Final = json.JSONEncoder(allow_nan=False)  # json.dumps makes a new one for each line


class JsonResults:
    """Listens to a run and writes both files into a folder, which it locks: one run at a time.

    Earlier results stay until the implementation is loaded (a mistyped --impl costs nothing). Then they are replaced,
    or with keep_only reduced to the records of these cases, to which the run adds. shard and selection: I/N of --shard,
    and all selected cases of which it is a part. InputError where another run is writing, UnavailableError where the
    files can't be written.
    """

    def __init__(
        self, out: Path, *, strict: bool = False, shard: str = "", selection: Mapping[str, Any] | None = None
    ) -> None:
        self.out = out
        self.strict = strict
        self.shard = shard
        self.selection = selection
        self.run: dict[str, Any] = {}
        self.devices: set[str] = set()
        self._kept: Collection[str] = ()
        self._path = out / RESULTS
        self._made = not self._path.exists()  # by this run, and the implementation isn't loaded yet
        self._lines = open_locked(self._path)
        self._replaced: IO[bytes] | None = None  # the file before the kept lines were copied: its lock is held

    def keep_only(self, cases: Collection[str], devices: Collection[str] = ()) -> None:
        """Keep the records of these cases, which those devices ran."""
        self._kept = cases
        self.devices.update(devices)

    def __call__(self, event: Event) -> None:
        """Listen to the run."""
        if isinstance(event, RunStarted):
            started = datetime.now().astimezone().isoformat(timespec="seconds")
            options = event.options.as_json()
            self.run = {"impl": event.options.impl, "started": started, "options": options}
        elif isinstance(event, Loaded):
            with _writing(self._path):
                (self.out / SUMMARY).unlink(missing_ok=True)
                self._reduce()
                self._made = False
        elif isinstance(event, CaseFinished):
            self.devices.add(event.record.device)
            with _writing(self._path):
                self._lines.write(record_line(event.record))
                self._lines.flush()
        elif isinstance(event, RunFinished):
            with _writing(self._path):
                os.fsync(self._lines.fileno())
            write_text(self.out / SUMMARY, json.dumps(self._summary(event), indent=2) + "\n", durable=True)
            self.close()

    def close(self) -> None:
        """Close the file and let other runs in, also where the run doesn't finish.

        A file that was made for a run that never started is removed: it would count as a run without cases.
        """
        if self._made:
            self._made = False
            with suppress(OSError):
                self._path.unlink()
        for file in (self._lines, self._replaced):
            if file is not None:
                with suppress(OSError):  # a full disk: what could be written was flushed line by line
                    file.close()

    def _reduce(self) -> None:
        """Reduce the results to those that are kept, whole lines in their order."""
        path = self._path
        if not self._kept:
            self._lines.truncate(0)
            return

        def is_kept(line: bytes) -> bool:
            return line.endswith(b"\n") and parse_record(line).case in self._kept

        if all(map(is_kept, _lines(path))):
            return
        part = path.with_name(f".{path.name}.part")
        new = part.open("wb")
        fcntl.flock(new, fcntl.LOCK_EX)
        new.writelines(line for line in _lines(path) if is_kept(line))
        new.flush()
        os.replace(part, path)
        self._lines, self._replaced = new, self._lines

    def _summary(self, run: RunFinished) -> dict[str, Any]:
        devices = ", ".join(sorted(self.devices - {""}))
        return {
            "mluops": __version__,
            **self.run,
            "environment": environment() | ({"device": devices} if devices else {}),
            "not_run": run.not_run,
            **counted_in_summary(run.tally),
            "exit_code": run.exit_code,
            "interrupted": run.interrupted,
            **({"problem": run.problem} if run.problem else {}),
            "strict": self.strict,
            "shard": self.shard,
            **({"selection": dict(self.selection)} if self.selection is not None else {}),
            "seconds": round(run.seconds, 3),
            "signature": sign(self.run),
        }


def counted_in_summary(tally: Tally) -> dict[str, Any]:
    """Return the keys of a summary that follow from the records."""
    return {
        "cases": tally.total,
        "counts": dict(sorted(tally.counts.items())),
        "validated": tally.validated,
        "unproven": tally.unproven,
        "beyond_bound": tally.beyond,
    }


def record_line(record: Record) -> bytes:
    """Return the line of results.jsonl that holds a record."""
    return _ENCODER.encode(record.as_json()).encode() + b"\n"


def open_locked(path: Path) -> IO[bytes]:
    """Open a file for lines to be added, and lock it."""
    while True:
        try:
            file = path.open("ab")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except BlockingIOError:
            file.close()
            raise InputError(f"another mluops run is writing to {path.parent}") from None
        except OSError as error:
            raise write_failure(path, error) from None
        file.close()  # a run that has ended meanwhile put another file in its place


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Report a failure to write as an error that names the file and says how to go on."""
    try:
        yield
    except OSError as error:
        reason = write_failure(path, error)
        raise UnavailableError(f"{reason}; the results so far are kept, --resume goes on from them") from None


def read_results(out: Path) -> Iterator[Record]:
    """Read the records in a folder, none where there is no file; InputError with the line that is no record.

    A last line that was cut off (a kill, a full disk) is ignored.
    """
    path = out / RESULTS
    for number, line in enumerate(_lines(path), 1):
        if line.endswith(b"\n"):
            try:
                record = parse_record(line)
            except (ValueError, RecursionError) as error:
                found = f", {error}" if isinstance(error, RecordError) else ""
                place = SourceLocation(str(path), number)
                raise InputError(f"expected a result of mluops run{found}", place) from None
            yield record


def _lines(path: Path) -> Iterator[bytes]:
    """Read the lines of a file, the last of which may be cut off; none where there is no file."""
    refuse_special(path)
    try:
        with path.open("rb") as file:
            yield from file
    except FileNotFoundError:
        return


def refuse_special(path: Path) -> None:
    """InputError where a pipe, a device or a folder has the name of a run's file: opening a pipe would wait."""
    if path.exists() and not path.is_file():
        raise InputError("not a file of mluops run: it is no regular file", SourceLocation(str(path)))


def refuse_foreign(out: Path) -> None:
    """Raise InputError where results.jsonl or summary.json is not a file of mluops."""
    refuse_special(out / SUMMARY)
    first_line = next((line for line in _lines(out / RESULTS) if line.endswith(b"\n")), None)
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
