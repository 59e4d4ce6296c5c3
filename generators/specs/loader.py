"""Spec files: found, read with what they include, checked against the grammar; expansion takes them from there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from generators.operator_registry import operators
from generators.specs.mistakes import shown
from generators.specs.models import SpecFile, SpecPart
from generators.specs.validation import VARYING, VariantCheck, grammar_errors
from generators.specs.yaml_loader import Document, KeyPath, Located, load_yaml, together
from schemas.errors import InputError, SourceLocation
from schemas.path_names import check_relative_path

SUFFIXES: Final = (".yaml", ".yml")
PART: Final = "_"
"""First character of files that others include: searching a folder for specs skips them."""
# How deep an entry merges over defaults, or over the included entry of its name, key by key; what is below that, and
# everything else, is replaced as a whole.
_MERGE_DEPTH: Final[Mapping[str, int]] = {"params": 1, "sizes": 1, "inputs": 2, "outputs": 2, "criteria": 1}

Origins = Mapping[str, Sequence[Sequence[tuple[int, int]]]]


@dataclass(frozen=True)
class Spec:
    """A checked spec: the operator's name and, per suite, the entries of the file and of those that it includes.

    documents are the file, then what it includes, in that order. origins holds, per suite and entry, where the
    entry stands: (number of the document, index in the suite there), the including file first.
    """

    path: Path
    op: str
    suites: Mapping[str, list[Located]]
    defaults: Mapping[str, Any]
    lists: Mapping[str, Any]
    documents: tuple[Document, ...]
    origins: Origins

    def entry(self, suite: str, index: int) -> dict[str, Any]:
        """An entry with the defaults under it."""
        return _merged(self.defaults, self.suites[suite][index])

    def place(self, path: KeyPath, at_key: bool = False) -> SourceLocation:
        """Where a key path stands: in its file, in one that this includes, or in the defaults."""
        candidates = list(self._candidates(path))
        document, found = next((each for each in candidates if each[0].has(each[1])), candidates[0])
        return document.place(found, at_key)

    def _candidates(self, path: KeyPath) -> Iterator[tuple[Document, KeyPath]]:
        """Where a key path of the combined spec may stand: the including file first, the defaults last."""
        if path[:1] != ("suites",) or len(path) < 3:
            yield from ((document, path) for document in self.documents)
            return
        _, suite, index, *rest = path
        for number, there in self.origins[str(suite)][int(index)]:
            yield self.documents[number], ("suites", suite, there, *rest)
        yield from ((document, ("defaults", *rest)) for document in self.documents)


def load_spec(path: Path) -> Spec:
    """Read and check a spec file; InputError with the location of everything that the grammar doesn't allow."""
    documents = tuple(_documents(path))
    suites: dict[str, list[Located]] = {}
    origins: dict[str, list[list[tuple[int, int]]]] = {}
    defaults: Mapping[str, Any] = {}
    lists: Mapping[str, Any] = {}
    for number in reversed(range(len(documents))):
        data = documents[number].data
        defaults = _merged(defaults, data.get("defaults", {}))
        lists = {**lists, **data.get("lists", {})}
        for suite, entries in data["suites"].items():
            _add(suites.setdefault(suite, []), origins.setdefault(suite, []), entries, number)
    spec = Spec(path, documents[0].data["op"], suites, defaults, lists, documents, origins)
    errors = list(_variant_errors(spec))
    if errors:
        raise together(errors)
    return spec


def _documents(path: Path) -> Iterator[Document]:
    """The spec file and what it includes, and so on; InputError with everything that is wrong with them."""
    errors: list[InputError] = []
    read: list[str] = []
    op: object = None
    following: Path | None = path
    while following is not None:
        document = load_yaml(following)
        if not isinstance(document.data, dict):
            message = f"found {shown(document.data)}, expected a mapping with op and suites"
            raise InputError(message, document.place(()))
        op = op if read else document.data.get("op")
        errors += grammar_errors(document, SpecPart if read else SpecFile, op)
        read.append(os.path.realpath(following))
        yield document
        following = _included(document, following, read)
    if errors:
        raise together(errors)


def _included(document: Document, path: Path, read: Sequence[str]) -> Path | None:
    """The file that a spec includes, None where it includes nothing."""
    name = document.data.get("include")
    if not isinstance(name, str):
        return None
    place = document.place(("include",))
    check_relative_path(name, "the included file", "the folder of this file", place)
    found = path.parent / name
    if os.path.realpath(found) in read:
        raise InputError(f"{name} includes itself", place)
    if not found.is_file():
        reason = "it is no regular file" if found.exists() else "there is no such file"
        raise InputError(f"can't include {name}: {reason}", place)
    return found


def _add(suite: list[Located], origins: list[list[tuple[int, int]]], entries: Sequence[Located], document: int) -> None:
    """Add a file's entries to those of a suite that it includes; one of the same name is merged over that."""
    included = {entry["name"]: position for position, entry in enumerate(suite)}
    for index, entry in enumerate(entries):
        position = included.pop(entry["name"], None)
        if position is None:
            suite.append(entry)
            origins.append([(document, index)])
        else:
            suite[position] = entry.with_items(_merged(suite[position], entry))
            origins[position].insert(0, (document, index))


def _variant_errors(spec: Spec) -> Iterator[InputError]:
    check = VariantCheck(spec.op, spec.lists, spec.place)
    varied = not VARYING.isdisjoint(spec.defaults)
    for suite, entries in spec.suites.items():
        for index, entry in enumerate(entries):
            if varied or not VARYING.isdisjoint(entry):
                yield from check.errors(spec.entry(suite, index), ("suites", suite, index))
    yield from check.errors(spec.defaults, ("defaults",))


def find_specs(paths: Iterable[Path]) -> list[Path]:
    """The spec files among the given files and folders, folders searched recursively in the order of names."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(each for each in path.rglob("*") if _is_spec(each))
            if not inside:
                raise InputError(f"no spec files ({' or '.join(SUFFIXES)}) in this folder", SourceLocation(str(path)))
            found += inside
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def _is_spec(path: Path) -> bool:
    return path.suffix in SUFFIXES and not path.name.startswith(PART) and path.is_file()


def spec_files(op: str | None = None) -> list[Path]:
    """The built-in spec files, of one operator or of all, as far as they exist."""
    names = [op] if op is not None else sorted(operators())
    return [path for path in map(spec_path, names) if path.is_file()]


def spec_path(op: str) -> Path:
    """Where an operator's spec lies: `cases/<operator>.yaml`, or where the operator says."""
    return operators()[op].cases or Path(str(files("cases"))) / f"{op}.yaml"


def _merged(under: Mapping[str, Any], over: Mapping[str, Any], depth: int | None = None) -> dict[str, Any]:
    """Two entries as one, the second above the first; depth counts the levels that still merge below an entry."""
    result = {**under, **over}
    for key in under.keys() & over.keys():
        deeper = _MERGE_DEPTH.get(key, 0) if depth is None else depth - 1
        if deeper and isinstance(over[key], dict) and isinstance(under[key], dict):
            result[key] = _merged(under[key], over[key], deeper)
    return result
