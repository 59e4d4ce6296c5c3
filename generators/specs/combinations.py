"""The combinations of an entry, by matrix, zip, cover, sample, include: their names, and the entry that each makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress, product
from operator import getitem
from typing import Any, Final, NamedTuple

from generators.specs.axes import Where, axis_groups, axis_values, draw_axis
from generators.specs.fields import NOT_IN_NAMES

Assignment = tuple[str, Where]  # a dotted path that is given a value, and where below the entry that is written
_Assignments = tuple[tuple[Assignment, ...], ...]  # per axis
Attempt = tuple[Mapping[str, Any], _Assignments]  # the entry with the values put in, and what they are

ATTEMPTS: Final = 100  # draws of a sample until one makes a legal case


class _Axis(NamedTuple):
    """An axis of the grid: for each position its label, its values and where these are written."""

    labels: Sequence[str]
    values: Sequence[tuple[Any, ...]]
    assignments: Sequence[tuple[Assignment, ...]]


def combinations(
    entry: Mapping[str, Any], lists: Mapping[str, Any], id: str
) -> Iterator[tuple[str, Iterable[Attempt]]]:
    """(name suffix, attempts) per combination of an entry.

    First the grid of matrix and zip without what exclude names, or the part of it that cover wants, each point of it
    with its samples; then what include adds. The first attempt that makes a legal case counts; only samples have more
    than one. An entry that varies nothing has one combination, itself. Combinations share the values that they don't
    change. What a sample draws depends on its seed, the entry's id, the suffix and its number alone.
    """
    include = entry.get("include", ())
    if "matrix" in entry or "zip" in entry or "sample" in entry:
        yield from _grid(entry, lists, id)
    elif not include:
        yield "", ((entry, ()),)
    for number, combination in enumerate(include):
        suffix = "".join(_label(path, value) for path, value in combination.items())
        assignments = tuple((path, ("include", number, path)) for path in combination)
        yield suffix, ((_putter(entry, list(combination))(combination.values()), (assignments,)),)


def _grid(entry: Mapping[str, Any], lists: Mapping[str, Any], id: str) -> Iterator[tuple[str, Iterable[Attempt]]]:
    groups = list(axis_groups(entry))
    axes = [_axis(where, group, lists) for where, group in groups]
    sample = entry.get("sample")
    put = _putter(entry, [*(path for _, group in groups for path in group), *(sample["over"] if sample else ())])
    excluded = [_positions(each, groups, axes) for each in entry.get("exclude", ())]
    for suffix, values, assignments in _grid_points(axes, excluded, entry.get("cover")):
        if not sample:
            yield suffix, ((put(chain.from_iterable(values)), assignments),)
            continue
        for number in range(sample["count"]):
            name = f"{suffix}_s{number:03d}"
            key = (sample.get("seed", 1), id + name)
            yield name, _attempts(put, [*chain.from_iterable(values)], assignments, sample["over"], lists, key)


def _positions(
    pairs: Mapping[str, Any], groups: Sequence[tuple[Where, Mapping[str, Any]]], axes: Sequence[_Axis]
) -> dict[int, frozenset[int]]:
    """Axis -> its positions that have the given values, of the axes that hold the paths of the pairs."""
    found = {}
    for number, ((_, group), axis) in enumerate(zip(groups, axes, strict=True)):
        wanted = [(column, pairs[path]) for column, path in enumerate(group) if path in pairs]
        if wanted:
            found[number] = frozenset(
                position
                for position, values in enumerate(axis.values)
                if all(values[column] == value for column, value in wanted)
            )
    return found


def _grid_points(
    axes: Sequence[_Axis], excluded: Sequence[Mapping[int, frozenset[int]]], cover: int | None
) -> Iterator[tuple[str, tuple[tuple[Any, ...], ...], _Assignments]]:
    """(label, values per axis, assignments per axis) of each point of a grid, the last axis fastest.

    Without excluded points; with cover a part of the others.
    """
    lengths = [len(axis.labels) for axis in axes]
    columns: list[list[Sequence[Any]]] = [[axis[part] for axis in axes] for part in range(len(_Axis._fields))]
    parts: list[Iterable[tuple[Any, ...]]]
    if cover is None:
        parts = [product(*column) for column in columns]
    else:
        positions = _covering_positions(lengths, excluded, cover)
        parts = [[tuple(map(getitem, column, position)) for position in positions] for column in columns]
    labels, values, assignments = parts
    points = zip(map("".join, labels), values, assignments, strict=True)
    if cover is not None or not excluded:
        return points
    wanted = (
        not any(all(position[axis] in hit for axis, hit in each.items()) for each in excluded)
        for position in product(*map(range, lengths))
    )
    return compress(points, wanted)


def _covering_positions(
    lengths: Sequence[int], excluded: Sequence[Mapping[int, frozenset[int]]], cover: int
) -> list[tuple[int, ...]]:
    """The positions of a part of a grid, in order: each choice of values on `cover` axes is in at least one of them."""
    from covertable import make  # specs without cover don't need it

    # A list of conditions as the library takes them: not all axes of an exclusion at an excluded position.
    conditions = [
        {
            "operator": "not",
            "condition": {
                "operator": "and",
                "conditions": [
                    {"operator": "in", "left": axis, "values": sorted(hit)} for axis, hit in sorted(each.items())
                ],
            },
        }
        for each in excluded
    ]
    rows = make([list(range(length)) for length in lengths], strength=cover, constraints=conditions)
    return sorted({tuple(row) for row in rows})  # beside exclusions the library may give a row twice


def _attempts(
    put: Callable[[Iterable[Any]], Mapping[str, Any]],
    values: Sequence[Any],
    assignments: _Assignments,
    over: Mapping[str, Any],
    lists: Mapping[str, Any],
    key: tuple[str | int, ...],
) -> Iterator[Attempt]:
    """The draws of one sample, one after another; what is drawn for a path does not depend on the other paths."""
    assignments += (tuple((path, ("sample", "over", path)) for path in over),)
    for attempt in range(ATTEMPTS):
        sampled = [draw_axis(axis, lists, (*key, attempt, path)) for path, axis in over.items()]
        yield put([*values, *sampled]), assignments


def _putter(entry: Mapping[str, Any], paths: Sequence[str]) -> Callable[[Iterable[Any]], Mapping[str, Any]]:
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

    def put(values: Iterable[Any]) -> Mapping[str, Any]:
        made = [dict(entry)]
        for above, key in inner:
            copy = dict(made[above].get(key, ()))
            made[above][key] = copy
            made.append(copy)
        for (target, key), value in zip(targets, values, strict=True):
            made[target][key] = value
        return made[0]

    return put


def _axis(where: Where, group: Mapping[str, Any], lists: Mapping[str, Any]) -> _Axis:
    """The axis of paired ones; equal labels get the position."""
    rows = list(zip(*(axis_values(axis, lists) for axis in group.values()), strict=True))
    labels = ["".join(map(_label, group, row)) for row in rows]
    if len(set(labels)) < len(labels):
        labels = [f"{label}.{number}" for number, label in enumerate(labels)]
    assignments = [
        # The source location of a value of a range or of a named list is that of the key.
        tuple(
            (path, (*where, path, number) if isinstance(axis, list) else (*where, path)) for path, axis in group.items()
        )
        for number in range(len(rows))
    ]
    return _Axis(labels, rows, assignments)


def _label(path: str, value: Any) -> str:
    """_collect for a word, _h_mask3 for a number, _shape2x3 for a list, _uniform-1x1 for a mapping."""
    if isinstance(value, dict):
        return "".join(_label(str(key), inner) for key, inner in value.items()) or f"_{path.rpartition('.')[2]}"
    text = _text(value)
    return f"_{text}" if isinstance(value, str) else f"_{NOT_IN_NAMES.sub('', path.rpartition('.')[2].lower())}{text}"


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "x".join(map(_text, value))
    return NOT_IN_NAMES.sub("", str(value).lower())
