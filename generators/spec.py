"""Spec files: found, read, checked against the grammar; expansion takes them from there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from generators.operator import operators
from generators.spec_leaves import shown
from generators.spec_models import Dist, Entry, Fields, Input, Model, Output, SpecFile
from generators.yaml_marks import Document, KeyPath, Located, load_yaml, together
from schemas.errors import InputError, Place
from schemas.suggest import did_you_mean

SUFFIXES: Final = (".yaml", ".yml")
# How deep the defaults merge into an entry, key by key; what is below that, and everything else, is replaced whole.
_MERGE_DEPTH: Final[Mapping[str, int]] = {"params": 1, "sizes": 1, "inputs": 2, "outputs": 2, "criteria": 1}
_MODELS: Final[dict[str, type[Model]]] = {
    "defaults": Fields, "suites": Entry, "inputs": Input, "outputs": Output, "dist": Dist,
}  # fmt: skip
_EXPECTED: Final = {
    "model_type": "a mapping", "dict_type": "a mapping", "list_type": "a list", "bool_type": "true or false",
    "int_type": "an integer", "string_type": "a word",
}  # fmt: skip


@dataclass(frozen=True)
class Spec:
    """A checked spec file: the operator's name and, per suite, the entries as they stand there."""

    path: Path
    op: str
    suites: Mapping[str, list[Located]]
    defaults: Mapping[str, Any]
    document: Document

    def entry(self, suite: str, index: int) -> dict[str, Any]:
        """An entry with the defaults under it."""
        return _merged(self.defaults, self.suites[suite][index], 3)

    def place(self, path: KeyPath, at_key: bool = False) -> Place:
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
    errors = [*_errors(SpecFile, data, (), document)]
    if not errors:
        for suite, entries in data["suites"].items():
            for index, entry in enumerate(entries):
                errors += _variant_errors(entry, ("suites", suite, index), document)
        errors += _variant_errors(data.get("defaults", {}), ("defaults",), document)
    if errors:
        raise together(errors)
    return Spec(path, data["op"], data["suites"], data.get("defaults", {}), document)


def find_specs(paths: Iterable[Path]) -> list[Path]:
    """The spec files among the given files and folders, folders searched recursively in the order of names."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES and each.is_file())
            if not inside:
                raise InputError(f"no spec files ({' or '.join(SUFFIXES)}) in this folder", Place(str(path)))
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


def nested(path: str, value: Any) -> dict[str, Any]:
    """{"a": {"b": value}} of the dotted path a.b."""
    for key in reversed(path.split(".")):
        value = {key: value}
    assert isinstance(value, dict)
    return value


def _variant_errors(entry: Mapping[str, Any], at: KeyPath, document: Document) -> Iterator[InputError]:
    """What is wrong with the values that matrix and include put into an entry."""
    for path, values in entry.get("matrix", {}).items():
        for number, value in enumerate(values):
            yield from _assignment_errors(path, value, (*at, "matrix", path, number), document)
    for number, combination in enumerate(entry.get("include", [])):
        for path, value in combination.items():
            yield from _assignment_errors(path, value, (*at, "include", number, path), document)
    for number, combination in enumerate(entry.get("exclude", [])):
        for path, value in combination.items():
            where = (*at, "exclude", number, path)
            if path not in entry.get("matrix", {}):
                hint = did_you_mean(path, entry.get("matrix", {}))
                yield InputError(f"{path!r} is no axis of the matrix{hint}", document.place(where, at_key=True))
            elif value not in entry["matrix"][path]:
                yield InputError(f"{shown(value)} is not on the axis {path}", document.place(where))


def _assignment_errors(path: str, value: Any, at: KeyPath, document: Document) -> Iterator[InputError]:
    steps = path.split(".")
    if steps[0] in ("matrix", "include", "exclude", "name", "derive"):
        yield InputError(f"{steps[0]} can't be varied", document.place(at, at_key=True))
        return
    try:
        Fields.model_validate(nested(path, value))
    except ValidationError as error:
        for each in error.errors(include_url=False):
            found = each["loc"][: len(steps)] == tuple(steps)
            where = (*at, *each["loc"][len(steps) :]) if found else at
            yield InputError(_message(each, Fields), document.place(where))


def _errors(model: type[Model], data: Any, at: KeyPath, document: Document) -> Iterator[InputError]:
    try:
        model.model_validate(data)
    except ValidationError as error:
        for each in error.errors(include_url=False):
            path = (*at, *each["loc"])
            if path[-1] == "[key]":  # pydantic's way to say that the key itself is wrong
                path = path[:-1]
            if each["type"] == "missing":
                yield InputError(_message(each, model), document.place(path[:-1]))
            else:
                at_key = each["type"] == "extra_forbidden" or each["loc"][-1] == "[key]"
                yield InputError(_message(each, model), document.place(path, at_key))


def _message(error: Any, model: type[Model]) -> str:
    kind, last = error["type"], error["loc"][-1]
    if kind == "extra_forbidden":
        owner = next((_MODELS[step] for step in reversed(error["loc"][:-1]) if step in _MODELS), model)
        return f"unknown key {str(last)!r}{did_you_mean(str(last), owner.model_fields)}"
    if kind == "missing":
        return f"missing key {str(last)!r}"
    if kind in _EXPECTED:
        return f"found {shown(error['input'])}, expected {_EXPECTED[kind]}"
    return str(error["msg"])
