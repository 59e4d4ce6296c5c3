"""The matrix of an entry: its combinations, their names, and the entry that each of them makes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

Assignment = tuple[str, Any, tuple[str | int, ...]]  # dotted path, value, and where below the entry that is said
Axis = Sequence[tuple[str, Assignment]]  # labels and assignments

_NO_NAME = re.compile(r"[^a-z0-9_.-]+")


def combinations(entry: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Assignment, ...]]]:
    """(name suffix, assignments) per combination: the grid without what exclude names, then what include adds.

    An entry without a matrix and without include has one combination, which assigns nothing.
    """
    matrix, include = entry.get("matrix", {}), entry.get("include", [])
    axes = [_axis(path, values) for path, values in matrix.items()]
    excluded = [list(each.items()) for each in entry.get("exclude", [])]
    if axes or not include:
        for point in product(*axes):
            labels, assignments = zip(*point, strict=True) if point else ((), ())
            if not excluded or not _excluded(assignments, excluded):
                yield "".join(labels), assignments
    for number, combination in enumerate(include):
        items = [(_label(path, value), (path, value, ("include", number, path))) for path, value in combination.items()]
        yield "".join(label for label, _ in items), tuple(assignment for _, assignment in items)


def assigned(entry: Mapping[str, Any], assignments: Sequence[Assignment]) -> Mapping[str, Any]:
    """The entry with values put at dotted paths; the entry itself, and what isn't touched, stays shared."""
    if not assignments:
        return entry
    result = dict(entry)
    fresh = {"": result}  # mappings that are copies already, by their dotted path
    for path, value, _ in assignments:
        above, _, last = path.rpartition(".")
        if above not in fresh:
            target, at = result, ""
            for key in above.split("."):
                at = f"{at}.{key}" if at else key
                if at not in fresh:
                    fresh[at] = target[key] = dict(target.get(key, ()))
                target = fresh[at]
        fresh[above][last] = value
    return result


def _excluded(assignments: Sequence[Assignment], excluded: Sequence[Sequence[tuple[str, Any]]]) -> bool:
    point = {path: value for path, value, _ in assignments}
    return any(all(point[path] == value for path, value in pairs) for pairs in excluded)


def _axis(path: str, values: Sequence[Any]) -> Axis:
    """Labels and assignments of one axis; labels that would be equal get the position of their value."""
    labels = [_label(path, value) for value in values]
    if len(set(labels)) < len(labels):
        labels = [f"{label}.{number}" for number, label in enumerate(labels)]
    return [
        (label, (path, value, ("matrix", path, number)))
        for number, (label, value) in enumerate(zip(labels, values, strict=True))
    ]


def _label(path: str, value: Any) -> str:
    """_collect for a word, _h_mask3 for a number, _shape2x3 for a list, _uniform-1x1 for a mapping."""
    if isinstance(value, dict):
        return "".join(_label(str(key), inner) for key, inner in value.items()) or f"_{path.rpartition('.')[2]}"
    text = _text(value)
    return f"_{text}" if isinstance(value, str) else f"_{_NO_NAME.sub('', path.rpartition('.')[2].lower())}{text}"


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "x".join(map(_text, value))
    return _NO_NAME.sub("", str(value).lower())
