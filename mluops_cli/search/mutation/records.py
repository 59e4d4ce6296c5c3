"""OUT/mutants.jsonl: one line per mutant as it is judged, which --resume goes on from.

Lines are only added. A line of kind `cases` begins the mutants of an operator: it says by a hash what they were made
from, and each mutant's line carries that hash. Of several such lines of an operator the last one counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import IO, Any, Final, Literal

from mluops_cli.results.jsonl import open_locked
from schemas.atomic_files import write_failure
from schemas.errors import InputError, SourceLocation, UnavailableError

MUTANTS: Final = "mutants.jsonl"
MutantStatus = Literal["killed", "survived", "not_reached", "allowed", "equivalent"]


@dataclass(slots=True)
class MutantRecord:
    """What came of one mutant.

    status: killed; survived; not_reached, a survivor whose line no case runs; allowed, its answers differ only where
    the rules allow it (it refuses with NOT_SUPPORTED, nothing is compared, no design demands an answer, a correct
    kernel's rounding errors may be as large); equivalent, none differs.
    diff: the changed lines. killed_by: the cases that fail for it, one unless all were run. reason: why the first of
    them fails. differing: cases that pass with other bits, or are skipped. run: how many cases were run.
    drawn: on how many drawn calls it was compared with the right source. shown_by: the one that tells them apart, as an
    entry of a spec.
    """

    op: str
    session: str
    mutant: str
    file: str
    line: int
    kind: str
    status: MutantStatus
    diff: list[str] = field(default_factory=list)
    killed_by: list[str] = field(default_factory=list)
    reason: str = ""
    differing: list[str] = field(default_factory=list)
    run: int = 0
    seconds: float = 0.0
    drawn: int = 0
    shown_by: dict[str, Any] | None = None

    @property
    def survives(self) -> bool:
        """Whether the mutant is a fault that the cases miss."""
        return self.status in ("survived", "not_reached")


@dataclass(slots=True)
class CasesRecord:
    """What the mutants of an operator are run on.

    session: the hash of sources, options and case files. matrix: every mutant is run on every case. cases: id ->
    seconds with the right source, judge included. left_out: id -> why the case can't kill. unreached: functions that
    no case runs.
    """

    op: str
    session: str
    impl: str
    matrix: bool
    cases: dict[str, float]
    left_out: dict[str, str] = field(default_factory=dict)
    unreached: list[str] = field(default_factory=list)


@dataclass(slots=True)
class OperatorMutants:
    """The records of one operator."""

    cases: CasesRecord
    mutants: dict[str, MutantRecord] = field(default_factory=dict)


class MutantFile:
    """The file, open for lines to be added and locked; InputError where another mutate writes to it."""

    def __init__(self, folder: Path, *, resume: bool) -> None:
        self.path = folder / MUTANTS
        self.earlier = read_mutants(folder)
        self._file: IO[bytes] = open_locked(self.path)
        if not resume:
            self.earlier = {}
            self._file.truncate(0)
        elif self.path.stat().st_size and not self.path.read_bytes().endswith(b"\n"):
            self._file.write(b"\n")  # ends a line that was cut off

    def kept(self, cases: CasesRecord) -> dict[str, MutantRecord]:
        """The mutants of an earlier session that was made from the same."""
        found = self.earlier.get(cases.op)
        return dict(found.mutants) if found is not None and found.cases.session == cases.session else {}

    def add(self, record: MutantRecord | CasesRecord) -> None:
        """Add one line; UnavailableError where writing fails."""
        line = json.dumps({"record": _KINDS[type(record)], **asdict(record)}).encode()
        try:
            self._file.write(line + b"\n")
            self._file.flush()
        except OSError as error:
            raise UnavailableError(f"{write_failure(self.path, error)}; --resume goes on from what is there") from None

    def close(self) -> None:
        """Close it and let others write."""
        self._file.close()


@contextmanager
def mutant_file(folder: Path, *, resume: bool) -> Iterator[MutantFile]:
    """The file of a folder, closed at the end."""
    file = MutantFile(folder, resume=resume)
    try:
        yield file
    finally:
        file.close()


_KINDS: Final = {MutantRecord: "mutant", CasesRecord: "cases"}


def read_mutants(folder: Path) -> dict[str, OperatorMutants]:
    """Operator -> its records; empty where there is no file. InputError naming the line that is none of ours.

    A line that was cut off (a kill, a full disk) is ignored.
    """
    path = folder / MUTANTS
    found: dict[str, OperatorMutants] = {}
    if not path.exists():
        return found
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                plain = json.loads(line)
            except ValueError:
                if number == 1 and line.endswith(b"\n"):
                    raise _foreign(path, number) from None
                continue
            record = _record(plain)
            if record is None:
                raise _foreign(path, number)
            if isinstance(record, CasesRecord):
                known = found.get(record.op)
                if known is None or known.cases.session != record.session:
                    found[record.op] = OperatorMutants(record)
            elif record.op in found and found[record.op].cases.session == record.session:
                found[record.op].mutants[record.mutant] = record
    return found


def _foreign(path: Path, line: int) -> InputError:
    return InputError("expected a line of mluops mutate", SourceLocation(os.fspath(path), line))


def _record(plain: Any) -> MutantRecord | CasesRecord | None:
    """The record of a parsed line; keys of a newer version are ignored. None where it is none."""
    if not isinstance(plain, Mapping):
        return None
    for kind, name in _KINDS.items():
        if plain.get("record") == name:
            names = {each.name for each in fields(kind)}
            try:
                record: MutantRecord | CasesRecord = kind(**{key: plain[key] for key in plain.keys() & names})
                return record
            except TypeError:
                return None
    return None
