"""OUT/failures: the files of failing cases, kept so that they can be run again after the cases are gone."""

from __future__ import annotations

import mmap
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from mluops_cli.execution.events import CaseFinished, Event, Loaded, RunStarted
from mluops_cli.reports.record import FAILING, Record

FOLDER: Final = "failures"
# Of folders as deep as ours, files as ours only: cases, outputs of --keep-outputs, cases with side files.
_OURS: Final = ("*/*/*.pb", "*/*/*.prototxt", "*/*/*~outputs.*.bin", "*/*/*/*.pb", "*/*/*/*.prototxt")


class KeepFailures:
    """Listens to a run and keeps the file of each case that fails."""

    def __init__(self, out: Path) -> None:
        self.folder = out / FOLDER
        self.earlier: dict[Path, int] = {}

    def __call__(self, event: Event) -> None:
        """Listen to the run."""
        if isinstance(event, RunStarted) and not event.done:
            self.earlier = {path: _inode(path) for pattern in _OURS for path in self.folder.glob(pattern)}
        elif isinstance(event, Loaded):
            self._forget()
        elif isinstance(event, CaseFinished):
            if event.record.status in FAILING:
                keep(Path(event.record.file), _target(self.folder.parent, event.record))

    def _forget(self) -> None:
        """Take away what an earlier run kept; a file that a worker has written anew by now is another one."""
        for path, inode in self.earlier.items():
            if len(path.relative_to(self.folder).parts) == 3:
                if _inode(path) == inode:
                    path.unlink(missing_ok=True)
            elif path.parent.name == path.stem:
                shutil.rmtree(path.parent, ignore_errors=True)


def kept_file(out: Path, record: Record) -> Path:
    """Where the file of a record's case is kept: OUT/failures/operator/suite/name.pb; name/name.pb with side files."""
    target = _target(out, record)
    return own if (own := _own(target)).is_file() else target


def kept_path(out: Path, case: str, suffix: str) -> Path:
    """OUT/failures/operator/suite/name and a suffix, for the id of a case."""
    parts = [part for part in case.split("/") if part not in ("", ".", "..")]
    head, name = parts[:2], "_".join(parts[2:]) or "case"
    return Path(out / FOLDER, *head, f"{name}{suffix}")


def keep(source: Path, target: Path) -> None:
    """Keep a case file with its side files, as hard links where that can be: network cases take hundreds of megabytes.

    A case with side files gets a folder of its own, beside target: their names need not differ from case to case. A
    file that is gone or a full disk don't end the run: the record tells of the failure all the same.
    """
    sides = dict(_side_files(source))
    own = _own(target)
    shutil.rmtree(own.parent, ignore_errors=True) if own.is_file() else None
    target.unlink(missing_ok=True)
    files = {source: own, **{side: own.parent / name for side, name in sides.items()}} if sides else {source: target}
    try:
        for found, kept in files.items():
            _link(found, kept)
    except OSError:
        for kept in files.values():
            with suppress(OSError):
                kept.unlink(missing_ok=True)


def _target(out: Path, record: Record) -> Path:
    return kept_path(out, record.case, Path(record.file).suffix)


def _own(target: Path) -> Path:
    return target.with_suffix("") / target.name


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


def _side_files(case: Path) -> Iterator[tuple[Path, str]]:
    """The side files of a case with their names below its folder; none where the case or one of them can't be read."""
    from schemas.casefile import read_case
    from schemas.errors import MluopsError
    from schemas.sidefiles import side_file

    if not _may_have_sides(case):
        return
    with suppress(MluopsError, OSError), read_case(case) as file:
        for record in (*file.inputs, *file.outputs):
            if name := record.header.path:
                found = side_file(record.folder, name, record.place).path
                yield found, str(Path(name).with_name(found.name))


def _may_have_sides(case: Path) -> bool:
    """Text is parsed only where it has the word: that of a large case takes minutes."""
    if case.suffix != ".prototxt":
        return True
    try:
        with case.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
            return text.find(b"path") >= 0
    except (OSError, ValueError):  # gone, or empty
        return False
