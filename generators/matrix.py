"""The matrix of an entry: its combinations, their names, and the entry that each of them makes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

Where = tuple[str | int, ...]
Assignment = tuple[str, Where]  # a dotted path that is given a value, and where below the entry that is written

_NO_NAME = re.compile(r"[^a-z0-9_.-]+")


def combinations(entry: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], tuple[Assignment, ...]]]:
    """(name suffix, entry with the values put in, what they are) per combination: first the grid without what exclude
    names, then what include adds.

    An entry without a matrix and without include has one combination, itself. Entries share what isn't touched.
    """
    matrix, include = entry.get("matrix", {}), entry.get("include", [])
    if not matrix and not include:
        yield "", entry, ()
        return
    if matrix:
        yield from _grid(entry, matrix)
    for number, combination in enumerate(include):
        suffix = "".join(_label(path, value) for path, value in combination.items())
        assignments = tuple((path, ("include", number, path)) for path in combination)
        yield suffix, _putter(entry, list(combination))(list(combination.values())), assignments


def _grid(
    entry: Mapping[str, Any], matrix: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[str, Mapping[str, Any], tuple[Assignment, ...]]]:
    paths = list(matrix)
    put = _putter(entry, paths)
    excluded = [[(paths.index(path), value) for path, value in each.items()] for each in entry.get("exclude", [])]
    for point in product(*(_axis(path, values) for path, values in matrix.items())):
        labels, values, assignments = zip(*point, strict=True)
        if not excluded or not any(all(values[axis] == value for axis, value in pairs) for pairs in excluded):
            yield "".join(labels), put(values), assignments


def _putter(entry: Mapping[str, Any], paths: Sequence[str]) -> Callable[[Sequence[Any]], Mapping[str, Any]]:
    """A function that puts values at dotted paths of copies of the entry; only the mappings on the way are copied."""
    copies: dict[str, tuple[int, str]] = {"": (0, "")}  # dotted path of a mapping -> number of the one above, key in it
    targets = []
    for path in paths:
        steps = path.split(".")
        for depth in range(1, len(steps)):
            above = list(copies).index(".".join(steps[: depth - 1]))
            copies.setdefault(".".join(steps[:depth]), (above, steps[depth - 1]))
        targets.append((list(copies).index(".".join(steps[:-1])), steps[-1]))
    inner = list(copies.values())[1:]

    def put(values: Sequence[Any]) -> Mapping[str, Any]:
        made = [dict(entry)]
        for above, key in inner:
            copy = dict(made[above].get(key, ()))
            made[above][key] = copy
            made.append(copy)
        for (target, key), value in zip(targets, values, strict=True):
            made[target][key] = value
        return made[0]

    return put


def _axis(path: str, values: Sequence[Any]) -> list[tuple[str, Any, Assignment]]:
    """(label, value, assignment) per value; labels that would be equal get the position of their value."""
    labels = [_label(path, value) for value in values]
    if len(set(labels)) < len(labels):
        labels = [f"{label}.{number}" for number, label in enumerate(labels)]
    return [
        (label, value, (path, ("matrix", path, number)))
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
