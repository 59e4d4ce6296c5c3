"""OUT/failures: the files of failing cases, kept so that they can be run again after the cases are gone."""

from __future__ import annotations

import mmap
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from mluops_cli.core.discovery import FAILURES
from mluops_cli.core.events import CaseFinished, Event, Loaded, RunStarted
from mluops_cli.core.record import Record
from mluops_cli.core.statuses import FAILING

# Of folders as deep as ours, files as ours only: cases, outputs of --keep-outputs, cases with side files.
_OURS: Final = ("*/*/*.pb", "*/*/*.prototxt", "*/*/*~outputs.*.bin", "*/*/*/*.pb", "*/*/*/*.prototxt")


class KeepFailures:
    """Listens to a run and keeps the file of each case that fails."""

    def __init__(self, out: Path) -> None:
        self.folder = out / FAILURES
        self.earlier: dict[Path, int] = {}

    def __call__(self, event: Event) -> None:
        """Listen to the run."""
        if isinstance(event, RunStarted) and not event.done:
            self.earlier = {path: _inode(path) for pattern in _OURS for path in self.folder.glob(pattern)}
        elif isinstance(event, Loaded):
            self._forget()
        elif isinstance(event, CaseFinished) and event.record.status in FAILING:
            keep(Path(event.record.file), _target(self.folder.parent, event.record))

    def _forget(self) -> None:
        """Take away what an earlier run kept; a file that a worker has written anew by now is another one."""
        for path, inode in self.earlier.items():
            if len(path.relative_to(self.folder).parts) == 3:
                if _inode(path) == inode:
                    path.unlink(missing_ok=True)
            elif path.parent.name.endswith(path.stem):
                shutil.rmtree(path.parent, ignore_errors=True)


def kept_file(out: Path, record: Record) -> Path:
    """Where the file of a record's case is: OUT/failures/operator/suite/name.pb, or in a folder name/: see keep."""
    target = _target(out, record)
    return own if (own := _own(target, Path(record.file))).is_file() else target


def kept_path(out: Path, case: str, suffix: str) -> Path:
    """OUT/failures/operator/suite/name and a suffix, for the id of a case."""
    parts = [part for part in case.split("/") if part not in ("", ".", "..")]
    head, name = parts[:2], "_".join(parts[2:]) or "case"
    return Path(out / FAILURES, *head, f"{name}{suffix}")


def keep(source: Path, target: Path) -> None:
    """Keep a case file with its side files, as hard links where that can be: network cases take hundreds of megabytes.

    Beside target, a folder of its own holds a case with side files, whose names need not differ from case to case, and
    one that is known by its file's name alone. A file that is gone or a full disk don't end the run: the record tells
    of the failure all the same.
    """
    own = _own(target, source)
    files = {source: target}
    if (sides := _side_files(source)) or (sides is not None and source.name != target.name):
        files = {source: own, **{side: own.parent / name for side, name in sides.items()}}
    try:
        target.unlink(missing_ok=True)
        if own.is_file():
            shutil.rmtree(own.parent)
        for found, kept in files.items():
            _link(found, kept)
    except OSError:
        for kept in files.values():
            with suppress(OSError):
                kept.unlink(missing_ok=True)


def _target(out: Path, record: Record) -> Path:
    return kept_path(out, record.case, Path(record.file).suffix)


def _own(target: Path, source: Path) -> Path:
    return target.with_suffix("") / source.name


def _inode(path: Path) -> int:
    try:
        return path.lstat().st_ino
    except OSError:
        return 0


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    try:
        os.link(os.path.realpath(source), target)  # what a link leads to, which may go without the link
    except OSError:
        shutil.copyfile(source, target)


def _side_files(case: Path) -> dict[Path, str] | None:
    """The side files of a case and their names below its folder; None: it has none, and its file's name says nothing.

    Values that are to be drawn depend on the id, which is made of the file's name where there is no metadata.
    """
    from schemas.casefiles.external_data import side_file
    from schemas.casefiles.reading import read_case
    from schemas.errors import MluopsError

    if not _may_have_sides(case):
        return None
    sides: dict[Path, str] = {}
    try:
        with read_case(case) as file:
            for record in (*file.inputs, *file.outputs):
                if name := record.header.path:
                    found = side_file(record.folder, name, record.place).path
                    sides[found] = str(Path(name).with_name(found.name))
            return sides if sides or file.meta is None else None
    except (MluopsError, OSError):  # kept as it is
        return None


def _may_have_sides(case: Path) -> bool:
    """Text is parsed only where it has one of the words: that of a large case takes minutes."""
    if case.suffix != ".prototxt":
        return True
    try:
        with case.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            return any(text.find(word) >= 0 for word in (b"path", b"random_data"))
    except (OSError, ValueError):  # gone, or empty
        return False
