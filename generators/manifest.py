"""OUT/manifest.json: what the case files of a folder are, one line per case, sorted; no clock, no absolute paths."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from filelock import FileLock

from schemas.errors import InputError, Place, UnavailableError
from schemas.version import __version__

NAME: Final = "manifest.json"
_KEY: Final = "mluops"  # holds the version, and marks the file as ours

Entries = dict[str, dict[str, Any]]


def read_manifest(folder: Path) -> Entries:
    """The entries by case id, empty where the folder has no manifest; InputError where the file is not one of ours."""
    path = folder / NAME
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise InputError(f"not a manifest of mluops: {error}", Place(str(path))) from None
    if not isinstance(read, dict) or _KEY not in read or not isinstance(read.get("cases"), dict):
        raise InputError("not a manifest of mluops: it has no keys 'mluops' and 'cases'", Place(str(path)))
    cases: Entries = read["cases"]
    return cases


def update_manifest(folder: Path, new: Mapping[str, dict[str, Any]]) -> None:
    """Add entries to the folder's manifest, or replace them; those whose files are gone are dropped.

    Several writers may do so at once. UnavailableError where the disk refuses.
    """
    try:
        with FileLock(folder / ".mluops.lock"):
            old = read_manifest(folder)
            kept = {key: entry for key, entry in old.items() if _present(folder, entry.get("files", ()))}
            _write(folder / NAME, kept | dict(new))
    except OSError as error:
        raise UnavailableError(f"{folder / NAME}: can't write: {error.strerror or error}") from error


def _present(folder: Path, files: Iterable[str]) -> bool:
    return all((folder / file).is_file() for file in files)


def _write(path: Path, cases: Entries) -> None:
    lines = (f"{json.dumps(key)}: {json.dumps(cases[key], sort_keys=True, allow_nan=False)}" for key in sorted(cases))
    body = ",\n".join(lines)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_text(f'{{"{_KEY}": "{__version__}", "cases": {{\n{body}\n}}}}\n', encoding="utf-8")
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
