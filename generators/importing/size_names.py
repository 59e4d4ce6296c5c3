"""The shapes of several cases in symbols: dims that vary together are one size, or a parameter of the same values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

Shape = tuple[int, ...]
Values = tuple[int, ...]  # of one dim or parameter, case by case
_NAMES: Final = "NMKLPQRSTUVWXYZ"  # of sizes that no layout names
COMPONENTS: Final = 9  # the most numbers of a point, a box, a direction: more are a size


@dataclass(frozen=True, slots=True)
class Observed:
    """One tensor of all cases: its shape case by case, all of one rank, and its layout."""

    shapes: Sequence[Shape]
    layout: str
    is_input: bool


@dataclass(slots=True)
class SizeNames:
    """What the dims are.

    shapes: tensor -> a word per dim, as in TensorSpec. sizes: the name of a size -> its values. dims: the parameters
    that are dims. guessed: the cases have one set of shapes, so nothing varies that could tell a size from a constant.
    """

    shapes: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, Values] = field(default_factory=dict)
    dims: set[str] = field(default_factory=set)
    guessed: bool = False


@dataclass(slots=True)
class _Group:
    """Dims of the same values in every case; a tensor with two such dims has them in two groups."""

    values: Values
    axes: list[tuple[str, int]]
    word: str = ""


def name_sizes(tensors: Mapping[str, Observed], parameters: Mapping[str, Values]) -> SizeNames:
    """The names of all dims; parameters are those that are one integer.

    Dims with the same values in every case are one: a parameter that has these values, else a constant where they are
    all equal, else a size. Where the cases have one set of shapes, only the last dims of inputs that occur in no output
    and are small are taken for constants.
    """
    found = SizeNames(guessed=all(len(set(each.shapes)) == 1 for each in tensors.values()))
    groups = list(_groups(tensors))
    _name_parameters(groups, tensors, parameters)
    for group in groups:
        if not group.word and _is_constant(group, tensors, found.guessed):
            group.word = str(group.values[0])
    taken = set(parameters)
    for group in groups:
        if not group.word:
            group.word = next(name for name in _candidates(group, tensors) if name not in taken)
            taken.add(group.word)
            found.sizes[group.word] = group.values
    words = {axis: group.word for group in groups for axis in group.axes}
    for name, tensor in tensors.items():
        found.shapes[name] = " ".join(words[name, axis] for axis in range(len(tensor.shapes[0])))
    found.dims = set(words.values()) & set(parameters)
    return found


def _groups(tensors: Mapping[str, Observed]) -> Iterator[_Group]:
    groups: dict[tuple[Values, int], _Group] = {}
    for name, tensor in tensors.items():
        seen: Counter[Values] = Counter()
        for axis, values in enumerate(zip(*tensor.shapes, strict=True)):
            seen[values] += 1
            groups.setdefault((values, seen[values]), _Group(values, [])).axes.append((name, axis))
    return iter(groups.values())


def _name_parameters(
    groups: Sequence[_Group], tensors: Mapping[str, Observed], parameters: Mapping[str, Values]
) -> None:
    """Name the dims that are parameters: rather those of outputs alone; that a constant is one proves little."""
    by_role = sorted(groups, key=lambda group: any(tensors[name].is_input for name, _ in group.axes))
    for name, values in parameters.items():
        varies = len(set(values)) > 1
        for group in by_role:
            of_outputs = not any(tensors[tensor].is_input for tensor, _ in group.axes)
            if not group.word and group.values == values and (varies or (of_outputs and values[0] > 1)):
                group.word = name
                break


def _is_constant(group: _Group, tensors: Mapping[str, Observed], guessed: bool) -> bool:
    if not guessed or not group.values[0]:
        return len(set(group.values)) == 1 and group.values[0] > 0
    return group.values[0] <= COMPONENTS and all(
        tensors[name].is_input and not _letter(tensors[name], axis) and axis == len(tensors[name].shapes[0]) - 1 > 0
        for name, axis in group.axes
    )


def _letter(tensor: Observed, axis: int) -> str:
    """What the tensor's layout calls a dim; empty where it has no name for it."""
    named = tensor.layout != "ARRAY" and len(tensor.layout) == len(tensor.shapes[0])
    return tensor.layout[axis] if named else ""


def _candidates(group: _Group, tensors: Mapping[str, Observed]) -> Iterator[str]:
    """Names of a size, the best first: the letter that a layout has for the dim, B for a batch, then any letter."""
    yield from (letter for name, axis in group.axes if (letter := _letter(tensors[name], axis)))
    leading = [name for name, axis in group.axes if axis == 0 and len(tensors[name].shapes[0]) > 1]
    if len(leading) > 1 and leading[0] == next(iter(tensors)):
        yield "B"
    yield from _NAMES
    yield from (f"N{number}" for number in count(2))
