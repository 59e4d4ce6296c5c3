"""OUT/failures: the files of failing cases, kept so that they can be run again after the cases are gone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from mluops_cli.execution.events import CaseFinished, Event, Loaded, RunStarted
from mluops_cli.reports.record import FAILING, Record

FOLDER: Final = "failures"


class KeepFailures:
    """Listens to a run and keeps the file of each case that fails."""

    def __init__(self, out: Path) -> None:
        self.folder = out / FOLDER
        self.resumed = False

    def __call__(self, event: Event) -> None:
        """Listen to the run."""
        if isinstance(event, RunStarted):
            self.resumed = bool(event.done)
        elif isinstance(event, Loaded) and not self.resumed:
            self._forget()
        elif isinstance(event, CaseFinished):
            target = kept_file(self.folder.parent, event.record)
            if event.record.status in FAILING:
                keep(Path(event.record.file), target)

    def _forget(self) -> None:
        """Take away what an earlier run kept: case files only, of folders as deep as ours."""
        for pattern in ("*/*/*.pb", "*/*/*.prototxt"):
            for path in self.folder.glob(pattern):
                path.unlink()


def kept_file(out: Path, record: Record) -> Path:
    """Where the file of a record's case is kept: OUT/failures/operator/suite/name.pb."""
    suffix = Path(record.file).suffix
    parts = [part for part in record.case.split("/") if part not in ("", ".", "..")]
    head, name = parts[:2], "_".join(parts[2:]) or "case"
    return Path(out / FOLDER, *head, f"{name}{suffix}")


def keep(source: Path, target: Path) -> None:
    """Keep a case file, as a hard link where that can be: network cases take hundreds of megabytes.

    A file that is gone or a full disk don't end the run: the record tells of the failure all the same.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        os.link(source, target)
    except OSError:
        try:
            shutil.copyfile(source, target)
        except OSError:
            target.unlink(missing_ok=True)
