"""Spec files: found, read, checked against the grammar; expansion takes them from there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from generators.operator_registry import operators
from generators.specs.fields import shown
from generators.specs.validation import grammar_errors
from generators.specs.yaml_loader import Document, KeyPath, Located, load_yaml, together
from schemas.errors import InputError, SourceLocation

SUFFIXES: Final = (".yaml", ".yml")
# How deep the defaults merge into an entry, key by key; what is below that, and everything else, is replaced whole.
_MERGE_DEPTH: Final[Mapping[str, int]] = {"params": 1, "sizes": 1, "inputs": 2, "outputs": 2, "criteria": 1}


@dataclass(frozen=True)
class Spec:
    """A checked spec file: the operator's name and, per suite, the entries as they stand there."""

    path: Path
    op: str
    suites: Mapping[str, list[Located]]
    defaults: Mapping[str, Any]
    lists: Mapping[str, Any]
    document: Document

    def entry(self, suite: str, index: int) -> dict[str, Any]:
        """An entry with the defaults under it."""
        return _merged(self.defaults, self.suites[suite][index], 3)

    def place(self, path: KeyPath, at_key: bool = False) -> SourceLocation:
        """Where a key path stands, in the defaults if the entry itself doesn't say it."""
        if path[:1] == ("suites",) and not self.document.has(path) and self.document.has(("defaults", *path[3:])):
            path = ("defaults", *path[3:])
        return self.document.place(path, at_key)


def load_spec(path: Path) -> Spec:
    """Read and check a spec file; InputError with the place of everything that the grammar doesn't allow."""
    document = load_yaml(path)
    if not isinstance(document.data, dict):
        raise InputError(f"found {shown(document.data)}, expected a mapping with op and suites", document.place(()))
    data = document.data
    errors = grammar_errors(document)
    if errors:
        raise together(errors)
    return Spec(path, data["op"], data["suites"], data.get("defaults", {}), data.get("lists", {}), document)


def find_specs(paths: Iterable[Path]) -> list[Path]:
    """The spec files among the given files and folders, folders searched recursively in the order of names."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES and each.is_file())
            if not inside:
                raise InputError(f"no spec files ({' or '.join(SUFFIXES)}) in this folder", SourceLocation(str(path)))
            found += inside
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def spec_files(op: str | None = None) -> list[Path]:
    """The built-in spec files, of one operator or of all: `cases/<operator>.yaml`, or where the operator says."""
    folder = Path(str(files("cases")))
    names = [op] if op is not None else sorted(operators())
    paths = [operators()[name].cases or folder / f"{name}.yaml" for name in names]
    return [path for path in paths if path.is_file()]


def _merged(under: Mapping[str, Any], over: Mapping[str, Any], depth: int) -> dict[str, Any]:
    result = {**under, **over}
    for key in under.keys() & over.keys():
        deeper = _MERGE_DEPTH.get(key, 0) if depth == 3 else depth - 1
        if deeper and isinstance(over[key], dict) and isinstance(under[key], dict):
            result[key] = _merged(under[key], over[key], deeper)
    return result
