"""OUT/failures: the files of failing cases, kept so that they can be run again after the cases are gone."""

from __future__ import annotations

import mmap
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Final

import xxhash

from mluops_cli.core.discovery import FAILURES
from mluops_cli.core.events import CaseFinished, Event, Loaded, RunFinished, RunStarted
from mluops_cli.core.record import Record
from mluops_cli.core.statuses import FAILING
from mluops_cli.core.units import format_bytes
from mluops_cli.results.jsonl import read_results
from schemas.casefiles.external_data import find_external
from schemas.casefiles.reading import MOST_TEXT, SUFFIXES, read_case
from schemas.casefiles.writing import TEXT
from schemas.errors import MluopsError
from schemas.path_names import path_part
from schemas.suggest import counted

OUTPUTS: Final = "~outputs"  # ends the name of the file with a case's outputs: no spec can call a case so
COPIES: Final = 1 << 30  # bytes that a run copies at most, of cases that can't be linked
_LONGEST: Final = 150  # bytes of a part of a kept path: of the 255 that file systems take, less what suffixes take


class KeepFailures:
    """Listens to a run and keeps the file of each case that fails; what the earlier run kept there is removed.

    What it kept of the cases in stay is not removed: their results stay too.
    A case on another file system can only be copied. Where the copies of a run would take more than COPIES bytes it is
    not kept, and replay reads the case's own file; tell is given a line about that at the end of the run.
    """

    def __init__(self, out: Path, tell: Callable[[str], None] = lambda line: None, stay: Collection[str] = ()) -> None:
        self.out = out
        self.tell = tell
        self.stay = stay
        self.earlier: dict[Path, int] = {}
        self.copied = 0
        self.left_out = 0

    def __call__(self, event: Event) -> None:
        """Listen to the run."""
        if isinstance(event, RunStarted) and (self.out / FAILURES).is_dir():
            with suppress(MluopsError):  # results that are damaged are replaced all the same
                self.earlier = {path: _inode(path) for path in self._kept_earlier() if os.path.exists(path)}
        elif isinstance(event, Loaded):
            self._forget()
        elif isinstance(event, CaseFinished) and event.record.status in FAILING:
            source = Path(event.record.file)
            copied = keep(source, _target(self.out, event.record), COPIES - self.copied)
            self.left_out += copied is None
            self.copied += copied or 0
        elif isinstance(event, RunFinished) and self.left_out:
            cases = counted(self.left_out, "failing case is", "failing cases are")
            self.tell(
                f"{cases} not kept in {self.out / FAILURES}: the case files are on another file system, and copies may "
                f"take {format_bytes(COPIES)} in all; replay reads them where they are"
            )

    def _kept_earlier(self) -> Iterator[Path]:
        """What was kept of the failing cases that the folder holds results of: files of others stay."""
        for record in read_results(self.out):
            if record.status in FAILING and record.case not in self.stay:
                yield from kept_of(self.out, record)

    def _forget(self) -> None:
        """Remove what an earlier run kept; a file that a worker has written anew by now is another one."""
        for path, inode in self.earlier.items():
            if _inode(path) != inode:
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def kept_of(out: Path, record: Record) -> Iterator[Path]:
    """The paths at which a failing case and its outputs are kept, whether they are there or not.

    A case with external data has a folder of its own.
    """
    target = _target(out, record)
    yield target
    if os.path.isfile(_own(target, Path(record.file))):
        yield target.with_suffix("")
    outputs = outputs_path(out, record.case)
    yield outputs
    yield from outputs.parent.glob(f"{escape(outputs.stem)}.*.bin")


def copy_kept(source: Path, target: Path, record: Record) -> None:
    """Link or copy what one run's folder keeps of a failing case to the same places in another one's.

    Links that lead out of the folder are left out: no run keeps such.
    """
    inside = os.path.realpath(source)
    for path in kept_of(source, record):
        for file in (path, *path.rglob("*")):
            kept = file.is_file() and Path(os.path.realpath(file)).is_relative_to(inside)
            if kept and not _link(file, to := target / file.relative_to(source)):
                shutil.copyfile(file, to)


def kept_file(out: Path, record: Record) -> Path:
    """Return where the file of a record's case is kept: OUT/failures/operator/suite/name.pb, or in a folder name/."""
    target = _target(out, record)
    return own if os.path.isfile(own := _own(target, Path(record.file))) else target


def kept_path(out: Path, case: str, suffix: str) -> Path:
    """Return OUT/failures/operator/suite/name and a suffix, for the id of a case.

    What can't be one part of a path is replaced, and the hash of the id added, so that no two cases share a path.
    """
    op, _, rest = case.partition("/")
    suite, _, name = rest.partition("/")
    return Path(out / FAILURES, *(_part(each, case) for each in (op, suite)), f"{_part(name, case)}{suffix}")


def outputs_path(out: Path, case: str) -> Path:
    """Return where the outputs of a case are kept: OUT/failures/operator/suite/name~outputs.pb."""
    return kept_path(out, case, f"{OUTPUTS}.pb")


def _part(text: str, case: str) -> str:
    """One part of a path for a part of a case's id."""
    text, whole = _as_in_results(text), _as_in_results(case).encode()
    safe = path_part(text.lstrip("."), _LONGEST)
    return safe if safe and safe == text else f"{safe}~{xxhash.xxh3_64_hexdigest(whole)[:8]}"


def _as_in_results(text: str) -> str:
    """The text as results.jsonl holds it: halves of surrogate pairs are escapes there."""
    return text.encode("utf-8", "backslashreplace").decode()


def keep(source: Path, target: Path, most: int = COPIES) -> int | None:
    """Keep a case file with its external data, as hard links where possible: network cases take hundreds of megabytes.

    A case with external data goes into a folder of its own beside target, since other cases may use the same names;
    so does a case whose file's name is all that it is known by. Failures (the file is gone, the disk is full) are
    ignored: the record of the case is there all the same.

    Return the bytes that were copied, since another file system takes no links; None where more than most bytes would
    have to be: the case is not kept then.
    """
    own = _own(target, source)
    files = {source: target}
    if (sides := _side_files(source)) or (sides is not None and source.name != target.name):
        files = {source: own, **{side: own.parent / name for side, name in sides.items()}}
    try:
        target.unlink(missing_ok=True)
        if os.path.isfile(own):
            shutil.rmtree(own.parent)
        to_copy = {found: kept for found, kept in files.items() if not _link(found, kept)}
        size = sum(found.stat().st_size for found in to_copy)
        if size <= most:
            for found, kept in to_copy.items():
                shutil.copyfile(found, kept)
            return size
        _remove(files.values())
        return None
    except (OSError, ValueError):
        _remove(files.values())
        return 0


def _remove(files: Iterable[Path]) -> None:
    for file in files:
        with suppress(OSError, ValueError):
            file.unlink(missing_ok=True)


def _target(out: Path, record: Record) -> Path:
    suffix = Path(record.file).suffix
    return kept_path(out, record.case, suffix if suffix in SUFFIXES else "")


def _own(target: Path, source: Path) -> Path:
    return target.with_suffix("") / source.name


def _inode(path: Path) -> int:
    try:
        return path.lstat().st_ino
    except (OSError, ValueError):
        return 0


def _link(source: Path, target: Path) -> bool:
    """Link a file in place of another one; return whether that is possible."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(os.path.realpath(source), target)  # what a link leads to, which may go without the link
    except OSError:
        return False
    return True


def _side_files(case: Path) -> dict[Path, str] | None:
    """The external data of a case and their names below its folder; None: there are none, and the case has metadata.

    Without metadata the case's name is made of the file's name, which must be kept then.
    """
    if not _may_have_sides(case):
        return None
    sides: dict[Path, str] = {}
    try:
        with read_case(case) as file:
            for record in (*file.inputs, *file.outputs):
                if name := record.header.path:
                    found = find_external(record.folder, name, record.place).path
                    sides[found] = str(Path(name).with_name(found.name))
            return sides if sides or file.meta is None else None
    except (MluopsError, OSError):  # kept as it is
        return None


def _may_have_sides(case: Path) -> bool:
    """Whether parsing is worth it: text only if it has one of the words, since that of a large case takes minutes."""
    if case.suffix != TEXT:
        return True
    try:
        if case.stat().st_size > MOST_TEXT:
            return False
        with case.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            return any(text.find(word) >= 0 for word in (b"path", b"random_data"))
    except (OSError, ValueError):  # gone, or empty
        return False
