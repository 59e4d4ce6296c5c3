"""What an entry varies: the axes of its matrix, zip and sample, their values listed or sampled."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from generators.data.rng import below, bit_generator
from schemas.errors import InputError
from schemas.suggest import did_you_mean

Raw = Mapping[str, Any]
Where = tuple[str | int, ...]

_RANGE: Final = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(\d+))?")
_LIMIT: Final = 2**63  # of a bound: no size or parameter is larger
_MOST: Final = 1_000_000  # values of a range; more is a mistake in typing


def axis_groups(entry: Raw) -> Iterator[tuple[Where, Mapping[str, Any]]]:
    """(where it stands below the entry, dotted path -> axis) per dimension of the grid.

    Each axis of the matrix is a dimension, and so are those of one zip together.
    """
    for path, axis in entry.get("matrix", {}).items():
        yield ("matrix",), {path: axis}
    for number, group in enumerate(entry.get("zip", ())):
        if group:
            yield ("zip", number), group


def varied_paths(entry: Raw) -> Iterator[tuple[str, Where]]:
    """Every dotted path that an entry varies, and where below the entry that is written."""
    for where, group in axis_groups(entry):
        yield from ((path, (*where, path)) for path in group)
    for path in entry.get("sample", {}).get("over", ()):
        yield path, ("sample", "over", path)
    for number, combination in enumerate(entry.get("include", ())):
        yield from ((path, ("include", number, path)) for path in combination)


def axis_values(axis: Any, lists: Raw) -> Sequence[Any]:
    """The values of an axis: a list, a range first..last or first..last..step (last included), or a list's name.

    InputError (without place) where there are none.
    """
    if isinstance(axis, str) and not _RANGE.fullmatch(axis):
        if axis not in lists:
            raise InputError(f"no list is called {axis!r}{did_you_mean(axis, lists)}")
        named = lists[axis]
        if isinstance(named, list) or (isinstance(named, str) and _RANGE.fullmatch(named)):
            axis = named
    if isinstance(axis, list) and axis:
        return axis
    match = _RANGE.fullmatch(axis) if isinstance(axis, str) else None
    if match is None:
        raise InputError(f"{axis!r} is no list of at least one value")
    first, last, step = int(match[1]), int(match[2]), int(match[3] or 1)
    if first > last or not step:
        raise InputError(f"range {axis} needs first <= last and a step of 1 or more")
    if (last - first) // step >= _MOST:
        raise InputError(f"range {axis} has more than {_MOST} values")
    return range(first, last + 1, step)


def multiples(raw: Raw) -> tuple[int, int]:
    """The least and the largest multiplier of align inside the bounds of {range: ...} or {log: ...}.

    InputError (without place) where there is none, or where a bound of a logarithm is below 1.
    """
    kind = "range" if "range" in raw else "log"
    (low, high), align = raw[kind], raw.get("align", 1)
    if kind == "log" and low < 1:
        raise InputError(f"log needs bounds of 1 or more, found [{low}, {high}]")
    first, last = -(-low // align), high // align
    if first > last:
        raise InputError(f"no multiple of {align} lies in [{low}, {high}]")
    if max(-low, high) >= _LIMIT:
        raise InputError(f"{kind} needs bounds below 2^63, found [{low}, {high}]")
    return first, last


def draw_axis(axis: Any, lists: Raw, key: tuple[str | int, ...]) -> Any:
    """One value of an axis of a sample for a key: of a list, evenly; of a range or log, a multiple of align."""
    bits = bit_generator(key)
    if not isinstance(axis, dict):
        values = axis_values(axis, lists)
        return values[int(below(bits, 1, len(values))[0])]
    first, last = multiples(axis)
    align: int = axis.get("align", 1)
    if "range" in axis:
        return align * (first + int(below(bits, 1, last - first + 1)[0]))
    # The floor of a log-uniform number in [first, last + 1).
    fraction = float(bits.random_raw() >> 11) * 2.0**-53
    return align * min(last, math.floor(first * ((last + 1) / first) ** fraction))
