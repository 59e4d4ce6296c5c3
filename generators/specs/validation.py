"""Spec files against the grammar: everything that is wrong, each with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from generators.specs.axes import axis_groups, axis_values, multiples
from generators.specs.fields import shown
from generators.specs.models import Dist, Entry, Fields, Input, Model, Output, Sample, SpecFile
from generators.specs.yaml_loader import Document, KeyPath
from schemas.errors import InputError
from schemas.suggest import did_you_mean

_VARYING: Final = frozenset(("matrix", "zip", "sample", "include", "exclude"))
_FIXED: Final = _VARYING | {"name", "derive"}
_MODELS: Final[dict[str, type[Model]]] = {
    "defaults": Fields, "suites": Entry, "inputs": Input, "outputs": Output, "dist": Dist, "sample": Sample,
}  # fmt: skip
_EXPECTED: Final = {
    "model_type": "a mapping", "dict_type": "a mapping", "list_type": "a list", "bool_type": "true or false",
    "int_type": "an integer", "string_type": "a word",
}  # fmt: skip


def grammar_errors(document: Document) -> list[InputError]:
    """What the grammar doesn't allow in a spec: keys and values, then what matrix, zip, sample and include put in."""
    data = document.data
    errors = list(_errors(SpecFile, data, (), document))
    if not errors:
        defaults = data.get("defaults", {})
        for suite, entries in data["suites"].items():
            for index, entry in enumerate(entries):
                if not _VARYING.isdisjoint(entry):
                    errors += _variant_errors(entry, defaults, ("suites", suite, index), document)
        errors += _variant_errors(defaults, {}, ("defaults",), document)
    return errors


def nested(path: str, value: Any) -> dict[str, Any]:
    """{"a": {"b": value}} of the dotted path a.b."""
    for key in reversed(path.split(".")):
        value = {key: value}
    assert isinstance(value, dict)
    return value


def _variant_errors(
    entry: Mapping[str, Any], defaults: Mapping[str, Any], at: KeyPath, document: Document
) -> Iterator[InputError]:
    """What is wrong with the combinations of an entry over its defaults; what those say is told of them alone."""
    known: dict[str, Sequence[Any]] = {}
    for where, group in axis_groups({**defaults, **entry}):
        errors = [error for path in group for error in _axis_errors(path, group[path], (*at, *where), known, document)]
        lengths = {len(known[path]) for path in group}
        if not errors and len(lengths) > 1:
            found = ", ".join(f"{len(known[path])} of {path}" for path in group)
            errors = [InputError(f"a zip pairs lists of one length, found {found}", document.place((*at, *where)))]
        if where[0] in entry:
            yield from errors
    for path, axis in entry.get("sample", {}).get("over", {}).items():
        yield from _axis_errors(path, axis, (*at, "sample", "over"), known, document)
    for number, combination in enumerate(entry.get("include", ())):
        for path, value in combination.items():
            yield from _assignment_errors(path, value, (*at, "include", number, path), document)
    for number, combination in enumerate(entry.get("exclude", ())):
        for path, value in combination.items():
            where = (*at, "exclude", number, path)
            if path not in known:
                message = f"{path!r} is no axis of matrix or zip{did_you_mean(path, known)}"
                yield InputError(message, document.place(where, at_key=True))
            elif value not in known[path]:
                yield InputError(f"{shown(value)} is not on the axis {path}", document.place(where))


def _axis_errors(
    path: str, axis: Any, at: KeyPath, known: dict[str, Sequence[Any]], document: Document
) -> Iterator[InputError]:
    """What is wrong with one axis; its values (of a range to draw from: the least and the largest) go into known."""
    at = (*at, path)
    if path in known:
        yield InputError(f"{path} is varied twice", document.place(at, at_key=True))
    known[path] = ()
    try:
        if isinstance(axis, dict):
            known[path] = [each * axis.get("align", 1) for each in multiples(axis)]
        else:
            known[path] = axis_values(axis, document.data.get("lists", {}))
    except InputError as error:
        yield InputError(error.message, document.place(at))
    values = known[path]
    # All values of a range are like its first.
    for number, value in enumerate(values[:1] if isinstance(values, range) else values):
        yield from _assignment_errors(path, value, (*at, number) if isinstance(axis, list) else at, document)


def _assignment_errors(path: str, value: Any, at: KeyPath, document: Document) -> Iterator[InputError]:
    steps = path.split(".")
    if steps[0] in _FIXED:
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
