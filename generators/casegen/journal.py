"""OUT/.mluops.journal: what a gen is writing, so that the next one knows the files of a gen that was killed.

A line per case before its files are written, and another one, with its files, after that. The file is there while a
gen works; once the manifest has taken it over, it is removed.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any, Final

from schemas.atomic_files import write_failure

NAME: Final = ".mluops.journal"


def begin(folder: Path) -> None:
    """Start an empty journal; UnavailableError where writing fails."""
    path = folder / NAME
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    except OSError as error:
        raise write_failure(path, error) from error


def append(folder: Path, case: str, entry: dict[str, Any]) -> None:
    """Add a case's manifest entry; nothing where the folder has no journal (cases that are written without `gen`).

    Several processes may do so at once. UnavailableError where writing fails.
    """
    path = folder / NAME
    # The line break before it keeps the line apart from one that a full disk cut off.
    line = f"\n{json.dumps([case, entry], allow_nan=False)}\n".encode()
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    except OSError as error:
        raise write_failure(path, error) from error
    try:
        if os.write(handle, line) < len(line):
            raise write_failure(path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    except OSError as error:
        raise write_failure(path, error) from error
    finally:
        os.close(handle)


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """The last entry of each case, without `files` where the case may be half-written; empty without a journal.

    Lines that were cut off are left out.
    """
    path = folder / NAME
    entries: dict[str, dict[str, Any]] = {}
    try:
        lines = path.read_bytes().splitlines() if path.is_file() else []
    except OSError:
        return {}
    for line in filter(None, lines):
        try:
            case, entry = json.loads(line)
        except (ValueError, TypeError, RecursionError):
            continue
        if isinstance(case, str) and isinstance(entry, dict):
            entries[case] = entry
    return entries


def end(folder: Path) -> None:
    """Remove the journal; UnavailableError where writing fails."""
    path = folder / NAME
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise write_failure(path, error) from error
