"""Spec files against the grammar: everything that is wrong, each with its source location."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import Any, Final

from generators.operator_registry import operators
from generators.specs.axes import axis_groups, axis_values, multiples
from generators.specs.fields import Model
from generators.specs.mistakes import mistakes, shown
from generators.specs.models import Fields
from generators.specs.yaml_loader import Document, KeyPath
from schemas.errors import InputError, SourceLocation
from schemas.suggest import did_you_mean

VARYING: Final = frozenset(("matrix", "zip", "cover", "sample", "include", "exclude"))
_MOST_MEETINGS: Final = 2000  # of values that cover asks for; the time to find cases grows with their square
_FIXED: Final = VARYING | {"name", "derive"}

Locate = Callable[[KeyPath, bool], SourceLocation]  # (key path, whether its key is meant)


def grammar_errors(document: Document, model: type[Model], op: object) -> list[InputError]:
    """The keys and values of a file that its model doesn't allow; op is what the spec says is its operator."""
    paths = _paths_of(op)
    errors = []
    for each in mistakes(model, document.data):
        *parent, key = each.path or ("",)
        meant = paths.get(str(key)) if each.at_key and _is_entry(parent) else None
        if meant and key != "shape":
            meant = meant.removesuffix(".shape")  # of a tensor an entry takes more than that
        message = f"unknown key {key!r}{did_you_mean(meant, [meant])}" if meant else each.message
        errors.append(InputError(message, document.place(each.path, each.at_key)))
    return errors


def nested(path: str, value: Any) -> dict[str, Any]:
    """{"a": {"b": value}} of the dotted path a.b."""
    for key in reversed(path.split(".")):
        value = {key: value}
    assert isinstance(value, dict)
    return value


class VariantCheck:
    """Checks what the entries of a spec vary: axes, and the values that they, samples and include put in."""

    def __init__(self, op: str, lists: Mapping[str, Any], locate: Locate) -> None:
        self._lists = lists
        self._locate = locate
        self._paths = _paths_of(op)

    def errors(self, entry: Mapping[str, Any], at: KeyPath) -> Iterator[InputError]:
        """What is wrong with the combinations of an entry, defaults included."""
        known: dict[str, Sequence[Any]] = {}
        axes: list[int] = []
        for where, group in axis_groups(entry):
            errors = [error for path in group for error in self._axis(path, group[path], (*at, *where), known)]
            lengths = {len(known[path]) for path in group}
            if not errors and len(lengths) > 1:
                found = ", ".join(f"{len(known[path])} of {path}" for path in group)
                errors = [self._at((*at, *where), f"a zip pairs lists of one length, found {found}")]
            yield from errors
            axes.append(max(lengths))
        if "cover" in entry and at != ("defaults",):
            yield from self._cover(entry["cover"], axes, at)
        for path, axis in entry.get("sample", {}).get("over", {}).items():
            yield from self._axis(path, axis, (*at, "sample", "over"), known)
        for number, combination in enumerate(entry.get("include", ())):
            for path, value in combination.items():
                where = (*at, "include", number, path)
                yield from self._key(path, where) or self._value(path, value, where)
        for number, combination in enumerate(entry.get("exclude", ())):
            for path, value in combination.items():
                where = (*at, "exclude", number, path)
                if path not in known:
                    message = f"{path!r} is no axis of matrix or zip{did_you_mean(path, known)}"
                    yield self._at(where, message, at_key=True)
                elif value not in known[path]:
                    yield self._at(where, f"{shown(value)} is not on the axis {path}")

    def _cover(self, cover: int, axes: Sequence[int], at: KeyPath) -> Iterator[InputError]:
        """What is wrong with cover beside axes of these lengths."""
        at = (*at, "cover")
        if not axes:
            yield self._at(at, "cover needs a matrix or a zip")
        elif cover > len(axes):
            yield self._at(at, f"cover is {cover}, expected at most the number of axes of matrix and zip, {len(axes)}")
        else:
            meetings = sum(map(prod, combinations(axes, cover)))
            if meetings > _MOST_MEETINGS:
                what = "pairs" if cover == 2 else "triples"
                yield self._at(at, f"these axes have {meetings} {what} of values, expected at most {_MOST_MEETINGS}")

    def _at(self, path: KeyPath, message: str, at_key: bool = False) -> InputError:
        return InputError(message, self._locate(path, at_key))

    def _axis(self, path: str, axis: Any, at: KeyPath, known: dict[str, Sequence[Any]]) -> Iterator[InputError]:
        """What is wrong with one axis; its values (of a range to draw from: its ends) go into known."""
        at = (*at, path)
        if path in known:
            yield self._at(at, f"{path} is varied twice", at_key=True)
        known[path] = ()
        try:
            if isinstance(axis, dict):
                known[path] = [each * axis.get("align", 1) for each in multiples(axis)]
            else:
                known[path] = axis_values(axis, self._lists)
        except InputError as error:
            yield self._at(at, error.message)
        wrong = self._key(path, at)
        yield from wrong
        values = known[path]
        # All values of a range are like its first.
        for number, value in enumerate(values[:1] if isinstance(values, range) else values):
            if not wrong:
                yield from self._value(path, value, (*at, number) if isinstance(axis, list) else at)

    def _key(self, path: str, at: KeyPath) -> list[InputError]:
        """What is wrong with a dotted path itself."""
        first, *rest = path.split(".")
        if first in _FIXED:
            return [self._at(at, f"{first} can't be varied", at_key=True)]
        if first in Fields.model_fields:
            return []
        hint = did_you_mean(first, Fields.model_fields)
        if not rest:
            hint = did_you_mean(self._paths.get(first, first), (*Fields.model_fields, *self._paths.values()))
        return [self._at(at, f"unknown key {first!r}{hint}", at_key=True)]

    def _value(self, path: str, value: Any, at: KeyPath) -> Iterator[InputError]:
        """What is wrong with a value that is put at a dotted path."""
        steps = tuple(path.split("."))
        for each in mistakes(Fields, nested(path, value)):
            inside = each.path[: len(steps)] == steps
            yield self._at((*at, *each.path[len(steps) :]) if inside else at, each.message)


def _is_entry(path: Sequence[str | int]) -> bool:
    """Whether a key path is that of an entry, or of what is laid under all entries."""
    return path == ["defaults"] or (len(path) == 3 and path[0] == "suites")


def _paths_of(op: object) -> dict[str, str]:
    """The words that people write for dotted paths of an operator's entries; none for an unknown operator."""
    operator = operators().get(op) if isinstance(op, str) else None
    return dict(_dotted_paths(operator.contract)) if operator is not None else {}


def _dotted_paths(contract: Any) -> Iterator[tuple[str, str]]:
    """(word, the dotted path that it may stand for) of what an entry of an operator varies; later ones win."""
    for section, keys in (("outputs", ("shape", "dtype")), ("inputs", ("shape", "dtype", "dist"))):
        for tensor in getattr(contract, section):
            yield from ((key, f"{section}.{tensor.name}.{key}") for key in keys)
            yield tensor.name, f"{section}.{tensor.name}.shape"
    yield from ((size, f"sizes.{size}") for size in contract.sizes)
    yield from ((parameter.name, f"params.{parameter.name}") for parameter in contract.passed_parameters)
