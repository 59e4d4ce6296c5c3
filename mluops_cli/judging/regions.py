"""Where the wrong elements of an output lie: an index, the head or tail of an axis, a border, beyond a power of two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from mluops_cli.judging.arithmetic import Array
from mluops_cli.judging.patterns import ENOUGH

BY_CHANCE: Final = 1e-3  # regions less likely than this are reported


@dataclass(frozen=True, slots=True)
class Region:
    """Where all wrong elements lie: index, head, tail, block or border of an axis, or beyond an element."""

    kind: str
    axis: int | None
    first: int
    last: int

    def __str__(self) -> str:
        if self.kind == "beyond":
            return f"beyond element 2^{self.first.bit_length() - 1}"
        if self.kind == "border":
            return "on the border" if self.axis is None else f"on the border of axis {self.axis}"
        if self.kind == "index":
            return f"at index {self.first} of axis {self.axis}"
        if self.kind == "block":
            return f"at {self.first} to {self.last} of axis {self.axis}"
        count = self.last - self.first + 1
        return f"in the {'last' if self.kind == 'tail' else 'first'} {count} of axis {self.axis}"

    def as_record(self) -> dict[str, Any]:
        """Return the region as JSON data."""
        return {"kind": self.kind, "axis": self.axis, "first": self.first, "last": self.last}


def find_regions(shape: tuple[int, ...], at: Array, wrong: int) -> list[Region]:
    """Return the smallest regions that hold every wrong element, where that is unlikely to be chance.

    at: flat positions of wrong elements, ascending, all or an even sample; wrong: how many there are.
    """
    if wrong < ENOUGH or not shape:
        return []
    regions = []
    coordinates = np.unravel_index(at, shape)
    for axis, length in enumerate(shape):
        places = coordinates[axis]
        first, last = int(places.min()), int(places.max())
        if not _unlikely(last - first + 1, length, wrong):
            if length > 2 and _unlikely(2, length, wrong) and np.isin(places, (0, length - 1)).all():
                regions.append(Region("border", axis, 0, length - 1))
            continue
        kind = "index" if first == last else "tail" if last == length - 1 else "head" if first == 0 else "block"
        regions.append(Region(kind, axis, first, last))
    if not regions:
        regions += _on_border(shape, coordinates, wrong)
    lowest = int(at[0])
    power, size = 1 << max(lowest.bit_length() - 1, 0), math.prod(shape)
    # The element at the power itself may be right by chance, so a start slightly behind it counts too.
    if power >= 1024 and lowest - power <= power >> 8 and _unlikely(size - lowest, size, wrong):
        regions.append(Region("beyond", None, power, size - 1))
    return regions


def _on_border(shape: tuple[int, ...], coordinates: Sequence[Array], wrong: int) -> list[Region]:
    """Return the border where each wrong element has the first or last index of an axis longer than 2."""
    axes = [axis for axis, size in enumerate(shape) if size > 2]
    border = np.zeros(len(coordinates[0]), np.bool_)
    for axis in axes:
        border |= np.isin(coordinates[axis], (0, shape[axis] - 1))
    inner = math.prod((shape[axis] - 2) / shape[axis] for axis in axes)
    return [Region("border", None, 0, 0)] if border.all() and (1 - inner) ** wrong < BY_CHANCE else []


def _unlikely(extent: int, size: int, wrong: int) -> bool:
    """Return whether so many wrong elements, at random places of an axis, are unlikely to keep within the extent."""
    return extent < size and size * (extent / size) ** wrong < BY_CHANCE
