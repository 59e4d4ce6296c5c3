"""OUT/manifest.json: what the case files of a folder are, one line per case, sorted; no clock, no absolute paths."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from filelock import FileLock

from schemas.casefiles.reading import read_case
from schemas.errors import InputError, SourceLocation, UnavailableError
from schemas.version import __version__

NAME: Final = "manifest.json"
_KEY: Final = "mluops"  # holds the version, and marks the file as ours
_CASE_FILE: Final = re.compile(r"(.+)(?:\.pb|\.prototxt|\.(?:in|out)\d+\.bin)")

Entries = dict[str, dict[str, Any]]


class ForeignManifest(InputError):  # noqa: N818  an InputError, told as one
    """The file of that name is none of ours."""


def read_manifest(folder: Path) -> Entries:
    """The entries by case id, empty where the folder has no manifest.

    ForeignManifest where the file is not one of ours, InputError naming the first entry that can't be one.
    """
    path = folder / NAME
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError, RecursionError) as error:
        raise ForeignManifest(f"not a manifest of mluops: {error}", SourceLocation(str(path))) from None
    if not isinstance(read, dict) or _KEY not in read or not isinstance(read.get("cases"), dict):
        raise ForeignManifest("not a manifest of mluops: no keys 'mluops' and 'cases'", SourceLocation(str(path)))
    cases: Entries = read["cases"]
    for case, entry in cases.items():
        for what, found, expected in _wrong(case, entry):
            message = f"the manifest is damaged: found {found!r:.60}, expected {expected}"
            raise InputError(message, SourceLocation(str(path), key=f"cases[{case!r}]{what}"))
    return cases


def _wrong(case: str, entry: Any) -> Iterator[tuple[str, Any, str]]:
    """(key, what it holds, what it should) of what is wrong with an entry; keys that it lacks are not."""
    if len([word for word in case.split("/", 2) if word]) != 3:
        yield "", case, "operator/suite/name"
    if not isinstance(entry, dict):
        yield "", entry, "a mapping"
        return
    for key in ("files", "expect", "faults", "tags"):
        if not _words(entry.get(key, [])):
            yield f".{key}", entry[key], "a list of words"
    tensors = entry.get("tensors", [])
    if not isinstance(tensors, list) or not all(
        isinstance(each, dict) and _words([each.get("name")]) for each in tensors
    ):
        yield ".tensors", tensors, "a list of mappings with a name"


def _words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def case_files(folder: Path, cases: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """(case id, file) of what lies where the files of these cases go, in any format, side files too."""
    wanted = set(cases)
    for parent in sorted({case.rpartition("/")[0] for case in wanted}):
        for path in sorted((folder / parent).iterdir()) if (folder / parent).is_dir() else ():
            match = _CASE_FILE.fullmatch(path.name)
            if match is not None and f"{parent}/{match[1]}" in wanted:
                yield f"{parent}/{match[1]}", path


def refuse_foreign(folder: Path, cases: Iterable[str]) -> None:
    """InputError naming the files where those of these cases go that are not ours.

    Ours is what the folder's manifest lists, a file with our metadata, and what lies beside such a file.
    """
    listed = {file for entry in read_manifest(folder).values() for file in entry.get("files", ())}
    unknown = [
        (case, path) for case, path in case_files(folder, cases) if path.relative_to(folder).as_posix() not in listed
    ]
    signed = {case for case, path in unknown if _signed(path)}
    foreign = [path for case, path in unknown if case not in signed]
    if foreign:
        more = f" (and {len(foreign) - 1} more)" if len(foreign) > 1 else ""
        raise InputError(f"not made by mluops, and a case would replace it{more}", SourceLocation(str(foreign[0])))


def _signed(path: Path) -> bool:
    if path.suffix != ".pb":
        return False
    try:
        with read_case(path) as file:
            return file.meta is not None
    except InputError:
        return False


def remove_stale(folder: Path, new: Mapping[str, dict[str, Any]]) -> list[Path]:
    """Remove what earlier ones of these cases left beside their files (another format, side files); what that was.

    After refuse_foreign it can only be ours. A .pb that stays behind would be run in place of a new .prototxt.
    UnavailableError where the disk refuses.
    """
    stale = [
        path for case, path in case_files(folder, new) if path.relative_to(folder).as_posix() not in new[case]["files"]
    ]
    for path in stale:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise UnavailableError(f"{path}: can't remove what is out of date: {error.strerror or error}") from error
    return stale


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
