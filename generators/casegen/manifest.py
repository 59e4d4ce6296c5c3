"""OUT/manifest.json: what the case files of a folder are, one line per case, sorted; no clock, no absolute paths."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import xxhash
from numpy.typing import NDArray

from generators.casegen import journal
from schemas.atomic_files import write_text
from schemas.case_ids import is_case_id
from schemas.casefiles.reading import SUFFIXES, CaseFile, read_case
from schemas.casefiles.tensors import TensorRecord
from schemas.errors import InputError, MluopsError, SourceLocation
from schemas.path_names import check_relative_path
from schemas.version import __version__

NAME: Final = "manifest.json"
_KEY: Final = "mluops"  # holds the version, and marks the file as ours
_BLOCK: Final = 1 << 17  # bytes read at once; more gain nothing
_CASE_FILE: Final = re.compile(r"(.+?)(?:\.pb|\.prototxt|\.(?:in|out)\d+(?:\.[0-9a-f]+)?\.bin(?:\.zst)?)")

Entry = dict[str, Any]
Entries = dict[str, Entry]


class ForeignManifest(InputError):  # noqa: N818  an InputError, reported as one
    """The file of that name was not written by mluops."""


def read_manifest(folder: Path) -> Entries:
    """The entries by case id, those of a gen that is at work or was killed included; empty without a manifest.

    ForeignManifest where the file is not one of ours, InputError naming the first entry that can't be one.
    """
    entries = read_stored(folder)
    journaled = read_journaled(folder)
    incomplete = {case: entry for case, entry in journaled.items() if "files" not in entry}
    for entry in incomplete.values():
        entry["files"] = []
    for case, file in case_files(folder, incomplete):
        incomplete[case]["files"].append(file.relative_to(folder).as_posix())
    return entries | journaled


def read_journaled(folder: Path) -> Entries:
    """The entries of a gen that is at work or was killed; what can't be an entry is left out."""
    return {case: entry for case, entry in journal.read(folder).items() if not any(_wrong(case, entry))}


def read_stored(folder: Path) -> Entries:
    """The entries of the manifest file alone; see read_manifest."""
    path = folder / NAME
    try:
        if path.exists() and not path.is_file():
            raise ForeignManifest("not a manifest of mluops: not a file", SourceLocation(str(path)))
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
    """(key, found, expected) of what is wrong with an entry; missing keys are allowed."""
    if not is_case_id(case):
        yield "", case, "operator/suite/name"
    elif not _below(case):
        yield "", case, "a path below the folder"
    if not isinstance(entry, dict):
        yield "", entry, "a mapping"
        return
    for key in ("files", "expect", "faults", "tags"):
        if not _words(entry.get(key, [])):
            yield f".{key}", entry[key], "a list of words"
        elif key == "files":
            yield from ((".files", file, "a path below the folder") for file in entry.get(key, ()) if not _below(file))
    tensors = entry.get("tensors", [])
    if not isinstance(tensors, list) or not all(
        isinstance(each, dict) and _words([each.get("name")]) for each in tensors
    ):
        yield ".tensors", tensors, "a list of mappings with a name"


def _words(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _below(path: str) -> bool:
    try:
        check_relative_path(path, "path", "the folder")
    except InputError:
        return False
    return True


def case_files(folder: Path, cases: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """(case id, file) of what lies where the files of these cases go, in any format, external data files too."""
    wanted = set(cases)
    for parent in sorted({case.rpartition("/")[0] for case in wanted}):
        for path in sorted((folder / parent).iterdir()) if (folder / parent).is_dir() else ():
            match = _CASE_FILE.fullmatch(path.name)
            if match is not None and f"{parent}/{match[1]}" in wanted:
                yield f"{parent}/{match[1]}", path


def write_manifest(folder: Path, entries: Mapping[str, Entry]) -> None:
    """Write the folder's manifest, entries whose files are gone left out; UnavailableError where writing fails."""
    lines = (
        f"{json.dumps(case)}: {json.dumps(entries[case], sort_keys=True, allow_nan=False)}"
        for case in sorted(entries)
        if _present(folder, entries[case].get("files", ()))
    )
    body = ",\n".join(lines)
    # durable, because it says which files are ours; case files are not synced, 5 ms each: check compares their hashes
    write_text(folder / NAME, f'{{"{_KEY}": "{__version__}", "cases": {{\n{body}\n}}}}\n', durable=True)


def _present(folder: Path, files: Iterable[str]) -> bool:
    return all((folder / file).is_file() for file in files)


# ---- hashes ----


def feed_files(hashed: Any, paths: Iterable[str | Path]) -> None:
    """Update a hash with the bytes of files, each ended by a zero byte; OSError where one can't be read."""
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            while block := file.read(_BLOCK):
                hashed.update(block)
        hashed.update(b"\0")  # bytes that move from one file to the next are a change


def hash_files(paths: Iterable[str | Path]) -> str:
    """Return xxh3_128 (hexadecimal) of the bytes of files in this order; OSError where one can't be read."""
    hashed = xxhash.xxh3_128()
    feed_files(hashed, paths)
    return hashed.hexdigest()


def hash_array(array: NDArray[Any]) -> str:
    """xxh3_128 of the array's bytes in C order, hex."""
    return xxhash.xxh3_128_hexdigest(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def hash_stored(record: TensorRecord) -> str:
    """hash_array of a record's array, in constant memory where it is dense; InputError where it can't be read."""
    if record.strides is not None or not record.elements or record.value_count() != record.span:
        return hash_array(record.array())
    hashed = xxhash.xxh3_128()
    for block in record.blocks():
        hashed.update(np.ascontiguousarray(block).view(np.uint8).data)
    return hashed.hexdigest()


def hash_mismatches(file: CaseFile, entry: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(tensor name, message) of every tensor of a case file whose values are not those that its manifest entry says.

    Tensors without a hash in the entry have no data on purpose. InputError where values can't be read.
    """
    records, tensors = (*file.inputs, *file.outputs), entry.get("tensors", ())
    if len(records) != len(tensors):
        yield "", f"{len(records)} tensors, the manifest says {len(tensors)}"
        return
    for record, tensor in zip(records, tensors, strict=True):
        if "hash" not in tensor:
            continue
        found = hash_stored(record) if record.has_values or not record.elements else "no values"
        if found != tensor["hash"]:
            yield tensor["name"], f"{tensor['name']} has hash {found}, the manifest says {tensor['hash']}"


def agrees(path: Path, entry: Mapping[str, Any]) -> bool:
    """Whether a case file (.pb, .prototxt) can be read and holds the values that the entry says."""
    if path.suffix not in SUFFIXES:
        return False
    try:
        with read_case(path) as file:
            return not any(hash_mismatches(file, entry))
    except MluopsError:
        return False
